"""What the coins that decide one part of the output cost together, all others as they fell: of a
poll, those of the person whose answer differs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .paths import decisions, epsilon, law_of_ways, merged, output_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .events import Entry
    from .paths import Decision
    from .places import Spot
    from .running import Run

    Outcomes = dict[Entry, Any]

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
