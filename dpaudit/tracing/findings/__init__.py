"""All findings of coupled runs, causes first, with the table of sites and what these cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dpaudit.certificates.traced import Finding, FindingKind, Site
from dpaudit.claims import PrivacyClaim
from dpaudit.tracing.costs import Piece, sum_exceeds, together
from dpaudit.tracing.findings.by_chance import of_seldom, of_selected
from dpaudit.tracing.findings.choices import epsilon_of, of_choices, of_laws, site_of
from dpaudit.tracing.findings.noise import of_noise, of_parameters
from dpaudit.tracing.findings.outputs import of_appearing, of_outputs
from dpaudit.tracing.findings.remedies import FOR_LINE, FOR_PAIR, Changes
from dpaudit.tracing.findings.sites import Gathered, as_site, coin_sites, gathered_by_call, rank
from dpaudit.tracing.runs.coupling import Runs
from dpaudit.tracing.runs.exact_enumeration import Laws
from dpaudit.tracing.source import number, shown, times

_ORDER: tuple[FindingKind, ...] = (
    "constant-seed",
    "no-noise",
    "control-flow",
    "exception",
    "noise-used-twice",
    "data-dependent-scale",
    "data-dependent-parameter",
    "too-little-noise",
    "data-dependent-choice",
    "drawn-for-one-input",
    "sum",
    "unused-noise",
    "state",
)

_OF_CALLS: tuple[FindingKind, ...] = ("too-little-noise", "data-dependent-scale")

# Lines of which one input draws more, at most.
_FEW_UNEVEN = 3


def judged(
    runs: Runs, claim: PrivacyClaim | None, changed: Changes | None = None
) -> tuple[list[Finding], list[Site], str | None, bool]:
    """Return findings, causes first, the table of sites, what these cost together in words, and
    whether that is more than is claimed. claim: where nothing is claimed, only what no claim allows
    is a cause.  changed: what the record that differs would change of a sum."""
    if runs.keeps_state:
        return [], [], None, False
    gathered = list(gathered_by_call(runs))
    if runs.laws is not None and runs.laws.is_exact:
        return _by_laws(runs, runs.laws, claim)
    found: list[Finding] = []
    if runs.laws is not None:
        found += of_laws(runs.laws, claim)
    found += of_outputs(runs, claim)
    found += of_selected(runs, claim)
    found += of_seldom(runs, claim)
    for one in gathered:
        beside = [piece for other in gathered if other is not one for piece in other.worst]
        found += of_parameters(one, claim)
        found += of_noise(one, runs, claim, changed, [*beside, *_tossed(runs)])
    found += of_choices(runs, claim)
    found += of_appearing(runs, claim)
    found += _twice(runs)
    found += _seeds(runs)
    found += _unused(runs, found)
    if not any(one.is_cause for one in found):
        found += _drawn_for_one(runs)
    sites = sorted(map(as_site, gathered), key=rank)
    sites += list(coin_sites(runs))
    total, is_above = _total(gathered, runs, claim)
    return _ordered(found), sites, total, is_above


def _by_laws(
    runs: Runs, laws: Laws, claim: PrivacyClaim | None
) -> tuple[list[Finding], list[Site], str | None, bool]:
    """Return all of it where the laws of the output are known: nothing else is a cause but what
    one input alone shows, whatever the coins, and only where the laws are too far apart."""
    found = list(of_laws(laws, claim))
    is_above = bool(found)
    if is_above:
        found += [one for one in of_outputs(runs, claim) if one.kind != "too-little-noise"]
    found += _seeds(runs)
    return _ordered(found), [site_of(laws)], f"ε = {number(epsilon_of(laws))}", is_above


def _ordered(found: Iterable[Finding]) -> list[Finding]:
    """Return findings, causes first; of each kind one for a line, or for a call where it says how
    much noise that draws."""
    unique: dict[tuple[str, str, int, str], Finding] = {}
    for finding in sorted(found, key=lambda one: not one.is_cause):
        code = finding.line.code if finding.kind in _OF_CALLS else ""
        unique.setdefault((finding.kind, finding.line.file, finding.line.line, code), finding)
    ordered = sorted(unique.values(), key=_place)
    if sum(one.is_cause for one in ordered) < 2:
        return ordered
    # With more noise here the other causes would leak as before.
    return [replace(one, remedy=one.remedy.replace(FOR_PAIR, FOR_LINE)) for one in ordered]


def _place(one: Finding) -> tuple[bool, bool, int, float]:
    """Return what findings are put in order by: causes first, of these what no noise hides."""
    cost = 0.0 if one.cost is None else one.cost
    return not one.is_cause, cost != math.inf, _ORDER.index(one.kind), -cost


def _total(
    gathered: Sequence[Gathered], runs: Runs, claim: PrivacyClaim | None
) -> tuple[str | None, bool]:
    """Return what all sites cost together in words, and whether that is above the claim."""
    if any(pair.comparison.uneven for pair in runs.coupled):
        return None, False  # what one input alone draws has no cost
    if runs.selected or runs.seldom or unexplained(runs):
        return None, False  # what no noise hides is in no sum
    pieces = [one.worst for one in gathered]
    coins = [one.cost for one in coin_sites(runs)]
    choices = [cost for cost in coins if cost is not None]
    if len(choices) < len(coins):
        return None, False
    if not pieces and not choices:
        return None, False
    pure = [each for each in pieces if each and each[0].unit == "ε"]
    normal = [piece for each in pieces if each and each[0].unit == "μ" for piece in each]
    sums = [together(each) for each in pure]
    if None in sums or any(piece.unit != "μ" for piece in normal):
        return None, False
    epsilon = math.fsum([one for one in sums if one is not None] + choices)
    mu = together(normal) if normal else None
    words = []
    if pure or choices:
        words.append(f"ε = {number(epsilon)}")
    if mu is not None:
        words.append(f"μ = {number(mu)}")
    all_pure = [piece for each in pure for piece in each]
    is_above = sum_exceeds([*all_pure, *_tossed(runs)], claim) or sum_exceeds(normal, claim)
    return " and ".join(words), is_above


def _tossed(runs: Runs) -> list[Piece]:
    """Return coins as noise that costs as much; ∞ where that is not known."""
    costs = [math.inf if one.cost is None else one.cost for one in coin_sites(runs)]
    return [Piece("laplace", (1.0, 1.0), one, released=False) for one in costs]


def unexplained(runs: Runs) -> list[str]:
    """Return the parts of outputs that differ, though nothing does that noise is added to. Where
    coins make up for the difference of some pairs, they may in others without any noise."""
    has_coins = runs.laws is not None or any(pair.absorbed is not None for pair in runs.coupled)
    found: list[str] = []
    for pair in runs.coupled:
        hidden = pair.comparison.hidden
        if (hidden or not has_coins) and not any(any(one.shifts) for one in hidden):
            found += pair.noised
    return found


def _drawn_for_one(runs: Runs) -> Iterator[Finding]:
    """Yield what one input alone draws, or draws more of: what it hides cannot be compared."""
    uneven = {one for pair in runs.coupled for one in pair.comparison.uneven if pair.forward}
    for place, _, one, other in sorted(uneven)[:_FEW_UNEVEN]:
        words = (
            f"`{place.code}` draws {times(one)} for d1 and {times(other)} for d2: what one input "
            "alone draws has a cost that is not known; look there"
        )
        yield Finding("drawn-for-one-input", False, shown(place), words, "")


def _twice(runs: Runs) -> Iterator[Finding]:
    for pair in runs.coupled:
        for draw, first, second in pair.comparison.twice:
            words = (
                f"`{draw.code}` hides two values that do not move alike, on lines {first.line} and "
                f"{second.line}: their difference is released without noise"
                if first.line != second.line
                else f"one value of `{draw.code}` hides several values that do not move alike: "
                "their difference is released without noise"
            )
            remedy = "draw fresh noise for each value"
            yield Finding(
                "noise-used-twice",
                True,
                shown(draw),
                words,
                remedy,
                (shown(first), shown(second)),
                math.inf,
            )


def _seeds(runs: Runs) -> Iterator[Finding]:
    for place, name, seed in runs.constant_seeds:
        words = f"`{name}` gets the seed {seed} in every run: the noise is known, and hides nothing"
        remedy = "take the generator as a parameter, or make it without a seed"
        yield Finding("constant-seed", True, shown(place), words, remedy, cost=math.inf)


def _unused(runs: Runs, found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield noise that does nothing: no cause by itself."""
    named = {(one.line.file, one.line.line) for one in found}
    for pair in runs.coupled[:1]:
        effects = {(one.draw.file, one.draw.line) for one in pair.comparison.hidden}
        for place, _ in pair.comparison.unused:
            line = shown(place)
            if (place.file, place.line) in effects or (line.file, line.line) in named:
                continue
            words = f"the noise of `{place.code}` is added to nothing that the trace could see"
            yield Finding("unused-noise", False, line, words, "")
