"""Distributions of `scipy.stats`, frozen or not."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from ..primitives.replacement import Replacement
from ..values import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..recording import Recorder


_LAWS = {
    "laplace": "laplace",
    "norm": "normal",
    "logistic": "logistic",
    "gumbel_r": "gumbel",
    "expon": "exponential",
    "cauchy": "cauchy",
    "uniform": "uniform",
    "dlaplace": "discrete",
    "geom": "geometric",
}


def replacements(recorder: Recorder) -> Iterator[Replacement]:
    module: Any = sys.modules.get("scipy.stats")
    if module is None:
        return
    from scipy.stats import _distn_infrastructure as inside

    for kind in (inside.rv_generic, inside.rv_discrete):
        if "rvs" in vars(kind):
            yield Replacement(kind, "rvs", _method(recorder, vars(kind)["rvs"]))


def _method(recorder: Recorder, real: Any) -> Any:
    def rvs(self: Any, *args: Any, **named: Any) -> Any:
        args, named = tuple(map(plain, args)), {key: plain(one) for key, one in named.items()}
        if recorder.is_inside:
            return real(self, *args, **named)
        values = recorder.real(real, self, *args, **named)
        given = dict(named)
        if self.numargs == 0:
            given.update(zip(("loc", "scale", "size"), args))
        else:
            given.update(zip((*self.shapes.split(", "), "loc", "scale", "size"), args))
        law = _LAWS.get(self.name, "unknown")
        scale: Any = given.get("scale", 1.0)
        if law == "discrete":
            scale = 1 / float(given["a"])
        elif law == "geometric":
            scale = -1 / np.log1p(-float(given["p"]))
        elif law == "unknown":
            scale = None
        skipped = ("loc", "size", "random_state")
        parameters = {key: one for key, one in given.items() if key not in skipped}
        location = given.get("loc")
        if law == "uniform":
            low = float(given.get("loc", 0.0))
            parameters, location = {"low": low, "high": low + float(scale)}, None
        return recorder.drawn(
            f"stats.{self.name}.rvs",
            law,
            values,
            scale=scale,
            location=location,
            parameters=parameters,
        )

    return rvs
