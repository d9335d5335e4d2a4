"""Compare two runs with the same noisy values: find the operands, the parts that differ, and the
point at which the runs take different paths."""

from __future__ import annotations

import linecache
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .correlated import with_joint_costs
from .differences import Chosen, ControlFlow, Hidden, RunDifferences
from .places import Place, loops_of, place_of, places_of
from .replaying import OPAQUE, SEED, UNKNOWN, Draw, Toss, Use, aligned, are_certain
from .running import MissingEntry, briefly, same

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from .noise_log import Recorder
    from .places import Line, Spot
    from .replaying import Moment
    from .running import Run


# Distributions whose drawn numbers may be indexes of records of the dataset.
_PICKING = ("choice", "sample", "permutation", "integers", "binomial")


def matched(first: Recorder, second: Recorder, alignment: dict[Any, Any]) -> list[tuple[Use, Use]]:
    """Return pairs of counterparts: (use in the first run, use in the second run). The n-th
    executions of a spot in both runs are counterparts, unless `alignment` names others."""
    pairs = []
    for second_use in second.uses:
        kind, spot, number = second_use.moment
        if (kind, spot) in alignment:
            matches = alignment[kind, spot]
            match = matches[number] if number < len(matches) else None
            if match is None:
                continue
            number = match
        first_use = first.by_moment.get((kind, spot, number))
        if isinstance(first_use, Use):
            pairs.append((first_use, second_use))
    return pairs


def alignment_of(first: Run, second: Run) -> dict[Any, Any]:
    """Return the alignment of two runs: which events are counterparts, at each spot where the n-th
    events of both runs may be none. It maps (kind of the event, spot) to a list that has, for each
    event of the second run, the index of its counterpart in the first run, or None.

    Counterparts have the same callers. They are also in the same iteration of each loop that has
    equally many iterations in both runs.
    """
    first_moments, second_moments = _moments(first.recorder), _moments(second.recorder)
    alignment = {}
    paths = None if first.lines == second.lines else Paths(first, second)
    for kind, spot in first_moments.keys() & second_moments.keys():
        moments = first_moments[kind, spot], second_moments[kind, spot]
        is_use, is_uneven = kind in ("add", "compare"), len(moments[0]) != len(moments[1])
        if is_use and is_uneven and _is_one_sum(first, second, *moments):
            # Match only the complete sums, after the last addition of each run.
            indexes: list[int | None] = [None] * len(moments[1])
            indexes[-1] = len(moments[0]) - 1
            alignment[kind, spot] = indexes
            continue
        if paths is None and not is_uneven:
            continue
        keys = [
            [(() if paths is None else paths.of(run, moment)) for moment in every]
            for run, every in zip((first, second), moments)
        ]
        indexes = [None] * len(moments[1])
        for key in dict.fromkeys(keys[1]):
            first_indexes, second_indexes = (
                [i for i, event_key in enumerate(every) if event_key == key] for every in keys
            )
            if len(first_indexes) == len(second_indexes) or not is_use:
                matches: Any = range(min(len(first_indexes), len(second_indexes)))
            else:
                matches = aligned(
                    [_key(first.recorder.by_moment[moments[0][i]]) for i in first_indexes],
                    [_key(second.recorder.by_moment[moments[1][i]]) for i in second_indexes],
                )
            for index, match in zip(second_indexes, matches):
                indexes[index] = None if match is None else first_indexes[match]
        if indexes != [i if i < len(moments[0]) else None for i in range(len(indexes))]:
            alignment[kind, spot] = indexes
    return alignment


def _is_one_sum(
    first: Run, second: Run, first_moments: list[Moment], second_moments: list[Moment]
) -> bool:
    """Return whether all additions of each run add to one sum, which began as noise."""
    return all(
        len({tuple(np.ravel(use.ids).tolist()) for use in _at(run, moments)}) == 1
        for run, moments in ((first, first_moments), (second, second_moments))
    )


