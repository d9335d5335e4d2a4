"""Find noise that the output shows only indirectly, such as a uniform number that the program turns
into noise with an inverse distribution function. The output is computed again on the second input
with other values of the noise, until it equals the output of the first input."""

from __future__ import annotations

import copy
import math
from functools import partial
from itertools import islice, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .comparing import are_released, matched, needed_changes, unused_draws
from .differences import Hidden
from .places import place_of
from .running import MissingEntry, briefly, same, same_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .differences import RunDifferences
    from .noise_log import Recorder
    from .places import Place, Spot
    from .replaying import Draw, Entry, Moment
    from .running import Coupler, Run


# The outputs for two inputs differ, but another value of a drawn number may make them equal: this
# number then hides the difference. To find the number, each drawn number of a run is changed, in
# one further run each. If a run draws more numbers than this, no search is made.
_MAX_PIECES = 32
# To see whether the output depends on a uniform number, the number is increased by this share of
# the width of its range (modulo the width). The share is no simple fraction, since the output of a
# program with a sign or a period may be equal after, say, half the width.
_SHIFT = 0.382
# If more entries of the output than this differ between two runs, no search is made for the uniform
# numbers that hide the differences.
_MAX_PARTS = 8
# If the entry of the output depends on random choices with more combinations of outcomes than this,
# only the present combination is examined.
_MAX_WAYS = 8
# Grid for the search of the uniform number that gives a wanted output. Its points lie at these
# distances from either end of the number's range, as shares of the width of the range. (Laplace
# noise of 30 scales needs a distance of 1e-13.) If the outputs of two neighbouring points lie on
# both sides of the wanted output, bisection between the points follows. Methods with derivatives
# may fail: inverse distribution functions are steep at the ends of the range, and may have a kink.
_DISTANCES = (1e-300, 1e-30, 2e-16, 1e-10, 1e-6, 1e-3, 0.02, 0.1, 0.25, 0.4, 0.5)
# Number of bisection steps for a uniform number. Each step halves the interval on a logarithmic
# scale of the distance to an end of the range. After 60 steps, even the largest interval, from
# 1e-300 to 1e-30, has a relative width below 1e-15.
_BISECTION_STEPS = 60
# A uniform number is sought that gives a wanted output. Near an end of its range, the spacing of
# floats (up to 1e-16 at an end other than 0) may be too coarse for any float to give this output
# exactly. So if the number is fewer than `_COARSE_SPACINGS` spacings from an end, its output may
# miss the wanted output by the share `_MISSED_SHARE` of the difference that the noise hides.
_COARSE_SPACINGS = 1e5
_MISSED_SHARE = 0.01
# Step of a uniform number for the numerical derivative of the output: the share `_STEP_SHARE` of
# the number's distance to the nearer end of its range, but at least `_MIN_STEP_SPACINGS` spacings
# of floats. If the step exceeds the share `_MAX_STEP_SHARE` of the distance, no derivative is
# computed.
_STEP_SHARE, _MIN_STEP_SPACINGS, _MAX_STEP_SHARE = 1e-4, 16, 0.25
# A numerical derivative of the output is used only if the output changes by at least this number of
# spacings of floats: rounding errors are then negligible.
_MIN_CHANGE_SPACINGS = 1e6


class Effects(NamedTuple):
    """The uniform numbers that hide the differences between the outputs of two runs.

    hidden: One such number for each part that differs. It is empty if some part has no such number.
    decisions: The choices, such as the sign of the noise, that the costs in `hidden` include.
    """

    hidden: list[Hidden]
    decisions: frozenset[Moment] = frozenset()


