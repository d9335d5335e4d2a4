"""Compare two runs with the same noisy values. Find the numbers to which both runs add noise, the
entries of the output that differ, and the point at which the runs take different paths."""

from __future__ import annotations

import linecache
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .correlated import with_joint_costs
from .differences import Chosen, Comparison, ControlFlow, Hidden
from .places import Place, loops_of, place_of, places_of
from .replaying import OPAQUE, SEED, UNKNOWN, Choice, Draw, Use, aligned, are_certain
from .running import Missing, briefly, same

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from .places import Line, Spot
    from .recording import Recorder
    from .replaying import Moment
    from .running import Run


# Distributions whose drawn numbers may be indexes of records of the dataset.
_PICKING = ("choice", "sample", "permutation", "integers", "binomial")


def matched(first: Recorder, second: Recorder, alignment: dict[Any, Any]) -> list[tuple[Use, Use]]:
    """Return pairs of counterparts: (use in the first run, use in the second run). A use is an
    operation that adds noise to a number, or compares noise with a number. Counterparts are the
    n-th executions of the same instruction. If the runs execute an instruction a different number
    of times, `alignment` names the counterparts of its executions instead.

    alignment: As `alignment_of` returns it.
    """
    found = []
    for other in second.uses:
        kind, spot, number = other.moment
        if (kind, spot) in alignment:
            places = alignment[kind, spot]
            place = places[number] if number < len(places) else None
            if place is None:
                continue
            number = place
        one = first.by_moment.get((kind, spot, number))
        if isinstance(one, Use):
            found.append((one, other))
    return found


def alignment_of(first: Run, second: Run) -> dict[Any, Any]:
    """Match the events of two runs (draws, choices, additions and comparisons of noise) at each
    instruction where the n-th events of both runs may be no counterparts. Return a mapping from
    (kind of the event, instruction) to a list with one item for each event of the second run: the
    index of the matching event of the first run, or None if there is no match.

    Counterparts have the same callers, and the same iteration of each loop that has equally many
    iterations in both runs.
    """
    one, other = _moments(first.recorder), _moments(second.recorder)
    found = {}
    paths = None if first.lines == second.lines else Paths(first, second)
    for kind, spot in one.keys() & other.keys():
        moments = one[kind, spot], other[kind, spot]
        is_use, is_uneven = kind in ("add", "compare"), len(moments[0]) != len(moments[1])
        if is_use and is_uneven and _is_one_sum(first, second, *moments):
            # Match only the complete sums, after the last addition of each run.
            places: list[int | None] = [None] * len(moments[1])
            places[-1] = len(moments[0]) - 1
            found[kind, spot] = places
            continue
        if paths is None and not is_uneven:
            continue
        keys = [
            [(() if paths is None else paths.of(run, moment)) for moment in every]
            for run, every in zip((first, second), moments)
        ]
        places = [None] * len(moments[1])
        for key in dict.fromkeys(keys[1]):
            before, after = ([i for i, each in enumerate(every) if each == key] for every in keys)
            if len(before) == len(after) or not is_use:
                matches: Any = range(min(len(before), len(after)))
            else:
                matches = aligned(
                    [_key(first.recorder.by_moment[moments[0][i]]) for i in before],
                    [_key(second.recorder.by_moment[moments[1][i]]) for i in after],
                )
            for index, match in zip(after, matches):
                places[index] = None if match is None else before[match]
        if places != [i if i < len(moments[0]) else None for i in range(len(places))]:
            found[kind, spot] = places
    return found


def _is_one_sum(first: Run, second: Run, before: list[Moment], after: list[Moment]) -> bool:
    """Return whether, in each run, all additions at an instruction add to one and the same sum,
    which started as noise: the program adds the records to it one by one."""
    return all(
        len({tuple(np.ravel(use.ids).tolist()) for use in _at(run, moments)}) == 1
        for run, moments in ((first, before), (second, after))
    )


