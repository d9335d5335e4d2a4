"""The score test of c ≤ e^ε w + s on counts of correct and wrong guesses (docs/method.md §2).

s = hδ is the share of draws that the claimed δ excuses. The null is composite: w is a nuisance
parameter, and the p-value is a supremum over an interval that contains w with probability 1 - γ
(Berger & Boos 1994).
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

# The grid of w: points on the interval, and points between two neighbours around a peak.
_POINTS = 65
_REFINED = 17
# Finer points are added around at most this many peaks.
_PEAKS = 8
# Number of points evaluated together, which limits memory.
_AT_ONCE = 128
# The tail as a function of w jumps like the teeth of a saw (`_points_between`). There are no teeth
# if the number of abstentions has at least this standard deviation.
_SMOOTH = 5.0
# No tooth is missed between points at most `_NEAR` standard deviations apart, or at most `_FAR`
# standard deviations and this part of a tooth apart.
_NEAR, _FAR, _PART = 0.4, 1.0, 0.25
# The supremum is raised by this relative amount, for values between points. (Measured on 1,880
# random counts of 20 to 10⁷ draws, each against 4,001 points: at most 0.00098 missed, 99 % below
# 0.00012.)
_MISSED = 1e-3
# Probability cut off at each end of a sum over W.
_TRUNCATED = 1e-13
# Sums over W of more terms than this are grouped, and each group is rounded up to its largest term.
TERMS = 512
# Terms of a sum with a smaller weight are left out; together they weigh less than `_TRUNCATED`.
_NEGLIGIBLE = 1e-17
# Cost of an incomplete beta function in terms of a `_Path` (measured: 10 for few draws, 40 for
# many).
_COST_OF_BETA = 30
# For groups of at most this many W, adding the masses of all W is faster than computing two tails.
_SMALL_GROUP = 40
# With more draws, differences of log-factorials lose too many digits.
_DRAWS_BY_LOGS = 10**9
# Number of fixed-point steps that predict C* before it is searched for.
_ROUNDS = 2
# Arguments of logarithms and divisors are at least this.
_LEAST = 1e-300
# Every eighth point of w is evaluated first: if the p-value is large there, the rest is not needed.
_GLANCE = 8
# Claims with a larger ε are not tested, since e^(2ε) must fit in a float; their p-value is 1.
_LARGEST_EPSILON = 300.0
# Number of cached tables of masses, which tests of the same counts at another ε use again. (The
# largest, of 65 points and 512 groups, takes a quarter of a megabyte.)
_CACHED = 16


# Compared and hashed by identity, as the caches need: comparing tables would compare all entries.
@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """Values of w, and the probability under Bin(draws, w) of each group of W.

    points: (points,); edges: (groups + 1,), first W of each group; mass: (points, groups).
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
        """Number of values of W in a group."""
        return int(self.edges[1] - self.edges[0])

    def take(self, rows: slice | NDArray[np.bool_]) -> _Grid:
        return _Grid(self.points[rows], self.edges, self.mass[rows])


@lru_cache(maxsize=_CACHED)
def _even_grid(draws: int, low: float, high: float, terms: int) -> _Grid:
    """Return a grid of evenly spaced w on an interval."""
    edges = _group_edges(*_wrong_range(draws, low, high), terms)
    return _Grid.over(np.linspace(low, high, _POINTS), edges, draws)


@lru_cache(maxsize=_CACHED)
def _finer_grid(grid: _Grid, draws: int, low: float, high: float) -> _Grid:
    """Return a grid of points strictly inside an interval, with the groups of another grid."""
    return _Grid.over(np.linspace(low, high, _REFINED)[1:-1], grid.edges, draws)


