"""Objects of OpenDP and python-dp as mechanisms without adapter code."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from dpaudit.adapters.calls import Batches, SingleDraws
from dpaudit.adapters.loading import load_mechanism
from dpaudit.library_claims.dataset_functions import as_function, fitted, is_entrywise
from dpaudit.targets.target import CallableTarget, ImportedTarget, IsolatedTarget

OBJECTS = """
import opendp.domains as domains
import opendp.measurements as measurements
import opendp.metrics as metrics
from opendp.mod import enable_features

enable_features("contrib", "honest-but-curious")


def laplace(size=None):
    domain = domains.vector_domain(domains.atom_domain(T=int), size=size)
    return measurements.make_laplace(domain, metrics.l1_distance(T=int), scale=2.0)


def noisy_max():
    from opendp.measures import max_divergence

    domain = domains.vector_domain(domains.atom_domain(T=int))
    metric = metrics.linf_distance(T=int)
    return measurements.make_noisy_max(domain, metric, max_divergence(), scale=2.0)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The names in OBJECTS, and the path of the file."""
    file = tmp_path_factory.mktemp("objects") / "made.py"
    file.write_text(OBJECTS)
    names: dict[str, Any] = {"file": str(file)}
    exec(OBJECTS, names)
    return names


def test_a_vector_measurement_with_noise_for_each_entry_is_a_batch(made: Any) -> None:
    mechanism = load_mechanism(CallableTarget(function=made["laplace"]()))
    assert isinstance(mechanism, Batches)
    rng = np.random.default_rng(0)
    numbers = np.asarray(mechanism.sample(7, 2000, rng))
    # The standard deviation is about 2.8: 7 standard errors of the mean.
    assert numbers.shape == (2000,)
    assert abs(numbers.mean() - 7) < 7 * 2.9 / 2000**0.5
    vectors = np.asarray(mechanism.sample([7, 100], 1000, rng))
    assert vectors.shape == (1000, 2)
    assert abs(vectors.mean(axis=0) - [7, 100]).max() < 7 * 2.9 / 1000**0.5
    assert mechanism.sample([], 3, rng) == [[], [], []]


def test_the_constructor_of_the_object_decides(made: Any) -> None:
    from opendp.combinators import make_fix_delta, make_pureDP_to_zCDP, make_zCDP_to_approxDP

    laplace = made["laplace"]()
    restated: Any = make_pureDP_to_zCDP(laplace)
    assert is_entrywise(laplace)
    assert is_entrywise(restated)
    assert is_entrywise(make_fix_delta(make_zCDP_to_approxDP(restated), 1e-6))
    assert not is_entrywise(made["laplace"](size=2))
    assert not is_entrywise(made["noisy_max"]())
    # Post-processing may mix the entries.
    assert not is_entrywise(laplace >> sorted)
    assert isinstance(load_mechanism(CallableTarget(function=laplace >> sorted)), SingleDraws)


def test_another_process_draws_the_same_way(made: Any) -> None:
    named = ImportedTarget(path=f"{made['file']}:laplace", factory=True)
    mechanism = load_mechanism(IsolatedTarget(target=named, python=sys.executable))
    try:
        drawn = mechanism.sample(5, 3, np.random.default_rng(0))
        assert not mechanism.interleaved
        assert len(list(drawn)) == 3
    finally:
        mechanism.close()


def test_objects_of_python_dp_are_mechanisms() -> None:
    from pydp.algorithms.laplacian import Count
    from pydp.algorithms.numerical_mechanisms import LaplaceMechanism

    path = "pydp.algorithms.numerical_mechanisms:LaplaceMechanism"
    named = ImportedTarget(path=path, init=[1.0, 1.0])
    for target in (named, CallableTarget(function=LaplaceMechanism(1.0, 1.0))):
        (output,) = list(load_mechanism(target).sample(3.0, 1, np.random.default_rng(0)))
        assert isinstance(output, float)
    (count,) = load_mechanism(CallableTarget(function=Count(1e3))).sample(
        [1, 2, 3], 1, np.random.default_rng(0)
    )
    assert count == 3


def test_an_estimator_returns_what_it_has_learned() -> None:
    class Mean:
        kept = 3

        def fit(self, rows: list[float]) -> Mean:
            self.mean_, self._secret_, self.rows = sum(rows) / len(rows), 1, rows
            return self

    Mean.__module__ = "diffprivlib.models.mean"
    estimator = Mean()
    assert fitted(estimator, [1.0, 3.0]) == {"mean_": 2.0}
    assert not hasattr(estimator, "mean_")
    function = as_function(estimator)
    assert function([4.0]) == {"mean_": 4.0}
    assert function.claim_source is estimator
