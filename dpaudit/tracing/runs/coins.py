"""Coins, and other choices of few outcomes, that make up for what differs in the output: fallen
otherwise, they make the outputs of two runs the same."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .exact_enumeration import decisions, epsilon, law_of_ways, merged, output_of
from .flatten import Missing, same
from .places import place_of, places_of
from .running import same_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .exact_enumeration import Decision
    from .places import Place, Spot
    from .recording import Entry
    from .running import Coupler, Run

    # The entry of a choice, another outcome of it, and what it was called.
    Flip = tuple[Entry, Any, str]
    Outcomes = dict[Entry, Any]


# Where there are few, all outcomes are tried one by one; of even fewer, two at a time.
_SINGLE, _BOTH = 64, 12
# Of more, so many that lie first, besides those that the output that differs depends on.
_FIRST = 16
# So often each is tried, with other noise for what is drawn after it.
_FRESH = (0, 101, 202)


class Absorbed(NamedTuple):
    """Coins that fell otherwise for d2 make the outputs the same.

    places: of the coins.  primitives: by name.  cost: in nats, the largest log-ratio of what the
    coins that decide together may lead to; None where these are not known for sure.  callers: of
    the first one.
    """

    places: list[Place]
    primitives: list[str]
    cost: float | None
    callers: tuple[Place, ...]


class Flips:
    """Tries coins the other way; what has made up for a difference once is tried first again."""

    def __init__(self) -> None:
        self._known: dict[Entry, None] = {}
        self._conditional = Conditional()

    def absorbed(self, coupler: Coupler, first: Run, second: Run) -> Absorbed | None:
        """Return the coins that make the outputs equal when they are flipped in the second run;
        None if there are no such coins. Of few coins the cheapest single one, else the cheapest
        pair; of many coins the first one that works."""
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
            # What decides by itself makes up for every difference.
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
    """Return a choice that the part of the output depends on which differs first, found by halves:
    each part may have a choice of its own."""
    parts = second.parts
    name = next((one for one in parts if not same(parts[one], first.parts.get(one, Missing))), "")
    if not name:
        return None
    left = list({flip[0]: flip for flip in every}.values())
    # All first coins before all second ones: two of one part may make up for each other.
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
    """Return whether something was drawn that another seed would draw otherwise."""
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
    """Yield what coins and other choices of few outcomes may come to instead: the moment with the
    entry, the outcome, and what it was called."""
    for choice in second.recorder.choices:
        for place, value in enumerate(np.ravel(choice.values).tolist()):
            yield (choice.moment, place), not value, "coin"
    for draw in second.recorder.draws:
        for place, value in enumerate(np.ravel(draw.values).tolist() if draw.outcomes else ()):
            for outcome, probability in draw.outcomes or ():
                if outcome != value and probability > 0:
                    yield (draw.moment, place), outcome, draw.primitive


def _log_probability(one: Run) -> float:
    """Return the log-probability of the coins and choices of a run."""
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


# More coins that decide together are not told apart, and no more groups of coins are flipped.
_FEW, _GROUPS = 6, 300
# So many runs of either input, with other coins, show whether any other coin matters.
_CHECKING = 16


class Conditional:
    """The cost of coins; which ones hang together is remembered for further pairs of runs."""

    def __init__(self) -> None:
        self._known: dict[Entry, list[Entry] | None] = {}
        self._single: dict[str, Entry | None] = {}

    @property
    def singles(self) -> list[Entry]:
        """The coins that were found to decide alone."""
        return [one for one in self._single.values() if one is not None]

    def cost(
        self, first: Run, second: Run, decisive: Entry, run_with: Callable[..., Run]
    ) -> float | None:
        """Return the largest log-ratio of what two inputs have in the part of the output that
        differs, over all ways that the coins can fall which decide it; None where these are not
        known for sure.

        run_with: a run of the first input,
        or of the second one, with some outcomes and the noise of the first run, or with noise of
        its own if it is given a seed.
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

            def way(fixed: Outcomes, which: int = which) -> Run:
                return run_with(which, {**rest, **fixed})

            ways: list[tuple[Outcomes, Any]] = []
            law = law_of_ways(way, pinned=rest.keys(), lenient=True, part=name, every=ways)
            is_whole = law is not None and math.fsum(law.values()) > 1 - 1e-9
            if law is None or not is_whole or (is_new and _depends(ways, which, name, run_with)):
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
        """Return the cost of a coin that alone decides how a part differs, among those of one line:
        others may move the part, such as a sum, for both inputs alike. None if there is no such
        coin."""

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
    """Return the one coin that something depends on, found by halves; None if it is not one."""
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
    """Return how a part of the output differs between the inputs."""
    one, other = (each.parts.get(name) for each in both)
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return f"{float(other) - float(one):.9g}"
    return [output_of(each, name) for each in both]


def _depends(
    ways: list[tuple[Outcomes, Any]], which: int, name: str, run_with: Callable[..., Run]
) -> bool:
    """Return whether a part of the output depends on more than the outcomes of the ways."""
    for number in range(_CHECKING):
        fixed, output = ways[number % len(ways)]
        if output_of(run_with(which, fixed, number + 1), name) != output:
            return True
    return False


def _deciding(
    every: dict[Entry, Decision], decisive: Entry, seen: Callable[[Outcomes], Any]
) -> list[Entry] | None:
    """Return the coins that something depends on which is seen of runs, found by halves; None if
    they are too many."""
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
        # Those of one line together: two coins of one part may make up for each other.
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
    """Return the likeliest other outcome."""
    rest = [outcome for outcome in one.outcomes if outcome[0] != value and outcome[1] > 0]
    return max(rest, key=lambda outcome: outcome[1], default=(value, 0.0))[0]
