"""Which witness of a Rényi divergence to certify: its order, direction, cap, by what it promises.

The witness is the log-ratio of the levels as selection draws have it, capped above and below: the
mean of e^{a g} of an uncapped one would hang on a few draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from dpaudit.levels.level_map import FloatArray
from dpaudit.stats.witness import Witness, best_stakes, divergence_lower

_CAPS = np.geomspace(0.1, 8.0, 20)
# Of those that promise most by a formula that is sharp for small stakes, so many are worked out.
_WORKED_OUT = 3
# No exponent of a witness is larger.
_FARTHEST = 200.0
_LEAST = 1e-9


def most_telling_witness(
    expected: FloatArray, limits: Mapping[float, float], coming: float, alpha: float
) -> Witness | None:
    """Return the witness that promises the largest multiple of what is allowed; None where none
    promises anything.

    expected: (levels, 2), draws of d1 and d2 to expect at every level, of as many as selection had.
    limits: the divergence that is allowed, by order. coming: draws to certify with.
    """
    laws = np.maximum(expected, _LEAST)
    laws = laws / laws.sum(axis=0)
    found = sorted(_every(laws, limits, coming / 2, alpha), key=lambda one: -one[0])
    best, most = None, 0.0
    for _, order, sign, values, stakes in found[:_WORKED_OUT]:
        witness = Witness(order, sign > 0, tuple(values.tolist()), stakes)
        lower = divergence_lower(witness, laws * coming / 2, alpha)
        if lower / max(limits[witness.order], _LEAST) > most:
            best, most = witness, lower / max(limits[witness.order], _LEAST)
    return best


def _every(
    laws: FloatArray, limits: Mapping[float, float], each: float, alpha: float
) -> Iterator[tuple[float, float, int, FloatArray, tuple[float, float]]]:
    """Yield order, direction, values and stakes of every witness that is predicted to show
    anything, behind the multiple of what is allowed that it is predicted to show. Most are not
    worked out, and so none is made yet."""
    log_ratio = np.log(laws[:, 0] / laws[:, 1])
    for order, allowed in limits.items():
        for sign, both in ((1, laws), (-1, laws[:, ::-1])):
            for cap in _CAPS[order * _CAPS < _FARTHEST]:
                values = np.clip(sign * log_ratio, -cap, cap)
                stakes, predicted = best_stakes(order, values, both, each, alpha)
                if predicted > 0:
                    yield predicted / max(allowed, _LEAST), order, sign, values, stakes
