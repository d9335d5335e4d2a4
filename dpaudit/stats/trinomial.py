"""The score test of a claim (ε, δ) on counts of right and wrong guesses (docs/method.md §2).

In N draws a rule made C right and W wrong guesses. The claim implies c ≤ e^ε w + s, with s = hδ.
The test statistic is the score z = (C - e^ε W - sN) / sd, where sd is the standard deviation of the
numerator under the claim. The unknown w is a nuisance parameter: the p-value is γ plus the supremum
of Pr[z ≥ observed z] over an interval that contains w with probability 1 - γ (Berger & Boos 1994).

Most of the code makes the supremum fast to compute. In this module, a group is a range of
consecutive W, and C*(W) is the smallest C with z ≥ observed z.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln

from dpaudit.stats.binomial import FloatArray, IntArray, clopper_pearson_interval, upper_tail

# Number of evenly spaced values of w at which a test first computes Pr[z ≥ observed z], where z is
# the score of the guesses. Values near local maxima follow (`_REFINED_POINTS`).
_FIRST_POINTS = 65
# Around a local maximum of Pr[z ≥ observed z], further values of w are tried. Number of evenly
# spaced w from the last w that was tried before the maximum to the first w that was tried after it,
# both included.
_REFINED_POINTS = 17
# Pr[z ≥ observed z], where z is the score of the guesses, may have several local maxima as a
# function of w. Largest number of local maxima near which further values of w are tried, to limit
# the time of a test.
_MAX_PEAKS = 8
# Largest number of values of w that are evaluated in one array, to limit memory.
_MAX_ARRAY_POINTS = 128
# As a function of w, Pr[z ≥ observed z] may jump like the teeth of a saw (`_points_between`). The
# jumps are smooth enough to be ignored only if the number of abstentions has at least this standard
# deviation.
_SMOOTH_DEVIATION = 5.0
# As a function of w, Pr[z ≥ observed z] may jump. Where the jumps are not smooth
# (`_SMOOTH_DEVIATION`), `_points_between` adds values of w until the numbers of right and wrong
# guesses at every two neighbouring w differ by at most 0.4 (`_NEAR`) standard deviations, or by at
# most 1 (`_FAR`) if the distance between the two w is at most a quarter (`_PART`) of the distance
# between two jumps.
_NEAR, _FAR, _PART = 0.4, 1.0, 0.25
# The supremum of Pr[z ≥ observed z] over w is computed from finitely many w. It is multiplied by 1
# plus this number, since the probability may be larger between them. (Measured on 1,880 random
# counts of 20 to 10⁷ draws: the computed supremum is smaller than the largest value at 4,001 w by a
# relative 0.00098 at most, and by less than 0.00012 in 99 % of the counts.)
_SUPREMUM_MARGIN = 1e-3
# Sums over W, the number of wrong guesses, leave out the smallest and the largest values of W. On
# each side, the values left out have at most this probability in total.
_TRUNCATED = 1e-13
# Largest number of terms of a sum over W, the number of wrong guesses. If W has more values, they
# are grouped, and each term is an upper bound for a group.
MAX_TERMS = 512
# A term of a sum over W, the number of wrong guesses, is left out if its weight (the probability of
# its values of W) is at most this number. A sum has at most 512 terms (`MAX_TERMS`), so all terms
# left out weigh less than `_TRUNCATED` (1e-13) together.
_NEGLIGIBLE = 1e-17
# Number of binomial probabilities that take as long to compute as one incomplete beta function
# (measured: 10 for few draws, 40 for many). `_TailDifferences` computes tails from binomial
# probabilities instead of incomplete beta functions if each tail needs fewer than this number on
# average.
_COST_OF_BETA = 30
# A sum over W, the number of wrong guesses, groups consecutive values of W. If a group has at most
# this many values, adding up their probabilities is faster than subtracting two binomial tails.
_SMALL_GROUP = 40
# Largest number of draws for which binomial probabilities are computed from log-factorials. For
# more draws, differences of log-factorials lose too many digits.
_DRAWS_BY_LOGS = 10**9
# Number of fixed-point steps before the exact search for C*, the smallest number of right guesses
# whose score z is at least the observed z. Two steps come close to C*, since the standard
# deviation, by which z is divided, changes little with the number of right guesses.
_FIXED_POINT_STEPS = 2
# Smallest divisor and smallest argument of a logarithm: smaller numbers are raised to it, since 0
# is not allowed.
_MIN_POSITIVE = 1e-300
# Of the first values of w, every eighth is evaluated first. If the p-value is already large enough
# there, the other values are skipped.
_GLANCE_STRIDE = 8
# Largest ε, in nats, that is tested; claims with a larger ε get p-value 1. The reason: e^(2ε) must
# fit in a float.
_MAX_EPSILON = 300.0
# Largest number of `_Grid` tables in a cache. A test of the same counts against another ε uses the
# same table again. (The largest table has 65 × 512 entries, and takes a quarter of a megabyte.)
_CACHED_GRIDS = 16


# eq=False: grids are keys of caches, and are compared by identity; a comparison of whole tables
# would be slow.
@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """A table of Pr[W in group] for several values of w, where W ~ Bin(draws, w).

    points: values of w, (points,).
    edges: smallest W of each group, then the end of the last group, (groups + 1,).
    mass: Pr[W in group] for each w, (points, groups).
    """

    points: FloatArray
    edges: IntArray
    mass: FloatArray

    @classmethod
    def over(cls, points: FloatArray, edges: IntArray, draws: int) -> _Grid:
        if edges[1] - edges[0] <= _SMALL_GROUP and draws <= _DRAWS_BY_LOGS:
            every = np.arange(edges[0], edges[-1])
            masses = np.exp(_log_masses(every, draws, points, 1 - points))
            return cls(points, edges, np.add.reduceat(masses, edges[:-1] - edges[0], axis=1))
        reached = upper_tail(edges[None, :], draws, points[:, None])
        return cls(points, edges, reached[:, :-1] - reached[:, 1:])

    @property
    def step(self) -> int:
        """Number of values of W in each group. The last group may have fewer values."""
        return int(self.edges[1] - self.edges[0])

    def take(self, rows: slice | NDArray[np.bool_]) -> _Grid:
        return _Grid(self.points[rows], self.edges, self.mass[rows])


@lru_cache(maxsize=_CACHED_GRIDS)
def _even_grid(draws: int, low: float, high: float, terms: int) -> _Grid:
    """Return the probabilities of at most `terms` groups of W at evenly spaced w."""
    edges = _group_edges(*_wrong_range(draws, low, high), terms)
    return _Grid.over(np.linspace(low, high, _FIRST_POINTS), edges, draws)


@lru_cache(maxsize=_CACHED_GRIDS)
def _finer_grid(grid: _Grid, draws: int, low: float, high: float) -> _Grid:
    """Return the probability of each group of W of `grid` at evenly spaced w."""
    return _Grid.over(np.linspace(low, high, _REFINED_POINTS)[1:-1], grid.edges, draws)


class ScoreTest:
    """A test of claims c ≤ e^ε w + s, from the counts of guesses.

    correct, wrong: C and W.
    draws: number N of all draws, with and without a guess.
    gamma: γ, in (0, 1), the probability that w lies outside of its confidence interval; it is added
        to every p-value.
    terms: largest number of terms in a sum over the possible values of W; if there are more values,
        they are grouped. Fewer terms take less time and make the p-value larger.
    """

    def __init__(
        self, correct: int, wrong: int, draws: int, gamma: float, terms: int = MAX_TERMS
    ) -> None:
        self._correct, self._wrong, self.draws, self.gamma = correct, wrong, draws, gamma
        self._terms = terms
        self._low, self._high = clopper_pearson_interval(wrong, draws, gamma)

    def score(self, epsilon: float, spared: float) -> float:
        """Return the score z of the claim, which falls as ε or s rises. The standard deviation sd
        is that for c = e^ε w + s and the most likely w."""
        counts = np.array([self._correct]), np.array([self._wrong])
        return float(_score(*counts, self.draws, math.exp(epsilon), spared)[0])

    def p_value(self, epsilon: float, spared: float, enough: float = 1.0) -> float:
        """Return the p-value of the claim, in [γ, 1]: γ plus the supremum of Pr[z ≥ observed z] at
        c = e^ε w + s over the confidence interval of w.

        enough: once p is known to exceed this number, stop and return a lower bound of p.
        """
        tail = self._tail(epsilon, spared)
        if tail is None:
            return 1.0
        largest = 0.0
        for largest in tail.rising():
            if self._to_p(largest) > enough:
                return self._to_p(largest)
        return self._to_p(largest * (1 + _SUPREMUM_MARGIN))

    def _to_p(self, largest: float) -> float:
        p = self.gamma + largest + 3 * _TRUNCATED
        return 1.0 if math.isnan(p) else min(1.0, p)

    def _tail(self, epsilon: float, spared: float) -> _Tail | None:
        """Return Pr[z ≥ observed z] as a function of w; None if ε > 300 or `spared` ≥ 1."""
        if epsilon > _MAX_EPSILON or spared >= 1:
            return None
        ratio = math.exp(epsilon)
        cap = (1 - spared) / (1 + ratio)  # largest w that leaves room for c = e^ε w + s
        low, high = min(self._low, cap), min(self._high, cap)
        grid = _even_grid(self.draws, low, high, self._terms)
        critical = _critical_correct(
            grid.edges[:-1], self.draws, ratio, spared, self.score(epsilon, spared)
        )
        path = _TailDifferences.between(critical, grid.edges, self.draws)
        return _Tail(grid, critical, path, self.draws, ratio, spared)


@dataclass(frozen=True, slots=True, eq=False)
class _TailDifferences:
    """The differences between the binomial tails of neighbouring groups of W.

    The tail of a group is Pr[Bin(n, q) ≥ k] with n = N - W, k = C*(W) and q = Pr[right guess | no
    wrong guess], for the first W of the group. From group to group, n falls and k rises. By

        Pr[Bin(n, q) ≥ k] = Pr[Bin(n - 1, q) ≥ k] + q Pr[Bin(n - 1, q) = k - 1]
        Pr[Bin(n, q) ≥ k] = Pr[Bin(n, q) ≥ k + 1] + Pr[Bin(n, q) = k],

    the tails of two neighbouring groups differ by a sum of a few terms Pr[Bin(n, q) = k], which are
    faster to compute than a tail. All terms are positive, so that sums lose no digits.

    starts: for each group but the last, index of the first term of its difference, (groups - 1,).
    sizes, hits: n and k of each term, (terms,).
    falls: whether the term is multiplied by q, since n falls there, (terms,).
    last: k and n of the tail of the last group.
    """

    starts: IntArray
    sizes: IntArray
    hits: IntArray
    falls: NDArray[np.bool_]
    last: tuple[int, int]

    @classmethod
    def between(cls, critical: IntArray, edges: IntArray, draws: int) -> _TailDifferences | None:
        """Return the differences between the tails of neighbouring groups; None if it is faster to
        compute every tail by itself."""
        # Only groups with C* ≤ N - W have a tail above 0, where C* is the smallest number of right
        # guesses with z ≥ observed z, at the first W of each group.
        if draws > _DRAWS_BY_LOGS:
            return None
        trials = draws - edges[:-1]
        groups = int(np.count_nonzero(critical <= trials))  # n falls and C* rises
        if groups == 0:
            return None
        n, k = trials[:groups], np.maximum(critical[:groups], 0)
        step = int(edges[1] - edges[0])
        terms = step + np.diff(k)
        if np.sum(terms) > _COST_OF_BETA * groups:
            return None
        starts = np.cumsum(terms) - terms
        index = np.arange(np.sum(terms)) - np.repeat(starts, terms)
        falls = index < step
        of, at = np.repeat(n[:-1], terms), np.repeat(k[:-1], terms) + index
        sizes = of - np.minimum(index + 1, step)
        hits = np.where(falls, at - index - 1, at - step)
        return cls(starts, sizes, hits, falls, (int(k[-1]), int(n[-1])))

    def sums(self, share: FloatArray, complement: FloatArray, mass: FloatArray) -> FloatArray:
        """Return Pr[z ≥ observed z], (points,): Σ mass · Pr[Bin(n, q) ≥ k] over the groups.

        share, complement: q and 1 - q, (points,).
        mass: Pr[W in group], (points, groups).
        """
        # For a group, n is the number of draws that are not wrong guesses, `share` is q = Pr[right
        # guess | no wrong guess], and k is the fewest right guesses with z ≥ observed z.
        terms = np.exp(_log_masses(self.hits, self.sizes, share, complement, self.falls))
        # The tail of a group of W is the tail of the next group plus the difference between them.
        # So the terms of a difference belong to the tails of this group and of all earlier groups.
        # Their weight is the total probability of these groups: the running sum of `mass`.
        totals = np.cumsum(mass[:, : len(self.starts) + 1], axis=1)
        steps = np.add.reduceat(terms, self.starts, axis=1)
        sums = np.einsum("ij,ij->i", steps, totals[:, :-1])
        return np.asarray(sums + totals[:, -1] * upper_tail(*self.last, share), dtype=float)


@dataclass(frozen=True, slots=True)
class _Tail:
    """Pr[z ≥ observed z] as a function of w, at c = ratio · w + spared.

    grid: values of w, and the groups of W.
    critical: C* at the first W of each group, (groups,).
    path: the differences from which the tails are summed; None: every tail is computed by itself.
    ratio: e^ε.
    """

    grid: _Grid
    critical: IntArray
    path: _TailDifferences | None
    draws: int
    ratio: float
    spared: float

    def rising(self) -> Iterator[float]:
        """Yield three rising estimates of the supremum of Pr[z ≥ observed z] over w."""
        # The first is the largest value on every eighth point of the grid, the second on all
        # points. The third, which also covers finer points around local maxima, is the supremum up
        # to the relative error `_SUPREMUM_MARGIN`.
        values = np.empty(len(self.grid.points))
        glanced = np.arange(len(values)) % _GLANCE_STRIDE == 0
        for rows in (glanced, ~glanced):
            values[rows] = self._at(self.grid.take(rows))
            yield float(np.max(values[glanced] if rows is glanced else values))
        points, values = self._resolved(values)
        nearby = [
            _finer_grid(
                self.grid,
                self.draws,
                float(points[max(i - 1, 0)]),
                float(points[min(i + 1, len(points) - 1)]),
            )
            for i in _peaks(values)
        ]
        finer = _Grid(
            np.concatenate([grid.points for grid in nearby]),
            self.grid.edges,
            np.concatenate([grid.mass for grid in nearby]),
        )
        yield float(max(np.max(values), np.max(self._at(finer))))

    def _resolved(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (points, values) with points so close that no jump of the p-value is missed."""
        points = self.grid.points
        added = _points_between(points, self.draws, self.ratio, self.spared, self.grid.step)
        if len(added) == 0:
            return points, values
        points, values = np.append(points, added), np.append(values, self._over(added))
        order = np.argsort(points)
        return points[order], values[order]

    def _over(self, points: FloatArray) -> FloatArray:
        parts = np.array_split(points, math.ceil(len(points) / _MAX_ARRAY_POINTS))
        edges = self.grid.edges
        return np.concatenate([self._at(_Grid.over(part, edges, self.draws)) for part in parts])

    def _at(self, grid: _Grid) -> FloatArray:
        """Return an upper bound of Pr[z ≥ observed z] for every w of a grid, (points,)."""
        # For N draws and c = Pr[right guess], the probability is
        #     Σ_W Pr[Bin(N, w) = W] Pr[Bin(N - W, c/(1-w)) ≥ C*(W)].
        # Each group of W uses the second factor at its smallest W. There the factor is largest,
        # since C* rises and N - W falls with W.
        w = grid.points
        odds = np.array([self.ratio * w + self.spared, 1 - self.spared - (1 + self.ratio) * w])
        share, complement = np.clip(odds / np.maximum(1 - w, _MIN_POSITIVE), 0.0, 1.0)
        if self.path is not None:
            return self.path.sums(share, complement, grid.mass)
        possible = self.critical <= self.draws - grid.edges[:-1]
        row, group = np.nonzero((grid.mass > _NEGLIGIBLE) & possible)
        critical = np.maximum(self.critical[group], 0).astype(float)
        trials = (self.draws - grid.edges[group]).astype(float)
        tails = np.ones(len(group))
        some = critical > 0
        tails[some] = betainc(critical[some], (trials - critical)[some] + 1, share[row[some]])
        sums = np.bincount(row, grid.mass[row, group] * tails, minlength=len(w))
        return np.asarray(sums, dtype=float)


