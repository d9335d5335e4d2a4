"""The choice of the witness of a Rényi divergence: a function of the outcome that certifies a lower
bound on the divergence between the outputs on d1 and on d2.

The witness is the log-ratio of the levels (bins of outcomes) among selection draws, capped on both
sides. Without a cap, the mean of exp(a · witness) at order a would depend on a few draws.
`auditing/` calls `most_telling_witness` before it certifies; docs/method.md §6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.limits import TINY
from dpaudit.stats.witness import Witness, best_stakes, divergence_lower

# Caps on the absolute log-ratio that are tried.
_CAPS = np.geomspace(0.1, 8.0, 20)
# Number of witnesses that are computed exactly, the best ones by a formula for small stakes.
_WORKED_OUT = 3
# Largest exponent (order times cap), so that its exponential is finite.
_FARTHEST = 200.0


def most_telling_witness(
    expected: FloatArray, limits: Mapping[float, float], coming: float, alpha: float
) -> Witness | None:
    """Return the witness with the largest predicted ratio of certified divergence to allowed
    divergence; None if no witness is predicted to certify a divergence above 0.

    expected: (levels, 2), expected draws by level and input, out of all learning draws.
    limits: allowed divergence for each order.
    coming: number of draws to certify with.
    alpha: error probability of the certified bound.
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
    """Yield one tuple for each witness that is predicted to certify a positive divergence:
    predicted ratio of certified to allowed divergence, order, direction (1 or -1), values by level,
    and stakes.

    laws: (levels, 2), probability of each level on d1 and on d2.
    each: number of draws of each input to certify with.
    """
    log_ratio = np.log(laws[:, 0] / laws[:, 1])
    for order, allowed in limits.items():
        for sign, both in ((1, laws), (-1, laws[:, ::-1])):
            for cap in _CAPS[order * _CAPS < _FARTHEST]:
                values = np.clip(sign * log_ratio, -cap, cap)
                stakes, predicted = best_stakes(order, values, both, each, alpha)
                if predicted > 0:
                    yield predicted / max(allowed, TINY), order, sign, values, stakes