class Paths:
    """Finds the callers of the events of two runs, and the loop iterations in which they happen."""

    def __init__(self, first: Run, second: Run) -> None:
        self._counts = [Counter(run.lines) for run in (first, second)]
        self._iterations = {id(run): _iterations(run) for run in (first, second)}
        self._known: dict[Spot, list[Line]] = {}

    def of(self, run: Run, moment: Moment) -> tuple[Any, ...]:
        callers = run.recorder.by_moment[moment].callers
        at = self._iterations[id(run)].get(run.recorder.positions.get(moment, 0), {})
        headers = (header for spot in (moment[1], *callers) for header in self._headers(spot))
        return (callers, *((header, at.get(header, 0)) for header in headers))

    def _headers(self, spot: Spot) -> list[Line]:
        """Return the first lines of the loops around a spot that have equally many iterations."""
        if spot not in self._known:
            location = place_of(spot)
            self._known[spot] = [
                (location.file, start)
                for start, end in loops_of(location.file)
                if start < location.line <= end and self._is_even((location.file, start))
            ]
        return self._known[spot]

    def _is_even(self, header: Line) -> bool:
        return self._counts[0][header] == self._counts[1][header]


def _iterations(run: Run) -> dict[int, dict[Line, int]]:
    """Return, by the number of lines executed before an event, the iteration of each loop then."""
    wanted = set(run.recorder.positions.values())
    # Maps the first line of each loop to the first lines of the loops inside it.
    inner = {
        (file, start): [
            (file, inner_start) for inner_start, _ in loops_of(file) if start < inner_start <= end
        ]
        for file in {file for file, _ in run.lines}
        for start, end in loops_of(file)
    }
    counts: dict[Line, int] = {}
    iterations = {}
    for position, line in enumerate(run.lines, 1):
        if line in inner:
            counts[line] = counts.get(line, 0) + 1
            for inner_header in inner[line]:
                counts.pop(inner_header, None)
        if position in wanted:
            iterations[position] = dict(counts)
    return iterations


def _moments(recorder: Recorder) -> dict[Any, list[Moment]]:
    """Return the moments of a run, by (kind, spot)."""
    moments: dict[Any, list[Moment]] = {}
    for moment in recorder.by_moment:
        moments.setdefault(moment[:2], []).append(moment)
    return moments


def _at(run: Run, moments: list[Any]) -> list[Use]:
    return [run.recorder.by_moment[moment] for moment in moments]


def _key(use: Use) -> Any:
    return tuple(np.ravel(use.operand).tolist())


def compare(
    first: Run,
    second: Run,
    alignment: dict[Any, Any],
    delta: float = 0.0,
    constants: Collection[str] = (),
    lost: Collection[Moment] = (),
) -> RunDifferences:
    """Return the differences between two runs. The second run repeats the noisy values of the
    first.

    alignment: As `alignment_of` returns it.
    delta: The smallest δ of the claim.
    constants: The parts that contain no noise.
    lost: The draws that are no noise, since they do not reach the output.
    """
    pairs = matched(first.recorder, second.recorder, alignment)
    noisy = {name: value for name, value in first.parts.items() if name not in constants}
    released = first._replace(parts=noisy)
    shown = significant(released)
    alike = [
        (first_use, second_use)
        for first_use, second_use in pairs
        if id(first_use) in shown and np.shape(first_use.operand) == np.shape(second_use.operand)
    ]
    every = [
        hidden(released, first_use, second.recorder, second_use) for first_use, second_use in alike
    ]
    noise, cancelled = with_joint_costs((first.recorder, second.recorder), alike, every)
    return RunDifferences(
        hidden=noise,
        chosen=_chosen(first.recorder, second.recorder, alignment),
        differing=_differing(first, second),
        control_flow=control_flow_of(first, second),
        uneven=_uneven(first.recorder, second.recorder),
        twice=[
            *twice(released, [pair for pair in pairs if id(pair[0]) in shown], delta),
            *cancelled,
        ],
        moved=frozenset(moved_at(first.recorder, second.recorder, pairs)),
        unused=[
            (first.recorder.place(draw.moment), draw.primitive, draw.is_fill)
            for draw in unused_draws(first.recorder)
            if draw.moment not in lost
        ],
        errors=(error_of(first), error_of(second)),
        ends=(end_of(first), end_of(second)),
        picks=bool(first.recorder.choices) or are_picked(first.recorder),
        picks_items=are_picked(first.recorder),
        ranges=_have_ranges(first.recorder, second.recorder, alignment),
    )


