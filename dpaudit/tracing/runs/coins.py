"""Compute the cost of outputs that depend on choices and on no other noise.

If a mechanism has few branches and no other noise, each branch is run once. This gives the exact
probability of each output on both inputs. Otherwise, one choice may explain the difference of two
outputs: they are equal if this choice has its other outcome in the second run.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .noisy_numbers import plain
from .places import place_of, places_of
from .replaying import Draw, Toss
from .running import MissingEntry, same, same_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .noise_log import Recorder
    from .places import Place, Spot
    from .replaying import Entry
    from .running import Coupler, Run

    Outcomes = dict[Entry, Any]
    # A change of a random choice: (choice, another outcome for it, name of the function that makes
    # it). The choice is given as (moment, index in an array of choices); a moment is (kind,
    # instruction, number of earlier executions of this instruction). For a coin, the name is
    # `coin`.
    Flip = tuple[Entry, Any, str]


class Decision(NamedTuple):
    """A choice of a run and its outcome.

    entry: The moment of the choice, and its index in an array of choices.
    outcomes: (value, probability) for each possible outcome.
    value: The outcome in this run.
    primitive: The name of the function that makes the choice, or `coin`.
    """

    entry: Entry
    outcomes: Sequence[tuple[Any, float]]
    value: Any
    primitive: str

    @property
    def spot(self) -> Spot:
        """The instruction that makes the choice."""
        return self.entry[0][1]

    @property
    def odds(self) -> float:
        """The largest probability of an outcome, divided by the smallest above 0."""
        chances = [chance for _, chance in self.outcomes if chance > 0]
        return max(chances) / min(chances)


def decisions(recorder: Recorder) -> list[Decision] | None:
    """Return the choices of a run, in order. Return None if the run also draws other noise, except
    for integers that seed a random generator."""
    path: list[Decision] = []
    # If a uniform number is compared several times, each result narrows its possible values. Maps
    # the id of each uniform number to (lower end, upper end) of these values, as shares of its
    # range.
    ranges: dict[int, tuple[float, float]] = {}
    compared: set[int] = set()
    uniforms: set[int] = set()
    listed: set[int] = set()
    # Integers that are seeds or keys matter only by the draws of their generators.
    seeds = _seeds(recorder)
    for moment, event in recorder.by_moment.items():
        if isinstance(event, Draw):
            pieces = range(event.first, event.first + event.size)
            if event.outcomes is not None:
                listed.update(pieces)
                for index, value in enumerate(np.ravel(event.values).tolist()):
                    path.append(Decision((moment, index), event.outcomes, value, event.primitive))
            elif event.law not in ("uniform", "integers"):
                return None
            elif event.law == "uniform" or not seeds.issuperset(np.ravel(event.values).tolist()):
                uniforms.update(pieces)
        elif isinstance(event, Toss):
            coins = list(_coins(event, ranges, listed))
            if any(math.isnan(chance) for coin in coins for _, chance in coin.outcomes):
                return None
            path += coins
            compared.update(np.ravel(event.ids).tolist())
        elif not listed.issuperset(np.ravel(event.ids).tolist()):
            return None
    return path if uniforms <= compared else None


def _seeds(recorder: Recorder) -> set[int]:
    """Return the integers that seed random generators or keys in a run."""
    every = (getattr(seed, "entropy", plain(seed)) for _, _, seed in recorder.seeds)
    numbers = (np.ravel(np.asarray(seed, dtype=object)).tolist() for seed in every)
    return {plain(part) for seed in numbers for part in seed if isinstance(part, int)}


def _coins(
    choice: Toss, ranges: dict[int, tuple[float, float]], listed: set[int]
) -> Iterator[Decision]:
    """Yield a `Decision` for each coin of a comparison; narrow `ranges`, those of its numbers."""
    # If a uniform number was compared before, the probability of the outcome is conditional on the
    # earlier results. A comparison of a listed number is no coin, since its draw already counts as
    # a random choice.
    values, shape = np.ravel(choice.values).tolist(), np.shape(choice.values)
    ids, cuts = (
        np.ravel(np.broadcast_to(column, shape)).tolist() for column in (choice.ids, choice.cut)
    )
    for index, (value, number, cut) in enumerate(zip(values, ids, cuts)):
        if number in listed:
            continue  # the comparison is no coin: the outcome of a listed draw decides it
        low, high = ranges.get(number, (0.0, 1.0))
        cut = min(max(cut, low), high)
        below = (cut - low) / (high - low) if high > low else 1.0
        chance = below if choice.is_below else 1 - below
        ranges[number] = (low, cut) if value == choice.is_below else (cut, high)
        outcomes = ((True, chance), (False, 1 - chance))
        yield Decision((choice.moment, index), outcomes, bool(value), "coin")


# Largest number of branches that are run on each input. (A branch is one combination of outcomes of
# all random choices of a run.) The most likely branches are run first.
_MAX_BRANCHES = 128
# Largest total number of random choices in all runs on one input. (Each run tries one combination
# of outcomes of its random choices.) If there are more choices, the exact probabilities of outputs
# are not computed, to save time.
_MAX_CHOICES = 3_000
# If the 32 (`_FIRST_BRANCHES`) most likely combinations of outcomes of the random choices have a
# total probability below 0.2 (`_MIN_FIRST_PROBABILITY`), there are too many combinations to run
# each of them. No further combinations are then run, and no exact probabilities are computed.
_FIRST_BRANCHES, _MIN_FIRST_PROBABILITY = 32, 0.2
# If the random choices of a run have more combinations of outcomes than this, the combinations are
# not run.
_MAX_COMBINATIONS = 1e6
# To see whether other noise changes the output, each combination of outcomes of the random choices
# is run again with another seed. With fewer combinations than this number, they are run several
# times, until the number of these runs is reached.
_CHECKING_RUNS = 32
# The exact probabilities of outputs are used only if the combinations of outcomes of the random
# choices that were run have a total probability above 1 minus this number. Then the combinations
# that were not run are negligible: the difference from 1 may be a rounding error.
_MAX_REST = 1e-9
# Combinations of outcomes of the random choices with a smaller probability than this are not run.
_MIN_PROBABILITY = 1e-15


class Laws(NamedTuple):
    """The exact probability of each output on both inputs, for a mechanism whose only noise is
    choices.

    first, second: The probabilities on each input, of the same outputs in the same order.
    place: The line of the choice with the most unequal odds.
    primitive: The name of the function that makes this choice, or `coin`.
    others: The lines of all other choices.
    """

    first: list[float]
    second: list[float]
    place: Place
    primitive: str
    callers: tuple[Place, ...]
    others: tuple[Place, ...]

    @property
    def epsilon(self) -> float:
        """The largest absolute log-ratio of the two probabilities of an output, in nats. It is
        infinite if some output is possible on only one input."""
        return epsilon(self.first, self.second)


def laws_of(coupler: Coupler) -> Laws | None:
    """Run every branch, and return the exact probability of each output on both inputs. Return None
    if the output depends on other noise, or if there are no choices or too many branches."""
    if not any(coupler.run(which).recorder.draws for which in (0, 1)):
        return None
    steps: dict[Spot, tuple[Decision, tuple[Spot, ...]]] = {}
    laws = []
    for which in (0, 1):
        law = _law(coupler, which, steps)
        if law is None:
            return None
        laws.append(law)
    if not steps:
        return None
    first_law, second_law = _merged(laws)
    first, second = (
        [law.get(output, 0.0) for output in {**first_law, **second_law}]
        for law in (first_law, second_law)
    )
    least = max(steps, key=lambda spot: steps[spot][0].odds)
    decision, callers = steps[least]
    other_lines = tuple(place_of(spot) for spot in steps if spot != least)
    callers_of = tuple(map(place_of, callers))
    return Laws(first, second, place_of(least), decision.primitive, callers_of, other_lines)


def _law(coupler: Coupler, which: int, steps: dict[Spot, Any]) -> dict[Any, float] | None:
    """Return the probability of each output on an input; None if it cannot be computed exactly."""
    # `steps` gets, for each instruction, its choice with the most unequal odds, and the callers.
    law: dict[Any, float] = {}
    every: list[tuple[Outcomes, Any]] = []
    # Heap of the branches to run: (minus the probability, a number that breaks ties, fixed
    # outcomes). A branch is one combination of outcomes of all random choices of a run.
    begun: list[tuple[float, int, Outcomes]] = [(-1.0, 0, {})]
    order = choices = 0
    while begun and len(every) < _MAX_BRANCHES:
        _, _, fixed = heapq.heappop(begun)
        run = coupler.run(which, fixed)
        path = decisions(run.recorder)
        if path is None or not fixed.keys() <= {decision.entry for decision in path}:
            return None
        choices += len(path)
        is_slow = len(every) == _FIRST_BRANCHES and math.fsum(law.values()) < _MIN_FIRST_PROBABILITY
        if (
            is_slow
            or choices > _MAX_CHOICES
            or (not every and _number_of_branches(path) > _MAX_COMBINATIONS)
        ):
            return None
        chance = 1.0
        so_far: Outcomes = {}
        for decision in path:
            if decision.spot not in steps or decision.odds > steps[decision.spot][0].odds:
                steps[decision.spot] = decision, run.recorder.by_moment[decision.entry[0]].callers
            for value, probability in decision.outcomes:
                if (
                    decision.entry not in fixed
                    and value != decision.value
                    and probability * chance > _MIN_PROBABILITY
                ):
                    order += 1
                    overrides = {**so_far, decision.entry: value}
                    heapq.heappush(begun, (-chance * probability, order, overrides))
            so_far[decision.entry] = decision.value
            chance *= dict(decision.outcomes).get(decision.value, 0.0)
        output = output_of(run)
        law[output] = law.get(output, 0.0) + chance
        every.append((so_far, output))
    if 1 - math.fsum(law.values()) >= _MAX_REST:
        return None
    for number in range(max(_CHECKING_RUNS, len(every))):
        fixed, output = every[number % len(every)]
        again = coupler.run(which, fixed, seed=coupler.seed + 1 + number)
        if output_of(again) != output or decisions(again.recorder) is None:
            return None
    return law


def epsilon(first: Any, second: Any) -> float:
    """Return the largest absolute log-ratio, in nats, of two probabilities of the same outcome."""
    with np.errstate(all="ignore"):
        ratios = np.abs(np.log(np.asarray(first)) - np.log(np.asarray(second)))
    return float(np.max(np.nan_to_num(ratios, nan=0.0, posinf=math.inf), initial=0.0))


def _number_of_branches(branch: Sequence[Decision]) -> float:
    """Return a lower bound on the number of branches."""
    return math.prod(1 / max(chance for _, chance in decision.outcomes) for decision in branch)


def output_of(run: Run) -> Any:
    """Return the output of a run as a hashable value. All exceptions count as the same output."""
    if run.error is not None:
        return (("raises", ""),)
    return tuple((name, _key(value)) for name, value in run.parts.items())


def _key(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0  # -0.0 and 0.0 count as one output
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return type(value).__name__, repr(value)


def _merged(laws: Sequence[dict[Any, float]]) -> list[dict[Any, float]]:
    """Add up the probabilities of outputs that differ only by the rounding of floats."""
    numbers = {
        value
        for law in laws
        for output in law
        for _, value in output
        if isinstance(value, float) and math.isfinite(value)
    }
    first: dict[float, float] = {}
    latest, representative = math.nan, math.nan
    for number in sorted(numbers):
        if not same(latest, number):
            representative = number
        latest = first[number] = representative
    merged: list[dict[Any, float]] = []
    for law in laws:
        merged.append({})
        for output, chance in law.items():
            key = tuple((name, first.get(value, value)) for name, value in output)
            merged[-1][key] = merged[-1].get(key, 0.0) + chance
    return merged


# To explain why two outputs differ, one random choice gets another outcome in a further run. If at
# most 64 (`_MAX_SINGLE_CHANGES`) such changes are possible, each is tried. Otherwise only the first
# 16 (`_FIRST_CHANGES`) are tried, and the change that bisection finds.
_MAX_SINGLE_CHANGES, _FIRST_CHANGES = 64, 16


class Absorbed(NamedTuple):
    """The choice that explains why the outputs of a pair of runs differ. If this choice has its
    other outcome in the second run, both outputs are equal.

    cost: The largest log-ratio, in nats, of the probabilities of an output on the two inputs; None
        if the output may depend on several choices.
    """

    place: Place
    primitive: str
    cost: float | None
    callers: tuple[Place, ...]


class Flips:
    """Searches for the choice that explains why the outputs of two runs differ. It first tries the
    choices that explained an earlier pair."""

    def __init__(self) -> None:
        self._known: dict[Entry, None] = {}
        # Maps the name of an entry of the output, such as `output[1]`, to the random choice that
        # alone decides how the entry differs between the runs. None stands for an entry without
        # such a choice.
        self._single: dict[str, Entry | None] = {}

    def absorbed(self, coupler: Coupler, first: Run, second: Run) -> Absorbed | None:
        """Return the choice that explains why the outputs differ; None if no tried choice does."""

        def flipped(flips: Iterable[Flip]) -> Run:
            return coupler.run(1, {entry: value for entry, value, _ in flips}, reference=first)

        for flip in self._tries(list(_alternatives(second)), first, second, flipped):
            if same_output(first, flipped([flip])):
                (moment, _), _, primitive = flip
                cost = self._cost(coupler, first, second)
                singles = [single for single in self._single.values() if single is not None]
                # Later pairs of runs may differ for the same reason. So `_tries` yields two kinds
                # of choices first: this choice, and each choice that alone decides how some entry
                # of the output differs.
                self._known = {**dict.fromkeys(singles), **self._known, flip[0]: None}
                callers = places_of(second.recorder.by_moment[moment].callers)
                return Absorbed(place_of(moment[1]), primitive, cost, callers)
        return None

    def _tries(
        self,
        every: list[Flip],
        first: Run,
        second: Run,
        flipped: Callable[[Iterable[Flip]], Run],
    ) -> Iterator[Flip]:
        if len(every) <= _MAX_SINGLE_CHANGES:
            yield from every
            return
        yield from (flip for flip in every if flip[0] in self._known)
        name = next(iter(_differing(second, first)), None)
        if name is not None:
            decisive = _decisive(
                list({flip[0]: flip for flip in every}.values()),
                lambda half: name in _differing(second, flipped(half)),
            )
            yield from (flip for flip in every if flip[0] == decisive[0])
        yield from every[:_FIRST_CHANGES]

    def _cost(self, coupler: Coupler, first: Run, second: Run) -> float | None:
        """Return the cost in nats if a single choice decides an entry of the output, else None."""
        every = {decision.entry: decision for decision in decisions(first.recorder) or ()}
        name = next(iter(_differing(first, second)), None)
        if name is None or len({decision.spot for decision in every.values()}) != 1:
            return None
        if name not in self._single:
            self._single[name] = _alone(coupler, list(every.values()), name, first)
        entry = self._single[name]
        chances = [chance for _, chance in every[entry].outcomes] if entry in every else []
        return epsilon(chances, chances[::-1]) if len(chances) == 2 else None


def _alone(coupler: Coupler, every: list[Decision], name: str, first: Run) -> Entry | None:
    """Return the only choice that decides how an entry of the output differs; None if none does."""

    def gap(flipped: Iterable[Decision]) -> Any:
        outcomes = {decision.entry: decision.value for decision in every}
        outcomes.update((decision.entry, _flipped(decision)) for decision in flipped)
        runs = [coupler.run(which, outcomes, reference=first) for which in (0, 1)]
        first_value, second_value = (run.parts.get(name, MissingEntry) for run in runs)
        if isinstance(first_value, (int, float)) and isinstance(second_value, (int, float)):
            return f"{float(second_value) - float(first_value):.9g}"
        return repr(first_value), repr(second_value)

    base = gap(())
    choice = _decisive(every, lambda half: bool(gap(half) != base))
    remaining = [decision for decision in every if decision is not choice]
    return choice.entry if gap([choice]) != base and gap(remaining) == base else None


def _decisive(every: list[Any], changes: Callable[[list[Any]], bool]) -> Any:
    """Return one random choice on which a result depends, found by bisection."""
    # Sort by instruction, so that each half of the list holds the choices of other instructions. In
    # randomized response with two coins for each person, the first half then holds the first coin
    # of each person. If a half held both coins of a person, turning both coins over might not
    # change the result, and the bisection would go on with the wrong half.
    left = sorted(every, key=lambda item: item[0][0][1][1])
    while len(left) > 1:
        half = left[: len(left) // 2]
        left = half if changes(half) else left[len(half) :]
    return left[0]


def _differing(first: Run, second: Run) -> Iterator[str]:
    """Yield the names of the entries of the output that differ between two runs."""
    for name, value in first.parts.items():
        if not same(value, second.parts.get(name, MissingEntry)):
            yield name


def _flipped(decision: Decision) -> Any:
    """Return the most likely of the other outcomes that a choice could have had, if any."""
    outcomes = [
        outcome for outcome in decision.outcomes if outcome[0] != decision.value and outcome[1] > 0
    ]
    return max(outcomes, key=lambda outcome: outcome[1], default=(decision.value, 0.0))[0]


def _alternatives(second: Run) -> Iterator[Flip]:
    """Yield (entry, outcome, function) for each outcome of a choice that did not occur in a run."""
    for choice in second.recorder.choices:
        chances = np.ravel(choice.probability).tolist()
        for index, value in enumerate(np.ravel(choice.values).tolist()):
            if (1 - chances[index] if value else chances[index]) > 0:
                yield (choice.moment, index), not value, "coin"
    for draw in second.recorder.draws:
        for index, value in enumerate(np.ravel(draw.values).tolist() if draw.outcomes else ()):
            for outcome, probability in draw.outcomes or ():
                if outcome != value and probability > 0:
                    yield (draw.moment, index), outcome, draw.primitive
