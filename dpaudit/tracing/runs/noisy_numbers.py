"""Define numbers that remember their noise: floats, integers and arrays. They remember it through
sums, differences and multiplication by a constant. Other code sees them as plain numbers."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .places import unwatched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    # The memory of a number that was computed from noise: (recorder of the run, noise in the
    # number).
    Carried = tuple[Any, "Noise"]


# Types of single Python numbers, in contrast to arrays.
SINGLE = (int, float)
_NUMBERS = (int, float, np.number, np.bool_, np.ndarray)
_USUAL_NUMBERS = frozenset((int, float))
# Types of ordinary values, which do not remember from which noise they were computed. Instances of
# their subclasses may remember it.
_USUAL = frozenset((int, float, bool, type(None)))


class Noise(NamedTuple):
    """How a number, or each entry of an array, was computed: as operand + factor × noise.

    ids: The id of the piece of noise; an array of ids for an array.
    operand: The operand; None before the first addition.
    use: The index of the latest use of this noise in the records of the run; None before the first.
    """

    ids: Any
    factor: Any
    operand: Any = None
    use: int | None = None


def carried(value: Any) -> Carried | None:
    """Return (recorder of the run, noise) if a value remembers its noise, else None."""
    return value._carried if isinstance(value, _TRACED) else None


def plain(value: Any) -> Any:
    """Return a value as an ordinary number or array if it remembers its noise, else unchanged."""
    if type(value) in _USUAL:
        return value
    if isinstance(value, _SCALARS):
        number, kind = _python_number(value), value._kind
        return number if type(number) is kind else kind.__new__(kind, number)
    return np.asarray(value) if isinstance(value, TracedArray) else value


def bare(value: Any) -> Any:
    """Return a value with `plain` applied to it, also inside nested lists and tuples."""
    return type(value)(map(bare, value)) if type(value) in (list, tuple) else plain(value)


def _python_number(value: Any) -> Any:
    if isinstance(value, np.integer):
        return np.int64.__index__(value)
    # Adding -0.0, not 0.0, keeps the sign of a zero.
    return float.__add__(value, -0.0)


def traced(value: Any, recorder: Any, noise: Noise) -> Any:
    """Return a copy of a number or array that remembers `noise`. A Boolean, and an integer that
    needs more than 64 bits, are returned unchanged."""
    if type(value) is float:
        number = TracedFloat(value)
        number._carried = (recorder, noise)
        return number
    if isinstance(value, np.ndarray) and value.ndim:
        array = value.view(TracedArray)
        array._carried = (recorder, noise)
        return array
    if isinstance(value, np.ndarray):
        value = value[()]
    if isinstance(value, (bool, np.bool_)):
        return value
    if isinstance(value, np.floating):
        kind: Any = TracedFloat64
    elif isinstance(value, (int, np.integer)) and -(2**63) <= value < 2**63:
        kind = TracedInteger
    else:
        return value
    scalar = kind(value)
    scalar._carried = (recorder, noise)
    return scalar


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
OPERATIONS = {**_ARITHMETIC, **_COMPARISONS}
_UFUNCS: dict[Any, str] = {
    np.add: "add",
    np.subtract: "sub",
    np.multiply: "mul",
    np.true_divide: "truediv",
    np.less: "lt",
    np.less_equal: "le",
    np.greater: "gt",
    np.greater_equal: "ge",
}


@unwatched
def operate(name: str, left: Any, right: Any) -> Any:
    """Return the result of `add`, `sub`, `mul`, `truediv`, `lt`, `le`, `gt` or `ge` for two
    numbers, at least one of which remembers its noise. A result that is a number remembers it, too,
    if the law of the noise is known."""
    carrier = carried(left) or carried(right)
    if carrier is None or not carrier[0].is_open:
        return OPERATIONS[name](plain(left), plain(right))
    recorder = carrier[0]
    return (recorder.arithmetic if name in _ARITHMETIC else recorder.compare)(name, left, right)


def _is_number(value: Any) -> bool:
    return type(value) in _USUAL_NUMBERS or isinstance(value, _NUMBERS)


def _method(name: str, *, is_reflected: bool = False) -> Any:
    def method(self: Any, other: Any) -> Any:
        if not _is_number(other):
            return NotImplemented
        return operate(name, other, self) if is_reflected else operate(name, self, other)

    return method


def _applied(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return the result of a universal function of NumPy; some inputs remember their noise."""
    name, out = _UFUNCS.get(ufunc), options.pop("out", None)
    if ufunc is np.negative and method == "__call__":
        name, inputs = "mul", (*inputs, -1)
    if ufunc is np.positive and method == "__call__" and out is None:
        return inputs[0]
    if method != "__call__" or name is None or options:
        if out is None:
            return getattr(ufunc, method)(*map(plain, inputs), **options)
        getattr(ufunc, method)(*map(plain, inputs), out=tuple(map(plain, out)), **options)
        for target in out:
            if isinstance(target, TracedArray):
                target._carried = None
        return out[0] if len(out) == 1 else out
    result = operate(name, *(value if _is_number(value) else np.asarray(value) for value in inputs))
    if out is None:
        return result
    (target,) = out
    np.asarray(target)[...] = plain(result)
    if isinstance(target, TracedArray):
        target._carried = carried(result)
    return target


