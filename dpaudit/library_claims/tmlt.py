"""Ask a Tumult Core measurement for its claim: its privacy function at the inputs' distance."""

from __future__ import annotations

from .answers import NoClaim, Question, point, single

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from typing import Any

NAME, PACKAGE = "Tumult Core", "tmlt.core"


def ask(measurement: Any, question: Question) -> dict[str, Any]:
    """Return the claim that `measurement.privacy_function` states at the distance of the two
    inputs. Exact numbers are rounded up to floats."""
    d_in = _distance(measurement, question)
    call = f"privacy_function(d_in={d_in})"
    loss = measurement.privacy_function(d_in)
    measure = type(measurement.output_measure).__name__
    if measure == "PureDP":
        return point(question, call, _rounded(loss))
    if measure == "RhoZCDP":
        return single(question, call, rho=_rounded(loss))
    if measure == "ApproxDP":
        return point(question, call, *map(_rounded, loss))
    raise NoClaim(f"dpaudit cannot test the measure {measure}; give the claim", code="claim-failed")


def _rounded(value: Any) -> float:
    return float(value.to_float(round_up=True)) if hasattr(value, "to_float") else float(value)


def as_input(measurement: Any, value: Any) -> Any:
    """Return a plain number as the NumPy type that the input domain of a measurement requires."""
    kind = type(measurement.input_domain).__name__
    types = {"NumpyIntegerDomain": ("int", "int64"), "NumpyFloatDomain": ("float", "float64")}
    if kind not in types or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    import numpy  # here, since dpaudit may ask under a Python without NumPy

    name = types[kind][1]
    bits = getattr(measurement.input_domain, "size", 64)
    return getattr(numpy, name.replace("64", str(bits)))(value)


def _distance(measurement: Any, question: Question) -> Any:
    metric = measurement.input_metric
    if question.pair is not None:
        first, second = (as_input(measurement, value) for value in question.pair)
        try:
            return metric.distance(first, second, measurement.input_domain)
        except Exception as error:  # the metric or the domain refuses the pair
            raise NoClaim(
                f"the distance of d1 and d2 in the measurement's input metric {metric} cannot be "
                f"computed ({type(error).__name__}: {str(error)[:200]}); give the claim itself",
                code="claim-not-for-pair",
            ) from error
    kind, size = question.relation or ("", 0.0)
    known = {"AbsoluteDifference": "l1", "SymmetricDifference": "add-remove"}
    if known.get(type(metric).__name__) != kind or size != int(size):
        raise NoClaim(
            f"the distance of two neighbours in the input metric {metric} is not known; give the "
            "claim itself",
            code="claim-not-for-pair",
        )
    return int(size)
