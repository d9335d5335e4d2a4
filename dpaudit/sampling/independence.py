"""Whether the draws of a mechanism can be independent of each other (docs/method.md §11).

Looked at are learning draws, which certify nothing. What independent draws cannot do is an error;
what they hardly ever do is a warning with its p-value.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.errors import MechanismError
from dpaudit.outcomes import Column, KeyArray, Outcomes
from dpaudit.outcomes.units import ELAPSED
from dpaudit.sampling.chunks import Head
from dpaudit.stats.dependence import coincidence, ljung_box, repeats
from dpaudit.stats.game import Game, p_value
from dpaudit.stats.order import mid_ranks
from dpaudit.wording import shortened

# How likely a coincidence may be, at most, to count as none.
IMPOSSIBLE = 1e-12
_FIRST = 16
# Draws that are looked at, at most, of those to learn from and of the first ones of blocks.
_DRAWS = 20_000
# At most so many correct mechanisms are warned about, by all the checks that can warn together: one
# output for each input, serial dependence, and calls that differ (while draws are kept, while they
# are counted to learn from, while certifying, and in draws that are made to look further).
WARNED, CHECKS = 1e-4, 6
# What may be so of a mechanism with one output for each input, unless new processes give it, too.
STORED = "returns a stored result"
# Serial dependence: columns looked at, at most; lags; draws of one series, at least.
_COLUMNS, _LAGS, _LEAST = 4, 10, 1_000
# The tail of Ljung-Box is heavier than that of its limit (measured: some 12 times at 2e-5).
_HEAVIER = 100.0
# One value in so large a share of the draws leaves too few others for a test that is only
# asymptotically exact.
_NEARLY_ALL = 0.9
_REMEDY = "use one generator for all calls and never reset it, or take rng as a parameter"


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Draws in an order in which they should be independent: of one input, or in turns."""

    words: str
    keys: KeyArray
    rows: NDArray[np.intp]


class DependentDrawsError(MechanismError):
    """The draws repeat or differ as independent draws cannot."""


def check_uncached(name: str, functions: Sequence[Any]) -> None:
    """Raise MechanismError for a function that returns again what it returned before."""
    for function in functions:
        if hasattr(function, "cache_info") and hasattr(function, "cache_clear"):
            raise MechanismError(
                f"{name} is wrapped by functools.cache or lru_cache, so all draws repeat the "
                "first; audit the function inside (its attribute __wrapped__)"
            )


def check_independence(
    draws: SelectionDraws,
    blocks: Sequence[int],
    point: ProfilePoint,
    level: float = WARNED / CHECKS,
) -> list[str]:
    """Return warnings about draws, made in blocks of these sizes, that do not look independent.

    point: what is claimed.  level: how likely a warning of one check may be for independent draws.
    Raises MechanismError for what independent draws cannot be expected to do even once.
    """
    draws = beginning(draws)
    keys = draws.outcomes.keys()
    _check_blocks(keys, draws.is_d1, blocks)
    every = list(series_of("draws", keys, draws.is_d1))
    for series in every:
        _check_repeats(series)
    warnings = _constant(draws, keys, point, level)
    p, words = least_serial(draws.outcomes, draws.is_d1, every)
    if p <= level:
        warnings.append(
            f"{words}, but every bound is for independent draws; does the mechanism keep state "
            "between calls, or use a fixed sequence in place of a generator?"
        )
    return warnings


def check_heads(draws: SelectionDraws, heads: Sequence[Head]) -> None:
    """Raise MechanismError when blocks of certification begin with what was drawn before: a process
    with a copy of a generator, which starts late, draws what another has drawn long ago."""
    draws = beginning(draws)
    keys = np.concatenate([draws.outcomes.keys(), *(head.keys for head in heads)])[: 2 * _DRAWS]
    is_d1 = np.concatenate([draws.is_d1, *(head.is_d1 for head in heads)])[: 2 * _DRAWS]
    for series in series_of("draws", keys, is_d1):
        _check_repeats(series)


def beginning(draws: SelectionDraws) -> SelectionDraws:
    """Return as many of the draws as are looked at."""
    return draws if draws.size <= _DRAWS else draws.take(slice(_DRAWS))


