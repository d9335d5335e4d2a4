"""Measurements of OpenDP: the argument, after the transformations before the noise, is its operand.
Compositions are taken apart, by the library's own description of how they were made."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from ..primitives.replacement import Replacement, chosen
from ..values import TracedArray, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..recording import Recorder


_NOISE = ("make_laplace", "make_gaussian", "make_geometric", "make_noise")
# Constructors whose result draws as its inner measurement.
_SAME = (
    "make_approximate",
    "make_fix_delta",
    "make_fixed_approxDP_to_approxDP",
    "make_population_amplification",
    "make_pureDP_to_zCDP",
    "make_zCDP_to_approxDP",
)
_SEVERAL = ("make_basic_composition", "make_composition")
_METRICS = ("AbsoluteDistance", "L1Distance", "L2Distance")
_NUMBERS = (int, float, np.integer, np.floating)


def replacements(recorder: Recorder) -> Iterator[Replacement]:
    module: Any = sys.modules.get("opendp.mod")
    kind = getattr(module, "Measurement", None)
    for name in ("__call__", "invoke"):
        if name in vars(kind) if kind is not None else ():
            yield Replacement(kind, name, _method(recorder, vars(kind)[name]))
    for name in ("Queryable", "OdometerQueryable"):
        kind = getattr(module, name, None)
        for method in ("__call__", "invoke"):
            if kind is not None and method in vars(kind):
                yield Replacement(kind, method, _asked(recorder, name, vars(kind)[method]))


def _method(recorder: Recorder, real: Callable[..., Any]) -> Any:
    def invoked(self: Any, arg: Any) -> Any:
        if recorder.is_inside:
            return real(self, arg)
        return _invoked(recorder, real, self, _plain(arg))

    return invoked


def _asked(recorder: Recorder, name: str, real: Callable[..., Any]) -> Any:
    def asked(self: Any, *args: Any, **named: Any) -> Any:
        if recorder.is_inside:
            return real(self, *args, **named)
        return recorder.opaque(name, recorder.real(real, self, *args, **named))

    return asked


def _invoked(recorder: Recorder, real: Callable[..., Any], measurement: Any, arg: Any) -> Any:
    """Invoke a measurement, part by part if it is composed, and record its noise."""
    name, given = _made(measurement)
    if name == "make_chain_mt":
        try:
            changed = recorder.real(given["transformation0"], arg)
        except Exception:  # noqa: BLE001  # the whole measurement says what is wrong, if it is
            return recorder.opaque("measurement", recorder.real(real, measurement, arg))
        return _invoked(recorder, real, given["measurement1"], changed)
    if name == "make_chain_pm":
        value = _invoked(recorder, real, given["measurement0"], arg)
        return recorder.real(given["postprocess1"], value)
    if name in _SAME:
        return _invoked(recorder, real, given["measurement"], arg)
    if name in _SEVERAL:
        return [_invoked(recorder, real, one, arg) for one in given["measurements"]]
    if name == "make_user_measurement":  # whose noise is seen inside
        return given["function"](arg)
    result = recorder.real(real, measurement, arg)
    label = name or "measurement"
    choice = _choice(name, given, arg)
    if choice is not None:
        return chosen(recorder, label, *choice, result)
    if not _is_noised(name, measurement, arg, result):
        return recorder.opaque(label, result)
    law, scale = _law(name, given, measurement, result)
    if not isinstance(arg, list):
        return recorder.released(label, result, arg, law=law, scale=scale)
    if not arg:
        return result
    values = np.asarray(result)
    noised = recorder.released(label, values, np.asarray(arg), law=law, scale=scale)
    return np.asarray(noised).tolist()


def _made(measurement: Any) -> tuple[str | None, dict[str, Any]]:
    """Return the constructor of a measurement and its arguments; (None, {}) in older versions of
    the library."""
    said = getattr(measurement, "__opendp_dict__", None) or {}
    given = said.get("__kwargs__") or {}
    needed = {
        "make_chain_mt": ("transformation0", "measurement1"),
        "make_chain_pm": ("postprocess1", "measurement0"),
        "make_user_measurement": ("function",),
        "make_randomized_response": ("categories", "prob"),
        "make_randomized_response_bool": ("prob",),
        **dict.fromkeys(_SAME, ("measurement",)),
        **dict.fromkeys(_SEVERAL, ("measurements",)),
    }
    name = said.get("__function__")
    return (name, given) if all(one in given for one in needed.get(str(name), ())) else (None, {})


def _choice(
    name: str | None, given: dict[str, Any], arg: Any
) -> tuple[list[Any], list[float]] | None:
    """Return the outcomes of randomized response and their probabilities; None for others."""
    if name not in ("make_randomized_response", "make_randomized_response_bool"):
        return None
    outcomes = [False, True] if name.endswith("bool") else list(given["categories"])
    if len(outcomes) < 2 or arg not in outcomes:
        return None
    truth = float(given["prob"])
    other = (1 - truth) / (len(outcomes) - 1)
    return outcomes, [truth if one == arg else other for one in outcomes]


def _is_noised(name: str | None, measurement: Any, arg: Any, result: Any) -> bool:
    """Return whether a measurement adds noise to numbers. If its constructor is not known, it does
    if its input metric is one of sums and its output has the form of the input."""
    if name is not None and name not in _NOISE:
        return False
    if name is None and not str(getattr(measurement, "input_metric", "")).startswith(_METRICS):
        return False
    if isinstance(arg, list) != isinstance(result, list):
        return False
    if isinstance(arg, list):
        same = len(arg) == len(result)
        return same and all(map(_is_number, arg)) and all(map(_is_number, result))
    return _is_number(arg) and _is_number(result)


def _is_number(value: Any) -> bool:
    return isinstance(value, _NUMBERS) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    if isinstance(value, TracedArray):
        return plain(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value
    return plain(value)


def _law(
    name: str | None, given: dict[str, Any], measurement: Any, result: Any
) -> tuple[str, float | None]:
    """Return the law of the noise, and its scale."""
    measure = str(getattr(measurement, "output_measure", ""))
    is_whole = isinstance(result[0] if isinstance(result, list) else result, int)
    if "ZeroConcentrated" in measure:
        law = "normal"
    elif "MaxDivergence" in measure or name in ("make_laplace", "make_geometric"):
        law = "discrete" if is_whole else "laplace"
    else:
        return "unknown", None
    scale = given.get("scale")
    if not _is_number(scale):
        scale = _scale_of(measurement, law)
    return ("unknown", None) if scale is None else (law, float(scale))


def _scale_of(measurement: Any, law: str) -> float | None:
    """Return the scale of noise from the privacy map at distances 1 and 2; None if these do not fit
    the law."""
    for one in (1, 1.0):
        try:
            cost, double = (float(measurement.map(unit)) for unit in (one, 2 * one))
        except Exception:  # noqa: BLE001, S112  # of another type, or more than a number
            continue
        times = 4 if law == "normal" else 2
        if cost > 0 and np.isclose(double, times * cost, rtol=1e-6):
            return float((1 / (2 * cost)) ** 0.5 if law == "normal" else 1 / cost)
    return None
