"""Compare records and datasets: convert records to values that can be compared, test equality,
compute digests, and find the difference of two datasets. Two records get equal values only if no
mechanism can distinguish them."""

from __future__ import annotations

import hashlib
import math
import sys
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any, cast

import numpy as np

from dpaudit.outcomes.frames import content
from dpaudit.wording import counted, on_one_line, shortened, shown

# The most common types of values. They need no conversion, so they are tested first, to save time.
_PLAIN = frozenset({int, str, bool, type(None)})
# The difference of two datasets is described only if neither has more than this number of values,
# to save time.
_MAX_VALUES = 100_000
# A message about two different records names at most this number of parts, such as columns.
_MAX_NAMED = 2
# A message that describes the difference of two datasets, such as `age is 36 in d1, 41 in d2`,
# shows at most this number of characters of a value or a column name, and twice this number of
# a whole record.
_SHOWN_CHARACTERS = 20
# If two long values begin alike, a message shows them from this number of characters before their
# first difference.
_CHARACTERS_BEFORE = 5
_SIZED = (list, tuple, dict)


def records_of(dataset: Any) -> list[Hashable] | None:
    """Return the records of a dataset as hashable values. Two values are equal if and only if the
    records are. Return None if the dataset has no records, such as a number."""
    if isinstance(dataset, np.ndarray):
        return [comparable(row) for row in dataset.tolist()] if dataset.ndim else None
    if isinstance(dataset, list | tuple):
        return [comparable(row) for row in dataset]
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(dataset, polars.DataFrame):
        return [comparable(row) for row in dataset.rows()]
    frame = as_pandas(dataset)
    if frame is None:
        return None
    values = [frame] if frame.ndim == 1 else [frame.iloc[:, i] for i in range(frame.shape[1])]
    return [comparable(row) for row in zip(*(column.tolist() for column in values), strict=True)]


def named_records(dataset: Any) -> list[Mapping[Any, Any]] | None:
    """Return the records as mappings from column name to value; None if columns have no names."""
    frame = as_pandas(dataset)
    if frame is not None:
        return frame.to_dict("records") if frame.ndim == 2 else None
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(dataset, polars.DataFrame):
        return list(dataset.to_dicts())
    is_table = isinstance(dataset, list | tuple) and all(
        isinstance(row, Mapping) for row in dataset
    )
    return list(dataset) if is_table else None


def exchanged(first: Sequence[Hashable], second: Sequence[Hashable]) -> tuple[int, int]:
    """Return the number of records that only `first` has, and the number that only `second` has."""
    ours, theirs = Counter(first), Counter(second)
    return (ours - theirs).total(), (theirs - ours).total()


def comparable(value: Any) -> Hashable:
    """Return a hashable value. Two results are equal if and only if the two values are, where NaN
    equals NaN, and 0.0 differs from −0.0."""
    kind = type(value)
    if kind in _PLAIN or (kind is float and value and value == value):  # neither zero nor NaN
        return cast(Hashable, value)
    if kind is list:
        return tuple(map(comparable, value))
    if kind is dict:
        return frozenset([(key, comparable(part)) for key, part in value.items()])
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return tuple(map(comparable, value))
    if isinstance(value, Mapping):
        return frozenset((key, comparable(part)) for key, part in value.items())
    if isinstance(value, float) and math.isnan(value):
        return "NaN"  # NaN differs from itself, but is the same record
    if isinstance(value, float) and value == 0 and math.copysign(1, value) < 0:
        return "-0.0"  # equals 0.0, but is another record: 1 / x and atan2 differ
    return value if isinstance(value, Hashable) else repr(value)


def is_scalar(value: Any) -> bool:
    """Return whether a dataset is a single value, such as a number, a text or None."""
    return value is None or isinstance(value, int | float | complex | str | bytes | np.generic)


def is_set(dataset: Any) -> bool:
    """Return whether a dataset is a set, so that its records have no order."""
    return isinstance(dataset, set | frozenset)