class ScoreTest:
    """A test of observed guesses against any (ε, s).

    Parameters
    ----------
    correct, wrong : int
        Numbers of right and of wrong guesses.
    draws : int
        Number of all draws, with and without a guess.
    gamma : float
        The share of the error probability that pays for the interval of w, in (0, 1).
    terms : int
        Maximal number of terms in a sum over W. Fewer are faster, and make p larger.
    """

    def __init__(
        self, correct: int, wrong: int, draws: int, gamma: float, terms: int = TERMS
    ) -> None:
        self._correct, self._wrong, self.draws, self.gamma = correct, wrong, draws, gamma
        self._terms = terms
        self._low, self._high = clopper_pearson_interval(wrong, draws, gamma)

    def score(self, epsilon: float, spared: float) -> float:
        """Return z = (C - e^ε W - sN) / sd, which falls as ε or s rises.

        Parameters
        ----------
        epsilon, spared : float
            ε ≥ 0 in nats, s = hδ in [0, 1).

        Returns
        -------
        float
            z, with the sd at the constrained maximum likelihood estimate.
        """
        counts = np.array([self._correct]), np.array([self._wrong])
        return float(_score(*counts, self.draws, math.exp(epsilon), spared)[0])

    def p_value(self, epsilon: float, spared: float, enough: float = 1.0) -> float:
        """Return the p-value of c ≤ e^ε w + s.

        Parameters
        ----------
        epsilon, spared : float
            ε ≥ 0 in nats, s = hδ in [0, 1).
        enough : float, default 1
            Stop as soon as p is known to exceed this; a lower bound of p is then returned.

        Returns
        -------
        float
            γ + sup over w of Pr[score ≥ observed], c on the boundary; in [γ, 1], rounded up. Under
            the null Pr[p ≤ u] ≤ u for every u.
        """
        tail = self._tail(epsilon, spared)
        if tail is None:
            return 1.0
        largest = 0.0
        for largest in tail.rising():
            if self._to_p(largest) > enough:
                return self._to_p(largest)
        return self._to_p(largest * (1 + _MISSED))

    def _to_p(self, largest: float) -> float:
        p = self.gamma + largest + 3 * _TRUNCATED
        return 1.0 if math.isnan(p) else min(1.0, p)

    def _tail(self, epsilon: float, spared: float) -> _Tail | None:
        """Return the tail probability as a function of w; None if no counts refute (ε, s)."""
        if epsilon > _LARGEST_EPSILON or spared >= 1:
            return None
        ratio = math.exp(epsilon)
        grid = self._grid_below((1 - spared) / (1 + ratio))
        critical = _critical_correct(
            grid.edges[:-1], self.draws, ratio, spared, self.score(epsilon, spared)
        )
        path = _Path.between(critical, grid.edges, self.draws)
        return _Tail(grid, critical, path, self.draws, ratio, spared)

    def _grid_below(self, cap: float) -> _Grid:
        """Return the grid of the interval of w, cut at the largest w of the null."""
        low, high = min(self._low, cap), min(self._high, cap)
        return _even_grid(self.draws, low, high, self._terms)


@dataclass(frozen=True, slots=True, eq=False)
class _Path:
    """Steps from the tail of Bin(n, q) at k in one group of W to the tail in the next group.

    From group to group, n falls and k rises.

    Pr[Bin(n, q) ≥ k] = Pr[Bin(n - 1, q) ≥ k] + q Pr[Bin(n - 1, q) = k - 1], and
    Pr[Bin(n, q) ≥ k] = Pr[Bin(n, q) ≥ k + 1] + Pr[Bin(n, q) = k]: the tails of two groups differ by
    a few such terms. All terms are positive, so that sums lose no digits.

    starts: (groups - 1,), index of the first term after each group but the last. sizes, hits,
    falls: (terms,), n and k of each term, and whether it is multiplied by q. last: k and n of the
    last group."""

    starts: IntArray
    sizes: IntArray
    hits: IntArray
    falls: NDArray[np.bool_]
    last: tuple[int, int]

    @classmethod
    def between(cls, critical: IntArray, edges: IntArray, draws: int) -> _Path | None:
        """Return the path through all groups that can reach C*; None if computing each tail by
        itself is faster."""
        if draws > _DRAWS_BY_LOGS:
            return None
        trials = draws - edges[:-1]
        groups = int(np.count_nonzero(critical <= trials))  # the first ones: n falls and C* rises
        if groups == 0:
            return None
        n, k = trials[:groups], np.maximum(critical[:groups], 0)
        step = int(edges[1] - edges[0])
        terms = step + np.diff(k)
        if np.sum(terms) > _COST_OF_BETA * groups:
            return None
        starts = np.cumsum(terms) - terms
        place = np.arange(np.sum(terms)) - np.repeat(starts, terms)
        falls = place < step
        of, at = np.repeat(n[:-1], terms), np.repeat(k[:-1], terms) + place
        sizes = of - np.minimum(place + 1, step)
        hits = np.where(falls, at - place - 1, at - step)
        return cls(starts, sizes, hits, falls, (int(k[-1]), int(n[-1])))

    def sums(self, share: FloatArray, rest: FloatArray, mass: FloatArray) -> FloatArray:
        """Return Σ mass · tail over the groups, (points,).

        share, rest: (points,), q and 1 - q; mass: (points, groups).
        """
        terms = np.exp(_log_masses(self.hits, self.sizes, share, rest, self.falls))
        # A term is part of the tails of all groups before it.
        before = np.cumsum(mass[:, : len(self.starts) + 1], axis=1)
        steps = np.add.reduceat(terms, self.starts, axis=1)
        sums = np.einsum("ij,ij->i", steps, before[:, :-1])
        return np.asarray(sums + before[:, -1] * upper_tail(*self.last, share), dtype=float)


