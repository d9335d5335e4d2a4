"""The exact law (probability of each output) of a mechanism whose only noise is a few coins, or
choices of few outcomes. A coin is a comparison of a uniform number with a threshold. Each *branch*,
that is each combination of outcomes of the coins and choices, is run once."""

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


# Limits for each input: the number of branches that are run, of which the most likely are run
# first, and the total number of coins and choices on them.
_MOST, _CHOICES = 128, 3_000
# Give up if 32 branches have a total probability below 0.2, or if there are over 10⁶ branches.
_EARLY, _LITTLE, _BEYOND = 32, 0.2, 1e6
# Number of runs with other seeds, which show whether any other noise changes the output.
_CHECKING = 32
# Largest total probability of the branches that are not run.
_REST = 0.05
# The law is exact if the branches that are not run have less than this total probability, which is
# then a rounding error.
_EXACT = 1e-9
# Branches of at most this probability are not run.
_RARE = 1e-15


class Decision(NamedTuple):
    """A coin, or a choice of few outcomes, in one run.

    entry: The moment of the coin or choice, and its index in an array of coins or choices.
    outcomes: (value, probability) for each possible outcome.
    value: The outcome in this run.
    spot: The instruction that makes the coin or choice.
    primitive: The name of the function that makes the choice, or `coin`.
    """

    entry: Entry
    outcomes: Sequence[tuple[Any, float]]
    value: Any
    spot: Spot
    primitive: str


class Laws(NamedTuple):
    """The laws of the output (the probability of each output) on both inputs. A choice is a coin,
    or a draw with few outcomes; a branch is a combination of outcomes of all choices.

    first: The probability of each output on the first input.
    second: The probability of each output on the second input, in the same order.
    rests: The total probability of the branches that were not run, on the first input and on the
        second input.
    place: The line of the choice with the most unequal odds.
    primitive: The name of the function that makes the choice with the most unequal odds.
    callers: The lines from which the choice with the most unequal odds was called, innermost first.
    others: The lines of all other choices.
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
        """Whether the laws are exact, and each output is possible on both inputs."""
        return self.is_exact and epsilon(self.first, self.second) < math.inf


def laws_of(coupler: Coupler) -> Laws | None:
    """Return the laws of the output on both inputs, from runs of the most likely branches. Return
    None if there is other noise, or if there are too many branches."""
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
    """Return the probability of each output of an input, and add the choices of its runs to
    `steps`. Return None if other noise changes the output, or if over 5 % of the probability is
    left."""
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
    """Return the probability of each output, from runs of the most likely branches. Return None if
    there is other noise, or if there are too many choices.

    branch: A function that runs the mechanism with given outcomes of coins and choices.
    pinned: The coins and choices whose outcome is fixed.
    lenient: Whether other noise is allowed. It must be the same in all runs.
    part: The name of the part of the output that is read; None for the whole output.
    steps: A mapping that gets, for each spot, its choice with the most unequal odds.
    every: A list that gets (outcomes, output) for each branch.
    """
    law: dict[Any, float] = {}
    # Heap of the branches to run: (minus the probability, a number that breaks ties, outcomes).
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
    """Return the largest absolute log-ratio, in nats, of the two probabilities of an outcome."""
    found = 0.0
    for one, other in zip(first, second):
        if one != other:
            found = max(found, abs(math.log(one / other)) if one and other else math.inf)
    return found


def _number_of_branches(branch: Sequence[Decision]) -> float:
    """Return a lower bound on the number of branches, from the choices of one branch: the inverse
    probability of the most likely outcomes."""
    return math.prod(1 / max(chance for _, chance in each.outcomes) for each in branch)


def _probability(one: Decision) -> float:
    return next((chance for value, chance in one.outcomes if value == one.value), 0.0)


def _note(steps: dict[Spot, Any], one: Decision, recorder: Recorder) -> None:
    """Keep a choice in `steps` if its odds are more unequal than those of all earlier choices at
    its spot."""
    chances = [chance for _, chance in one.outcomes if chance > 0]
    odds = max(chances) / min(chances)
    if one.spot not in steps or odds > steps[one.spot][0]:
        steps[one.spot] = odds, one, recorder.by_moment[one.entry[0]].callers


def output_of(one: Run, part: str | None = None) -> Any:
    """Return the output of a run, or a part of the output, as a hashable value."""
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
    """Return the laws with outputs merged that differ only by the rounding of floats: their
    probabilities are added."""
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
    """Return the coins and choices of a run in order, except for the pinned coins and choices.
    Return None if there is other noise, unless `lenient`."""
    found: list[Decision] = []
    # The range in which each uniform number lies, given its earlier comparisons.
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
    the same uniform numbers.

    ranges: The range in which each uniform number lies, which the coins narrow.
    listed: The numbers of a discrete law, whose outcomes count as choices already.
    """
    values = np.ravel(one.values).tolist()
    many = len(values)
    ids = np.ravel(np.broadcast_to(one.ids, np.shape(one.values))).tolist()
    cuts = np.ravel(np.broadcast_to(one.cut, np.shape(one.values))).tolist()
    for place in range(many):
        number = ids[place]
        if number in listed:
            continue  # the outcome of the draw decides the comparison
        low, high = ranges.get(number, (0.0, 1.0))
        cut = min(max(cuts[place], low), high)
        below = (cut - low) / (high - low) if high > low else 1.0
        chance = below if one.is_below else 1 - below
        is_below = values[place] == one.is_below
        ranges[number] = (low, cut) if is_below else (cut, high)
        outcomes = ((True, chance), (False, 1 - chance))
        yield Decision((moment, place), outcomes, bool(values[place]), moment[1], "coin")
