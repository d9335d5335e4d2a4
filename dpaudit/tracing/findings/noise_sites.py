"""What pairs of runs show: the calls that draw noise, the choices, and the costs of both. A `Case`
contains the noise of all pairs, sorted by the call that draws it. A report shows each call and each
choice as a row of a table (`Site`)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpaudit.certificates.traced import Finding, Site, SourceLine
from dpaudit.claims import PrivacyClaim
from dpaudit.tracing.costs import Piece, sum_exceeds, together
from dpaudit.tracing.runs.coins import Absorbed, epsilon
from dpaudit.tracing.runs.coupling import Runs
from dpaudit.tracing.runs.differences import Chosen, Hidden
from dpaudit.tracing.runs.one_sided import Selected
from dpaudit.tracing.runs.places import Place

# Parameter of a library's mechanism to which it adds noise, and those that bound its output.
VALUE, BOUNDS = "value", ("lower", "upper")
# Stands for an unknown scale or cost while equal rows of an array are merged: rows with NaN never
# are equal.
_UNKNOWN = -1.0
# Two values that only one input gives together, and less than `MIN_OCCURRENCES` times in at least
# `_MIN_RUNS` runs (one step of the counts), contain noise: the other input may give them, too.
MIN_OCCURRENCES, _MIN_RUNS = 2, 50


def shown(place: Place) -> SourceLine:
    """Return a line of code for a report. A file in the working directory gets a relative path."""
    folder, file = Path(os.getcwd()), Path(place.file)
    path = file.relative_to(folder) if file.is_relative_to(folder) else file
    return SourceLine(str(path), place.line, place.code)


def number(value: float) -> str:
    """Return a number with four significant digits; "∞" for infinity."""
    return "∞" if math.isinf(value) else f"{value:.4g}"


@dataclass(slots=True)
class Call:
    """A call that draws noise.

    line, added: The line that draws, and the line that uses the noise.
    hidden: For each pair of runs, the noise of the call in both runs.
    runs: For each pair of runs, the same noise with its costs. Noise with equal costs is one
        `Piece`.
    """

    line: SourceLine
    added: SourceLine
    primitive: str
    law: str
    callers: tuple[SourceLine, ...] = ()
    hidden: list[list[Hidden]] = field(default_factory=list)
    runs: list[list[Piece]] = field(default_factory=list)

    @property
    def worst(self) -> list[Piece]:
        """The noise of the call in the pair of runs in which it costs most."""
        return max(filter(None, self.runs), key=cost_together)

    def source(self, piece: Piece) -> Hidden:
        """Return the record of both runs (`Hidden`) from which a piece was made."""
        comparisons = [hidden for pair in self.hidden for hidden in pair]
        key = piece.shift, *piece.scales
        matching = (h for h in comparisons if key in zip(h.shifts, *h.scales, strict=True))
        return next(matching, comparisons[0])


@dataclass(frozen=True, slots=True)
class Case:
    """The information from which findings are derived.

    total: The cost of all sites, in words such as "ε = 2"; None if it is unknown.
    exceeds: Whether the cost of all sites together is more than the claim allows.
    found: The findings so far.
    """

    runs: Runs
    claim: PrivacyClaim | None
    calls: list[Call]
    sites: list[Site]
    total: str | None
    exceeds: bool
    found: list[Finding]


def case_of(runs: Runs, claim: PrivacyClaim | None) -> Case:
    """Return the case of some pairs of runs: their noise and their choices, with the costs."""
    calls = list(_calls(runs))
    total, exceeds = _total(calls, runs, claim)
    sites = [*sorted(map(_site, calls), key=_rank), *_choice_sites(runs)]
    return Case(runs, claim, calls, sites, total, exceeds, [])


def _total(
    calls: Sequence[Call], runs: Runs, claim: PrivacyClaim | None
) -> tuple[str | None, bool]:
    """Return the cost of all sites in words, and whether it is more than the claim allows."""
    comparisons = [pair.comparison for pair in runs.coupled]
    if any(comparison.uneven or comparison.twice or comparison.alone for comparison in comparisons):
        return None, False  # what only one input draws, or what cancels out, has no known cost
    if reported(runs, claim) or runs.rare or unexplained(runs):
        return None, False  # a difference that no noise hides is not part of the sum
    costs = [site.cost for site in _choice_sites(runs)]
    choices = [cost for cost in costs if cost is not None]
    pieces = [call.worst for call in calls]
    pure = [worst for worst in pieces if worst[0].unit == "ε"]
    normal = [piece for worst in pieces if worst[0].unit == "μ" for piece in worst]
    sums = [together(worst) for worst in pure]
    mu = together(normal) if normal else None
    is_unknown = len(choices) < len(costs) or None in sums or (normal and mu is None)
    if is_unknown or any(piece.unit != "μ" for piece in normal) or not (pieces or choices):
        return None, False
    words = []
    if pure or choices:
        words.append(f"ε = {number(math.fsum([*filter(None, sums), *choices]))}")
    if mu is not None:
        words.append(f"μ = {number(mu)}")
    all_pure = [piece for worst in pure for piece in worst]
    is_above = sum_exceeds([*all_pure, *choices_as_noise(runs)], claim)
    return " and ".join(words), is_above or sum_exceeds(normal, claim)


def choices_as_noise(runs: Runs) -> list[Piece]:
    """Return Laplace noise with the same ε for each random choice; infinite if it is unknown."""
    costs = [math.inf if site.cost is None else site.cost for site in _choice_sites(runs)]
    return [Piece("laplace", (1.0, 1.0), cost, released=False) for cost in costs]


def unexplained(runs: Runs) -> list[str]:
    """Return the parts that contain noise and differ in a pair of runs, although neither a shift
    nor a choice explains the difference."""
    has_choices = runs.laws is not None or any(pair.absorbed is not None for pair in runs.coupled)
    names: list[str] = []
    for pair in runs.coupled:
        comparison = pair.comparison
        is_moved = any(any(hidden.shifts) for hidden in comparison.hidden)
        may_be_chosen = not has_choices and (comparison.picks or comparison.chosen)
        if may_be_chosen if is_moved else (comparison.hidden or not has_choices):
            names += pair.noised
    return names


def reported(runs: Runs, claim: PrivacyClaim | None) -> list[tuple[Selected, bool]]:
    """Return the values that only one input gives and that may be a leak, the most frequent first.
    Each is (value, whether its counts refute the claim)."""
    is_uneven = any(pair.comparison.uneven for pair in runs.coupled)
    values = sorted(runs.selected, key=lambda value: -value.often)
    return [(value, _is_above(value, claim)) for value in values if _may_leak(value, is_uneven)]


def _may_leak(value: Selected, is_uneven: bool) -> bool:
    if len(value.part) > 1:
        return value.often >= MIN_OCCURRENCES or value.runs < _MIN_RUNS
    # Another finding names noise that only one input draws: it may give a value that occurs once.
    return value.often >= MIN_OCCURRENCES or value.is_known or not is_uneven


def _is_above(value: Selected, claim: PrivacyClaim | None) -> bool:
    if claim is None or not value.often:
        return False
    # Imported here to save time: most traces do not need it.
    from dpaudit.stats.binomial import clopper_pearson_lower, clopper_pearson_upper

    lower = clopper_pearson_lower(value.often, value.runs, value.level)
    upper = clopper_pearson_upper(0, value.runs, value.level)
    return any(lower > math.exp(point.epsilon) * upper + point.delta for point in claim.points())


def cost_together(pieces: Sequence[Piece]) -> float:
    """Return the composed cost of pieces, ε or μ; infinity if it is unknown or the units differ."""
    total = together(pieces) if len({piece.unit for piece in pieces}) == 1 else None
    return math.inf if total is None else total


def _calls(runs: Runs) -> Iterator[Call]:
    """Yield the calls whose noise is added to a value, or compared with one, in a pair of runs."""
    # The code is part of the key, since a line may contain several calls.
    calls: dict[tuple[str, int, str, str], Call] = {}
    for index, pair in enumerate(runs.coupled):
        comparisons = pair.comparison.hidden
        for hidden in comparisons if pair.forward else map(_turned, comparisons):
            if hidden.law == "uniform" and hidden.kind == "add" and not any(hidden.shifts):
                continue  # a part of a calculation whose effect on the output is counted already
            draw = hidden.draw
            key = draw.file, draw.line, draw.code, hidden.primitive
            if key not in calls:
                callers = tuple(map(shown, hidden.callers))
                lines = shown(draw), shown(hidden.added)
                calls[key] = Call(*lines, hidden.primitive, hidden.law, callers)
            call = calls[key]
            call.hidden += [[] for _ in range(index + 1 - len(call.hidden))]
            call.hidden[index].append(hidden)
    # A random choice may be the sign of exponential or geometric noise, which is then two-sided, so
    # that its law in the output is unknown.
    is_signed = any(pair.comparison.picks for pair in runs.coupled)
    for call in calls.values():
        call.runs = [_pieces(comparisons) for comparisons in call.hidden]
        if is_signed and call.law in ("exponential", "geometric"):
            call.runs = [
                [replace(piece, law="unknown") if piece.released else piece for piece in pieces]
                for pieces in call.runs
            ]
        if any(call.runs):
            yield call


def _turned(hidden: Hidden) -> Hidden:
    """Return noise with its fields of d1 and of d2 exchanged."""
    return hidden._replace(
        operands=hidden.operands[::-1],
        scales=hidden.scales[::-1],
        parameters=hidden.parameters[::-1],
        drawn=hidden.drawn[::-1],
    )


def _pieces(comparisons: Sequence[Hidden]) -> list[Piece]:
    """Return the noise of a call in a pair of runs: each drawn number once, at its highest cost."""
    if not comparisons:
        return []
    rows = [
        (
            hidden.pieces,
            hidden.shifts,
            *hidden.scales,
            hidden.released,
            hidden.joint or [math.nan] * len(hidden.pieces),
        )
        for hidden in comparisons
    ]
    ids, shifts, first, second, released, joint = (
        np.concatenate([np.asarray(part, dtype=float) for part in column])
        for column in zip(*rows, strict=True)
    )
    # A cost that was measured on the output replaces the formula, also of a comparison.
    known = {piece: h.cost for h in comparisons if h.cost is not None for piece in h.pieces}
    costs = np.array([known.get(piece, math.nan) for piece in ids.tolist()])
    is_shown = np.isin(ids, ids[released > 0])
    with np.errstate(all="ignore"):
        size = np.nan_to_num(shifts / np.maximum(first, second), nan=0.0, posinf=np.inf)
    order = np.lexsort((-size, ids))
    costliest = order[np.unique(ids[order], return_index=True)[1]]
    table = np.column_stack([shifts, first, second, is_shown, costs, _joined(ids, joint)])
    unique, counts = np.unique(
        np.nan_to_num(table[costliest], nan=_UNKNOWN, posinf=np.inf), axis=0, return_counts=True
    )
    law = next((h.law for h in comparisons if h.cost is not None), comparisons[0].law)
    is_bounded = any(map(changed_bounds, comparisons))
    return [
        Piece(
            law,
            (_known(scale), _known(other_scale)),
            shift,
            bool(was_shown),
            math.inf if is_bounded else None if cost == _UNKNOWN else cost,
            int(count),
            None if in_sum == _UNKNOWN else in_sum,
        )
        for (shift, scale, other_scale, was_shown, cost, in_sum), count in zip(
            unique.tolist(), counts.tolist(), strict=True
        )
    ]


def _known(scale: float) -> float:
    return math.nan if scale == _UNKNOWN else scale


def _joined(ids: NDArray[np.float64], joint: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each drawn number, the joint μ of all values that contain it; NaN if unknown."""
    _, which = np.unique(ids, return_inverse=True)
    known = ~np.isnan(joint)
    total: NDArray[np.float64] = np.sqrt(np.bincount(which, np.where(known, joint, 0.0) ** 2))
    total[np.bincount(which, known) == 0] = math.nan
    return total[which]


