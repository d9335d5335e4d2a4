"""The choice of the witness of a Rényi divergence: its order, direction and cap.

The witness is the log-ratio of the levels among selection draws, capped on both sides: the mean
of e^{a g} of an uncapped witness would depend on a few draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.limits import TINY
from dpaudit.stats.witness import Witness, best_stakes, divergence_lower

_CAPS = np.geomspace(0.1, 8.0, 20)
# Witnesses that are computed exactly, after a formula that is precise for small stakes.
_WORKED_OUT = 3
# Exponents of a witness, at most.
_FARTHEST = 200.0


def most_telling_witness(
    expected: FloatArray, limits: Mapping[float, float], coming: float, alpha: float
) -> Witness | None:
    """Return the witness with the largest predicted multiple of the allowed divergence; None if
    no witness is predicted to show anything.

    expected: (levels, 2), expected draws of d1 and of d2, of as many draws as were learned from.
    limits: allowed divergence, by order.
    coming: draws to certify with.
    """
    laws = np.maximum(expected, TINY)
    laws = laws / laws.sum(axis=0)
    result = sorted(_every(laws, limits, coming / 2, alpha), key=lambda one: -one[0])
    best, most = None, 0.0
    for _, order, sign, values, stakes in result[:_WORKED_OUT]:
        witness = Witness(order, sign > 0, tuple(values.tolist()), stakes)
        lower = divergence_lower(witness, laws * coming / 2, alpha)
        if lower / max(limits[witness.order], TINY) > most:
            best, most = witness, lower / max(limits[witness.order], TINY)
    return best


def _every(
    laws: FloatArray, limits: Mapping[float, float], each: float, alpha: float
) -> Iterator[tuple[float, float, int, FloatArray, tuple[float, float]]]:
    """Yield the predicted multiple of the allowed divergence, then order, direction, values and
    stakes of every witness that is predicted to show anything."""
    log_ratio = np.log(laws[:, 0] / laws[:, 1])
    for order, allowed in limits.items():
        for sign, both in ((1, laws), (-1, laws[:, ::-1])):
            for cap in _CAPS[order * _CAPS < _FARTHEST]:
                values = np.clip(sign * log_ratio, -cap, cap)
                stakes, predicted = best_stakes(order, values, both, each, alpha)
                if predicted > 0:
                    yield predicted / max(allowed, TINY), order, sign, values, stakes
