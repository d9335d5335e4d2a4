"""What goes to a worker process, and what comes back: never a pickle, which could be anything."""

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

# The newest one that Python 3.8 reads.
_PROTOCOL = 4


def pickled(value: Any, what: str) -> bytes:
    """Return what a worker reads; NumPy arrays in a form that any version of NumPy reads. Raises
    TargetError when it cannot be pickled."""
    stream = io.BytesIO()
    try:
        _Pickler(stream, _PROTOCOL).dump(value)
    except Exception as error:  # whatever a user's object raises when it is pickled
        raise TargetError(
            f"{what} cannot be sent to another process ({error}); name it by import path, or "
            "leave out isolate"
        ) from error
    return stream.getvalue()


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> Any:
        """Return an array, and what is imported or made there, as its parts; else None."""
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
    """Return the outcome that a text stands for. Raises ValueError when it is malformed."""
    try:
        return decode(json.loads(text))
    except (TypeError, KeyError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"a malformed outcome ({error})") from None


def decode(node: Any) -> Any:
    """Return the value that parsed JSON stands for."""
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
    return read(node[tag])


def _structured(body: Any) -> Any:
    fields, shape, data = body
    dtype = np.dtype([(name, kind) for name, kind in fields])
    if dtype.hasobject:
        raise ValueError("an array of objects")
    return np.frombuffer(base64.b64decode(data), dtype).reshape(shape)[()]


def _as_in_a_set(body: Any) -> Any:
    return AsInASet(decode(body))


def _scalar(body: Any) -> Any:
    dtype, value = body
    return np.dtype(dtype).type(value)


def _derived(body: Any) -> Any:
    name, value = body
    plain = decode(value)
    kind: Any = type(plain)
    return _derived_type(name, kind)(plain)


@functools.cache
def _derived_type(name: str, kind: Any) -> Any:
    return type(name, (kind,), {})


def array(dtype: str, shape: list[int], data: bytes) -> NDArray[Any]:
    """Return an array of numbers or texts. Raises ValueError for what is none."""
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise ValueError(f"an array of type {dtype}")
    return np.frombuffer(data, kind).reshape(shape)


def _array(body: Any) -> Any:
    dtype, shape, data = body
    return array(dtype, shape, base64.b64decode(data))[()]


def _member(body: Any) -> Any:
    kind, name = body
    made: Any = enum.Enum(kind.rpartition(".")[2], {name: name}, qualname=kind)  # type: ignore[misc]  # names come from elsewhere
    return made(name)


def _record(body: Any) -> Any:
    kind, names, values = body
    return _record_type(kind, tuple(names))(*map(decode, values))


@functools.cache
def _record_type(kind: str, names: tuple[str, ...]) -> Any:
    made = dataclasses.make_dataclass(kind.rpartition(".")[2], names, frozen=True)
    made.__qualname__ = kind
    return made


def _frame(body: Any) -> Any:
    word, columns = body
    return Frame(word, {decode(key): decode(entries) for key, entries in columns})


def _moment(body: Any) -> Any:
    name, text, nanoseconds = body
    moment = _derived_type(name, datetime.datetime).fromisoformat(text)
    moment.nanosecond = nanoseconds
    return moment


def _duration(body: Any) -> Any:
    name, *parts, nanoseconds = body
    duration = _derived_type(name, datetime.timedelta)(*parts)
    duration.nanoseconds = nanoseconds
    return duration


def _missing(body: Any) -> Any:
    name, word = body
    return _derived_type(name, Missing)(word)


_FORMS: Mapping[str, Callable[[Any], Any]] = {
    "$raised": lambda body: Raised(*map(str, body)),
    "$tuple": lambda body: tuple(map(decode, body)),
    "$set": lambda body: set(map(decode, body)),
    "$frozenset": lambda body: frozenset(map(decode, body)),
    "$dict": lambda body: InOrder((decode(key), decode(value)) for key, value in body),
    "$as_in_a_set": _as_in_a_set,
    "$scalar": _scalar,
    "$derived": _derived,
    "$int": lambda body: int(body, 16),
    "$bytes": base64.b64decode,
    "$bytearray": lambda body: bytearray(base64.b64decode(body)),
    "$complex": lambda body: complex(*body),
    "$Decimal": Decimal,
    "$Fraction": Fraction,
    "$UUID": uuid.UUID,
    "$datetime": datetime.datetime.fromisoformat,
    "$date": datetime.date.fromisoformat,
    "$time": datetime.time.fromisoformat,
    "$timedelta": lambda body: datetime.timedelta(*body),
    "$array": _array,
    "$structured": _structured,
    "$enum": _member,
    "$record": _record,
    "$frame": _frame,
    "$series": lambda body: Series(body[0], decode(body[1])),
    "$moment": _moment,
    "$duration": _duration,
    "$missing": _missing,
}
