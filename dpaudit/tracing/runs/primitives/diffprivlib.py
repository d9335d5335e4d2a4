"""Mechanisms of diffprivlib: the argument of `randomise` is what the noise hides."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..values import plain
from .replacement import Replacement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..recorder import Recorder


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
    def randomise(self: Any, value: Any, *args: Any, **named: Any) -> Any:
        if recorder.is_inside:
            return real(self, value, *args, **named)
        result = recorder.real(real, self, plain(value), *args, **named)
        if not isinstance(plain(value), (int, float)):
            return result
        name = type(self).__name__
        law, scale = _law(name, self)
        parameters = {
            one: getattr(self, one)
            for one in ("epsilon", "delta", "sensitivity", "lower", "upper")
            if isinstance(getattr(self, one, None), (int, float))
        }
        label = f"{name}.randomise"
        return recorder.released(label, result, value, law=law, scale=scale, parameters=parameters)

    return randomise


def _law(name: str, mechanism: Any) -> tuple[str, float | None]:
    epsilon, delta = getattr(mechanism, "epsilon", 0.0), getattr(mechanism, "delta", 0.0)
    sensitivity = float(getattr(mechanism, "sensitivity", 0.0))
    if name in ("Laplace", "LaplaceTruncated", "LaplaceFolded") and delta == 0 and epsilon > 0:
        return "laplace", sensitivity / epsilon
    if name in ("Gaussian", "GaussianAnalytic"):
        return "normal", float(getattr(mechanism, "_scale", 0.0)) or None
    if name.startswith("Geometric") and epsilon > 0:
        return "discrete", sensitivity / epsilon
    return "unknown", None
