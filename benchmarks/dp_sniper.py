"""The twenty mechanisms of DP-Sniper's own suite (Bichsel et al. 2021, IEEE S&P), on the inputs
that it reports as its best ones, from a clone of its repository:

git clone https://github.com/eth-sri/dp-sniper CLONE
python -m benchmarks.vectors --dp-sniper CLONE

What it shows of them is in `eval_sp2021/reference-results` there.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from types import ModuleType
from typing import Any

import numpy as np

import dpaudit
from benchmarks.vector_cases import Case, Rng

_ONES, _ZEROS = [1.0] * 10, [0.0] * 10
_MIXED = [2.0] * 5 + [0.0] * 5
_FIRST, _LAST = [1.0] * 5 + [0.0] * 5, [0.0] * 5 + [1.0] * 5
_COUNTS = [0, 1, 1, 1, 1], [1, 1, 1, 1, 1]
_MANY = [1.0] * 5, [0.0, 2.0, 2.0, 2.0, 2.0]
_MAX, _SVT = "report_noisy_max", "sparse_vector_technique"
# Module, class and its settings; columns, inputs, and the ε that it is audited for.
_SUITE: tuple[tuple[str, str, dict[str, Any], int, tuple[Any, Any], float], ...] = (
    ("laplace", "LaplaceMechanism", {}, 1, ([1.0], [2.0]), 0.1),
    ("geometric", "TruncatedGeometricMechanism", {}, 1, ([2], [1]), 0.1),
    ("noisy_hist", "NoisyHist1", {}, 5, _COUNTS, 0.1),
    ("noisy_hist", "NoisyHist2", {}, 5, _COUNTS, 0.1),
    (_MAX, "ReportNoisyMax1", {}, 1, _MANY, 0.1),
    (_MAX, "ReportNoisyMax2", {}, 1, _MANY, 0.1),
    (_MAX, "ReportNoisyMax3", {}, 1, ([0.0] * 5, [1.0] * 5), 0.1),
    (_MAX, "ReportNoisyMax4", {}, 1, ([1.0] * 5, [2.0] * 5), 0.1),
    (_SVT, "SparseVectorTechnique1", {"c": 1, "t": 0.5}, 10, (_LAST, _FIRST), 0.1),
    (_SVT, "SparseVectorTechnique2", {"c": 1, "t": 1}, 10, (_LAST, _FIRST), 0.1),
    (_SVT, "SparseVectorTechnique3", {"c": 1, "t": 1}, 10, (_ONES, _MIXED), 0.1),
    (_SVT, "SparseVectorTechnique4", {"c": 1, "t": 1}, 10, (_ONES, _MIXED), 0.1),
    (_SVT, "SparseVectorTechnique5", {"c": 1, "t": 1}, 10, (_MIXED, _ONES), 0.1),
    (_SVT, "SparseVectorTechnique6", {"c": 1, "t": 1}, 10, (_FIRST, _LAST), 0.1),
    ("rappor", "Rappor", {}, 20, ([1], [0]), 0.3),
    ("rappor", "OneTimeRappor", {}, 20, ([1], [0]), 0.8),
    ("parallel", "LaplaceParallel", {"n_parallel": 20, "eps": 0.005}, 20, ([1.0], [0.0]), 0.1),
    ("parallel", "SVT34Parallel", {}, 20, (_ONES, _MIXED), 0.2),
    ("prefix_sum", "PrefixSum", {}, 10, (_ONES, _ZEROS), 0.1),
    (_SVT, "NumericalSVT", {}, 10, ([2.0] * 10, _ONES), 0.1),
)


def suite(clone: str) -> Iterator[Case]:
    """Yield its mechanisms, which are imported once they are called."""
    for module, name, settings, columns, (d1, d2), epsilon in _SUITE:
        made = partial(_made, clone, module, name, tuple(settings.items()))
        yield Case(name, columns, partial(_drawn, made), d1, d2, dpaudit.PureDP(epsilon))


@cache
def _made(clone: str, module: str, name: str, settings: tuple[tuple[str, Any], ...]) -> Any:
    sys.path.insert(0, clone)
    if module == "rappor":
        _provide_hashes()
    known = importlib.import_module(f"dpsniper.mechanisms.{module}")
    return getattr(known, name)(**dict(settings))


def _drawn(made: Callable[[], Any], dataset: list[float], size: int, rng: Rng) -> Any:
    """Return draws by NumPy's global generator, which these mechanisms use."""
    return made().m(np.array(dataset), n_samples=size)


def _provide_hashes() -> None:
    """Without mmh3, provide what they need of it: the same MurmurHash3, from scikit-learn."""
    if "mmh3" in sys.modules or importlib.util.find_spec("mmh3") is not None:
        return
    from sklearn.utils import murmurhash3_32

    module = sys.modules["mmh3"] = ModuleType("mmh3")
    vars(module)["hash"] = lambda text, seed: int(murmurhash3_32(text, seed=seed))
