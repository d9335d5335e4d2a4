"""The score test of c ≤ e^ε w + s on counts of correct and wrong guesses (docs/method.md §2).

s = hδ is what the δ of a claim spares. The null is composite: w is a nuisance, over which the
p-value takes a supremum on an interval that holds it with probability 1 - γ (Berger & Boos 1994).
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

_POINTS = 65
_REFINED = 17
# At most so many of the highest points have finer ones around them.
_PEAKS = 8
# Points that are computed at a time.
_AT_ONCE = 128
# Abstentions whose standard deviation is at least this leave no teeth (`_coarse`).
_SMOOTH = 5.0
# Neighbours so near miss none, in standard deviations; nor do those that are as far as `_FAR` and
# no more than this part of a tooth apart.
_NEAR, _FAR, _PART = 0.4, 1.0, 0.25
# The supremum is raised by this part, for what lies between points. (Measured on 1,880 random
# counts of 20 to 10⁷ draws, each against 4,001 points: 0.00098 missed at most, 0.00012 at 99 %.)
_MISSED = 1e-3
_TRUNCATED = 1e-13
# Sums over W of more terms than this are taken in groups, each rounded up to its largest term.
TERMS = 512
# Terms of a sum that weigh less are left out; all of them together are below `_TRUNCATED`.
_NEGLIGIBLE = 1e-17
# What an incomplete beta function costs, in terms of a `_Path`: 10 for few draws, 40 for many.
_CHEAPER = 30
# Of groups of no more W than this, the masses of all are added up: quicker than two tails of each.
_FEW = 40
# Of more draws, differences of the logarithms of factorials have too few digits.
_DRAWS_BY_LOGS = 10**9
# So often C* is corrected before it is looked for.
_ROUNDS = 2
# No logarithm is taken of less, and nothing divided by less.
_LEAST = 1e-300
# Every this many points of w are tried first: a claim that they clear needs no other point.
_GLANCE = 8
_LARGEST = 300.0
# Tables of masses that are kept: tests of the same counts, or at another ε, ask for them again.
# (The largest, of 65 points and 512 groups, takes a quarter of a megabyte.)
_KEPT = 16


# Compared by identity: tables would be compared entry by entry, and are not hashable.
@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """Values of w, with the mass of Bin(draws, w) between the edges of groups of W."""

    points: FloatArray
    edges: IntArray
    mass: FloatArray

    @classmethod
    def over(cls, points: FloatArray, edges: IntArray, draws: int) -> _Grid:
        if edges[1] - edges[0] <= _FEW and draws <= _DRAWS_BY_LOGS:
            every = np.arange(edges[0], edges[-1])
            masses = np.exp(_log_masses(every, draws, points, 1 - points))
            return cls(points, edges, np.add.reduceat(masses, edges[:-1] - edges[0], axis=1))
        reached = upper_tail(edges[None, :], draws, points[:, None])
        return cls(points, edges, reached[:, :-1] - reached[:, 1:])

    @property
    def step(self) -> int:
        """How many W are in a group."""
        return int(self.edges[1] - self.edges[0])

    def take(self, rows: slice | NDArray[np.bool_]) -> _Grid:
        return _Grid(self.points[rows], self.edges, self.mass[rows])


@lru_cache(maxsize=_KEPT)
def _even_grid(draws: int, low: float, high: float, terms: int) -> _Grid:
    """Return the grid of an interval of w."""
    edges = _group_edges(*_wrong_range(draws, low, high), terms)
    return _Grid.over(np.linspace(low, high, _POINTS), edges, draws)


@lru_cache(maxsize=_KEPT)
def _finer_grid(grid: _Grid, draws: int, low: float, high: float) -> _Grid:
    """Return finer points between two of a grid, which are none of them, with its groups."""
    return _Grid.over(np.linspace(low, high, _REFINED)[1:-1], grid.edges, draws)


class ScoreTest:
    """Observed guesses, tested against any (ε, s); what does not depend on these is kept.

    Parameters
    ----------
    correct, wrong : int
        Guesses that were right, and that were not.
    draws : int
        All draws, those without a guess among them.
    gamma : float
        The share of the error probability that pays for the interval of w, in (0, 1).
    terms : int
        The most in a sum. Fewer are quicker, and make p larger.
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
            z, sd being that at the constrained maximum likelihood estimate.
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
            A supremum above it is not sought further, since the claim stands anyway.

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
        """Return what the supremum is taken of; None where nothing can be refuted."""
        # e^(2ε) still fits in a float; no number of draws would refute a larger claim either.
        if epsilon > _LARGEST or spared >= 1:
            return None
        ratio = math.exp(epsilon)
        grid = self._grid_below((1 - spared) / (1 + ratio))
        critical = _critical_correct(
            grid.edges[:-1], self.draws, ratio, spared, self.score(epsilon, spared)
        )
        path = _Path.between(critical, grid.edges, self.draws)
        return _Tail(grid, critical, path, self.draws, ratio, spared)

    def _grid_below(self, cap: float) -> _Grid:
        """Return the grid of the interval; an interval that the null leaves empty is its cap."""
        low, high = min(self._low, cap), min(self._high, cap)
        return _even_grid(self.draws, low, high, self._terms)