def series_of(
    what: str,
    keys: KeyArray,
    is_d1: NDArray[np.bool_],
    *,
    in_turns: bool = True,
    but: Container[str] = (),
) -> Iterator[Series]:
    """Yield draws in turns, equal only when their inputs are, and those of each input but some."""
    if in_turns:
        yield Series(what, np.where(is_d1, keys, ~keys), np.arange(len(keys)))
    for name, arm in (("d1", is_d1), ("d2", ~is_d1)):
        if name not in but:
            rows = np.flatnonzero(arm)
            yield Series(f"{what} of {name}", keys[rows], rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Keys of a block in the order of the draws, and those of each input by itself."""

    keys: KeyArray
    is_d1: NDArray[np.bool_]
    by_arm: tuple[KeyArray, KeyArray]


def _check_blocks(keys: KeyArray, is_d1: NDArray[np.bool_], blocks: Sequence[int]) -> None:
    """Raise when one block begins as another does: the state of a generator was copied."""
    ends = np.cumsum(blocks)[:-1]
    ends = ends[ends < len(keys)]
    parts = [
        _Block(part, arms, (part[arms], part[~arms]))
        for part, arms in zip(np.split(keys, ends), np.split(is_d1, ends), strict=True)
    ]
    longest = max(parts, key=lambda part: len(part.keys))
    log_chances = [math.log(coincidence(arm)) for arm in longest.by_arm]
    limit = math.log(IMPOSSIBLE) - math.log(3 * len(parts) ** 2)
    for (first, one), (second, other) in combinations(enumerate(parts, start=1), 2):
        if _log_chance_alike(one, other, log_chances) < limit:
            raise DependentDrawsError(
                f"block {second} of the draws repeats block {first}, which independent draws "
                "never do. The cause may be a fixed seed inside the mechanism, a cache, or a "
                f"copied generator state; {_REMEDY}"
            )


def _log_chance_alike(one: _Block, other: _Block, log_chances: Sequence[float]) -> float:
    """Return the log of the chance of two blocks being as alike as they are; 0 when they differ."""
    least = 0.0
    for first, second, log_chance in zip(one.by_arm, other.by_arm, log_chances, strict=True):
        if _begin_alike(first, second):
            least = min(least, min(len(first), len(second)) * log_chance)
    size = min(len(one.keys), len(other.keys))
    # Calls in turns, of the inputs that coins picked: alike where these are.
    same = one.is_d1[:size] == other.is_d1[:size]
    if _begin_alike(one.keys[:size][same], other.keys[:size][same]):
        d1 = int((one.is_d1[:size] & same).sum())
        d2 = int(same.sum()) - d1
        least = min(least, d1 * log_chances[0] + d2 * log_chances[1])
    return least


def _begin_alike(one: KeyArray, other: KeyArray) -> bool:
    size = min(len(one), len(other))
    few = min(size, _FIRST)  # nearly all blocks differ in these
    return np.array_equal(one[:few], other[:few]) and np.array_equal(one[:size], other[:size])


def _check_repeats(series: Series) -> None:
    """Raise when draws repeat those some way before them: a generator has come round."""
    chance, lag = repeats(series.keys)
    if chance < IMPOSSIBLE:
        raise DependentDrawsError(
            f"{series.words} repeat those {lag:,} before them far more often than independent "
            "draws of the same distribution do. The cause may be a generator with a short period, "
            "a generator copied into several processes, reused noise, or a seed that is set "
            f"again; {_REMEDY}"
        )


def _constant(
    draws: SelectionDraws, keys: KeyArray, point: ProfilePoint, level: float
) -> list[str]:
    """Warn of two inputs with an output each, where that refutes the claim by itself."""
    d1, d2 = np.flatnonzero(draws.is_d1), np.flatnonzero(~draws.is_d1)
    if len(d1) == 0 or len(d2) == 0 or keys[d1[0]] == keys[d2[0]]:
        return []
    if any((keys[rows] != keys[rows[0]]).any() for rows in (d1, d2)):
        return []
    game = Game(draws.size, 0, draws.size, two_guesses=True, abstains=False)
    if p_value(game, point.epsilon, point.delta, WARNED) > level:
        return []
    one, other = map(shortened, draws.outcomes.words([int(d1[0]), int(d2[0])]))
    return [
        f"all {len(d1):,} learning draws of d1 gave {one}, all {len(d2):,} of d2 gave {other}: "
        f"either the mechanism is not random, and then the violation holds; or it {STORED} (a "
        "cache), and then its draws are not independent: empty the cache before each draw"
    ]


def least_serial(
    outcomes: Outcomes, is_d1: NDArray[np.bool_], every: Sequence[Series]
) -> tuple[float, str]:
    """Return the p-value of "draws do not depend on those just before them" (of the most telling of
    several tests, corrected for their number), and what depends on what, in words."""
    tests = [
        (ljung_box(scores[series.rows], _LAGS), series, column)
        for column in filter(is_telling, outcomes.columns[:_COLUMNS])
        for scores in [_scores(column, is_d1)]
        for series in every
        if len(series.rows) >= _LEAST and _varies(numbers(column)[series.rows])
    ]
    if not tests:
        return 1.0, ""
    p, series, column = min(tests, key=lambda test: test[0])
    p = min(1.0, _HEAVIER * len(tests) * p)
    test = f"{column.name}: Ljung–Box p {f'= {p:.1e}' if p >= 1e-300 else '< 1e-300'}"
    return p, f"{series.words} depend on the ones just before them ({test})"


def is_telling(column: Column) -> bool:
    """Whether a column varies enough to show that draws hang together."""
    # How busy the machine is lasts for more than a draw.
    return column.name != ELAPSED and _varies(numbers(column))


def _varies(values: NDArray[np.float64]) -> bool:
    """Whether no value is nearly all of them: the tests are for many values, not for rare ones.
    One that is must be the median."""
    if len(values) == 0:
        return True
    half = len(values) // 2
    median = np.partition(values, half)[half]
    equal = np.isnan(values) if np.isnan(median) else values == median
    return bool(np.count_nonzero(equal) <= _NEARLY_ALL * len(values))


def _scores(column: Column, is_d1: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return ranks among the draws of the same input, as shares: alike for both inputs."""
    values = numbers(column)
    scores = np.empty(len(values))
    for arm in (is_d1, ~is_d1):
        scores[arm] = mid_ranks(values[arm]) / max(1, int(arm.sum()))
    return scores


def numbers(column: Column) -> NDArray[np.float64]:
    """Return entries as numbers; labels as further ones, beyond all others, in alphabetical order:
    their codes would not do, which tell which of them was seen first."""
    if column.codes is None:
        return column.numbers
    places = np.empty(len(column.labels), dtype=np.float64)
    places[np.argsort(np.array(column.labels, dtype=object))] = np.arange(len(column.labels))
    beyond = np.finfo(float).max / (1 + np.append(0.0, places)[column.codes])
    return np.where(column.codes > 0, beyond, column.numbers)
