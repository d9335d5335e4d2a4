"""Parts (entries) of the output that occur on only one input, and only if noise passes a threshold,
such as a rare key of a noisy histogram."""

from __future__ import annotations

import math
from itertools import combinations, islice, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .places import place_of
from .running import same_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .places import Place
    from .replaying import Draw, Entry, Use
    from .running import Coupler, Run


# Largest number of comparisons that are forced, and the value, in scales, to which their noise is
# set.
_MOST, _FAR = 16, 1e6
# Largest number of comparisons of which all pairs are forced, and number of rounds in which further
# comparisons are sought.
_BOTH, _ROUNDS = 6, 8
# First seed of the runs with other noise, and number of these runs.
_OTHERS, _OFTEN = 5_000, 12
_TAILED = ("laplace", "normal", "logistic", "cauchy", "discrete")


class _Compared(NamedTuple):
    """A comparison of one noised value with 0. The noised value is operand + factor × noise.

    use: The record of the comparison.
    draw: The draw of the noise.
    entry: The moment of the draw, and the index of the noise in the draw.
    scale: The scale of the noise.
    factor: The factor of the noise.
    operand: The number that the noise hides, minus the threshold.
    """

    use: Use
    draw: Draw
    entry: Entry
    scale: float
    factor: float
    operand: float

    @property
    def side(self) -> int:
        """The sign of the noise that makes the noised value larger: 1 or -1."""
        return 1 if self.factor > 0 else -1


class ThresholdLeak(NamedTuple):
    """A part (entry) of the output that occurs on only one input, and only if noise exceeds a
    margin.

    draw: The line that draws the noise.
    compared: The line that compares the noised value with the threshold.
    part: The name of the part, or a text in the output.
    law: The name of the distribution of the noise, such as `laplace`.
    scale: The scale of the noise.
    margin: The number that the noise must exceed.
    callers: The lines from which the draw was called, innermost first.
    """

    draw: Place
    compared: Place
    part: str
    law: str
    scale: float
    margin: float
    callers: tuple[Place, ...]


def threshold_leaks(
    coupler: Coupler, runs: tuple[Run, Run], is_never: Callable[[str], bool]
) -> list[ThresholdLeak]:
    """Return the parts of the output that occur only on the second input, and only if noise passes
    a threshold.

    runs: The runs on the first and on the second input, with the same noise.
    is_never: A function that returns whether a part occurs in no run of the first input with
        independent noise.
    """
    first, second = runs
    if first.error is not None or second.error is not None:
        return []
    every = [list(islice(_compared(one), _MOST + 1)) for one in runs]
    ours, theirs = ([one for one in some if one is not None] for some in every)
    if len(ours) < len(every[0]) or max(map(len, every)) > _MOST:
        return []  # the parts that the first input can have cannot all be tried

    def pushed(which: int, pushes: Iterable[tuple[_Compared, int]]) -> Run:
        overrides = {one.entry: sign * one.side * _FAR * one.scale for one, sign in pushes}
        return coupler.run(which, overrides, reference=first)

    # Parts that occur on the first input for some noise.
    known = marks(first)
    for pushes in _forced(ours):
        known.update(marks(pushed(0, pushes)))
    for sign in (1, -1):
        known.update(_far_out(pushed, ours, sign))
    found = []
    for one in theirs:
        ends = pushed(1, [(one, 1)]), pushed(1, [(one, -1)])
        for sign, shown, hidden in ((1, *ends), (-1, *ends[::-1])):
            alone = [mark for mark in marks(shown) if mark not in known and is_never(mark)]
            if not (alone and same_output(first, hidden)):
                continue
            beyond = {one.entry: sign * one.side * _FAR * one.scale}
            # The part must occur with other noise, too. If it depends on other noise, such as for
            # the winner of several, its probability is smaller than the margin suggests.
            seeds = range(_OTHERS, _OTHERS + _OFTEN)
            if all(alone[0] in marks(coupler.run(1, beyond, seed=seed)) for seed in seeds):
                found.append(_leak(one, alone[0], sign))
    return found


def _forced(ours: Sequence[_Compared]) -> Iterator[list[tuple[_Compared, int]]]:
    """Yield lists of (comparison, sign) to force together: each single comparison, then each pair
    if there are at most 6 comparisons. Sign 1 forces the noised value above the threshold."""
    for one in ours:
        yield from ([(one, sign)] for sign in (1, -1))
    for pair in combinations(ours, 2) if len(ours) <= _BOTH else ():
        yield from ([*zip(pair, signs)] for signs in product((1, -1), repeat=2))


def _far_out(
    pushed: Callable[[int, Iterable[tuple[_Compared, int]]], Run],
    ours: Sequence[_Compared],
    sign: int,
) -> dict[str, None]:
    """Return the parts of the output on the first input when all its comparisons are forced to one
    side. Forced comparisons may lead to further comparisons, which are forced, too."""
    every = {one.entry: one for one in ours}
    for _ in range(_ROUNDS):
        forced = pushed(0, [(one, sign) for one in every.values()])
        found = islice(_compared(forced), 2 * _MOST)
        more = {one.entry: one for one in found if one is not None}
        if more.keys() <= every.keys():
            break
        every.update(more)
    return marks(forced)


def marks(one: Run) -> dict[str, None]:
    """Return the names of the parts (entries) of an output, and the texts in the output."""
    found: dict[str, None] = {}
    for value in one.parts.values():
        if isinstance(value, (str, bytes)):
            found[repr(value)] = None
        elif isinstance(value, tuple):
            found.update(dict.fromkeys(map(str, value)))
    found.update(dict.fromkeys(one.parts))
    return found


def _leak(one: _Compared, part: str, sign: int) -> ThresholdLeak:
    return ThresholdLeak(
        place_of(one.draw.moment[1]),
        place_of(one.use.moment[1]),
        part,
        one.draw.law,
        abs(one.factor) * one.scale,
        -sign * one.operand,
        tuple(map(place_of, one.draw.callers)),
    )


def _compared(one: Run) -> Iterator[_Compared | None]:
    """Yield the comparisons of noised values in a run, one for each entry of an array. Yield None
    for a comparison whose noise has an unknown law or scale."""
    recorder, pieces = one.recorder, one.recorder.pieces
    for use in recorder.uses:
        if use.kind != "compare":
            continue
        columns = (np.ravel(each).tolist() for each in (use.ids, use.factor, use.operand))
        for number, factor, operand in zip(*columns):
            draw, scale = pieces.draw_of(number), pieces.scales[number]
            is_known = draw is not None and draw.law in _TAILED and draw.values is not None
            is_single = pieces.parts_of(number) == (number,)
            if draw is None or not (is_known and is_single and math.isfinite(scale) and scale > 0):
                yield None
                continue
            entry = draw.moment, number - draw.first
            yield _Compared(use, draw, entry, scale, float(factor), float(operand))
