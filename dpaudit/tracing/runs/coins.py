"""Coins that explain why two outputs differ. A coin is a comparison of a uniform number with a
threshold. If the coins are flipped in the second run, both outputs are equal. The privacy cost of
the coins is the log-ratio of the probabilities of the output on the two inputs."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .exact_enumeration import decisions, epsilon, law_of_branches, merged, output_of
from .places import place_of, places_of
from .running import Missing, same, same_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .exact_enumeration import Decision
    from .places import Place, Spot
    from .replaying import Entry
    from .running import Coupler, Run

    # A coin or choice (its moment, its index in an array), the outcome to give it, and the name of
    # the primitive that made it.
    Flip = tuple[Entry, Any, str]
    Outcomes = dict[Entry, Any]


# Up to 64 flips are all tried one by one. Up to 12 flips are also tried in pairs.
_SINGLE, _BOTH = 64, 12
# If there are more than 64 flips, only the first 16 are tried, and flips found by bisection.
_FIRST = 16
# Seeds, relative to the seed of the run, that are tried for noise drawn only after a flipped coin.
_FRESH = (0, 101, 202)


class Absorbed(NamedTuple):
    """Coins that make both outputs of a pair of runs equal when they are flipped in the second run.

    places: The line of each coin.
    primitives: The name of the primitive that made each coin.
    cost: The largest log-ratio, in nats, of the probabilities of an output on the two inputs; None
        if the coins that decide the output are not known.
    callers: The lines from which the code of the first coin was called, innermost first.
    """

    places: list[Place]
    primitives: list[str]
    cost: float | None
    callers: tuple[Place, ...]


class Flips:
    """Searches coins whose flips in a second run make both outputs of a pair equal. The coins that
    explained an earlier pair are tried first."""

    def __init__(self) -> None:
        self._known: dict[Entry, None] = {}
        self._conditional = Conditional()

    def absorbed(self, coupler: Coupler, first: Run, second: Run) -> Absorbed | None:
        """Return the coins that make both outputs equal when they are flipped in the second run;
        None if no such coins are found. With at most 64 flips, return the cheapest single coin, or
        else the cheapest pair of coins. With more flips, return the first coin that works."""
        every = list(_alternatives(second))

        def run_with(which: int, overrides: dict[Entry, Any], fresh: int | None = None) -> Run:
            if fresh is None:
                return coupler.run(which, overrides, reference=first)
            return coupler.run(which, overrides, seed=coupler.seed + fresh)

        def flipped(flips: Sequence[Flip], fresh: int = 0) -> Run:
            overrides = {entry: value for entry, value, _ in flips}
            return coupler.run(1, overrides, seed=coupler.seed + fresh, reference=first)

        best: Absorbed | None = None
        least = float("inf")
        decisive: Entry | None = None
        for flips in self._tries(every, first, second, flipped):
            if best is not None and len(best.places) < len(flips):
                break
            for fresh in _FRESH:
                other = flipped(flips, fresh)
                if same_output(first, other):
                    cost = abs(_log_probability(first) - _log_probability(other))
                    if best is None or cost < least:
                        best, least, decisive = _made_up(second, flips), cost, flips[0][0]
                        self._known.update((entry, None) for entry, _, _ in flips)
                    break
                if not _has_more(other, first):
                    break
            if best is not None and len(every) > _SINGLE:
                break
        if best is not None and decisive is not None:
            together = self._conditional.cost(first, second, decisive, run_with)
            best = best._replace(cost=together)
            # A coin that alone decides a part of the output explains this part in other pairs, too.
            self._known = {**dict.fromkeys(self._conditional.singles), **self._known}
        return best

    def _tries(
        self, every: list[Flip], first: Run, second: Run, flipped: Callable[..., Run]
    ) -> Iterator[tuple[Flip, ...]]:
        if len(every) <= _SINGLE:
            yield from ((one,) for one in every)
            if len(every) <= _BOTH:
                pairs = combinations(every, 2)
                yield from (pair for pair in pairs if pair[0][0] != pair[1][0])
            return
        yield from ((one,) for one in every if one[0] in self._known)
        entry = _decisive(every, first, second, flipped)
        yield from ((one,) for one in every if one[0] == entry)
        yield from ((one,) for one in every[:_FIRST])


def _decisive(
    every: list[Flip], first: Run, second: Run, flipped: Callable[..., Run]
) -> Entry | None:
    """Return a coin or choice on which the first differing part of the output depends, found by
    bisection; None if no part of the output differs."""
    parts = second.parts
    name = next((one for one in parts if not same(parts[one], first.parts.get(one, Missing))), "")
    if not name:
        return None
    left = list({flip[0]: flip for flip in every}.values())
    # Sort by instruction, so that a half flips one coin of each person, not both: two flips in one
    # part of the output may cancel out.
    left.sort(key=lambda flip: flip[0][0][1][1])

    def changes(half: Sequence[Flip]) -> bool:
        for fresh in _FRESH:
            other = flipped(half, fresh)
            if not same(parts[name], other.parts.get(name, Missing)):
                return True
            if not _has_more(other, first):
                return False
        return False

    while len(left) > 1:
        half = left[: len(left) // 2]
        left = half if changes(half) else left[len(half) :]
    return left[0][0]


def _has_more(one: Run, first: Run) -> bool:
    """Return whether a run has a draw, use or coin at a moment that the first run lacks."""
    return not one.recorder.by_moment.keys() <= first.recorder.by_moment.keys()


def _made_up(second: Run, flips: Sequence[Flip]) -> Absorbed:
    moments = [entry[0] for entry, _, _ in flips]
    return Absorbed(
        [place_of(moment[1]) for moment in moments],
        [name for _, _, name in flips],
        None,
        places_of(second.recorder.by_moment[moments[0]].callers),
    )


def _alternatives(second: Run) -> Iterator[Flip]:
    """Yield (entry, outcome, primitive) for each outcome of a coin or choice that did not occur in
    a run. An entry is the moment of the coin or choice, and its index in an array."""
    for choice in second.recorder.choices:
        for place, value in enumerate(np.ravel(choice.values).tolist()):
            yield (choice.moment, place), not value, "coin"
    for draw in second.recorder.draws:
        for place, value in enumerate(np.ravel(draw.values).tolist() if draw.outcomes else ()):
            for outcome, probability in draw.outcomes or ():
                if outcome != value and probability > 0:
                    yield (draw.moment, place), outcome, draw.primitive


def _log_probability(one: Run) -> float:
    """Return the log-probability, in nats, of the outcomes of all coins and choices of a run."""
    total = 0.0
    for choice in one.recorder.choices:
        chances = np.where(
            np.ravel(choice.values), choice.probability, 1 - np.asarray(choice.probability)
        )
        with np.errstate(divide="ignore"):
            total += float(np.log(chances).sum())
    for draw in one.recorder.draws:
        law = dict(draw.outcomes or ())
        for value in np.ravel(draw.values).tolist() if law else ():
            chance = law.get(value, 0.0)
            total += float(np.log(chance)) if chance > 0 else -np.inf
    return total


# Limits of the search for the coins that decide a part of the output: the number of such coins, as
# all their outcomes are run, and the number of groups of coins that are flipped.
_FEW, _GROUPS = 6, 300
# Number of runs of each input with other noise, which show whether any other noise matters.
_CHECKING = 16


class Conditional:
    """Computes the privacy cost of the coins that decide one part of the output, such as
    `output[1]`. A coin is a comparison of a uniform number with a threshold. All other coins keep
    their outcomes. In a poll by randomized response, for example, the deciding coins are the coins
    of the one person whose answer differs between the inputs. An instance remembers which coins
    decide together, so that later pairs of runs need no new search."""

    def __init__(self) -> None:
        self._known: dict[Entry, list[Entry] | None] = {}
        self._single: dict[str, Entry | None] = {}

    @property
    def singles(self) -> list[Entry]:
        """The coins that alone decide how some part of the output differs between the inputs."""
        return [one for one in self._single.values() if one is not None]

    def cost(
        self, first: Run, second: Run, decisive: Entry, run_with: Callable[..., Run]
    ) -> float | None:
        """Return the cost of the coins that decide the first differing part of the output: the
        largest log-ratio, in nats, of the probabilities of a value of this part on the two inputs.
        Return None if the deciding coins are not found.

        decisive: A coin on which the part depends.
        run_with: A function that runs input 0 or 1 with given outcomes of coins. All other noise is
            the noise of the first run, or other noise if a seed is given.
        """
        parts = first.parts
        name = next((one for one in parts if parts[one] != second.parts.get(one)), None)
        every = {one.entry: one for one in decisions(first.recorder, lenient=True) or ()}
        if name is None or decisive not in every:
            return None
        if len({entry[0][1] for entry in every}) == 1:
            return self._of_one_line(every, name, run_with)

        def seen(fixed: Outcomes) -> Any:
            return output_of(run_with(1, fixed), name)

        is_new = decisive not in self._known
        if is_new:
            self._known[decisive] = _deciding(every, decisive, seen)
        free = self._known[decisive]
        if free is None:
            return None
        rest = {entry: one.value for entry, one in every.items() if entry not in free}
        laws = []
        for which in (0, 1):

            def branch(fixed: Outcomes, which: int = which) -> Run:
                return run_with(which, {**rest, **fixed})

            branches: list[tuple[Outcomes, Any]] = []
            law = law_of_branches(
                branch, pinned=rest.keys(), lenient=True, part=name, every=branches
            )
            is_whole = law is not None and math.fsum(law.values()) > 1 - 1e-9
            if (
                law is None
                or not is_whole
                or (is_new and _depends(branches, which, name, run_with))
            ):
                self._known[decisive] = None
                return None
            laws.append(law)
        self._known.update((entry, free) for entry in free)
        laws = merged(laws)
        outputs = {**laws[0], **laws[1]}
        first_law, second_law = ([law.get(one, 0.0) for one in outputs] for law in laws)
        return epsilon(first_law, second_law)

    def _of_one_line(
        self, every: dict[Entry, Decision], name: str, run_with: Callable[..., Run]
    ) -> float | None:
        """Return the cost of the single coin that decides how a part of the output differs between
        the inputs, if all coins are drawn on one line; None if there is no such coin. Other coins
        may change the part, but by the same amount for both inputs."""

        def seen(fixed: Outcomes) -> Any:
            return _gap([run_with(which, fixed) for which in (0, 1)], name)

        if name not in self._single:
            self._single[name] = _single(every, seen)
        entry = self._single[name]
        if entry is None or entry not in every:
            return None
        chances = [chance for _, chance in every[entry].outcomes]
        return epsilon(chances, chances[::-1]) if len(chances) == 2 else None


def _single(every: dict[Entry, Decision], seen: Callable[[Outcomes], Any]) -> Entry | None:
    """Return the only coin that changes the result of `seen`, found by bisection; None if several
    coins change it."""
    pinned = {entry: one.value for entry, one in every.items()}
    base = seen(pinned)

    def changes(group: Iterable[Entry]) -> bool:
        flipped = {entry: _flipped(pinned[entry], every[entry]) for entry in group}
        return bool(seen({**pinned, **flipped}) != base)

    left = list(every)
    while len(left) > 1:
        half = left[: len(left) // 2]
        left = half if changes(half) else left[len(half) :]
    is_single = changes(left) and not changes(one for one in every if one != left[0])
    return left[0] if is_single else None


def _gap(both: list[Run], name: str) -> Any:
    """Return the difference of a part of the output between the inputs, as text; both values if
    they are not numbers."""
    one, other = (each.parts.get(name) for each in both)
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return f"{float(other) - float(one):.9g}"
    return [output_of(each, name) for each in both]


def _depends(
    branches: list[tuple[Outcomes, Any]], which: int, name: str, run_with: Callable[..., Run]
) -> bool:
    """Return whether a part of the output changes with other noise, while the coins of a branch
    keep their outcomes.

    branches: (outcomes of the coins, output) for each combination of outcomes.
    """
    for number in range(_CHECKING):
        fixed, output = branches[number % len(branches)]
        if output_of(run_with(which, fixed, number + 1), name) != output:
            return True
    return False


def _deciding(
    every: dict[Entry, Decision], decisive: Entry, seen: Callable[[Outcomes], Any]
) -> list[Entry] | None:
    """Return the coins that change the result of `seen`, found by bisection; None if there are more
    than 6 such coins. Coins are flipped both before and after a flip of the coin `decisive`."""
    pinned = {entry: one.value for entry, one in every.items()}
    turned = {**pinned, decisive: _flipped(pinned[decisive], every[decisive])}
    spots: dict[Spot, list[Entry]] = {}
    for entry in every:
        if entry != decisive:
            spots.setdefault(entry[0][1], []).append(entry)
    groups = 0
    found = {decisive}
    for state in (pinned, turned):
        base = seen(state)
        # Coins of one spot are flipped together: flips of two coins of one part may cancel out.
        left = list(spots.values())
        while left:
            group = left.pop()
            groups += 1
            if groups > _GROUPS or len(found) > _FEW:
                return None
            flipped = {entry: _flipped(state[entry], every[entry]) for entry in group}
            if seen({**state, **flipped}) == base:
                continue
            if len(group) == 1:
                found.update(group)
            else:
                middle = len(group) // 2
                left += [group[:middle], group[middle:]]
    return list(found)


def _flipped(value: Any, one: Decision) -> Any:
    """Return the most likely outcome of a coin or choice other than `value`; `value` if there is no
    other outcome."""
    rest = [outcome for outcome in one.outcomes if outcome[0] != value and outcome[1] > 0]
    return max(rest, key=lambda outcome: outcome[1], default=(value, 0.0))[0]