def are_picked(recorder: Recorder, besides: Collection[Moment] = ()) -> bool:
    """Return whether a run draws from a discrete distribution, such as `choice`, that may pick
    records of the dataset. The draws `besides` are known to pick none."""
    every = (draw for draw in recorder.draws if draw.law in _PICKING)
    return any(draw.moment not in besides for draw in every)


def _counterparts(second: Recorder, alignment: dict[Any, Any]) -> dict[Moment, Any]:
    """Return the events of the second run, by the moments of their counterparts in the first."""
    events = {}
    for (kind, spot, number), event in second.by_moment.items():
        matches = alignment.get((kind, spot))
        match = number if matches is None else matches[number] if number < len(matches) else None
        if match is not None:
            events[kind, spot, match] = event
    return events


def _chosen(first: Recorder, second: Recorder, alignment: dict[Any, Any]) -> list[Chosen]:
    chosen = []
    counterparts = _counterparts(second, alignment)
    for choice in first.choices:
        counterpart = counterparts.get(choice.moment)
        if isinstance(counterpart, Toss) and np.shape(choice.probability) == np.shape(
            counterpart.probability
        ):
            is_free = np.ravel(
                ~np.asarray(are_certain(choice.probability, counterpart.probability))
            )
            if not is_free.any():
                continue
            location = first.place(choice.moment)
            first_odds, second_odds = (
                np.ravel(event.probability)[is_free].tolist() for event in (choice, counterpart)
            )
            odds = first_odds, second_odds
            chosen.append(Chosen(location, "coin", odds, True, ({}, {}), places_of(choice.callers)))
    for draw in first.draws:
        counterpart = counterparts.get(draw.moment)
        if (
            draw.outcomes is None
            or not isinstance(counterpart, Draw)
            or counterpart.outcomes is None
        ):
            continue
        laws = [p for _, p in draw.outcomes], [p for _, p in counterpart.outcomes]
        parameters = dict(draw.parameters), dict(counterpart.parameters)
        location, callers = first.place(draw.moment), places_of(draw.callers)
        chosen.append(Chosen(location, draw.primitive, laws, False, parameters, callers))
    return chosen


def _differing(first: Run, second: Run) -> dict[str, tuple[str, str]]:
    """Return the parts that differ, by name, as (text in the first run, text in the second run)."""
    texts = {}
    for name in {**first.parts, **second.parts}:
        first_value, second_value = (run.parts.get(name, MissingEntry) for run in (first, second))
        if (
            first_value is MissingEntry
            or second_value is MissingEntry
            or not same(first_value, second_value)
        ):
            texts[name] = (briefly(first_value), briefly(second_value))
    return texts


def _have_ranges(first: Recorder, second: Recorder, alignment: dict[Any, Any]) -> bool:
    """Return whether some uniform number is drawn from different ranges in the two runs."""
    counterparts = _counterparts(second, alignment)
    for draw in first.draws:
        counterpart = counterparts.get(draw.moment) if draw.law == "uniform" else None
        if isinstance(counterpart, Draw) and any(
            not np.array_equal(value, counterpart.parameters.get(name, np.nan))
            for name, value in draw.parameters.items()
        ):
            return True
    return False


def _uneven(first: Recorder, second: Recorder) -> list[tuple[Place, str, int, int]]:
    """Return (line, function, counts) for each function that draws more numbers in one run."""
    uneven = []
    counts: dict[Any, list[int]] = {}
    for which, recorder in enumerate((first, second)):
        for draw in recorder.draws:
            key = draw.moment[1], draw.callers, draw.primitive
            counts.setdefault(key, [0, 0])[which] += draw.size
    for (spot, _, primitive), (first_count, second_count) in counts.items():
        if first_count != second_count:
            uneven.append((place_of(spot), primitive, first_count, second_count))
    return uneven


def unused_draws(recorder: Recorder) -> list[Draw]:
    """Return the draws whose numbers are neither added to another number nor compared with one."""
    used = np.zeros(len(recorder.pieces.laws), dtype=bool)
    for use in recorder.uses:
        used[np.ravel(use.ids)] = True
    for choice in recorder.choices:
        used[np.ravel(choice.ids)] = True
    for number, (a, _, b, _) in reversed(recorder.pieces.parts.items()):
        used[[a, b]] |= used[number]
    for number, (original, _) in recorder.pieces.repeated.items():
        used[[number, original]] |= used[number] | used[original]
    return [
        draw
        for draw in recorder.draws
        if draw.size
        and draw.law not in (*_PICKING, OPAQUE, SEED)
        and not used[draw.first : draw.first + draw.size].any()
    ]


