"""Gather the calls that draw noise, and the random choices, from all pairs of runs, with their
privacy costs. A report shows each of them as a row of a table (`Site`)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.certificates.traced import Finding, Site, SourceLine
from dpaudit.claims import PrivacyClaim
from dpaudit.tracing.costs import Piece, sum_exceeds, together
from dpaudit.tracing.findings.words import Changes, number, shown
from dpaudit.tracing.runs.coins import Absorbed, epsilon
from dpaudit.tracing.runs.coupling import Runs
from dpaudit.tracing.runs.differences import Chosen, Hidden
from dpaudit.tracing.runs.one_sided import Selected
from dpaudit.tracing.runs.places import Place

# Name of the parameter of a library's mechanism that is the value to which it adds noise.
VALUE = "value"
# Names of the parameters of a library's mechanism that bound its output.
BOUNDS = ("lower", "upper")
# Replaces NaN as an unknown scale or cost while equal rows of an array are merged: rows with NaN
# are never equal.
_UNKNOWN = -1.0
# Two norms are equal if their relative difference is at most `_SAME_NORM` (torch adds 1e-6 to a
# norm before it divides by it), and if the values differ by more than the share `_MIN_TURN` of
# their norm. Without this share, a record that is orthogonal to a large sum changes the norm too
# little.
_SAME_NORM, _MIN_TURN = 3e-6, 0.01


@dataclass(slots=True)
class Call:
    """A call that draws noise, with its noise in all pairs of runs. A pair consists of a run on d1
    and a run on d2 with the same noise.

    line: The line that draws.
    added: The line that adds the noise to a value, or compares it with one.
    primitive: The name of the function that draws.
    law: The name of the distribution of the noise.
    callers: The lines from which the call was reached, innermost first.
    hidden: For each pair of runs, a list of the noise of the call, as compared between its runs.
    runs: For each pair of runs, a list of the same noise with its privacy costs. Drawn numbers with
        equal costs share one `Piece`.
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
        """The noise that the call draws in one pair of runs: in the pair in which its privacy cost
        is largest."""
        return max(filter(None, self.runs), key=cost_together)

    def source(self, piece: Piece) -> Hidden:
        """Return the comparison of the noise of both runs that a piece comes from."""
        every = [each for hidden in self.hidden for each in hidden]
        key = piece.shift, *piece.scales
        return next((h for h in every if key in zip(h.shifts, *h.scales, strict=True)), every[0])

    @property
    def clipped_sum(self) -> tuple[float, float, float] | None:
        """(norm, change, cost) of a value that changes, but keeps its Euclidean norm, in some pair
        of runs: the program clips or normalizes the whole value. `change` is the norm of the
        change; NaN if there are several changes, as in several arrays or steps. `cost` is the cost
        of all values of the call together if a record turned each to its opposite. None if there is
        no such value."""
        for hidden, pieces in zip(self.hidden, self.runs, strict=True):
            norms = [(0.0, 0.0, 0.0), *(each.norms for each in hidden)]
            one, other, change = (math.hypot(*each) for each in zip(*norms, strict=True))
            if abs(one - other) <= _SAME_NORM * one and change > _MIN_TURN * one > 0:
                cost = 2 * one / change * cost_together(pieces)
                norm, after, own = max(norms)
                is_single = abs(norm - after) <= _SAME_NORM * norm
                draws = sum(each.many for each in hidden if any(each.norms))
                known = own if draws == 1 else math.nan
                return (norm, known, cost) if is_single else (one, math.nan, cost)
        return None