@dataclass(frozen=True, slots=True, eq=False)
class _Path:
    """From the tail of Bin(n, q) at k in a group of W to that in the next, as n falls and k rises.

    Pr[Bin(n, q) ≥ k] is Pr[Bin(n - 1, q) ≥ k] and q Pr[Bin(n - 1, q) = k - 1], and also
    Pr[Bin(n, q) ≥ k + 1] and Pr[Bin(n, q) = k]: between two groups lie a few such terms, each
    a binomial probability or q times one. All are positive, so that sums lose no digits.

    starts: the first term after every group but the last. sizes, hits: n and k of every term.
    falls: whether it is multiplied by q. last: k and n of the last group.
    """

    starts: IntArray
    sizes: IntArray
    hits: IntArray
    falls: NDArray[np.bool_]
    last: tuple[int, int]

    @classmethod
    def between(cls, critical: IntArray, edges: IntArray, draws: int) -> _Path | None:
        """Return the path through all groups that can reach C*; None where it takes longer than
        the tails by themselves."""
        if draws > _DRAWS_BY_LOGS:
            return None
        trials = draws - edges[:-1]
        groups = int(np.count_nonzero(critical <= trials))  # the first ones: n falls and C* rises
        if groups == 0:
            return None
        n, k = trials[:groups], np.maximum(critical[:groups], 0)
        step = int(edges[1] - edges[0])
        terms = step + np.diff(k)
        if np.sum(terms) > _CHEAPER * groups:
            return None
        starts = np.cumsum(terms) - terms
        place = np.arange(np.sum(terms)) - np.repeat(starts, terms)
        falls = place < step
        of, at = np.repeat(n[:-1], terms), np.repeat(k[:-1], terms) + place
        sizes = of - np.minimum(place + 1, step)
        hits = np.where(falls, at - place - 1, at - step)
        return cls(starts, sizes, hits, falls, (int(k[-1]), int(n[-1])))

    def sums(self, share: FloatArray, rest: FloatArray, mass: FloatArray) -> FloatArray:
        """Return Σ mass · tail over the groups, for every q. rest: 1 - q; mass: a row for each."""
        terms = np.exp(_log_masses(self.hits, self.sizes, share, rest, self.falls))
        # A term belongs to the tails of all groups before it.
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
        """Yield the largest value on a few points; on all; and on finer ones around the highest of
        them too, which is the supremum."""
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
            np.concatenate([one.points for one in nearby]),
            self.grid.edges,
            np.concatenate([one.mass for one in nearby]),
        )
        yield float(max(np.max(values), np.max(self._at(finer))))

    def _resolved(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the points of the grid, others between them where need be, and their values."""
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
        """Return, for every w, an upper bound of Σ_W Bin(W; N, w) Pr[Bin(N - W, c/(1-w)) ≥ C*(W)].

        Within a group the second factor is largest at its first W: C* rises and N - W falls.
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
    more: NDArray[np.bool_] | int = 0,
) -> FloatArray:
    """Return log Pr[Bin(trials, share) = hits], a row for each share and a column for each count.

    rest: 1 - share. more: by this power of the share the result is multiplied. -1 hits: never.
    """
    misses = trials - hits
    logs = np.multiply.outer(np.log(np.maximum(share, _LEAST)), hits + more)
    logs += np.multiply.outer(np.log(np.maximum(rest, _LEAST)), misses)
    logs += gammaln(np.add(trials, 1)) - gammaln(hits + 1) - gammaln(misses + 1)
    return np.asarray(logs, dtype=float)


def _peaks(values: FloatArray) -> IntArray:
    """Return where the supremum may be: no point beside is higher, and one between may be highest.

    Between points a parabola rises above the middle one by an eighth of its second difference, at
    most; twice that is allowed for.
    """
    around = np.pad(values, 1, mode="edge")
    bend = 2 * values - around[:-2] - around[2:]
    reach = values + bend / 4
    # NaN is below nothing: it counts as a peak, and makes the supremum NaN.
    below = (values < around[:-2]) | (values < around[2:]) | (reach < np.max(values))
    peaks = np.flatnonzero(~below)
    return np.asarray(peaks[np.argsort(-reach[peaks])][:_PEAKS], dtype=np.int64)


