"""Tests of the assumption that the draws of a mechanism are independent (docs/method.md §11).

`dpaudit.auditing.checks` passes draws, or their counts, to a check. A check returns warnings in
words if chance rarely explains the draws, and raises DependentDrawsError if chance is excluded
(p < 1e-12). A cached or repeated draw, a copied generator, and noise that many draws share are
found in this way. Terms: a *block* is the draws of one chunk; a *level* is a bin of outcomes; a
*guess* is the input that a learned rule names at a level (1: d1, -1: d2, 0: abstain); an *e-value*
has expectation at most 1 for independent draws, so that it exceeds 1 / α with probability at
most α.
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
from dpaudit.draws import SelectionDraws, Tally
from dpaudit.errors import MechanismError
from dpaudit.outcomes import Column, KeyArray, Outcomes
from dpaudit.outcomes.columns import ELAPSED
from dpaudit.sampling.chunks import Head
from dpaudit.stats.binomial import clopper_pearson_upper
from dpaudit.stats.dependence import (
    collision_bound,
    ljung_box,
    log_e_value,
    log_mean_e_value,
    repetition_p_value,
)
from dpaudit.stats.game import Game, p_value
from dpaudit.stats.order import mid_ranks
from dpaudit.wording import shortened

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
# A pair: the log of an e-value, and the name of the tested draws for messages, such as "d1".
Evidence = tuple[float, str]

# A p-value below 1e-12 is an error, not a warning.
IMPOSSIBLE = 1e-12
# WARNED: probability that a correct mechanism gets any warning, over all checks of an audit.
# CHECKS: number of checks that share this probability equally. They are: one output for each
# input; serial dependence; and differences between calls, tested in four places (buffered learning
# draws, counted learning draws, certification, further draws).
WARNED, CHECKS = 1e-4, 6
# Phrase of the warning about caches. `dpaudit.auditing` finds the warning by this phrase, and drops
# it after new processes have drawn, since a new process starts with an empty cache.
STORED = "returns a stored result"
# At most 20,000 learning draws are tested; together with the first draws of counted blocks, at most
# 40,000 draws.
_DRAWS = 20_000
# Two blocks are compared in their first 16 draws, and in all draws only if these are equal. Nearly
# all blocks of independent draws differ within 16 draws.
_FIRST = 16
# Limits of the Ljung-Box test of serial dependence.
# _SERIES_COLUMNS: at most this many columns of the output are tested.
# _LAGS: autocorrelations at the lags 1 to 10 enter the test statistic.
# _SERIES_DRAWS: a series needs at least 1,000 draws, since the test is asymptotic.
_SERIES_COLUMNS, _LAGS, _SERIES_DRAWS = 4, 10, 1_000
# Factor by which Ljung-Box p-values are raised: small p-values of independent draws are more
# frequent than the chi-squared limit says (measured: 12 times as frequent at p = 2e-5).
_HEAVIER = 100.0
# A series in which more than 90 % of the draws have one value is not tested: an asymptotic test
# needs variation.
_NEARLY_ALL = 0.9
# The draws of one input in a block are split into 4 runs, which are compared with each other; in
# small learning blocks the sampler makes 4 calls for each input.
_RUNS = 4
# _CALL_COLUMNS: at most this many columns of the output are compared between runs.
# _QUANTILES: the compared events are "the value is at most this quantile of its column".
_CALL_COLUMNS, _QUANTILES = 8, (0.25, 0.5, 0.75)
# _MANY: a note about a value that never repeats needs at least 500 draws.
# _REPEATING: the note also needs a column whose number of distinct values is at most 10 % of the
# number of draws.
_MANY, _REPEATING = 500, 0.1
# Outputs, in words, of a mechanism that computed nothing.
_EMPTY = {"None", "NaN"}
_REMEDY = "use one generator for all calls and never reset it, or take rng as a parameter"


class DependentDrawsError(MechanismError):
    """The draws cannot be independent: they repeat, or change between calls, beyond chance."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Texts of a message about draws whose distribution changes between calls or parts of a file.

    words: statement of the change, with the placeholder {} for the name of the tested draws.
    cause: the likely cause, used in an error (chance is excluded).
    advice: questions for the user, used in a warning (chance is unlikely, but possible).
    """

    words: str
    cause: str
    advice: str


_CALLS = Difference(
    "outputs for {} differ from call to call more than independent draws",
    ": many outputs share one noise value, or a state changes from call to call; draw fresh noise "
    "for every output and keep nothing between calls",
    "every bound is for independent draws; do the outputs of a call share noise, or does the "
    "mechanism keep state between calls?",
)
_FROM_PROCESSES = (
    "outputs for {} differ from process to process more than independent draws can (p < {:g}): an "
    "event {} {:,} draws here and {} draws of new processes; every process of the mechanism keeps "
    "something, such as noise that it draws when it is imported or takes from the clock; draw "
    "fresh noise for every output and keep nothing between calls; if outputs contain the date or "
    "the time, remove it by post_process"
)


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Draws of one input, or of both inputs, in the order in which they were made.

    words: name of the draws in messages, such as "draws of d1".
    keys: (draws,), a hash of each outcome.
    rows: (draws,), the index of each draw among all draws.
    """

    words: str
    keys: KeyArray
    rows: NDArray[np.intp]


