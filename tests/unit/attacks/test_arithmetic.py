"""The arithmetic below the learned attacks: products, steps, features, shares."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.attacks.features import (
    Above,
    Category,
    Indicator,
    Number,
    raw_features,
    scaled_features,
    with_sides,
)
from dpaudit.attacks.weighted_sums import gram, solved, summed, times
from dpaudit.attacks.whitened import _decorrelated
from dpaudit.levels.scores import most, shares
from dpaudit.outcomes import from_raw


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


def test_features_of_columns() -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"word": str(rng.choice(["a", "b"])), "few": int(rng.integers(3)), "x": rng.normal()}
        for _ in range(300)
    ]
    rows[0] = {**rows[0], "x": math.inf}
    columns = from_raw(rows).columns
    scaled, raw = with_sides(scaled_features(columns)), raw_features(columns)
    assert {type(one) for one in scaled} == {Above, Indicator, Number}
    assert [one.column for one in scaled if isinstance(one, Indicator)].count('output["few"]') == 2
    assert [one.column for one in scaled if isinstance(one, Indicator)].count('output["word"]') == 1
    word = next(one for one in raw if isinstance(one, Category))
    seen = from_raw([{"word": "a", "few": 1, "x": 0.5}, {"word": "new", "few": 1, "x": -math.inf}])
    assert word(seen.column(word.column)).tolist()[0] in (1.0, 2.0)
    assert math.isnan(word(seen.column(word.column))[1])
    number = next(one for one in scaled if isinstance(one, Number))
    assert number(seen.column(number.column))[1] == -10.0
    side = next(one for one in scaled if isinstance(one, Above))
    assert side(seen.column(side.column)).tolist() == [1.0, -1.0]
    assert side(from_raw([{"word": "a", "few": 1, "x": "?"}]).column(side.column)) == [0.0]


def test_shares_add_up() -> None:
    found = shares(["a", "kind of b", "b", "c"], [3.0, 0.5, 0.5, 0.0])
    assert found == (("a", 0.75), ("b", 0.25))
    assert most(found) == ("a", "b")
    assert most(shares(["a"], [0.0])) == ()
    # Four of a hundred that are alike are not what the score is about.
    assert most(shares([str(i) for i in range(100)], [1.0] * 100)) == ()