def changed_parameters(hidden: Hidden) -> list[str]:
    """Return the parameters of a library's mechanism, besides the operand, that differ."""
    first, second = hidden.parameters
    if VALUE not in first or VALUE not in second:
        return []
    return [name for name in first if name != VALUE and first[name] != second.get(name)]


def changed_bounds(hidden: Hidden) -> list[str]:
    """Return the bounds of a library's mechanism, "lower" and "upper", that differ."""
    return [name for name in changed_parameters(hidden) if name in BOUNDS]


def costliness(piece: Piece) -> tuple[float, bool, float, float]:
    """Return a sort key of drawn numbers: cost, whether the output contains it, scale, shift."""
    value = piece.value
    scale = max(piece.scales) if piece.has_two_scales else 0.0
    return -1.0 if value is None else value, piece.released, scale, piece.shift


def _site(call: Call) -> Site:
    worst = call.worst
    costliest = max(worst, key=costliness)
    moved = costliest if costliest.shift else max(worst, key=lambda piece: piece.shift)
    shifts = [max(piece.shift for piece in pieces) for pieces in call.runs if pieces]
    is_known = all(map(math.isfinite, costliest.scales)) and costliest.cost is None
    return Site(
        line=call.line,
        added=call.added,
        primitive=call.primitive,
        law=call.law,
        scales=costliest.scales if is_known else None,
        operands=call.source(moved).operands,
        shift=moved.shift,
        entries=sum(piece.count for piece in worst),
        cost=costliest.value,
        total=together(worst) if len({piece.unit for piece in worst}) == 1 else None,
        unit=costliest.unit,
        released=all(piece.released for piece in worst),
        varies=max(shifts) - min(shifts) > 1e-9 * max(1.0, max(shifts)),
        callers=call.callers,
    )