def hidden(run: Run, first_use: Use, second: Recorder, second_use: Use) -> Hidden:
    """Return the noise of a use of the first run and of its counterpart."""
    recorder = run.recorder
    ids = np.ravel(first_use.ids)
    draw = recorder.pieces.draw_of(int(ids[0])) if len(ids) else None
    laws = recorder.pieces.laws_of(ids)
    root = _root(recorder, first_use, second)
    released = are_released(run, first_use)
    unit, operands, scales, is_same = _sizes(
        (recorder, second), (first_use, second_use), root, released
    )
    shifts = np.where(is_same, 0.0, _distances(*operands))
    counterpart = None if draw is None else second.pieces.draw_of(int(np.ravel(second_use.ids)[0]))
    is_single = np.ndim(first_use.operand) == 0
    added = [
        _ravelled(_before_comparing(records, use).operand) / unit
        for records, use in ((recorder, first_use), (second, second_use))
    ]
    if np.array_equal(added[0], added[1], equal_nan=True) and shifts.any():
        added = operands  # only the thresholds of the comparison differ
    shown = [briefly(operand[0] if is_single else operand) for operand in added]
    return Hidden(
        draw=recorder.place(first_use.moment if draw is None else draw.moment),
        added=recorder.place(root.moment),
        kind=first_use.kind,
        primitive="" if draw is None else draw.primitive,
        law=laws.pop() if len(laws) == 1 else UNKNOWN,
        operands=(shown[0], shown[1]),
        shifts=shifts.tolist(),
        scales=(scales[0].tolist(), scales[1].tolist()),
        released=released.tolist(),
        pieces=ids.tolist(),
        parameters=(
            {} if draw is None else dict(draw.parameters),
            {} if counterpart is None else dict(counterpart.parameters),
        ),
        callers=places_of([*(() if draw is None else draw.callers), *root.callers]),
        made=recorder.place(first_use.moment),
        drawn=(
            recorder.pieces.drawn_scale(ids),
            second.pieces.drawn_scale(np.ravel(second_use.ids)),
        ),
    )


def _sizes(
    recorders: tuple[Recorder, Recorder], uses: tuple[Use, Use], root: Use, released: Any
) -> tuple[Any, list[Any], list[Any], Any]:
    """Return (unit, operands, scales, is_same) of the noise of counterparts in two runs."""
    # The program may have added noise to a number, and then multiplied the sum by a factor, the
    # unit. The unit is 1 if the scales differ: they are then those of the noise in the output.
    # `is_same` is true where noise is only compared, and the ratio of operand and scale is equal in
    # both runs.
    first_use, unit = uses[0], _unit(uses[0], root)
    operands = [_ravelled(use.operand) for use in uses]
    scales = [
        np.abs(np.ravel(use.factor)) * recorder.pieces.all_scales[np.ravel(use.ids)]
        for recorder, use in zip(recorders, uses)
    ]
    is_same = np.zeros(np.size(first_use.ids), dtype=bool)
    if first_use.kind == "compare":
        is_same = ~released & _are_proportional(operands, scales)
        scales[1] = np.where(is_same, scales[0], scales[1])
    if not np.allclose(scales[0], scales[1], _ROUNDING_SHARE, 0, equal_nan=True):
        unit = np.ones(len(unit))
    return unit, [value / unit for value in operands], [value / unit for value in scales], is_same


def _are_proportional(operands: list[Any], scales: list[Any]) -> Any:
    """Return where comparisons have equal laws: only operand divided by scale decides them."""
    with np.errstate(all="ignore"):
        ratios = operands[0] / scales[0], operands[1] / scales[1]
    return np.isclose(*ratios, rtol=_ROUNDING_SHARE, atol=0)


def _before_comparing(recorder: Recorder, use: Use) -> Use:
    """Return the addition of noise that precedes a comparison, or else `use` itself."""
    is_sum = use.kind != "compare" or use.previous is None
    return use if is_sum else recorder.uses[use.previous or 0]