def _log_masses(
    hits: IntArray,
    trials: IntArray | int,
    share: FloatArray,
    complement: FloatArray,
    extra: NDArray[np.bool_] | int = 0,
) -> FloatArray:
    """Return log(p^extra · Pr[Bin(trials, p) = hits]), (shares, counts); -inf at hits = -1."""
    misses = trials - hits
    logs = np.multiply.outer(np.log(np.maximum(share, _MIN_POSITIVE)), hits + extra)
    logs += np.multiply.outer(np.log(np.maximum(complement, _MIN_POSITIVE)), misses)
    logs += gammaln(np.add(trials, 1)) - gammaln(hits + 1) - gammaln(misses + 1)
    return np.asarray(logs, dtype=float)


def _peaks(values: FloatArray) -> IntArray:
    """Return the indices of at most `_MAX_PEAKS` local maxima that may be highest, best first."""
    # A maximum is taken to reach at most its value plus a quarter of the second difference of three
    # neighbouring values. (A parabola through the three values rises above the middle value by at
    # most an eighth of the second difference.)
    around = np.pad(values, 1, mode="edge")
    bend = 2 * values - around[:-2] - around[2:]
    reach = values + bend / 4
    # Comparisons with NaN are false. So a NaN in `values` is not below its neighbours and is kept
    # as a local maximum, which makes the supremum NaN.
    below = (values < around[:-2]) | (values < around[2:]) | (reach < np.max(values))
    peaks = np.flatnonzero(~below)
    return np.asarray(peaks[np.argsort(-reach[peaks])][:_MAX_PEAKS], dtype=np.int64)


