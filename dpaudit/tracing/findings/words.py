"""Write the words of findings: lines of code, numbers, and remedies, such as the scale of noise or
the bound on records with which the claim is satisfied."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpaudit.certificates.traced import INSIDE, SourceLine
from dpaudit.claims import PrivacyClaim
from dpaudit.inputs.records import records_of
from dpaudit.tracing.costs import Piece, exceeds, sum_exceeds
from dpaudit.tracing.runs.differences import Hidden
from dpaudit.tracing.runs.places import Place

# Largest relative difference that counts as a rounding error.
_ROUNDING_SHARE = 1e-9


def shown(place: Place) -> SourceLine:
    """Return a line of code as a `SourceLine`. The path of its file is relative if the file lies in
    the working directory."""
    here, file = Path(os.getcwd()), Path(place.file)
    inside = file.relative_to(here) if file.is_relative_to(here) else file
    return SourceLine(str(inside), place.line, place.code)


def times(count: int) -> str:
    """Return a count in words: "once", "twice" or "3 times"."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def rounded_up(value: float) -> str:
    """Return a number as text, rounded up to four significant digits."""
    if not math.isfinite(value) or value <= 0:
        return number(value)
    unit = _unit(value)
    return number(math.ceil(value / unit * (1 - _ROUNDING_SHARE)) * unit)


def rounded_down(value: float) -> str:
    """Return a number above 0 as text, rounded down to four significant digits."""
    unit = _unit(value)
    return number(math.floor(value / unit * (1 + _ROUNDING_SHARE)) * unit)


def _unit(value: float) -> float:
    return 10.0 ** (math.floor(math.log10(value)) - 3)


def number(value: float) -> str:
    """Return a number as text with four significant digits; "∞" for infinity."""
    return "∞" if math.isinf(value) else f"{value:.4g}"


class Changes(NamedTuple):
    """The changes of the sums of all columns from one input to another that differs by one record.

    sizes: The set of the absolute changes, one for each column. 0 and 1 are left out: every count
        changes by 1, so a change of 1 does not show that a column was summed.
    is_replaced: True if another record replaces the record; False if the record is added or
        removed.
    sums: The absolute values of the sums of all columns of either input, and their Euclidean norm.
        Sums of 0 and 1 are left out, and sums of fewer than two records.
    keeps_norm: Whether a sum that keeps its Euclidean norm is no evidence that it was clipped as a
        whole: the sums of the columns have the same norm on both inputs, or each input is a single
        record.
    """

    sizes: frozenset[float]
    is_replaced: bool
    sums: tuple[frozenset[float], frozenset[float]] = (frozenset(), frozenset())
    keeps_norm: bool = False


def inside_libraries(names: Sequence[str]) -> str:
    """Return a note about functions of libraries that draw and add noise in one call."""
    return f"the noise of {' and '.join(names)} {INSIDE}"


def changes(d1: Any, d2: Any) -> Changes | None:
    """Return the differences between two inputs in the sums of their columns. Return None if the
    inputs do not differ by exactly one record."""
    first, second = records_of(d1), records_of(d2)
    if first is None or second is None:
        return None
    ours, theirs = Counter(first), Counter(second)
    alone = list((ours - theirs).elements()), list((theirs - ours).elements())
    if sorted(map(len, alone)) == [0, 1]:
        (record,) = alone[0] or alone[1]
        sizes = dict(_numbers(record)).values()
    elif list(map(len, alone)) == [1, 1]:
        one, other = (dict(_numbers(records[0])) for records in alone)
        sizes = {name: one[name] - other[name] for name in one.keys() & other.keys()}.values()
    else:
        return None
    # Leave out changes of 0, and of 1: a record that is added changes every count of records by 1,
    # so a change of 1 does not show that a column was summed.
    changed = frozenset(map(abs, sizes)) - {0.0, 1.0}
    sums = _sums(first), _sums(second)
    return Changes(changed, bool(alone[0] and alone[1]), sums, _keeps_norm(first, second))