@dataclass(frozen=True, slots=True)
class _Tail:
    """Pr[score ≥ observed] as a function of w, with c = ratio · w + spared.

    critical: for the first W of every group, the smallest C whose score reaches the observed one.
    """

    grid: _Grid
    critical: IntArray
    path: _Path | None
    draws: int
    ratio: float
    spared: float

    def rising(self) -> Iterator[float]:
        """Yield the largest value on every eighth point, on all points, and on finer points around
        the peaks, too; the last is the supremum."""
        values = np.empty(len(self.grid.points))
        glanced = np.arange(len(values)) % _GLANCE == 0
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
        """Return the points of the grid, with points added where teeth could be missed, and all
        values."""
        points = self.grid.points
        added = _points_between(points, self.draws, self.ratio, self.spared, self.grid.step)
        if len(added) == 0:
            return points, values
        points, values = np.append(points, added), np.append(values, self._over(added))
        order = np.argsort(points)
        return points[order], values[order]

    def _over(self, points: FloatArray) -> FloatArray:
        parts = np.array_split(points, math.ceil(len(points) / _AT_ONCE))
        edges = self.grid.edges
        return np.concatenate([self._at(_Grid.over(part, edges, self.draws)) for part in parts])

    def _at(self, grid: _Grid) -> FloatArray:
        """Return an upper bound of Σ_W Bin(W; N, w) Pr[Bin(N - W, c/(1-w)) ≥ C*(W)] for every w.

        In a group, the second factor is largest at the first W, since C* rises and N - W falls.
        """
        w = grid.points
        odds = np.array([self.ratio * w + self.spared, 1 - self.spared - (1 + self.ratio) * w])
        share, rest = np.clip(odds / np.maximum(1 - w, _LEAST), 0.0, 1.0)
        if self.path is not None:
            return self.path.sums(share, rest, grid.mass)
        possible = self.critical <= self.draws - grid.edges[:-1]
        row, group = np.nonzero((grid.mass > _NEGLIGIBLE) & possible)
        critical = np.maximum(self.critical[group], 0).astype(float)
        others = (self.draws - grid.edges[group]).astype(float)
        tails = np.ones(len(group))
        some = critical > 0
        tails[some] = betainc(critical[some], (others - critical)[some] + 1, share[row[some]])
        sums = np.bincount(row, grid.mass[row, group] * tails, minlength=len(w))
        return np.asarray(sums, dtype=float)


def _log_masses(
    hits: IntArray,
    trials: IntArray | int,
    share: FloatArray,
    rest: FloatArray,
    extra: NDArray[np.bool_] | int = 0,
) -> FloatArray:
    """Return log (share^extra · Pr[Bin(trials, share) = hits]), (shares, counts).

    rest: 1 - share. extra: 0 or 1, by count. hits = -1 has probability 0.
    """
    misses = trials - hits
    logs = np.multiply.outer(np.log(np.maximum(share, _LEAST)), hits + extra)
    logs += np.multiply.outer(np.log(np.maximum(rest, _LEAST)), misses)
    logs += gammaln(np.add(trials, 1)) - gammaln(hits + 1) - gammaln(misses + 1)
    return np.asarray(logs, dtype=float)


def _peaks(values: FloatArray) -> IntArray:
    """Return the indices of local maxima near which the supremum may lie, highest first.

    A parabola through three points rises above the middle point by at most an eighth of the second
    difference; twice that is allowed.
    """
    around = np.pad(values, 1, mode="edge")
    bend = 2 * values - around[:-2] - around[2:]
    reach = values + bend / 4
    # A NaN is not below anything: it counts as a peak, and makes the supremum NaN.
    below = (values < around[:-2]) | (values < around[2:]) | (reach < np.max(values))
    peaks = np.flatnonzero(~below)
    return np.asarray(peaks[np.argsort(-reach[peaks])][:_PEAKS], dtype=np.int64)


def _points_between(
    points: FloatArray, draws: int, ratio: float, spared: float, step: int
) -> FloatArray:
    """Return the points of w to add, so that no tooth of the tail lies between two points.

    On the boundary of the null a fixed share of the guesses is wrong. So, given the number of
    abstentions, the tail jumps whenever W* falls by a step: every (1 + ratio) · step abstentions,
    or every step / N in w."""
    finer = points
    while np.any(coarse := _coarse(finer, draws, ratio, spared, step)):
        finer = np.sort(np.append(finer, ((finer[:-1] + finer[1:]) / 2)[coarse]))
    return np.empty(0) if finer is points else np.setdiff1d(finer, points)


