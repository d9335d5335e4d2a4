"""Parts of the output that only one input has, if its noise passes a threshold, as a rare key of a
noisy histogram."""

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


# Comparisons that are tried, and the distance, in scales, that their noise is moved.
_MOST, _FAR = 16, 1e6
# Comparisons of which pairs are tried, and rounds in which further comparisons are sought.
_BOTH, _ROUNDS = 6, 8
# First seed of other noise, and number of seeds.
_OTHERS, _OFTEN = 5_000, 12
_TAILED = ("laplace", "normal", "logistic", "cauchy", "discrete")


class _Compared(NamedTuple):
    """A comparison of one noised value, operand + factor × noise, with 0. entry, scale: of the
    noise."""

    use: Use
    draw: Draw
    entry: Entry
    scale: float
    factor: float
    operand: float

    @property
    def side(self) -> int:
        """The sign of noise that makes the value larger."""
        return 1 if self.factor > 0 else -1


class ThresholdLeak(NamedTuple):
    """A part of the output that only one input has, if its noise exceeds a margin.

    draw, compared: where the noise is drawn and compared.  law, scale: of the noise.
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
    """Return the parts of the output that only the second input has, if its noise passes a
    threshold.

    runs: of both inputs, with the same noise.  is_never: whether no run of the first input had a
    part.
    """
    first, second = runs
    if first.error is not None or second.error is not None:
        return []
    every = [list(islice(_compared(one), _MOST + 1)) for one in runs]
    ours, theirs = ([one for one in some if one is not None] for some in every)
    if len(ours) < len(every[0]) or max(map(len, every)) > _MOST:
        return []  # what the first input may have is not known

    def pushed(which: int, pushes: Iterable[tuple[_Compared, int]]) -> Run:
        overrides = {one.entry: sign * one.side * _FAR * one.scale for one, sign in pushes}
        return coupler.run(which, overrides, reference=first)

    # Parts that the first input may have, for any noise of its own.
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
            # With other noise, too: else it is less likely, as for the winner of several.
            seeds = range(_OTHERS, _OTHERS + _OFTEN)
            if all(alone[0] in marks(coupler.run(1, beyond, seed=seed)) for seed in seeds):
                found.append(_leak(one, alone[0], sign))
    return found


def _forced(ours: Sequence[_Compared]) -> Iterator[list[tuple[_Compared, int]]]:
    """Yield comparisons to force, with signs: one at a time, then in pairs if there are few."""
    for one in ours:
        yield from ([(one, sign)] for sign in (1, -1))
    for pair in combinations(ours, 2) if len(ours) <= _BOTH else ():
        yield from ([*zip(pair, signs)] for signs in product((1, -1), repeat=2))


def _far_out(
    pushed: Callable[[int, Iterable[tuple[_Compared, int]]], Run],
    ours: Sequence[_Compared],
    sign: int,
) -> dict[str, None]:
    """Return the parts that the first input has when all its comparisons are forced to one side,
    also the comparisons that come about only then."""
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
    """Return the names of the parts of an output, and the texts in it."""
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
    """Yield comparisons of noised values, entry by entry; None if the law is not known."""
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