def by_effect(coupler: Coupler, first: Run, second: Run) -> Effects:
    """Find, for each part that differs between two runs, a uniform number that explains the
    difference. The part must depend on no other uniform number, but may depend on choices. With
    another value of this number, the second input must give the part of the first run."""
    names = [name for name in first.parts if not same(first.parts[name], second.parts.get(name))]
    entries = [run.parts.get(name) for name in names for run in (first, second)]
    pieces = list(islice(_pieces(second), _MAX_PIECES + 1))
    are_numbers = all(isinstance(value, (int, float)) for value in entries)
    if len(names) > _MAX_PARTS or len(pieces) > _MAX_PIECES or not are_numbers:
        return Effects([])

    def run_with(overrides: dict[Any, Any], which: int) -> Run:
        return coupler.run(which, overrides, reference=first)

    def is_moved(name: str, run: Run, which: int = 1) -> bool:
        return not same((first, second)[which].parts[name], run.parts.get(name))

    moved, flipped = _effects_of_all(run_with, pieces, second.recorder, names, is_moved)
    overrides: dict[Any, Any] = {}
    reached: list[tuple[_Wanted, float]] = []
    hidden: list[Hidden] = []
    counted: set[Moment] = set()
    for name in names:
        candidates = [p for p, run in zip(pieces, moved) if len(pieces) == 1 or is_moved(name, run)]
        piece = candidates[0] if len(candidates) == 1 else None
        if piece is None or piece.ends is None:
            return Effects([])
        chosen = [choice for choice, runs in flipped if any(is_moved(name, *run) for run in runs)]
        values = float(first.parts[name]), float(second.parts[name])
        ways = _ways(chosen)
        wanted = [
            _Wanted(partial(_at, run_with, piece.entry, way), name, values, piece.ends)
            for way, _ in ways
        ]
        numbers = [search.solution() for search in wanted]
        index = next((i for i, number in enumerate(numbers) if number is not None), None)
        if index is None:
            return Effects([])
        for entry, value in {**ways[index][0], piece.entry: numbers[index]}.items():
            overrides.setdefault(entry, value)
        reached.append((wanted[index], overrides[piece.entry]))
        counted.update(choice.entry[0] for choice in chosen if len(ways) > 1)
        densities = [
            _density(wanted, [piece.value, *(s.solution(0) for s in wanted[1:])], ways, 0),
            _density(wanted, numbers, ways, 1),
        ]
        hidden.append(_hidden(first, second, name, piece, densities))
    again = run_with(overrides, 1)
    are_equal = same_output(first, again, besides=names)
    is_found = are_equal and all(search.is_reached(at, run=again) for search, at in reached)
    return Effects(hidden, frozenset(counted)) if is_found else Effects([])


def _effects_of_all(
    run_with: Callable[..., Run],
    pieces: list[_DrawnNumber],
    recorder: Recorder,
    names: list[str],
    is_moved: Callable[..., bool],
) -> tuple[list[Run], list[tuple[_ChoiceOdds, list[tuple[Run, int]]]]]:
    """Return the runs with other values of the drawn numbers, and of the random choices."""
    every = _decisions(recorder)
    # A number counts as the outcome of its comparison with another number if it has no other
    # effect on the output.
    moved = [
        run_with({piece.entry: piece.elsewhere, **_held(every, piece, recorder)}, 1)
        for piece in pieces
    ]
    effective = [
        piece
        for piece, run in zip(pieces, moved)
        if len(pieces) == 1 or any(is_moved(name, run) for name in names)
    ]
    held = {entry for piece in effective for entry in _held(every, piece, recorder)}
    decisions = [decision for decision in every if decision.entry not in held]
    flipped = [
        [
            (run_with({decision.entry: value}, which), which)
            for value, _ in decision.outcomes
            if value != decision.value
            for which in (0, 1)
        ]
        for decision in decisions
    ]
    return moved, list(zip(decisions, flipped))


class _ChoiceOdds(NamedTuple):
    """A random choice with few outcomes: (value, probability) for each of them."""

    entry: Entry
    value: Any
    outcomes: tuple[tuple[Any, float], ...]
    ids: tuple[int, ...] = ()


def _decisions(recorder: Recorder) -> list[_ChoiceOdds]:
    """Return the choices of a run; an empty list if there are too many."""
    decisions: list[_ChoiceOdds] = []
    for coin in recorder.choices:
        every = (np.ravel(column).tolist() for column in (coin.values, coin.probability, coin.ids))
        for index, (value, p, number) in enumerate(zip(*every)):
            if 0 < p < 1:
                coins = (True, p), (False, 1 - p)
                decisions.append(_ChoiceOdds((coin.moment, index), value, coins, (number,)))
    for draw in recorder.draws:
        for index, value in enumerate(np.ravel(draw.values).tolist() if draw.outcomes else ()):
            law = tuple((outcome, p) for outcome, p in draw.outcomes or () if p > 0)
            decisions.append(_ChoiceOdds((draw.moment, index), value, law))
    return (
        decisions if sum(len(decision.outcomes) for decision in decisions) <= _MAX_OUTCOMES else []
    )