def as_pandas(value: Any) -> Any:
    """Return the value if it is a pandas DataFrame or Series, else None. Never imports pandas."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(value, (pandas.DataFrame, pandas.Series)):
        return None
    return value


def are_equal(d1: Any, d2: Any) -> bool:
    """Return whether two datasets are equal. As in Python, 1 equals True. Unlike in Python, NaN
    equals NaN, and −0.0 differs from 0.0."""
    if isinstance(d1, np.ndarray) and isinstance(d2, np.ndarray):
        floats = d1.dtype.kind in "fc" and d2.dtype.kind in "fc"
        if not np.array_equal(d1, d2, equal_nan=floats):
            return False
        # NumPy counts −0.0 and 0.0 as equal, but a mechanism may distinguish them, so the signs are
        # compared.
        return not floats or bool(np.all((np.signbit(d1.real) == np.signbit(d2.real)) | (d1 != 0)))
    if isinstance(d1, list | tuple | dict) and type(d1) is type(d2):
        return comparable(d1) == comparable(d2)
    if is_scalar(d1) and is_scalar(d2):
        return bool(comparable(d1) == comparable(d2))
    digest = fingerprint(d1)
    return type(d1) is type(d2) and digest is not None and digest == fingerprint(d2)


def fingerprint(dataset: Any) -> str | None:
    """Return a digest of a dataset, by which a change is noticed: of the type, shape and bytes of
    an array, the hash of every row of a pandas object, or the pickle of any other value. Return
    None if that is impossible."""
    with suppress(Exception):  # a value that cannot be pickled or hashed has no digest
        digest = hashlib.blake2b(digest_size=16)
        if isinstance(dataset, np.ndarray) and dataset.dtype != object:
            digest.update(repr((dataset.dtype, dataset.shape)).encode())
            digest.update(np.ascontiguousarray(dataset).tobytes())
        else:
            digest.update(content(dataset))
        return digest.hexdigest()
    return None


def difference(d1: Any, d2: Any) -> str | None:
    """Return a description of the one record in which two lists or arrays differ. Return None if
    they differ in no record, or in several."""
    if not (_is_list(d1) and _is_list(d2)):
        return None
    with suppress(Exception):  # records that cannot be compared
        return _difference(d1, d2)
    return None


def _difference(d1: Any, d2: Any) -> str | None:
    first, second = records_of(d1) or [], records_of(d2) or []
    start = _alike(first, second)
    end = min(_alike(first[::-1], second[::-1]), min(len(first), len(second)) - start)
    apart = len(first) - start - end, len(second) - start - end
    if apart == (1, 1):
        changed = _changed(*(_plain(dataset[start]) for dataset in (d1, d2)))
        return f"{counted(len(first), 'record')}; number {start + 1:,}{changed}"
    for has, name, lacks, only in ((d1, "d1", "d2", (1, 0)), (d2, "d2", "d1", (0, 1))):
        if apart == only:
            record = shown(_plain(has[start]), 2 * _SHOWN_CHARACTERS)
            of = counted(len(has), "record")
            return f"{name} has {of}; {lacks} lacks number {start + 1:,}: {record}"
    return None


def _is_list(dataset: Any) -> bool:
    """Return whether a dataset is a list or an array with at most 100,000 values."""
    if isinstance(dataset, np.ndarray):
        return dataset.ndim > 0 and dataset.size <= _MAX_VALUES
    if not isinstance(dataset, list | tuple) or len(dataset) > _MAX_VALUES:
        return False
    return sum(
        len(record) if isinstance(record, _SIZED) else 1 for record in dataset
    ) <= _MAX_VALUES and (
        sum(record.size for record in dataset if isinstance(record, np.ndarray)) <= _MAX_VALUES
    )


def _alike(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return the number of equal items at the start of two sequences."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _changed(first: Any, second: Any) -> str:
    """Return how two records differ, such as `: age is 36 in d1, 41 in d2`."""
    parts = _parts(first, second)
    if not parts:
        return _is(first, second)
    words = ", and ".join(f"{name}{_is(*values)}" for name, values in parts[:_MAX_NAMED])
    more = f" ({len(parts) - _MAX_NAMED} more differ)" if len(parts) > _MAX_NAMED else ""
    return f": {words}{more}"


def _is(first: Any, second: Any) -> str:
    """Return ` is 36 in d1, 41 in d2` for two values. Of long values, show the first difference."""
    texts = [on_one_line(repr(value)) for value in (first, second)]
    alike = _alike(*texts)
    if alike >= _SHOWN_CHARACTERS - 1 and max(map(len, texts)) > _SHOWN_CHARACTERS:
        texts = [f"…{text[alike - _CHARACTERS_BEFORE :]}" for text in texts]
    in_d1, in_d2 = (shortened(text, _SHOWN_CHARACTERS) for text in texts)
    return f" is {in_d1} in d1, {in_d2} in d2"


def _parts(first: Any, second: Any) -> list[tuple[str, tuple[Any, Any]]]:
    """Return (name, (first, second)) for each part in which records differ; [] if unlike."""
    rows = (list, tuple)
    if isinstance(first, Mapping) and isinstance(second, Mapping) and first.keys() == second.keys():
        pairs = [(key, (value, second[key])) for key, value in first.items()]
    elif isinstance(first, rows) and isinstance(second, rows) and len(first) == len(second):
        pairs = [(f"[{index}]", pair) for index, pair in enumerate(zip(first, second, strict=True))]
    else:
        return []
    apart = [(key, pair) for key, pair in pairs if comparable(pair[0]) != comparable(pair[1])]
    return [
        (
            shortened(key, _SHOWN_CHARACTERS)
            if isinstance(key, str)
            else shown(key, _SHOWN_CHARACTERS),
            pair,
        )
        for key, pair in apart
    ]


def _plain(value: Any) -> Any:
    """Return a NumPy value or array as plain Python. Dates and times stay NumPy values."""
    is_array = isinstance(value, np.ndarray | np.generic)
    return value.tolist() if is_array and value.dtype.kind not in "mM" else value
