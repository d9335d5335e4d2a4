"""Replace NumPy's generators and functions that draw, and `rvs` of distributions in
`scipy.stats`."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..noisy_numbers import plain
from ..places import unwatched
from ..primitives import MAX_LISTED_OUTCOMES, Replacement, as_coin, integers, recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..noise_log import Recorder


class _Spec(NamedTuple):
    """Describes a primitive of NumPy: its law, its parameters in order with their defaults, and a
    function that takes the arguments by name and returns the scale of the noise."""

    law: str
    names: tuple[str, ...]
    scale: Callable[[Mapping[str, Any]], Any]
    defaults: Mapping[str, Any] = {}


def _of_scale(arguments: Mapping[str, Any]) -> Any:
    return arguments["scale"]


def _unit_scale(arguments: Mapping[str, Any]) -> float:
    return 1.0


def _no_scale(arguments: Mapping[str, Any]) -> None:
    return None


def _of_range(arguments: Mapping[str, Any]) -> Any:
    return np.subtract(arguments["high"], arguments["low"])


def _of_failures(arguments: Mapping[str, Any]) -> Any:
    with np.errstate(divide="ignore"):
        return -1 / np.log1p(-np.asarray(arguments["p"], dtype=float))[()]


def _located(law: str) -> _Spec:
    return _Spec(law, ("loc", "scale", "size"), _of_scale, {"loc": 0.0, "scale": 1.0})


_SPECS: dict[str, _Spec] = {
    "laplace": _located("laplace"),
    "normal": _located("normal"),
    "logistic": _located("logistic"),
    "gumbel": _located("gumbel"),
    "exponential": _Spec("exponential", ("scale", "size"), _of_scale, {"scale": 1.0}),
    "standard_exponential": _Spec("exponential", ("size",), _unit_scale),
    "standard_normal": _Spec("normal", ("size",), _unit_scale),
    "standard_cauchy": _Spec("cauchy", ("size",), _unit_scale),
    "standard_t": _Spec("student", ("df", "size"), _unit_scale),
    "uniform": _Spec("uniform", ("low", "high", "size"), _of_range, {"low": 0.0, "high": 1.0}),
    "random": _Spec("uniform", ("size",), _unit_scale),
    "random_sample": _Spec("uniform", ("size",), _unit_scale),
    "ranf": _Spec("uniform", ("size",), _unit_scale),
    "geometric": _Spec("geometric", ("p", "size"), _of_failures),
    "binomial": _Spec("binomial", ("n", "p", "size"), _no_scale),
    "poisson": _Spec("poisson", ("lam", "size"), _no_scale, {"lam": 1.0}),
    "gamma": _Spec("gamma", ("shape", "scale", "size"), _no_scale, {"scale": 1.0}),
    "standard_gamma": _Spec("gamma", ("shape", "size"), _no_scale),
    "beta": _Spec("beta", ("a", "b", "size"), _no_scale),
    "negative_binomial": _Spec("negative-binomial", ("n", "p", "size"), _no_scale),
    "integers": _Spec("integers", ("low", "high", "size"), _no_scale),
    "randint": _Spec("integers", ("low", "high", "size"), _no_scale),
}
# Functions that take the shape of their result in place of other arguments.
_SHAPED = {"rand": "uniform", "randn": "normal"}
# Functions that draw uniform numbers from [0, 1). Calls without arguments take a fast path.
_UNIFORM = ("random", "random_sample", "ranf")
_PICKS = ("choice", "permutation", "shuffle")
# Functions that draw vectors with dependent entries. A second run with the same noise repeats the
# vectors, but the privacy cost of such noise is unknown.
_VECTORS = ("multinomial", "multivariate_normal", "dirichlet", "hypergeometric")


@unwatched
def _called(
    recorder: Recorder, label: str, name: str, real: Callable[..., Any], args: Any, named: Any
) -> Any:
    """Call a function of NumPy that draws noise, record the draw, and return its numbers."""
    if args or named:
        args, named = tuple(map(plain, args)), {key: plain(value) for key, value in named.items()}
    if recorder.is_inside:
        return real(*args, **named)
    if not args and not named and name in _UNIFORM:
        return recorder.drawn(label, "uniform", recorder.real(real), scale=1.0)
    if name in _PICKS:
        return _picked(recorder, label, name, real, args, named)
    values = recorder.real(real, *args, **named)
    if name in _SHAPED:
        return recorder.drawn(label, _SHAPED[name], values, scale=1.0)
    if name in _VECTORS:
        return recorder.drawn(label, name.replace("_", "-"), values)
    spec = _SPECS[name]
    passed = {**dict(zip(spec.names, args)), **named}
    arguments = {**spec.defaults, **passed}
    parameters = {
        key: value for key, value in arguments.items() if key not in ("size", "dtype", "out")
    }
    location = passed.get("loc") if "loc" in passed else None
    parameters.pop("loc", None)
    outcomes = None
    ends: list[Any] = [arguments.get("low"), arguments.get("high")]
    if spec.law == "integers" and not any(map(np.ndim, ends)):
        parameters = _bounds(arguments)
        outcomes = integers(**parameters)
    elif name == "binomial" and not (np.ndim(arguments["n"]) or np.ndim(arguments["p"])):
        outcomes = _binomial(int(arguments["n"]), float(arguments["p"]))
    return recorder.drawn(
        label,
        spec.law,
        values,
        scale=spec.scale(arguments),
        location=location,
        parameters=parameters,
        outcomes=outcomes,
    )


def _bounds(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return {"low": …, "high": …} of random integers, where `high` itself is never drawn."""
    low, high = arguments.get("low"), arguments.get("high")
    start, stop = (0, low) if high is None else (low, high)
    return {"low": int(start or 0), "high": int(stop or 0) + bool(arguments.get("endpoint", False))}