def _points_between(
    points: FloatArray, draws: int, ratio: float, spared: float, step: int
) -> FloatArray:
    """Return the points of w to add where the tail has teeth that `points` would miss.

    Of the draws that guess, a fixed share is wrong, so that given the abstentions the tail jumps
    when these let W* fall by a step: at every (1 + ratio) · step of them, or step / N of w.
    """
    finer = points
    while np.any(coarse := _coarse(finer, draws, ratio, spared, step)):
        finer = np.sort(np.append(finer, ((finer[:-1] + finer[1:]) / 2)[coarse]))
    return np.empty(0) if finer is points else np.setdiff1d(finer, points)


def _coarse(
    points: FloatArray, draws: int, ratio: float, spared: float, step: int
) -> NDArray[np.bool_]:
    """Return between which neighbours a tooth could be missed."""
    rest = (1 + ratio) * np.maximum((1 - spared) / (1 + ratio) - points, 0.0)
    # A standard deviation of half a tooth smooths all out but that of the first wrong guess.
    smooth = np.sqrt(draws * rest[1:]) >= max(_SMOOTH, (1 + ratio) * step / 2)
    smooth &= draws * points[:-1] >= 1
    if smooth.all():
        return ~smooth
    # Twice the distance of the square roots of probabilities is in standard deviations.
    roots = np.sqrt([ratio * points + spared, points, rest])
    apart = 2 * math.sqrt(draws) * np.linalg.norm(np.diff(roots), axis=0)
    teeth = draws * np.diff(points) / step
    return np.asarray(~smooth & (apart > _NEAR) & ((apart > _FAR) | (teeth > _PART)))


def _wrong_range(draws: int, low: float, high: float) -> tuple[int, int]:
    """Return a range of W that all but 2·10⁻¹³ of Bin(draws, w) falls in, for w in [low, high]."""
    first = draws - _tail_quantile(_TRUNCATED, draws, 1 - low)
    return max(0, first), _tail_quantile(_TRUNCATED, draws, high)


def _tail_quantile(gamma: float, trials: int, probability: float) -> int:
    """Return the smallest f with Pr[Bin(trials, probability) > f] ≤ gamma."""

    def is_rare(count: int) -> bool:
        return bool(betainc(count + 1, trials - count, probability) <= gamma)

    return bisect_left(range(trials), True, key=is_rare)


def _group_edges(first: int, last: int, most: int) -> IntArray:
    """Return edges of groups of consecutive W, each of one value when there are few."""
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
    # No variance: w = 0 is certain and nothing is spared, so that no guess at all is expected.
    return np.asarray(np.sqrt(np.maximum(draws * variance, _LEAST)), dtype=float)


def _constrained_wrong(
    correct: NDArray[Any], wrong: NDArray[Any], draws: int, ratio: float, spared: float
) -> FloatArray:
    """Return the w that maximises the trinomial likelihood on c = e^ε w + s: a quadratic."""
    free = 1 - spared
    square = (1 + ratio) * ratio * draws
    linear = (correct + wrong) * ratio * free - (1 + ratio) * spared * (draws - correct)
    constant = wrong * spared * free
    root = (linear + np.sqrt(linear**2 + 4 * square * constant)) / (2 * square)
    return np.asarray(np.clip(root, 0.0, free / (1 + ratio)), dtype=float)


def _critical_correct(
    wrong: IntArray, draws: int, ratio: float, spared: float, observed: float
) -> IntArray:
    """Return, for every W, the smallest C whose score reaches the observed one (N + 1: none)."""
    low, high = np.full(len(wrong), -1, dtype=np.int64), draws - wrong + 1
    slack = 1e-9 * max(1.0, abs(observed))

    def look_at(correct: IntArray) -> None:
        nonlocal low, high
        reached = _score(correct, wrong, draws, ratio, spared) >= observed - slack
        inside = (low < correct) & (correct < high)
        high = np.where(inside & reached, correct, high)
        low = np.where(inside & ~reached, correct, low)

    near = _near_critical(wrong, draws, ratio, spared, observed)
    look_at(near)
    look_at(np.where(high == near, near - 1, near + 1))
    while np.any(high - low > 1):
        look_at((low + high) // 2)
    high = np.where(high > draws - wrong, draws + 1, high)
    # C* rises with W; were a later one smaller, a group's first term would be no upper bound.
    return np.asarray(np.minimum.accumulate(high[::-1])[::-1], dtype=np.int64)


def _near_critical(
    wrong: IntArray, draws: int, ratio: float, spared: float, observed: float
) -> IntArray:
    """Return, for every W, about the smallest C whose score reaches the observed one."""
    even = ratio * wrong + spared * draws
    correct = np.clip(even, 0, draws - wrong)
    for _ in range(_ROUNDS):  # the spread hardly changes with C
        spread = _spread(correct, wrong, draws, ratio, spared)
        correct = np.clip(even + observed * spread, 0, draws - wrong)
    return np.asarray(np.ceil(correct), dtype=np.int64)
