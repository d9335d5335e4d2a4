"""Replace the mechanisms of diffprivlib, OpenDP and PyDP.

A mechanism adds noise to its argument, or picks one of a few outcomes with probabilities that
depend on the argument. If a function keeps the data inside an object, its output is recorded as
opaque: the law and the cost are unknown.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from ..noisy_numbers import bare
from ..primitives import Replacement, chosen, recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..noise_log import Recorder


_NUMBERS = (int, float, np.integer, np.floating)


def replacements(recorder: Recorder) -> Iterator[Replacement]:
    yield from _of_diffprivlib(recorder)
    yield from _of_opendp(recorder)
    yield from _of_pydp(recorder)


def _is_number(value: Any) -> bool:
    return isinstance(value, _NUMBERS) and not isinstance(value, (bool, np.bool_))


def _of_module(
    home: str, name: str, methods: tuple[str, ...]
) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Yield (class, method name, method) of a class; nothing if its module is not loaded."""
    kind = getattr(sys.modules.get(home), name, None)
    for method in methods:
        real = getattr(kind, method, None)
        if real is not None:
            yield kind, method, real


def _opaque(recorder: Recorder, real: Callable[..., Any], label: str) -> Any:
    return recorded(recorder, real, lambda result, *_, **__: recorder.opaque(label, result))


# Mechanisms of diffprivlib.

# Parameters of a mechanism whose values a trace compares between the two inputs.
_SHOWN = ("epsilon", "delta", "sensitivity", "lower", "upper", "gamma")


def _of_diffprivlib(recorder: Recorder) -> Iterator[Replacement]:
    module: Any = sys.modules.get("diffprivlib.mechanisms")
    examined: set[int] = set()
    for member in [] if module is None else list(vars(module).values()):
        for kind in getattr(member, "__mro__", ()):
            real = vars(kind).get("randomise")
            is_ours = kind.__module__.startswith("diffprivlib.")
            if real is not None and is_ours and id(kind) not in examined:
                examined.add(id(kind))
                yield Replacement(kind, "randomise", _randomise(recorder, real))


def _randomise(recorder: Recorder, real: Any) -> Any:
    def record(result: Any, mechanism: Any, value: Any = None) -> Any:
        name = type(mechanism).__name__
        label = f"{name}.randomise"
        choice = _choice(name, mechanism, value)
        if choice is not None:
            return chosen(recorder, label, *choice, result)
        if not _is_number(value) or not isinstance(result, _NUMBERS):
            return recorder.opaque(label, result, is_whole=callable(result))
        law, scale = _law(name, mechanism)
        parameters = {"value": value}
        for field in _SHOWN:
            if isinstance(getattr(mechanism, field, None), _NUMBERS):
                parameters[field] = getattr(mechanism, field)
        return recorder.released(label, result, value, law=law, scale=scale, parameters=parameters)

    return recorded(recorder, real, record)


def _law(name: str, mechanism: Any) -> tuple[str, float | None]:
    """Return (distribution, scale) of the noise of a diffprivlib mechanism, before truncation."""
    # The distribution is unknown if it depends on the argument, as for a mechanism that draws again
    # until the output is within bounds.
    epsilon, delta = (
        float(getattr(mechanism, parameter, 0.0)) for parameter in ("epsilon", "delta")
    )
    sensitivity = float(getattr(mechanism, "sensitivity", 0.0))
    if name in ("Laplace", "LaplaceTruncated", "LaplaceFolded") and delta < 1:
        spent = epsilon - float(np.log1p(-delta))
        return ("laplace", sensitivity / spent) if spent > 0 else ("unknown", None)
    if name in ("Gaussian", "GaussianAnalytic"):
        scale = getattr(mechanism, "_scale", None)
        return ("unknown", None) if scale is None else ("normal", float(scale))
    if name in ("Geometric", "GeometricTruncated", "GeometricFolded") and epsilon > 0:
        return "discrete", sensitivity / epsilon
    return "unknown", None


def _choice(name: str, mechanism: Any, value: Any) -> tuple[list[Any], list[float]] | None:
    """Return (outcomes, probabilities) of a mechanism that picks an outcome, else None."""
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
        weights = [float(mechanism._get_prob(value, outcome)) for outcome in outcomes]
        total = float(mechanism._normalising_constant[value])
        return outcomes, [weight / total for weight in weights]
    return None