def _root(recorder: Recorder, use: Use, paired: Recorder) -> Use:
    """Return the first addition of the noise of a use."""
    chain = [use]
    while chain[-1].previous is not None:
        chain.append(recorder.uses[chain[-1].previous])
    if ("draw", *chain[-1].moment[1:]) in recorder.by_moment:
        # A location of 0 in both runs, as in `2 * rng.normal(0.0, 2.0)`, is not a number that the
        # noise hides.
        while len(chain) > 1 and not any(
            np.any(addition.operand)
            for addition in (chain[-1], paired.by_moment.get(chain[-1].moment, chain[-1]))
        ):
            chain.pop()
    return chain[-1]


def _unit(use: Use, root: Use) -> Any:
    """Return the absolute values of the factors by which the program multiplied noisy sums."""
    factor, root_factor = np.ravel(use.factor), np.ravel(root.factor)
    if len(root_factor) != len(factor):
        return np.ones(len(factor))
    return np.abs(factor / root_factor)


def _distances(first: Any, second: Any) -> Any:
    """Return |first - second|: 0 for two NaNs, infinity for other numbers that are not finite."""
    with np.errstate(all="ignore"):
        distances = np.abs(first - second)
    is_same = (first == second) | (np.isnan(first) & np.isnan(second))
    return np.where(is_same, 0.0, np.where(np.isnan(distances), np.inf, distances))


def _ravelled(operand: Any) -> Any:
    return np.ravel(np.asarray(operand, dtype=float))


# A number in the output is taken for a noisy value if it differs from this value by at most this
# share of the scale of the noise: the program may round its output.
_ROUNDING_OF_OUTPUT = 0.002


def are_released(run: Run, use: Use) -> Any:
    """Return, for each noisy value of a use, whether the output contains it, up to slight rounding.
    It also counts if the output contains the noisy value of an earlier use of the same noise."""
    recorder, numbers = run.recorder, _numbers(run)
    is_released = np.zeros(np.size(use.value), dtype=bool)
    at: Use | None = use
    while at is not None:
        if np.size(at.value) == len(is_released):
            scales = recorder.pieces.all_scales[np.ravel(at.ids)]
            tolerance = np.nan_to_num(_ROUNDING_OF_OUTPUT * scales * np.abs(np.ravel(at.factor)))
            is_released |= _are_among(np.ravel(at.value), numbers, tolerance)
        at = None if at.previous is None else recorder.uses[at.previous]
    return is_released


def significant(run: Run) -> set[int]:
    """Return the `id` of each use that must be compared with another run. In a chain, each use
    takes the noisy value of the use before. Of a chain, the last use is needed, and each earlier
    use whose noisy value the output contains."""
    uses, numbers = run.recorder.uses, _numbers(run)
    gone_on = {use.previous for use in uses if use.previous is not None} | run.recorder.joined
    among = {
        index: np.ravel(_are_among(use.value, numbers))
        for index, use in enumerate(uses)
        if index in gone_on
    }
    significant_ids = {id(use) for index, use in enumerate(uses) if index not in gone_on}
    if not any(flags.any() for flags in among.values()):
        return significant_ids
    # The loop goes backwards, from the last operation to the first. `later` maps the id of each
    # drawn number to the noisy values of the operations seen so far. An operation is added to the
    # result if the output contains its noisy value and no later operation on the same drawn number
    # has an equal value: an operation that only adds 0 to a noisy value releases nothing more.
    later: dict[int, set[float]] = {}
    for index, use in reversed(list(enumerate(uses))):
        pieces = list(zip(np.ravel(use.ids).tolist(), np.ravel(use.value).tolist()))
        is_shown = among.get(index, ())
        if any(
            shown and float(value) not in later.get(number, ())
            for (number, value), shown in zip(pieces, is_shown)
        ):
            significant_ids.add(id(use))
        for number, value in pieces:
            later.setdefault(number, set()).add(float(value))
    return significant_ids


