"""Replace the functions of `jax.random`.

Arrays of JAX cannot store their noise. So a table maps each array to its noise, also through sums,
products and a few other operations. During a run, `jax.jit` is disabled (`eager`), so that the
operations inside of compiled functions are seen, too. Inside of `jax.vmap` and `jax.grad`, arrays
have no values; noise that is drawn there is reported as "compiled, not traced".
"""

from __future__ import annotations

import functools
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from ..noisy_numbers import carried, operate, plain
from ..places import unwatched
from ..primitives import Replacement, integers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..noise_log import Recorder


# Maps the name of a function of `jax.random` to (distribution, names of the parameters after the
# key, scale). The scale is None if it follows from the arguments.
_FUNCTIONS: dict[str, tuple[str, tuple[str, ...], float | None]] = {
    "normal": ("normal", ("shape", "dtype"), 1.0),
    "laplace": ("laplace", ("shape", "dtype"), 1.0),
    "gumbel": ("gumbel", ("shape", "dtype"), 1.0),
    "cauchy": ("cauchy", ("shape", "dtype"), 1.0),
    "exponential": ("exponential", ("shape", "dtype"), 1.0),
    "uniform": ("uniform", ("shape", "dtype", "minval", "maxval"), None),
    "randint": ("integers", ("shape", "minval", "maxval", "dtype"), None),
    "bernoulli": ("binomial", ("p", "shape"), None),
}
# Functions of `jax.random` whose noise is not followed through the program. So the privacy cost (ε)
# of this noise is unknown.
_OPAQUE = (
    *("beta", "binomial", "categorical", "choice", "dirichlet", "gamma", "geometric", "logistic"),
    *("lognormal", "multivariate_normal", "pareto", "permutation", "poisson", "rademacher"),
    *("rayleigh", "t", "truncated_normal", "weibull_min"),
)
# Maps the name of an operation of `jax.lax`, such as `add_p`, to the name of the same operation on
# NumPy numbers that remember their noise.
_OPERATIONS = {
    **{f"{name}_p": name for name in ("add", "sub", "mul", "lt", "le", "gt", "ge")},
    "div_p": "truediv",
}
# Operations of `jax.lax` that change only the shape or the type of the numbers.
_FORMS = ("convert_element_type_p", "copy_p", "reshape_p", "squeeze_p")


def eager() -> Any:
    """Return a context in which `jax.jit` compiles nothing. Without JAX, it has no effect."""
    jax: Any = sys.modules.get("jax")
    return jax.disable_jit() if hasattr(jax, "disable_jit") else nullcontext()


def replacements(recorder: Recorder) -> Iterator[Replacement]:
    jax: Any = sys.modules.get("jax")
    if not hasattr(jax, "disable_jit") or not hasattr(jax, "random"):
        return
    table = _NoiseTable(recorder)
    for name in _FUNCTIONS:
        yield Replacement(jax.random, name, _sampler(table, name, getattr(jax.random, name)))
    for name in _OPAQUE:
        if hasattr(jax.random, name):
            yield Replacement(jax.random, name, _opaque(table, name, getattr(jax.random, name)))
    for name in (*_OPERATIONS, *_FORMS):
        primitive = getattr(jax.lax, name, None)
        if primitive is not None:
            yield Replacement(primitive, "bind", _bound(table, name, primitive.bind))


