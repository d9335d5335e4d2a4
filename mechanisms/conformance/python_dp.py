"""python-dp as the implementation under test: many outputs of its algorithms in one call.

The algorithms of python-dp have Laplace noise. For Gaussian noise, these functions add the noise of
its `GaussianMechanism` to the values to which the algorithms of the C++ library add it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

# `Count` takes single entries, so larger counts get the noise of `LaplaceMechanism`, as in `Count`.
_MOST_ENTRIES = 1_000


def count(
    increments: Sequence[int],
    size: int,
    noise_type: str,
    epsilon: float,
    max_partitions_contributed: int,
    delta: float = 0.0,
) -> list[int]:
    """Return noisy sums of the increments."""
    total = sum(increments)
    if noise_type == "LAPLACE" and total <= _MOST_ENTRIES:
        algorithm = _algorithms().Count(epsilon, max_partitions_contributed, 1, "int64")
        entries = [1] * total
        return [algorithm.quick_result(entries) for _ in range(size)]
    add = _noise(noise_type, epsilon, delta, max_partitions_contributed, 1.0)
    return [add(total) for _ in range(size)]


def bounded_sum(
    entries: Sequence[float],
    size: int,
    noise_type: str,
    epsilon: float,
    max_partitions_contributed: int,
    lower_bound: float,
    upper_bound: float,
    delta: float = 0.0,
) -> list[float]:
    """Return noisy sums of the entries, clamped to the bounds."""
    if noise_type == "LAPLACE":
        algorithm = _algorithms().BoundedSum(
            epsilon=epsilon,
            lower_bound=lower_bound,
            upper_bound=upper_bound,
            l0_sensitivity=max_partitions_contributed,
            dtype="float",
        )
        plain = list(entries)
        return [algorithm.quick_result(plain) for _ in range(size)]
    total = sum(_clamped(entries, lower_bound, upper_bound))
    largest = max(abs(lower_bound), abs(upper_bound))
    add = _noise(noise_type, epsilon, delta, max_partitions_contributed, largest)
    return [add(float(total)) for _ in range(size)]


def bounded_mean(
    entries: Sequence[float],
    size: int,
    noise_type: str,
    epsilon: float,
    max_partitions_contributed: int,
    max_contributions_per_partition: int,
    lower_bound: float,
    upper_bound: float,
    delta: float = 0.0,
) -> list[float]:
    """Return noisy means of the entries, clamped to the bounds."""
    if noise_type == "LAPLACE":
        algorithm = _algorithms().BoundedMean(
            epsilon=epsilon,
            lower_bound=lower_bound,
            upper_bound=upper_bound,
            l0_sensitivity=max_partitions_contributed,
            linf_sensitivity=max_contributions_per_partition,
            dtype="float",
        )
        plain = list(entries)
        return [algorithm.quick_result(plain) for _ in range(size)]
    # Half of the budget is for the count, half for the sum of the distances to the middle.
    middle, number = (lower_bound + upper_bound) / 2, float(len(entries))
    total = sum(_clamped(entries, lower_bound, upper_bound)) - middle * number
    parts = noise_type, epsilon / 2, delta / 2, max_partitions_contributed
    often = max_contributions_per_partition
    add_to_count = _noise(*parts, float(often))
    add_to_sum = _noise(*parts, often * (upper_bound - lower_bound) / 2)
    means = (add_to_sum(total) / max(1.0, add_to_count(number)) + middle for _ in range(size))
    return [min(max(mean, lower_bound), upper_bound) for mean in means]


def _noise(
    noise_type: str, epsilon: float, delta: float, partitions: int, largest: float
) -> Callable[[Any], Any]:
    """Return `add_noise` of a mechanism.

    partitions: number of partitions of one person. largest: most that a person adds to each.
    """
    mechanisms = import_module("pydp.algorithms.numerical_mechanisms")
    if noise_type == "LAPLACE":
        made = mechanisms.LaplaceMechanism(epsilon, partitions * largest)
    else:
        made = mechanisms.GaussianMechanism(epsilon, delta, math.sqrt(partitions) * largest)
    return made.add_noise  # type: ignore[no-any-return]  # a method of the library


def _clamped(entries: Sequence[float], lower: float, upper: float) -> list[float]:
    return [min(max(entry, lower), upper) for entry in entries]


def _algorithms() -> Any:
    return import_module("pydp.algorithms.laplacian")
