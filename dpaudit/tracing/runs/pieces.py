"""Compute with the pieces of noise of a run: their laws, their scales, and the share of a uniform
number's range that is below a threshold."""

from __future__ import annotations

import math
from bisect import bisect_right
from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from .noisy_numbers import SINGLE, Noise
from .replaying import UNKNOWN, TooLong

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .replaying import Draw


# Maps the distributions of two independent drawn numbers to the distribution of their difference,
# if both have the same scale.
_DIFFERENCES = {("exponential", "exponential"): "laplace", ("geometric", "geometric"): "discrete"}
# Distributions whose drawn numbers never repeat, unless a seed does.
CONTINUOUS = ("normal", "laplace", "logistic", "exponential", "gumbel", "cauchy")
# Distributions that are symmetric and whose numbers have a scale.
WITH_SCALE = ("normal", "laplace", "logistic", "discrete", "cauchy")
# Two calls used the same seed if their numbers, in units of the scale, are equal up to this
# relative difference of rounding: of float64, and of float32.
_ROUNDING, _ROUNDING_OF_FLOAT32 = 1e-12, 2.4e-7
# Two normal float32 are equal up to this difference by chance with probability 8e-8, and with
# 1.2e-7 in JAX, which makes them from 23 random bits. So if a call draws one number, it counts as
# repeated only if the run has made at most this number of calls. The probability of a chance is
# then 5e-6.
_MAX_SINGLE_CALLS = 10
# Largest number of drawn numbers of a call that are compared with earlier calls, to save time.
_MAX_COMPARED = 1_000
# Largest number of drawn numbers and sums of them in a run, to limit time and memory. A run with
# more is stopped.
_MAX_PIECES = 200_000
# Number of sums whose drawn numbers are remembered: a program adds to few sums at a time. More
# would take memory that grows with the square of their number.
_MAX_EXPANDED = 16
# To find the distributions in an array, only this number of its entries is examined, to save time.
_EXAMINED_ENTRIES = 1_000


