"""Computes with pieces of noise. A piece is one drawn number, or a sum of drawn numbers. Finds the
law and the scale of each sum and multiple, and the share of a uniform number's range below a
threshold."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from .replaying import UNKNOWN, TooLong
from .values import SINGLE, Noise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .replaying import Draw


# Law of the difference of two independent pieces of noise (drawn numbers) of equal scale.
_DIFFERENCES = {("exponential", "exponential"): "laplace", ("geometric", "geometric"): "discrete"}
# Largest number of pieces of noise (drawn numbers) in a run. A run with more is stopped.
_MOST_PIECES = 200_000
# Only the laws of the first 1,000 pieces of an array are compared, since there may be very many.
_VARIOUS = 1_000


class Pieces:
    """The pieces of noise of a run, with their laws and scales. A piece is one drawn number, or a
    sum of drawn numbers. Pieces are numbered from 0.

    draws: The list of draws, to which the run adds.
    """

    def __init__(self, draws: Sequence[Draw]) -> None:
        self._draws = draws
        self.laws: list[str] = []
        self.scales: list[float] = []
        self._scales = np.zeros(0)
        # The drawn numbers that each sum consists of, by the number of the sum.
        self.parts: dict[int, tuple[int, ...]] = {}

    def add(self, law: str, scale: Any, size: int) -> None:
        """Add the `size` pieces of a draw. Raises TooLong if the run has too many pieces.

        scale: A number, an array, or None if it is unknown.
        """
        if len(self.laws) + size > _MOST_PIECES:
            raise TooLong(f"more than {_MOST_PIECES:,} pieces of noise")
        if size == 1:
            self.laws.append(law)
            self.scales.append(math.nan if scale is None else float(first_of(scale)))
            return
        scales = np.broadcast_to(np.nan if scale is None else np.ravel(scale), (size,))
        self.laws.extend([law] * size)
        self.scales.extend(scales.tolist())

    @property
    def all_scales(self) -> Any:
        """The scales of all pieces, as an array."""
        if len(self._scales) != len(self.scales):
            self._scales = np.array(self.scales, dtype=float)
        return self._scales

    def laws_of(self, ids: Any) -> set[str]:
        """Return the names of the laws of some pieces of noise. ids: The numbers of the pieces."""
        return {self.laws[int(number)] for number in np.unique(ids)[:_VARIOUS]}

    def law_of(self, noise: Noise) -> str:
        """Return the name of the law of the first piece of noise in an array; `unknown` for an
        empty array."""
        ids = noise.ids
        if type(ids) is int:
            return self.laws[ids]
        return self.laws[first_of(ids)] if np.size(ids) else UNKNOWN

    def parts_of(self, number: int) -> tuple[int, ...]:
        """Return the indexes of the drawn numbers whose sum is a piece of noise. For a piece that
        is one drawn number, return only its own index. number: The index of the piece."""
        return self.parts.get(number, (number,))

    def draw_of(self, number: int) -> Draw | None:
        """Return the draw (call of a function that draws noise) that made a piece of noise; None if
        there is none. For a sum of drawn numbers, return the draw of the first one. number: The
        number of the piece."""
        number = self.parts_of(number)[0]
        if self._draws and self._draws[-1].first <= number:
            return self._draws[-1]
        place = bisect_right([one.first for one in self._draws], number) - 1
        return self._draws[place] if place >= 0 else None

    def sum_of(self, a: Noise, b: Noise, sign: int, shape: tuple[int, ...]) -> Noise | None:
        """Return the noise of the number `x + sign · y`; None if the noise cancels out.

        a, b: The noise of x, and the noise of y.
        sign: 1 or -1.
        shape: The shape of the result.
        """
        ids_a, ids_b = np.broadcast_to(a.ids, shape), np.broadcast_to(b.ids, shape)
        factor_a = np.broadcast_to(a.factor, shape)
        factor_b = np.broadcast_to(np.multiply(b.factor, sign), shape)
        if np.array_equal(ids_a, ids_b):
            factor = factor_a + factor_b
            if not np.all(factor):
                return None
            ids = ids_a
        else:
            pairs = zip(*map(np.ravel, (ids_a, factor_a, ids_b, factor_b)))
            ids = np.array([self._pair(*one) for one in pairs]).reshape(shape)
            factor = np.ones(shape)
        operands = [one for one in (a.operand, _signed(b.operand, sign)) if one is not None]
        operand = sum(operands[1:], operands[0]) if operands else None
        latest = [one for one in (a.use, b.use) if one is not None]
        use = max(latest) if latest else None
        if shape:
            return Noise(ids, factor, operand, use)
        return Noise(int(ids[()]), float(factor[()]), operand, use)

    def _pair(self, a: int, factor_a: float, b: int, factor_b: float) -> int:
        """Add a piece of noise, the sum `factor_a · a + factor_b · b` of two pieces, and return its
        number. a, b: The numbers of the two pieces."""
        scale_a, scale_b = abs(factor_a) * self.scales[a], abs(factor_b) * self.scales[b]
        laws, scale, law = (self.laws[a], self.laws[b]), float("nan"), UNKNOWN
        if laws == ("normal", "normal"):
            law, scale = "normal", float(np.hypot(scale_a, scale_b))
        elif laws in _DIFFERENCES and factor_a * factor_b < 0 and abs(scale_a - scale_b) < 1e-12:
            law, scale = _DIFFERENCES[laws], scale_a
        self.laws.append(law)
        self.scales.append(scale)
        number = len(self.laws) - 1
        self.parts[number] = (*self.parts_of(int(a)), *self.parts_of(int(b)))
        return number


def _signed(value: Any, sign: int) -> Any:
    return None if value is None else value * sign


def first_of(values: Any) -> Any:
    """Return the first entry of an array; a plain number unchanged."""
    return values if isinstance(values, SINGLE) else np.ravel(values)[0].item()


def shifted(noise: Noise, more: Any) -> Noise:
    """Return the noise of a number to which the plain number `more` was added: the operand (the
    number that the noise hides) grows by `more`."""
    return noise._replace(operand=more if noise.operand is None else noise.operand + more)


def multiplied(noise: Noise, factor: Any) -> Noise:
    """Return the noise of a number that was multiplied by a plain factor: the factor of the noise,
    and the operand (the number that it hides), are multiplied."""
    operand = None if noise.operand is None else noise.operand * factor
    return noise._replace(factor=noise.factor * factor, operand=operand)


# For each comparison, the equivalent comparison after both sides are exchanged.
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def is_single(last: Draw, noise: Noise, threshold: Any) -> bool:
    """Return whether a comparison is of the most frequent kind: the last draw of noise, a single
    uniform number from [0, 1), is compared with a plain number. This kind has a fast path."""
    return (
        last.first == noise.ids
        and last.law == "uniform"
        and not last.parameters
        and noise.operand is None
        and type(noise.factor) is float
        and noise.factor == 1.0
        and type(last.scale) is float
        and isinstance(threshold, SINGLE)
        and math.isfinite(threshold)
    )


def are_uniform(pieces: Pieces, noise: Noise) -> bool:
    """Return whether noise is uniform: it consists of uniform numbers times a factor, or of uniform
    integers with factor 1 and plain bounds. pieces: The pieces of noise of the run."""
    law = pieces.law_of(noise)
    if law != "integers":
        return law == "uniform"
    draw = pieces.draw_of(first_of(noise.ids))
    assert draw is not None
    bounds = [draw.parameters.get(name) for name in ("low", "high")]
    return bool(np.all(np.equal(noise.factor, 1.0))) and all(
        isinstance(one, SINGLE) for one in bounds
    )


def share_below(pieces: Pieces, noise: Noise, name: str, threshold: Any) -> Any:
    """Return the share of the range of uniform noise that lies below a threshold, from 0 to 1; an
    array for an array of thresholds.

    name: The name of the comparison, such as `lt`. It decides whether an integer equal to the
        threshold counts.
    """
    low, width = _range(pieces, noise)
    if pieces.law_of(noise) == "integers":  # count the integers below the threshold
        is_over = name in ("le", "gt")
        threshold = np.floor(threshold) + 1 if is_over else np.ceil(threshold)
    if isinstance(threshold, SINGLE) and math.isfinite(threshold) and width > 0:
        return min(max((threshold - low) / width, 0.0), 1.0)
    with np.errstate(all="ignore"):
        return np.clip((threshold - low) / width, 0, 1)


def _range(pieces: Pieces, noise: Noise) -> tuple[Any, Any]:
    """Return (lower end, width) of the range of uniform noise, after multiplication by its
    factor."""
    number, factor = first_of(noise.ids), first_of(noise.factor)
    draw, width = pieces.draw_of(number), pieces.scales[number] * factor
    assert draw is not None
    if draw.law == "integers":
        low, high = (float(draw.parameters[one]) for one in ("low", "high"))
        return low, high - low
    low = float(first_of(draw.parameters.get("low", 0.0))) * factor
    return (low, width) if width > 0 else (low + width, -width)
