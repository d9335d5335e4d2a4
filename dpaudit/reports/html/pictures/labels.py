"""Where names stand beside marks that lie close together, so that none covers another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# In shares of the width and the height of a drawing.
_LETTER, _LINE = 0.025, 0.08
_GAP, _MARK = 0.03, (0.022, 0.036)
# How far up and down a name may move, in lines.
_MOVES = (0, 1, -1, 2, -2, 3, -3, 4, -4)


@dataclass(frozen=True, slots=True)
class Spot:
    """A mark with a name. left, right, below, above: the box around the mark."""

    name: str
    x: float
    y: float
    left: float
    right: float
    below: float
    above: float


_Box = tuple[float, float, float, float]
_Place = tuple[float, float, str, str]


def placed(spots: Sequence[Spot], marks: Sequence[tuple[float, float]]) -> list[_Place]:
    """Return for each name its place, and which end of the name stands there: beside its box, or
    moved where it would cover a mark or another name."""
    wide, high = _MARK
    taken: list[_Box] = [(x - wide, x + wide, y - high, y + high) for x, y in marks]
    found = []
    for one in spots:
        best = min(_places(one), key=lambda place: _covered(_box(place), taken))
        taken.append(_box(best))
        found.append(best)
    return found


def _places(one: Spot) -> Iterator[_Place]:
    """Yield the places that a name may have, those first that are read most easily."""
    for move in _MOVES:
        y = one.y - 0.02 + move * _LINE
        yield one.right + _GAP, y, one.name, "start"
        yield one.left - _GAP, y, one.name, "end"
    yield one.x, one.above + _GAP, one.name, "middle"
    yield one.x, one.below - _LINE, one.name, "middle"


def _box(place: _Place) -> _Box:
    x, y, name, anchor = place
    wide = _LETTER * len(name)
    left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
    return left, left + wide, y - 0.01, y + _LINE - 0.01


def _covered(box: _Box, taken: Sequence[_Box]) -> float:
    """Return how much of a box is taken, or lies outside of the drawing."""
    left, right, below, above = box
    outside = max(0.0, -left) + max(0.0, right - 1) + max(0.0, -below) + max(0.0, above - 1.05)
    shared = sum(
        max(0.0, min(right, other[1]) - max(left, other[0]))
        * max(0.0, min(above, other[3]) - max(below, other[2]))
        for other in taken
    )
    return round(outside + shared, 9)
