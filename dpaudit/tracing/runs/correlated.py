"""Make the costs of noisy values independent of each other, if they share normal noise.

An example are the weights after each step of a training: the noise of the first step is in the
weights of all later steps. The cost of a weight by itself counts this noise again. The noisy values
of a run are linear in its drawn numbers: value = operand + Σ factor × drawn number. So they have a
joint normal distribution. The Gram-Schmidt process splits each value into a part that the earlier
values fix, and a new part, which is independent of them. Only the new part hides a new change. The
squares of μ of all new parts add up to the square of the exact μ of all values together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .places import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .differences import Hidden
    from .recording import Recorder
    from .replaying import Use

# A new part of a value, or of its change, is 0 if its share of the value or of the change is at
# most this number.
_CLOSE = 1e-9
# Largest number of values that share noise. The time grows with its third power. The cost of more
# values is unknown.
_MOST_VALUES = 500


class _Value(NamedTuple):
    """A noisy value.

    which: The index of the operation that makes the value.
    place: The index of the value among the values of this operation.
    change: The difference of the operands of the two runs.
    factors: Maps the ids of drawn numbers to their factors in the value.
    """

    which: int
    place: int
    change: float
    factors: dict[int, float]


def independent(
    recorder: Recorder, pairs: Sequence[tuple[Use, Use]], found: Sequence[Hidden]
) -> tuple[list[Hidden], list[tuple[Place, Place, Place]]]:
    """Return (hidden, twice). `hidden` is a copy of `found`, in which scales and shifts of values
    that share normal noise are those of their new parts. `twice` has (line of the draw, line of one
    addition, line of another addition) for changes that the output shows without noise.

    recorder: The records of the first run.
    pairs: The additions of noise in the first run, each with its counterpart in the second run.
    found: What `comparing.hidden` returns for each of these pairs.
    """
    hidden, twice = list(found), list[tuple[Place, Place, Place]]()
    for group in _groups(list(_values(recorder, pairs, found))):
        if not any(one.change for one in group):
            continue
        # The values in the output come first: what else the program computes does not fix them.
        group.sort(key=lambda one: not found[one.which].released[one.place])
        for one, before, scale, shift in _new_parts(recorder, group):
            is_shown = found[one.which].released[one.place]
            if scale == 0 and shift and is_shown:
                draw = recorder.pieces.draw_of(next(iter(one.factors)))
                uses = (recorder.place(pairs[each.which][0].moment) for each in (before, one))
                twice.append((recorder.place(draw.moment), next(uses), next(uses)))
            if scale or is_shown:
                hidden[one.which] = _with(hidden[one.which], one.place, scale, shift)
    return hidden, twice


def _with(one: Hidden, place: int, scale: float, shift: float) -> Hidden:
    first, second, shifts = [*one.scales[0]], [*one.scales[1]], [*one.shifts]
    first[place] = second[place] = scale or first[place]
    shifts[place] = shift if scale else 0.0
    return one._replace(scales=(first, second), shifts=shifts)


def _values(
    recorder: Recorder, pairs: Sequence[tuple[Use, Use]], found: Sequence[Hidden]
) -> Iterator[_Value]:
    """Yield the values with normal noise whose factors are equal in both runs, if the run adds or
    repeats drawn numbers."""
    pieces = recorder.pieces
    if not (pieces.parts or pieces.repeated):
        return
    for which, ((one, other), each) in enumerate(zip(pairs, found)):
        is_linear = one.kind == "add" and each.law == "normal"
        if not is_linear or not np.array_equal(one.factor, other.factor):
            continue
        ids, factors = np.ravel(one.ids), np.ravel(one.factor)
        own = np.abs(factors) * pieces.all_scales[ids]
        changes = np.ravel(np.subtract(one.operand, other.operand)).astype(float)
        for place, number in enumerate(ids.tolist()):
            # Both the scale and the change are before the multiplication by `unit` (`hidden`).
            unit = own[place] / each.scales[0][place] if each.scales[0][place] else np.nan
            parts = pieces.factors_of(number)
            if np.isfinite(unit) and np.isfinite(changes[place]):
                factor = float(factors[place] / unit)
                scaled = {part: factor * value for part, value in parts.items()}
                yield _Value(which, place, float(changes[place] / unit), scaled)


def _groups(values: list[_Value]) -> Iterator[list[_Value]]:
    """Yield the values that share drawn numbers, directly or through other values."""
    owner: dict[int, int] = {}
    groups: dict[int, list[_Value]] = {}
    for number, one in enumerate(values):
        groups[number] = [one]
        for part in one.factors:
            before = owner.setdefault(part, number)
            if before != number:
                groups[number] = groups.pop(before) + groups[number]
                for each in groups[number]:
                    owner.update(dict.fromkeys(each.factors, number))
    yield from (group for group in groups.values() if len(group) > 1)


def _new_parts(
    recorder: Recorder, group: list[_Value]
) -> Iterator[tuple[_Value, _Value, float, float]]:
    """Yield (value, value before, scale, shift) for each value of a group: the scale of the part
    that is independent of the values before, and the absolute change of this part."""
    columns = {part: place for place, part in enumerate({p: 0 for v in group for p in v.factors})}
    scales = recorder.pieces.all_scales
    basis: NDArray[np.float64] = np.zeros((0, len(columns)))
    changes: list[float] = []
    for number, one in enumerate(group):
        before = group[max(0, number - 1)]
        if len(group) > _MOST_VALUES:
            yield one, before, np.nan, abs(one.change)
            continue
        row = np.zeros(len(columns))
        for part, factor in one.factors.items():
            row[columns[part]] = factor * scales[part]
        rest, fixed = row, np.zeros(len(basis))
        for _ in range(2):  # the second pass removes the rounding errors of the first
            step = basis @ rest
            rest, fixed = rest - step @ basis, fixed + step
        scale = float(np.linalg.norm(rest))
        known = float(fixed @ np.array(changes)) if changes else 0.0
        shift = one.change - known
        if abs(shift) <= _CLOSE * max(abs(one.change), abs(known)):
            shift = 0.0
        if scale <= _CLOSE * float(np.linalg.norm(row)):
            yield one, before, 0.0, abs(shift)
            continue
        basis, changes = np.vstack([basis, rest / scale]), [*changes, shift / scale]
        yield one, before, scale, abs(shift)