class _NoiseTable:
    """Maps each noisy JAX array of the present run to a NumPy array that remembers its noise."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._known: dict[int, tuple[Any, Any]] = {}  # by id; an array that is kept keeps its id
        self._run: Any = None

    def numbers(self, array: Any) -> Any:
        """Return the noisy numbers of a JAX array; None if it contains no noise."""
        if self._run is not self.recorder.itself:
            self._run, self._known = self.recorder.itself, {}
        return self._known.get(id(array), (None, None))[1]

    def array(self, numbers: Any, like: Any) -> Any:
        """Return numbers as a JAX array like `like`, and keep their noise in this table."""
        array = sys.modules["jax"].numpy.asarray(np.asarray(plain(numbers)), dtype=like.dtype)
        if carried(numbers) is not None:
            self.numbers(array)
            self._known[id(array)] = array, numbers
        return array


def _is_compiled(value: Any) -> bool:
    return isinstance(value, sys.modules["jax"].core.Tracer)


def _real(recorder: Recorder, sampler: Any, *args: Any, **named: Any) -> Any:
    """Call a function of `jax.random` without recording its draws."""
    # JAX may compile the function during this call, since it would be slow otherwise.
    with sys.modules["jax"].disable_jit(False):
        return recorder.real(sampler, *args, **named)


def _opaque(table: _NoiseTable, name: str, real: Any) -> Any:
    @functools.wraps(real)
    @unwatched
    def draw(*args: Any, **named: Any) -> Any:
        if table.recorder.is_inside:
            return real(*args, **named)
        value = _real(table.recorder, real, *args, **named)
        if _is_compiled(value):
            return _compiled(table.recorder, name, value)
        return table.recorder.opaque(f"jax.random.{name}", value, is_whole=True)

    return draw


def _compiled(recorder: Recorder, name: str, value: Any) -> Any:
    recorder.opaque(f"jax.random.{name} (compiled, not traced)", None)
    return value


def _sampler(table: _NoiseTable, name: str, real: Any) -> Any:
    law, names, scale = _FUNCTIONS[name]
    recorder = table.recorder

    @functools.wraps(real)
    @unwatched
    def draw(*args: Any, **named: Any) -> Any:
        if recorder.is_inside:
            return real(*args, **named)
        array = _real(recorder, real, *args, **named)
        if _is_compiled(array):
            return _compiled(recorder, name, array)
        arguments = {"minval": 0.0, "maxval": 1.0, "p": 0.5, **dict(zip(names, args[1:])), **named}
        key = args[0] if args else named["key"]
        recorder.seeded(f"jax.random.{name}", _words(key))
        parameters, outcomes = _parameters(law, arguments)
        width = None if law != "uniform" else parameters["high"] - parameters["low"]
        numbers = np.asarray(array)
        values = recorder.drawn(
            f"jax.random.{name}",
            law,
            numbers if numbers.ndim else numbers.item(),
            scale=scale if width is None else width,
            parameters=parameters,
            outcomes=outcomes,
        )
        return table.array(values, array)

    return draw


def _words(key: Any) -> Any:
    """Return the integers of a key of JAX."""
    with sys.modules["jax"].disable_jit(False):
        return np.asarray(sys.modules["jax"].random.key_data(key)).tolist()


def _parameters(law: str, arguments: Any) -> tuple[dict[str, Any], list[tuple[Any, float]] | None]:
    """Return (parameters, outcomes) of a draw; no outcomes if there are many."""
    if law in ("uniform", "integers"):
        low, high = (np.asarray(arguments[name])[()] for name in ("minval", "maxval"))
        is_single = law == "integers" and not np.ndim(high - low)
        return {"low": low, "high": high}, integers(low, high) if is_single else None
    if law == "binomial":
        p = np.asarray(arguments["p"], dtype=float)[()]
        return {"p": p}, None if np.ndim(p) else [(0, 1 - float(p)), (1, float(p))]
    return {}, None


def _bound(table: _NoiseTable, name: str, real: Any) -> Any:
    """Return a replacement of `bind` of a `jax.lax` operation that keeps track of noise."""
    recorder = table.recorder

    @unwatched
    def bind(*args: Any, **parameters: Any) -> Any:
        if recorder.is_inside or not any(table.numbers(arg) is not None for arg in args):
            return real(*args, **parameters)
        result = recorder.real(real, *args, **parameters)
        if _is_compiled(result):
            return result
        known = [table.numbers(arg) for arg in args]
        if name in _FORMS:
            is_kept = result.size == args[0].size and result.dtype.kind in "fV"
            numbers = known[0] if not np.ndim(known[0]) else known[0].reshape(result.shape)
            return table.array(numbers, result) if is_kept else result
        operands = [np.asarray(b)[()] if a is None else a for a, b in zip(known, args)]
        return table.array(operate(_OPERATIONS[name], *operands), result)

    return bind
