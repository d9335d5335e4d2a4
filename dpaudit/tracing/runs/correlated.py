"""Compute the joint cost of noisy values that share normal noise.

An example are the weights after each step of a training: the noise of the first step is in the
weights of all later steps. The sum of the costs of the single weights counts this noise again. The
noisy values of a run are linear in its drawn numbers: value = operand + Σ factor × drawn number. So
they have a joint normal distribution. The Gram-Schmidt process splits each value into a part that
the earlier values fix, and a new part, which is independent of them. The squares of μ of all new
parts add up to the square of the exact μ of all values together.
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
    from .recording import Recorder
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

    which: The index of the operation that makes the value.
    place: The index of the value among the values of this operation.
    change: The difference of the operands of the two runs.
    factors: Maps the ids of drawn numbers to their factors in the value, times their scales.
    rounding: The relative rounding error of the factors.
    error: The largest rounding error of the change.
    is_released: Whether the output contains the value, or an earlier sum of the same noise.
    """

    which: int
    place: int
    change: float
    factors: dict[int, float]
    rounding: float
    error: float
    is_released: bool


def with_joint_costs(
    recorders: tuple[Recorder, Recorder],
    pairs: Sequence[tuple[Use, Use]],
    found: Sequence[Hidden],
) -> tuple[list[Hidden], list[tuple[Place, Place, Place]]]:
    """Return (hidden, twice). `hidden` is a copy of `found` with the field `joint`. `twice` has
    (line of the draw, line of one addition, line of another addition) for changes that the output
    shows without noise.

    recorders: The records of the first and of the second run.
    pairs: The additions of noise in the first run, each with its counterpart in the second run.
    found: What `comparing.hidden` returns for each of these pairs.
    """
    first = recorders[0]
    joint = [[math.nan] * len(one.pieces) for one in found]
    twice: list[tuple[Place, Place, Place]] = []
    for group in _groups(list(_values(recorders, pairs, found))):
        if not any(one.change for one in group):
            continue
        # The values in the output come first: what else the program computes does not fix them.
        group.sort(key=lambda one: not one.is_released)
        for one, before, mu in _new_parts(group):
            if mu == math.inf and one.is_released and before is not None:
                draw = first.pieces.draw_of(next(iter(one.factors)))
                both = (first.place(pairs[each.which][0].moment) for each in (before, one))
                twice.append((first.place(draw.moment), next(both), next(both)))
                mu = 0.0
            joint[one.which][one.place] = mu
    hidden = [
        one if all(map(math.isnan, each)) else one._replace(joint=each)
        for one, each in zip(found, joint)
    ]
    return hidden, twice


def _values(
    recorders: tuple[Recorder, Recorder],
    pairs: Sequence[tuple[Use, Use]],
    found: Sequence[Hidden],
) -> Iterator[_Value]:
    """Yield the values with normal noise that is equal in both runs, if the first run adds or
    repeats drawn numbers."""
    pieces = recorders[0].pieces
    if not (pieces.parts or pieces.repeated):
        return
    for which, ((one, other), each) in enumerate(zip(pairs, found)):
        if one.kind != "add" or each.law != "normal":
            continue
        ids, counterparts = (np.ravel(use.ids).tolist() for use in (one, other))
        factors, others = (np.ravel(use.factor).tolist() for use in (one, other))
        operands = [np.asarray(use.operand, dtype=float) for use in (one, other)]
        with np.errstate(all="ignore"):
            changes = np.ravel(operands[0] - operands[1]).tolist()
            sizes = np.ravel(np.abs(operands[0]) + np.abs(operands[1])).tolist()
            values = np.ravel(np.asarray(one.value, dtype=float))
            is_short = (values.astype(np.float32) == values).tolist()
        for place, (number, counterpart) in enumerate(zip(ids, counterparts)):
            scaled, in_other_run = (
                [factor * value for value in recorder.pieces.scaled_factors_of(part).values()]
                for recorder, part, factor in zip(
                    recorders, (number, counterpart), (factors[place], others[place])
                )
            )
            rounding = _MAX_SPACINGS * (_SPACING_OF_FLOAT32 if is_short[place] else _SPACING)
            is_equal = len(scaled) == len(in_other_run) and np.allclose(
                scaled, in_other_run, rtol=max(_MIN_SHARE, rounding), atol=0
            )
            if is_equal and math.isfinite(math.hypot(*scaled)) and math.isfinite(changes[place]):
                parts = dict(zip(pieces.factors_of(number), scaled))
                error, is_released = rounding * sizes[place], each.released[place]
                yield _Value(which, place, changes[place], parts, rounding, error, is_released)


def _groups(values: list[_Value]) -> Iterator[list[_Value]]:
    """Yield the values that share drawn numbers, directly or through other values."""
    above: dict[int, int] = {}  # from a drawn number to another one of its group

    def root(part: int) -> int:
        while (other := above.setdefault(part, part)) != part:
            above[part] = above[other]
            part = other
        return part

    for one in values:
        roots = [root(part) for part in one.factors]
        for each in roots:
            above[each] = roots[0]
    groups: dict[int, list[_Value]] = {}
    for one in values:
        groups.setdefault(root(next(iter(one.factors))), []).append(one)
    yield from (group for group in groups.values() if len(group) > 1)


def _new_parts(group: list[_Value]) -> Iterator[tuple[_Value, _Value | None, float]]:
    """Yield (value, value before, μ) for each value of a group: the μ of the part that is
    independent of the values before, and the value before that fixes most of the rest. μ is
    infinite if the value has no new part, but a new change; and for all values after the first 500
    (`_MAX_VALUES`), whose μ is unknown."""
    yield from ((one, None, math.inf) for one in group[_MAX_VALUES:])
    group = group[:_MAX_VALUES]
    columns = {part: place for place, part in enumerate({p: 0 for v in group for p in v.factors})}
    basis: NDArray[np.float64] = np.zeros((0, len(columns)))
    changes: list[float] = []  # of the parts in `basis`, in units of their scales
    errors: list[float] = []  # the rounding errors of these changes
    owners: list[_Value] = []
    for one in group:
        row = np.zeros(len(columns))
        for part, factor in one.factors.items():
            row[columns[part]] = factor
        rest, fixed = row, np.zeros(len(basis))
        for _ in range(2):  # the second pass removes the rounding errors of the first
            step = basis @ rest
            rest, fixed = rest - step @ basis, fixed + step
        before = owners[int(np.argmax(np.abs(fixed)))] if owners else None
        known = float(fixed @ np.array(changes)) if changes else 0.0
        error = one.error + (float(np.abs(fixed) @ np.array(errors)) if errors else 0.0)
        shift = one.change - known
        if abs(shift) <= max(error, _MIN_SHARE * max(abs(one.change), abs(known))):
            shift = 0.0
        scale = float(np.linalg.norm(rest))
        if scale <= max(_MIN_SHARE, one.rounding) * float(np.linalg.norm(row)):
            yield one, before, math.inf if shift else 0.0
            continue
        basis, changes = np.vstack([basis, rest / scale]), [*changes, shift / scale]
        errors.append(error / scale)
        owners.append(one)
        yield one, before, abs(shift) / scale
