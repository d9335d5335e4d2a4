"""Smooth log-ratios along rows of places, such as the entries of sequences.

Noise with one distribution everywhere gives log-ratios that are constant over a stretch of places,
or change linearly along it (drift), and jump at its end. The jump probability, the values after a
jump, and the share of drifting stretches are learned from all rows together by EM. The estimate is
the mean over all divisions into stretches. Where every place has a log-ratio of its own, the jump
probability goes to 1, and neighbours have no influence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.levels import tuning
from dpaudit.levels.level_map import FloatArray, IntArray
from dpaudit.levels.limits import MAX_FLOATS, TINY
from dpaudit.levels.shrinkage import GAP, GRID

# Number of steps of EM (expectation-maximisation). EM fits the distribution of log-ratios, and the
# probability that the log-ratio jumps from one place, such as an entry of a sequence, to the next.
_EM_STEPS = 10
# A row is a list of related places, such as the entries of a sequence. The probability that the
# log-ratio jumps from one place of a row to the next is limited to the range from this number to 1
# minus this number. Two weights, of constant and of drifting stretches, are increased by this
# number, so that neither of them becomes 0.
_MIN_PROBABILITY = 1e-3
# Largest number of places in a stretch: neighbouring places, such as entries of a sequence, between
# which the log-ratio does not jump. The number of stretches grows with this limit, and so does the
# time; longer stretches add little.
_MAX_STRETCH = 32

Places = NDArray[np.intp]


def expected(estimates: FloatArray, variance: FloatArray, rows: IntArray) -> FloatArray:
    """Return the expected log-ratio of every place, smoothed along rows: (fits, places).

    estimates: (fits, places), unsmoothed log-ratios, taken to have normal errors.
    variance: (fits, places), the variance of these errors; infinite where nothing is known.
    rows: (rows, length), the indices of the places in each row; a short row ends in -1.
    """
    if estimates.shape[1] == 0:
        return estimates
    stretches = _Stretches.of(rows)
    # Number of fits that are smoothed together, limited by memory.
    together = max(1, MAX_FLOATS // (len(stretches.row) * len(GRID)))
    parts = [slice(start, start + together) for start in range(0, len(estimates), together)]
    return np.concatenate([_expected(estimates[part], variance[part], stretches) for part in parts])


def _expected(estimates: FloatArray, variance: FloatArray, stretches: _Stretches) -> FloatArray:
    gap = np.interp(estimates, GRID, GAP)
    # Log-ratios are restricted to a grid. An estimate with a much smaller error than the grid
    # spacing would fit no grid point, so half of the spacing is added to each error (in
    # quadrature).
    likelihoods = _Likelihoods.of(estimates, 1 / (variance + (gap / 2) ** 2), stretches)
    law = np.full((len(estimates), 2, len(GRID)), 1 / (2 * len(GRID)))
    chance = np.full(len(estimates), 0.2)  # where EM starts: a jump at one place in five
    for _ in range(_EM_STEPS):
        law, chance = _improved(likelihoods, stretches, law, chance)
    means = np.empty_like(estimates)
    means[:, stretches.places] = _means(likelihoods, stretches, law, chance)[:, stretches.inside]
    is_known = np.sqrt(variance) < gap / 2
    return np.where(is_known, estimates, means)


@dataclass(frozen=True, slots=True, eq=False)
class _Stretches:
    """All stretches of at most 32 consecutive places, sorted by their last index within the row.

    rows, lengths: the rows, the longest first, and the number of places in each.
    row, start, end: for each stretch, its row, and its first and last index within the row.
    ending: for each index within a row, the slice of the stretches that end there, in any row, and
        the number of rows that have this index.
    """

    rows: IntArray
    lengths: Places
    row: Places
    start: Places
    end: Places
    ending: tuple[tuple[slice, int], ...]

    @classmethod
    def of(cls, rows: IntArray) -> _Stretches:
        lengths = (rows >= 0).sum(axis=1)
        order = np.argsort(-lengths, kind="stable")
        parts, ending, count = [], [], 0
        for end in range(int(lengths.max())):
            having, starts = int((lengths > end).sum()), np.arange(end + 1)[-_MAX_STRETCH:]
            row = np.repeat(np.arange(having), len(starts))
            parts.append((row, np.tile(starts, having), np.full(len(row), end)))
            ending.append((slice(count, count + len(row)), having))
            count += len(row)
        row, start, last = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return cls(rows[order, : len(ending)], lengths[order], row, start, last, tuple(ending))

    @property
    def inside(self) -> NDArray[np.bool_]:
        return self.rows >= 0

    @property
    def places(self) -> IntArray:
        return self.rows[self.inside]

    @property
    def middle(self) -> FloatArray:
        return (self.start + self.end) / 2

    @property
    def half(self) -> FloatArray:
        """Half of the distance from the first to the last place of each stretch, at least ½."""
        return np.maximum((self.end - self.start) / 2, 0.5)

    def summed(self, numbers: FloatArray) -> FloatArray:
        """Return the sums of `numbers` over the places of each stretch: (fits, stretches)."""
        upto = np.cumsum(numbers, axis=2)
        upto = np.concatenate([np.zeros_like(upto[:, :, :1]), upto], axis=2)
        return upto[:, self.row, self.end + 1] - upto[:, self.row, self.start]

    def spread(self, numbers: FloatArray) -> FloatArray:
        """Return at every place the sum of `numbers` over the stretches that contain it."""
        fits, (rows, length) = len(numbers), self.rows.shape
        change = np.zeros((fits, rows, length + 1))
        for fit, values in enumerate(numbers):
            np.add.at(change[fit], (self.row, self.start), values)
            np.add.at(change[fit], (self.row, self.end + 1), -values)
        return np.cumsum(change, axis=2)[:, :, :length]

    def chances(self, worth: FloatArray, chance: FloatArray) -> FloatArray:
        """Return the posterior probability of every stretch: (fits, stretches).

        worth: (fits, stretches), log-likelihood of each stretch.
        chance: (fits,), probability that the log-ratio jumps between two places.
        """
        fits, (rows, length) = len(worth), self.rows.shape
        jumps, stays = np.log(chance)[:, None], np.log1p(-chance)[:, None]
        worth = worth + (self.end - self.start) * stays
        # Forward-backward algorithm. `before` holds the log-likelihood of all places of a row
        # before a position; `after` holds the log-likelihood of all places after a stretch.
        before, after = np.zeros((fits, rows, length + 1)), np.full_like(worth, -np.inf)
        for end, (ending, having) in enumerate(self.ending):
            here = before[:, :having, max(0, end + 1 - _MAX_STRETCH) : end + 1]
            here = here + worth[:, ending].reshape(here.shape)
            before[:, :having, end + 1] = np.logaddexp.reduce(here, axis=2) + jumps
        remaining = np.full((fits, rows, length + 1), -np.inf)
        for end in range(length - 1, -1, -1):
            ending, having = self.ending[end]
            is_last = self.lengths[:having] == end + 1
            next_one = np.where(is_last, 0.0, remaining[:, :having, end + 1] + jumps)
            here = remaining[:, :having, max(0, end + 1 - _MAX_STRETCH) : end + 1]
            after[:, ending] = np.repeat(next_one, here.shape[2], axis=1)
            np.logaddexp(
                here, worth[:, ending].reshape(here.shape) + next_one[:, :, None], out=here
            )
        total = before[:, np.arange(rows), self.lengths] - jumps
        logs = before[:, self.row, self.start] + worth + after - total[:, self.row]
        return np.asarray(np.exp(logs))


@dataclass(frozen=True, slots=True, eq=False)
class _Likelihoods:
    """The likelihood of every stretch, by the log-ratio in its middle, if it is constant or if it
    drifts.

    best: (fits, stretches), the largest log-likelihood of each stretch.
    relative: (fits, stretches, 2, grid), the likelihood if the stretch is constant (index 0) or
        drifting (index 1), divided by the largest likelihood of the stretch.
    drift: (fits, stretches, grid), for a drifting stretch, the expected change of the log-ratio
        from the middle of the stretch to its end.
    """

    best: FloatArray
    relative: FloatArray
    drift: FloatArray

    @classmethod
    def of(cls, estimates: FloatArray, weight: FloatArray, stretches: _Stretches) -> _Likelihoods:
        """Return the likelihoods of all stretches. `weight` is 1 / variance of each estimate."""
        is_there = stretches.inside
        weights = np.where(is_there, weight[:, stretches.rows], 0.0)
        numbers = weights * np.where(is_there, estimates[:, stretches.rows], 0.0)
        index = np.arange(weights.shape[2])
        # A stretch is a run of consecutive places. Let z run from -1 at its first place to 1 at its
        # last place. The lines below compute Σ w, Σ w z, Σ w z², Σ w x and Σ w x z over each
        # stretch, where x are the estimates and w their weights.
        middle, half = stretches.middle, stretches.half
        total, first = stretches.summed(weights), stretches.summed(weights * index)
        second = stretches.summed(weights * index**2)
        sloped, squared = first - middle * total, second - 2 * middle * first + middle**2 * total
        number = stretches.summed(numbers)
        tilted = (stretches.summed(numbers * index) - middle * number)[..., None] / half[:, None]
        sloped, squared = (sloped / half)[..., None], np.maximum(squared / half**2, 0)[..., None]
        steady = number[..., None] * GRID - total[..., None] * (GRID**2 / 2)
        prior = (tuning.SPREAD_OF_DIFFERENCES * GRID) ** 2
        residual = tilted - sloped * GRID
        drift = prior * residual / (1 + prior * squared)
        drifting = steady + residual * drift / 2 - np.log1p(prior * squared) / 2
        logs = np.stack([steady, drifting], axis=2)
        best = logs.max(axis=(2, 3))
        logs -= best[..., None, None]
        return cls(best, np.exp(logs, out=logs), drift)

    def posterior(
        self, stretches: _Stretches, law: FloatArray, chance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the posterior probability of every stretch, (fits, stretches), and this
        probability divided by the likelihood of the stretch."""
        # `einsum` is used, since the threads of a matrix product cost more than they save.
        likelihood = np.einsum("fskg,fkg->fs", self.relative, law)
        chances = stretches.chances(self.best + np.log(likelihood), chance)
        return chances, chances / likelihood