class _Scalar:
    """Methods for the classes of floats and integers that remember their noise, into which they are
    copied. Inheritance would not work: NumPy derives the type of a number from the first base
    class."""

    _carried: Carried | None = None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return _applied(ufunc, method, inputs, options)

    def __neg__(self) -> Any:
        return operate("mul", self, -1)

    def __pos__(self) -> Any:
        return self

    def item(self) -> Any:
        """Return this object. NumPy's `item` would return a plain number, without noise."""
        return self

    def tolist(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __copy__(self) -> Any:
        return self

    def __reduce__(self) -> Any:
        return type(plain(self)), (plain(self),)


for _name in OPERATIONS:
    setattr(_Scalar, f"__{_name}__", _method(_name))
for _name in _ARITHMETIC:
    setattr(_Scalar, f"__r{_name}__", _method(_name, is_reflected=True))


def _carrying(kind: type[Any]) -> Any:
    for name, value in vars(_Scalar).items():
        if name not in ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__"):
            setattr(kind, name, value)
    # With this name, messages of exceptions show the true type, such as `float`.
    kind.__name__ = kind._kind.__name__
    return kind


@_carrying
class TracedFloat(np.float64):
    """A float that remembers its noise. It is an `np.float64`, so that NumPy calls its methods."""

    _kind: Any = float
    _carried: Carried | None
    __hash__ = np.float64.__hash__
    __repr__ = float.__repr__
    __str__ = float.__repr__


@_carrying
class TracedFloat64(np.float64):
    """An `np.float64` that remembers from which noise it was computed."""

    _kind: Any = np.float64
    _carried: Carried | None
    __hash__ = np.float64.__hash__

    def astype(self, kind: Any, *_: Any, **__: Any) -> Any:  # type: ignore[override]  # in short
        value = plain(self).astype(kind)
        return self if isinstance(value, np.floating) else value


@_carrying
class TracedInteger(np.int64):
    """An integer that remembers its noise. It is an `np.int64`, so that NumPy calls its methods."""

    _kind: Any = int
    _carried: Carried | None
    __hash__ = np.int64.__hash__

    def __repr__(self) -> str:
        return repr(int(plain(self)))

    __str__ = __repr__

    def astype(self, kind: Any, *_: Any, **__: Any) -> Any:  # type: ignore[override]  # in short
        value = np.int64(plain(self)).astype(kind)
        return traced(value, *self._carried) if self._carried else value


class TracedArray(np.ndarray):
    """An array whose entries remember from which noise they were computed."""

    _carried: Carried | None = None

    def __array_finalize__(self, source: Any) -> None:
        self._carried = None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return _applied(ufunc, method, inputs, options)

    def _of(self, change: Callable[[Any], Any]) -> Any:
        """Index or reshape the numbers and the record of their noise."""
        value = change(np.asarray(self))
        if self._carried is None:
            return value
        recorder, noise = self._carried
        parts = [
            None if part is None else change(np.broadcast_to(np.asarray(part), self.shape))
            for part in (noise.ids, noise.factor, noise.operand)
        ]
        return traced(value, recorder, Noise(parts[0], parts[1], parts[2], noise.use))

    def __getitem__(self, key: Any) -> Any:
        return self._of(lambda array: array[key])

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __setitem__(self, key: Any, value: Any) -> None:
        np.asarray(self)[key] = plain(value)
        self._carried = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        return np.asarray(self).__reduce_ex__(protocol)

    def __deepcopy__(self, memo: Any) -> Any:
        return self._of(lambda array: array.copy())

    @property
    def T(self) -> Any:  # noqa: N802  # NumPy's name
        return self._of(lambda array: array.T)

    def sort(self, *options: Any, **more: Any) -> None:
        np.asarray(self).sort(*options, **more)
        self._carried = None

    def astype(self, kind: Any, *options: Any, **more: Any) -> Any:  # type: ignore[override]  # in short
        value = np.asarray(self).astype(kind, *options, **more)
        is_rounded = value.dtype.kind not in "fc" and self.dtype.kind == "f"
        if self._carried is None or is_rounded:
            return value
        return traced(value, *self._carried)

    def item(self, *index: Any) -> Any:
        return self.ravel()[0] if not index else np.asarray(self).item(*index)

    def tolist(self) -> Any:
        return [entry.tolist() if isinstance(entry, TracedArray) else entry for entry in self]


def _keeping(name: str) -> Any:
    """Return a method that moves or copies entries of an array, and their noise with them."""

    def method(self: Any, *options: Any, **more: Any) -> Any:
        return self._of(lambda array: getattr(array, name)(*options, **more))

    return method


for _name in ("reshape", "ravel", "flatten", "squeeze", "copy"):
    setattr(TracedArray, _name, _keeping(_name))

_SCALARS = (TracedFloat, TracedFloat64, TracedInteger)
_TRACED = (*_SCALARS, TracedArray)