@dataclass(frozen=True, slots=True)
class Case:
    """The information that a detector of findings gets: runs on d1 and d2 with the same noise, and
    the claim with which the privacy costs of the noise are compared.

    runs: The pairs of runs.
    claim: The privacy claim for one run; None if nothing is claimed.
    changed: The differences between the inputs in the sums of the columns; None if they are
        unknown.
    calls: The calls that draw noise.
    sites: The calls that draw noise, and the random choices, as rows of the table in a report.
    total: The cost of all sites together, in words such as "ε = 2"; None if it is unknown.
    exceeds: Whether the cost of all sites together is more than the claim allows.
    found: The findings of the detectors that ran before.
    """

    runs: Runs
    claim: PrivacyClaim | None
    changed: Changes | None
    calls: list[Call]
    sites: list[Site]
    total: str | None
    exceeds: bool
    found: list[Finding]


def case_of(runs: Runs, claim: PrivacyClaim | None, changed: Changes | None) -> Case:
    """Return a `Case`: the information that detectors of findings get. It contains the arguments,
    the calls that draw noise, and the costs of these calls.

    runs: The pairs of runs on d1 and d2 with the same noise.
    claim: The privacy claim for one run; None if nothing is claimed.
    changed: By how much the sums of the columns of d1 and d2 differ; None if that is unknown.
    """
    calls = list(calls_of(runs))
    total, exceeds = _total(calls, runs, claim)
    sites = [*sorted(map(as_site, calls), key=rank), *coin_sites(runs)]
    return Case(runs, claim, changed, calls, sites, total, exceeds, [])


def _total(
    calls: Sequence[Call], runs: Runs, claim: PrivacyClaim | None
) -> tuple[str | None, bool]:
    """Return (cost, exceeds) for all calls that draw noise and all random choices together. `cost`
    is in words, such as "ε = 2", or None if it is unknown. `exceeds` is whether the cost is more
    than the claim allows."""
    if any(p.uneven or p.twice or p.alone for p in (one.comparison for one in runs.coupled)):
        return None, False  # what only one input draws, or what cancels out, has no known cost
    if reported(runs, claim) or runs.rare or unexplained(runs):
        return None, False  # a difference that no noise hides is not part of the sum
    pieces = [one.worst for one in calls]
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
    if normal and mu is None:
        return None, False
    words = []
    if pure or choices:
        words.append(f"ε = {number(epsilon)}")
    if mu is not None:
        words.append(f"μ = {number(mu)}")
    all_pure = [piece for each in pure for piece in each]
    is_above = sum_exceeds([*all_pure, *coins_as_noise(runs)], claim) or sum_exceeds(normal, claim)
    return " and ".join(words), is_above


def coins_as_noise(runs: Runs) -> list[Piece]:
    """Return the random choices of the runs as noise, for functions that add up the cost of noise:
    for each choice, a `Piece` of Laplace noise with the ε of the choice, or with ε = ∞ if it is
    unknown."""
    costs = [math.inf if one.cost is None else one.cost for one in coin_sites(runs)]
    return [Piece("laplace", (1.0, 1.0), one, released=False) for one in costs]


def unexplained(runs: Runs) -> list[str]:
    """Return the names of entries of the output, such as `output[1]`, that contain noise and differ
    in a pair of runs although nothing that was seen explains the difference:

    * If a value to which noise was added differs in the pair, the noise explains the difference,
      unless the runs also make random choices and no choice explains it alone.
    * If all such values are equal, the difference is unexplained.
    * If no such value was seen, it is unexplained, unless random choices explain the difference in
      some pair of runs: they may then explain this pair, too.
    """
    has_coins = runs.laws is not None or any(pair.absorbed is not None for pair in runs.coupled)
    found: list[str] = []
    for pair in runs.coupled:
        one = pair.comparison
        is_moved = any(any(each.shifts) for each in one.hidden)
        may_be_chosen = not has_coins and (one.picks or one.chosen)
        if may_be_chosen if is_moved else (one.hidden or not has_coins):
            found += pair.noised
    return found


# Two values that only one input gives together, and less than `MIN_OCCURRENCES` times in at least
# `_MIN_RUNS` runs (one step of the counts), contain noise: the other input may give them, too.
MIN_OCCURRENCES, _MIN_RUNS = 2, 50


