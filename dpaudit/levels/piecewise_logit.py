"""Smoothing of counts over ordered levels (bins of outcomes).

In raw counts some part of a flat tail always looks more telling than the rest of it. So the
log-odds of d1 by level are fitted as a sum of ramps. A ramp is flat, then linear between two
levels, then flat again; Laplace noise gives a single ramp. If the fit is better, a multiple of a
score is one of the terms. Callers are `candidates.py` (`smoothed`) and the sums over columns in
`attacks/additive.py` (`log_odds_of_each`). Symbols: docs/method.md §5, *Ordered bins*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpaudit.levels import tuning
from dpaudit.levels.limits import CACHED, TINY

FloatArray = NDArray[np.float64]

# Largest exponent whose exponential is finite.
_LARGEST = 700.0


def probability(log_odds: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-log_odds))."""
    return np.asarray(1 / (1 + np.exp(np.minimum(-log_odds, _LARGEST))))


def softplus(log_odds: FloatArray) -> FloatArray:
    """Return log(1 + e^x) with an absolute error of about 2⁻⁵². It takes a tenth of the time of
    `np.logaddexp(0, x)`, which is more exact where the result is near 0."""
    return np.asarray(np.maximum(log_odds, 0.0) + np.log(1 + np.exp(-np.abs(log_odds))))


# Largest number of levels, except of single values and rare outputs.
LEVELS = 64
# Numbers of levels for which all ramps are made. The ramps over fewer levels are selected from
# these.
_MADE = (16, 32, LEVELS)
# Offset of a ramp that rises from -½ to ½, from 0 to 1, or from -1 to 0.
_OFFSETS = np.array([-0.5, 0.0, -1.0])
# Positions of either end of a ramp within its level, in levels, that a ramp is averaged over.
_BETWEEN = (-0.4, -0.2, 0.0, 0.2, 0.4)
# The ends of a ramp are averaged over this many levels on either side of the best ends.
_NEARBY = 6
# Ends whose likelihood is below this share of the largest are left out.
_UNLIKELY = 1e-3
# Largest number of multiplications in one product: from 2^18 on OpenBLAS starts threads.
_ONE_THREAD = 260_000
# Largest number of Newton steps of a fit.
_NEWTON_STEPS = 12
# Longest Newton step of a coefficient.
_LONGEST_STEP = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Smoothed:
    """Smoothed counts by level.

    draws: (levels, 2), expected draws of d1 and of d2; the sum at each level is the number of draws
        there.
    follows: whether the fit has the score as a term, so that log-odds may be a multiple of the
        score.
    worth: log-likelihood minus the cost of the terms, in nats.
    """

    draws: FloatArray
    follows: bool
    worth: float


def smoothed(
    counts: NDArray[np.int64] | FloatArray,
    position: FloatArray | None = None,
    place: FloatArray | None = None,
) -> Smoothed:
    """Return counts smoothed over levels; the arguments are those of `log_odds`."""
    if len(counts) < 2:
        return Smoothed(counts.astype(np.float64), follows=False, worth=-np.inf)
    fit = _best(counts, position, place)
    draws, share = counts.sum(axis=1), probability(fit.averaged())
    both = np.stack([draws * share, draws * (1 - share)], axis=1)
    return Smoothed(both, fit.follows, fit.worth)


def log_odds(
    counts: NDArray[np.int64],
    position: FloatArray | None = None,
    place: FloatArray | None = None,
) -> FloatArray:
    """Return the smoothed log-odds of d1 at every level: (levels,).

    counts: (levels, 2), ordered from d2 to d1.
    position: (levels,), a quantity, such as a score, that log-odds may be a multiple of; None: no
        such quantity.
    place: (levels,), rising, the coordinate in which ramps are linear; None: the number of the
        level.

    Ramps are added while each raises the likelihood enough. Then each ramp is averaged over its
    possible ends, so that levels next to a flat tail are not taken for a part of it.
    """
    if len(counts) < 2:
        ahead, behind = counts.sum(axis=0) + 0.5
        return np.full(len(counts), np.log(ahead / behind))
    return _best(counts, position, place).averaged()