def check_uncached(name: str, functions: Sequence[Any]) -> None:
    """Raise MechanismError if functools.cache or lru_cache wraps one of the functions.

    name: name of the mechanism in the message.
    """
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
    level: float = WARNED / CHECKS,
) -> list[str]:
    """Return warnings about learning draws that repeat, or that depend on the draws before them.

    blocks: number of draws in each block (draws of one chunk), in order.
    point: ε and δ of the claim.
    level: probability that one check warns about independent draws.

    Raises DependentDrawsError for draws that cannot be independent.
    """
    draws = _beginning(draws)
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
    """Raise DependentDrawsError if the first draws of counted chunks repeat earlier draws.

    A worker process that has a copy of another process's generator, and starts late, repeats draws
    that the other process made long before.

    draws: learning draws, which were made before.
    heads: first draws of each counted chunk.
    """
    draws = _beginning(draws)
    keys = np.concatenate([draws.outcomes.keys(), *(head.keys for head in heads)])[: 2 * _DRAWS]
    is_d1 = np.concatenate([draws.is_d1, *(head.is_d1 for head in heads)])[: 2 * _DRAWS]
    for series in series_of("draws", keys, is_d1):
        _check_repeats(series)


def _beginning(draws: SelectionDraws) -> SelectionDraws:
    return draws if draws.size <= _DRAWS else draws.take(slice(_DRAWS))


def series_of(
    what: str, keys: KeyArray, is_d1: BoolArray, *, in_turns: bool = True, but: Container[str] = ()
) -> Iterator[Series]:
    """Yield the series to test: all draws together, then the draws of d1, then the draws of d2.

    In the series of all draws, the keys of d2 are inverted, so that draws of different inputs never
    count as equal.

    what: "draws" or "rows", for messages.
    in_turns: whether to yield the series of all draws.
    but: names of inputs ("d1", "d2") whose series is not yielded.
    """
    if in_turns:
        yield Series(what, np.where(is_d1, keys, ~keys), np.arange(len(keys)))
    for name, arm in (("d1", is_d1), ("d2", ~is_d1)):
        if name not in but:
            rows = np.flatnonzero(arm)
            yield Series(f"{what} of {name}", keys[rows], rows)


def _check_blocks_differ(keys: KeyArray, is_d1: BoolArray, blocks: Sequence[int]) -> None:
    """Raise DependentDrawsError if two blocks begin with equal outcomes, beyond chance.

    This happens if the state of a generator is copied. Outcomes with few values may be equal by
    chance, with probability Σ p² (docs/method.md §11) for each draw. The probability for all draws
    of the shorter block must be below `IMPOSSIBLE`, corrected for the number of pairs of blocks.

    keys: (draws,), hash of each outcome.
    blocks: number of draws in each block (draws of one chunk), in order.
    """
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
    """Return the log of the probability that two blocks of draws are equal by chance; 0 if they
    differ.

    Draws are compared position by position, where both blocks have the same input. The draws of
    each input are also compared by themselves: if one call makes all draws of an input, a block
    with more draws of d1 has shifted draws of d2.

    block, later: keys (hashes) of the outcomes, and whether each input was d1.
    log_chances: log of an upper bound for Pr[two draws are equal], for d1 and d2.
    """
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
    few = min(size, _FIRST)
    return np.array_equal(keys[:few], later[:few]) and np.array_equal(keys[:size], later[:size])


def repeating_lag(series: Series) -> int | None:
    """Return the distance at which draws repeat earlier ones more often than independent draws do;
    None where there is no such distance."""
    chance, lag = repetition_p_value(series.keys)
    return lag if chance < IMPOSSIBLE else None


