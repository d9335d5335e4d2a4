"""The arithmetic below the learned attacks: products, steps, features, shares."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.attacks.weighted_sums import gram, solved, summed, times
from dpaudit.attacks.whitened import _decorrelated
from dpaudit.levels.scores import most, shares


def test_products_are_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    for rows, width in ((1, 1), (1_000, 3), (500, 40), (300, 200)):
        matrix = rng.normal(size=(rows, width))
        vector, weights = rng.normal(size=width), rng.normal(size=rows)
        assert gram(matrix) == pytest.approx(matrix.T @ matrix)
        weighted = matrix.T @ np.diag(weights) @ matrix
        assert gram(matrix, weights) == pytest.approx(weighted, abs=1e-8)
        assert times(matrix, vector) == pytest.approx(matrix @ vector)
        assert summed(matrix, weights) == pytest.approx(matrix.T @ weights)
        definite = matrix.T @ matrix + np.eye(width)
        assert solved(definite, vector) == pytest.approx(
            np.linalg.solve(definite, vector), abs=1e-8
        )


def test_decorrelation_is_that_of_cholesky() -> None:
    rng = np.random.default_rng(1)
    numbers = np.cumsum(rng.normal(size=(400, 7)), axis=1)
    covariance = numbers.T @ numbers / 400
    inverse, new = _decorrelated(covariance)
    root = np.linalg.cholesky(covariance)
    assert new == pytest.approx(np.diag(root) ** 2)
    assert inverse == pytest.approx(np.linalg.inv(root / np.diag(root)))


def test_shares_add_up() -> None:
    found = shares(["a", "kind of b", "b", "c"], [3.0, 0.5, 0.5, 0.0])
    assert found == (("a", 0.75), ("b", 0.25))
    assert most(found) == ("a", "b")
    assert most(shares(["a"], [0.0])) == ()
    # Four of a hundred that are alike are not what the score is about.
    assert most(shares([str(i) for i in range(100)], [1.0] * 100)) == ()
