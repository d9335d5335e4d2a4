"""Encode data for a Python child, and decode the outcomes that it returns.

Requests, datasets and the mechanism are pickled. Outcomes come back as JSON or as raw arrays of
numbers and texts, and never as pickles: reading a pickle can run any code. `child_script.encode`
writes the JSON that `decode` reads.
"""

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

from dpaudit.errors import Name, TargetError
from dpaudit.inputs.values import Inline, Reference, Rows
from dpaudit.outcomes import Raised
from dpaudit.outcomes.frames import Frame, PlainSeries
from dpaudit.outcomes.representation import AsInASet, InOrder
from dpaudit.outcomes.scalars import Missing

# Newest pickle protocol that Python 3.8 reads: child_script.py may run with this version.
_PROTOCOL = 4


def pickled(value: Any, what: str) -> bytes:
    """Return a pickle of `value` that child_script.py can read with Python 3.8 or later and any
    version of NumPy. Raises TargetError if that is impossible; `what` names the value in the
    message."""
    stream = io.BytesIO()
    try:
        _Pickler(stream, _PROTOCOL).dump(value)
    except Exception as error:  # a user's object may raise any exception
        raise TargetError(
            f"{what} cannot be sent to another process ({error}); name it by import path, or "
            "leave out ",
            Name("isolate"),
            code="not-picklable",
        ) from error
    return stream.getvalue()


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> Any:
        """Return plain values that stand for an object in the pickle, and from which
        `child_script._Unpickler` makes the object. Return None for an object that is pickled as
        usual."""
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
    """Return a request as bytes: the length of a pickle in 8 bytes, then the pickle."""
    data = pickle.dumps((name, dict(arguments)), _PROTOCOL)
    return len(data).to_bytes(8, "little") + data


def parsed(text: bytes) -> Any:
    """Return the outcome in a line of JSON. Raises ValueError for a malformed line."""
    try:
        return decode(json.loads(text))
    except (TypeError, KeyError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"a malformed outcome ({error})") from None


def decode(node: Any) -> Any:
    """Return the outcome that `child_script.encode` has converted to `node`, a value of JSON. A
    dict whose only key begins with "$" stands for a value that JSON cannot express, such as
    {"$tuple": [1, 2]}."""
    if type(node) is list:
        return [decode(entry) for entry in node]
    if type(node) is not dict:
        return node
    tag = next(iter(node)) if len(node) == 1 else ""
    if tag[:1] != "$":
        return InOrder({key: decode(entry) for key, entry in node.items()})
    read = _FORMS.get(tag)
    if read is None:
        raise ValueError(f"the form {tag!r} is not known")
    body = node[tag]
    # `read` takes one argument, unless the tag is in `_OF_PARTS`: `body` is a list of arguments
    # then.
    return read(*body) if tag in _OF_PARTS else read(body)


def array(dtype: Any, shape: list[int], data: bytes) -> NDArray[Any]:
    """Return an array of numbers, texts or records from its raw bytes. Raises ValueError for an
    array of Python objects, and if `data` has too few or too many bytes."""
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise ValueError(f"an array of type {dtype}")
    return np.frombuffer(data, kind).reshape(shape)


def _array(dtype: Any, shape: list[int], text: str) -> Any:
    """Return an array from its bytes in base64; return a NumPy scalar if the shape is empty."""
    is_plain = isinstance(dtype, str)
    return array(dtype if is_plain else list(map(tuple, dtype)), shape, base64.b64decode(text))[()]


def _derived(name: str, value: Any) -> Any:
    plain = decode(value)
    kind: Any = type(plain)
    return _derived_type(name, kind)(plain)


@functools.cache
def _derived_type(name: str, kind: Any) -> Any:
    return type(name, (kind,), {})


def _member(kind: str, name: str) -> Any:
    enum_type: Any = enum.Enum(kind.rpartition(".")[2], {name: name}, qualname=kind)  # type: ignore[misc]  # mypy wants names in the source
    return enum_type(name)


@functools.cache
def _record_type(kind: str, names: tuple[str, ...]) -> Any:
    record_type = dataclasses.make_dataclass(kind.rpartition(".")[2], names, frozen=True)
    record_type.__qualname__ = kind
    return record_type


def _moment(name: str, text: str, nanoseconds: int) -> Any:
    moment = _derived_type(name, datetime.datetime).fromisoformat(text)
    moment.nanosecond = nanoseconds
    return moment


def _duration(name: str, days: int, seconds: int, microseconds: int, nanoseconds: int) -> Any:
    duration = _derived_type(name, datetime.timedelta)(days, seconds, microseconds)
    duration.nanoseconds = nanoseconds
    return duration


# Maps a tag in JSON, such as "$complex", to the function that makes the value from several
# arguments, such as the two parts of a complex number.
_OF_PARTS: Mapping[str, Callable[..., Any]] = {
    "$raised": lambda *parts: Raised(*map(str, parts)),
    "$scalar": lambda dtype, value: np.dtype(dtype).type(value),
    "$derived": _derived,
    "$complex": complex,
    "$timedelta": datetime.timedelta,
    "$array": _array,
    "$structured": _array,
    "$enum": _member,
    "$record": lambda kind, names, values: _record_type(kind, tuple(names))(*map(decode, values)),
    "$frame": lambda word, columns: Frame(
        word, {decode(key): decode(column) for key, column in columns}
    ),
    "$series": lambda word, entries: PlainSeries(word, decode(entries)),
    "$moment": _moment,
    "$duration": _duration,
    "$missing": lambda name, word: _derived_type(name, Missing)(word),
}
# Maps every tag in JSON, such as "$set", to the function that makes the value. The functions of
# `_OF_PARTS` take several arguments; the others take a single argument.
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
