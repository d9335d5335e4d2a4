"""The additive scorer on whitened coordinates.

Each prediction is a linear regression on the earlier numbers, after the mean of each input was
subtracted. So whitened coordinates, also called innovations, are uncorrelated. The sum of their
log-ratios is the best score if every release adds independent noise to the releases before it
(prefix sums, counters, random walks), and for Gaussian noise of any covariance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.additive import Term, fitted_sum
from dpaudit.attacks.features import NumberFeature, matrix, on_scale, without_gaps
from dpaudit.attacks.single_columns import orders_of
from dpaudit.attacks.weighted_sums import gram
from dpaudit.draws import LevelArray, SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, by_score
from dpaudit.levels.cells import Cells, make_cells
from dpaudit.levels.level_map import FloatArray, LevelMap
from dpaudit.levels.limits import MAX_COLUMNS, MAX_LISTED_ITEMS, MAX_SUM_CELLS, MIN_DRAWS, TINY
from dpaudit.levels.scores import Scored, shares, with_most
from dpaudit.outcomes import Column, Outcomes, number_word
from dpaudit.outcomes.tables import Table

NAME = "sum over what is new in each coordinate"
ONE = "one new coordinate: "

# Label of the outcomes for which a `Difference` is not a number, for example because an entry is a
# text.
_GAP = "not a number"
# The coefficients of a whitened coordinate are rounded, so that reports can show them. Rounding one
# coefficient changes the coordinate by at most about this share of the coordinate's standard
# deviation.
_ROUNDING_SHARE = 0.01


def innovations(selection: SelectionDraws) -> list[Candidate]:
    """Return two orders of vectors of numbers: by the sum of the log-ratios of all whitened
    coordinates, and by the most informative coordinate alone. A whitened coordinate is a number
    minus its prediction from the numbers before it."""
    columns = selection.outcomes.columns
    if not 1 < len(columns) <= MAX_COLUMNS or selection.size < MIN_DRAWS:
        return []
    if any(column.codes is not None for column in columns):
        return []
    features = tuple(map(on_scale, columns))
    numbers = matrix(features, selection.outcomes)
    steps = _steps(numbers, selection.is_d1)
    if not any(step.terms for step in steps):
        return []
    new = (step(features, numbers) for step in steps)
    terms = [Term.of(make_cells(column, MAX_SUM_CELLS), column) for column in new]
    tables, spread, held_out, halves = fitted_sum(terms, selection.is_d1)
    importance = shares([features[step.index].column for step in steps], spread)
    final_score = partial(Innovations, features, steps, tables, importance)
    score = by_score(Scored(NAME, held_out, final_score, halves), selection)
    best = steps[int(np.argmax(spread))]
    return [score, *(_by_itself(best, features, numbers, selection) if best.terms else [])]


def _by_itself(
    step: WhitenedCoordinate,
    features: tuple[NumberFeature, ...],
    numbers: FloatArray,
    selection: SelectionDraws,
) -> list[Candidate]:
    """Return orders of outcomes by one whitened coordinate."""
    # They help where the inputs differ in a single answer, so that other coordinates only add
    # noise.
    difference = _plain(step, features, float(np.std(step(features, numbers).numbers)))
    new = difference(selection.outcomes)
    (column,) = new.all_columns
    if not np.isfinite(column.numbers).all():
        return []
    result = orders_of(column, SelectionDraws(new, selection.is_d1))
    of_new = partial(NewLevels, difference)
    return [
        replace(candidate.mapped(of_new), attack=f"{ONE}{candidate.attack}") for candidate in result
    ]


def _plain(
    step: WhitenedCoordinate, features: Sequence[NumberFeature], spread: float
) -> Difference:
    """Return a whitened coordinate as a `Difference` of columns, in the units of the outputs."""
    feature = features[step.index]
    terms = []
    for index, coefficient in step.terms:
        earlier = features[index]
        exact = coefficient * (feature.scale or 1.0) / (earlier.scale or 1.0)
        step_size = max(
            _ROUNDING_SHARE * spread * (feature.scale or 1.0) / (earlier.scale or 1.0), 1e-300
        )
        if math.isfinite(step_size) and math.isfinite(10 * exact):
            digits = -math.floor(math.log10(step_size))
            exact = round(exact, digits) if digits < 300 else exact
        terms.append((earlier.column, exact))
    return Difference(
        feature.column, tuple((name, multiple) for name, multiple in terms if multiple)
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """A column plus multiples of other columns, such as `output[2] − 0.5 × output[1]`.

    terms: name and coefficient of each other column.
    """

    column: str
    terms: tuple[tuple[str, float], ...]

    def __call__(self, outcomes: Outcomes) -> Table:
        """Return a table whose only column is the sum, with a label where it is not a number."""
        names = [self.column, *(name for name, _ in self.terms)]
        numbers = matrix([NumberFeature(name) for name in names], outcomes)
        new = numbers[:, 0].copy()
        with np.errstate(invalid="ignore", over="ignore"):
            for index, (_, coefficient) in enumerate(self.terms, 1):
                new += coefficient * numbers[:, index]
        gaps = np.isnan(new)
        column = Column(self.words, new)
        if gaps.any():
            column = replace(column, codes=gaps.astype(np.int32), labels=(_GAP,))
        return Table((column,), len(new))

    @property
    def words(self) -> str:
        named = sorted(self.terms, key=lambda term: -abs(term[1]))[:MAX_LISTED_ITEMS]
        signs = [f" {'+' if multiple > 0 else '−'} " for _, multiple in named]
        factors = [
            "" if abs(multiple) == 1 else f"{number_word(abs(multiple))} × "
            for _, multiple in named
        ]
        parts = [
            f"{sign}{factor}{name}"
            for sign, factor, (name, _) in zip(signs, factors, named, strict=True)
        ]
        further = len(self.terms) - len(named)
        ending = f" + multiples of {further} entries before it" if further else ""
        return "".join([self.column, *parts, ending])


@dataclass(frozen=True, slots=True, eq=False)
class NewLevels(LevelMap):
    """Level map by a `Difference` of columns. An outcome for which it is not a number has the last
    level."""

    difference: Difference
    level: LevelMap

    @property
    def levels(self) -> int:
        return self.level.levels

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        return self.level(self.difference(outcomes))

    def words(self, chosen: NDArray[np.bool_]) -> str:
        return self.level.words(chosen)


@dataclass(frozen=True, slots=True)
class WhitenedCoordinate:
    """A whitened coordinate, computed as a coordinate plus multiples of earlier coordinates.

    index: index of the coordinate.
    terms: (index, multiple) of each earlier coordinate that is added.
    """

    index: int
    terms: tuple[tuple[int, float], ...]

    def __call__(self, features: Sequence[NumberFeature], numbers: FloatArray) -> Column:
        new = numbers[:, self.index].copy()
        for index, coefficient in self.terms:
            new += coefficient * numbers[:, index]
        return Column(features[self.index].column, new)


@dataclass(frozen=True, slots=True, eq=False)
class Innovations:
    """A score of vectors of numbers: the sum of the log-ratios of their whitened coordinates.

    features: bring the numbers of each column to a common scale.
    steps: the functions that compute the whitened coordinates.
    tables: for each whitened coordinate, its cells with their log-ratios.
    """

    features: tuple[NumberFeature, ...]
    steps: tuple[WhitenedCoordinate, ...]
    tables: tuple[Cells, ...]
    columns: tuple[tuple[str, float], ...]

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        numbers = matrix(self.features, outcomes)
        known = without_gaps(numbers)
        total = np.zeros(len(known))
        if known is not numbers:  # an outcome of another shape has no score
            total[np.isnan(numbers).any(axis=1)] = np.nan
        for step, table in zip(self.steps, self.tables, strict=True):
            if table.says_something:
                total += table(step(self.features, known))
        return total

    def words(self) -> str:
        count = f"{len(self.steps):,}"
        what = f"adds up {count} coordinates, each minus its prediction from those before it"
        return with_most(what, self.columns)


def _steps(numbers: FloatArray, is_d1: NDArray[np.bool_]) -> tuple[WhitenedCoordinate, ...]:
    """Return the whitened coordinates; coefficients that may be 0 are left out."""
    count = len(numbers)
    covariance = gram(_centred(numbers, is_d1)) / count
    inverse, new = _decorrelated(covariance)
    # `new` has the variance of each column's residual; where it is 0, `inverse_new` is 0, too. Row
    # i of `precision` is the diagonal of the inverse covariance of columns 0 to i. The variance of
    # a regression coefficient is (variance of the residual of its row) · (entry on the diagonal of
    # the inverse covariance of the earlier columns) / (number of draws).
    inverse_new = np.where(new > 0, 1 / np.where(new > 0, new, 1.0), 0.0)
    precision = np.cumsum(inverse**2 * inverse_new[:, None], axis=0)
    result = []
    for row in np.flatnonzero(new > 0):
        error = np.sqrt(new[row] * precision[row - 1, :row] / count) if row else np.empty(0)
        used = np.flatnonzero(np.abs(inverse[row, :row]) > tuning.DEVIATIONS_BEYOND_LUCK * error)
        result.append(
            WhitenedCoordinate(int(row), tuple((int(i), float(inverse[row, i])) for i in used))
        )
    return tuple(result)


def _centred(numbers: FloatArray, is_d1: NDArray[np.bool_]) -> FloatArray:
    """Return numbers minus the mean of their column over draws of the same input."""
    centred = np.empty_like(numbers)
    arm = (~is_d1).astype(np.intp)
    draws = np.maximum(1, np.bincount(arm, minlength=2))
    # The loop runs over columns, since the entries of a column are adjacent in memory.
    for residual, column in zip(centred.T, numbers.T, strict=True):
        means = np.bincount(arm, weights=column, minlength=2) / draws
        np.subtract(column, means.take(arm), out=residual)
    return centred


def _decorrelated(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Decompose a covariance as L D Lᵀ. Return L⁻¹ and the diagonal of D."""
    # A coordinate that is a linear function of earlier ones gets 0 in D and is not used for later
    # ones.
    remainder, inverse = covariance.copy(), np.eye(len(covariance))
    new = np.zeros(len(covariance))
    for row in range(len(covariance)):
        if remainder[row, row] <= TINY * covariance[row, row]:  # rounding alone is left
            continue
        new[row] = remainder[row, row]
        factor = remainder[row + 1 :, row, None] / new[row]
        remainder[row + 1 :] -= factor * remainder[row]
        inverse[row + 1 :] -= factor * inverse[row]
    return inverse, new
