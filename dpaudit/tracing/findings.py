"""What coupled runs show, judged against a claim: causes, notes, and the table of sites."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpaudit.certificates.traced import Finding, FindingKind, Site, SourceLine
from dpaudit.claims import PrivacyClaim
from dpaudit.tracing.costs import (
    Piece,
    coin_cost,
    exceeds,
    law_exceeds,
    sum_exceeds,
    tail,
    together,
)
from dpaudit.tracing.laws import epsilon_of, of_laws, site_of
from dpaudit.tracing.origins import origins
from dpaudit.tracing.records import Changes
from dpaudit.tracing.runs.comparing import Chosen, Hidden
from dpaudit.tracing.runs.coupling import Coupled, Runs
from dpaudit.tracing.runs.paths import Laws
from dpaudit.tracing.runs.places import Place
from dpaudit.tracing.selecting import GIVE_AN_OUTPUT, of_selected
from dpaudit.tracing.wording import number, rounded_down, rounded_up, shown, times

# Scales that are closer, relatively, are equal.
_ROUNDING = 1e-9
# How the process of a mechanism ends, in the place of exceptions.
_ENDS = ("crash", "timeout")
_ORDER: tuple[FindingKind, ...] = (
    "constant-seed",
    "no-noise",
    "control-flow",
    "exception",
    "noise-used-twice",
    "data-dependent-scale",
    "too-little-noise",
    "drawn-for-one-input",
    "sum",
    "unused-noise",
    "state",
)

# Lines of which one input draws more, at most.
_FEW_UNEVEN = 3


@dataclass(slots=True)
class _Gathered:
    """What all runs show of one line that draws."""

    line: SourceLine
    added: SourceLine
    primitive: str
    law: str
    operands: tuple[str, str]
    callers: tuple[SourceLine, ...] = ()
    # One list for each pair of runs: what was hidden, and its pieces, equal ones together.
    hidden: list[list[Hidden]] = field(default_factory=list)
    runs: list[list[Piece]] = field(default_factory=list)
    is_coin: bool = False

    @property
    def worst(self) -> list[Piece]:
        """The pieces of the pair of runs in which they cost most together."""
        return max(filter(None, self.runs), key=_size)


def _size(pieces: Sequence[Piece]) -> float:
    total = together(pieces) if len({one.unit for one in pieces}) == 1 else None
    return math.inf if total is None else total


def judged(
    runs: Runs, claim: PrivacyClaim | None, changed: Changes | None = None
) -> tuple[list[Finding], list[Site], str | None, bool]:
    """Return findings, causes first, the table of sites, what these cost together in words, and
    whether that is more than is claimed. claim: where nothing is claimed, only what no claim allows
    is a cause.  changed: what the record that differs would change of a sum."""
    if runs.keeps_state:
        return [], [], None, False
    gathered = list(_gathered(runs))
    if runs.laws is not None and runs.laws.is_exact:
        return _by_laws(runs, runs.laws, claim)
    found: list[Finding] = []
    if runs.laws is not None:
        found += of_laws(runs.laws, claim)
    found += _of_outputs(runs, claim)
    found += of_selected(runs, claim)
    for one in gathered:
        found += _of_site(one, runs, claim, changed)
    found += _of_choices(runs, claim)
    found += _appearing(runs, claim)
    found += _twice(runs)
    found += _seeds(runs)
    found += _unused(runs, found)
    if not any(one.is_cause for one in found):
        found += _drawn_for_one(runs)
    sites = sorted(map(_site, gathered), key=_rank)
    sites += list(_coins(runs))
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
        found += [one for one in _of_outputs(runs, claim) if one.kind != "too-little-noise"]
    found += _seeds(runs)
    return _ordered(found), [site_of(laws)], f"ε = {number(epsilon_of(laws))}", is_above


def _ordered(found: Iterable[Finding]) -> list[Finding]:
    """Return findings, causes first; of each kind one for a line."""
    unique: dict[tuple[str, str, int], Finding] = {}
    for finding in sorted(found, key=lambda one: not one.is_cause):
        unique.setdefault((finding.kind, finding.line.file, finding.line.line), finding)
    return sorted(unique.values(), key=lambda one: (not one.is_cause, _ORDER.index(one.kind)))


def _gathered(runs: Runs) -> Iterator[_Gathered]:
    """Yield what was seen of each line that draws noise which is added to something."""
    found: dict[tuple[str, int, str], _Gathered] = {}
    for number_, pair in enumerate(runs.coupled):
        for one in pair.comparison.hidden if pair.forward else map(_turned, pair.comparison.hidden):
            if one.law == "uniform" and one.kind == "add" and not any(one.shifts):
                continue  # arithmetic on uniform numbers, whose effect is seen elsewhere
            key = one.draw.file, one.draw.line, one.primitive
            if key not in found:
                lines = shown(one.draw), shown(one.added)
                callers = tuple(map(shown, one.callers))
                found[key] = _Gathered(*lines, one.primitive, one.law, one.operands, callers)
            each = found[key]
            each.hidden += [[] for _ in range(number_ + 1 - len(each.hidden))]
            if any(one.shifts) and not any(any(other.shifts) for other in each.hidden[number_]):
                each.operands = one.operands
            each.hidden[number_].append(one)
    # With a sign by chance, one-sided noise is two-sided: whether this is one is not seen.
    is_signed = any(pair.comparison.picks for pair in runs.coupled)
    for gathered in found.values():
        gathered.runs = [_pieces(every) for every in gathered.hidden]
        if is_signed and gathered.law in ("exponential", "geometric"):
            gathered.runs = [list(map(_unless_released, every)) for every in gathered.runs]
        if any(gathered.runs):
            yield gathered


def _turned(one: Hidden) -> Hidden:
    """Return noise of a pair of runs that began with d2, with d1 first."""
    return one._replace(
        operands=one.operands[::-1], scales=one.scales[::-1], parameters=one.parameters[::-1]
    )


def _pieces(every: Sequence[Hidden]) -> list[Piece]:
    """Return the pieces of noise of a line, equal ones together; of one that is used several times,
    the use that costs most."""
    if not every:
        return []
    columns = [
        np.concatenate([np.asarray(column, dtype=float) for column in each])
        for each in zip(
            *((one.pieces, one.shifts, *one.scales, one.released) for one in every), strict=True
        )
    ]
    numbers, shifts, first, second, released = columns
    shown = np.isin(numbers, numbers[released > 0])
    with np.errstate(all="ignore"):
        size = np.nan_to_num(shifts / np.maximum(first, second), nan=0.0, posinf=np.inf)
    order = np.lexsort((-size, numbers))
    kept = order[np.unique(numbers[order], return_index=True)[1]]
    rows = np.column_stack([shifts, first, second, shown])[kept]
    # NaN, of unknown scales, is equal to itself here.
    unique, counts = np.unique(
        np.nan_to_num(rows, nan=-1.0, posinf=np.inf), axis=0, return_counts=True
    )
    # A number that is compared on its way costs nothing there; what it costs is where it is added.
    first_known = next((one for one in every if one.cost is not None), every[0])
    law, cost = first_known.law, first_known.cost
    return [
        Piece(law, (_known(one), _known(other)), shift, bool(is_shown), cost, int(count))
        for (shift, one, other, is_shown), count in zip(
            unique.tolist(), counts.tolist(), strict=True
        )
    ]


def _unless_released(piece: Piece) -> Piece:
    return replace(piece, law="unknown") if piece.released else piece


def _known(scale: float) -> float:
    return math.nan if scale == -1.0 else scale


def _cost(one: Piece) -> float:
    value = one.value
    return -1.0 if value is None else value


def _site(one: _Gathered) -> Site:
    worst = one.worst
    costliest = max(worst, key=_cost)
    shifts = [max((piece.shift for piece in pieces), default=0.0) for pieces in one.runs if pieces]
    same_unit = len({piece.unit for piece in worst}) == 1
    known = all(map(math.isfinite, costliest.scales)) and costliest.cost is None
    return Site(
        line=one.line,
        added=one.added,
        primitive=one.primitive,
        law=one.law,
        scales=costliest.scales if known else None,
        operands=one.operands,
        shift=max((piece.shift for piece in worst), default=0.0),
        entries=sum(piece.count for piece in worst),
        cost=costliest.value,
        total=together(worst) if same_unit else None,
        unit=costliest.unit,
        released=all(piece.released for piece in worst),
        varies=max(shifts) - min(shifts) > 1e-9 * max(1.0, max(shifts)),
        callers=one.callers,
    )


def _rank(site: Site) -> tuple[bool, float, str, int]:
    return site.total is not None, -(site.total or 0.0), site.line.file, site.line.line


@dataclass(slots=True)
class _Coin:
    """A coin, or another choice, with what it costs in each pair of runs."""

    line: SourceLine
    primitive: str
    callers: tuple[SourceLine, ...]
    costs: list[float | None] = field(default_factory=list)


def _coins(runs: Runs) -> Iterator[Site]:
    """Yield the coins, and other choices, that make up for a difference of the outputs, or whose
    probabilities depend on the data."""
    found: dict[tuple[str, int], _Coin] = {}
    for pair in runs.coupled:
        costs: dict[tuple[str, int], float | None] = {}
        if pair.absorbed is not None:
            first, name = pair.absorbed.places[0], pair.absorbed.primitives[0]
            costs[first.file, first.line] = pair.absorbed.cost
            callers = tuple(map(shown, pair.absorbed.callers))
            found.setdefault((first.file, first.line), _Coin(shown(first), name, callers))
        for one in pair.comparison.chosen:
            ratio = _choice_cost(one)
            if ratio > 0:
                key = one.place.file, one.place.line
                costs[key] = max(costs.get(key) or 0.0, ratio)
                callers = tuple(map(shown, one.callers))
                found.setdefault(key, _Coin(shown(one.place), one.primitive, callers))
        for key, cost in costs.items():
            found[key].costs.append(cost)
    for coin in found.values():
        known = [cost for cost in coin.costs if cost is not None]
        most = max(known) if len(known) == len(coin.costs) else None
        yield Site(
            line=coin.line, added=coin.line, primitive=coin.primitive, law="choice", scales=None,
            operands=("", ""), shift=0.0, entries=1, cost=most, total=most, unit="ε",
            released=False,
            varies=bool(known) and max(known) - min(known) > 1e-9,
            callers=coin.callers,
        )  # fmt: skip


def _choice_cost(one: Chosen) -> float:
    first, second = one.probabilities
    if len(first) != len(second) or first == second:
        return 0.0
    if one.is_coin:
        others = [[1 - p for p in each] for each in (first, second)]
        return max(coin_cost(first, second), coin_cost(*others))
    return coin_cost(first, second)


def _drawn_for_one(runs: Runs) -> Iterator[Finding]:
    """Yield what one input alone draws, or draws more of: what it hides cannot be compared."""
    uneven = {one for pair in runs.coupled for one in pair.comparison.uneven if pair.forward}
    for place, _, one, other in sorted(uneven)[:_FEW_UNEVEN]:
        words = (
            f"`{place.code}` draws {times(one)} for d1 and {times(other)} for d2: what one input "
            "alone draws has a cost that is not known; look there"
        )
        yield Finding("drawn-for-one-input", False, shown(place), words, "")


def is_unexplained(pair: Coupled) -> bool:
    """Return whether outputs differ, though nothing does that noise is added to."""
    hidden = pair.comparison.hidden
    return bool(pair.noised and hidden) and not any(any(one.shifts) for one in hidden)


def _total(
    gathered: Sequence[_Gathered], runs: Runs, claim: PrivacyClaim | None
) -> tuple[str | None, bool]:
    """Return what all sites cost together in words, and whether that is above the claim."""
    if any(pair.comparison.uneven for pair in runs.coupled):
        return None, False  # what one input alone draws has no cost
    if runs.selected or any(map(is_unexplained, runs.coupled)):
        return None, False  # what no noise hides is in no sum
    pieces = [one.worst for one in gathered]
    coins = [one.cost for one in _coins(runs)]
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
    tossed = [Piece("laplace", (1.0, 1.0), one, released=False) for one in choices]
    is_above = sum_exceeds([*all_pure, *tossed], claim) or sum_exceeds(normal, claim)
    return " and ".join(words), is_above


# Findings.


def _of_site(
    one: _Gathered, runs: Runs, claim: PrivacyClaim | None, changed: Changes | None
) -> Iterator[Finding]:
    """Yield what is wrong with the noise of one line."""
    seen = [pieces for pieces in one.runs if pieces]
    over = [[piece for piece in pieces if exceeds(piece, claim)] for pieces in seen]
    # Of records that are picked at random, any single one is seen by chance.
    is_sampled = any(pair.comparison.picks for pair in runs.coupled)
    is_cause = all(over) if is_sampled else any(over)
    if _has_random_scale(seen) and not any(piece.has_two_scales for each in over for piece in each):
        is_cause = False
    if one.law == "uniform":
        # What it cannot come to another draw may, or what is left of a division.
        lines = {each.draw for pair in runs.coupled for each in pair.comparison.hidden}
        is_cause = all(over) and not is_sampled and len(lines) == 1
    by_effect = any(each.kind == "effect" for every in one.hidden for each in every)
    if by_effect and (one.law != "uniform" or runs.draws > 1):
        # Its shift is not that of the output, whose law is a mixture where there is other noise.
        is_cause = False
    if any(over):
        piece = max((piece for pieces in over for piece in pieces), key=_cost)
        yield _too_little(one, piece, claim, changed, is_cause=is_cause)
        return
    released = [[piece for piece in pieces if piece.released] for pieces in seen]
    worst = max(released, key=_size, default=[])
    units = {piece.unit for piece in worst}
    several = [each for each in released if _sum_is_above(each, claim)]
    if len(several) > 1 and len(units) == 1 and _sum_is_above(worst, claim):
        total = together(worst)
        assert total is not None
        unit = worst[0].unit
        moved = sum(piece.count for piece in worst if piece.shift)
        words = (
            f"`{one.line.code}` hides {moved} values that change, all of which are released: "
            f"together {unit} = {number(total)}"
            if moved > 1
            else f"`{one.line.code}` hides a value that changes and is released: "
            f"{unit} = {number(total)}"
        )
        is_split = all(map(math.isfinite, worst[0].scales))
        larger = _remedy(worst, claim) if is_split else ""
        words += _set_on(one)
        is_cause = not (is_sampled or _has_random_scale(seen))
        yield Finding("too-little-noise", is_cause, one.line, words, larger, _other(one))


def _set_on(one: _Gathered) -> str:
    """Return where the scale is set, as the end of a sentence."""
    lines = [str(each.line) for each in origins(one.line)]
    return f"; its scale depends on line{'s'[: len(lines) > 1]} {', '.join(lines)}" if lines else ""


def _has_random_scale(runs: Sequence[Sequence[Piece]]) -> bool:
    """Return whether a scale depends on other noise: of a mixture, such as normal noise whose
    variance is drawn, the law is another one than that of a piece."""
    largest = [max(piece.scales[0] for piece in pieces) for pieces in runs]
    known = [one for one in largest if math.isfinite(one)]
    return bool(known) and max(known) - min(known) > _ROUNDING * max(known)


def _sum_is_above(pieces: Sequence[Piece], claim: PrivacyClaim | None) -> bool:
    return len({piece.unit for piece in pieces}) == 1 and sum_exceeds(pieces, claim)


def _other(one: _Gathered) -> tuple[SourceLine, ...]:
    """Return the other lines that have a part in it: where the scale is set, where the noise is
    added, and the callers."""
    lines = {(each.file, each.line): each for each in (*origins(one.line), *one.callers, one.added)}
    return tuple(each for key, each in lines.items() if key != (one.line.file, one.line.line))


def _too_little(
    one: _Gathered,
    piece: Piece,
    claim: PrivacyClaim | None,
    changed: Changes | None,
    *,
    is_cause: bool,
) -> Finding:
    if piece.has_two_scales:
        first, second = map(number, piece.scales)
        words = (
            f"`{one.line.code}` has scale {first} for one input and {second} for the other: the "
            f"scale itself tells them apart{_set_on(one)}"
        )
        remedy = "derive the scale from bounds, not from the data"
        return Finding("data-dependent-scale", is_cause, one.line, words, remedy, _other(one))
    value, scale = piece.value, max(piece.scales)
    if piece.law in ("discrete", "geometric") and value == math.inf:
        words = (
            f"`{one.line.code}` adds whole numbers to a change of {number(piece.shift)}, which is "
            "none: what lies between them is released"
        )
        remedy = "round before the noise is added, with a sensitivity that allows for it"
        return Finding("too-little-noise", is_cause, one.line, words, remedy, _other(one))
    if math.isinf(piece.shift):
        first, second = one.operands
        words = (
            f"`{one.line.code}` is added to {first} for d1 and to {second} for d2: no noise hides "
            "what is not finite"
        )
        remedy = "replace or refuse such values for every input alike, before the noise is added"
        return Finding("no-noise", is_cause, one.line, words, remedy, _other(one))
    cost = "" if value is None else f": {piece.unit} = {number(value)}"
    size = f" with scale {number(scale)}" if math.isfinite(scale) and piece.cost is None else ""
    change = f"a change of {number(piece.shift)}" if piece.cost is None else "the change"
    whole = changed if changed is not None and _is_whole_record(piece, changed) else None
    if whole is not None:
        change += f", {_WHOLE[whole.is_replaced]}"
    words = f"`{one.line.code}`{size} hides {change}{cost}{_set_on(one)}"
    remedy = _remedy([piece], claim)
    if remedy and whole is not None:
        remedy = f"{_clipping(piece, claim, whole)}{remedy}"
    return Finding("too-little-noise", is_cause, one.line, words, remedy, _other(one))


_WHOLE = ("the size of the record that differs", "the difference of the two records")


def _is_whole_record(piece: Piece, changed: Changes) -> bool:
    """Return whether noise hides a number of the record that differs as a whole."""
    sizes = (math.isclose(piece.shift, one, rel_tol=_ROUNDING) for one in changed.sizes)
    return piece.cost is None and any(sizes)


def _clipping(piece: Piece, claim: PrivacyClaim | None, changed: Changes) -> str:
    """Return the beginning of a remedy: the bound that this scale would do for."""
    times = None if claim is None else _enlargement([piece], claim)
    most = math.nan if times is None else piece.shift / times
    most = math.floor(most * (1 + _ROUNDING)) if piece.law == "discrete" else most
    if not most > 0:
        return ""
    bound = rounded_down(most)
    where = f"a range of width {bound}" if changed.is_replaced else f"[-{bound}, {bound}]"
    return f"clip each record to {where} before it is added up, or "


def _remedy(pieces: Sequence[Piece], claim: PrivacyClaim | None) -> str:
    """Return the scale that would do, or the remedy where no scale does."""
    if claim is None or any(one.cost is not None for one in pieces):
        return ""
    law, scale = pieces[0].law, max(pieces[0].scales)
    if law == "normal" and all(point.delta == 0 for point in claim.points()):
        return "Gaussian noise satisfies no pure ε: use Laplace noise, or claim a δ above 0"
    times = _enlargement(pieces, claim)
    if times is None:
        return ""
    name = "standard deviation" if law == "normal" else "scale"
    return f"a {name} of {rounded_up(times * scale)} would do for this pair"


def _enlargement(pieces: Sequence[Piece], claim: PrivacyClaim) -> float | None:
    """Return how many times as large the scale has to be; None where no scale is known to do."""
    law, scale = pieces[0].law, max(pieces[0].scales)
    if law not in ("laplace", "normal", "discrete", "logistic") or not scale > 0:
        return None

    def would_do(times: float) -> bool:
        larger = [
            replace(one, scales=(times * one.scales[0], times * one.scales[1])) for one in pieces
        ]
        return not sum_exceeds(larger, claim) and not any(exceeds(one, claim) for one in larger)

    low, high = 1.0, 2.0
    while not would_do(high):
        low, high = high, 2 * high
        if high > 1e9:
            return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if would_do(middle) else (middle, high)
    return high


def _of_outputs(runs: Runs, claim: PrivacyClaim | None) -> Iterator[Finding]:
    """Yield what the outputs show that no noise hides."""
    # An output may come of other ways, too, such as in a loop that rejects: of the ways that were
    # seen, the cheapest counts.
    costs: dict[Place, float] = {}
    for pair in runs.coupled:
        if pair.absorbed is not None:
            place, cost = pair.absorbed.places[0], pair.absorbed.cost
            costs[place] = min(0.0 if cost is None else cost, costs.get(place, math.inf))
    for pair in runs.coupled:
        if pair.absorbed is not None:
            place = pair.absorbed.places[0]
            cost = costs[place]
            piece = Piece("unknown", (math.nan, math.nan), 0.0, released=True, cost=cost)
            points = () if claim is None else claim.points()
            pure = [point for point in points if point.delta == 0]
            if exceeds(piece, claim) or any(cost > one.epsilon * (1 + 1e-9) for one in pure):
                words = f"`{place.code}` decides between the inputs: ε = {number(cost)}"
                callers = tuple(map(shown, pair.absorbed.callers))
                yield Finding("too-little-noise", True, shown(place), words, "", callers)
        if "raises" in pair.bare:
            yield _raises(pair)
        elif pair.bare:
            yield _bare(pair, runs, claim)


def _appearing(runs: Runs, claim: PrivacyClaim | None) -> Iterator[Finding]:
    """Yield parts of the output that one input alone has more often than the claim allows."""
    for pair in runs.coupled:
        for one in pair.appearing:
            chance = tail(one.law, one.scale, one.margin)
            points = () if claim is None else claim.points()
            allowed = min((point.delta for point in points), default=1.0)
            if chance is None or chance <= allowed * (1 + 1e-6) + 1e-12:
                continue
            which = "d2" if pair.forward else "d1"
            words = (
                f"`{one.compared.code}` releases {one.part}, which {which} alone can have, with "
                f"probability {number(chance)}; δ = {number(allowed)} is claimed"
            )
            remedy = (
                "raise the threshold, or add more noise"
                if allowed
                else ("claim a δ above 0, or release the same parts for every input")
            )
            others = (shown(one.draw), *map(shown, one.callers))
            yield Finding("too-little-noise", True, shown(one.compared), words, remedy, others)


def _raises(pair: Coupled) -> Finding:
    errors = pair.comparison.errors
    kind, message, place = next(one for one in errors if one is not None)
    which = "d1" if (errors[0] is not None) == pair.forward else "d2"
    said = f": {message}" if message else ""
    happens = f"a {kind} ends" if kind in _ENDS else f"{kind} is raised for"
    words = f"{happens} {which} alone, whatever the noise{said}"
    end = next((one for one in pair.comparison.ends if one is not None), None)
    line = shown(place or end or Place("?", 0, "", ""))
    others = () if pair.comparison.parted is None else (shown(pair.comparison.parted.place),)
    return Finding("exception", True, line, words, GIVE_AN_OUTPUT, others)


def _of_one_alone(name: str, runs: Runs) -> str:
    """Return in words which input always has the same in a part of the output, if the other one has
    noise there; empty where it has none either."""
    seen: tuple[set[str], set[str]] = (set(), set())
    for each in runs.coupled:
        values = each.comparison.differing.get(name)
        if values is not None:
            for which, value in enumerate(values if each.forward else values[::-1]):
                seen[which].add(value)
    if len(seen[0]) == len(seen[1]) or min(map(len, seen)) != 1:
        return ""
    which = 0 if len(seen[0]) == 1 else 1
    return f" is always {next(iter(seen[which]))} for d{which + 1}, and never for d{2 - which}"


def _same_parts(claim: PrivacyClaim | None) -> str:
    """Return the remedy where it is released which parts there are."""
    below = "leave out noisy counts below a threshold"
    has_delta = claim is not None and all(point.delta for point in claim.points())
    more = f", or {below}" if has_delta else f"; or claim a δ above 0, and {below}"
    return f"release the same values for every input, from a fixed list of keys{more}"


def _bare(pair: Coupled, runs: Runs, claim: PrivacyClaim | None) -> Finding:
    """Return a finding of a part of the output that has no noise in it."""
    comparison = pair.comparison
    names = [one for one in pair.bare if not one.startswith("len(")] or pair.bare
    name = names[0]
    first, second = comparison.differing[name]
    one, other = (first, second) if pair.forward else (second, first)
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    alone = _of_one_alone(name, runs)
    said = f"{name}{more}{alone}"
    if not alone:
        said += f" is {one} for d1 and {other} for d2, whatever the noise"
    parted, ends = comparison.parted, comparison.ends
    if parted is not None and ends[0] is not None and ends[1] is not None:
        ways = [one for one in parted.ways if one is not None]
        if (ends[0].file, ends[0].line) != (ends[1].file, ends[1].line):
            words = f"`{parted.place.code}` decides on data without noise: {said}"
            remedy = "decide on noised values alone, or go the same way for all data"
            return Finding(
                "control-flow", True, shown(parted.place), words, remedy, tuple(map(shown, ways))
            )
    others = [shown(place) for place, *_ in comparison.uneven]
    if comparison.uneven and "nothing" in (first, second):
        place, _, many, fewer = comparison.uneven[0]
        many, fewer = (many, fewer) if pair.forward else (fewer, many)
        words = (
            f"`{place.code}` draws {times(many)} for d1 and {times(fewer)} for d2: how many "
            "values there are, or which, is released without noise"
        )
        remedy = _same_parts(claim)
        end = () if ends[0] is None else (shown(ends[0]),)
        return Finding("no-noise", True, shown(place), words, remedy, end)
    line = shown(ends[0] or Place("?", 0, "", ""))
    if parted is not None:
        others.append(shown(parted.place))
    remedy = "add noise to it, or do not release it"
    if "nothing" in (first, second) or name.endswith((".index", ".shape")):
        which = 1 if first == "nothing" else 0
        if "nothing" in (first, second):
            alike = [each for each in names if comparison.differing[each][1 - which] == "nothing"]
            more = f" (and {len(alike) - 1} more)" if len(alike) > 1 else ""
            has = f"d{1 + which}" if pair.forward else f"d{2 - which}"
            said = f"{name}{more} is there for {has} alone, whatever the noise"
        remedy = _same_parts(claim)
    return Finding("no-noise", True, line, said, remedy, tuple(others))


def _of_choices(runs: Runs, claim: PrivacyClaim | None) -> Iterator[Finding]:
    """Yield discrete choices whose probabilities depend too much on the data."""
    for pair in runs.coupled:
        for one in pair.comparison.chosen:
            first, second = map(np.asarray, one.probabilities)
            if first.shape != second.shape or np.array_equal(first, second):
                continue
            if one.is_coin:
                each = zip(first.tolist(), second.tolist(), strict=True)
                laws = [(np.array([p, 1 - p]), np.array([q, 1 - q])) for p, q in each]
            else:
                laws = [(first, second)]
            if any(law_exceeds(*law, claim) for law in laws):
                cost = _choice_cost(one)
                words = (
                    f"`{one.place.code}` chooses with probabilities that depend on the data: "
                    f"ε = {number(cost)}"
                )
                # Where the same outcome means something else, as an interval between records
                # does, its probability says nothing by itself.
                means_the_same = not any(
                    each.comparison.differing or each.comparison.ranges for each in runs.coupled
                )
                is_picked = any(map(_is_picked_from_data, one.parameters))
                is_cause = means_the_same and not is_picked
                callers = tuple(map(shown, one.callers))
                yield Finding("too-little-noise", is_cause, shown(one.place), words, "", callers)


def _is_picked_from_data(parameters: dict[str, object]) -> bool:
    """Whether a choice may be one of records, of which another number is no leak by itself."""
    return "n" in parameters and "p" not in parameters


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
                "noise-used-twice", True, shown(draw), words, remedy, (shown(first), shown(second))
            )


def _seeds(runs: Runs) -> Iterator[Finding]:
    for place, name, seed in runs.constant_seeds:
        words = f"`{name}` gets the seed {seed} in every run: the noise is known, and hides nothing"
        remedy = "take the generator as a parameter, or make it without a seed"
        yield Finding("constant-seed", True, shown(place), words, remedy)


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
