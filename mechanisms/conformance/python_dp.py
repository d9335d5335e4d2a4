"""python-dp as the implementation under test: many outputs of its algorithms in one call.

The algorithms of python-dp have Laplace noise, its quantiles also Gaussian noise. For Gaussian
noise, the other functions add the noise of its `GaussianMechanism` to the values to which the
algorithms of the C++ library add it. `MISSING` names the cases that python-dp cannot run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

# `Count` takes single entries, so larger counts get the noise of `LaplaceMechanism`, as in `Count`.
_MOST_ENTRIES = 1_000
# Kind and noise of cases that python-dp 1.1.5 cannot run, with the reason.
MISSING = {
    ("approximate_bounds", "LAPLACE"): (
        "python-dp finds approximate bounds inside other algorithms and does not return them"
    ),
    ("bounded_stdv", "GAUSSIAN"): (
        "the variance of python-dp has Laplace noise, and that of its C++ library passes no delta "
        "to a Gaussian mechanism"
    ),
}


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
        return _results(algorithm, entries, size)
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
    bounds = float(lower_bound), float(upper_bound)
    plain = [float(entry) for entry in entries]
    privacy = noise_type, epsilon, delta, max_partitions_contributed
    return _sums("float", plain, size, privacy, bounds)


def long_bounded_sum(
    entries: Sequence[int],
    size: int,
    noise_type: str,
    epsilon: float,
    max_partitions_contributed: int,
    lower_bound: int,
    upper_bound: int,
    delta: float = 0.0,
) -> list[int]:
    """Return noisy sums of whole entries, clamped to the bounds."""
    privacy = noise_type, epsilon, delta, max_partitions_contributed
    return _sums("int64", list(entries), size, privacy, (lower_bound, upper_bound))


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
        return _results(algorithm, entries, size)
    # Half of the budget is for the count, half for the sum of the distances to the middle.
    middle, number = (lower_bound + upper_bound) / 2, float(len(entries))
    total = sum(_clamped(entries, lower_bound, upper_bound)) - middle * number
    parts = noise_type, epsilon / 2, delta / 2, max_partitions_contributed
    often = max_contributions_per_partition
    add_to_count = _noise(*parts, float(often))
    add_to_sum = _noise(*parts, often * (upper_bound - lower_bound) / 2)
    means = (add_to_sum(total) / max(1.0, add_to_count(number)) + middle for _ in range(size))
    return [min(max(mean, lower_bound), upper_bound) for mean in means]


def bounded_stdv(
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
    """Return noisy standard deviations of the entries, clamped to the bounds.

    Raises
    ------
    ValueError
        For Gaussian noise.
    """
    if noise_type != "LAPLACE":
        raise ValueError(MISSING["bounded_stdv", "GAUSSIAN"])
    algorithm = _algorithms().BoundedStandardDeviation(
        epsilon=epsilon,
        delta=delta,
        lower_bound=lower_bound,
        upper_bound=upper_bound,
        l0_sensitivity=max_partitions_contributed,
        linf_sensitivity=max_contributions_per_partition,
        dtype="float",
    )
    return _results(algorithm, entries, size)


def bounded_quantiles(
    entries: Sequence[float],
    size: int,
    noise_type: str,
    rank: Sequence[float],
    epsilon: float,
    max_partitions_contributed: int,
    max_contributions_per_partition: int,
    lower_bound: float,
    upper_bound: float,
    tree_height: int,
    branching_factor: int,
    delta: float = 0.0,
) -> list[list[float]]:
    """Return lists of noisy quantiles of the entries, one quantile for each rank (0 to 1).

    The quantiles of a list are from one noisy tree, so the claim holds for all of them together.
    """
    quantile_tree = import_module("pydp.algorithms.quantile_tree").QuantileTree
    tree = quantile_tree(lower_bound, upper_bound, tree_height, branching_factor)
    for entry in entries:
        tree.add_entry(entry)
    people = max_partitions_contributed, max_contributions_per_partition
    given = epsilon, delta, *people, list(rank), noise_type.lower()
    return [tree.compute_quantiles(*given) for _ in range(size)]


def _sums(
    dtype: str,
    entries: list[Any],
    size: int,
    privacy: tuple[str, float, float, int],
    bounds: tuple[float, float],
) -> list[Any]:
    """Return noisy sums of entries of a type of python-dp.

    privacy: noise, ε, δ, and number of partitions of one person.
    """
    noise_type, epsilon, delta, partitions = privacy
    lower, upper = bounds
    if noise_type == "LAPLACE":
        algorithm = _algorithms().BoundedSum(
            epsilon=epsilon,
            lower_bound=lower,
            upper_bound=upper,
            l0_sensitivity=partitions,
            dtype=dtype,
        )
        return _results(algorithm, entries, size)
    # Every term has the type of the entries, and so has the noisy sum.
    total = sum(_clamped(entries, lower, upper), start=type(lower)(0))
    add = _noise(noise_type, epsilon, delta, partitions, max(abs(lower), abs(upper)))
    return [add(total) for _ in range(size)]


def _results(algorithm: Any, entries: Sequence[Any], size: int) -> list[Any]:
    """Return noisy results of an algorithm of python-dp for the same entries."""
    plain = list(entries)
    return [algorithm.quick_result(plain) for _ in range(size)]


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
