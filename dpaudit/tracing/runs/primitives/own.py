"""Primitives of the user's own: the first argument is what the noise hides."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..values import plain
from .replacement import Replacement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..recorder import Recorder

# Keyword arguments that say how large the noise is, and whose law they mean.
_SCALES = {"scale": "unknown", "b": "laplace", "sigma": "normal"}


def replacements(function: Callable[..., Any], recorder: Recorder) -> Iterator[Replacement]:
    """Yield what stands in for a function wherever a module names it.

    function: of what the noise hides; it may say its law and scale, as attributes `law` and
    `scale`.
    """

    def noised(value: Any, *args: Any, **named: Any) -> Any:
        if recorder.is_inside:
            return function(value, *args, **named)
        result = recorder.real(function, plain(value), *args, **named)
        law, scale = getattr(function, "law", "unknown"), getattr(function, "scale", None)
        if callable(scale):
            scale = scale(plain(value), *args, **named)
        for name, meant in _SCALES.items():
            if scale is None and isinstance(named.get(name), (int, float)):
                law, scale = (meant if law == "unknown" else law), float(named[name])
        name = getattr(function, "__name__", "primitive")
        return recorder.released(name, result, value, law=law, scale=scale)

    for module in list(sys.modules.values()):
        scope = getattr(module, "__dict__", None)
        if not isinstance(scope, dict):
            continue
        for name, value in list(scope.items()):
            if value is function:
                yield Replacement(module, name, noised)
