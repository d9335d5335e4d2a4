"""Smooth counts over ordered levels.

In raw counts, by luck, some part of a flat tail always looks more informative than the rest of it.
So the log-odds of d1 by level are fitted as a sum of ramps: flat, then linear between two levels,
then flat again. Laplace noise gives a single ramp. For bins of a score, a multiple of the mean
score may join the sum. Symbols: docs/method.md §5, *Ordered bins*.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpaudit.levels import tuning
from dpaudit.levels.limits import (
    CACHE_FLOATS,
    MAX_BLAS_PRODUCTS,
    MAX_LEVELS,
    NEWTON_STEPS,
    STEP_TOLERANCE,
    TINY,
)

FloatArray = NDArray[np.float64]
Indices = NDArray[np.intp]


def probability(log_odds: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-log_odds))."""
    return np.asarray(1 / (1 + np.exp(np.minimum(-log_odds, 700.0))))


def softplus(log_odds: FloatArray) -> FloatArray:
    """Return log(1 + e^x) for each entry x. The absolute error is about 2⁻⁵². It takes a tenth of
    the time of `np.logaddexp(0, x)`, which is more exact where the result is near 0."""
    return np.asarray(np.maximum(log_odds, 0.0) + np.log(1 + np.exp(-np.abs(log_odds))))


# A ramp rises from 0 to 1. One of these offsets is added to it: with -½ it rises from -½ to ½, with
# 0 from 0 to 1, with -1 from -1 to 0.
_OFFSETS = np.array([-0.5, 0.0, -1.0])
# A ramp may start or end anywhere within a level. So the level in which it starts or ends is cut
# into this odd number of equal parts, and the ramp is averaged over starts or ends in the middle of
# each part.
_PARTS_OF_LEVEL = 5
# A ramp is averaged with the ramps whose ends are at most this number of levels from its ends.
_NEIGHBOURS = 6
# Largest change of a coefficient in one step of Newton's method.
_MAX_STEP = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Smoothed:
    """Smoothed counts by level.

    draws: (levels, 2), expected draws by level and input. Smoothing does not change their sum at a
        level.
    follows_score: whether a multiple of the score is a term of the log-odds.
    log_likelihood: log-likelihood minus the cost of the terms, in nats.
    """

    draws: FloatArray
    follows_score: bool
    log_likelihood: float


def smoothed(
    counts: NDArray[np.int64] | FloatArray,
    position: FloatArray | None = None,
) -> Smoothed:
    """Smooth counts by level by fitting a sum of ramps to the log-odds of d1. If `position`,
    (levels,), is given, a sum of ramps and a multiple of it is fitted too; the result is the fit
    with the larger log-likelihood minus the cost of its terms."""
    if len(counts) < 2:
        return Smoothed(counts.astype(np.float64), follows_score=False, log_likelihood=-np.inf)
    log_odds, worth, follows = _best_fit(counts, position)
    draws, share = counts.sum(axis=1), probability(log_odds)
    return Smoothed(np.stack([draws * share, draws * (1 - share)], axis=1), follows, worth)