def _improved(
    likelihoods: _Likelihoods, stretches: _Stretches, law: FloatArray, chance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return better values of `law` and `chance`, by one step of expectation maximisation."""
    chances, relative_posterior = likelihoods.posterior(stretches, law, chance)
    joint = np.einsum("fs,fskg->fkg", relative_posterior, likelihoods.relative) * law
    middles, kinds = joint.sum(axis=1) + TINY, joint.sum(axis=2) + _MIN_PROBABILITY
    middles /= middles.sum(axis=1, keepdims=True)
    kinds /= kinds.sum(axis=1, keepdims=True)
    moves = max(1, int((stretches.lengths - 1).sum()))
    jumps = chances[:, stretches.start > 0].sum(axis=1) / moves
    return kinds[:, :, None] * middles[:, None], np.clip(
        jumps, _MIN_PROBABILITY, 1 - _MIN_PROBABILITY
    )


def _means(
    likelihoods: _Likelihoods, stretches: _Stretches, law: FloatArray, chance: FloatArray
) -> FloatArray:
    """Return the expected log-ratio at every place: (fits, rows, length)."""
    relative_posterior = likelihoods.posterior(stretches, law, chance)[1]
    middle = relative_posterior * np.einsum("fskg,fkg,g->fs", likelihoods.relative, law, GRID)
    drift = relative_posterior * np.einsum(
        "fsg,fg,fsg->fs", likelihoods.relative[:, :, 1], law[:, 1], likelihoods.drift
    )
    slope = drift / stretches.half
    index = np.arange(stretches.rows.shape[1])
    start = stretches.spread(middle - slope * stretches.middle)
    return start + index * stretches.spread(slope)
