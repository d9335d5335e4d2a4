"""Mechanisms of PyDP: the argument of `add_noise` is what the noise hides."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..values import plain
from .replacement import Replacement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..recorder import Recorder


def replacements(recorder: Recorder) -> Iterator[Replacement]:
    module: Any = sys.modules.get("pydp.algorithms.numerical_mechanisms")
    for name in ("LaplaceMechanism", "GaussianMechanism"):
        kind = getattr(module, name, None)
        real = None if kind is None else getattr(kind, "add_noise", None)
        if real is not None:
            law = "laplace" if name == "LaplaceMechanism" else "normal"
            yield Replacement(kind, "add_noise", _method(recorder, real, name, law))


def _method(recorder: Recorder, real: Any, name: str, law: str) -> Any:
    def add_noise(self: Any, value: Any, *args: Any) -> Any:
        if recorder.is_inside:
            return real(self, plain(value), *args)
        result = recorder.real(real, self, plain(value), *args)
        scale = None
        if law == "laplace":
            diversity = getattr(self, "diversity", None)
            scale = float(diversity) if isinstance(diversity, (int, float)) else _scale(self)
        return recorder.released(f"{name}.add_noise", result, value, law=law, scale=scale)

    return add_noise


def _scale(mechanism: Any) -> float | None:
    epsilon, sensitivity = (getattr(mechanism, one, None) for one in ("epsilon", "sensitivity"))
    if isinstance(epsilon, (int, float)) and isinstance(sensitivity, (int, float)) and epsilon > 0:
        return float(sensitivity) / float(epsilon)
    return None
