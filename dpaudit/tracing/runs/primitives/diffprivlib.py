"""Mechanisms of diffprivlib: the argument of `randomise` is the operand of the noise, or decides
the probabilities of a few outcomes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from ..primitives.replacement import Replacement, chosen
from ..values import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..recording import Recorder


_NUMBERS = (int, float, np.integer, np.floating)
_SHOWN = ("epsilon", "delta", "sensitivity", "lower", "upper", "gamma")


def replacements(recorder: Recorder) -> Iterator[Replacement]:
    module: Any = sys.modules.get("diffprivlib.mechanisms")
    if module is None:
        return
    seen: set[int] = set()
    for found in list(vars(module).values()):
        for kind in getattr(found, "__mro__", ()):
            real = vars(kind).get("randomise")
            is_ours = kind.__module__.startswith("diffprivlib.")
            if real is not None and is_ours and id(kind) not in seen:
                seen.add(id(kind))
                yield Replacement(kind, "randomise", _method(recorder, real))


def _method(recorder: Recorder, real: Any) -> Any:
    def randomise(self: Any, *args: Any, **named: Any) -> Any:
        args, named = tuple(map(plain, args)), {key: plain(one) for key, one in named.items()}
        if recorder.is_inside:
            return real(self, *args, **named)
        result = recorder.real(real, self, *args, **named)
        value = args[0] if args else named.get("value")
        name = type(self).__name__
        label = f"{name}.randomise"
        choice = _choice(name, self, value)
        if choice is not None:
            return chosen(recorder, label, *choice, result)
        is_number = isinstance(value, _NUMBERS) and isinstance(result, _NUMBERS)
        if not is_number or isinstance(value, (bool, np.bool_)):
            return recorder.opaque(label, result, is_whole=callable(result))
        law, scale = _law(name, self)
        parameters = {"value": value}
        for one in _SHOWN:
            if isinstance(getattr(self, one, None), _NUMBERS):
                parameters[one] = getattr(self, one)
        return recorder.released(label, result, value, law=law, scale=scale, parameters=parameters)

    return randomise


def _law(name: str, mechanism: Any) -> tuple[str, float | None]:
    """Return the law of the noise and its scale. A law that depends on the value, as within bounds,
    is unknown; a sum that is only truncated afterwards has the law of its noise."""
    epsilon, delta = (float(getattr(mechanism, one, 0.0)) for one in ("epsilon", "delta"))
    sensitivity = float(getattr(mechanism, "sensitivity", 0.0))
    if name in ("Laplace", "LaplaceTruncated", "LaplaceFolded") and delta < 1:
        spent = epsilon - float(np.log1p(-delta))
        return ("laplace", sensitivity / spent) if spent > 0 else ("unknown", None)
    if name in ("Gaussian", "GaussianAnalytic"):
        scale = getattr(mechanism, "_scale", None)
        return ("unknown", None) if scale is None else ("normal", float(scale))
    if name in ("Geometric", "GeometricTruncated", "GeometricFolded") and epsilon > 0:
        return "discrete", sensitivity / epsilon
    if name == "Uniform" and delta > 0:
        return "uniform", sensitivity / delta
    return "unknown", None


def _choice(name: str, mechanism: Any, value: Any) -> tuple[list[Any], list[float]] | None:
    """Return the outcomes of a discrete mechanism and their probabilities; None for others."""
    if name == "Binary":
        is_second = int(value != mechanism.value0)
        weight = float(np.exp(mechanism.epsilon))
        stays = min(1.0, (weight + float(mechanism.delta)) / (weight + 1))
        law = [stays, 1 - stays]
        return [mechanism.value0, mechanism.value1], law[::-1] if is_second else law
    if name == "Exponential":
        sums = np.asarray(mechanism._probabilities, dtype=float)
        law = np.diff(sums, prepend=0.0).clip(0).tolist()
        return list(mechanism.candidates or range(len(law))), law
    if name in ("ExponentialCategorical", "ExponentialHierarchical"):
        outcomes = list(mechanism._normalising_constant)
        weights = [float(mechanism._get_prob(value, one)) for one in outcomes]
        total = float(mechanism._normalising_constant[value])
        return outcomes, [one / total for one in weights]
    return None
