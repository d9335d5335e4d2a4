"""Measurements of OpenDP: the argument is what the noise hides, and `map` says what it costs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..values import plain
from .replacement import Replacement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..recorder import Recorder


def replacements(recorder: Recorder) -> Iterator[Replacement]:
    module: Any = sys.modules.get("opendp.mod")
    kind = getattr(module, "Measurement", None)
    if kind is None:
        return
    for name in ("__call__", "invoke"):
        if name in vars(kind):
            yield Replacement(kind, name, _method(recorder, vars(kind)[name]))


def _method(recorder: Recorder, real: Any) -> Any:
    def called(self: Any, arg: Any) -> Any:
        if recorder.is_inside:
            return real(self, arg)
        result = recorder.real(real, self, _plain(arg))
        if not isinstance(result, (int, float)) or not isinstance(plain(arg), (int, float)):
            return result
        law, scale = _law(self)
        return recorder.released("measurement", result, arg, law=law, scale=scale)

    return called


def _plain(value: Any) -> Any:
    return [plain(one) for one in value] if isinstance(value, list) else plain(value)


def _law(measurement: Any) -> tuple[str, float | None]:
    """Return the law of the noise, from what the library says that one unit costs."""
    measure = str(getattr(measurement, "output_measure", ""))
    for unit in (1, 1.0):
        try:
            cost = float(measurement.map(unit))
        except Exception:  # noqa: BLE001, S112  # of another type, or more than a number
            continue
        if cost > 0 and "MaxDivergence" in measure:
            return "laplace", 1 / cost
        if cost > 0 and "ZeroConcentrated" in measure:
            return "normal", (1 / (2 * cost)) ** 0.5
    return "unknown", None
