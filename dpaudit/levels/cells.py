"""Cells of one column: intervals of numbers, then labels.

`make_cells` makes them from selection draws. Scorers in `attacks/` give each cell a value (a
log-ratio or a level), and describe events in words with `Cells.words`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpaudit.levels import tuning
from dpaudit.levels.digitiser import Digitiser, FloatArray
from dpaudit.levels.level_map import equal_mass_runs
from dpaudit.levels.limits import MAX_CELLS, MAX_LISTED_ITEMS, MIN_REPEATS
from dpaudit.outcomes import ABSENT, KIND, RAISED, Column, number_word
from dpaudit.outcomes.columns import number_writer
from dpaudit.outcomes.representation import Phrases, phrases_of
from dpaudit.stats.order import in_order

# Largest number of intervals that the numbers of a column are cut into. Intervals of single
# frequent values are added to this number.
MAX_INTERVALS = 320
# Words for an empty event, which contains no outcome.
NO_OUTPUT = "no output"
# Words for the event that an entry is any number.
A_NUMBER = "a number"
# Words for the event that an entry was seen too rarely while learning to have a cell (interval or
# label) of its own.
RARELY_SEEN = "a value rarely or never seen while learning"


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cells of one column: intervals [edge, next edge) of the numbers in rising order, then a cell
    for each known label, then a cell for all other labels.

    edges: (intervals - 1,), rising.
    values: (intervals,), what the user of the cells assigns to each interval: its index, level or
        log-ratio.
    label_values: (labels + 1,), the same for each label; the last one is for all other labels.
    """

    name: str
    edges: FloatArray
    labels: tuple[str, ...]
    values: NDArray[Any]
    label_values: NDArray[Any]
    digitise: Digitiser = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digitise", Digitiser(self.edges, self.values))

    @property
    def intervals(self) -> int:
        return len(self.edges) + 1

    @property
    def says_something(self) -> bool:
        """Whether at least one cell has a value other than 0."""
        return bool(self.values.any() or self.label_values.any())

    def __call__(self, column: Column) -> NDArray[Any]:
        """Return the value of the cell of every entry of the column: (size,)."""
        if column.codes is None:
            return self.digitise(column.numbers)
        result = self.digitise(np.where(column.codes > 0, 0.0, column.numbers))
        unseen = self.label_values[-1]
        known = dict(zip(self.labels, self.label_values[:-1], strict=True))
        by_code = np.array(
            [0, *(known.get(label, unseen) for label in column.labels)], dtype=result.dtype
        )
        return np.where(column.codes > 0, by_code[column.codes], result)

    def with_values(self, values: NDArray[Any]) -> Cells:
        """Return the cells with new values. Neighbouring intervals with equal values become one
        interval.

        values: (intervals + labels + 1,), the new values of the intervals, then of the labels.
        """
        numeric, labels = values[: self.intervals], values[self.intervals :]
        starts_interval = numeric[1:] != numeric[:-1]
        merged = np.concatenate([numeric[:1], numeric[1:][starts_interval]])
        return Cells(self.name, self.edges[starts_interval], self.labels, merged, labels)

    def words(self, chosen: NDArray[np.bool_]) -> str:
        """Return the event that an entry lies in a chosen cell in words, such as `output ≤ 0.13`.

        chosen: mask that is indexed by the value of a cell; the values must be indices or levels.
        """
        phrases = phrases_of(self.name)
        if phrases is not None:
            return self._representation_words(chosen, phrases)
        unseen = self.label_values[-1]
        name = self.name.removeprefix(KIND)
        numeric, result = chosen[self.values], chosen[self.label_values[:-1]]
        if self._is_all_but_the_gap(numeric | (self.values == unseen), result):
            return f"{name} is present"
        left_out = [
            label for label, is_chosen in zip(self.labels, result, strict=True) if not is_chosen
        ]
        left_out = left_out if numeric.all() else [A_NUMBER, *left_out]
        runs = [] if chosen[unseen] and numeric.all() else self._runs(numeric)
        parts = [_interval_words(name, low, high) for low, high in runs]
        raised, labels = self._labels(result)
        parts += raised
        labels = [f"{name} is {shortened(label)}" for label in labels]
        start = f"{name} is "
        if not chosen[unseen]:
            return _alternatives(start, [*parts, *labels]) or NO_OUTPUT
        # If nearly all labels are chosen, the words list the few labels that are not: "neither 1
        # nor 2".
        if len(left_out) <= MAX_LISTED_ITEMS:
            labels, remaining = [], none_of(left_out)
        else:
            remaining = RARELY_SEEN
        if not remaining:
            return "any output"
        if not (runs or labels):
            remaining = f"{name} is {remaining}"
        parts += labels
        return f"{_alternatives(start, parts)}, or {remaining}" if parts else remaining

    def alternatives(self, chosen: NDArray[np.bool_]) -> tuple[int, int]:
        """Return (values, intervals): of how many single values, and of how many intervals, the
        event of the chosen cells consists. `chosen` is as in `words`."""
        runs = self._runs(chosen[self.values])
        points = sum(math.nextafter(low, math.inf) == high for low, high in runs)
        labels = np.count_nonzero(chosen[self.label_values])
        return points + int(labels), len(runs) - points

    def _labels(self, result: NDArray[np.bool_]) -> tuple[list[str], list[str]]:
        """Return the chosen labels as (words of exceptions, other labels)."""
        every = [label for label, is_chosen in zip(self.labels, result, strict=True) if is_chosen]
        raised = [label for label in every if label.startswith(RAISED)]
        words = [f"{label.removeprefix(RAISED)} is raised" for label in raised]
        return words, [label for label in every if label not in raised]

    def _representation_words(self, chosen: NDArray[np.bool_], phrases: Phrases) -> str:
        """Describe an event of a column of types or of forms."""
        result = chosen[self.label_values[:-1]]
        if self._is_all_but_the_gap(np.ones(1, dtype=bool), result):
            return phrases.present
        parts, labels = self._labels(result)
        parts += [phrases.absent] if ABSENT in labels else []
        words = [phrases.word(label) for label in labels if label != ABSENT]
        parts += [f"{phrases.start}{shortened(word)}" for word in words]
        if chosen[self.label_values[-1]]:
            parts.append(f"{phrases.start}{RARELY_SEEN}")
        return _alternatives(phrases.start, parts) or NO_OUTPUT

    def _is_all_but_the_gap(self, numeric: NDArray[np.bool_], result: NDArray[np.bool_]) -> bool:
        """Return whether the event is that the outcome has an entry, whatever its value."""
        there = np.array([label != ABSENT for label in self.labels], dtype=bool)
        return not there.all() and bool(numeric.all() and (result == there).all())

    def _runs(self, numeric: NDArray[np.bool_]) -> list[tuple[float, float]]:
        bounds = np.concatenate([[-np.inf], self.edges, [np.inf]])
        padded = np.concatenate([[False], numeric, [False]])
        starts = np.flatnonzero(padded[1:] & ~padded[:-1])
        ends = np.flatnonzero(~padded[1:] & padded[:-1])
        return [(float(bounds[i]), float(bounds[j])) for i, j in zip(starts, ends, strict=True)]