def _held(
    decisions: list[_ChoiceOdds], piece: _DrawnNumber, recorder: Recorder
) -> dict[Entry, Any]:
    """Return the outcomes that the comparisons of a drawn number have in the run."""
    number = piece.draw.first + piece.position
    return {
        decision.entry: decision.value
        for decision in decisions
        if any(number in recorder.pieces.parts_of(compared) for compared in decision.ids)
    }


def _ways(decisions: list[_ChoiceOdds]) -> list[tuple[dict[Entry, Any], float]]:
    """Return (outcomes, probability) of each branch; if there are many, of the present one only."""
    count = math.prod(len(decision.outcomes) for decision in decisions)
    present = {decision.entry: decision.value for decision in decisions}
    if not decisions or count > _MAX_WAYS:
        return [({}, 1.0)]
    ways = [
        (
            {decision.entry: v for decision, (v, _) in zip(decisions, combination)},
            math.prod(p for _, p in combination),
        )
        for combination in product(*(decision.outcomes for decision in decisions))
    ]
    return sorted(ways, key=lambda way: way[0] != present)


def _density(
    wanted: list[_Wanted],
    numbers: list[float | None],
    ways: list[tuple[dict[Entry, Any], float]],
    which: int,
) -> _Slope | None:
    """Return the density of the wanted part on an input; None if it is not precise."""
    total, error = 0.0, 0.0
    for search, number, (_, chance) in zip(wanted, numbers, ways):
        if number is None:
            continue
        slope = search.slope(number, which)
        if slope is None or not slope.value:
            return None
        total += chance / abs(slope.value)
        error = max(error, slope.error)
    return _Slope(total, error) if total else None


# To see which draws reach the output, the numbers of at most this many instructions are changed, in
# a run each.
_MAX_FILLS = 8
# First seed, and number, of the runs with new values of all other noise that must confirm that an
# entry of the output shows noise by itself.
_CONFIRMING_SEED, _CONFIRMING_RUNS = 3_000, 24


def noise_alone(coupler: Coupler, first: Run, second: Run) -> tuple[tuple[Place, Place, str], ...]:
    """Find noise that hides a change of a released value, and on which another part depends, too.
    Both together show the value without noise. Return (line of the draw, line of the addition,
    part) for the first such noise, in a tuple, which is empty if there is none.

    For the second input, an equal noisy value needs other noise, which differs by the change of the
    value. A run that has this noise, and repeats the noisy values, gives another value of a part
    that depends on the noise in another way. The part depends on this noise alone if new values of
    all other noise leave it unchanged.
    """
    noisy = {number for use in first.recorder.uses for number in np.ravel(use.value).tolist()}
    every = [
        name
        for name, value in first.parts.items()
        if not name.startswith("len(") and not name.endswith(".shape") and value not in noisy
    ]
    for added, (values, moved) in _moved(coupler, first, second).items() if every else ():
        recorder = copy.copy(first.recorder)
        recorder.by_moment = dict(recorder.by_moment)
        for moment in {moment for moment, _ in moved}:
            draw = recorder.by_moment[moment]
            recorder.by_moment[moment] = draw._replace(values=np.array(draw.values))
        for (moment, index), value in moved.items():
            recorder.by_moment[moment].values.flat[index] = value
        again = coupler.run(1, reference=first._replace(recorder=recorder))
        if again.error is not None or _drawn(again) != _drawn(first):
            continue  # the program refused the moved noise, or drew again in its place
        names = [name for name in every if not _is_equal(name, second, again)]
        for seed in range(_CONFIRMING_SEED, _CONFIRMING_SEED + _CONFIRMING_RUNS if names else 0):
            new_run = coupler.run(0, values, seed=seed)
            names = [name for name in names if _is_equal(name, first, new_run)]
        if names:
            return ((place_of(next(iter(values))[0][1]), place_of(added), names[0]),)
    return ()


