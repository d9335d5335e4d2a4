"""Data to a worker process, and outcomes from it: never pickles, which could run any code."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import functools
import io
import json
import pickle
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import TargetError
from dpaudit.inputs.frames import Rows
from dpaudit.inputs.values import Inline, Reference
from dpaudit.outcomes import Raised
from dpaudit.outcomes.frames import Frame, Series
from dpaudit.outcomes.representation import AsInASet, InOrder
from dpaudit.outcomes.special import Missing

# The newest pickle protocol that Python 3.8 reads.
_PROTOCOL = 4


def pickled(value: Any, what: str) -> bytes:
    """Return a pickle for a worker, with NumPy arrays in a form that any version of NumPy reads.
    Raises TargetError, with `what` as the name of the value."""
    stream = io.BytesIO()
    try:
        _Pickler(stream, _PROTOCOL).dump(value)
    except Exception as error:  # whatever a user's object raises when it is pickled
        raise TargetError(
            f"{what} cannot be sent to another process ({error}); name it by import path, or "
            "leave out isolate",
            code="not-picklable",
        ) from error
    return stream.getvalue()


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> Any:
        """Return the parts of an array, or of an object that is imported or made in the worker;
        else None."""
        if type(value) is Reference:
            return "import", value.path, value.called
        if type(value) is Inline:
            value = value.value(elsewhere=True)
        if type(value) is Rows:
            return value.recipe
        is_array = type(value) is np.ndarray or isinstance(value, np.generic)
        if not is_array or value.dtype.hasobject or value.dtype.names:
            return None
        return value.dtype.str, value.shape, value.tobytes()


def request(name: str, arguments: Mapping[str, Any]) -> bytes:
    """Return a request: its length in 8 bytes, then a pickle of plain values."""
    data = pickle.dumps((name, dict(arguments)), _PROTOCOL)
    return len(data).to_bytes(8, "little") + data


def parsed(text: bytes) -> Any:
    """Return the outcome of a line of JSON. Raises ValueError if it is malformed."""
    try:
        return decode(json.loads(text))
    except (TypeError, KeyError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"a malformed outcome ({error})") from None


def decode(node: Any) -> Any:
    """Return the value of parsed JSON, as `worker.encode` writes it."""
    if type(node) is list:
        return [decode(one) for one in node]
    if type(node) is not dict:
        return node
    tag = next(iter(node)) if len(node) == 1 else ""
    if tag[:1] != "$":
        return InOrder({key: decode(one) for key, one in node.items()})
    read = _FORMS.get(tag)
    if read is None:
        raise ValueError(f"the form {tag!r} is not known")
    body = node[tag]
    # The body of a form with several parts is a list.
    return read(*body) if tag in _OF_PARTS else read(body)


def array(dtype: str, shape: list[int], data: bytes) -> NDArray[Any]:
    """Return an array of numbers or texts. Raises ValueError for other types."""
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise ValueError(f"an array of type {dtype}")
    return np.frombuffer(data, kind).reshape(shape)


def _structured(fields: Any, shape: Any, data: str) -> Any:
    dtype = np.dtype([(name, kind) for name, kind in fields])
    if dtype.hasobject:
        raise ValueError("an array of objects")
    return np.frombuffer(base64.b64decode(data), dtype).reshape(shape)[()]


def _derived(name: str, value: Any) -> Any:
    plain = decode(value)
    kind: Any = type(plain)
    return _derived_type(name, kind)(plain)


@functools.cache
def _derived_type(name: str, kind: Any) -> Any:
    return type(name, (kind,), {})


def _member(kind: str, name: str) -> Any:
    made: Any = enum.Enum(kind.rpartition(".")[2], {name: name}, qualname=kind)  # type: ignore[misc]  # names come from elsewhere
    return made(name)


@functools.cache
def _record_type(kind: str, names: tuple[str, ...]) -> Any:
    made = dataclasses.make_dataclass(kind.rpartition(".")[2], names, frozen=True)
    made.__qualname__ = kind
    return made


def _moment(name: str, text: str, nanoseconds: int) -> Any:
    moment = _derived_type(name, datetime.datetime).fromisoformat(text)
    moment.nanosecond = nanoseconds
    return moment


def _duration(name: str, days: int, seconds: int, microseconds: int, nanoseconds: int) -> Any:
    duration = _derived_type(name, datetime.timedelta)(days, seconds, microseconds)
    duration.nanoseconds = nanoseconds
    return duration


_OF_PARTS: Mapping[str, Callable[..., Any]] = {
    "$raised": lambda *parts: Raised(*map(str, parts)),
    "$scalar": lambda dtype, value: np.dtype(dtype).type(value),
    "$derived": _derived,
    "$complex": complex,
    "$timedelta": datetime.timedelta,
    "$array": lambda dtype, shape, data: array(dtype, shape, base64.b64decode(data))[()],
    "$structured": _structured,
    "$enum": _member,
    "$record": lambda kind, names, values: _record_type(kind, tuple(names))(*map(decode, values)),
    "$frame": lambda word, columns: Frame(word, {decode(key): decode(one) for key, one in columns}),
    "$series": lambda word, entries: Series(word, decode(entries)),
    "$moment": _moment,
    "$duration": _duration,
    "$missing": lambda name, word: _derived_type(name, Missing)(word),
}
_FORMS: Mapping[str, Callable[..., Any]] = {
    **_OF_PARTS,
    "$tuple": lambda body: tuple(map(decode, body)),
    "$set": lambda body: set(map(decode, body)),
    "$frozenset": lambda body: frozenset(map(decode, body)),
    "$dict": lambda body: InOrder((decode(key), decode(value)) for key, value in body),
    "$as_in_a_set": lambda body: AsInASet(decode(body)),
    "$int": lambda body: int(body, 16),
    "$bytes": base64.b64decode,
    "$bytearray": lambda body: bytearray(base64.b64decode(body)),
    "$Decimal": Decimal,
    "$Fraction": Fraction,
    "$UUID": uuid.UUID,
    "$datetime": datetime.datetime.fromisoformat,
    "$date": datetime.date.fromisoformat,
    "$time": datetime.time.fromisoformat,
}