def reported(runs: Runs, claim: PrivacyClaim | None) -> list[tuple[Selected, bool]]:
    """Return the values of the output that only one input gives and that may be a leak, the most
    frequent first. Each has the form (value, whether its counts refute the claim)."""
    is_uneven = any(pair.comparison.uneven for pair in runs.coupled)
    every = sorted(runs.selected, key=lambda one: -one.often)
    return [(one, _is_above(one, claim)) for one in every if _may_leak(one, is_uneven)]


def _may_leak(one: Selected, is_uneven: bool) -> bool:
    if len(one.part) > 1:
        return one.often >= MIN_OCCURRENCES or one.runs < _MIN_RUNS
    # Another finding names noise that only one input draws: it may give a value that occurs once.
    return one.often >= MIN_OCCURRENCES or one.is_known or not is_uneven


def _is_above(one: Selected, claim: PrivacyClaim | None) -> bool:
    if claim is None or not one.often:
        return False
    # Imported here to save time: most traces do not need it.
    from dpaudit.stats.binomial import clopper_pearson_lower, clopper_pearson_upper

    least = clopper_pearson_lower(one.often, one.runs, one.level)
    most = clopper_pearson_upper(0, one.runs, one.level)
    return any(least > math.exp(point.epsilon) * most + point.delta for point in claim.points())


def cost_together(pieces: Sequence[Piece]) -> float:
    """Return the total cost of several pieces of noise by composition, in ε or μ. Return infinity
    if it is unknown, or if some pieces cost ε and others μ."""
    total = together(pieces) if len({one.unit for one in pieces}) == 1 else None
    return math.inf if total is None else total


def calls_of(runs: Runs) -> Iterator[Call]:
    """Yield a `Call` for each call that draws noise. Calls whose noise is neither added to a value
    nor compared with one in any pair of runs are left out."""
    # Maps (file, line, code, function) to the call there. The code is part of the key, since a line
    # may contain several calls.
    found: dict[tuple[str, int, str, str], Call] = {}
    for number_, pair in enumerate(runs.coupled):
        for one in pair.comparison.hidden if pair.forward else map(_turned, pair.comparison.hidden):
            if one.law == "uniform" and one.kind == "add" and not any(one.shifts):
                continue  # a part of a calculation whose effect on the output is counted already
            key = one.draw.file, one.draw.line, one.draw.code, one.primitive
            if key not in found:
                lines = shown(one.draw), shown(one.added)
                callers = tuple(map(shown, one.callers))
                found[key] = Call(*lines, one.primitive, one.law, callers)
            each = found[key]
            each.hidden += [[] for _ in range(number_ + 1 - len(each.hidden))]
            each.hidden[number_].append(one)
    # A mechanism that makes random choices may choose the sign of its noise by one of them.
    # Exponential or geometric noise then becomes two-sided, so that its law in the output is
    # unknown.
    is_signed = any(pair.comparison.picks for pair in runs.coupled)
    for gathered in found.values():
        gathered.runs = [_pieces(every) for every in gathered.hidden]
        if is_signed and gathered.law in ("exponential", "geometric"):
            gathered.runs = [list(map(_unless_released, every)) for every in gathered.runs]
        if any(gathered.runs):
            yield gathered


def _turned(one: Hidden) -> Hidden:
    """Return noise with the fields of d1 and of d2 exchanged. It is used for a pair of runs whose
    first run was on d2, so that d1 comes first in the result."""
    return one._replace(
        operands=one.operands[::-1],
        scales=one.scales[::-1],
        parameters=one.parameters[::-1],
        drawn=one.drawn[::-1],
        norms=(one.norms[1], one.norms[0], one.norms[2]),
    )