def lost_fills(coupler: Coupler, first: Run) -> frozenset[Moment]:
    """Return the draws of the first run that fill memory in place and do not reach the output. An
    example are first weights that a program overwrites."""
    fills: dict[Spot, dict[Entry, float]] = {}
    unused = {draw.moment for draw in unused_draws(first.recorder) if draw.is_fill}
    for piece in _pieces(first) if unused else ():
        if piece.draw.moment in unused and piece.position < _MAX_PIECES:
            fills.setdefault(piece.draw.moment[1], {})[piece.entry] = piece.elsewhere
    together = {entry: value for overrides in fills.values() for entry, value in overrides.items()}
    if not unused or same_output(first, coupler.run(0, together)):
        return frozenset(unused)
    lost = {
        spot
        for spot in islice(fills, _MAX_FILLS)
        if same_output(first, coupler.run(0, fills[spot]))
    }
    return frozenset(moment for moment in unused if moment[1] in lost)


def _drawn(run: Run) -> list[Moment]:
    return [draw.moment for draw in run.recorder.draws]


def _moved(coupler: Coupler, first: Run, second: Run) -> dict[Spot, tuple[dict[Entry, Any], ...]]:
    """Return, by spot, the values of released noise, and the values that hide the change."""
    recorder, outputs = first.recorder, {*first.parts.values()}
    # Other noise, added later, may be small beside this noise. It still hides the value, unless the
    # output contains the value exactly.
    summed = {number for a, _, b, _ in recorder.pieces.parts.values() for number in (a, b)}
    changes: dict[Any, tuple[dict[Any, Any], ...]] = {}
    for first_use, second_use in matched(recorder, second.recorder, dict(coupler.alignment or {})):
        steps = needed_changes(first_use, second_use)
        if first_use.kind != "add" or steps is None or not np.any(steps):
            continue
        are_moved = are_released(first, first_use) & (np.ravel(steps) != 0)
        moved_ones = (
            np.ravel(column)[are_moved] for column in (first_use.ids, first_use.value, steps)
        )
        for number, value, step in zip(*moved_ones):
            draw = recorder.pieces.draw_of(number)
            is_shown = number not in summed or value in outputs
            if is_shown and number not in recorder.pieces.parts and draw.values is not None:
                entry = draw.moment, number - draw.first
                values, moved = changes.setdefault(first_use.moment[1], ({}, {}))
                values[entry] = np.ravel(draw.values)[entry[1]].item()
                moved[entry] = values[entry] + step.item()
    return changes


def _is_equal(name: str, first: Run, second: Run) -> bool:
    return same(first.parts.get(name, MissingEntry), second.parts.get(name, MissingEntry))


class _DrawnNumber(NamedTuple):
    """A number that a run draws.

    position: Its index among the numbers of its draw.
    ends: The ends of its range if it is uniform; None for another distribution.
    """

    draw: Draw
    position: int
    value: float
    ends: tuple[float, float] | None

    @property
    def entry(self) -> Any:
        return self.draw.moment, self.position

    @property
    def elsewhere(self) -> float:
        """Another possible value of the number, which shows whether the output depends on it."""
        if self.ends is not None:
            low, width = self.ends[0], self.ends[1] - self.ends[0]
            return low + ((self.value - low) / width + _SHIFT) % 1 * width
        return self.value + max(1.0, abs(self.value))


def _at(
    run_with: Callable[..., Run], entry: Entry, way: dict[Entry, Any], number: float, which: int
) -> Run:
    return run_with({**way, entry: number}, which)


