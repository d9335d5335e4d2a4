"""Replace the functions of `random` and `secrets`, and the methods of `random.Random`."""

from __future__ import annotations

import random
import secrets
from typing import TYPE_CHECKING, Any

import numpy as np

from ..noisy_numbers import plain
from ..places import unwatched
from ..primitives import MAX_LISTED_OUTCOMES, Replacement, as_coin, integers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..noise_log import Recorder

    # Describes a function that draws noise: (names of its parameters, function). The function turns
    # the arguments by name into keyword arguments of `Recorder.drawn`, such as law and scale.
    _Spec = tuple[tuple[str, ...], Callable[[dict[str, Any]], dict[str, Any]]]


def _gauss(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"law": "normal", "location": arguments.get("mu"), "scale": arguments.get("sigma", 1.0)}


def _expovariate(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"law": "exponential", "scale": 1 / float(arguments.get("lambd", 1.0))}


def _random(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"law": "uniform", "scale": 1.0}


def _uniform(arguments: dict[str, Any]) -> dict[str, Any]:
    low, high = float(arguments["a"]), float(arguments["b"])
    return {"law": "uniform", "scale": high - low, "parameters": {"low": low, "high": high}}


def _integers(low: Any, high: Any) -> dict[str, Any]:
    parameters = {"low": int(low), "high": int(high)}
    return {"law": "integers", "parameters": parameters, "outcomes": integers(low, high)}


def _randint(arguments: dict[str, Any]) -> dict[str, Any]:
    return _integers(arguments["a"], int(arguments["b"]) + 1)


def _randrange(arguments: dict[str, Any]) -> dict[str, Any]:
    start, stop = arguments["start"], arguments.get("stop")
    start, stop = (0, start) if stop is None else (start, stop)
    if arguments.get("step", 1) != 1:
        return {"law": "integers", "parameters": dict(arguments)}
    return _integers(start, stop)


def _getrandbits(arguments: dict[str, Any]) -> dict[str, Any]:
    return _integers(0, 1 << int(arguments["k"]))


def _randbelow(arguments: dict[str, Any]) -> dict[str, Any]:
    return _integers(0, arguments["exclusive_upper_bound"])


def _unknown(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"law": "unknown", "parameters": dict(arguments)}


_SPECS: dict[str, _Spec] = {
    "gauss": (("mu", "sigma"), _gauss),
    "normalvariate": (("mu", "sigma"), _gauss),
    "expovariate": (("lambd",), _expovariate),
    "random": ((), _random),
    "uniform": (("a", "b"), _uniform),
    "randint": (("a", "b"), _randint),
    "randrange": (("start", "stop", "step"), _randrange),
    "getrandbits": (("k",), _getrandbits),
    "triangular": (("low", "high", "mode"), _unknown),
    "betavariate": (("alpha", "beta"), _unknown),
    "gammavariate": (("alpha", "beta"), _unknown),
    "lognormvariate": (("mu", "sigma"), _unknown),
    "vonmisesvariate": (("mu", "kappa"), _unknown),
    "paretovariate": (("alpha",), _unknown),
    "weibullvariate": (("alpha", "beta"), _unknown),
}
_SECRETS = {
    "randbelow": (("exclusive_upper_bound",), _randbelow),
    "randbits": (("k",), _getrandbits),
}
_PICKS = ("choice", "choices", "sample", "shuffle")


@unwatched
def _drawn(
    recorder: Recorder,
    label: str,
    spec: _Spec,
    real: Callable[..., Any],
    args: Any,
    named: Any,
) -> Any:
    args, named = tuple(map(plain, args)), {key: plain(value) for key, value in named.items()}
    if recorder.is_inside:
        return real(*args, **named)
    names, law = spec
    value = recorder.real(real, *args, **named)
    return recorder.drawn(label, values=value, **law({**dict(zip(names, args)), **named}))