def _rank(site: Site) -> tuple[bool, float, str, int]:
    return site.total is not None, -(site.total or 0.0), site.line.file, site.line.line


def _choice_sites(runs: Runs) -> Iterator[Site]:
    """Yield a row for each line whose random choice differs, or explains a difference."""
    rows: dict[tuple[str, int], tuple[Place, str, tuple[Place, ...], list[float | None]]] = {}
    for pair in runs.coupled:
        choices: list[tuple[Absorbed | Chosen, float | None]] = []
        if pair.absorbed is not None:
            choices.append((pair.absorbed, pair.absorbed.cost))
        choices.extend((choice, choice_cost(choice)) for choice in pair.comparison.chosen)
        costs: dict[tuple[str, int], float | None] = {}
        for choice, epsilon_of in (row for row in choices if row[1] != 0):
            key = choice.place.file, choice.place.line
            known = max(costs.get(key) or 0.0, epsilon_of or 0.0)
            costs[key] = known if key in costs else epsilon_of
            rows.setdefault(key, (choice.place, choice.primitive, choice.callers, []))
        for key, cost in costs.items():
            rows[key][-1].append(cost)
    for origin, primitive, callers, pair_costs in rows.values():
        finite = [cost for cost in pair_costs if cost is not None]
        total = max(finite) if len(finite) == len(pair_costs) else None
        varies = bool(finite) and max(finite) - min(finite) > 1e-9
        yield choice_site(origin, primitive, callers, total, varies=varies)


def choice_site(
    place: Place, primitive: str, callers: Iterable[Place], cost: float | None, *, varies: bool
) -> Site:
    """Return a random choice, with its ε in nats or None, as a row of the table in a report."""
    line = shown(place)
    return Site(
        line=line, added=line, primitive=primitive, law="choice", scales=None,
        operands=("", ""), shift=0.0, entries=1, cost=cost, total=cost, unit="ε",
        released=False, varies=varies, callers=tuple(map(shown, callers)),
    )  # fmt: skip


def choice_cost(choice: Chosen) -> float:
    """Return the ε of a random choice in nats. Return 0 if the numbers of outcomes differ."""
    first, second = choice.probabilities
    if len(first) != len(second) or first == second:
        return 0.0
    if choice.is_coin:
        complements = [[1 - p for p in odds] for odds in (first, second)]
        return max(epsilon(first, second), epsilon(*complements))
    return epsilon(first, second)