def _are_same(
    first_use: Use,
    second_use: Use,
    first: Recorder,
    second: Recorder,
    counterparts: dict[Moment, Any],
) -> bool:
    """Return whether the noise of two uses comes from draws that are counterparts."""
    if np.shape(first_use.ids) != np.shape(second_use.ids) or not np.size(first_use.ids):
        return False
    first_draw, second_draw = (
        recorder.pieces.draw_of(int(np.ravel(use.ids)[0]))
        for recorder, use in ((first, first_use), (second, second_use))
    )
    return counterparts.get(first_draw.moment) is second_draw


def rescaled(first: Run, second: Run, alignment: dict[Any, Any]) -> Iterator[Spot]:
    """Yield the spots of noise without operand whose scale differs between the two runs. The noise
    is in the output of the first run."""
    numbers = _numbers(first)
    first_recorder, second_recorder = (run.recorder for run in (first, second))
    counterparts = _counterparts(second_recorder, alignment)
    for moment, first_use in first_recorder.bare_noise.items():
        second_use = second_recorder.bare_noise.get(moment)
        if (
            second_use is None
            or not _are_same(first_use, second_use, first_recorder, second_recorder, counterparts)
            or np.shape(first_use.value) != np.shape(second_use.value)
        ):
            continue
        first_scales, second_scales = (
            np.abs(use.factor) * recorder.pieces.all_scales[use.ids]
            for recorder, use in ((first_recorder, first_use), (second_recorder, second_use))
        )
        tolerance = np.nan_to_num(_ROUNDING_OF_OUTPUT * first_scales)
        is_other = ~np.isclose(
            first_scales, second_scales, rtol=_ROUNDING_SHARE, atol=0, equal_nan=True
        )
        if np.any(is_other & _are_among(first_use.value, numbers, tolerance)):
            yield moment[1]


def may_be_constant(run: Run) -> bool:
    """Return whether a number in the output that looks like a noisy value may be a constant, such
    as the end of a bin. It may if it is a whole number to which the run adds further noise."""
    uses = run.recorder.uses
    values = [uses[use.previous].value for use in uses if use.previous is not None]
    integers = [value for value in values if np.array_equal(value, np.round(value))]
    return any(_are_among(value, _numbers(run)).any() for value in integers)


def _numbers(run: Run) -> Any:
    numbers = [value for value in run.parts.values() if isinstance(value, (int, float))]
    return np.unique(
        np.array([number for number in numbers if not isinstance(number, bool)], dtype=float)
    )


def _are_among(values: Any, numbers: Any, tolerance: Any = 0.0) -> Any:
    """Return which values differ by at most the tolerance from some entry of sorted `numbers`."""
    array = np.asarray(values, dtype=float)
    if not len(numbers):
        return np.zeros(array.shape, dtype=bool)
    right = np.clip(np.searchsorted(numbers, array), 0, len(numbers) - 1)
    with np.errstate(invalid="ignore"):
        distance = np.minimum(
            np.abs(numbers[right] - array), np.abs(numbers[np.maximum(0, right - 1)] - array)
        )
        return np.asarray(distance <= tolerance)


# Two changes of numbers from the first run to the second count as equal if their relative
# difference is at most this number, which allows for rounding errors.
_ROUNDING_SHARE = 1e-9


# Bounds on the probability that the absolute value of noise of scale 1 exceeds a positive number: a
# program may bound noise on both sides.
_TAILS: dict[str, Callable[[float], float]] = {
    "laplace": lambda x: math.exp(-x),
    "normal": lambda x: math.erfc(x / math.sqrt(2)),
    "discrete": lambda x: 2 * math.exp(-x),
    "logistic": lambda x: 2 * math.exp(-x),
}