def _hidden(
    first: Run, second: Run, name: str, piece: _DrawnNumber, densities: Sequence[_Slope | None]
) -> Hidden:
    """Return the record of a uniform number that hides the difference of a part."""
    draw = piece.draw
    cost = None
    first_density, second_density = densities
    if first_density is not None and second_density is not None:
        cost = max(
            0.0,
            abs(math.log(first_density.value / second_density.value))
            - first_density.error
            - second_density.error,
        )
    scales = np.broadcast_to(draw.scale or math.nan, np.shape(draw.values))
    scale = float(np.ravel(scales)[piece.position])
    where = first.recorder.place(draw.moment)
    return Hidden(
        draw=where,
        added=where,
        kind="effect",
        primitive=draw.primitive,
        law="unknown" if cost is None else draw.law,
        operands=(briefly(first.parts[name]), briefly(second.parts[name])),
        shifts=[abs(first.parts[name] - second.parts[name])],
        scales=([scale], [scale]),
        released=[True],
        pieces=[draw.first + piece.position],
        parameters=(dict(draw.parameters), dict(draw.parameters)),
        cost=cost,
    )


def _pieces(second: Run) -> Iterator[_DrawnNumber]:
    """Yield a `_DrawnNumber` for each float that a run draws."""
    for draw in second.recorder.draws:
        if draw.values is not None and np.asarray(draw.values).dtype.kind == "f":
            shape = np.shape(draw.values)
            low = np.ravel(np.broadcast_to(draw.parameters.get("low", 0.0), shape))
            width = np.ravel(np.broadcast_to(draw.scale or math.nan, shape))
            for index, value in enumerate(np.ravel(draw.values).tolist()):
                ends = None
                if draw.law == "uniform" and width[index] > 0:
                    ends = float(low[index]), float(low[index] + width[index])
                yield _DrawnNumber(draw, index, float(value), ends)


class _Wanted(NamedTuple):
    """A search for a value of a uniform number with which the second input gives a part of the
    first run.

    at: Maps a value of the uniform number, and the index of an input, to a run with this value.
    values: The part in the runs on the first and on the second input with the same noise.
    ends: The lower and upper end of the range of the uniform number.
    """

    at: Callable[[float, int], Run]
    name: str
    values: tuple[float, float]
    ends: tuple[float, float]

    def solution(self, which: int = 1) -> float | None:
        """Return the uniform number that gives the wanted part; None if the search finds none."""
        # It finds none if no two neighbouring points of the grid `_DISTANCES` enclose the number,
        # or if a jump of the output is there instead.
        for end in (0, 1):
            previous: tuple[float, bool] | None = None
            for distance in _DISTANCES:
                is_below = self._is_below(end, distance, which)
                if is_below is None:
                    previous = None
                    continue
                if previous is not None and previous[1] != is_below:
                    number = self._bisected(end, previous[0], distance, previous[1], which)
                    is_reached = number is not None and self.is_reached(number, which)
                    return number if is_reached else None
                previous = distance, is_below
        return None

    def is_reached(self, number: float, which: int = 1, run: Run | None = None) -> bool:
        """Return whether a run on an input with this uniform number gives the wanted part."""
        # Near an end of the range, floats may be too far apart to give the entry exactly. Then it
        # may differ by at most 1 % (`_MISSED_SHARE`) of the difference that the noise hides.
        value = _part(run or self.at(number, which), self.name)
        if value is None or same(value, self.values[0]):
            return value is not None
        missed, hidden = abs(value - self.values[0]), abs(self.values[1] - self.values[0])
        return _spacings(number, self.ends) < _COARSE_SPACINGS and missed <= _MISSED_SHARE * hidden

    def slope(self, number: float, which: int) -> _Slope | None:
        """Return the derivative of the part by the uniform number; None if 0 or not precise."""
        spacings = _spacings(number, self.ends)
        share = max(_STEP_SHARE, _MIN_STEP_SPACINGS / max(spacings, 1.0))
        if share > _MAX_STEP_SHARE:
            return None
        step = share * min(number - self.ends[0], self.ends[1] - number)
        below, above = number - step, number + step
        low, high = _part(self.at(below, which), self.name), _part(self.at(above, which), self.name)
        if low is None or high is None:
            return None
        if abs(high - low) < _MIN_CHANGE_SPACINGS * float(np.spacing(max(abs(low), abs(high)))):
            return None
        # The error is the sum of two relative errors. That of a difference quotient grows with the
        # square of the step. That of the uniform number is one spacing of floats, divided by the
        # distance to the end of its range.
        return _Slope((high - low) / (above - below), share**2 + 1 / spacings)

    def _number(self, end: int, distance: float) -> float:
        step = distance * (self.ends[1] - self.ends[0])
        return self.ends[0] + step if end == 0 else self.ends[1] - step

    def _is_below(self, end: int, distance: float, which: int) -> bool | None:
        value = _part(self.at(self._number(end, distance), which), self.name)
        return None if value is None else value < self.values[0]

    def _bisected(
        self, end: int, near: float, far: float, is_below: bool, which: int
    ) -> float | None:
        """Find by bisection the number that gives the wanted entry, between two distances."""
        # Make all bisection steps, even after the output equals the wanted entry up to rounding:
        # the privacy cost is computed from the slope of the output at the uniform number. Where the
        # output is steep, a small error of this number changes the slope.
        for _ in range(_BISECTION_STEPS):
            middle = math.sqrt(near * far)
            is_middle_below = self._is_below(end, middle, which)
            if is_middle_below is None:
                return None
            near, far = (middle, far) if is_middle_below == is_below else (near, middle)
        return self._number(end, near)