def _binomial(n: int, p: float) -> list[tuple[int, float]] | None:
    """Return (outcome, probability) for each outcome; None if there are more than 64 outcomes."""
    every = range(n + 1)
    return (
        [(k, math.comb(n, k) * p**k * (1 - p) ** (n - k)) for k in every]
        if n < MAX_LISTED_OUTCOMES
        else None
    )


def _picked(
    recorder: Recorder, label: str, name: str, real: Callable[..., Any], args: Any, named: Any
) -> Any:
    """Call a function of NumPy that permutes or picks items, and record the indexes."""
    if name == "choice":
        names = ("a", "size", "replace", "p", "axis", "shuffle")
        arguments = {**dict(zip(names, args)), **named}
        things = arguments.pop("a")
        count = int(things) if np.ndim(things) == 0 else len(things)
        index = recorder.real(
            real, count, **{key: value for key, value in arguments.items() if key != "axis"}
        )
        weights = arguments.get("p")
        outcomes = None
        law = np.full(count, 1 / count) if weights is None else np.asarray(weights, dtype=float)
        is_again = arguments.get("replace", True) or arguments.get("size") is None
        coin = as_coin(things, law) if is_again and np.ndim(things) == 1 else None
        if coin is not None:
            # Items without weights may be the records of a dataset. If d2 has one record more than
            # d1, each item has probability 1/n for d1 and 1/(n + 1) for d2. This is no leak by
            # itself, so probabilities are recorded only for items with weights.
            parameters: dict[str, Any] = {"n": count}
            if weights is not None:
                parameters = {"n": 2, "p": np.array([p for _, p in coin])}
            values = np.asarray(things, dtype=int)[index]
            picked = recorder.picked(label, "choice", values, parameters=parameters, outcomes=coin)
            return np.asarray(picked, dtype=bool)[()]
        if count <= MAX_LISTED_OUTCOMES and is_again:
            outcomes = [(i, float(law[i])) for i in range(count)]
        parameters = {"n": count} if weights is None else {"n": count, "p": np.asarray(weights)}
        law_name = "choice" if is_again else "sample"
        index = recorder.picked(label, law_name, index, parameters=parameters, outcomes=outcomes)
        if np.ndim(things) == 0:
            return index
        index = np.minimum(index, count - 1) if count else index
        return np.take(np.asarray(things), index, axis=arguments.get("axis", 0))
    (things,) = args[:1] or (named.get("x"),)
    count = int(things) if np.ndim(things) == 0 else len(things)
    permutation = real.__self__.permutation if hasattr(real, "__self__") else np.random.permutation
    order = recorder.real(permutation, count)
    order = recorder.picked(label, "permutation", order, parameters={"n": count})
    order = order if sorted(order) == list(range(count)) else np.arange(count)
    if name == "permutation":
        return order if np.ndim(things) == 0 else np.asarray(things)[order]
    shuffled = [things[position] for position in order]
    for position, thing in enumerate(shuffled):
        things[position] = thing
    return None


_NAMES = (*_SPECS, *_SHAPED, *_PICKS, *_VECTORS)


def _watched(kind: type[Any]) -> Any:
    """Return a subclass of a class of random generators that records each draw."""

    def method(name: str) -> Any:
        def draw(self: Any, *args: Any, **named: Any) -> Any:
            real = getattr(super(watched, self), name)
            return _called(self.recorder, f"rng.{name}", name, real, args, named)

        draw.__name__ = name
        return draw

    body: dict[str, Any] = {name: method(name) for name in _NAMES if hasattr(kind, name)}
    body["recorder"] = None
    watched: type[Any] = type(kind.__name__, (kind,), body)
    return watched