# Measurements of OpenDP (its word for mechanisms). The library describes how a measurement was
# constructed. From this description, a trace runs the parts of a composed measurement one by one.

# Constructors of measurements that add noise to numbers.
_NOISE = ("make_laplace", "make_gaussian", "make_geometric", "make_noise")
# Constructors that convert the privacy guarantee of another measurement, and do not change its
# noise.
_SAME = (
    "make_approximate",
    "make_fix_delta",
    "make_fixed_approxDP_to_approxDP",
    "make_population_amplification",
    "make_pureDP_to_zCDP",
    "make_zCDP_to_approxDP",
)
# Constructors of OpenDP that combine several measurements (mechanisms) into one, whose output is
# the list of their outputs.
_SEVERAL = ("make_basic_composition", "make_composition")


def _of_opendp(recorder: Recorder) -> Iterator[Replacement]:
    for name in ("Measurement", "Queryable", "OdometerQueryable"):
        for kind, method, _ in _of_module("opendp.mod", name, ("__call__", "invoke")):
            real = vars(kind).get(method)
            if real is not None:
                is_whole = name == "Measurement"
                new = _measured(recorder, real) if is_whole else _opaque(recorder, real, name)
                yield Replacement(kind, method, new)


def _measured(recorder: Recorder, real: Callable[..., Any]) -> Any:
    def invoked(self: Any, arg: Any) -> Any:
        if recorder.is_inside:
            return real(self, arg)
        return _invoked(recorder, real, self, bare(arg))

    return invoked


def _invoked(recorder: Recorder, real: Callable[..., Any], measurement: Any, arg: Any) -> Any:
    """Run an OpenDP measurement, record its noise, and return its output."""
    name, arguments = _construction(measurement)
    if name == "make_chain_mt":
        try:
            changed = recorder.real(arguments["transformation0"], arg)
        except Exception:  # noqa: BLE001  # if the data are wrong, the whole measurement raises too
            return recorder.opaque("measurement", recorder.real(real, measurement, arg))
        return _invoked(recorder, real, arguments["measurement1"], changed)
    if name == "make_chain_pm":
        value = _invoked(recorder, real, arguments["measurement0"], arg)
        return recorder.real(arguments["postprocess1"], value)
    if name in _SAME:
        return _invoked(recorder, real, arguments["measurement"], arg)
    if name in _SEVERAL:
        return [_invoked(recorder, real, part, arg) for part in arguments["measurements"]]
    if name == "make_user_measurement":  # the user's function draws noise that the trace sees
        return arguments["function"](arg)
    result = recorder.real(real, measurement, arg)
    label = name or "measurement"
    choice = _response(name, arguments, arg)
    if choice is not None:
        return chosen(recorder, label, *choice, result)
    if not _is_noised(name, arg, result):
        return recorder.opaque(label, result)
    law, scale = _measured_law(name, arguments, measurement, result)
    if not isinstance(arg, list):
        return recorder.released(label, result, arg, law=law, scale=scale)
    if not arg:
        return result
    values = np.asarray(result)
    noised = recorder.released(label, values, np.asarray(arg), law=law, scale=scale)
    return np.asarray(noised).tolist()


def _construction(measurement: Any) -> tuple[str | None, dict[str, Any]]:
    """Return (name, arguments) of the constructor of an OpenDP measurement, if described."""
    description = getattr(measurement, "__opendp_dict__", None) or {}
    arguments = description.get("__kwargs__") or {}
    needed = {
        "make_chain_mt": ("transformation0", "measurement1"),
        "make_chain_pm": ("postprocess1", "measurement0"),
        "make_user_measurement": ("function",),
        "make_randomized_response": ("categories", "prob"),
        "make_randomized_response_bool": ("prob",),
        **dict.fromkeys(_SAME, ("measurement",)),
        **dict.fromkeys(_SEVERAL, ("measurements",)),
    }
    name = description.get("__function__")
    return (
        (name, arguments)
        if all(key in arguments for key in needed.get(str(name), ()))
        else (None, {})
    )