def _sums(records: Sequence[Hashable]) -> frozenset[float]:
    sums = _column_sums(records) if len(records) > 1 else []
    return frozenset([*map(abs, sums), math.hypot(*sums)]) - {0.0, 1.0}


def _keeps_norm(first: Sequence[Hashable], second: Sequence[Hashable]) -> bool:
    one, other = (math.hypot(*_column_sums(records)) for records in (first, second))
    return len(first) == len(second) == 1 or (one > 0 and math.isclose(one, other))


def _column_sums(records: Sequence[Hashable]) -> list[float]:
    columns: dict[Hashable, float] = {}
    for record in records:
        for name, value in _numbers(record):
            columns[name] = columns.get(name, 0.0) + value
    return list(columns.values())


def _numbers(record: Hashable) -> Iterator[tuple[Hashable, float]]:
    """Yield (column, number) for the numbers of a record. A record is a number (column None), a
    tuple (column: index in the tuple), or a frozenset of the items of a mapping (column: key)."""
    columns: list[tuple[Hashable, Any]] = [(None, record)]
    if isinstance(record, tuple):
        columns = list(enumerate(record))
    elif isinstance(record, frozenset):
        columns = [one for one in record if isinstance(one, tuple) and len(one) == 2]
    for name, value in columns:
        if isinstance(value, Real) and not isinstance(value, bool):
            yield name, float(value)


# Last words of a remedy that suggests more noise on one line, such as "a scale of 2 would do for
# this pair": with it, the whole mechanism satisfies the claim on this pair of inputs. If other
# lines leak, too, `FOR_LINE` is used.
FOR_PAIR = "would do for this pair"
# Last words of a suggestion such as "a scale of 2 would do for this line". With this scale, the
# noise of this line alone satisfies the claim, but the mechanism may still violate it, because the
# noise of other lines costs privacy, too, or because other lines leak.
FOR_LINE = "would do for this line"
# Words for a sum that changes by a whole record: for a record that is added or removed, and for a
# record that is replaced.
WHOLE = ("the size of the record that differs", "the difference of the two records")


def is_whole_record(piece: Piece, changed: Changes) -> bool:
    """Return whether a whole record seems to be added, without a bound on its size, to the value
    that noise hides. This is so if the value differs between d1 and d2 by as much as the sum of a
    column of the data. Return False for noise whose cost was measured on outputs (`Piece.cost`):
    its `shift` is a change of the noise.

    piece: The noise. Its `shift` is the difference of the value between d1 and d2.
    changed: The differences between d1 and d2 in the sums of the columns.
    """
    sizes = (math.isclose(piece.shift, one, rel_tol=_ROUNDING_SHARE) for one in changed.sizes)
    return piece.cost is None and any(sizes)


def is_bounded_sum(piece: Piece, norms: Sequence[float], changed: Changes) -> bool:
    """Return whether the value that noise hides seems to be a sum of records with a bound on the
    sum or on the records: it is the sum of a column on one input, and less on the other.

    piece: The noise.
    norms: The Euclidean norms of the value on d1 and on d2.
    changed: The differences between d1 and d2 in the sums of the columns.
    """
    are_sums = [any(math.isclose(norms[d], one) for one in changed.sums[d]) for d in (0, 1)]
    is_smaller = piece.shift < max(changed.sizes, default=0.0)
    return sum(are_sums) == 1 and is_smaller and piece.shift != 1  # a change by 1 may be a count


def clipping(piece: Piece, claim: PrivacyClaim | None, changed: Changes) -> str:
    """Return a remedy, such as "clip each record to [-5, 5] before it is added up".

    If records are clipped to this range, the noise satisfies the claim with its present scale.
    Return "" if the range is unknown, or without a claim.

    piece: The noise.
    claim: The privacy claim; None if nothing is claimed.
    changed: The differences between the inputs in the sums of the columns, and whether one record
        is replaced by another one.
    """
    times = None if claim is None else enlargement([piece], claim)
    most = math.nan if times is None else piece.shift / times
    most = math.floor(most * (1 + _ROUNDING_SHARE)) if piece.law == "discrete" else most
    if not most > 0:
        return ""
    bound = rounded_down(most)
    where = f"a range of width {bound}" if changed.is_replaced else f"[-{bound}, {bound}]"
    return f"clip each record to {where} before it is added up"