def twice(
    run: Run, pairs: list[tuple[Use, Use]], delta: float = 0.0
) -> list[tuple[Place, Place, Place]]:
    """Find noise with two uses whose operands change by different amounts from run to run. The
    noise cancels in the difference of the two noisy values, so this difference shows data without
    noise. Return a list of (line of the draw, line of one use, line of the other use).

    pairs: As `matched` returns them.
    delta: Noise that is compared with a bound, as in `max(noise, -20)`, does not count if it
        exceeds the bound with at most this probability.
    """
    first = run.recorder
    compared = {id(first.uses[index]) for index in first.compared if index is not None}
    count = len(first.pieces.laws)
    steps, owners = np.full(count, np.nan), np.full(count, -1)
    units = np.nan_to_num(first.pieces.all_scales)
    repeated_uses: dict[tuple[Any, Any], tuple[Place, Place, Place]] = {}
    every = _indexed_changes(first, pairs)
    changes = np.zeros(count)
    for _, moved, ids in every:
        np.maximum.at(changes, ids, np.abs(moved))
    for index, moved, ids in every:
        use = pairs[index][0]
        if not moved.any() and _is_far(first, use, ids, changes, delta):
            continue
        fresh = np.isnan(steps[ids])
        steps[ids[fresh]], owners[ids[fresh]] = moved[fresh], index
        size = np.maximum(np.maximum(1.0, np.abs(moved)), units[ids])
        wrong = ids[np.abs(steps[ids] - moved) > _ROUNDING_SHARE * size]
        for owner in np.unique(owners[wrong]).tolist():
            earlier, number = pairs[owner][0], int(wrong[owners[wrong] == owner][0])
            is_shared = earlier is use and id(use) not in compared
            is_uniform = first.pieces.laws[number] == "uniform"
            if (is_shared or is_uniform) and not _shows_both(run, earlier, use):
                # Two cases are no error. One operation adds the same noise to several entries, and
                # only their sum is in the output, so no difference of two entries is seen. Or a
                # uniform number is compared with cumulative probabilities, to sample from a list.
                continue
            draw_line = first.place(first.pieces.draw_of(number).moment)
            added = first.place(earlier.moment), first.place(use.moment)
            repeated_uses.setdefault((earlier.moment[1], use.moment[1]), (draw_line, *added))
    return list(repeated_uses.values())


def _indexed_changes(first: Recorder, pairs: list[tuple[Use, Use]]) -> list[tuple[int, Any, Any]]:
    """Return (index, changes, ids) for each pair of uses with operands of equal shape."""
    every = [
        (index, first_use, needed_changes(first_use, second_use))
        for index, (first_use, second_use) in enumerate(pairs)
    ]
    return [
        (index, *_originals(first, np.ravel(moved), np.ravel(first_use.ids)))
        for index, first_use, moved in every
        if moved is not None
    ]


def _is_far(first: Recorder, use: Use, ids: Any, changes: Any, delta: float) -> bool:
    """Return whether noise exceeds the bound of a comparison with a probability of at most δ."""
    # The bound allows for the changes of the noise that other uses need.
    laws = {first.pieces.laws[number] for number in ids.tolist()}
    if use.kind != "compare" or len(laws) != 1 or not laws <= _TAILS.keys():
        return False
    with np.errstate(all="ignore"):
        margins = np.abs(np.ravel(use.operand) / use.factor) - changes[ids]
        least = float(np.min(margins / first.pieces.all_scales[ids]))
    return least > 0 and len(ids) * _TAILS[laws.pop()](least) <= delta


def _originals(recorder: Recorder, moved: Any, ids: Any) -> tuple[Any, Any]:
    """Return (moved, ids), with the ids of repeated numbers replaced by those they repeat."""
    repeated = recorder.pieces.repeated
    if not repeated:
        return moved, ids
    known = [repeated.get(number, (number, 1.0)) for number in ids.tolist()]
    return moved / [ratio for _, ratio in known], np.array([number for number, _ in known], int)


def _shows_both(run: Run, earlier: Use, later: Use) -> bool:
    """Return whether the output contains two noisy values that share a drawn number."""
    # Their difference shows data without noise. Two entries of one array have the same use.
    if earlier is later:
        numbers = np.ravel(later.ids)[are_released(run, later)]
        return len(np.unique(numbers)) < len(numbers)
    return all(use.kind == "add" and np.any(are_released(run, use)) for use in (earlier, later))


def moved_at(first: Recorder, second: Recorder, pairs: list[tuple[Use, Use]]) -> Iterator[Spot]:
    """Yield the spots at which the program combines a noisy value with data a second time. There,
    the shift differs from that at the previous use of the same noise. `pairs` is as `matched`
    returns it."""
    for first_use, second_use in pairs:
        if first_use.previous is None or second_use.previous is None:
            continue
        previous_uses = first.uses[first_use.previous], second.uses[second_use.previous]
        if not any(np.any(use.operand) for use in previous_uses):
            # Before this operation, no data had been added to the noise (the operand was 0), so
            # this is the first combination of the noise with data, not the second.
            continue
        steps = [needed_changes(first_use, second_use), needed_changes(*previous_uses)]
        if np.array_equal(first_use.factor, second_use.factor) and all(
            step is not None for step in steps
        ):
            try:
                if np.allclose(steps[0], steps[1], rtol=_ROUNDING_SHARE, atol=_ROUNDING_SHARE):
                    continue
            except ValueError:  # the arrays have different shapes
                pass
        yield first_use.moment[1]


