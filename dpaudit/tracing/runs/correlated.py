"""Compute the joint cost of noisy values that share normal noise. An example are the weights after
each step of a training, which contain the noise of all earlier steps.

The noisy values of a run are linear in its drawn numbers: value = operand + Σ factor × drawn
number. So they have a joint normal distribution. The Gram-Schmidt process splits each value into a
part that the earlier values fix, and a new part, which is independent of them. The squares of μ of
all new parts add up to the square of the exact μ of all values together.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .places import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .differences import Hidden
    from .noise_log import Recorder
    from .replaying import Use

# Spacing of floats near 1: of float64, and of float32.
_SPACING, _SPACING_OF_FLOAT32 = 2.3e-16, 1.2e-7
# Rounding errors of a value are assumed to be at most this number of spacings.
_MAX_SPACINGS = 64
# A new part of a value is 0 if its share of the value is at most this number, or `_MAX_SPACINGS`.
_MIN_SHARE = 1e-9
# Largest number of values that share noise, since the time grows with its third power. The joint
# cost of more values is unknown.
_MAX_VALUES = 500


class _Value(NamedTuple):
    """A noisy value.

    which: The index of the use that makes the value.
    position: The index of the value among the values of this use.
    change: The difference of the operands of the two runs.
    factors: Maps the ids of drawn numbers to their factors in the value, times their scales.
    rounding: The relative rounding error of the factors.
    error: The largest rounding error of the change.
    is_released: Whether the output contains the value, or an earlier sum of the same noise.
    """

    which: int
    position: int
    change: float
    factors: dict[int, float]
    rounding: float
    error: float
    is_released: bool


def with_joint_costs(
    recorders: tuple[Recorder, Recorder],
    pairs: Sequence[tuple[Use, Use]],
    hidden: Sequence[Hidden],
) -> tuple[list[Hidden], list[tuple[Place, Place, Place]]]:
    """Return `hidden` with its field `joint`, and the changes that the output shows without noise,
    each as (line of the draw, line of one addition, line of another addition). `hidden` has the
    noise of each pair of additions, as `comparing.hidden` returns it."""
    first = recorders[0]
    joint = [[math.nan] * len(noise.pieces) for noise in hidden]
    twice: list[tuple[Place, Place, Place]] = []
    for group in _groups(list(_values(recorders, pairs, hidden))):
        if not any(value.change for value in group):
            continue
        # The values in the output come first: what else the program computes does not fix them.
        group.sort(key=lambda value: not value.is_released)
        for value, earlier, mu in _new_parts(group):
            if mu == math.inf and value.is_released and earlier is not None:
                draw = first.pieces.draw_of(next(iter(value.factors)))
                lines = (first.place(pairs[use.which][0].moment) for use in (earlier, value))
                twice.append((first.place(draw.moment), next(lines), next(lines)))
                mu = 0.0
            joint[value.which][value.position] = mu
    hidden = [
        noise if all(map(math.isnan, costs)) else noise._replace(joint=costs)
        for noise, costs in zip(hidden, joint)
    ]
    return hidden, twice


def _values(
    recorders: tuple[Recorder, Recorder],
    pairs: Sequence[tuple[Use, Use]],
    hidden: Sequence[Hidden],
) -> Iterator[_Value]:
    """Yield the values with equal normal noise, if the first run has sums or repeated numbers."""
    pieces = recorders[0].pieces
    if not (pieces.parts or pieces.repeated):
        return
    for which, ((first_use, second_use), noise) in enumerate(zip(pairs, hidden)):
        if first_use.kind != "add" or noise.law != "normal":
            continue
        ids, counterparts = (np.ravel(use.ids).tolist() for use in (first_use, second_use))
        factors, second_factors = (np.ravel(use.factor).tolist() for use in (first_use, second_use))
        operands = [np.asarray(use.operand, dtype=float) for use in (first_use, second_use)]
        with np.errstate(all="ignore"):
            changes = np.ravel(operands[0] - operands[1]).tolist()
            sizes = np.ravel(np.abs(operands[0]) + np.abs(operands[1])).tolist()
            values = np.ravel(np.asarray(first_use.value, dtype=float))
            is_short = (values.astype(np.float32) == values).tolist()
        for index, (number, counterpart) in enumerate(zip(ids, counterparts)):
            scaled, in_other_run = (
                [factor * value for value in recorder.pieces.scaled_factors_of(part).values()]
                for recorder, part, factor in zip(
                    recorders, (number, counterpart), (factors[index], second_factors[index])
                )
            )
            rounding = _MAX_SPACINGS * (_SPACING_OF_FLOAT32 if is_short[index] else _SPACING)
            is_equal = len(scaled) == len(in_other_run) and np.allclose(
                scaled, in_other_run, rtol=max(_MIN_SHARE, rounding), atol=0
            )
            if is_equal and math.isfinite(math.hypot(*scaled)) and math.isfinite(changes[index]):
                parts = dict(zip(pieces.factors_of(number), scaled))
                error, is_released = rounding * sizes[index], noise.released[index]
                yield _Value(which, index, changes[index], parts, rounding, error, is_released)


def _groups(values: list[_Value]) -> Iterator[list[_Value]]:
    """Yield the values that share drawn numbers, directly or through other values."""
    above: dict[int, int] = {}  # from a drawn number to another one of its group

    def root(part: int) -> int:
        while (parent := above.setdefault(part, part)) != part:
            above[part] = above[parent]
            part = parent
        return part

    for value in values:
        roots = [root(part) for part in value.factors]
        for ancestor in roots:
            above[ancestor] = roots[0]
    groups: dict[int, list[_Value]] = {}
    for value in values:
        groups.setdefault(root(next(iter(value.factors))), []).append(value)
    yield from (group for group in groups.values() if len(group) > 1)


def _new_parts(group: list[_Value]) -> Iterator[tuple[_Value, _Value | None, float]]:
    """Yield (value, earlier value, μ): the part independent of the values before, what fixes it."""
    # μ is infinite if the value has no new part, but a new change; and for all values after the
    # first 500 (`_MAX_VALUES`), whose μ is unknown.
    yield from ((value, None, math.inf) for value in group[_MAX_VALUES:])
    group = group[:_MAX_VALUES]
    columns = {part: index for index, part in enumerate({p: 0 for v in group for p in v.factors})}
    basis: NDArray[np.float64] = np.zeros((0, len(columns)))
    changes: list[float] = []  # of the parts in `basis`, in units of their scales
    errors: list[float] = []  # the rounding errors of these changes
    owners: list[_Value] = []
    for value in group:
        row = np.zeros(len(columns))
        for part, factor in value.factors.items():
            row[columns[part]] = factor
        residual, fixed = row, np.zeros(len(basis))
        for _ in range(2):  # the second pass removes the rounding errors of the first
            step = basis @ residual
            residual, fixed = residual - step @ basis, fixed + step
        earlier = owners[int(np.argmax(np.abs(fixed)))] if owners else None
        known = float(fixed @ np.array(changes)) if changes else 0.0
        error = value.error + (float(np.abs(fixed) @ np.array(errors)) if errors else 0.0)
        shift = value.change - known
        if abs(shift) <= max(error, _MIN_SHARE * max(abs(value.change), abs(known))):
            shift = 0.0
        scale = float(np.linalg.norm(residual))
        if scale <= max(_MIN_SHARE, value.rounding) * float(np.linalg.norm(row)):
            yield value, earlier, math.inf if shift else 0.0
            continue
        basis, changes = np.vstack([basis, residual / scale]), [*changes, shift / scale]
        errors.append(error / scale)
        owners.append(value)
        yield value, earlier, abs(shift) / scale