class Pieces:
    """The pieces of noise of a run, and the draws that made them."""

    def __init__(self, draws: Sequence[Draw]) -> None:
        self._draws = draws
        self.laws: list[str] = []
        self.scales: list[float] = []
        self._scales = np.zeros(0)
        # Maps the id of each sum to (id, factor, other id, other factor) of the two numbers, drawn
        # or sums, of which it is the sum.
        self.parts: dict[int, tuple[int, float, int, float]] = {}
        # The latest results of `factors_of` for sums.
        self._expanded: dict[int, dict[int, float]] = {}
        # Maps the id of a drawn number to (id of an earlier drawn number, ratio), if it is `ratio`
        # times the earlier number, since the program draws twice with the same seed.
        self.repeated: dict[int, tuple[int, float]] = {}
        # Maps the first number of a call, in units of its scale and rounded, to the call's numbers
        # in these units, its scales and the id of its first number.
        self._calls: dict[float, tuple[Any, Any, int]] = {}

    def add(self, law: str, scale: Any, size: int) -> None:
        """Append `size` drawn numbers of one law. `scale` may be an array, or None if it is
        unknown. Raises TooLong if the run has drawn too many numbers."""
        if len(self.laws) + size > _MAX_PIECES:
            raise TooLong(f"more than {_MAX_PIECES:,} pieces of noise")
        if size == 1:
            self.laws.append(law)
            self.scales.append(math.nan if scale is None else float(first_of(scale)))
            return
        scales = np.broadcast_to(np.nan if scale is None else np.ravel(scale), (size,))
        self.laws.extend([law] * size)
        self.scales.extend(scales.tolist())

    @property
    def all_scales(self) -> Any:
        """The scales of all drawn numbers and sums, as an array; NaN for an unknown scale."""
        if len(self._scales) != len(self.scales):
            self._scales = np.array(self.scales, dtype=float)
        return self._scales

    def laws_of(self, ids: Any) -> set[str]:
        """Return the laws of the pieces with these ids."""
        return {self.laws[int(number)] for number in np.unique(ids)[:_EXAMINED_ENTRIES]}

    def law_of(self, noise: Noise) -> str:
        """Return the law of noise; for an array, of its first entry, `unknown` if it is empty."""
        ids = noise.ids
        if type(ids) is int:
            return self.laws[ids]
        return self.laws[first_of(ids)] if np.size(ids) else UNKNOWN

    def parts_of(self, number: int) -> tuple[int, ...]:
        """Return the ids of the drawn numbers whose sum is the piece with the id `number`."""
        return tuple(sorted(self.factors_of(number))) if number in self.parts else (number,)

    def factors_of(self, number: int) -> dict[int, float]:
        """Return the factors of the drawn numbers in the piece with the id `number`, by their ids.
        If a drawn number repeats an earlier one up to scale, the earlier one counts, times the
        ratio."""
        if number not in self.parts:
            return dict([self.repeated.get(number, (number, 1.0))])
        if number in self._expanded:
            return self._expanded[number]
        # A sum has a larger id than its parts. So its factor is complete when it is the largest id
        # that is left, also if several sums contain it.
        left, factors = [-number], {number: 1.0}
        totals: dict[int, float] = {}
        while left:
            piece = -heappop(left)
            factor = factors.pop(piece)
            if piece not in self.parts or piece in self._expanded:
                for part, ratio in self.factors_of(piece).items():
                    totals[part] = totals.get(part, 0.0) + factor * ratio
                continue
            a, factor_a, b, factor_b = self.parts[piece]
            for part, ratio in ((a, factor_a), (b, factor_b)):
                if part not in factors:
                    heappush(left, -part)
                factors[part] = factors.get(part, 0.0) + factor * ratio
        self._remember(number, totals)
        return totals

    def _remember(self, number: int, factors: dict[int, float]) -> None:
        if len(self._expanded) >= _MAX_EXPANDED:
            del self._expanded[next(iter(self._expanded))]
        self._expanded[number] = factors

    def draw_of(self, number: int) -> Draw:
        """Return the draw of the piece with the id `number`; for a sum, the first draw."""
        number = self.parts_of(number)[0]
        if self._draws[-1].first <= number:
            return self._draws[-1]
        return self._draws[bisect_right([draw.first for draw in self._draws], number) - 1]

    def drawn_scale(self, ids: Any) -> float:
        """Return the scale with which the first of some pieces was drawn. Return NaN if it is
        unknown, or if several lines or scales made the piece."""
        parts = self.parts_of(int(ids[0])) if len(ids) else ()
        origins = {(self.scales[part], self.draw_of(part).moment[1]) for part in parts}
        return origins.pop()[0] if len(origins) == 1 else math.nan

    def scaled_factors_of(self, number: int) -> dict[int, float]:
        """Return the factors of `factors_of`, each multiplied by the scale of its drawn number."""
        return {
            part: factor * self.scales[part] for part, factor in self.factors_of(number).items()
        }

    def share_numbers(self, a: Noise, b: Noise) -> bool:
        """Return whether two noisy values contain a common drawn number. For arrays, this must hold
        at each of the first 1,000 indices (`_EXAMINED_ENTRIES`)."""
        pairs = zip(*(array.flat for array in np.broadcast_arrays(a.ids, b.ids)))
        shared = [
            not self.factors_of(int(left)).keys().isdisjoint(self.factors_of(int(right)))
            for left, right in islice(pairs, _EXAMINED_ENTRIES)
        ]
        return bool(shared) and all(shared)

    def note_repeated(self, first: int, values: Any, scales: Any) -> None:
        """Note whether a draw, from the id `first` on, repeats an earlier draw, up to its scale."""
        values, scales = (np.ravel(np.asarray(array, dtype=float)) for array in (values, scales))
        values = values[:_MAX_COMPARED]
        with np.errstate(all="ignore"):
            short = values.astype(np.float32)
            is_short = bool(np.all(short == values))
            # A bfloat16 has the first 16 bits of a float32, and a float16 at most 13 zeros at its
            # end. They have too few values for a comparison.
            is_tiny = is_short and not np.any(short.view(np.uint32) & 0x1FFF)
            unit = values / scales[: len(values)]
        if is_tiny or not len(unit) or not np.all(np.isfinite(unit)) or not unit[0]:
            return
        key = float(f"{unit[0]:.5g}")
        earlier = self._calls.setdefault(key, (unit, scales, first))
        if earlier[2] == first:
            return
        count = min(len(unit), len(earlier[0]))
        close = _ROUNDING_OF_FLOAT32 if is_short else _ROUNDING
        is_equal = np.isclose(unit[:count], earlier[0][:count], rtol=close, atol=0)
        repeated = count if is_equal.all() else int(np.argmin(is_equal))
        if is_short and repeated == 1 and (count > 1 or len(self._calls) > _MAX_SINGLE_CALLS):
            return
        ratios = np.broadcast_to(scales[:count] / earlier[1][:count], (count,)).tolist()
        for index in range(repeated):
            self.repeated[first + index] = earlier[2] + index, ratios[index]

    def sum_of(self, a: Noise, b: Noise, sign: int, shape: tuple[int, ...]) -> Noise | None:
        """Return the noise `a` plus `sign` times the noise `b`. Return None if it cancels out."""
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
            ids = np.array([self._pair(*pair) for pair in pairs]).reshape(shape)
            factor = np.ones(shape)
        operands = [
            operand for operand in (a.operand, _signed(b.operand, sign)) if operand is not None
        ]
        operand = sum(operands[1:], operands[0]) if operands else None
        latest = [use for use in (a.use, b.use) if use is not None]
        use = max(latest) if latest else None
        if shape:
            return Noise(ids, factor, operand, use)
        return Noise(int(ids[()]), float(factor[()]), operand, use)

    def _pair(self, a: int, factor_a: float, b: int, factor_b: float) -> int:
        """Record the sum `factor_a · a + factor_b · b` as new noise, and return its id."""
        scale_a, scale_b = abs(factor_a) * self.scales[a], abs(factor_b) * self.scales[b]
        laws, scale, law = (self.laws[a], self.laws[b]), float("nan"), UNKNOWN
        a, b = int(a), int(b)
        factors = {part: factor_a * factor for part, factor in self.factors_of(a).items()}
        second = self.factors_of(b)
        is_disjoint = factors.keys().isdisjoint(second)
        for part, factor in second.items():
            factors[part] = factors.get(part, 0.0) + factor_b * factor
        left = [part for part, factor in factors.items() if factor]
        if laws == ("normal", "normal"):
            scaled = (factor * self.scales[part] for part, factor in factors.items())
            law = "normal"
            scale = float(np.hypot(scale_a, scale_b)) if is_disjoint else math.hypot(*scaled)
        elif not left:
            law, scale = laws[0], 0.0
        elif len(left) == 1:  # the other numbers have cancelled out, or repeat this one
            law, scale = self.laws[left[0]], abs(factors[left[0]]) * self.scales[left[0]]
        elif is_disjoint and factor_a * factor_b < 0 and abs(scale_a - scale_b) < 1e-12:
            law = _DIFFERENCES.get(laws, UNKNOWN)
            scale = math.nan if law == UNKNOWN else scale_a
        self.laws.append(law)
        self.scales.append(scale)
        number = len(self.laws) - 1
        self.parts[number] = a, float(factor_a), b, float(factor_b)
        self._remember(number, factors)
        return number