def log_odds_of_each(counts: NDArray[np.int64]) -> FloatArray:
    """Return `log_odds` for several arrays of counts, (…, levels), many times faster than one by
    one.

    counts: (…, levels, 2).
    """
    levels = counts.shape[-2]
    every = counts.reshape(-1, levels, 2)
    if levels < 2:
        return np.array([log_odds(one) for one in every]).reshape(counts.shape[:-1])
    result, ramps = np.empty((len(every), levels)), _ramps(levels)
    together = max(1, CACHED // ramps.rise.shape[1])
    for start in range(0, len(every), together):
        result[start : start + together] = _Fits(ramps, every[start : start + together])()
    return result.reshape(counts.shape[:-1])


def _best(
    counts: NDArray[np.int64] | FloatArray, position: FloatArray | None, place: FloatArray | None
) -> _Fit:
    """Return the better fit of log-odds by level: a sum of ramps (flat, then linear, then flat
    again), or ramps and a multiple of the position. Better is the larger log-likelihood after
    costs."""
    ramps = _ramps(len(counts)) if place is None else _ramps_over(place)
    fits = [_grown(counts, ramps, None)]
    if position is not None:
        fits.append(_grown(counts, ramps, position))
    return max(fits, key=lambda fit: fit.worth)


def _grown(
    counts: NDArray[np.int64] | FloatArray, ramps: _Ramps, position: FloatArray | None
) -> _Fit:
    draws = counts.sum(axis=1).astype(np.float64)
    fit = _Fit(ramps, counts[:, 0].astype(np.float64), draws, position)
    while fit.grow():
        pass
    return fit


@dataclass(frozen=True, slots=True, eq=False)
class _Ramps:
    """All ramps over some levels. Ramp r is 0 up to level start[r], rises linearly, and is 1 from
    level end[r] on.

    rise: (levels, ramps), the height of each ramp at each level.
    squared: rise².
    """

    start: NDArray[np.intp]
    end: NDArray[np.intp]
    rise: FloatArray
    squared: FloatArray


@lru_cache(maxsize=128)
def _ramps(levels: int) -> _Ramps:
    known = next((size for size in _MADE if size >= levels), levels)
    if levels < known:  # ramps over fewer levels are the ramps that end within these
        most = _ramps(known)
        inside = most.end < levels
        rise = np.ascontiguousarray(most.rise[:levels, inside])
        return _Ramps(most.start[inside], most.end[inside], rise, rise**2)
    return _ramps_over(np.arange(levels, dtype=np.float64))


def _ramps_over(place: FloatArray) -> _Ramps:
    """Return all ramps (flat, then linear, then flat again) that are linear in the place of a
    level.

    place: (levels,), the coordinate of each level, finite and strictly rising.
    """
    start, end = np.triu_indices(len(place), 1)
    # A ramp is 0 at levels before its start and 1 beyond its end, wherever the ends are within
    # their levels. The heights between are computed for all ramps in one array, one ramp after the
    # other.
    rise = (np.arange(len(place))[:, None] > end).astype(np.float64)
    lengths = end - start + 1
    ramp = np.repeat(np.arange(len(start)), lengths)
    level = np.arange(len(ramp)) - np.repeat(np.cumsum(lengths) - lengths - start, lengths)
    starts, ends = ([_between(place, at + off)[ramp] for off in _BETWEEN] for at in (start, end))
    total = np.zeros(len(ramp))
    for low in starts:
        beyond = place[level] - low
        for high in ends:
            total += np.clip(beyond / (high - low), 0, 1)
    rise[level, ramp] = total / len(_BETWEEN) ** 2
    return _Ramps(start, end, rise, rise**2)


def _between(place: FloatArray, level: NDArray[np.floating]) -> FloatArray:
    """Return the coordinate at a fractional level number, by linear interpolation."""
    whole = np.clip(np.floor(level), 0, len(place) - 2).astype(np.intp)
    part = level - whole
    return np.asarray(place[whole] * (1 - part) + place[whole + 1] * part)


@dataclass(frozen=True, slots=True, eq=False)
class _Unexplained:
    """What the terms of a logistic regression leave unexplained, by level.

    draws: (levels,), draws of d1 minus their expectation.
    variance: (levels,), variance of the draws of d1.
    terms: the terms times the variance, and the inverse of their information matrix; None without
        terms.
    """

    draws: FloatArray
    variance: FloatArray
    terms: tuple[FloatArray, FloatArray] | None


class _Fit:
    """A logistic regression of the input on functions of the level (terms), which are added one by
    one: ramps, a constant and the position.

    ramps: the ramps (flat, then linear, then flat again) to choose from.
    ahead, draws: (levels,), draws of d1, and of both inputs.
    position: (levels,), a quantity that may be a term; None: ramps and a constant only.
    """

    def __init__(
        self, ramps: _Ramps, ahead: FloatArray, draws: FloatArray, position: FloatArray | None
    ) -> None:
        self._ramps, self._ahead, self._draws = ramps, ahead, draws
        # Terms other than ramps: a constant, and the position, which need not have a positive
        # coefficient.
        self._others = np.ones((len(draws), 1))
        if position is not None:
            along = _centred(position, ahead, draws)
            usual = np.sqrt((draws @ along**2) / max(1.0, draws.sum()))
            self._others = np.column_stack([along / max(float(usual), TINY), self._others])
        self.follows = position is not None
        # For each term the index of its ramp and the offset; no index for other terms.
        self.chosen: list[tuple[int | None, float]] = []
        self._terms = np.empty((len(draws), 0))
        self._heights = np.empty(0)
        self._fitted = np.zeros(len(draws))

    def grow(self) -> bool:
        """Add the term that raises the likelihood most and return True. Return False, and add
        nothing, if no term raises the likelihood enough."""
        # The score statistic is about twice the gain, so a term with a much smaller statistic is
        # not fitted.
        left = self._unexplained()
        tried = (self._best_ramp(left), self._best_other(left))
        result = [one for one in tried if one[-1] > tuning.GAIN_OF_RAMP]
        if not result:
            return False
        tries = [(*self._with(term), ramp, offset, term) for ramp, offset, term, _ in result]
        best = max(tries, key=lambda one: one[0] - tuning.GAIN_OF_CHOICE * (one[2] is not None))
        gain, heights, ramp, offset, term = best
        if gain < tuning.GAIN_OF_RAMP:
            return False
        self.chosen.append((ramp, offset))
        self._terms, self._heights = np.column_stack([self._terms, term]), heights
        self._fitted = self._terms @ heights
        return True

    def _with(self, term: FloatArray) -> tuple[float, FloatArray]:
        """Return the log-likelihood that a further term of the regression gains, in nats, and the
        coefficients of all terms.

        term: (levels,), its value at each level.
        """
        terms = np.column_stack([self._terms, term])
        heights = self._maximised(terms, np.append(self._heights, 0.0))
        return self._likelihood(terms @ heights) - self._likelihood(self._fitted), heights

    @property
    def worth(self) -> float:
        """Log-likelihood minus the cost of the terms, in nats."""
        cost = sum(1.0 + tuning.GAIN_OF_CHOICE * (ramp is not None) for ramp, _ in self.chosen)
        return self._likelihood(self._fitted) - cost

    def averaged(self) -> FloatArray:
        """Return the log-odds of d1 by level, (levels,). The level where a ramp starts, and where
        it ends, is averaged over, weighted by likelihood."""
        both = self._terms, self._heights
        return _averaged(self._ramps, self._ahead, self._draws, self.chosen, *both)

    def _best_ramp(self, unexplained: _Unexplained) -> tuple[int | None, float, FloatArray, float]:
        """Return the rising ramp with the largest score statistic, given the terms so far, as
        (index, offset, height by level, statistic)."""
        left, weight = unexplained.draws, unexplained.variance
        rise, offsets = self._ramps.rise, _OFFSETS[:, None]
        slope = left @ rise + offsets * left.sum()
        bend = (
            weight @ self._ramps.squared + 2 * offsets * (weight @ rise) + offsets**2 * weight.sum()
        )
        if unexplained.terms is not None:
            weighted, inverse = unexplained.terms
            shared = (rise.T @ weighted)[None] + offsets[:, :, None] * weighted.sum(axis=0)
            bend -= ((shared @ inverse) * shared).sum(axis=2)
        score = np.where(slope > 0, slope**2, 0.0) / np.maximum(bend, 1e-6) * (bend > 1e-6)
        place, ramp = divmod(int(np.argmax(score)), score.shape[1])
        offset = float(_OFFSETS[place])
        return ramp, offset, rise[:, ramp] + offset, float(score[place, ramp])

    def _best_other(self, unexplained: _Unexplained) -> tuple[int | None, float, FloatArray, float]:
        """Return the constant or the position, whichever has the larger score statistic given the
        terms so far, as (None, 0.0, values by level, statistic)."""
        left, weight = unexplained.draws, unexplained.variance
        slope = left @ self._others
        bend = weight @ self._others**2
        if unexplained.terms is not None:
            weighted, inverse = unexplained.terms
            shared = self._others.T @ weighted
            bend -= np.einsum("ki,ij,kj->k", shared, inverse, shared)
        score = slope**2 / np.maximum(bend, 1e-6) * (bend > 1e-6)
        best = int(np.argmax(score))
        return None, 0.0, self._others[:, best], float(score[best])

    def _unexplained(self) -> _Unexplained:
        """Return the residuals of the logistic regression on the terms chosen so far."""
        share = probability(self._fitted)
        variance = self._draws * share * (1 - share) + TINY
        terms = self._weighted(variance) if self.chosen else None
        return _Unexplained(self._ahead - self._draws * share, variance, terms)

    def _weighted(self, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the terms times a weight, (levels, terms), and the inverse of their information
        matrix.

        weight: (levels,), variance of the draws of d1.
        """
        weighted = weight[:, None] * self._terms
        information = self._terms.T @ weighted + TINY * np.eye(len(self.chosen))
        return weighted, np.asarray(np.linalg.inv(information), dtype=np.float64)

    def _maximised(self, terms: FloatArray, heights: FloatArray) -> FloatArray:
        """Return the coefficients of terms with the largest likelihood, by Newton's method.

        heights: the coefficients to start from.
        """
        for _ in range(_NEWTON_STEPS):
            share = probability(terms @ heights)
            weight = self._draws * share * (1 - share) + TINY
            bend = terms.T @ (weight[:, None] * terms) + 1e-6 * np.eye(len(heights))
            step = np.linalg.solve(bend, terms.T @ (self._ahead - self._draws * share))
            heights = heights + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
            if np.abs(step).max() < 1e-4:
                break
        return heights

    def _likelihood(self, fitted: FloatArray) -> float:
        return float(self._ahead @ fitted - self._draws @ softplus(fitted))


class _Fits:
    """Logistic regressions on ramps for several arrays of counts, made together; call once.

    All regressions that still grow have equally many terms, which are slices of one array.
    """

    def __init__(self, ramps: _Ramps, counts: NDArray[np.int64]) -> None:
        self._ramps = ramps
        self._ahead = counts[..., 0].astype(np.float64)
        self._draws = counts.sum(axis=2).astype(np.float64)
        many, levels = self._draws.shape
        # State of the fits that still grow: their indices, then terms, coefficients and chosen
        # ramps as in `_Fit`.
        self._growing = np.arange(many)
        self._terms, self._heights = np.empty((many, levels, 0)), np.empty((many, 0))
        self._chosen = np.empty((many, 0, 2))

    def __call__(self) -> FloatArray:
        """Return the log-odds of d1 by level, averaged over the ends of ramps: (number of fits,
        levels)."""
        result = np.zeros_like(self._draws)
        while len(self._growing):
            fitted = _products(self._terms, self._heights)
            before, parts = self._growing, (self._terms, self._heights, self._chosen)
            grows = self._grow(fitted)
            for place in np.flatnonzero(~grows):
                one, (terms, heights, chosen) = before[place], (part[place] for part in parts)
                known = [(int(ramp) if ramp >= 0 else None, float(off)) for ramp, off in chosen]
                result[one] = _averaged(
                    self._ramps, self._ahead[one], self._draws[one], known, terms, heights
                )
        return np.asarray(result)

    def _grow(self, fitted: FloatArray) -> NDArray[np.bool_]:
        """Add to each regression the term that raises its likelihood most; drop the regressions
        that no term raises enough. Return which ones grew: (growing fits,).

        fitted: (growing fits, levels), the present log-odds.
        """
        ahead, draws = self._ahead[self._growing], self._draws[self._growing]
        (ramp, offset, by_ramp), by_other = self._scores(ahead, draws, fitted)
        none, zero = np.full(len(ramp), -1), np.zeros(len(ramp))
        best = np.full(len(ramp), -np.inf)
        heights = np.zeros((len(ramp), self._heights.shape[1] + 1))
        term = np.ones_like(fitted)
        chosen = np.stack([none, zero], axis=1).astype(np.float64)
        is_enough = np.zeros(len(ramp), dtype=bool)
        rises = self._ramps.rise[:, ramp].T + offset[:, None]
        # Ramps are tried first, so a ramp is chosen if it gains as much as a constant.
        for score, tried, costs in ((by_ramp, rises, tuning.GAIN_OF_CHOICE), (by_other, None, 0.0)):
            some = np.flatnonzero(score > tuning.GAIN_OF_RAMP)
            own = np.ones((len(some), fitted.shape[1])) if tried is None else tried[some]
            terms = np.concatenate([self._terms[some], own[:, :, None]], axis=2)
            result = _maximised_each(ahead[some], draws[some], terms, self._heights[some])
            gain = _likelihoods(ahead[some], draws[some], _products(terms, result))
            gain -= _likelihoods(ahead[some], draws[some], fitted[some])
            better = gain - costs > best[some]
            here = some[better]
            best[here], heights[here], term[here] = (
                (gain - costs)[better],
                result[better],
                own[better],
            )
            is_enough[here] = gain[better] >= tuning.GAIN_OF_RAMP
            chosen[here] = (
                [-1.0, 0.0] if tried is None else np.stack([ramp[here], offset[here]], axis=1)
            )
        self._growing, self._heights = self._growing[is_enough], heights[is_enough]
        kept = self._terms[is_enough], term[is_enough][:, :, None]
        self._terms = np.concatenate(kept, axis=2)
        kept = self._chosen[is_enough], chosen[is_enough][:, None]
        self._chosen = np.concatenate(kept, axis=1)
        return is_enough

    def _scores(
        self, ahead: FloatArray, draws: FloatArray, fitted: FloatArray
    ) -> tuple[tuple[NDArray[np.intp], FloatArray, FloatArray], FloatArray]:
        """Return for each fit (index of the ramp with the largest score statistic, its offset, the
        statistic), and the statistic of a constant.

        ahead, draws, fitted: (fits, levels), draws of d1, draws of both inputs, and present
            log-odds.
        """
        share = probability(fitted)
        left, weight = ahead - draws * share, draws * share * (1 - share) + TINY
        rise, total = self._ramps.rise, left.sum(axis=1)
        slope, bend = _with_ramps(left, rise), _with_ramps(weight, self._ramps.squared)
        along, mass = _with_ramps(weight, rise), weight.sum(axis=1)
        if self._terms.shape[2]:
            weighted = weight[:, :, None] * self._terms
            information = np.einsum("blj,blk->bjk", self._terms, weighted)
            inverse = np.linalg.inv(information + TINY * np.eye(weighted.shape[2]))
            parts = [_with_ramps(part, rise) for part in np.moveaxis(weighted, 2, 0)]
            shared = np.stack(parts, axis=1)
            apart, own = np.einsum("bjk,bkr->bjr", inverse, shared), weighted.sum(axis=1)
            bend -= (shared * apart).sum(axis=1)
            along -= np.einsum("bj,bjr->br", own, apart)
            mass -= np.einsum("bj,bjk,bk->b", own, inverse, own)
        scores = np.empty((len(left), len(_OFFSETS), rise.shape[1]))
        for place, offset in enumerate(_OFFSETS):
            rising = np.maximum(slope + offset * total[:, None], 0.0)
            spread = bend + 2 * offset * along + offset**2 * mass[:, None]
            scores[:, place] = rising**2 / np.maximum(spread, 1e-6) * (spread > 1e-6)
        flat = scores.reshape(len(left), -1)
        best = flat.argmax(axis=1)
        place, ramp = np.divmod(best, rise.shape[1])
        by_ramp = ramp, _OFFSETS[place], flat[np.arange(len(left)), best]
        return by_ramp, total**2 / np.maximum(mass, 1e-6) * (mass > 1e-6)


def _with_ramps(left: FloatArray, rise: FloatArray) -> FloatArray:
    """Return left · rise, computed in pieces of few rows, since BLAS would give a large product to
    threads."""
    rows = max(1, _ONE_THREAD // rise.size)
    if len(left) <= rows:
        return left @ rise
    pieces = [left[start : start + rows] @ rise for start in range(0, len(left), rows)]
    return np.concatenate(pieces)


def _products(terms: FloatArray, heights: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("blk,bk->bl", terms, heights))


def _likelihoods(ahead: FloatArray, draws: FloatArray, fitted: FloatArray) -> FloatArray:
    return np.asarray((ahead * fitted - draws * softplus(fitted)).sum(axis=1))


def _maximised_each(
    ahead: FloatArray, draws: FloatArray, terms: FloatArray, heights: FloatArray
) -> FloatArray:
    """Return for every fit the coefficients with the largest likelihood, by Newton's method: (fits,
    terms).

    heights: (fits, terms - 1), the coefficients before the last term was added.
    """
    result = np.column_stack([heights, np.zeros(len(heights))])
    rest = np.arange(len(result))
    for _ in range(_NEWTON_STEPS):
        if not len(rest):
            break
        own = terms[rest]
        share = probability(_products(own, result[rest]))
        weight = draws[rest] * share * (1 - share) + TINY
        bend = np.einsum("blj,blk->bjk", own, weight[:, :, None] * own)
        slope = np.einsum("blk,bl->bk", own, ahead[rest] - draws[rest] * share)
        step = np.linalg.solve(bend + 1e-6 * np.eye(own.shape[2]), slope[:, :, None])[:, :, 0]
        result[rest] += np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        rest = rest[np.abs(step).max(axis=1) >= 1e-4]
    return result


def _averaged(
    ramps: _Ramps,
    ahead: FloatArray,
    draws: FloatArray,
    chosen: Sequence[tuple[int | None, float]],
    terms: FloatArray,
    heights: FloatArray,
) -> FloatArray:
    """Return the log-odds of d1 by level, (levels,), with the start and the end of each ramp
    averaged over, weighted by likelihood.

    chosen: for each term, the index of its ramp, or None, and its offset.
    terms, heights: (levels, terms) and (terms,), the terms by level, and their coefficients.
    """
    fitted = terms @ heights
    total = fitted.copy()
    for place, (ramp, offset) in enumerate(chosen):
        if ramp is None:
            continue
        height, own = heights[place], terms[:, place]
        near = (np.abs(ramps.start - ramps.start[ramp]) <= _NEARBY) & (
            np.abs(ramps.end - ramps.end[ramp]) <= _NEARBY
        )
        others = ramps.rise[:, near] + offset
        fits = (fitted - height * own)[:, None] + height * others
        likelihood = ahead @ fits - draws @ softplus(fits)
        weight = np.exp(likelihood - likelihood.max())
        # Without unlikely ends, flat parts stay exactly flat.
        weight[weight < _UNLIKELY] = 0.0
        total += height * (others @ (weight / weight.sum()) - own)
    return np.asarray(total)


def _centred(position: FloatArray, ahead: FloatArray, draws: FloatArray) -> FloatArray:
    """Return the position minus the constant that makes it, read as log-odds, predict the observed
    number of draws of d1."""
    for _ in range(_NEWTON_STEPS):
        share = probability(position)
        step = float((ahead - draws * share).sum() / max(TINY, draws @ (share * (1 - share))))
        position = position + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
        if abs(step) < 1e-4:
            break
    return position
