"""Tests of the assumption that the draws of a mechanism are independent (docs/method.md §11).

A check returns warnings in words if chance rarely explains the draws, and raises
DependentDrawsError if chance is excluded (p < 1e-12). The checks find cached or repeated draws,
copied generators, and noise that many draws share. `homogeneity.py` compares calls and blocks,
`between_processes.py` processes.
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
from dpaudit.outcomes.columns import ELAPSED
from dpaudit.sampling.chunks import Head
from dpaudit.stats.binomial import clopper_pearson_upper
from dpaudit.stats.dependence import (
    collision_bound,
    ljung_box,
    repetition_p_value,
)
from dpaudit.stats.game import Game, p_value
from dpaudit.stats.order import mid_ranks
from dpaudit.wording import shortened

BoolArray = NDArray[np.bool_]

# A check with a p-value below this raises an error; a larger p-value leads to a warning at most.
IMPOSSIBLE = 1e-12
# WARNING_ALPHA: probability that an audit of a correct mechanism gets a warning from any of its
#     checks.
# CHECKS: number of checks that share this probability equally. One checks whether each input gives
#     only one output, one checks for serial dependence. Four check for differences between calls:
#     in buffered learning draws, counted learning draws, certification, and further draws.
WARNING_ALPHA, CHECKS = 1e-4, 6
# Phrase of the warning about caches, by which `dpaudit.auditing` finds the warning. It drops the
# warning if the draws of new processes agree, since a new process starts with an empty cache.
STORED = "returns a stored result"
# Largest number of learning draws that are tested for repeated and dependent draws. `check_heads`
# tests these learning draws together with the first draws of counted blocks: at most twice this
# number in total.
TESTED_DRAWS = 20_000
# Number of draws at the start of each block that are compared first, when the audit checks whether
# two blocks of draws are equal. Nearly all independent blocks differ in these draws; only if two
# blocks do not, all of their draws are compared.
_COMPARED_FIRST = 16
# Limits of the Ljung-Box test of serial dependence.
# _MAX_SERIES_COLUMNS: largest number of columns of the output that are tested.
# _MAX_LAG: autocorrelations at the lags 1 to 10 enter the test statistic.
# _MIN_SERIES_DRAWS: least number of draws in a series, since the test is asymptotic.
_MAX_SERIES_COLUMNS, _MAX_LAG, _MIN_SERIES_DRAWS = 4, 10, 1_000
# p-values of the Ljung-Box test are multiplied by this factor, since independent draws have small
# p-values more often than the χ² limit says (measured: 12 times as often at p = 2e-5).
_TAIL_FACTOR = 100.0
# A series is not tested if one value has more than this share of its draws: the test is asymptotic,
# and needs variation.
_MAX_SHARE_OF_VALUE = 0.9
# Limits for a note that the values of a column never repeat. Such a column usually holds the seed
# of a hash function (local hashing).
# _MIN_NOTED_DRAWS: least number of draws for the note.
# _MAX_DISTINCT_SHARE: the note also needs another column that repeats its values often. The number
#     of its distinct values must be at most this fraction of the number of draws.
_MIN_NOTED_DRAWS, _MAX_DISTINCT_SHARE = 500, 0.1
# Values, as texts, that a mechanism returns if it has computed nothing.
_EMPTY = {"None", "NaN"}
_REMEDY = "use one generator for all calls and never reset it, or take rng as a parameter"


class DependentDrawsError(MechanismError):
    """Raised if draws cannot be independent. They repeat earlier draws, or their distribution
    differs between calls. Chance alone would do this with a probability of at most 1e-12."""


@dataclass(frozen=True, slots=True, eq=False)
class DrawSeries:
    """Draws of one input, or of both inputs, in the order in which they were made.

    words: name of the draws in messages, such as "draws of d1".
    keys: (draws,), a hash of each outcome.
    rows: (draws,), the index of each draw among all draws.
    """

    words: str
    keys: KeyArray
    rows: NDArray[np.intp]


def check_uncached(name: str, functions: Sequence[Any]) -> None:
    """Raise MechanismError if functools.cache or lru_cache wraps a function of the mechanism."""
    for function in functions:
        if hasattr(function, "cache_info") and hasattr(function, "cache_clear"):
            raise MechanismError(
                f"{name} is wrapped by functools.cache or lru_cache, so all draws repeat the "
                "first; audit the function inside (its attribute __wrapped__)",
                code="draws-repeat",
            )


def check_independence(
    draws: SelectionDraws,
    blocks: Sequence[int],
    point: ProfilePoint,
    level: float = WARNING_ALPHA / CHECKS,
) -> list[str]:
    """Return warnings about learning draws that repeat, or that depend on the draws before them.

    blocks: number of draws in each block, in order.
    point: ε and δ of the claim.
    level: probability that one check warns although draws are independent.

    Raises DependentDrawsError for draws that cannot be independent.
    """
    draws = beginning(draws)
    keys = draws.outcomes.keys()
    _check_blocks_differ(keys, draws.is_d1, blocks)
    every = list(series_of("draws", keys, draws.is_d1))
    for series in every:
        _check_repeats(series)
    warnings = _stored_results(draws, keys, point, level)
    p, words = least_serial(draws.outcomes, draws.is_d1, every)
    if p <= level:
        warnings.append(
            f"{words}, but every bound is for independent draws; does the mechanism keep state "
            "between calls, or use a fixed sequence in place of a generator?"
        )
    return warnings


def check_heads(draws: SelectionDraws, heads: Sequence[Head]) -> None:
    """Raise DependentDrawsError if the first draws of counted chunks repeat learning draws or each
    other. They do if a worker process has a copy of another process's random generator. That
    process may have made the same draws much earlier, if the worker starts late."""
    draws = beginning(draws)
    keys = np.concatenate([draws.outcomes.keys(), *(head.keys for head in heads)])
    is_d1 = np.concatenate([draws.is_d1, *(head.is_d1 for head in heads)])
    tested = slice(2 * TESTED_DRAWS)
    for series in series_of("draws", keys[tested], is_d1[tested]):
        _check_repeats(series)


def beginning(draws: SelectionDraws) -> SelectionDraws:
    return draws if draws.size <= TESTED_DRAWS else draws.take(slice(TESTED_DRAWS))


def series_of(
    what: str, keys: KeyArray, is_d1: BoolArray, *, in_turns: bool = True, but: Container[str] = ()
) -> Iterator[DrawSeries]:
    """Yield the series to test: all draws together, the draws of d1, and the draws of d2. In the
    series of all draws, the hashes for d2 are inverted bit by bit, so that draws of different
    inputs do not count as equal.

    what: "draws" or "rows", for messages.
    keys: (draws,), a hash of each outcome.
    in_turns: whether d1 and d2 were drawn in turns. If False, as for separate recordings, the
        series of all draws is left out.
    but: names of inputs ("d1", "d2") whose series is left out.
    """
    if in_turns:
        yield DrawSeries(what, np.where(is_d1, keys, ~keys), np.arange(len(keys)))
    for name, arm in (("d1", is_d1), ("d2", ~is_d1)):
        if name not in but:
            rows = np.flatnonzero(arm)
            yield DrawSeries(f"{what} of {name}", keys[rows], rows)


def _check_blocks_differ(keys: KeyArray, is_d1: BoolArray, blocks: Sequence[int]) -> None:
    """Raise DependentDrawsError if two blocks begin with equal outcomes, which chance excludes."""
    # This happens if the state of a generator is copied. Two draws are equal by chance with
    # probability Σ p², which is large if there are few possible outcomes (docs/method.md §11).
    ends = np.cumsum(blocks)[:-1]
    ends = ends[ends < len(keys)]
    parts = list(zip(np.split(keys, ends), np.split(is_d1, ends), strict=True))
    longest, arm = max(parts, key=lambda part: len(part[0]))
    log_chances = [math.log(collision_bound(longest[mask])) for mask in (arm, ~arm)]
    limit = math.log(IMPOSSIBLE) - math.log(3 * len(parts) ** 2)
    for (first, block), (second, later) in combinations(enumerate(parts, start=1), 2):
        if _log_chance(block, later, log_chances) < limit:
            raise DependentDrawsError(
                f"block {second} of the draws repeats block {first}, which independent draws "
                "never do. The cause may be a fixed seed inside the mechanism, a cache, or a "
                f"copied generator state; {_REMEDY}",
                code="draws-repeat",
            )


def _log_chance(
    block: tuple[KeyArray, BoolArray],
    later: tuple[KeyArray, BoolArray],
    log_chances: Sequence[float],
) -> float:
    """Return the log-probability that chance makes two blocks equal. Return 0 if they differ."""
    # Draws at the same position are compared, if their inputs are equal; and the draws of d1, and
    # of d2, in order: if one call makes all draws of an input, equal draws may have different
    # positions.
    (keys, is_d1), (later_keys, later_is_d1) = block, later
    size = min(len(keys), len(later_keys))
    same = is_d1[:size] == later_is_d1[:size]
    chances = [0.0]
    if _begin_alike(keys[:size][same], later_keys[:size][same]):
        d1 = int((is_d1[:size] & same).sum())
        chances.append(d1 * log_chances[0] + (int(same.sum()) - d1) * log_chances[1])
    for arm, later_arm, log_chance in zip(
        (is_d1, ~is_d1), (later_is_d1, ~later_is_d1), log_chances, strict=True
    ):
        mine, theirs = keys[arm], later_keys[later_arm]
        if _begin_alike(mine, theirs):
            chances.append(min(len(mine), len(theirs)) * log_chance)
    return min(chances)


def _begin_alike(keys: KeyArray, later: KeyArray) -> bool:
    size = min(len(keys), len(later))
    few = min(size, _COMPARED_FIRST)
    return np.array_equal(keys[:few], later[:few]) and np.array_equal(keys[:size], later[:size])


def repeating_lag(series: DrawSeries) -> int | None:
    """Return the distance at which draws repeat earlier draws, beyond chance; None if they do
    not."""
    chance, lag = repetition_p_value(series.keys)
    return lag if chance < IMPOSSIBLE else None


def _check_repeats(series: DrawSeries) -> None:
    """Raise DependentDrawsError if draws repeat earlier draws at a fixed distance."""
    # A generator with a short period causes this, for example.
    lag = repeating_lag(series)
    if lag is not None:
        raise DependentDrawsError(
            f"{series.words} repeat those {lag:,} before them far more often than independent "
            "draws of the same distribution do. The cause may be a generator with a short period, "
            "a generator copied into several processes, reused noise, or a seed that is set "
            f"again; {_REMEDY}",
            code="draws-repeat",
        )


def _stored_results(
    draws: SelectionDraws, keys: KeyArray, point: ProfilePoint, level: float
) -> list[str]:
    """Return a warning if two constant outputs, one for each input, alone refute the claim."""
    d1, d2 = np.flatnonzero(draws.is_d1), np.flatnonzero(~draws.is_d1)
    if len(d1) == 0 or len(d2) == 0 or keys[d1[0]] == keys[d2[0]]:
        return []
    if any((keys[rows] != keys[rows[0]]).any() for rows in (d1, d2)):
        return []
    game = Game(draws.size, 0, draws.size, two_guesses=True, abstains=False)
    if p_value(game, point.epsilon, point.delta, WARNING_ALPHA) > level:
        return []
    of_d1, of_d2 = map(shortened, draws.outcomes.words([int(d1[0]), int(d2[0])]))
    return [
        f"all {len(d1):,} learning draws of d1 gave {of_d1}, all {len(d2):,} of d2 gave {of_d2}: "
        f"either the mechanism is not random, and then the violation holds; or it {STORED} (a "
        "cache), and then its draws are not independent: empty the cache before each draw"
    ]


def least_serial(
    outcomes: Outcomes, is_d1: BoolArray, every: Sequence[DrawSeries]
) -> tuple[float, str]:
    """Return a p-value of the hypothesis that no draw depends on the draws just before it, and a
    text for messages. The p-value is the smallest Ljung-Box p-value of all columns and series,
    corrected for their number. If no column can be tested, it is 1 and the text is empty."""
    tests = [
        (ljung_box(scores[series.rows], _MAX_LAG), series, column)
        for column in filter(is_informative, outcomes.columns[:_MAX_SERIES_COLUMNS])
        for scores in [_scores(column, is_d1)]
        for series in every
        if len(series.rows) >= _MIN_SERIES_DRAWS and _varies(numbers(column)[series.rows])
    ]
    if not tests:
        return 1.0, ""
    p, series, column = min(tests, key=lambda test: test[0])
    p = min(1.0, _TAIL_FACTOR * len(tests) * p)
    test = f"{column.name}: Ljung–Box p {f'= {p:.1e}' if p >= 1e-300 else '< 1e-300'}"
    return p, f"{series.words} depend on the ones just before them ({test})"


def is_informative(column: Column) -> bool:
    """Return whether a column varies enough to be tested for dependence between draws. Elapsed
    times are never tested: they follow the slow changes of the load of the machine."""
    return column.name != ELAPSED and _varies(numbers(column))


def _varies(values: NDArray[np.float64]) -> bool:
    """Return whether no value occurs in more than 90 % of the draws."""
    # A value in more than half of the draws is the median, so only the median has to be counted.
    if len(values) == 0:
        return True
    half = len(values) // 2
    median = np.partition(values, half)[half]
    equal = np.isnan(values) if np.isnan(median) else values == median
    return bool(np.count_nonzero(equal) <= _MAX_SHARE_OF_VALUE * len(values))


def _scores(column: Column, is_d1: BoolArray) -> NDArray[np.float64]:
    """Return the rank of each value within its input, divided by the number of values: (draws,)."""
    # The distribution of these ranks does not depend on the input, so the draws of both inputs can
    # be tested as one series.
    values = numbers(column)
    scores = np.empty(len(values))
    for arm in (is_d1, ~is_d1):
        scores[arm] = mid_ranks(values[arm]) / max(1, int(arm.sum()))
    return scores


def numbers(column: Column) -> NDArray[np.float64]:
    """Return the entries of a column as numbers, of shape (draws,). The number for a label depends
    on its alphabetical position, since its integer code would depend on the draws; it is very
    large."""
    if column.codes is None:
        return column.numbers
    ranks = np.empty(len(column.labels), dtype=np.float64)
    ranks[np.argsort(np.array(column.labels, dtype=object))] = np.arange(len(column.labels))
    beyond = np.finfo(float).max / (1 + np.append(0.0, ranks)[column.codes])
    return np.where(column.codes > 0, beyond, column.numbers)


def all_equal(outcomes: Outcomes) -> bool:
    """Return whether all outcomes are equal; False if there are none."""
    keys = outcomes.keys()
    return len(keys) > 0 and bool((keys == keys[0]).all())


def constant(output: str, arms: tuple[int, int], level: float) -> str:
    """Return the warning that all draws gave one output. It has an upper (Clopper-Pearson) bound on
    the probability of any other output.

    output: the output, in words.
    arms: the numbers of draws of d1 and d2.
    level: error probability of the bound.
    """
    hidden = clopper_pearson_upper(0, min(arms), level)
    return (
        f"all {sum(arms):,} draws are {output}, for both d1 and d2; is this intended? An output "
        f"that never came up may still have a probability of up to {hidden:.2g} for one input alone"
    )


def check_computed(outcomes: Outcomes) -> None:
    """Raise MechanismError if every value of the first output is None, NaN or infinite, since the
    mechanism has then computed nothing. Call this only if all outputs are equal."""
    columns = outcomes.columns
    if columns and all(map(_is_empty, columns)):
        word, cause = outcomes.word(0), "did the function forget to return?"
        if word != "None":
            cause = "an overflow, a division by zero, or a missing value among the inputs?"
        raise MechanismError(f"every output was {word}: {cause}", code="nothing-computed")


def _is_empty(column: Column) -> bool:
    if column.codes is not None and column.codes[0] > 0:
        return column.labels[column.codes[0] - 1] in _EMPTY
    return not np.isfinite(column.numbers[0])


def never_repeated(draws: SelectionDraws) -> list[str]:
    """Return a note about an output column whose value never repeats, else [].

    The column must hold whole numbers or texts, and another column must repeat its values often.
    The first column is then usually the seed of a hash function (local hashing). No event can use a
    value that never repeats, so the note advises to post-process the output.
    """
    columns = draws.outcomes.columns
    if draws.size < _MIN_NOTED_DRAWS or len(columns) < 2:
        return []
    # A column with fractions gets no note: continuous noise never repeats. `_is_discrete` is tested
    # first, since `_distinct` sorts the column and takes longer.
    discrete = [
        column for column in columns if _is_discrete(column) and _distinct(column) == draws.size
    ]
    if not discrete or min(map(_distinct, columns)) > draws.size * _MAX_DISTINCT_SHARE:
        return []
    return [
        f"{discrete[0].name} was another one in each of {draws.size:,} draws. If it is the seed of "
        "a hash function, as in local hashing, no event can use it: let --post-process (YAML: "
        "post_process) make of each output the values that it supports"
    ]


def _distinct(column: Column) -> int:
    return len(np.unique(column.keys()))


def _is_discrete(column: Column) -> bool:
    """Return whether all entries are texts, or all entries are whole numbers."""
    if column.codes is not None and np.all(column.codes > 0):
        return True
    return column.codes is None and bool(np.all(column.numbers == np.rint(column.numbers)))
