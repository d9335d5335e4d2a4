"""Scores, whose bins are the levels of candidates.

A scorer in `attacks/` returns a `Scored`; `candidates.by_score` cuts its final score into levels.
Further functions cross-fit a slow learner, put the scores of several fits on one scale, and name
the columns that a score depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import LevelArray
from dpaudit.levels.cells import NO_OUTPUT
from dpaudit.levels.digitiser import Digitiser
from dpaudit.levels.level_map import FloatArray, IntArray, LevelMap, tail_refined
from dpaudit.levels.limits import (
    MAX_LEVELS,
    MAX_NAMED_COLUMNS,
    MAX_SCORE,
    MIN_DRAWS_TO_RANK,
)
from dpaudit.outcomes import KIND, Outcomes
from dpaudit.stats.order import mid_ranks, stable_order

# A slow learner is cross-fitted with this number of parts of the draws: each part is scored by a
# fit to the other parts. (With enough draws, there are two fits to separate draws instead, and each
# scores the draws that the other was fitted to.)
_CROSS_FIT_PARTS = 3

Fit = TypeVar("Fit")


class Score(Protocol):
    """A fixed function from outcomes to scores; it can be pickled.

    columns: (name, share) of the columns that it depends on most; shares add up to at most 1.
    """

    @property
    def columns(self) -> tuple[tuple[str, float], ...]: ...

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        """Return the score of every outcome, which depends on no other outcome: (size,)."""
        ...

    def words(self) -> str:
        """Return the words that follow "the score" in a report, such as `adds up 5 coordinates`."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A score of the selection draws, which is fitted to all draws only when it is needed.

    attack: name of the scorer, as reports show it.
    held_out: (size,), the held-out score of every draw.
    final_score: returns the score fitted to all draws, the final score.
    halves: (2, size), the scores of all draws by each of two fits, to halves of the draws; None:
        unknown.
    edges: edges between levels.
    """

    attack: str
    held_out: FloatArray
    final_score: Callable[[], Score]
    halves: FloatArray | None
    edges: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", _edges(self.held_out))

    @property
    def levels(self) -> IntArray:
        """The level of every draw: (size,). A draw without a score has the last level,
        len(edges) + 1."""
        return _levels_of(self.held_out, _bins(self.edges))

    def level_map(self) -> ScoreLevels:
        """Return the level map whose levels are the bins of the final score."""
        return ScoreLevels.cut(self.final_score(), self.edges)

    def position(self, draws: IntArray) -> FloatArray | None:
        """Return the mean score at every level but the last, (levels - 1,); None without `halves`.

        The fit to one half sorts draws into levels, and the fit to the other half scores them; then
        the reverse. So a score that is only noise has about the same mean at every level.

        draws: (levels,), number of draws at each level.
        """
        if self.halves is None:
            return None
        level = np.repeat(np.arange(len(draws)), draws)
        first, second = map(stable_order, self.halves)
        means = [
            _means(level, half[order], draws)
            for order, half in ((first, self.halves[1]), (second, self.halves[0]))
        ]
        return np.asarray(np.mean(means, axis=0))[:-1]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreLevels(LevelMap):
    """Maps an outcome to the bin of its score; an outcome without a score gets the last level."""

    score: Score
    digitise: Digitiser

    @classmethod
    def cut(cls, score: Score, edges: FloatArray) -> ScoreLevels:
        return cls(score, _bins(edges))

    @property
    def levels(self) -> int:
        return len(self.digitise.edges) + 2

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        return _levels_of(self.score(outcomes), self.digitise).astype(np.intp)

    def words(self, chosen: NDArray[np.bool_]) -> str:
        edges = [-np.inf, *self.digitise.edges.tolist(), np.inf]
        inside = np.flatnonzero(chosen[:-1])
        if len(inside) == 0:
            return "output has no score" if chosen[-1] else NO_OUTPUT
        low, high = edges[inside[0]], edges[inside[-1] + 1]
        bounds = f"≥ {low:.4g}" if high == np.inf else f"< {high:.4g}"
        if low == -np.inf and high == np.inf:
            bounds = "is any number"
        return f"score {bounds}, where the score {self.score.words()}"


def shares(names: Sequence[str], weights: Sequence[float]) -> tuple[tuple[str, float], ...]:
    """Return (column, share of the total weight) for each column with a weight above 0, the largest
    share first. The weight of a column of types is added to that of the column whose entries it
    describes."""
    total: dict[str, float] = {}
    for name, weight in zip(names, weights, strict=True):
        plain = name.removeprefix(KIND)
        total[plain] = total.get(plain, 0.0) + float(weight)
    every = max(sum(total.values()), 1e-300)
    result = [(name, weight / every) for name, weight in total.items() if weight > 0]
    return tuple(sorted(result, key=lambda column: -column[1]))


def most(columns: Sequence[tuple[str, float]]) -> tuple[str, ...]:
    """Return the names of the columns that reports name for a score: at most four, with more than a
    quarter of the largest share. Return none if their shares add up to at most a tenth.

    columns: (name, share), the largest share first.
    """
    largest = columns[0][1] if columns else 0.0
    named = [column for column in columns[:MAX_NAMED_COLUMNS] if column[1] > largest / 4]
    together = sum(share for _, share in named)
    return tuple(name for name, _ in named) if together > 0.1 else ()


def with_most(what: str, columns: Sequence[tuple[str, float]]) -> str:
    """Return `what`, the description of a score, followed by the columns that the score depends on
    most."""
    named = most(columns)
    return f"{what}, most of all {', '.join(named)}" if named else what


def aligned(held_out: FloatArray, fold: IntArray, kept: FloatArray) -> FloatArray:
    """Return held-out scores on the scale of the fit to all draws: (size,).

    Each fit has a scale of its own. So each held-out score is replaced by the score of the same
    rank in the fit to all draws. Inputs are not used. With fewer than 2,000 draws ranks are
    imprecise, and the scores are returned unchanged.

    held_out, kept: (size,), the held-out scores, and the scores by the fit to all draws.
    fold: (size,), the fold of each draw.
    """
    if len(held_out) < MIN_DRAWS_TO_RANK:
        return held_out
    # A draw whose score is NaN has no rank and keeps NaN.
    scale, result = np.sort(kept[~np.isnan(kept)]), np.full_like(held_out, np.nan)
    for number in range(int(fold.max()) + 1 if len(scale) else 0):
        inside = (fold == number) & ~np.isnan(held_out)
        scores = held_out[inside]
        index = ((mid_ranks(scores) + 0.5) / len(scores) * len(scale)).astype(np.intp)
        result[inside] = scale[np.minimum(index, len(scale) - 1)]
    return result


def _bins(edges: FloatArray) -> Digitiser:
    return Digitiser(edges, np.arange(len(edges) + 1, dtype=np.intp))


def _levels_of(scores: FloatArray, bins: Digitiser) -> IntArray:
    """Return the number of edges ≤ each score. NaN gets the level after the last one."""
    gaps = np.isnan(scores)
    if not gaps.any():
        return np.asarray(bins(scores))
    return np.where(gaps, len(bins.values), bins(np.where(gaps, 0.0, scores)))


def _quantiles(ordered: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the entry at index share · (size - 1), rounded down, for each share."""
    return ordered[np.floor(shares * (len(ordered) - 1)).astype(np.intp)]