class _Slope(NamedTuple):
    """A derivative by a uniform number, or a density, and its largest relative error."""

    value: float
    error: float


def _spacings(number: float, ends: tuple[float, float]) -> float:
    """Return the distance of a number to the nearer end of its range, in spacings of floats."""
    return min(number - ends[0], ends[1] - number) / float(np.spacing(abs(number)))


def _part(run: Run, name: str) -> float | None:
    value = run.parts.get(name)
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


# To see whether the output contains a uniform number, the number is set to a value near each end of
# its range. Distance of these values to the end, as a share of the width of the range.
_END_SHARE = 1e-6


def by_range(coupler: Coupler, comparison: RunDifferences, first: Run) -> RunDifferences:
    """Return the comparison of two runs with `released` corrected for uniform noise.

    One run may contain a noisy value by chance, although the program computes, say, the sum modulo
    another number. So each uniform number is set near the lower and near the upper end of its
    range, in runs on both inputs. `released` stays True only if all four outputs contain the noisy
    value.
    """
    hidden = [
        noise._replace(released=[False] * len(noise.released))
        if _may_be_released(noise) and not _is_at_its_ends(coupler, noise, first)
        else noise
        for noise in comparison.hidden
    ]
    return comparison._replace(hidden=hidden)


def _may_be_released(noise: Hidden) -> bool:
    is_moved = any(map(all, zip(noise.released, noise.shifts)))
    return noise.law == "uniform" and noise.kind != "effect" and is_moved


def _is_at_its_ends(coupler: Coupler, noise: Hidden, first: Run) -> bool:
    number = noise.pieces[[*map(all, zip(noise.released, noise.shifts))].index(True)]
    draw = first.recorder.pieces.draw_of(number)
    if draw.values is None:
        return False
    index, shape = number - draw.first, np.shape(draw.values)
    low, width = (
        float(np.ravel(np.broadcast_to(value, shape))[index])
        for value in (draw.parameters.get("low", 0.0), draw.scale)
    )
    for end in (low + _END_SHARE * width, low + (1 - _END_SHARE) * width):
        for which in (0, 1):
            entry = draw.moment, index
            if _shown(coupler.run(which, {entry: end}), entry) != _shown(first, entry):
                return False
    return True


def _shown(run: Run, entry: Entry) -> set[Spot]:
    """Return the spots that use a drawn number and whose noisy value the output contains."""
    draw = run.recorder.by_moment.get(entry[0])
    if draw is None:
        return set()
    number = draw.first + entry[1]
    uses = [use for use in run.recorder.uses if number in np.ravel(use.ids)]
    return {
        use.moment[1] for use in uses if are_released(run, use)[np.ravel(use.ids) == number].any()
    }