class Paths:
    """Finds the callers and the iterations of loops in which events of two runs happen."""

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
        """Return the first lines of the loops around an instruction that have equally many
        iterations in both runs."""
        if spot not in self._known:
            place = place_of(spot)
            self._known[spot] = [
                (place.file, start)
                for start, end in loops_of(place.file)
                if start < place.line <= end and self._is_even((place.file, start))
            ]
        return self._known[spot]

    def _is_even(self, header: Line) -> bool:
        return self._counts[0][header] == self._counts[1][header]


def _iterations(run: Run) -> dict[int, dict[Line, int]]:
    """Return the number of the present iteration of each loop, by its first line, after each number
    of executed lines at which an event happens."""
    wanted = set(run.recorder.positions.values())
    # Maps the first line of each loop to the first lines of the loops inside it.
    inner = {
        (file, start): [(file, other) for other, _ in loops_of(file) if start < other <= end]
        for file in {file for file, _ in run.lines}
        for start, end in loops_of(file)
    }
    counts: dict[Line, int] = {}
    found = {}
    for position, line in enumerate(run.lines, 1):
        if line in inner:
            counts[line] = counts.get(line, 0) + 1
            for other in inner[line]:
                counts.pop(other, None)
        if position in wanted:
            found[position] = dict(counts)
    return found


def _moments(recorder: Recorder) -> dict[Any, list[Moment]]:
    """Return a mapping from (kind, instruction) to the moments at which a run draws, chooses, adds
    or compares there. A moment is (kind, instruction, number of earlier executions)."""
    found: dict[Any, list[Moment]] = {}
    for moment in recorder.by_moment:
        found.setdefault(moment[:2], []).append(moment)
    return found


def _at(one: Run, places: list[Any]) -> list[Use]:
    return [one.recorder.by_moment[moment] for moment in places]


def _key(use: Use) -> Any:
    return tuple(np.ravel(use.operand).tolist())


