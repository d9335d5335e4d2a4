"""How often, and after how many draws, a leak is found that only one input can give, and rarely.

python -m benchmarks.rare_leaks [--probability 1e-4] [--seeds 20] [--kinds value tail category]

The leak has probability p, beside noise that attains ε = 1.1; the claim is (1.1, p/10)-DP, the
budget 200/p draws, of which a hundred show the leak. Of so rare an event an occurrence is worth at
most log(1 + e^-ε) = 0.29: betting needs 43/p draws at least.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpaudit
from dpaudit import ApproximateDP, Verdict

EPSILON = 1.1
_TRUTH = 1 / (1 + math.exp(-EPSILON))
COLUMNS = 20

Draw = Callable[..., Any]


def answer(dataset: int, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Randomised response."""
    return np.where(rng.random(size) < _TRUTH, dataset, 1 - dataset).astype(np.float64)


def leaks(dataset: int, size: int, rng: np.random.Generator, p: float) -> NDArray[np.bool_]:
    return np.asarray((rng.random(size) < p) & (dataset == 1))


def value(dataset: int, size: int, rng: np.random.Generator, p: float) -> NDArray[np.float64]:
    """A single value beside a randomised response."""
    found = answer(dataset, size, rng)
    found[leaks(dataset, size, rng, p)] = 77.0
    return found


def tail(dataset: int, size: int, rng: np.random.Generator, p: float) -> NDArray[np.float64]:
    """A far tail beside Laplace noise."""
    found = dataset + rng.laplace(scale=1 / EPSILON, size=size)
    chosen = leaks(dataset, size, rng, p)
    found[chosen] = 1e6 * (1 + rng.random(int(chosen.sum())))
    return np.asarray(found)


def category(dataset: int, size: int, rng: np.random.Generator, p: float) -> NDArray[np.float64]:
    """A new category in one of 20 columns, one of which is a randomised response."""
    found = rng.normal(size=(size, COLUMNS))
    found[:, 0] = answer(dataset, size, rng)
    found[:, 7] = rng.integers(5, size=size)
    found[leaks(dataset, size, rng, p), 7] = 9
    return found


def key(dataset: int, size: int, rng: np.random.Generator, p: float) -> list[dict[str, float]]:
    """A key of a dict beside a randomised response."""
    both = zip(answer(dataset, size, rng), leaks(dataset, size, rng, p), strict=True)
    return [{"answer": one, "leak": 1.0} if leak else {"answer": one} for one, leak in both]


def random_value(
    dataset: int, size: int, rng: np.random.Generator, p: float
) -> NDArray[np.float64]:
    """A number that is never the same beside a randomised response."""
    found = answer(dataset, size, rng)
    chosen = leaks(dataset, size, rng, p)
    found[chosen] = rng.random(int(chosen.sum()))
    return found


def random_text(dataset: int, size: int, rng: np.random.Generator, p: float) -> list[float | str]:
    """A text that is never the same beside a randomised response."""
    found: list[float | str] = answer(dataset, size, rng).tolist()
    for place in np.flatnonzero(leaks(dataset, size, rng, p)):
        found[place] = f"debug {rng.integers(2**63)}"
    return found


def random_key(
    dataset: int, size: int, rng: np.random.Generator, p: float
) -> list[dict[str, float]]:
    """A key of a dict that is never the same beside a randomised response, as one of two keys."""
    found = [{"answer": one, "other": 0.0} for one in answer(dataset, size, rng).tolist()]
    for place in np.flatnonzero(leaks(dataset, size, rng, p)):
        del found[place]["other"]
        found[place][f"debug {rng.integers(2**63)}"] = 0.0
    return found


def exception(dataset: int, rng: np.random.Generator, p: float) -> float:
    """An exception beside a randomised response, one call a draw."""
    if dataset == 1 and rng.random() < p:
        raise ValueError("leak")
    return float(dataset if rng.random() < _TRUTH else 1 - dataset)


KINDS: dict[str, Draw] = {
    one.__name__: one
    for one in (value, tail, category, key, exception, random_value, random_text, random_key)
}


def line(name: str, p: float, seeds: int) -> str:
    """Return how many of so many audits found it, and after how many draws, as multiples of 1/p."""
    found, draws = 0, []
    start = time.perf_counter()
    for seed in range(seeds):
        mechanism, claim = partial(KINDS[name], p=p), ApproximateDP(EPSILON, p / 10)
        result = dpaudit.audit(mechanism, 1, 0, claim, samples=round(200 / p), seed=seed)
        found += result.verdict is Verdict.VIOLATION
        (certificate,) = result.certificates
        draws.append((certificate.refuted_after or math.inf) * p)
    each = (time.perf_counter() - start) / seeds
    betting = f"{median(draws):.0f}/p" if median(draws) < math.inf else "later"
    return f"{name:12} {p:8.0e} {found:4d} of {seeds:<4d} {betting:>10} {each:8.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probability", type=float, default=1e-4)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=["value", "tail"])
    given = parser.parse_args()
    print("kind                p   refuted   by betting   an audit")
    for name in given.kinds:
        print(line(name, given.probability, given.seeds), flush=True)


if __name__ == "__main__":
    main()