# To see whether noise decides a comparison, drawn numbers that are compared with other numbers are
# set to rare values in further runs. To limit the number of runs, only the first ones, up to this
# number, are set.
_MAX_DECIDING_PIECES = 32
# To see whether a random choice, such as a coin or a die, decides an entry of the output, each of
# its other outcomes is tried in a further run. If the choices of a run have more other outcomes
# than this, no such run is made, and no entry is called free of noise.
_MAX_OUTCOMES = 64
# Less probable outcomes are not tried. It is the probability of the rare values of other noise.
_MIN_PROBABILITY = 1e-4
# Maps each distribution to its quantiles for the probabilities 10⁻⁴ and 1 - 10⁻⁴, at scale 1.
_RARE = {
    "laplace": (-8.5, 8.5),
    "normal": (-3.7, 3.7),
    "logistic": (-9.2, 9.2),
    "gumbel": (-2.2, 9.2),
    "exponential": (0.0, 9.2),
    "geometric": (1.0, 10.2),
    "cauchy": (-3200.0, 3200.0),
}


def is_decided(
    runs: tuple[Sequence[Run], Sequence[Run]],
    rare: Callable[[int], Sequence[Run] | None],
    valued: Callable[[Run], Any],
) -> bool:
    """Return whether a value that is constant in the runs of an input may depend on noise. It may
    if, in runs with rare noise, each input gives a value that the other input gave, or if such runs
    are too many to make.

    runs: The earlier runs on d1 and on d2.
    rare: Maps the index of an input to the runs that `rare_runs` returns.
    valued: Returns the value in a run.
    """
    for which in (0, 1):
        wanted = [valued(run) for run in runs[1 - which]]
        tried = rare(which)
        if tried is not None and not any(
            _alike(valued(run), value) for run in tried for value in wanted
        ):
            return False
    return True


def rare_runs(coupler: Coupler, which: int, first: Run) -> list[Run] | None:
    """Return further runs on an input, in which noise has values that it rarely has. Either one
    choice or all choices have another outcome, or numbers that are compared are set to the
    quantiles for 10⁻⁴ or 1 - 10⁻⁴ of their distributions. Return None if this needs too many runs.

    first: A run on this input with the seed of the coupler.
    """
    settings = list(islice(_other_outcomes(first.recorder), _MAX_OUTCOMES + 1))
    if len(settings) > _MAX_OUTCOMES:
        return None
    if len(together := {key: value for setting in settings for key, value in setting.items()}) > 1:
        settings.append(together)
    return [coupler.run(which, setting) for setting in (*settings, *_rare(first.recorder))]


def _alike(first: Any, second: Any) -> bool:
    return type(first) is type(second) and same(first, second)


def _rare(recorder: Recorder) -> Iterator[dict[Entry, float]]:
    """Yield settings in which one compared number, or all of them, have rare quantiles."""
    pieces = list(islice(_compared(recorder), _MAX_DECIDING_PIECES))
    for end in (0, 1):
        yield from ({entry: ends[end]} for entry, ends in pieces)
        if len(pieces) > 1:
            yield {entry: ends[end] for entry, ends in pieces}


def _other_outcomes(recorder: Recorder) -> Iterator[dict[Entry, Any]]:
    """Yield settings in which one choice of a run has another outcome."""
    for coin in recorder.choices:
        chances = np.ravel(coin.probability).tolist()
        for index, value in enumerate(np.ravel(coin.values).tolist()):
            if _MIN_PROBABILITY <= (1 - chances[index] if value else chances[index]) < 1:
                yield {(coin.moment, index): not value}
    for draw in recorder.draws:
        for index, value in enumerate(np.ravel(draw.values).tolist() if draw.outcomes else ()):
            for outcome, chance in draw.outcomes or ():
                if chance >= _MIN_PROBABILITY and outcome != value:
                    yield {(draw.moment, index): outcome}


def _compared(recorder: Recorder) -> Iterator[tuple[Entry, tuple[float, float]]]:
    """Yield (entry, rare quantiles) for each drawn number that a run compares."""
    compared = {
        piece
        for use in recorder.uses
        if use.kind == "compare"
        for number in np.ravel(use.ids).tolist()
        for piece in recorder.pieces.parts_of(number)
    }
    for draw in recorder.draws:
        if draw.law not in _RARE or draw.scale is None:
            continue
        low, high = _RARE[draw.law]
        scales = np.ravel(np.broadcast_to(draw.scale, np.shape(draw.values))).tolist()
        for index, scale in enumerate(scales):
            if draw.first + index in compared:
                yield (draw.moment, index), (low * scale, high * scale)