def _check_repeats(series: Series) -> None:
    """Raise DependentDrawsError if draws repeat earlier draws at a fixed distance.

    A generator with a short period causes this, for example.
    """
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
    """Return a warning if d1 always gave one output, d2 always gave another, and this alone refutes
    the claim.

    Either the mechanism is not random, or it returns the result of its first call again.

    level: p-value of the claim below which the claim is refuted.
    """
    d1, d2 = np.flatnonzero(draws.is_d1), np.flatnonzero(~draws.is_d1)
    if len(d1) == 0 or len(d2) == 0 or keys[d1[0]] == keys[d2[0]]:
        return []
    if any((keys[rows] != keys[rows[0]]).any() for rows in (d1, d2)):
        return []
    game = Game(draws.size, 0, draws.size, two_guesses=True, abstains=False)
    if p_value(game, point.epsilon, point.delta, WARNED) > level:
        return []
    of_d1, of_d2 = map(shortened, draws.outcomes.words([int(d1[0]), int(d2[0])]))
    return [
        f"all {len(d1):,} learning draws of d1 gave {of_d1}, all {len(d2):,} of d2 gave {of_d2}: "
        f"either the mechanism is not random, and then the violation holds; or it {STORED} (a "
        "cache), and then its draws are not independent: empty the cache before each draw"
    ]


def least_serial(
    outcomes: Outcomes, is_d1: BoolArray, every: Sequence[Series]
) -> tuple[float, str]:
    """Return a p-value of "no draw depends on the draws just before it", and a text for messages.

    The p-value is the smallest Ljung-Box p-value over columns and series, corrected for the number
    of tests. It is 1, and the text is empty, if no column can be tested.
    """
    tests = [
        (ljung_box(scores[series.rows], _LAGS), series, column)
        for column in filter(_is_informative, outcomes.columns[:_SERIES_COLUMNS])
        for scores in [_scores(column, is_d1)]
        for series in every
        if len(series.rows) >= _SERIES_DRAWS and _varies(numbers(column)[series.rows])
    ]
    if not tests:
        return 1.0, ""
    p, series, column = min(tests, key=lambda test: test[0])
    p = min(1.0, _HEAVIER * len(tests) * p)
    test = f"{column.name}: Ljung–Box p {f'= {p:.1e}' if p >= 1e-300 else '< 1e-300'}"
    return p, f"{series.words} depend on the ones just before them ({test})"


def _is_informative(column: Column) -> bool:
    """Return whether a column varies enough to test it for dependence between draws.

    The column of elapsed times is never tested: the load of the machine changes slowly, so that the
    times of successive draws depend on each other.
    """
    return column.name != ELAPSED and _varies(numbers(column))


def _varies(values: NDArray[np.float64]) -> bool:
    """Return whether every value occurs in at most 90 % of the draws.

    Only the median is counted: a value in more than half of the draws is the median.
    """
    if len(values) == 0:
        return True
    half = len(values) // 2
    median = np.partition(values, half)[half]
    equal = np.isnan(values) if np.isnan(median) else values == median
    return bool(np.count_nonzero(equal) <= _NEARLY_ALL * len(values))


def _scores(column: Column, is_d1: BoolArray) -> NDArray[np.float64]:
    """Return the rank of each value among the values of its input, as a fraction of their number.

    Ranks within each input have one distribution for both inputs, so that both can be tested as one
    series.
    """
    values = numbers(column)
    scores = np.empty(len(values))
    for arm in (is_d1, ~is_d1):
        scores[arm] = mid_ranks(values[arm]) / max(1, int(arm.sum()))
    return scores


def numbers(column: Column) -> NDArray[np.float64]:
    """Return the entries of a column as numbers, (draws,).

    Labels (texts) become very large numbers, ordered by text. The integer codes of the labels would
    not do, since a code depends on the draw in which its label first occurred.
    """
    if column.codes is None:
        return column.numbers
    places = np.empty(len(column.labels), dtype=np.float64)
    places[np.argsort(np.array(column.labels, dtype=object))] = np.arange(len(column.labels))
    beyond = np.finfo(float).max / (1 + np.append(0.0, places)[column.codes])
    return np.where(column.codes > 0, beyond, column.numbers)


def check_calls(draws: SelectionDraws, blocks: Sequence[int], level: float) -> list[str]:
    """Return a warning if the distribution of learning draws changes from call to call.

    The compared events are "a column of the output is at most a quartile". Learned rules are not
    used here: a rule fits the draws from which it was learned better than other draws, also if all
    draws are independent.

    blocks: number of draws in each block (draws of one chunk), in order.
    level: probability of a warning for independent draws.

    Raises DependentDrawsError for draws that cannot be independent.
    """
    return judged(_between_calls(draws, blocks), level, _CALLS)


