"""Mechanisms of PyDP: the argument of `add_noise` is the operand of the noise. Its algorithms on
whole datasets are opaque."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..primitives.replacement import Replacement
from ..values import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..recording import Recorder


_MECHANISMS = {"LaplaceMechanism": "laplace", "GaussianMechanism": "normal"}
# Classes, by module and name, and their methods that release an output.
_OPAQUE = {
    ("pydp.algorithms._algorithm", "MetaAlgorithm"): ("quick_result", "result"),
    ("pydp.algorithms.quantile_tree", "QuantileTree"): (
        "compute_quantiles_and_confidence_intervals",
    ),
    ("pydp.algorithms.numerical_mechanisms", "LaplaceMechanism"): ("noised_value_above_threshold",),
    ("pydp.algorithms.numerical_mechanisms", "GaussianMechanism"): (
        "noised_value_above_threshold",
    ),
}


def replacements(recorder: Recorder) -> Iterator[Replacement]:
    module: Any = sys.modules.get("pydp.algorithms.numerical_mechanisms")
    for name, law in _MECHANISMS.items():
        kind = getattr(module, name, None)
        real = getattr(kind, "add_noise", None)
        if real is not None:
            yield Replacement(kind, "add_noise", _noised(recorder, real, name, law))
    for (home, name), methods in _OPAQUE.items():
        kind = getattr(sys.modules.get(home), name, None)
        for method in methods:
            real = getattr(kind, method, None)
            if real is not None:
                yield Replacement(kind, method, _opaque(recorder, real, f"{name}.{method}"))
    yield from _distributions(recorder)


def _noised(recorder: Recorder, real: Callable[..., Any], name: str, law: str) -> Any:
    def add_noise(self: Any, *args: Any, **named: Any) -> Any:
        args, named = tuple(map(plain, args)), {key: plain(one) for key, one in named.items()}
        if recorder.is_inside:
            return real(self, *args, **named)
        result = recorder.real(real, self, *args, **named)
        value = args[0] if args else named["result"]
        scale = _number(self, "diversity" if law == "laplace" else "std")
        known = "unknown" if scale is None else law
        return recorder.released(f"{name}.add_noise", result, value, law=known, scale=scale)

    return add_noise


def _opaque(recorder: Recorder, real: Callable[..., Any], label: str) -> Any:
    def released(self: Any, *args: Any, **named: Any) -> Any:
        if recorder.is_inside:
            return real(self, *args, **named)
        args = tuple(map(_plain, args))
        named = {key: _plain(one) for key, one in named.items()}
        return recorder.opaque(label, recorder.real(real, self, *args, **named))

    return released


def _distributions(recorder: Recorder) -> Iterator[Replacement]:
    module: Any = sys.modules.get("pydp.distributions")
    for name, law, attribute in (
        ("LaplaceDistribution", "laplace", "get_diversity"),
        ("GaussianDistribution", "normal", "stddev"),
    ):
        kind = getattr(module, name, None)
        real = getattr(kind, "sample", None)
        if real is not None:
            yield Replacement(kind, "sample", _sample(recorder, real, name, law, attribute))


def _sample(
    recorder: Recorder, real: Callable[..., Any], name: str, law: str, attribute: str
) -> Any:
    def sample(self: Any, *args: Any, **named: Any) -> Any:
        args, named = tuple(map(plain, args)), {key: plain(one) for key, one in named.items()}
        if recorder.is_inside:
            return real(self, *args, **named)
        value = recorder.real(real, self, *args, **named)
        unit = _number(self, attribute)
        times = float(args[0] if args else named.get("scale", 1.0))
        known = law if unit is not None else "unknown"
        scale = None if unit is None else unit * times
        return recorder.drawn(f"{name}.sample", known, value, scale=scale)

    return sample


def _plain(value: Any) -> Any:
    return [plain(one) for one in value] if type(value) is list else plain(value)


def _number(mechanism: Any, name: str) -> float | None:
    """Return a numeric attribute, called if it is a method; None if there is none."""
    value = getattr(mechanism, name, None)
    if callable(value):
        value = value()
    return float(value) if isinstance(value, (int, float)) else None