def _points_between(
    points: FloatArray, draws: int, ratio: float, spared: float, step: int
) -> FloatArray:
    """Return values of w to add to `points`, so that no jump of Pr[z ≥ observed z] is missed."""
    # At c = e^ε w + s a fixed share of the guesses is wrong. So, given the number of abstentions,
    # the probability is a saw-tooth function of this number: it jumps when the largest W with z ≥
    # observed z falls to the next group of W. The distance between jumps is (1 + ratio) · step
    # abstentions, or step / draws in w.
    finer = points
    while np.any(coarse := _coarse(finer, draws, ratio, spared, step)):
        finer = np.sort(np.append(finer, ((finer[:-1] + finer[1:]) / 2)[coarse]))
    return np.empty(0) if finer is points else np.setdiff1d(finer, points)


def _coarse(
    points: FloatArray, draws: int, ratio: float, spared: float, step: int
) -> NDArray[np.bool_]:
    """Return a mask of the pairs of neighbouring w between which a jump could be missed."""
    abstention = (1 + ratio) * np.maximum((1 - spared) / (1 + ratio) - points, 0.0)
    # As a function of w, Pr[z ≥ observed z] is a mean over the random number of abstentions. The
    # mean has no visible jumps if this number has a standard deviation of at least
    # `_SMOOTH_DEVIATION`, and of half the distance between two jumps. The jump from W = 0 to W = 1
    # wrong guesses is always visible, so at least one wrong guess must be expected.
    smooth = np.sqrt(draws * abstention[1:]) >= max(_SMOOTH_DEVIATION, (1 + ratio) * step / 2)
    smooth &= draws * points[:-1] >= 1
    if smooth.all():
        return ~smooth
    # For each pair of neighbouring w: the distance between the two distributions of the numbers of
    # (right, wrong, no) guesses in N draws, in standard deviations. It is 2 √N times the Euclidean
    # distance between the square roots of the probabilities (c, w, rest) of the three guesses.
    roots = np.sqrt([ratio * points + spared, points, abstention])
    distance = 2 * math.sqrt(draws) * np.linalg.norm(np.diff(roots), axis=0)
    teeth = draws * np.diff(points) / step
    return np.asarray(~smooth & (distance > _NEAR) & ((distance > _FAR) | (teeth > _PART)))


