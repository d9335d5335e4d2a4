"""Mechanisms of diffprivlib, whose parameters depend on the data; needs diffprivlib.

Records are 0 or 1. Adjacency: a record is added or removed; an answer is replaced. Claim: 1-DP.
"""

from __future__ import annotations

from collections.abc import Sequence

from diffprivlib.mechanisms import (
    Binary,
    Exponential,
    ExponentialCategorical,
    GaussianAnalytic,
    GeometricTruncated,
    Laplace,
    LaplaceFolded,
    LaplaceTruncated,
)


def half_the_sensitivity(data: Sequence[int]) -> float:
    """Broken: the mechanism takes ½ for the sensitivity."""
    return float(Laplace(epsilon=1.0, sensitivity=0.5).randomise(float(sum(data))))


def whole_sensitivity(data: Sequence[int]) -> float:
    """Correct."""
    return float(Laplace(epsilon=1.0, sensitivity=1.0).randomise(float(sum(data))))


def truncated_at_the_size(data: Sequence[int]) -> float:
    """Broken: outputs end at the private number of records."""
    made = LaplaceTruncated(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=float(len(data)))
    return float(made.randomise(float(sum(data))))


def truncated(data: Sequence[int]) -> float:
    """Correct: they end at 10."""
    made = LaplaceTruncated(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=10.0)
    return float(made.randomise(float(sum(data))))


def folded_at_the_size(data: Sequence[int]) -> float:
    """Broken: outputs are mirrored at the private number of records."""
    made = LaplaceFolded(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=float(len(data)))
    return float(made.randomise(float(sum(data))))


def integers_from_the_size(data: Sequence[int]) -> int:
    """Broken: integers begin at the private number of records, below 0."""
    made = GeometricTruncated(epsilon=1.0, sensitivity=1, lower=-len(data), upper=10)
    return int(made.randomise(sum(data)))


def scale_of_the_size(data: Sequence[int]) -> float:
    """Broken: the sensitivity is the private number of records."""
    made = LaplaceTruncated(epsilon=1.0, sensitivity=float(len(data)), lower=0.0, upper=10.0)
    return float(made.randomise(float(sum(data))))


def normal_half(data: Sequence[int]) -> float:
    """Broken: the mechanism is for ε = 2. Claim: (1, 10⁻⁵)-DP."""
    return float(GaussianAnalytic(epsilon=2.0, delta=1e-5, sensitivity=1.0).randomise(sum(data)))


def normal_whole(data: Sequence[int]) -> float:
    """Correct."""
    return float(GaussianAnalytic(epsilon=1.0, delta=1e-5, sensitivity=1.0).randomise(sum(data)))


def weights_without_half(scores: Sequence[float]) -> int:
    """Broken: the mechanism is for ε = 4; scores move by 1 each; a record is replaced."""
    made = Exponential(epsilon=4.0, sensitivity=1.0, utility=list(scores))
    return int(made.randomise())


def weights(scores: Sequence[float]) -> int:
    """Correct: for ε = 1."""
    made = Exponential(epsilon=1.0, sensitivity=1.0, utility=list(scores))
    return int(made.randomise())


def too_honest(answer: int) -> str:
    """Broken: randomized response for ε = 2."""
    return str(Binary(epsilon=2.0, value0="no", value1="yes").randomise("yes" if answer else "no"))


def honest(answer: int) -> str:
    """Correct: for ε = 1."""
    return str(Binary(epsilon=1.0, value0="no", value1="yes").randomise("yes" if answer else "no"))


_DISTANCES = [["tea", "coffee", 1], ["tea", "water", 1], ["coffee", "water", 1]]


def category_too_honest(drink: str) -> str:
    """Broken: the mechanism is for ε = 4."""
    return str(ExponentialCategorical(epsilon=4.0, utility_list=_DISTANCES).randomise(drink))


def category(drink: str) -> str:
    """Correct: for ε = 1."""
    return str(ExponentialCategorical(epsilon=1.0, utility_list=_DISTANCES).randomise(drink))