def _pieces(every: Sequence[Hidden]) -> list[Piece]:
    """Return the noise of a call in one pair of runs. Drawn numbers with equal fields share one
    `Piece`. A drawn number that is added or compared several times counts once, at its highest
    cost."""
    if not every:
        return []
    columns = [
        np.concatenate([np.asarray(column, dtype=float) for column in each])
        for each in zip(
            *(
                (
                    one.pieces,
                    one.shifts,
                    *one.scales,
                    one.released,
                    one.joint or [math.nan] * len(one.pieces),
                )
                for one in every
            ),
            strict=True,
        )
    ]
    numbers, shifts, first, second, released, joint = columns
    # The cost of a drawn number may have been measured on the output. This cost then replaces the
    # cost by the formula for the distribution, also where the drawn number is only compared.
    known = {piece: one.cost for one in every if one.cost is not None for piece in one.pieces}
    costs = np.array([known.get(one, math.nan) for one in numbers.tolist()] if known else math.nan)
    costs = np.broadcast_to(costs, numbers.shape)
    shown = np.isin(numbers, numbers[released > 0])
    with np.errstate(all="ignore"):
        size = np.nan_to_num(shifts / np.maximum(first, second), nan=0.0, posinf=np.inf)
    order = np.lexsort((-size, numbers))
    kept = order[np.unique(numbers[order], return_index=True)[1]]
    rows = np.column_stack([shifts, first, second, shown, costs, _joined(numbers, joint)])[kept]
    # Replace NaN by a number: rows with NaN are never equal, so they would not be merged.
    unique, counts = np.unique(
        np.nan_to_num(rows, nan=_UNKNOWN, posinf=np.inf), axis=0, return_counts=True
    )
    first_known = next((one for one in every if one.cost is not None), every[0])
    is_bounded = any(changed_bounds(one) for one in every)
    return [
        Piece(
            first_known.law,
            (_known(one), _known(other)),
            shift,
            bool(is_shown),
            math.inf if is_bounded else None if cost == _UNKNOWN else cost,
            int(count),
            None if in_sum == _UNKNOWN else in_sum,
        )
        for (shift, one, other, is_shown, cost, in_sum), count in zip(
            unique.tolist(), counts.tolist(), strict=True
        )
    ]