def log_odds(counts: NDArray[np.int64]) -> FloatArray:
    """Return the log-odds of d1 by level, (…, levels), smoothed to a sum of ramps for each array of
    counts.

    counts: (…, levels, 2), the levels in order from d2 to d1.
    """
    levels = counts.shape[-2]
    if levels < 2:
        return np.asarray(np.log((counts[..., 0] + 0.5) / (counts[..., 1] + 0.5)))
    every = counts.reshape(-1, levels, 2)
    result, ramps = np.empty((len(every), levels)), _ramps(levels)
    together = max(1, CACHE_FLOATS // ramps.rise.shape[1])
    for start in range(0, len(every), together):
        part = slice(start, start + together)
        result[part], _ = _Fits(ramps, every[part])()
    return result.reshape(counts.shape[:-1])


def _best_fit(
    counts: NDArray[np.int64] | FloatArray, position: FloatArray | None
) -> tuple[FloatArray, float, bool]:
    """Return the better fit: (log-odds, log-likelihood minus cost, uses `position`)."""
    ramps = _ramps(len(counts))
    fits = [(*_Fits(ramps, counts[None])(), False)]
    if position is not None:
        fits.append((*_Fits(ramps, counts[None], position)(), True))
    (odds,), (worth,), follows = max(fits, key=lambda fit: float(fit[1][0]))
    return odds, float(worth), follows


@dataclass(frozen=True, slots=True, eq=False)
class _Ramps:
    """All ramps. Ramp r is 0 up to level start[r], rises linearly, and is 1 from level end[r] on.

    rise: (levels, ramps), the height of each ramp at each level.
    squared: rise².
    """

    start: NDArray[np.intp]
    end: NDArray[np.intp]
    rise: FloatArray
    squared: FloatArray


@lru_cache(maxsize=128)
def _ramps(levels: int) -> _Ramps:
    if levels < MAX_LEVELS:  # ramps over fewer levels are the ramps that end within these
        full = _ramps(MAX_LEVELS)
        inside = full.end < levels
        rise = np.ascontiguousarray(full.rise[:levels, inside])
        return _Ramps(full.start[inside], full.end[inside], rise, rise**2)
    start, end = np.triu_indices(levels, 1)
    # The middles of the equal parts of a level, relative to the middle of the level: -0.4 to 0.4.
    middles = (np.arange(_PARTS_OF_LEVEL) - _PARTS_OF_LEVEL // 2) / _PARTS_OF_LEVEL
    # A height depends on the distance from the start, from -levels, and on the length, from 1.
    distance, length = np.arange(-levels, levels)[:, None], np.arange(1, levels)
    height = np.zeros((2 * levels, levels - 1))
    for low in middles:
        for high in middles:
            height += np.clip((distance - low) / (length + high - low), 0, 1)
    level = np.arange(levels)[:, None]
    rise = height[level - start + levels, end - start - 1] / _PARTS_OF_LEVEL**2
    return _Ramps(start, end, rise, rise**2)


class _Fits:
    """Logistic regressions of the input on terms, one for each array of counts, fitted together.

    Terms are ramps, a constant and, if given, the position. Each step adds the term that raises the
    likelihood most, so all regressions that still grow have equally many terms.
    """

    def __init__(
        self,
        ramps: _Ramps,
        counts: NDArray[np.int64] | FloatArray,
        position: FloatArray | None = None,
    ) -> None:
        """Prepare a regression for each array of counts; `position` is for a single one only."""
        self._ramps = ramps
        self._d1_draws = counts[..., 0].astype(np.float64)
        self._draws = counts.sum(axis=2).astype(np.float64)
        fits, levels = self._draws.shape
        self._plain_terms = np.ones((1, levels))
        if position is not None:
            along = _centred(position, self._d1_draws[0], self._draws[0])
            usual = np.sqrt((self._draws[0] @ along**2) / max(1.0, self._draws.sum()))
            self._plain_terms = np.stack([along / max(float(usual), TINY), self._plain_terms[0]])
        # State of the regressions that may still get terms. `_growing`: their indices. `_terms`:
        # the value of each term at each level. `_heights`: the coefficients. `_chosen`: for each
        # term, the index of its ramp (flat, then linear, then flat; -1 if the term is no ramp) and
        # the offset added to the ramp.
        self._growing = np.arange(fits)
        self._terms, self._heights = np.empty((fits, levels, 0)), np.empty((fits, 0))
        self._chosen = np.empty((fits, 0, 2))

    def __call__(self) -> tuple[FloatArray, FloatArray]:
        """Return log-odds of d1, (fits, levels), and log-likelihood minus cost of each fit."""
        result, worth = np.zeros_like(self._draws), np.zeros(len(self._draws))
        while len(self._growing):
            fitted = _products(self._terms, self._heights)
            growing, parts = self._growing, (self._terms, self._heights, self._chosen)
            grows = self._grow(fitted)
            for index in np.flatnonzero(~grows):
                fit, (terms, heights, chosen) = growing[index], (part[index] for part in parts)
                d1_draws, draws = self._d1_draws[fit], self._draws[fit]
                result[fit] = _averaged(self._ramps, d1_draws, draws, chosen, terms, heights)
                costs = 1 + tuning.GAIN_OF_CHOICE * (chosen[:, 0] >= 0)
                worth[fit] = _likelihoods(d1_draws, draws, fitted[index]) - costs.sum()
        return result, worth

    def _grow(self, fitted: FloatArray) -> NDArray[np.bool_]:
        """Add to each regression the term that raises its likelihood most; return which grew."""
        d1_draws, draws = self._d1_draws[self._growing], self._draws[self._growing]
        (ramp, offset, by_ramp), (other_term, by_other) = self._scores(d1_draws, draws, fitted)
        best = np.full(len(ramp), -np.inf)
        heights = np.zeros((len(ramp), self._heights.shape[1] + 1))
        term, chosen = np.ones_like(fitted), np.tile([-1.0, 0.0], (len(ramp), 1))
        is_enough = np.zeros(len(ramp), dtype=bool)
        rises = self._ramps.rise[:, ramp].T + offset[:, None]
        # The first pass tries ramps: if a ramp and another term gain equally much after their
        # costs, the ramp stays. A score statistic is about twice the gain in log-likelihood, so a
        # term is not fitted if its statistic is at most the least gain (`GAIN_OF_RAMP`).
        for score, tried, cost, names in (
            (by_ramp, rises, tuning.GAIN_OF_CHOICE, np.stack([ramp, offset], axis=1)),
            (by_other, self._plain_terms[other_term], 0.0, chosen.copy()),
        ):
            some = np.flatnonzero(score > tuning.GAIN_OF_RAMP)
            terms = np.concatenate([self._terms[some], tried[some][:, :, None]], axis=2)
            result = _maximised(d1_draws[some], draws[some], terms, self._heights[some])
            gain = _likelihoods(d1_draws[some], draws[some], _products(terms, result))
            gain -= _likelihoods(d1_draws[some], draws[some], fitted[some])
            better = gain - cost > best[some]
            here = some[better]
            best[here], heights[here] = (gain - cost)[better], result[better]
            term[here], chosen[here] = tried[here], names[here]
            is_enough[here] = gain[better] >= tuning.GAIN_OF_RAMP
        self._growing, self._heights = self._growing[is_enough], heights[is_enough]
        parts = [self._terms[is_enough], term[is_enough][:, :, None]]
        self._terms = np.concatenate(parts, axis=2)
        parts = [self._chosen[is_enough], chosen[is_enough][:, None]]
        self._chosen = np.concatenate(parts, axis=1)
        return is_enough

    def _scores(
        self, d1_draws: FloatArray, draws: FloatArray, fitted: FloatArray
    ) -> tuple[tuple[Indices, FloatArray, FloatArray], tuple[Indices, FloatArray]]:
        """Return the best ramp, and the best other term, of each fit by the score statistic."""
        share = probability(fitted)
        left, weight = d1_draws - draws * share, draws * share * (1 - share) + TINY
        rise, total = self._ramps.rise, left.sum(axis=1)
        slope, bend = _with_ramps(left, rise), _with_ramps(weight, self._ramps.squared)
        along, mass = _with_ramps(weight, rise), weight.sum(axis=1)
        plain_terms = self._plain_terms
        other_bend = (weight[:, None] * plain_terms**2).sum(axis=2)
        if self._terms.shape[2]:
            weighted = weight[:, :, None] * self._terms
            information = np.einsum("blj,blk->bjk", self._terms, weighted)
            inverse = np.linalg.inv(information + TINY * np.eye(weighted.shape[2]))
            parts = [_with_ramps(part, rise) for part in np.moveaxis(weighted, 2, 0)]
            shared = np.stack(parts, axis=1)
            apart, term_mass = np.einsum("bjk,bkr->bjr", inverse, shared), weighted.sum(axis=1)
            bend -= (shared * apart).sum(axis=1)
            along -= np.einsum("bj,bjr->br", term_mass, apart)
            mass -= np.einsum("bj,bjk,bk->b", term_mass, inverse, term_mass)
            of_others = (weighted[:, None] * plain_terms[:, :, None]).sum(axis=2)
            other_bend -= np.einsum("boj,bjk,bok->bo", of_others, inverse, of_others)
        scores = np.empty((len(left), len(_OFFSETS), rise.shape[1]))
        for row, offset in enumerate(_OFFSETS):
            rising = np.maximum(slope + offset * total[:, None], 0.0)
            spread = bend + 2 * offset * along + offset**2 * mass[:, None]
            scores[:, row] = _statistic(rising, spread)
        flat, every = scores.reshape(len(left), -1), np.arange(len(left))
        best = flat.argmax(axis=1)
        row, ramp = np.divmod(best, rise.shape[1])
        other_scores = _statistic((left[:, None] * plain_terms).sum(axis=2), other_bend)
        other_term = other_scores.argmax(axis=1)
        return (ramp, _OFFSETS[row], flat[every, best]), (
            other_term,
            other_scores[every, other_term],
        )


def _statistic(slope: FloatArray, bend: FloatArray) -> FloatArray:
    """Return Rao's score statistic of new terms: about twice the gain in log-likelihood."""
    return np.asarray(slope**2 / np.maximum(bend, 1e-6) * (bend > 1e-6))


def _with_ramps(left: FloatArray, rise: FloatArray) -> FloatArray:
    """Return left · rise, in pieces, since BLAS starts threads for a large product."""
    rows = max(1, MAX_BLAS_PRODUCTS // rise.size)
    if len(left) <= rows:
        return left @ rise
    pieces = [left[start : start + rows] @ rise for start in range(0, len(left), rows)]
    return np.concatenate(pieces)


def _products(terms: FloatArray, heights: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("blk,bk->bl", terms, heights))


def _likelihoods(d1_draws: FloatArray, draws: FloatArray, fitted: FloatArray) -> FloatArray:
    return np.asarray((d1_draws * fitted - draws * softplus(fitted)).sum(axis=-1))


def _maximised(
    d1_draws: FloatArray, draws: FloatArray, terms: FloatArray, heights: FloatArray
) -> FloatArray:
    """Return the coefficients with the largest likelihood, (fits, terms), by Newton's method."""
    result = np.column_stack([heights, np.zeros(len(heights))])
    unfinished = np.arange(len(result))
    for _ in range(NEWTON_STEPS):
        if not len(unfinished):
            break
        design = terms[unfinished]
        share = probability(_products(design, result[unfinished]))
        weight = draws[unfinished] * share * (1 - share) + TINY
        bend = np.einsum("blj,blk->bjk", design, weight[:, :, None] * design)
        slope = np.einsum("blk,bl->bk", design, d1_draws[unfinished] - draws[unfinished] * share)
        step = np.linalg.solve(bend + 1e-6 * np.eye(design.shape[2]), slope[:, :, None])[:, :, 0]
        result[unfinished] += np.clip(step, -_MAX_STEP, _MAX_STEP)
        unfinished = unfinished[np.abs(step).max(axis=1) >= STEP_TOLERANCE]
    return result


def _averaged(
    ramps: _Ramps,
    d1_draws: FloatArray,
    draws: FloatArray,
    chosen: FloatArray,
    terms: FloatArray,
    heights: FloatArray,
) -> FloatArray:
    """Return log-odds, (levels,), after each ramp is averaged with ramps of nearby ends."""
    fitted = terms @ heights
    total = fitted.copy()
    for index in np.flatnonzero(chosen[:, 0] >= 0):
        ramp, offset = int(chosen[index, 0]), chosen[index, 1]
        height, rise = heights[index], terms[:, index]
        near = (np.abs(ramps.start - ramps.start[ramp]) <= _NEIGHBOURS) & (
            np.abs(ramps.end - ramps.end[ramp]) <= _NEIGHBOURS
        )
        nearby = ramps.rise[:, near] + offset
        fits = (fitted - height * rise)[:, None] + height * nearby
        likelihood = d1_draws @ fits - draws @ softplus(fits)
        weight = np.exp(likelihood - likelihood.max())
        # Ramps near the chosen ramp are averaged with their likelihoods as weights. Likelihoods
        # below a thousandth of the largest count as 0. So the mean is exactly flat where the likely
        # ramps are flat.
        weight[weight < 1e-3] = 0.0
        total += height * (nearby @ (weight / weight.sum()) - rise)
    return np.asarray(total)


def _centred(position: FloatArray, d1_draws: FloatArray, draws: FloatArray) -> FloatArray:
    """Add a constant to `position`, so that it predicts the observed number of draws of d1."""
    for _ in range(NEWTON_STEPS):
        share = probability(position)
        step = float((d1_draws - draws * share).sum() / max(TINY, draws @ (share * (1 - share))))
        position = position + np.clip(step, -_MAX_STEP, _MAX_STEP)
        if abs(step) < STEP_TOLERANCE:
            break
    return position