def _signed(value: Any, sign: int) -> Any:
    return None if value is None else value * sign


def first_of(values: Any) -> Any:
    """Return the first entry of an array; a plain number unchanged."""
    return values if isinstance(values, SINGLE) else np.ravel(values)[0].item()


def shifted(noise: Noise, more: Any) -> Noise:
    """Return the noise of a number after a plain number was added: only the operand changes."""
    return noise._replace(operand=more if noise.operand is None else noise.operand + more)


def multiplied(noise: Noise, factor: Any) -> Noise:
    """Return the noise of a number after its multiplication by a plain number."""
    operand = None if noise.operand is None else noise.operand * factor
    return noise._replace(factor=noise.factor * factor, operand=operand)


# Maps each comparison to the equivalent comparison with both sides exchanged: a < b is b > a.
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def is_single(last: Draw, noise: Noise, threshold: Any) -> bool:
    """Return whether a comparison can use the fast path. It can if a plain number is compared with
    the single uniform number from [0, 1) that the run drew last, as in most comparisons."""
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
    """Return whether noise is uniform: uniform floats times any factor, or uniform integers with
    factor 1 and two single numbers as bounds."""
    law = pieces.law_of(noise)
    if law != "integers":
        return law == "uniform"
    draw = pieces.draw_of(first_of(noise.ids))
    bounds = [draw.parameters.get(name) for name in ("low", "high")]
    return bool(np.all(np.equal(noise.factor, 1.0))) and all(
        isinstance(bound, SINGLE) for bound in bounds
    )


def share_below(pieces: Pieces, noise: Noise, name: str, threshold: Any) -> Any:
    """Return the share of the range of a uniform number that is below a threshold, from 0 to 1, or
    an array of shares. `name` is the comparison, such as `lt`; it decides whether an integer equal
    to the threshold counts as below."""
    low, width = _range(pieces, noise)
    if pieces.law_of(noise) == "integers":  # count the integers below the threshold
        is_over = name in ("le", "gt")
        threshold = np.floor(threshold) + 1 if is_over else np.ceil(threshold)
    if isinstance(threshold, SINGLE) and math.isfinite(threshold) and width > 0:
        return min(max((threshold - low) / width, 0.0), 1.0)
    with np.errstate(all="ignore"):
        return np.clip((threshold - low) / width, 0, 1)


def _range(pieces: Pieces, noise: Noise) -> tuple[Any, Any]:
    """Return (lower end, width) of the range of a uniform number, multiplied by a factor."""
    number, factor = first_of(noise.ids), first_of(noise.factor)
    draw, width = pieces.draw_of(number), pieces.scales[number] * factor
    if draw.law == "integers":
        low, high = (float(draw.parameters[end]) for end in ("low", "high"))
        return low, high - low
    low = float(first_of(draw.parameters.get("low", 0.0))) * factor
    return (low, width) if width > 0 else (low + width, -width)