def cross_fitted(
    size: int,
    most_rows: int,
    fit: Callable[[IntArray], Fit],
    score: Callable[[Fit, IntArray], FloatArray],
) -> tuple[FloatArray, Fit, FloatArray | None]:
    """Cross-fit a slow learner. Return (held_out, fit, halves): the held-out score of every draw,
    (size,); a fit to the first `most_rows` draws; and `halves` as in `Scored`.

    With at least 2 · most_rows draws, `held_out` is taken from the two fits of `halves`. With
    fewer, `halves` is None, and each third of the draws is scored by a fit to the other two thirds.

    most_rows: largest number of draws of one fit.
    fit: called with row numbers; returns a fit to these draws.
    score: called with a fit and row numbers; returns the scores of these draws.
    """
    every = np.arange(size)
    if size >= 2 * most_rows:
        final, second = fit(every[:most_rows]), fit(every[most_rows : 2 * most_rows])
        halves = np.stack([score(final, every), score(second, every)])
        return np.where(every < most_rows, halves[1], halves[0]), final, halves
    held_out = np.empty(size)
    for part in range(_CROSS_FIT_PARTS):
        inside = every % _CROSS_FIT_PARTS == part
        held_out[inside] = score(fit(every[~inside][:most_rows]), every[inside])
    return held_out, fit(every[:most_rows]), None


def _means(levels: IntArray, scores: FloatArray, draws: IntArray) -> FloatArray:
    known = np.nan_to_num(np.clip(scores, -MAX_SCORE, MAX_SCORE))
    total = np.bincount(levels, weights=known, minlength=len(draws))
    occupied = np.flatnonzero(draws)
    return np.interp(np.arange(len(draws)), occupied, total[occupied] / draws[occupied])


def _edges(scores: FloatArray) -> FloatArray:
    known = scores[~np.isnan(scores)]
    if len(known) == 0:
        return np.empty(0)
    edges = _quantiles(np.sort(known), tail_refined(4 / len(known)))
    # An additional edge makes the smallest score a level of its own; the largest score is one
    # already.
    edges = np.unique(np.append(edges, np.nextafter(known.min(), np.inf)))[-(MAX_LEVELS - 1) :]
    return np.asarray(edges[(edges > known.min()) & (edges <= known.max())], dtype=np.float64)