def _wrong_range(draws: int, low: float, high: float) -> tuple[int, int]:
    """Return (first, last) with Pr[W outside] ≤ 2·10⁻¹³ for every w in [low, high]."""
    first = draws - _tail_quantile(_TRUNCATED, draws, 1 - low)
    return max(0, first), _tail_quantile(_TRUNCATED, draws, high)


def _tail_quantile(gamma: float, trials: int, probability: float) -> int:
    """Return the smallest f with Pr[Bin(trials, probability) > f] ≤ gamma."""

    def is_rare(count: int) -> bool:
        return bool(betainc(count + 1, trials - count, probability) <= gamma)

    return bisect_left(range(trials), True, key=is_rare)


def _group_edges(first: int, last: int, groups: int) -> IntArray:
    """Return the first W of each of at most `groups` equal groups, and then last + 1."""
    step = math.ceil((last - first + 1) / groups)
    return np.append(np.arange(first, last + 1, step), last + 1).astype(np.int64)


def _score(
    correct: NDArray[Any], wrong: NDArray[Any], draws: int, ratio: float, spared: float
) -> FloatArray:
    """Return the score z = (C - e^ε W - sN) / sd of C right and W wrong guesses in N draws."""
    # sd is the standard deviation of the numerator if Pr[correct] = e^ε w + s, Pr[wrong] = w, where
    # w is the value with the largest likelihood.
    excess = correct - ratio * wrong - spared * draws
    return np.asarray(excess / _spread(correct, wrong, draws, ratio, spared), dtype=float)


