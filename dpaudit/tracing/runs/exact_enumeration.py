"""The exact law of an output whose only noise is a few coins, or choices of few outcomes: each
*branch*, that is each combination of outcomes, is run once."""

from __future__ import annotations

import heapq
import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .places import place_of
from .replaying import Choice, Draw
from .running import same

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from .places import Place, Spot
    from .recording import Recorder
    from .replaying import Entry
    from .running import Coupler, Run

    Outcomes = dict[Entry, Any]


# Branches that are run for either input, the likeliest first, and choices on all of them.
_MOST, _CHOICES = 128, 3_000
# Give up if 32 branches have a total probability below 0.2, or if there are over 10⁶ branches.
_EARLY, _LITTLE, _BEYOND = 32, 0.2, 1e6
# Runs with other seeds that show whether anything else is random.
_CHECKING = 32
# Probability that may be left unexplored.
_REST = 0.05
# The same, if it is due to rounding.
_EXACT = 1e-9
# Less likely branches are left out.
_RARE = 1e-15


class Decision(NamedTuple):
    """A coin, or a choice of few outcomes, in one run. entry: its moment and entry.  outcomes: all
    values with their probabilities.  value: the outcome.  spot, primitive: what draws it."""

    entry: Entry
    outcomes: Sequence[tuple[Any, float]]
    value: Any
    spot: Spot
    primitive: str


class Laws(NamedTuple):
    """The laws of the output on both inputs.

    first, second: the probability of each output, in the same order.  rests: the probabilities of
    the branches that were not run.  place, primitive, callers: of the choice with the most unequal
    odds.  others: lines of the other choices.
    """

    first: list[float]
    second: list[float]
    rests: tuple[float, float]
    place: Place
    primitive: str
    callers: tuple[Place, ...]
    others: tuple[Place, ...]

    @property
    def is_exact(self) -> bool:
        """Whether all branches were run."""
        return max(self.rests) < _EXACT

    @property
    def is_finite(self) -> bool:
        """Whether they are exact, and both inputs have the same outputs."""
        return self.is_exact and epsilon(self.first, self.second) < math.inf


def laws_of(coupler: Coupler) -> Laws | None:
    """Return the laws of the output on both inputs, from the likeliest branches. Return None if
    there is other noise, or if there are too many branches."""
    if not any(coupler.run(which).recorder.draws for which in (0, 1)):
        return None
    found = []
    steps: dict[Spot, tuple[float, Decision, tuple[Spot, ...]]] = {}
    for which in (0, 1):
        law = _law(coupler, which, steps)
        if law is None:
            return None
        found.append(law)
    one, other = merged(found)
    outputs = {**one, **other}
    first, second = ([law.get(each, 0.0) for each in outputs] for law in (one, other))
    rests = tuple(max(0.0, 1 - math.fsum(law.values())) for law in found)
    if not steps:
        return None
    least = max(steps, key=lambda spot: steps[spot][0])
    return Laws(
        first,
        second,
        rests,  # type: ignore[arg-type]  # two
        place_of(least),
        steps[least][1].primitive,
        tuple(map(place_of, steps[least][2])),
        tuple(place_of(spot) for spot in steps if spot != least),
    )


def _law(coupler: Coupler, which: int, steps: dict[Spot, Any]) -> dict[Any, float] | None:
    """Return the probability of each output of an input, and add its choices to `steps`."""
    every: list[tuple[Outcomes, Any]] = []
    law = law_of_branches(partial(coupler.run, which), steps=steps, every=every)
    if law is None or 1 - math.fsum(law.values()) > _REST:
        return None
    for number in range(max(_CHECKING, len(every))):
        fixed, output = every[number % len(every)]
        if output_of(coupler.run(which, fixed, seed=coupler.seed + 1 + number)) != output:
            return None
    return law


def law_of_branches(
    branch: Callable[[Outcomes], Run],
    *,
    pinned: Container[Entry] = (),
    lenient: bool = False,
    part: str | None = None,
    steps: dict[Spot, Any] | None = None,
    every: list[tuple[Outcomes, Any]] | None = None,
) -> dict[Any, float] | None:
    """Return the probability of each output, from the likeliest branches; None if there is other
    noise, or if there are too many choices.

    branch: makes a run with given outcomes.  pinned: choices whose outcome is fixed.  lenient:
    whether other noise is allowed, which is the same in all runs.  part: the part of the output in
    question (default: all).  steps, every: are filled with the choices, and with the branches and
    outputs.
    """
    law: dict[Any, float] = {}
    # Branches to run: minus probability, a tie-breaker, outcomes.
    begun: list[tuple[float, int, Outcomes]] = [(-1.0, 0, {})]
    many = choices = 0
    for number in range(_MOST):
        if not begun:
            break
        _, _, fixed = heapq.heappop(begun)
        one = branch(fixed)
        path = decisions(one.recorder, lenient=lenient, pinned=pinned)
        if path is None or not fixed.keys() <= {each.entry for each in path}:
            return None
        choices += len(path)
        is_slow = number == _EARLY and math.fsum(law.values()) < _LITTLE
        if is_slow or choices > _CHOICES or (not number and _number_of_branches(path) > _BEYOND):
            return None
        chance = 1.0
        so_far: Outcomes = {}
        for each in path:
            if steps is not None:
                _note(steps, each, one.recorder)
            for value, probability in each.outcomes:
                if each.entry not in fixed and value != each.value and probability * chance > _RARE:
                    many += 1
                    other = {**so_far, each.entry: value}
                    heapq.heappush(begun, (-chance * probability, many, other))
            so_far[each.entry] = each.value
            chance *= _probability(each)
        output = output_of(one, part)
        law[output] = law.get(output, 0.0) + chance
        if every is not None:
            every.append((so_far, output))
    return law