def is_number(column: Column) -> NDArray[np.bool_]:
    """Return a mask of the entries that are numbers: (size,)."""
    if column.codes is None:
        return np.ones(len(column.numbers), dtype=bool)
    return np.asarray(column.codes == 0)


def make_cells(column: Column, limit: int = MAX_INTERVALS) -> Cells:
    """Return the cells of a column of selection draws.

    If the column has few distinct values, each has an interval. Otherwise intervals end at
    quantiles, which are closer together in both tails; each frequent value still has an interval of
    its own. Each label that was seen at least twice has a cell.

    limit: largest number of intervals, not counting the intervals of single frequent values.
    """
    numbers = column.numbers if column.codes is None else column.numbers[column.codes == 0]
    edges = _edges(in_order(numbers), limit) if len(numbers) else np.empty(0)
    labels = frequent_labels(column, MIN_REPEATS, MAX_CELLS)
    intervals = len(edges) + 1
    values = np.arange(intervals, dtype=np.intp)
    label_values = np.arange(intervals, intervals + len(labels) + 1, dtype=np.intp)
    return Cells(column.name, edges, labels, values, label_values)


def equal_mass_groups(column: Column, groups: int) -> NDArray[np.intp]:
    """Divide the cells of a column into runs of neighbouring cells, each with about the same number
    of draws. Return the run of every entry: (size,), 0 to `groups` - 1."""
    cell = make_cells(column, groups)(column).astype(np.intp)
    return equal_mass_runs(np.bincount(cell), groups)[cell]


def frequent_labels(column: Column, least: int, most: int) -> tuple[str, ...]:
    """Return at most `most` labels that occur in at least `least` draws, the most frequent
    first."""
    if column.codes is None:
        return ()
    counts = np.bincount(column.codes, minlength=len(column.labels) + 1)[1:]
    order = np.argsort(-counts, kind="stable")[:most]
    return tuple(column.labels[i] for i in order if counts[i] >= least)