def check_further(
    draws: SelectionDraws,
    tallies: Sequence[Tally],
    guesses: IntArray,
    level: float,
    before: float = 0.0,
) -> list[str]:
    """Return a warning if the distribution changes from call to call in draws made for this check.

    The draws are compared by quartiles of the output columns, as in `check_calls`, and by the
    levels (bins) of the rule, as in `check_blocks`.

    draws: all draws, block after block.
    tallies: counts by level and input, one tally for each block.
    guesses: (levels,), guess of the rule at each level: 1, -1 or 0.
    level: probability of a warning for independent draws.
    before: log of the e-value of the certification draws, from `doubt`.
    """
    evidence = _between_calls(draws, [one.draws for one in tallies])
    return judged(evidence + _between_blocks(tallies, guesses), level, _CALLS, before)


def check_blocks(tallies: Sequence[Tally], guesses: IntArray, level: float) -> list[str]:
    """Return a warning if the distribution over a rule's levels (bins) changes between blocks.

    A block is the draws of one chunk. Different blocks never share a call, so a change shows noise
    that the draws of a call share, or state that calls change.

    tallies: counts by level and input, one tally for each block; made after the rule was fixed.
    guesses: (levels,), guess of the rule at each level: 1, -1 or 0.
    level: probability of a warning for independent draws.

    Raises DependentDrawsError for draws that cannot be independent.
    """
    return judged(_between_blocks(tallies, guesses), level, _CALLS)


def doubt(tallies: Sequence[Tally], guesses: IntArray) -> float:
    """Return the log of an e-value against "all certification blocks have one distribution".

    The product of this e-value with the e-value of later draws is again an e-value. So one error
    probability suffices for a test that warns either now or after the later draws (Ville).

    tallies: counts by level and input, one tally for each block.
    guesses: (levels,), guess of the rule at each level: 1, -1 or 0.
    """
    return log_mean_e_value(log for log, _ in _between_blocks(tallies, guesses))