def enlarged(
    pieces: Sequence[Piece],
    claim: PrivacyClaim | None,
    others: Sequence[Piece] = (),
    source: Hidden | None = None,
) -> str:
    """Return a remedy in words, such as "a scale of 2 would do for this pair": the scale of noise
    that satisfies the claim, or another kind of noise. Return "" if neither is known, or without a
    claim.

    pieces: The noise to enlarge.
    claim: The privacy claim; None if nothing is claimed.
    others: The noise of other lines, which spends part of the claim.
    source: The comparison that the piece with the largest scale comes from. If the program
        multiplied the noise after the call that drew it, the remedy also states the scale that the
        call needs.
    """
    if claim is None or any(one.cost is not None for one in pieces):
        return ""
    law, scale = pieces[0].law, max(pieces[0].scales)
    if law == "normal" and all(point.delta == 0 for point in claim.points()):
        return "Gaussian noise satisfies no pure ε: use Laplace noise, or claim a δ above 0"
    costly = [one for one in others if one.value != 0]
    together, alone = enlargement(pieces, claim, costly), enlargement(pieces, claim)
    times = alone if together is None else together
    if times is None:
        return ""
    name = "standard deviation" if law == "normal" else "scale"
    enough = FOR_LINE if together is None else FOR_PAIR
    return f"a {name} of {rounded_up(times * scale)}{_in_call(times, scale, source)} {enough}"


# Names of the parameters of drawing functions that are the scale.
_SCALES = ("scale", "sigma", "std")


def _in_call(times: float, scale: float, source: Hidden | None) -> str:
    if source is None or math.isclose(scale, source.drawn[0]):
        return ""
    parameters, drawn = source.parameters[0], source.drawn[0]
    name = next((name for name in _SCALES if np.array_equal(parameters.get(name, ()), drawn)), None)
    return "" if name is None else f" ({name}={rounded_up(times * drawn)} in the call)"


def enlargement(
    pieces: Sequence[Piece], claim: PrivacyClaim, others: Sequence[Piece] = ()
) -> float | None:
    """Return the smallest factor by which the scale of noise must grow to satisfy the claim, found
    by bisection; None if no factor does, or if it is unknown.

    pieces: The noise whose scale grows.
    others: The noise whose scale stays.
    """
    if others and (
        len({one.unit for one in (*pieces, *others)}) > 1
        or any(one.value is None for one in others)
        or sum_exceeds(others, claim)
    ):
        return None
    law, scale = pieces[0].law, max(pieces[0].scales)
    if law not in ("laplace", "normal", "discrete", "logistic") or not scale > 0:
        return None

    def would_do(times: float) -> bool:
        larger = [
            replace(
                one,
                scales=(times * one.scales[0], times * one.scales[1]),
                joint=None if one.joint is None else one.joint / times,
            )
            for one in pieces
        ]
        return not sum_exceeds([*larger, *others], claim) and not any(
            exceeds(one, claim) for one in larger
        )

    low, high = 1.0, 2.0
    while not would_do(high):
        low, high = high, 2 * high
        if high > 1e9:
            return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if would_do(middle) else (middle, high)
    return high


def same_parts(claim: PrivacyClaim | None) -> str:
    """Return a remedy in words for an output whose keys, or whose number of values, depend on the
    data: to release the same keys for every input, or to leave out noisy counts below a threshold.

    claim: The privacy claim; None if nothing is claimed. Only a claim with δ > 0 allows a
        threshold.
    """
    below = "leave out noisy counts below a threshold"
    has_delta = claim is not None and all(point.delta for point in claim.points())
    more = f", or {below}" if has_delta else f"; or claim a δ above 0, and {below}"
    return f"release the same values for every input, from a fixed list of keys{more}"
