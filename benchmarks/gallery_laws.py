"""Do the libraries of the gallery draw from the laws in `mechanisms/gallery/laws.py`?

After `make gallery`: `python -m benchmarks.gallery_laws`. The p-value of a correct law is below
0.001 once in a thousand runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from dpaudit.adapters.isolation import Isolated
from dpaudit.config.yaml_files import load_config
from dpaudit.targets.target import ImportedTarget, IsolatedTarget
from mechanisms.gallery import laws
from mechanisms.truth import truth_of

ROOT = Path(__file__).parents[1]
LIMIT = 30
SCALES = (3, 4, 5, 6)
MANY, FEW = 1_000_000, 5_000


def target(audit: str, **init: Any) -> IsolatedTarget:
    """Return what an audit of the gallery draws from, made with other values of `init`."""
    (spec,) = (
        spec
        for file in (ROOT / "configs" / "gallery").glob("*.yaml")
        for spec in load_config(file)
        if spec.name == audit
    )
    isolated = spec.target
    if not isinstance(isolated, IsolatedTarget) or not isinstance(isolated.target, ImportedTarget):
        raise TypeError(f"{audit} does not run under an interpreter of its own")
    given = isolated.target.init
    made = {**given, **init} if isinstance(given, Mapping) else given
    return replace(isolated, target=replace(isolated.target, init=made))


def draws(target: IsolatedTarget, dataset: Any, size: int) -> Any:
    """Return outputs of the library, drawn in its own environment."""
    mechanism = Isolated(target)
    try:
        return mechanism.sample(dataset, size, np.random.default_rng(0))
    finally:
        mechanism.close()


def p_of_counts(outputs: Sequence[Any], law: Mapping[Any, float]) -> float:
    """Return the p-value of Pearson's chi-squared test; 0 for an output that the law excludes."""
    seen = Counter(outputs)
    if not seen.keys() <= law.keys():
        return 0.0
    observed = [seen[output] for output in law]
    expected = [len(outputs) * probability for probability in law.values()]
    return float(stats.chisquare(observed, expected).pvalue)


def opendp(scale: int) -> float:
    """Return the p-value of the biased noise at one scale."""
    drawn = draws(target("opendp-0.14.1", scale=float(scale)), 0, MANY)
    clamped = np.clip(np.asarray(drawn, dtype=np.int64), -LIMIT, LIMIT).tolist()
    return p_of_counts(clamped, truth_of(laws.opendp_0_14_1).pmf(0, scale=scale, limit=LIMIT))


def pure_ldp() -> float:
    """Return the p-value of unary encoding without the clearing of the bit."""
    drawn = draws(target("pure-ldp-1.1.2"), 1, MANY // 10)
    outputs = [tuple(np.asarray(one).tolist()) for one in drawn]
    return p_of_counts(outputs, truth_of(laws.pure_ldp_1_1_2).pmf(1))


def slopes(records: laws.Records) -> float:
    """Return the p-value of Kolmogorov and Smirnov for the slope of a regression."""
    drawn = draws(target("diffprivlib-regression"), records, FEW)
    squares = sum(x * x for x, _ in records)
    return float(stats.kstest(drawn, stats.laplace(scale=30 / squares).cdf).pvalue)


def off_the_grid(value: float) -> float:
    """Return how many outputs for a value are no multiples of 2⁻⁵³."""
    drawn = np.ldexp(draws(target("diffprivlib-laplace-floats"), value, MANY // 5), 53)
    return float(np.mean(drawn != np.floor(drawn)))


def main() -> None:
    """Print a line for every law."""
    for scale in SCALES:
        print(f"opendp 0.14.1, scale {scale}, {MANY:,} draws: p = {opendp(scale):.2f}")
    print(f"pure-ldp 1.1.2, {MANY // 10:,} draws: p = {pure_ldp():.2f}")
    for records in ([(1.0, 0.0), (10.0, 0.0)], [(1.0, 0.0), (0.0, 0.0)]):
        print(f"diffprivlib, slope of {records}, {FEW:,} draws: p = {slopes(records):.2f}")
    for value in (0.0, 1.0):
        share = off_the_grid(value)
        print(f"diffprivlib, Laplace of {value}, {MANY // 5:,} draws: off the grid {share:.1%}")


if __name__ == "__main__":
    main()