def _spread(
    correct: NDArray[Any], wrong: NDArray[Any], draws: int, ratio: float, spared: float
) -> FloatArray:
    w = _constrained_wrong(correct, wrong, draws, ratio, spared)
    variance = ratio * w + spared + ratio**2 * w - spared**2
    # The variance is 0 if w (probability of a wrong guess) and s (`spared`) are 0. `_MIN_POSITIVE`
    # replaces it, since the score is divided by this root.
    return np.asarray(np.sqrt(np.maximum(draws * variance, _MIN_POSITIVE)), dtype=float)


def _constrained_wrong(
    correct: NDArray[Any], wrong: NDArray[Any], draws: int, ratio: float, spared: float
) -> FloatArray:
    """Return the most likely w = Pr[wrong], given that Pr[correct] = e^ε w + s."""
    # The derivative of the log-likelihood is 0 at a root of a quadratic equation.
    free = 1 - spared
    square = (1 + ratio) * ratio * draws
    linear = (correct + wrong) * ratio * free - (1 + ratio) * spared * (draws - correct)
    constant = wrong * spared * free
    root = (linear + np.sqrt(linear**2 + 4 * square * constant)) / (2 * square)
    return np.asarray(np.clip(root, 0.0, free / (1 + ratio)), dtype=float)