def _joined(numbers: NDArray[np.float64], joint: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each value the joint μ of all values with its drawn number; NaN if `joint` is NaN
    for all of them."""
    _, which = np.unique(numbers, return_inverse=True)
    known = ~np.isnan(joint)
    squares = np.bincount(which, np.where(known, joint, 0.0) ** 2)
    total: NDArray[np.float64] = np.sqrt(squares)
    total[np.bincount(which, known) == 0] = math.nan
    return total[which]


def changed_parameters(one: Hidden) -> list[str]:
    """Return the names of the parameters of a library's mechanism that differ between the inputs.
    The value to which the mechanism adds noise is left out."""
    first, second = one.parameters
    if VALUE not in first or VALUE not in second:
        return []
    return [name for name in first if name != VALUE and first[name] != second.get(name)]


def changed_bounds(one: Hidden) -> list[str]:
    """Return the names of the bounds that differ between the inputs. The bounds "lower" and "upper"
    are parameters of a library's mechanism that limit its output."""
    return [name for name in changed_parameters(one) if name in BOUNDS]


def _unless_released(piece: Piece) -> Piece:
    return replace(piece, law="unknown") if piece.released else piece


def _known(scale: float) -> float:
    return math.nan if scale == _UNKNOWN else scale


def cost_of(one: Piece) -> float:
    """Return the cost of one drawn number, in ε or μ; -1 if it is unknown."""
    value = one.value
    return -1.0 if value is None else value


def costliness(one: Piece) -> tuple[float, bool, float, float]:
    """Return the sort key of drawn numbers. Of several with two scales, that of the output, with
    the noise of all steps, comes last."""
    scale = max(one.scales) if one.has_two_scales else 0.0
    return cost_of(one), one.released, scale, one.shift


def as_site(one: Call) -> Site:
    """Return a call that draws noise as a row of the table in a report."""
    worst = one.worst
    costliest = max(worst, key=costliness)
    moved = costliest if costliest.shift else max(worst, key=lambda piece: piece.shift)
    shifts = [max((piece.shift for piece in pieces), default=0.0) for pieces in one.runs if pieces]
    same_unit = len({piece.unit for piece in worst}) == 1
    known = all(map(math.isfinite, costliest.scales)) and costliest.cost is None
    return Site(
        line=one.line,
        added=one.added,
        primitive=one.primitive,
        law=one.law,
        scales=costliest.scales if known else None,
        operands=one.source(moved).operands,
        shift=moved.shift,
        entries=sum(piece.count for piece in worst),
        cost=costliest.value,
        total=together(worst) if same_unit else None,
        unit=costliest.unit,
        released=all(piece.released for piece in worst),
        varies=max(shifts) - min(shifts) > 1e-9 * max(1.0, max(shifts)),
        callers=one.callers,
    )


def rank(site: Site) -> tuple[bool, float, str, int]:
    """Return the sort key of a row of the table in a report: rows with unknown cost come first,
    then rows with the highest cost."""
    return site.total is not None, -(site.total or 0.0), site.line.file, site.line.line


def coin_sites(runs: Runs) -> Iterator[Site]:
    """Yield a row of the table in a report for each line with a discrete random choice that
    explains a difference of the outputs, or whose probabilities differ between the inputs."""
    # Maps (file, line) of a random choice to (line of code, function that makes the choice,
    # callers, costs). The costs are the ε of the choice in each pair of runs (on d1 and d2 with the
    # same noise) with this choice; a cost is None if it is unknown.
    found: dict[tuple[str, int], tuple[Place, str, tuple[Place, ...], list[float | None]]] = {}
    for pair in runs.coupled:
        costs: dict[tuple[str, int], float | None] = {}
        rows: list[tuple[Absorbed | Chosen, float | None]] = []
        if pair.absorbed is not None:
            rows.append((pair.absorbed, pair.absorbed.cost))
        rows.extend((one, each) for one in pair.comparison.chosen if (each := choice_cost(one)) > 0)
        for one, cost in rows:
            key = one.place.file, one.place.line
            costs[key] = max(costs[key] or 0.0, cost or 0.0) if key in costs else cost
            found.setdefault(key, (one.place, one.primitive, one.callers, []))
        for key, cost in costs.items():
            found[key][-1].append(cost)
    for place, primitive, callers, every in found.values():
        known = [cost for cost in every if cost is not None]
        most = max(known) if len(known) == len(every) else None
        varies = bool(known) and max(known) - min(known) > 1e-9
        yield choice_site(place, primitive, callers, most, varies=varies)


def choice_site(
    place: Place, primitive: str, callers: Iterable[Place], cost: float | None, *, varies: bool
) -> Site:
    """Return a discrete random choice as a row of the table in a report.

    place: The line of the choice.
    primitive: The name of the function that makes the choice; `coin` for a comparison of a uniform
        number with a threshold.
    callers: The lines from which the choice was reached, innermost first.
    cost: The ε of the choice in nats; None if it is unknown.
    varies: Whether the cost differs between pairs of runs.
    """
    line = shown(place)
    return Site(
        line=line, added=line, primitive=primitive, law="choice", scales=None,
        operands=("", ""), shift=0.0, entries=1, cost=cost, total=cost, unit="ε",
        released=False, varies=varies, callers=tuple(map(shown, callers)),
    )  # fmt: skip


def choice_cost(one: Chosen) -> float:
    """Return the ε of a random choice, in nats: the largest absolute log-ratio between the
    probabilities of an outcome on the two inputs. Outcomes are matched by position; return 0 if the
    choice has different numbers of outcomes on the two inputs."""
    first, second = one.probabilities
    if len(first) != len(second) or first == second:
        return 0.0
    if one.is_coin:
        others = [[1 - p for p in each] for each in (first, second)]
        return max(epsilon(first, second), epsilon(*others))
    return epsilon(first, second)