def _response(
    name: str | None, arguments: dict[str, Any], arg: Any
) -> tuple[list[Any], list[float]] | None:
    """Return (outcomes, probabilities) of randomized response of OpenDP, else None."""
    if name not in ("make_randomized_response", "make_randomized_response_bool"):
        return None
    outcomes = [False, True] if name.endswith("bool") else list(arguments["categories"])
    if len(outcomes) < 2 or arg not in outcomes:
        return None
    truth = float(arguments["prob"])
    other_chance = (1 - truth) / (len(outcomes) - 1)
    return outcomes, [truth if outcome == arg else other_chance for outcome in outcomes]


def _is_noised(name: str | None, arg: Any, result: Any) -> bool:
    """Return whether an OpenDP measurement adds noise to a number, or to each number of a list."""
    if name not in _NOISE:
        return False
    if isinstance(arg, list) and isinstance(result, list):
        same = len(arg) == len(result)
        return same and all(map(_is_number, arg)) and all(map(_is_number, result))
    return _is_number(arg) and _is_number(result)


def _measured_law(
    name: str | None, arguments: dict[str, Any], measurement: Any, result: Any
) -> tuple[str, float | None]:
    """Return (distribution, scale) of the noise that an OpenDP measurement adds."""
    measure = str(getattr(measurement, "output_measure", ""))
    is_whole = isinstance(result[0] if isinstance(result, list) else result, int)
    if "ZeroConcentrated" in measure:
        law = "normal"
    elif "MaxDivergence" in measure or name in ("make_laplace", "make_geometric"):
        law = "discrete" if is_whole else "laplace"
    else:
        return "unknown", None
    scale: Any = arguments.get("scale")
    return (law, float(scale)) if _is_number(scale) else ("unknown", None)


# Mechanisms of PyDP. Outputs of its algorithms for whole datasets are recorded as opaque: their
# distribution and cost are unknown.

_NOISED = "pydp.algorithms.numerical_mechanisms"
# (module, class, methods) for methods that compute their output from data inside an object. A trace
# does not see these data, so it records only the output, whose noise stays unknown.
_OPAQUE: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("pydp.algorithms._algorithm", "MetaAlgorithm", ("quick_result", "result")),
    (
        "pydp.algorithms.quantile_tree",
        "QuantileTree",
        ("compute_quantiles_and_confidence_intervals",),
    ),
    (_NOISED, "LaplaceMechanism", ("noised_value_above_threshold",)),
    (_NOISED, "GaussianMechanism", ("noised_value_above_threshold",)),
)


def _of_pydp(recorder: Recorder) -> Iterator[Replacement]:
    for name, law, attribute in (
        ("LaplaceMechanism", "laplace", "diversity"),
        ("GaussianMechanism", "normal", "std"),
    ):
        for kind, method, real in _of_module(_NOISED, name, ("add_noise",)):
            yield Replacement(kind, method, _noised(recorder, real, name, law, attribute))
    for home, name, methods in _OPAQUE:
        for kind, method, real in _of_module(home, name, methods):
            yield Replacement(kind, method, _opaque(recorder, real, f"{name}.{method}"))
    for name, law, attribute in (
        ("LaplaceDistribution", "laplace", "get_diversity"),
        ("GaussianDistribution", "normal", "stddev"),
    ):
        for kind, method, real in _of_module("pydp.distributions", name, ("sample",)):
            yield Replacement(kind, method, _sample(recorder, real, name, law, attribute))


def _noised(
    recorder: Recorder, real: Callable[..., Any], name: str, law: str, attribute: str
) -> Any:
    def record(output: Any, mechanism: Any, result: Any) -> Any:
        scale = _number(mechanism, attribute)
        known = "unknown" if scale is None else law
        return recorder.released(f"{name}.add_noise", output, result, law=known, scale=scale)

    return recorded(recorder, real, record)


def _sample(
    recorder: Recorder, real: Callable[..., Any], name: str, law: str, attribute: str
) -> Any:
    def record(value: Any, distribution: Any, scale: Any = 1.0) -> Any:
        unit = _number(distribution, attribute)
        known = "unknown" if unit is None else law
        times = None if unit is None else unit * float(scale)
        return recorder.drawn(f"{name}.sample", known, value, scale=times)

    return recorded(recorder, real, record)


def _number(mechanism: Any, name: str) -> float | None:
    """Return the number that an attribute or method of a mechanism gives; None if it gives none."""
    value = getattr(mechanism, name, None)
    if callable(value):
        value = value()
    return float(value) if isinstance(value, (int, float)) else None
