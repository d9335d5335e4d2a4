"""Weighted sums of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.attacks.linear.features import Feature, Number, with_columns, without_gaps
from dpaudit.levels.cells import listed
from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.scores import most, shares
from dpaudit.outcomes import KIND, Outcomes

# Of more features the weights cannot be found together: that takes too long.
MOST_FEATURES = 512


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """The log-odds of d1. weights: of 1, then by feature."""

    features: tuple[Feature, ...]
    weights: tuple[float, ...]
    columns: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, features: Sequence[Feature], weights: FloatArray, outcomes: Outcomes) -> Linear:
        """Return the score with these weights. outcomes: to see from by how much each feature moves
        it."""
        every = with_columns(features, outcomes)
        spread = np.abs(weights[1:]) * [without_gaps(one(column)).std() for one, column in every]
        importance = shares([one.column for one in features], spread.tolist())
        return cls(tuple(features), tuple(weights.tolist()), importance)

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        total = np.full(outcomes.size, self.weights[0])
        # Added up, not multiplied as a matrix: equal for an outcome whatever stands beside it.
        every = zip(with_columns(self.features, outcomes), self.weights[1:], strict=True)
        for (feature, column), weight in every:
            total += weight * without_gaps(feature(column))
        return total

    def words(self) -> str:
        count = len({one.column.removeprefix(KIND) for one in self.features})
        named = [self._term(name) for name in most(self.columns)]
        what = f"is a weighted sum of {count:,} coordinates"
        return f"{what}, most of all {listed(named, 'and')}" if named else what

    def _term(self, name: str) -> str:
        """Return a column with its weight, where it has just one."""
        both = zip(self.features, self.weights[1:], strict=True)
        own = [(one, weight) for one, weight in both if one.column.removeprefix(KIND) == name]
        feature, weight = own[0]
        if len(own) > 1 or not isinstance(feature, Number):
            return name
        return f"{weight / (feature.scale or 1.0):.3g} × {name}"


def design_of(features: Sequence[Feature], outcomes: Outcomes) -> FloatArray:
    """Return the design: a column of ones, and the features with 0 where they have no number; by
    column in memory."""
    design = np.empty((outcomes.size, 1 + len(features)), order="F")
    design[:, 0] = 1.0
    for place, (feature, column) in enumerate(with_columns(features, outcomes), 1):
        design[:, place] = without_gaps(feature(column))
    return design