def _coarse(
    points: FloatArray, draws: int, ratio: float, spared: float, step: int
) -> NDArray[np.bool_]:
    """Return whether a tooth could be missed, for each pair of neighbouring points."""
    rest = (1 + ratio) * np.maximum((1 - spared) / (1 + ratio) - points, 0.0)
    # A standard deviation of half a tooth smooths all teeth except that of the first wrong guess.
    smooth = np.sqrt(draws * rest[1:]) >= max(_SMOOTH, (1 + ratio) * step / 2)
    smooth &= draws * points[:-1] >= 1
    if smooth.all():
        return ~smooth
    # Twice the distance between square roots of probabilities is a distance in standard deviations.
    roots = np.sqrt([ratio * points + spared, points, rest])
    distance = 2 * math.sqrt(draws) * np.linalg.norm(np.diff(roots), axis=0)
    teeth = draws * np.diff(points) / step
    return np.asarray(~smooth & (distance > _NEAR) & ((distance > _FAR) | (teeth > _PART)))


def _wrong_range(draws: int, low: float, high: float) -> tuple[int, int]:
    """Return a range that contains W ~ Bin(draws, w) but for 2·10⁻¹³, for every w in [low,
    high]."""
    first = draws - _tail_quantile(_TRUNCATED, draws, 1 - low)
    return max(0, first), _tail_quantile(_TRUNCATED, draws, high)


def _tail_quantile(gamma: float, trials: int, probability: float) -> int:
    """Return the smallest f with Pr[Bin(trials, probability) > f] ≤ gamma."""

    def is_rare(count: int) -> bool:
        return bool(betainc(count + 1, trials - count, probability) <= gamma)

    return bisect_left(range(trials), True, key=is_rare)


def _group_edges(first: int, last: int, most: int) -> IntArray:
    """Return the edges of at most `most` groups of consecutive W, of equal size."""
    step = math.ceil((last - first + 1) / most)
    return np.append(np.arange(first, last + 1, step), last + 1).astype(np.int64)


def _score(
    correct: NDArray[Any], wrong: NDArray[Any], draws: int, ratio: float, spared: float
) -> FloatArray:
    """Return z = (C - e^ε W - sN) / sd, with the sd at the constrained maximum likelihood."""
    excess = correct - ratio * wrong - spared * draws
    return np.asarray(excess / _spread(correct, wrong, draws, ratio, spared), dtype=float)


def _spread(
    correct: NDArray[Any], wrong: NDArray[Any], draws: int, ratio: float, spared: float
) -> FloatArray:
    w = _constrained_wrong(correct, wrong, draws, ratio, spared)
    variance = ratio * w + spared + ratio**2 * w - spared**2
    # The variance is 0 if w = 0 and s = 0: no guess is expected then.
    return np.asarray(np.sqrt(np.maximum(draws * variance, _LEAST)), dtype=float)


def _constrained_wrong(
    correct: NDArray[Any], wrong: NDArray[Any], draws: int, ratio: float, spared: float
) -> FloatArray:
    """Return the w that maximises the trinomial likelihood on c = e^ε w + s, a root of a
    quadratic."""
    free = 1 - spared
    square = (1 + ratio) * ratio * draws
    linear = (correct + wrong) * ratio * free - (1 + ratio) * spared * (draws - correct)
    constant = wrong * spared * free
    root = (linear + np.sqrt(linear**2 + 4 * square * constant)) / (2 * square)
    return np.asarray(np.clip(root, 0.0, free / (1 + ratio)), dtype=float)


def _critical_correct(
    wrong: IntArray, draws: int, ratio: float, spared: float, observed: float
) -> IntArray:
    """Return the smallest C whose score reaches the observed score, by W; N + 1 if none does."""
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
    # C* rises with W. Rounding must not break this: the first term of a group is its upper bound.
    return np.asarray(np.minimum.accumulate(high[::-1])[::-1], dtype=np.int64)


def _near_critical(
    wrong: IntArray, draws: int, ratio: float, spared: float, observed: float
) -> IntArray:
    """Return an approximation of `_critical_correct`, where its search starts."""
    even = ratio * wrong + spared * draws
    correct = np.clip(even, 0, draws - wrong)
    for _ in range(_ROUNDS):  # the spread changes little with C
        spread = _spread(correct, wrong, draws, ratio, spared)
        correct = np.clip(even + observed * spread, 0, draws - wrong)
    return np.asarray(np.ceil(correct), dtype=np.int64)
