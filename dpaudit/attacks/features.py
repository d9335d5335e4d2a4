"""Features: columns of outcomes as numbers for regressions and trees.

They are chosen from the outcomes of selection draws, without their inputs. `raw_features` are for
trees, `scaled_features` for linear models; `matrix` computes them for any outcomes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from dpaudit.levels import tuning
from dpaudit.levels.cells import frequent_labels
from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.limits import FEW_VALUES, MAX_DRAWS_SLOW, MAX_SUM_CELLS
from dpaudit.outcomes import Column, Outcomes

# Numbers on the common scale, (number - median) / spread, are clipped at ± this value.
_MAX_SCALED = 10.0
# Distance between the quartiles of a standard normal law, by which `on_scale` turns quartiles into
# a standard deviation.
_QUARTILES_OF_NORMAL = 1.349


@dataclass(frozen=True, slots=True)
class NumberFeature:
    """A number of a column, as (number - centre) / scale, clipped at ±10. If `scale` is 0, the
    number is unchanged. A label gives NaN."""

    column: str
    centre: float = 0.0
    scale: float = 0.0

    def __call__(self, column: Column) -> FloatArray:
        if self.scale == 0:
            return column.numbers
        with np.errstate(invalid="ignore", over="ignore"):
            result = column.numbers - self.centre
            result /= self.scale
        return np.clip(result, -_MAX_SCALED, _MAX_SCALED, out=result)


@dataclass(frozen=True, slots=True)
class Category:
    """A label of a column, as its position in `labels`, from 1 on. A number gives 0, and a label
    that is not in `labels` gives NaN."""

    column: str
    labels: tuple[str, ...]

    def __call__(self, column: Column) -> FloatArray:
        return _by_code(
            column, {label: index for index, label in enumerate(self.labels, 1)}, np.nan
        )


@dataclass(frozen=True, slots=True)
class Indicator:
    """Whether a column has the number or label `entry`: 1 or 0."""

    column: str
    entry: float | str

    def __call__(self, column: Column) -> FloatArray:
        if isinstance(self.entry, str):
            return _by_code(column, {self.entry: 1}, 0.0)
        return np.asarray(column.numbers == self.entry, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Above:
    """The side of a number: 1 above `bound`, -1 below it, 0 for an equal number or a label. With
    Laplace noise, the log-ratio of a number far from the bound depends only on its side."""

    column: str
    bound: float

    def __call__(self, column: Column) -> FloatArray:
        # Two comparisons are several times faster than `np.sign` of the difference, and both are
        # False for NaN.
        above, below = column.numbers > self.bound, column.numbers < self.bound
        return (above.view(np.int8) - below.view(np.int8)).astype(np.float64)


Feature = NumberFeature | Category | Indicator | Above


def raw_features(columns: Iterable[Column]) -> list[Feature]:
    """Return the features for trees: unchanged numbers, and the positions of frequent labels."""
    result: list[Feature] = []
    for column in columns:
        labels = _labels(column)
        if len(np.unique(_numbers(column))) > 1:
            result.append(NumberFeature(column.name))
        if labels:
            result.append(Category(column.name, labels))
    return result


def scaled_features(columns: Iterable[Column]) -> list[Feature]:
    """Return the features for linear models: (number - median) / spread for numbers, and an
    indicator for each frequent label."""
    return [feature for column in columns for feature in _scaled(column)]


def with_sides(features: Iterable[Feature]) -> list[Feature]:
    """Return the features, and after every `NumberFeature` an `Above` feature, whose bound is the
    median."""
    result: list[Feature] = []
    for feature in features:
        result.append(feature)
        if isinstance(feature, NumberFeature):
            result.append(Above(feature.column, feature.centre))
    return result


def matrix(
    features: Sequence[Feature], outcomes: Outcomes, others: Sequence[FloatArray] = ()
) -> FloatArray:
    """Return the value of every feature for every outcome: (size, features + others), in Fortran
    order. The last columns are `others`, each (size,)."""
    result = np.empty((outcomes.size, len(features) + len(others)), order="F")
    for index, (feature, column) in enumerate(with_columns(features, outcomes)):
        result[:, index] = feature(column)
    for index, values in enumerate(others, len(features)):
        result[:, index] = values
    return result


def without_gaps(numbers: FloatArray) -> FloatArray:
    """Return numbers with NaN replaced by 0, and infinities by the largest floats."""
    if len(numbers) and np.isfinite(numbers.min()) and np.isfinite(numbers.max()):
        return numbers
    return np.nan_to_num(numbers)


def with_columns(
    features: Sequence[Feature], outcomes: Outcomes
) -> Iterator[tuple[Feature, Column]]:
    """Yield each feature with its column. Features of one column must be adjacent."""
    groups = [
        (name, [*group]) for name, group in groupby(features, key=lambda feature: feature.column)
    ]
    columns = outcomes.named(name for name, _ in groups)
    for (_, group), column in zip(groups, columns, strict=True):
        yield from ((feature, column) for feature in group)


def _by_code(column: Column, known: Mapping[str, int], unknown: float) -> FloatArray:
    """Return a value for each entry of a column, by its label; a number gets 0."""
    if column.codes is None:
        return np.zeros(len(column.numbers))
    values = np.array([0.0, *(known.get(label, unknown) for label in column.labels)])
    return values[column.codes]


def _scaled(column: Column) -> Iterator[Feature]:
    numbers, labels = _numbers(column), _labels(column)
    values, counts = np.unique(numbers, return_counts=True)
    kinds = len(labels) + bool(len(numbers))
    if 1 < len(values) <= FEW_VALUES:  # numbers that are categories
        is_often = counts >= tuning.DRAWS_PER_CELL
        # Every frequent category gets an indicator (0 or 1), except the most frequent category: the
        # other indicators determine it.
        is_often[np.argmax(counts)] = False
        yield from (Indicator(column.name, float(value)) for value in values[is_often])
    elif len(values) > 1:
        yield on_scale(column)
    if kinds > 1:
        # If the column contains labels and no numbers, the most frequent label gets no indicator (0
        # or 1): the indicators of the other labels determine it.
        left_out = 0 if len(numbers) else 1
        yield from (Indicator(column.name, label) for label in labels[left_out:])


def on_scale(column: Column) -> NumberFeature:
    """Return the feature (number - median) / spread, where the spread is the standard deviation of
    a normal law with the same quartiles."""
    numbers, name = _numbers(column), column.name
    finite = numbers[np.isfinite(numbers)]
    if len(finite) == 0:
        return NumberFeature(name, 0.0, 1.0)
    low, centre, high = np.quantile(finite, [0.25, 0.5, 0.75]).tolist()
    scale = (high - low) / _QUARTILES_OF_NORMAL
    if not 0 < scale < np.inf:
        with np.errstate(over="ignore"):
            scale = max(float(np.abs(finite - centre).mean()), 1e-300)
    return NumberFeature(name, centre, scale if np.isfinite(scale) else 1e300)


def _numbers(column: Column) -> FloatArray:
    numbers = column.numbers[:MAX_DRAWS_SLOW]
    return numbers if column.codes is None else numbers[column.codes[:MAX_DRAWS_SLOW] == 0]


def _labels(column: Column) -> tuple[str, ...]:
    """Return the labels with at least 24 draws, the most frequent first, at most 32."""
    return frequent_labels(column.take(slice(MAX_DRAWS_SLOW)), tuning.DRAWS_PER_CELL, MAX_SUM_CELLS)