def epsilon(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the largest log-ratio of the probabilities of an outcome, in nats."""
    found = 0.0
    for one, other in zip(first, second):
        if one != other:
            found = max(found, abs(math.log(one / other)) if one and other else math.inf)
    return found


def _number_of_branches(branch: Sequence[Decision]) -> float:
    """Return a lower bound on the number of branches."""
    return math.prod(1 / max(chance for _, chance in each.outcomes) for each in branch)


def _probability(one: Decision) -> float:
    return next((chance for value, chance in one.outcomes if value == one.value), 0.0)


def _note(steps: dict[Spot, Any], one: Decision, recorder: Recorder) -> None:
    """Keep the choice with the most unequal odds of each spot."""
    chances = [chance for _, chance in one.outcomes if chance > 0]
    odds = max(chances) / min(chances)
    if one.spot not in steps or odds > steps[one.spot][0]:
        steps[one.spot] = odds, one, recorder.by_moment[one.entry[0]].callers


def output_of(one: Run, part: str | None = None) -> Any:
    """Return the output of a run, or a part of it, as a hashable value."""
    if one.error is not None:
        return (("raises", ""),)
    if part is not None:
        return ((part, _key(one.parts[part]) if part in one.parts else "nothing"),)
    return tuple((name, _key(value)) for name, value in one.parts.items())


def _key(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0  # -0.0 is 0.0
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return type(value).__name__, repr(value)


def merged(laws: Sequence[dict[Any, float]]) -> list[dict[Any, float]]:
    """Return laws in which outputs that differ by the rounding of floats are merged."""
    numbers = {
        value
        for law in laws
        for output in law
        for _, value in output
        if isinstance(value, float) and math.isfinite(value)
    }
    first: dict[float, float] = {}
    latest, kept = math.nan, math.nan
    for number in sorted(numbers):
        if not same(latest, number):
            kept = number
        latest = first[number] = kept
    found: list[dict[Any, float]] = []
    for law in laws:
        found.append({})
        for output, chance in law.items():
            key = tuple((name, first.get(value, value)) for name, value in output)
            found[-1][key] = found[-1].get(key, 0.0) + chance
    return found


def decisions(
    recorder: Recorder, *, lenient: bool = False, pinned: Container[Entry] = ()
) -> list[Decision] | None:
    """Return the choices of a run in order, without the pinned ones; None if there is other noise,
    unless `lenient`."""
    found: list[Decision] = []
    # The range of each uniform number that earlier comparisons have left.
    ranges: dict[int, tuple[float, float]] = {}
    compared: set[int] = set()
    drawn: set[int] = set()
    listed: set[int] = set()
    for moment, one in recorder.by_moment.items():
        if isinstance(one, Draw):
            pieces = range(one.first, one.first + one.size)
            if one.outcomes is None:
                if one.law not in ("uniform", "integers") and not lenient:
                    return None
                drawn.update(pieces)
                continue
            listed.update(pieces)
            for place, value in enumerate(np.ravel(one.values).tolist()):
                found.append(
                    Decision((moment, place), one.outcomes, value, moment[1], one.primitive)
                )
        elif isinstance(one, Choice):
            coins = list(_coins(moment, one, ranges, listed))
            if any(math.isnan(chance) for each in coins for _, chance in each.outcomes):
                return None
            found += coins
            compared.update(np.ravel(one.ids).tolist())
        elif not lenient and not listed.issuperset(np.ravel(one.ids).tolist()):
            return None
    if not lenient and not drawn <= compared:
        return None
    return [one for one in found if one.entry not in pinned] if pinned else found


def _coins(
    moment: Any, one: Choice, ranges: dict[int, tuple[float, float]], listed: set[int]
) -> Iterator[Decision]:
    """Yield the coins of a comparison, with their probabilities given the earlier comparisons of
    the same uniform numbers."""
    values = np.ravel(one.values).tolist()
    many = len(values)
    ids = np.ravel(np.broadcast_to(one.ids, np.shape(one.values))).tolist()
    cuts = np.ravel(np.broadcast_to(one.cut, np.shape(one.values))).tolist()
    for place in range(many):
        number = ids[place]
        if number in listed:
            continue  # decided by the draw
        low, high = ranges.get(number, (0.0, 1.0))
        cut = min(max(cuts[place], low), high)
        below = (cut - low) / (high - low) if high > low else 1.0
        chance = below if one.is_below else 1 - below
        is_below = values[place] == one.is_below
        ranges[number] = (low, cut) if is_below else (cut, high)
        outcomes = ((True, chance), (False, 1 - chance))
        yield Decision((moment, place), outcomes, bool(values[place]), moment[1], "coin")