def _critical_correct(
    wrong: IntArray, draws: int, ratio: float, spared: float, observed: float
) -> IntArray:
    """Return the fewest right guesses with z ≥ observed z for each W; draws + 1 if none."""
    low, high = np.full(len(wrong), -1, dtype=np.int64), draws - wrong + 1
    slack = 1e-9 * max(1.0, abs(observed))

    def narrow(correct: IntArray) -> None:
        nonlocal low, high
        reached = _score(correct, wrong, draws, ratio, spared) >= observed - slack
        inside = (low < correct) & (correct < high)
        high = np.where(inside & reached, correct, high)
        low = np.where(inside & ~reached, correct, low)

    near = _near_critical(wrong, draws, ratio, spared, observed)
    narrow(near)
    narrow(np.where(high == near, near - 1, near + 1))
    while np.any(high - low > 1):
        narrow((low + high) // 2)
    high = np.where(high > draws - wrong, draws + 1, high)
    # `high` is C*, the fewest right guesses with z ≥ observed z for each number W of wrong guesses.
    # Callers group values of W and use the C* of the smallest W for the whole group, so C* must
    # rise with W. A running minimum, from the largest W down, undoes rounding errors that break
    # this order.
    return np.asarray(np.minimum.accumulate(high[::-1])[::-1], dtype=np.int64)


def _near_critical(
    wrong: IntArray, draws: int, ratio: float, spared: float, observed: float
) -> IntArray:
    """Return an approximation of `_critical_correct`, where its exact search begins."""
    even = ratio * wrong + spared * draws
    correct = np.clip(even, 0, draws - wrong)
    for _ in range(_FIXED_POINT_STEPS):  # the spread changes little with C
        spread = _spread(correct, wrong, draws, ratio, spared)
        correct = np.clip(even + observed * spread, 0, draws - wrong)
    return np.asarray(np.ceil(correct), dtype=np.int64)
