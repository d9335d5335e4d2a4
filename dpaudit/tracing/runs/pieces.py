"""The pieces of noise of one run by their numbers: their laws and scales, and sums of them."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from .events import UNKNOWN, TooLong
from .values import SINGLE, Noise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .events import Draw

# Laws of a difference, or of a sum, of two independent pieces of noise; both of one scale.
_DIFFERENCES = {("exponential", "exponential"): "laplace", ("geometric", "geometric"): "discrete"}
# More entries of one piece of noise are no noise that a trace can show.
_MOST = 200_000
# So many pieces of one array are looked at for laws that differ.
_VARIOUS = 1_000


class Pieces:
    """All pieces of noise of a run, numbered as they were drawn, or added up.

    draws: of the run, in order, to which others come.
    """

    def __init__(self, draws: Sequence[Draw]) -> None:
        self._draws = draws
        self.laws: list[str] = []
        self.scales: list[float] = []
        self._scales = np.zeros(0)
        # Of every piece that is a sum, the pieces that it is made of.
        self.parts: dict[int, tuple[int, ...]] = {}

    def add(self, law: str, scale: Any, size: int) -> None:
        """Number the pieces of a draw. scale: a number, one for each, or None. Raises TooLong."""
        if len(self.laws) + size > _MOST:
            raise TooLong(f"more than {_MOST:,} pieces of noise")
        if size == 1:
            self.laws.append(law)
            self.scales.append(math.nan if scale is None else float(first_of(scale)))
            return
        scales = np.broadcast_to(np.nan if scale is None else np.ravel(scale), (size,))
        self.laws.extend([law] * size)
        self.scales.extend(scales.tolist())

    @property
    def all_scales(self) -> Any:
        """The scales of all pieces of noise."""
        if len(self._scales) != len(self.scales):
            self._scales = np.array(self.scales, dtype=float)
        return self._scales

    def laws_of(self, ids: Any) -> set[str]:
        """Return the laws of some pieces of noise."""
        return {self.laws[int(number)] for number in np.unique(ids)[:_VARIOUS]}

    def law_of(self, noise: Noise) -> str:
        """Return the law of the first piece of some noise."""
        ids = noise.ids
        if type(ids) is int:
            return self.laws[ids]
        return self.laws[first_of(ids)] if np.size(ids) else UNKNOWN

    def parts_of(self, number: int) -> tuple[int, ...]:
        """Return the pieces of noise that one is made of, each as it was drawn."""
        return self.parts.get(number, (number,))

    def draw_of(self, number: int) -> Draw | None:
        """Return the draw that a piece of noise comes from; of a sum, the first one."""
        number = self.parts_of(number)[0]
        if self._draws and self._draws[-1].first <= number:
            return self._draws[-1]
        place = bisect_right([one.first for one in self._draws], number) - 1
        return self._draws[place] if place >= 0 else None

    def sum_of(self, a: Noise, b: Noise, sign: int, shape: tuple[int, ...]) -> Noise | None:
        """Return the noise of a sum of two; None where they cancel out."""
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
        """Return the number of a piece of noise that is the sum of two."""
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
    """Return a number, or the first one of an array."""
    return values if isinstance(values, SINGLE) else np.ravel(values)[0].item()


def shifted(noise: Noise, more: Any) -> Noise:
    """Return noise to which something is added."""
    return noise._replace(operand=more if noise.operand is None else noise.operand + more)


def multiplied(noise: Noise, factor: Any) -> Noise:
    """Return noise that is multiplied, with what it was added to."""
    operand = None if noise.operand is None else noise.operand * factor
    return noise._replace(factor=noise.factor * factor, operand=operand)