@unwatched
def _picked(
    recorder: Recorder, label: str, name: str, source: Any, real: Any, args: Any, named: Any
) -> Any:
    if recorder.is_inside:
        return real(*args, **named)
    names = {"choices": ("population", "weights"), "sample": ("population", "k")}
    first = "seq" if name == "choice" else "x" if name == "shuffle" else "population"
    arguments = {**dict(zip(names.get(name, (first,)), args)), **named}
    things = arguments[first]
    count = len(things)
    weights = arguments.get("weights")
    parameters: dict[str, Any] = {"n": count}
    if weights is not None:
        total = float(sum(weights))
        parameters["p"] = [float(weight) / total for weight in weights]
    law = parameters.get("p", [1 / count] * count if count else [])
    outcomes = list(enumerate(law)) if count <= MAX_LISTED_OUTCOMES else None
    coin = as_coin(things, law) if name in ("choice", "choices") else None
    if coin is not None:
        indexes = recorder.real(real, *args, **named)
        indexes = np.array(indexes, dtype=int) if name == "choices" else int(indexes)
        # Record the probabilities of True and False only if the user gave weights. Without weights,
        # the items may be records: if one input has a record more than the other, the probabilities
        # differ, which is no leak by itself.
        if weights is not None:
            parameters = {"n": 2, "p": [p for _, p in coin]}
        got = recorder.picked(label, "choice", indexes, parameters=parameters, outcomes=coin)
        return list(map(bool, got)) if name == "choices" else bool(got)
    if name == "choice":
        index = recorder.real(source.choice, range(count))
        index = recorder.picked(label, "choice", index, parameters=parameters, outcomes=outcomes)
        return things[min(index, count - 1)]
    options = {key: value for key, value in arguments.items() if key != first}
    if name == "shuffle":
        order = list(range(count))
        recorder.real(source.shuffle, order)
        got = recorder.picked(label, "permutation", np.array(order), parameters=parameters)
        order = got.tolist() if sorted(got.tolist()) == list(range(count)) else order
        things[:] = [things[i] for i in order]
        return None
    indexes = np.array(recorder.real(getattr(source, name), range(count), **options))
    is_one_of_few = outcomes if name == "choices" else None
    kind = "choice" if name == "choices" else "sample"
    indexes = recorder.picked(label, kind, indexes, parameters=parameters, outcomes=is_one_of_few)
    return [things[min(int(i), count - 1)] for i in indexes]


def replacements(recorder: Recorder) -> Iterator[Replacement]:
    for name, spec in _SPECS.items():
        for kind in (random.Random, random.SystemRandom):
            if name in vars(kind) or kind is random.Random:
                yield Replacement(kind, name, _method(recorder, name, getattr(kind, name), spec))
        real = getattr(random, name)
        yield Replacement(random, name, _function(recorder, f"random.{name}", real, spec))
    shared = getattr(random.seed, "__self__", None)
    for name in _PICKS:
        real = vars(random.Random)[name]
        yield Replacement(random.Random, name, _method_that_picks(recorder, name, real))
        real = getattr(random, name)
        yield Replacement(random, name, _picking(recorder, f"random.{name}", name, real, shared))
    yield from _of_secrets(recorder)
    yield from _seeds(recorder)


def _of_secrets(recorder: Recorder) -> Iterator[Replacement]:
    for name, spec in _SECRETS.items():
        real = getattr(secrets, name)
        yield Replacement(secrets, name, _function(recorder, f"secrets.{name}", real, spec))
    source = random.SystemRandom()
    pick = _picking(recorder, "secrets.choice", "choice", secrets.choice, source)
    yield Replacement(secrets, "choice", pick)


def _seeds(recorder: Recorder) -> Iterator[Replacement]:
    set_seed, make = random.seed, random.Random.__init__

    def seed(*args: Any, **named: Any) -> Any:
        if args or named:
            recorder.seeded("random.seed", args[0] if args else named.get("a"))
        return set_seed(*args, **named)

    def init(self: Any, *args: Any, **named: Any) -> None:
        if args and args[0] is not None and not recorder.is_inside:
            recorder.seeded("random.Random", args[0])
        make(self, *args, **named)

    yield Replacement(random, "seed", seed)
    yield Replacement(random.Random, "__init__", init)


def _method(recorder: Recorder, name: str, real: Any, spec: _Spec) -> Any:
    def draw(self: Any, *args: Any, **named: Any) -> Any:
        return _drawn(recorder, f"rng.{name}", spec, real.__get__(self), args, named)

    return draw


def _function(recorder: Recorder, label: str, real: Any, spec: _Spec) -> Any:
    def draw(*args: Any, **named: Any) -> Any:
        return _drawn(recorder, label, spec, real, args, named)

    return draw


def _method_that_picks(recorder: Recorder, name: str, real: Any) -> Any:
    def pick(self: Any, *args: Any, **named: Any) -> Any:
        return _picked(recorder, f"rng.{name}", name, self, real.__get__(self), args, named)

    return pick


def _picking(recorder: Recorder, label: str, name: str, real: Any, source: Any) -> Any:
    def pick(*args: Any, **named: Any) -> Any:
        return _picked(recorder, label, name, source, real, args, named)

    return pick