def _edges(ordered: FloatArray, limit: int) -> FloatArray:
    is_new = ordered[1:] != ordered[:-1]
    distinct = 1 + int(np.count_nonzero(is_new))
    bins = int(np.clip(len(ordered) // tuning.DRAWS_PER_CELL, 8, limit))
    indices = np.floor(_quantiles(bins, len(ordered)) * len(ordered)).astype(np.int64)
    if distinct == len(ordered) > 2:
        return short_edges(ordered, indices)
    starts = np.flatnonzero(np.concatenate([[True], is_new]))
    if distinct <= min(limit // 2, max(2, len(ordered) // 2)):
        return around(ordered[starts])
    counts = np.diff(np.append(starts, len(ordered)))
    frequent = ordered[starts[counts >= max(4, len(ordered) / bins)]]
    return np.unique(np.concatenate([short_edges(ordered, indices), around(frequent)]))


def around(values: FloatArray) -> FloatArray:
    """Return edges, rising, between which each of the given values has an interval to itself: for
    each value, the value and the next larger float."""
    with np.errstate(over="ignore"):
        edges = np.concatenate([values, np.nextafter(values, np.inf)])
    return np.unique(edges[edges > -np.inf])


# Cached: all columns of an outcome have the same number of draws, and so the same arguments.
@lru_cache(maxsize=64)
def _quantiles(bins: int, draws: int) -> FloatArray:
    """Return the quantiles at which numbers are cut into `bins` intervals, fine in both tails."""
    # The outermost interval of a tail holds 4 draws.
    first, share = 4 / draws, tuning.SHARE_OF_TAILS
    # Between the tails there are at most 192 intervals. Any further intervals lie in the tails,
    # where narrow intervals matter for the cut-offs of rare events.
    tail = (bins - min(bins * 3 // 4, 192)) // 2
    if first >= share / 2 or tail < 2:
        return np.linspace(0, 1, bins + 1)[1:-1]
    low = np.geomspace(first, share, tail)
    middle = np.linspace(share, 1 - share, bins - 2 * tail + 1)[1:-1]
    return np.concatenate([low, middle, 1 - low[::-1]])


def short_edges(ordered: FloatArray, positions: NDArray[np.int64]) -> FloatArray:
    """Return rising edges with few decimals, each close to one of the numbers.

    ordered: (draws,), the numbers in rising order.
    positions: indices in `ordered` of the numbers at which to put edges.
    """
    positions = np.unique(np.clip(positions, 1, len(ordered) - 1))
    edges = np.unique(ordered[positions])
    edges = edges[np.isfinite(edges)]
    if len(edges) < 2:
        return edges
    with np.errstate(over="ignore"):
        gaps = np.diff(edges)
    room = np.minimum(np.append(gaps, np.inf), np.insert(gaps, 0, np.inf))
    short = [_short(float(edge), float(gap)) for edge, gap in zip(edges, room, strict=True)]
    return np.unique(np.array(short))


def _short(edge: float, room: float) -> float:
    """Round an edge to few decimals. This moves it by at most a tenth of `room`."""
    if room == math.inf:  # the distance overflows
        return edge
    digits = 1 - math.floor(math.log10(room)) if room > 0 else 17
    try:
        return round(edge, digits) if digits < 300 else edge
    except OverflowError:  # the largest floats would be rounded up to infinity
        return edge


def short_below(number: float, room: float) -> float:
    """Return a number with few decimals that is at most `number`, and less by at most `room` / 5;
    `number` itself if there is none."""
    with np.errstate(over="ignore", invalid="ignore"):
        result = _short(number, room)
        if result > number:
            result = _short(float(np.subtract(number, room / 10)), room)
    return result if result <= number and room < math.inf else number


def _interval_words(name: str, low: float, high: float) -> str:
    (below, is_above), (above, is_upto) = _bound(low), _bound(high)
    word, at_most = number_writer(name), "≤" if is_upto else "<"
    if low == -math.inf:
        return f"{name} is a number" if high == math.inf else f"{name} {at_most} {word(above)}"
    if high == math.inf:
        return f"{name} {'>' if is_above else '≥'} {word(below)}"
    if math.nextafter(low, math.inf) == high:
        return f"{name} is {word(low)}"
    return f"{word(below)} {'<' if is_above else '≤'} {name} {at_most} {word(above)}"


def _bound(edge: float) -> tuple[float, bool]:
    """Return the number to write for an edge, and whether the edge is the next float above it."""
    if math.isfinite(edge):
        number = math.nextafter(edge, -math.inf)
        if len(number_word(number)) < len(number_word(edge)):
            return number, True
    return edge, False


def _alternatives(start: str, parts: Sequence[str]) -> str:
    """Join the alternatives of an event in words, such as `output > 7, output is 1 or 4`."""
    points = [part.removeprefix(start) for part in parts if part.startswith(start)]
    ranges = [part for part in parts if not part.startswith(start)]
    if len(points) > MAX_LISTED_ITEMS:
        points = [*points[:MAX_LISTED_ITEMS], f"{len(points) - MAX_LISTED_ITEMS} more values"]
    if points:
        points[0] = f"{start}{points[0]}"
    if len(ranges) > MAX_LISTED_ITEMS:
        ranges = [*ranges[:MAX_LISTED_ITEMS], f"{len(ranges) - MAX_LISTED_ITEMS} more intervals"]
    return listed([*ranges, *points], "or")


def shortened(word: str) -> str:
    """Return a word, cut to 59 characters and an ellipsis if it has more than 60."""
    return word if len(word) <= 60 else f"{word[:59]}…"


def none_of(labels: Sequence[str]) -> str:
    """Describe an output that has none of these labels, such as `neither 1 nor a raised
    KeyError`."""
    words = [
        f"a raised {label.removeprefix(RAISED)}" if label.startswith(RAISED) else shortened(label)
        for label in labels
    ]
    if len(words) < 2:
        return "".join(f"not {word}" for word in words)
    return f"neither {', '.join(words[:-1])} nor {words[-1]}"


def listed(parts: Sequence[str], word: Literal["and", "or"]) -> str:
    """Join parts with commas and a last `and` or `or`, such as `1, 2 or 3`."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"