def needed_changes(first_use: Use, second_use: Use) -> Any:
    """Return by how much the noise must change from the first use to the second so that the noisy
    values are equal: (first operand - second operand) / factor. Infinite and undefined results are
    replaced by 0. Return None if the operands have different shapes."""
    if np.shape(first_use.operand) != np.shape(second_use.operand):
        return None
    with np.errstate(all="ignore"):
        operands = (np.asarray(use.operand, dtype=float) for use in (first_use, second_use))
        moved = np.subtract(*operands) / first_use.factor
    return np.where(np.isfinite(moved), moved, 0.0)


def control_flow_of(first: Run, second: Run) -> ControlFlow | None:
    """Return the point at which two runs take different paths through the code. Return None if the
    paths are equal.

    If only one run executes some lines, it is the point before the last group of successive such
    lines. If both runs execute the same lines, it is the first point at which their order differs.
    """
    if first.lines == second.lines:
        return None
    first_lines, second_lines = _without_repeats(first.lines), _without_repeats(second.lines)
    only = set(first_lines) ^ set(second_lines)
    return (
        _before_last(first_lines, second_lines, only)
        if only
        else _first_turn(first.lines, second.lines)
    )


def _first_turn(first_lines: list[Line], second_lines: list[Line]) -> ControlFlow | None:
    """Return the first point at which the executed lines of two runs differ."""
    shared = min(len(first_lines), len(second_lines))
    index = next(
        (index for index in range(shared) if first_lines[index] != second_lines[index]), shared
    )
    following = [
        _maybe(lines[index]) if index < len(lines) else None
        for lines in (first_lines, second_lines)
    ]
    return (
        ControlFlow(_place(first_lines[index - 1]), (following[0], following[1])) if index else None
    )


def _before_last(
    first_lines: list[Line], second_lines: list[Line], only: set[Line]
) -> ControlFlow | None:
    """Return the point before the last lines that only one run executes."""
    # If both runs have such lines, those nearer to the end of their run count.
    latest: tuple[int, int, Line | None] | None = None
    for which, lines in enumerate((first_lines, second_lines)):
        indexes = [index for index, line in enumerate(lines) if line in only]
        if not indexes:
            continue
        begin = indexes[-1]
        while begin and lines[begin - 1] in only:
            begin -= 1
        left = len(lines) - indexes[-1]
        if begin and (latest is None or left < latest[0]):
            latest = left, which, lines[begin - 1]
            way = lines[begin]
            following: list[Line | None] = [None, None]
            following[which] = way
            other_lines = (second_lines, first_lines)[which]
            occurrences = [
                index for index, line in enumerate(other_lines[:-1]) if line == lines[begin - 1]
            ]
            following[1 - which] = next(
                (
                    other_lines[index + 1]
                    for index in reversed(occurrences)
                    if other_lines[index + 1] != way
                ),
                None,
            )
            best = ControlFlow(
                _place(lines[begin - 1]), (_maybe(following[0]), _maybe(following[1]))
            )
    return None if latest is None else best


def _without_repeats(lines: list[Line]) -> list[Line]:
    """Return the executed lines, each once, in the order of their last executions."""
    last = {line: index for index, line in enumerate(lines)}
    return [line for index, line in enumerate(lines) if last[line] == index]


def error_of(run: Run) -> Any:
    """Return (type, message, line) of a run's exception; None if the run raised no exception."""
    error = run.error
    return None if error is None else (error[0], error[1], _maybe(error[2]))


def end_of(run: Run) -> Place | None:
    return _maybe(run.lines.end)


def _maybe(line: Line | None) -> Place | None:
    return None if line is None else _place(line)


def _place(line: Line) -> Place:
    file, number = line
    return Place(file, number, linecache.getline(file, number).strip(), "")