Generator = _watched(np.random.Generator)
RandomState = _watched(np.random.RandomState)


def wrapped(value: Any, recorder: Recorder) -> Any:
    """Return a generator that draws from the same stream as a NumPy generator, and records the
    draws. Return None if `value` is no `Generator` or `RandomState`; a user's subclass does not
    count."""
    if type(value) is np.random.Generator:
        generator = Generator(value.bit_generator)
    elif type(value) is np.random.RandomState:
        generator = RandomState(value._bit_generator)
    else:
        return None
    generator.recorder = recorder
    return generator


def replacements(recorder: Recorder) -> Iterator[Replacement]:
    def function(name: str) -> Any:
        real = getattr(np.random, name)

        def draw(*args: Any, **named: Any) -> Any:
            return _called(recorder, f"np.random.{name}", name, real, args, named)

        return draw

    for name in _NAMES:
        if hasattr(np.random, name):
            yield Replacement(np.random, name, function(name))
    make, seed = np.random.default_rng, np.random.seed

    def default_rng(*args: Any, **named: Any) -> Any:
        generator = make(*args, **named)
        if recorder.is_inside:
            return generator
        seed = args[0] if args else named.get("seed")
        if isinstance(seed, np.random.Generator):
            return seed if isinstance(seed, Generator) else wrapped(seed, recorder.itself)
        if seed is not None:
            recorder.seeded("np.random.default_rng", seed)
        return wrapped(generator, recorder.itself)

    def set_seed(*args: Any, **named: Any) -> Any:
        recorder.seeded("np.random.seed", args[0] if args else named.get("seed"))
        return seed(*args, **named)

    class RandomStateMeta(type):
        """Metaclass of the replacement of `np.random.RandomState`. `isinstance`, which libraries
        call, stays true for generators that were made before the run."""

        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, np.random.mtrand.RandomState)

    class State(RandomState, metaclass=RandomStateMeta):  # type: ignore[misc, valid-type]  # made above
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            self.recorder = recorder.itself
            seed = args[0] if args else named.get("seed")
            if seed is not None and not isinstance(seed, np.random.BitGenerator):
                recorder.seeded("np.random.RandomState", seed)

    yield Replacement(np.random, "default_rng", default_rng)
    yield Replacement(np.random, "seed", set_seed)
    yield Replacement(np.random, "RandomState", State)
    yield from _of_scipy(recorder)


# Maps the name of a distribution in scipy.stats to its name in a trace.
_LAWS = {
    "laplace": "laplace",
    "norm": "normal",
    "logistic": "logistic",
    "gumbel_r": "gumbel",
    "expon": "exponential",
    "cauchy": "cauchy",
    "uniform": "uniform",
    "dlaplace": "discrete",
    "geom": "geometric",
}


def _of_scipy(recorder: Recorder) -> Iterator[Replacement]:
    # If scipy.stats is loaded, this private module is loaded, too. It defines the method `rvs` of
    # all distributions.
    inside: Any = sys.modules.get("scipy.stats._distn_infrastructure")
    for kind in () if inside is None else (inside.rv_generic, inside.rv_discrete):
        if "rvs" in vars(kind):
            yield Replacement(kind, "rvs", _rvs(recorder, vars(kind)["rvs"]))


def _rvs(recorder: Recorder, real: Any) -> Any:
    def record(values: Any, law_of_scipy: Any, *args: Any, **named: Any) -> Any:
        shapes = law_of_scipy.shapes.split(", ") if law_of_scipy.numargs else ()
        arguments = {**named, **dict(zip((*shapes, "loc", "scale", "size"), args))}
        law = _LAWS.get(law_of_scipy.name, "unknown")
        scale: Any = arguments.get("scale", 1.0)
        if law == "discrete":
            scale = 1 / float(arguments["a"])
        elif law == "geometric":
            scale = _of_failures(arguments)
        elif law == "unknown":
            scale = None
        skipped = ("loc", "size", "random_state")
        parameters = {key: value for key, value in arguments.items() if key not in skipped}
        location = arguments.get("loc")
        if law == "uniform":
            low = float(arguments.get("loc", 0.0))
            parameters, location = {"low": low, "high": low + float(scale)}, None
        return recorder.drawn(
            f"stats.{law_of_scipy.name}.rvs",
            law,
            values,
            scale=scale,
            location=location,
            parameters=parameters,
        )

    return recorded(recorder, real, record)