def compare(
    first: Run,
    second: Run,
    alignment: dict[Any, Any],
    delta: float = 0.0,
    constants: Collection[str] = (),
    lost: Collection[Moment] = (),
) -> Comparison:
    """Return the differences between two runs. The second run repeats the noisy values of the first
    run.

    alignment: The matching operations of the two runs, for each instruction that adds or compares
        noise more often in one run than in the other (see `alignment_of`).
    delta: The smallest δ of the claim.
    constants: The names of entries of the output that contain no noise.
    lost: The draws that are no noise, since they do not reach the output.
    """
    pairs = matched(first.recorder, second.recorder, alignment)
    noisy = {name: value for name, value in first.parts.items() if name not in constants}
    released = first._replace(parts=noisy)
    shown = significant(released)
    alike = [
        (one, other)
        for one, other in pairs
        if id(one) in shown and np.shape(one.operand) == np.shape(other.operand)
    ]
    every = [hidden(released, one, second.recorder, other) for one, other in alike]
    noise, cancelled = with_joint_costs((first.recorder, second.recorder), alike, every)
    return Comparison(
        hidden=noise,
        chosen=_chosen(first.recorder, second.recorder, alignment),
        differing=_differing(first, second),
        control_flow=control_flow_of(first, second),
        uneven=_uneven(first.recorder, second.recorder),
        twice=[*twice(released, [one for one in pairs if id(one[0]) in shown], delta), *cancelled],
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
    """Return whether a run draws from a discrete distribution that may pick records of the dataset,
    such as `choice`.

    besides: Draws that are known to pick no records.
    """
    every = (draw for draw in recorder.draws if draw.law in _PICKING)
    return any(draw.moment not in besides for draw in every)


def _counterparts(second: Recorder, alignment: dict[Any, Any]) -> dict[Moment, Any]:
    """Return the events of the second run, by the moments of their counterparts in the first."""
    found = {}
    for (kind, spot, number), event in second.by_moment.items():
        places = alignment.get((kind, spot))
        place = number if places is None else places[number] if number < len(places) else None
        if place is not None:
            found[kind, spot, place] = event
    return found


def _chosen(first: Recorder, second: Recorder, alignment: dict[Any, Any]) -> list[Chosen]:
    found = []
    counterparts = _counterparts(second, alignment)
    for one in first.choices:
        other = counterparts.get(one.moment)
        if isinstance(other, Choice) and np.shape(one.probability) == np.shape(other.probability):
            is_free = np.ravel(~np.asarray(are_certain(one.probability, other.probability)))
            if not is_free.any():
                continue
            place = first.place(one.moment)
            first_odds, second_odds = (
                np.ravel(each.probability)[is_free].tolist() for each in (one, other)
            )
            odds = first_odds, second_odds
            found.append(Chosen(place, "coin", odds, True, ({}, {}), places_of(one.callers)))
    for draw in first.draws:
        after = counterparts.get(draw.moment)
        if draw.outcomes is None or not isinstance(after, Draw) or after.outcomes is None:
            continue
        laws = [p for _, p in draw.outcomes], [p for _, p in after.outcomes]
        parameters = dict(draw.parameters), dict(after.parameters)
        place, callers = first.place(draw.moment), places_of(draw.callers)
        found.append(Chosen(place, draw.primitive, laws, False, parameters, callers))
    return found


def _differing(first: Run, second: Run) -> dict[str, tuple[str, str]]:
    """Return a mapping from the name of each entry of the output that differs between the runs,
    such as `output[1]`, to (value in the first run, value in the second run), as texts."""
    found = {}
    for name in {**first.parts, **second.parts}:
        one, other = (run.parts.get(name, Missing) for run in (first, second))
        if one is Missing or other is Missing or not same(one, other):
            found[name] = (briefly(one), briefly(other))
    return found


def _have_ranges(first: Recorder, second: Recorder, alignment: dict[Any, Any]) -> bool:
    """Return whether some uniform number is drawn from different ranges in the two runs.

    first, second: The records of the runs.
    """
    counterparts = _counterparts(second, alignment)
    for draw in first.draws:
        after = counterparts.get(draw.moment) if draw.law == "uniform" else None
        if isinstance(after, Draw) and any(
            not np.array_equal(value, after.parameters.get(name, np.nan))
            for name, value in draw.parameters.items()
        ):
            return True
    return False


def _uneven(first: Recorder, second: Recorder) -> list[tuple[Place, str, int, int]]:
    """Return (line, function, count in the first run, count in the second run) for each function
    that draws more numbers in one run than in the other."""
    found = []
    counts: dict[Any, list[int]] = {}
    for which, recorder in enumerate((first, second)):
        for draw in recorder.draws:
            key = draw.moment[1], draw.callers, draw.primitive
            counts.setdefault(key, [0, 0])[which] += draw.size
    for (spot, _, primitive), (one, other) in counts.items():
        if one != other:
            found.append((place_of(spot), primitive, one, other))
    return found


def unused_draws(recorder: Recorder) -> list[Draw]:
    """Return the draws whose numbers are neither added to another number nor compared with one."""
    used = np.zeros(len(recorder.pieces.laws), dtype=bool)
    for one in recorder.uses:
        used[np.ravel(one.ids)] = True
    for choice in recorder.choices:
        used[np.ravel(choice.ids)] = True
    for number, (a, _, b, _) in reversed(recorder.pieces.parts.items()):
        used[[a, b]] |= used[number]
    for number, (before, _) in recorder.pieces.repeated.items():
        used[[number, before]] |= used[number] | used[before]
    return [
        draw
        for draw in recorder.draws
        if draw.size
        and draw.law not in (*_PICKING, OPAQUE, SEED)
        and not used[draw.first : draw.first + draw.size].any()
    ]


def hidden(run: Run, one: Use, second: Recorder, other: Use) -> Hidden:
    """Return a `Hidden`, which describes the noise that both runs add to a number, or compare with
    a number, and this number in each run.

    run: The first run.
    one: The addition or comparison in the first run.
    second: The records of the second run.
    other: The same addition or comparison in the second run.
    """
    recorder = run.recorder
    ids = np.ravel(one.ids)
    draw = recorder.pieces.draw_of(int(ids[0])) if len(ids) else None
    laws = recorder.pieces.laws_of(ids)
    root = _root(recorder, one, second)
    released = are_released(run, one)
    unit, operands, scales, is_same = _sizes((recorder, second), (one, other), root, released)
    shifts = np.where(is_same, 0.0, _distances(*operands))
    after = None if draw is None else second.pieces.draw_of(int(np.ravel(other.ids)[0]))
    is_single = np.ndim(one.operand) == 0
    added = [
        _ravelled(_before_comparing(own, use).operand) / unit
        for own, use in ((recorder, one), (second, other))
    ]
    if np.array_equal(added[0], added[1], equal_nan=True) and shifts.any():
        added = operands  # only the thresholds of the comparison differ
    shown = [briefly(each[0] if is_single else each) for each in added]
    return Hidden(
        draw=recorder.place(one.moment if draw is None else draw.moment),
        added=recorder.place(root.moment),
        kind=one.kind,
        primitive="" if draw is None else draw.primitive,
        law=laws.pop() if len(laws) == 1 else UNKNOWN,
        operands=(shown[0], shown[1]),
        shifts=shifts.tolist(),
        scales=(scales[0].tolist(), scales[1].tolist()),
        released=released.tolist(),
        pieces=ids.tolist(),
        parameters=(
            {} if draw is None else dict(draw.parameters),
            {} if after is None else dict(after.parameters),
        ),
        callers=places_of([*(() if draw is None else draw.callers), *root.callers]),
        made=recorder.place(one.moment),
        drawn=(
            recorder.pieces.drawn_scale(ids),
            second.pieces.drawn_scale(np.ravel(other.ids)),
        ),
    )


def _sizes(
    recorders: tuple[Recorder, Recorder], uses: tuple[Use, Use], root: Use, released: Any
) -> tuple[Any, list[Any], list[Any], Any]:
    """Return (unit, operands, scales, is_same) of the noise of counterparts in two runs.

    unit: The absolute values of the factors by which the operands and scales are divided: the
        program may have added noise to a number, and then multiplied the sum by a factor. 1 if the
        scales differ: they are then those of the noise in the output.
    is_same: Where noise is only compared, and the ratio of operand and scale is equal in both runs.
    """
    one, unit = uses[0], _unit(uses[0], root)
    operands = [_ravelled(use.operand) for use in uses]
    scales = [
        np.abs(np.ravel(use.factor)) * recorder.pieces.all_scales[np.ravel(use.ids)]
        for recorder, use in zip(recorders, uses)
    ]
    is_same = np.zeros(np.size(one.ids), dtype=bool)
    if one.kind == "compare":
        is_same = ~released & _are_proportional(operands, scales)
        scales[1] = np.where(is_same, scales[0], scales[1])
    if not np.allclose(scales[0], scales[1], _ROUNDING_SHARE, 0, equal_nan=True):
        unit = np.ones(len(unit))
    return unit, [each / unit for each in operands], [each / unit for each in scales], is_same


def _are_proportional(operands: list[Any], scales: list[Any]) -> Any:
    """Return where comparisons have equal laws: only operand divided by scale decides them."""
    with np.errstate(all="ignore"):
        ratios = operands[0] / scales[0], operands[1] / scales[1]
    return np.isclose(*ratios, rtol=_ROUNDING_SHARE, atol=0)


def _before_comparing(recorder: Recorder, use: Use) -> Use:
    """Return the record of the addition of noise that precedes a comparison of the noisy value with
    a threshold. The addition's operand is the number to which the noise is added; in the record of
    the comparison, the threshold is subtracted from this number. Return `use` itself if it is an
    addition, or if no addition precedes it.

    recorder: The records of the run.
    use: The record of an addition or of a comparison.
    """
    is_sum = use.kind != "compare" or use.previous is None
    return use if is_sum else recorder.uses[use.previous or 0]


def _root(recorder: Recorder, use: Use, paired: Recorder) -> Use:
    """Return the first addition of the noise of a use.

    recorder: The records of the run of the use.
    paired: The records of the other run of the pair.
    """
    chain = [use]
    while chain[-1].previous is not None:
        chain.append(recorder.uses[chain[-1].previous])
    if ("draw", *chain[-1].moment[1:]) in recorder.by_moment:
        # A location of 0 in both runs, as in `2 * rng.normal(0.0, 2.0)`, is not a number that the
        # noise hides.
        while len(chain) > 1 and not any(
            np.any(one.operand)
            for one in (chain[-1], paired.by_moment.get(chain[-1].moment, chain[-1]))
        ):
            chain.pop()
    return chain[-1]


def _unit(one: Use, root: Use) -> Any:
    """Return an array with one factor for each sum of noise and a number: the absolute value of the
    factor by which the program multiplied the sum, such as 2 for 2 * (x + noise).

    one: The latest addition or comparison of the noise.
    root: The first addition of the same noise.
    """
    factor, before = np.ravel(one.factor), np.ravel(root.factor)
    if len(before) != len(factor):
        return np.ones(len(factor))
    return np.abs(factor / before)


def _distances(one: Any, other: Any) -> Any:
    """Return the absolute differences between the entries of two arrays: 0 for equal entries
    (NaN equals NaN), and infinity for different entries if one of them is NaN or infinite."""
    with np.errstate(all="ignore"):
        found = np.abs(one - other)
    is_same = (one == other) | (np.isnan(one) & np.isnan(other))
    return np.where(is_same, 0.0, np.where(np.isnan(found), np.inf, found))


def _ravelled(operand: Any) -> Any:
    return np.ravel(np.asarray(operand, dtype=float))


# A number in the output is taken for a noisy value if it differs from this value by at most this
# share of the scale of the noise: the program may round its output.
_ROUNDING_OF_OUTPUT = 0.002


def are_released(run: Run, use: Use) -> Any:
    """Return a Boolean array with one entry for each noisy value of a use (an addition or
    comparison of noise): whether the output contains this value, or the noisy value of an earlier
    use of the same noise. The output may contain the value slightly rounded."""
    recorder, numbers = run.recorder, _numbers(run)
    found = np.zeros(np.size(use.value), dtype=bool)
    at: Use | None = use
    while at is not None:
        if np.size(at.value) == len(found):
            scales = recorder.pieces.all_scales[np.ravel(at.ids)]
            tolerance = np.nan_to_num(_ROUNDING_OF_OUTPUT * scales * np.abs(np.ravel(at.factor)))
            found |= _are_among(np.ravel(at.value), numbers, tolerance)
        at = None if at.previous is None else recorder.uses[at.previous]
    return found


def significant(run: Run) -> set[int]:
    """Return the `id` of each operation (addition or comparison of noise) that must be compared
    with another run. Operations may form a chain: each takes the noisy value that the operation
    before returned. In a chain, the last operation must be compared, and so must each earlier
    operation whose result the output contains."""
    uses, numbers = run.recorder.uses, _numbers(run)
    gone_on = {one.previous for one in uses if one.previous is not None} | run.recorder.joined
    among = {
        place: np.ravel(_are_among(one.value, numbers))
        for place, one in enumerate(uses)
        if place in gone_on
    }
    found = {id(one) for place, one in enumerate(uses) if place not in gone_on}
    if not any(each.any() for each in among.values()):
        return found
    # The loop goes backwards, from the last operation to the first. `later` maps the id of each
    # drawn number to the noisy values of the operations seen so far. An operation is added to the
    # result if the output contains its noisy value and no later operation on the same drawn number
    # has an equal value: an operation that only adds 0 to a noisy value releases nothing more.
    later: dict[int, set[float]] = {}
    for place, one in reversed(list(enumerate(uses))):
        pieces = list(zip(np.ravel(one.ids).tolist(), np.ravel(one.value).tolist()))
        is_shown = among.get(place, ())
        if any(
            shown and float(value) not in later.get(number, ())
            for (number, value), shown in zip(pieces, is_shown)
        ):
            found.add(id(one))
        for number, value in pieces:
            later.setdefault(number, set()).add(float(value))
    return found


def _are_same(
    one: Use, other: Use, first: Recorder, second: Recorder, counterparts: dict[Moment, Any]
) -> bool:
    """Return whether two runs draw the noise of two operations in counterparts."""
    if np.shape(one.ids) != np.shape(other.ids) or not np.size(one.ids):
        return False
    before, after = (
        recorder.pieces.draw_of(int(np.ravel(use.ids)[0]))
        for recorder, use in ((first, one), (second, other))
    )
    return counterparts.get(before.moment) is after


def rescaled(first: Run, second: Run, alignment: dict[Any, Any]) -> Iterator[Spot]:
    """Yield the instructions that give noise that is not added to a number, is in the output of the
    first run, and has another scale in the second run."""
    numbers = _numbers(first)
    before, after = (one.recorder for one in (first, second))
    drawn = _counterparts(after, alignment)
    for moment, one in before.bare_noise.items():
        other = after.bare_noise.get(moment)
        if (
            other is None
            or not _are_same(one, other, before, after, drawn)
            or np.shape(one.value) != np.shape(other.value)
        ):
            continue
        scales, others = (
            np.abs(use.factor) * recorder.pieces.all_scales[use.ids]
            for recorder, use in ((before, one), (after, other))
        )
        tolerance = np.nan_to_num(_ROUNDING_OF_OUTPUT * scales)
        is_other = ~np.isclose(scales, others, rtol=_ROUNDING_SHARE, atol=0, equal_nan=True)
        if np.any(is_other & _are_among(one.value, numbers, tolerance)):
            yield moment[1]


def may_be_constant(run: Run) -> bool:
    """Return whether a number in the output that is taken for a noisy value may be a constant, such
    as the end of a bin: it equals a whole number, to which the run adds further noise."""
    uses = run.recorder.uses
    values = [uses[one.previous].value for one in uses if one.previous is not None]
    whole = [one for one in values if np.array_equal(one, np.round(one))]
    return any(_are_among(one, _numbers(run)).any() for one in whole)


def _numbers(run: Run) -> Any:
    numbers = [one for one in run.parts.values() if isinstance(one, (int, float))]
    return np.unique(np.array([one for one in numbers if not isinstance(one, bool)], dtype=float))


def _are_among(values: Any, numbers: Any, tolerance: Any = 0.0) -> Any:
    """Return a Boolean array: for each value, whether some entry of `numbers` differs from it by at
    most the tolerance.

    numbers: A sorted array.
    """
    array = np.asarray(values, dtype=float)
    if not len(numbers):
        return np.zeros(array.shape, dtype=bool)
    after = np.clip(np.searchsorted(numbers, array), 0, len(numbers) - 1)
    with np.errstate(invalid="ignore"):
        distance = np.minimum(
            np.abs(numbers[after] - array), np.abs(numbers[np.maximum(0, after - 1)] - array)
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
    """Find noise that is used twice (added to a number, or compared with it), where the two numbers
    change by different amounts from the first run to the second. The noise cancels in the
    difference of the two noisy values, so this difference shows data without noise. Return a list
    of (line of the draw, line of one use, line of the other use).

    run: The first run.
    pairs: The uses of noise (additions and comparisons) in the first run, each with its counterpart
        in the second run.
    delta: A comparison of noise with a bound, as in `max(noise, -20)`, shows nothing if the noise
        exceeds the bound with at most this probability.
    """
    first = run.recorder
    compared = {id(first.uses[one]) for one in first.compared if one is not None}
    many = len(first.pieces.laws)
    steps, owners = np.full(many, np.nan), np.full(many, -1)
    units = np.nan_to_num(first.pieces.all_scales)
    found: dict[tuple[Any, Any], tuple[Place, Place, Place]] = {}
    every = _needed_by_place(first, pairs)
    changes = np.zeros(many)
    for _, moved, ids in every:
        np.maximum.at(changes, ids, np.abs(moved))
    for place, moved, ids in every:
        one = pairs[place][0]
        if not moved.any() and _is_far(first, one, ids, changes, delta):
            continue
        fresh = np.isnan(steps[ids])
        steps[ids[fresh]], owners[ids[fresh]] = moved[fresh], place
        size = np.maximum(np.maximum(1.0, np.abs(moved)), units[ids])
        wrong = ids[np.abs(steps[ids] - moved) > _ROUNDING_SHARE * size]
        for owner in np.unique(owners[wrong]).tolist():
            before, number = pairs[owner][0], int(wrong[owners[wrong] == owner][0])
            is_shared = before is one and id(one) not in compared
            is_uniform = first.pieces.laws[number] == "uniform"
            if (is_shared or is_uniform) and not _shows_both(run, before, one):
                # Two cases are no error. One operation adds the same noise to several entries, and
                # only their sum is in the output, so no difference of two entries is seen. Or a
                # uniform number is compared with cumulative probabilities, to sample from a list.
                continue
            drawn = first.place(first.pieces.draw_of(number).moment)
            added = first.place(before.moment), first.place(one.moment)
            found.setdefault((before.moment[1], one.moment[1]), (drawn, *added))
    return list(found.values())


def _needed_by_place(first: Recorder, pairs: list[tuple[Use, Use]]) -> list[tuple[int, Any, Any]]:
    """Return (index, needed changes, ids of the drawn numbers) for each pair of uses whose operands
    have equal shapes."""
    every = [(place, one, needed_changes(one, other)) for place, (one, other) in enumerate(pairs)]
    return [
        (place, *_originals(first, np.ravel(moved), np.ravel(one.ids)))
        for place, one, moved in every
        if moved is not None
    ]


def _is_far(first: Recorder, use: Use, ids: Any, changes: Any, delta: float) -> bool:
    """Return whether a use compares noise with a bound that the noise exceeds with at most the
    probability `delta`, even if the noise changes as other uses need.

    ids: The ids of the drawn numbers.
    changes: By how much each drawn number changes at most, by its id.
    """
    laws = {first.pieces.laws[number] for number in ids.tolist()}
    if use.kind != "compare" or len(laws) != 1 or not laws <= _TAILS.keys():
        return False
    with np.errstate(all="ignore"):
        margins = np.abs(np.ravel(use.operand) / use.factor) - changes[ids]
        least = float(np.min(margins / first.pieces.all_scales[ids]))
    return least > 0 and len(ids) * _TAILS[laws.pop()](least) <= delta


def _originals(recorder: Recorder, moved: Any, ids: Any) -> tuple[Any, Any]:
    """Return (moved, ids), where ids of drawn numbers that repeat earlier numbers are replaced by
    the ids of these earlier numbers.

    moved: By how much each drawn number must change for an equal noisy value.
    """
    repeated = recorder.pieces.repeated
    if not repeated:
        return moved, ids
    known = [repeated.get(number, (number, 1.0)) for number in ids.tolist()]
    return moved / [ratio for _, ratio in known], np.array([number for number, _ in known], int)


def _shows_both(run: Run, before: Use, one: Use) -> bool:
    """Return whether the output of a run contains two noisy values that share a drawn number. Their
    difference then shows data without noise.

    before, one: The operations (additions or comparisons of noise) that made the two values. If
        both values are entries of one array, `before` and `one` are the same operation.
    """
    if before is one:
        numbers = np.ravel(one.ids)[are_released(run, one)]
        return len(np.unique(numbers)) < len(numbers)
    return all(each.kind == "add" and np.any(are_released(run, each)) for each in (before, one))


def moved_at(first: Recorder, second: Recorder, pairs: list[tuple[Use, Use]]) -> Iterator[Spot]:
    """Yield the instructions at which the program combines a noisy value with data a second time.
    There, the difference between the operands of the two runs (the numbers to which they add the
    noise) is not the same as at the previous use of the same noise.

    first, second: The records of both runs.
    pairs: The additions and comparisons of noise in the first run, each with its counterpart in the
        second run.
    """
    for one, other in pairs:
        if one.previous is None or other.previous is None:
            continue
        before = first.uses[one.previous], second.uses[other.previous]
        if not any(np.any(each.operand) for each in before):
            # Before this operation, no data had been added to the noise (the operand was 0), so
            # this is the first combination of the noise with data, not the second.
            continue
        steps = [needed_changes(one, other), needed_changes(*before)]
        if np.array_equal(one.factor, other.factor) and all(each is not None for each in steps):
            try:
                if np.allclose(steps[0], steps[1], rtol=_ROUNDING_SHARE, atol=_ROUNDING_SHARE):
                    continue
            except ValueError:  # the arrays have different shapes
                pass
        yield one.moment[1]


def needed_changes(one: Use, other: Use) -> Any:
    """Return by how much the noise must change from the first run to the second for an equal sum of
    noise and operand: (operand of `one` - operand of `other`) / factor. The operand is the number
    to which the noise, times the factor, is added. Infinite and undefined results are replaced by
    0. Return None if the operands have different shapes."""
    if np.shape(one.operand) != np.shape(other.operand):
        return None
    with np.errstate(all="ignore"):
        operands = (np.asarray(each.operand, dtype=float) for each in (one, other))
        moved = np.subtract(*operands) / one.factor
    return np.where(np.isfinite(moved), moved, 0.0)


def control_flow_of(first: Run, second: Run) -> ControlFlow | None:
    """Return the point at which two runs take different paths through the code; None if the paths
    are equal. If some lines are executed by one run only, return the point before the last group of
    successive such lines. If both runs execute the same lines, return the first point at which
    their order differs."""
    if first.lines == second.lines:
        return None
    one, other = _without_repeats(first.lines), _without_repeats(second.lines)
    only = set(one) ^ set(other)
    return _before_last(one, other, only) if only else _first_turn(first.lines, second.lines)


def _first_turn(one: list[Line], other: list[Line]) -> ControlFlow | None:
    """Return the first point at which the sequences of executed lines of two runs differ; None if
    their first lines differ."""
    shared = min(len(one), len(other))
    place = next((place for place in range(shared) if one[place] != other[place]), shared)
    following = [_maybe(lines[place]) if place < len(lines) else None for lines in (one, other)]
    return ControlFlow(_place(one[place - 1]), (following[0], following[1])) if place else None


def _before_last(one: list[Line], other: list[Line], only: set[Line]) -> ControlFlow | None:
    """Find the last consecutive lines that only one of two runs executes. Return the point before
    these lines, at which the paths of the runs separate. If both runs have such lines, those nearer
    to the end of their run count. Return None if no line is executed before such lines.

    one, other: The executed lines of both runs.
    only: The lines that only one run executes.
    """
    found: tuple[int, int, Line | None] | None = None
    for which, lines in enumerate((one, other)):
        places = [place for place, line in enumerate(lines) if line in only]
        if not places:
            continue
        begin = places[-1]
        while begin and lines[begin - 1] in only:
            begin -= 1
        left = len(lines) - places[-1]
        if begin and (found is None or left < found[0]):
            found = left, which, lines[begin - 1]
            way = lines[begin]
            following: list[Line | None] = [None, None]
            following[which] = way
            rest = (other, one)[which]
            after = [place for place, line in enumerate(rest[:-1]) if line == lines[begin - 1]]
            following[1 - which] = next(
                (rest[place + 1] for place in reversed(after) if rest[place + 1] != way), None
            )
            best = ControlFlow(
                _place(lines[begin - 1]), (_maybe(following[0]), _maybe(following[1]))
            )
    return None if found is None else best


def _without_repeats(lines: list[Line]) -> list[Line]:
    """Return the executed lines, each once, in the order of their last executions."""
    last = {line: place for place, line in enumerate(lines)}
    return [line for place, line in enumerate(lines) if last[line] == place]


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