def between_processes(
    first: Tally, others: Sequence[Tally], guesses: IntArray, level: float
) -> tuple[float, str]:
    """Return the log of an e-value against "all processes draw from one distribution", and a text.

    The text is an error message that says how the draws differ; it is empty if the e-value is below
    1 / level.

    first: counts by level and input of the certification draws, made by the auditing process.
    others: counts by level and input, one tally for each new process.
    guesses: (levels,), guess of the rule at each level: 1, -1 or 0.
    level: probability of a text for independent draws.
    """
    every = _between_blocks([first, *others], guesses)
    evidence = log_mean_e_value(log for log, _ in every)
    if evidence < -math.log(level):
        return evidence, ""
    place = max(range(len(every)), key=lambda number: every[number][0])
    arm, number = divmod(place, len(every) // 2)
    event = level_sets(sum(others, first).counts[:, arm], guesses)[number]
    draws, *new_draws = (int(one.counts[:, arm].sum()) for one in (first, *others))
    here, *there = (100 * one.counts[event, arm].sum() for one in (first, *others))
    shares = [inside / size for inside, size in zip(there, new_draws, strict=True) if size]
    low, high = min(shares, default=0.0), max(shares, default=0.0)
    own = f"came up in {here / max(1, draws):.3g} % of" if here else "never came up in"
    new = f"in {low:.3g} % to {high:.3g} % of" if high else "never in"
    return evidence, _FROM_PROCESSES.format(every[place][1], level, own, draws, new)


def judged(
    every: Sequence[Evidence], level: float, difference: Difference, before: float = 0.0
) -> list[str]:
    """Return a warning that draws are dependent if the mean of e-values is at least 1 / level.

    Otherwise the list is empty. The mean of e-values is an e-value, whatever their dependence.

    every: the e-values, as logs with the names of their draws.
    level: probability of a warning for independent draws.
    difference: texts of the warning and of the error.
    before: log of an e-value of earlier draws, which multiplies the mean.

    Raises DependentDrawsError if the e-value is at least 1 / `IMPOSSIBLE`.
    """
    evidence = before + log_mean_e_value(log for log, _ in every)
    if evidence < -math.log(level):
        return []
    words = difference.words.format(max(every)[1])
    if evidence >= -math.log(IMPOSSIBLE):
        message = f"{words} can (p < {IMPOSSIBLE:g}){difference.cause}"
        raise DependentDrawsError(message, code="draws-differ")
    return [f"{words} should (p < {math.exp(-evidence):.1e}), but {difference.advice}"]


def _between_calls(draws: SelectionDraws, blocks: Sequence[int]) -> list[Evidence]:
    """Return e-values against "all runs of draws have one distribution", for each input and event.

    A run is a quarter of the draws of one input in a block, in order. An event is "the value of a
    column is at most a quartile of the column".

    blocks: number of draws in each block (draws of one chunk), in order.
    """
    draws = _beginning(draws)
    events = [
        values <= cut
        for column in filter(_is_informative, draws.outcomes.columns[:_CALL_COLUMNS])
        for values in [numbers(column)]
        for cut in np.unique(np.quantile(values, _QUANTILES, method="lower"))
    ]
    every: list[Evidence] = []
    for name, arm in (("d1", draws.is_d1), ("d2", ~draws.is_d1)):
        parts = np.split(arm, np.cumsum(blocks)[:-1])
        lengths = [len(run) for part in parts for run in np.array_split(part[part], _RUNS)]
        runs = np.repeat(np.arange(len(lengths)), lengths)
        sizes = np.bincount(runs)
        for inside in events:
            counts = np.bincount(runs, weights=inside[arm]).astype(np.int64)
            every.append((log_e_value(counts, sizes), name))
    return every


def _between_blocks(tallies: Sequence[Tally], guesses: IntArray) -> list[Evidence]:
    """Return e-values against "all blocks have one distribution", for each input and event.

    An event is one of the sets of levels (bins) that `level_sets` returns.

    tallies: counts by level and input, one tally for each block (draws of one chunk).
    guesses: (levels,), guess of the rule at each level: 1, -1 or 0.
    """
    counts = np.stack([tally.counts for tally in tallies])  # (blocks, levels, arms)
    return [
        (log_e_value(by_block[:, chosen].sum(axis=1), by_block.sum(axis=1)), name)
        for name, by_block in (("d1", counts[:, :, 0]), ("d2", counts[:, :, 1]))
        for chosen in level_sets(by_block.sum(axis=0), guesses)
    ]


def level_sets(counts: IntArray, guesses: IntArray) -> list[BoolArray]:
    """Return three sets of levels (bins of outcomes), each as a mask of shape (levels,).

    The sets are: the levels at which the rule guesses d1; the levels at which the rule guesses d2;
    and the lowest levels that together hold about half of the draws.

    counts: (levels,), number of draws at each level.
    guesses: (levels,), guess of the rule at each level: 1, -1 or 0.
    """
    lower = np.cumsum(counts)
    half = np.argmin(np.abs(lower - lower[-1] / 2))
    return [guesses > 0, guesses < 0, np.arange(len(counts)) <= half]


def all_equal(outcomes: Outcomes) -> bool:
    """Return whether all outcomes are equal; False if there are none."""
    keys = outcomes.keys()
    return len(keys) > 0 and bool((keys == keys[0]).all())


def constant(output: str, arms: tuple[int, int], level: float) -> str:
    """Return the warning that all draws gave one output.

    The warning states an upper (Clopper-Pearson) bound on the probability of any other output.

    output: the output, in words.
    arms: number of draws of (d1, d2).
    level: error probability of the bound.
    """
    hidden = clopper_pearson_upper(0, min(arms), level)
    return (
        f"all {sum(arms):,} draws are {output}, for both d1 and d2; is this intended? An output "
        f"that never came up may still have a probability of up to {hidden:.2g} for one input alone"
    )


def check_computed(outcomes: Outcomes) -> None:
    """Raise MechanismError if every value of the first output is None, NaN or infinite.

    Call this only if all outputs are equal. Such a mechanism computed nothing.
    """
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
    """Return a note about an output column whose value never repeats; else an empty list.

    The column must hold whole numbers or texts, and another column must repeat its values often.
    Such a column is usually the seed of a hash function (local hashing), which no event can use, so
    the note advises to post-process the output.
    """
    columns = draws.outcomes.columns
    if draws.size < _MANY or len(columns) < 2:
        return []
    # `_is_discrete` is tested first, since `_distinct` sorts the column. A column with fractions is
    # ordinary noise.
    discrete = [one for one in columns if _is_discrete(one) and _distinct(one) == draws.size]
    if not discrete or min(map(_distinct, columns)) > draws.size * _REPEATING:
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
