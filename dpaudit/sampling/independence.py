"""Whether draws of a mechanism can be independent of each other (docs/method.md §11).

Most checks use learning draws, which certify nothing. Behaviour that independent draws cannot show
is an error; behaviour that they show rarely is a warning with its p-value. Two checks compare the
frequencies of events between calls, or between processes: noise that is drawn once for a batch, or
a state that changes slowly, makes draws of one call alike and calls different. Ten thousand such
draws may be worth a dozen independent ones.
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
from dpaudit.outcomes.units import ELAPSED
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
# Logarithm of an e-value, and the part of the draws that it is about.
Evidence = tuple[float, str]

# A p-value below this is an error.
IMPOSSIBLE = 1e-12
# Probability that any check warns about a correct mechanism, and the checks that share it: one
# output for each input; serial dependence; and calls that differ, in four places (learning draws
# that are kept, those that are counted, certification, further draws).
WARNED, CHECKS = 1e-4, 6
# Part of a warning that new processes can settle: they give the stored result too, or not.
STORED = "returns a stored result"
# Draws that are looked at, at most: of learning draws, and of the heads of blocks.
_DRAWS = 20_000
# Draws in which nearly all blocks differ: compared first.
_FIRST = 16
# Ljung-Box test: columns, at most; lags; draws in a series, at least.
_SERIES_COLUMNS, _LAGS, _SERIES_DRAWS = 4, 10, 1_000
# Factor for the tail of Ljung-Box, which is heavier than its limit (measured: 12 times at 2e-5).
_HEAVIER = 100.0
# Share of draws with one value above which too few others are left for an asymptotic test.
_NEARLY_ALL = 0.9
# Runs into which each input's draws of a block are split, as the sampler's calls split them.
_RUNS = 4
# Columns whose events are compared between runs, and the quantiles that bound these events.
_CALL_COLUMNS, _QUANTILES = 8, (0.25, 0.5, 0.75)
# Draws after which a value that never repeats is noticed, and the largest share of distinct values
# in a part that repeats.
_MANY, _REPEATING = 500, 0.1
# Outputs of a computation that computed nothing.
_EMPTY = {"None", "NaN"}
_REMEDY = "use one generator for all calls and never reset it, or take rng as a parameter"


class DependentDrawsError(MechanismError):
    """The draws repeat or differ in a way that independent draws cannot."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Texts about draws that differ from part to part: what differs (with a place for the part),
    the cause where chance is excluded, and advice where it is not."""

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
    """Draws in an order in which they should be independent: those of one input, or of both."""

    words: str
    keys: KeyArray
    rows: NDArray[np.intp]


def check_uncached(name: str, functions: Sequence[Any]) -> None:
    """Raise MechanismError for a function that returns earlier results again."""
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
    """Return warnings about draws that do not look independent.

    blocks: sizes of the blocks, in order.  point: the claim.  level: probability that one check
    warns about independent draws.  Raises DependentDrawsError for draws that cannot be independent.
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
    """Raise DependentDrawsError when certification blocks begin with earlier draws: a process with
    a copied generator that starts late repeats what another process drew before."""
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
    """Yield series of draws: all of them (draws of different inputs never count as equal), and
    those of each input that is not in `but`."""
    if in_turns:
        yield Series(what, np.where(is_d1, keys, ~keys), np.arange(len(keys)))
    for name, arm in (("d1", is_d1), ("d2", ~is_d1)):
        if name not in but:
            rows = np.flatnonzero(arm)
            yield Series(f"{what} of {name}", keys[rows], rows)


def _check_blocks_differ(keys: KeyArray, is_d1: BoolArray, blocks: Sequence[int]) -> None:
    """Raise when one block begins like another, as after a copy of a generator's state."""
    ends = np.cumsum(blocks)[:-1]
    ends = ends[ends < len(keys)]
    parts = list(zip(np.split(keys, ends), np.split(is_d1, ends), strict=True))
    longest, arm = max(parts, key=lambda part: len(part[0]))
    log_chances = [math.log(collision_bound(longest[mask])) for mask in (arm, ~arm)]
    limit = math.log(IMPOSSIBLE) - math.log(3 * len(parts) ** 2)
    # By arm as well: batches of different sizes shift the draws of d2.
    by_arm = [(part, arms, (part[arms], part[~arms])) for part, arms in parts]
    for (first, block), (second, later) in combinations(enumerate(by_arm, start=1), 2):
        log_chance = min(
            _log_chance_in_turns(block[:2], later[:2], log_chances),
            *(
                min(len(mine), len(theirs)) * log_chance if _begin_alike(mine, theirs) else 0.0
                for mine, theirs, log_chance in zip(block[2], later[2], log_chances, strict=True)
            ),
        )
        if log_chance < limit:
            raise DependentDrawsError(
                f"block {second} of the draws repeats block {first}, which independent draws "
                "never do. The cause may be a fixed seed inside the mechanism, a cache, or a "
                f"copied generator state; {_REMEDY}",
                code="draws-repeat",
            )


def _log_chance_in_turns(
    block: tuple[KeyArray, BoolArray],
    later: tuple[KeyArray, BoolArray],
    log_chances: Sequence[float],
) -> float:
    """Return the log of the chance that two blocks are equal wherever their coins are; 0 when they
    differ there."""
    (keys, is_d1), (later_keys, later_is_d1) = block, later
    size = min(len(keys), len(later_keys))
    same = is_d1[:size] == later_is_d1[:size]
    if not _begin_alike(keys[:size][same], later_keys[:size][same]):
        return 0.0
    d1 = int((is_d1[:size] & same).sum())
    return d1 * log_chances[0] + (int(same.sum()) - d1) * log_chances[1]


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
    """Raise when draws repeat earlier ones at a fixed distance, as after the period of a
    generator."""
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
    """Warn of one output for each input, where that alone refutes the claim."""
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
    """Return the smallest p-value of "draws do not depend on those just before them" over columns
    and series, corrected for their number, and the dependence in words."""
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
    """Return whether a column varies enough for tests of dependence. Elapsed times are left out:
    how busy the machine is lasts for more than a draw."""
    return column.name != ELAPSED and _varies(numbers(column))


def _varies(values: NDArray[np.float64]) -> bool:
    """Return whether no value has more than 90 % of the draws. Only the median can."""
    if len(values) == 0:
        return True
    half = len(values) // 2
    median = np.partition(values, half)[half]
    equal = np.isnan(values) if np.isnan(median) else values == median
    return bool(np.count_nonzero(equal) <= _NEARLY_ALL * len(values))


def _scores(column: Column, is_d1: BoolArray) -> NDArray[np.float64]:
    """Return ranks among the draws of the same input, divided by their number: the distribution is
    the same for both inputs."""
    values = numbers(column)
    scores = np.empty(len(values))
    for arm in (is_d1, ~is_d1):
        scores[arm] = mid_ranks(values[arm]) / max(1, int(arm.sum()))
    return scores


def numbers(column: Column) -> NDArray[np.float64]:
    """Return entries as numbers. Labels become numbers beyond all others, in alphabetical order:
    the order of their codes depends on the order of the draws."""
    if column.codes is None:
        return column.numbers
    places = np.empty(len(column.labels), dtype=np.float64)
    places[np.argsort(np.array(column.labels, dtype=object))] = np.arange(len(column.labels))
    beyond = np.finfo(float).max / (1 + np.append(0.0, places)[column.codes])
    return np.where(column.codes > 0, beyond, column.numbers)


def check_calls(draws: SelectionDraws, blocks: Sequence[int], level: float) -> list[str]:
    """Return a warning about learning draws that differ from call to call more than chance allows.

    blocks: sizes of the blocks, in order.  Raises DependentDrawsError for draws that cannot be
    independent. Learned rules are not used: they fit the draws that they were learned from better
    than later ones, which proves nothing.
    """
    return judged(_between_calls(draws, blocks), level, _CALLS)


def check_further(
    draws: SelectionDraws,
    tallies: Sequence[Tally],
    guesses: IntArray,
    level: float,
    before: float = 0.0,
) -> list[str]:
    """Return a warning, as `check_calls` does, about draws that were made only for this check: by
    their entries, and by their levels, with one tally for each block.

    before: the result of `doubt` for earlier draws.
    """
    evidence = _between_calls(draws, [one.draws for one in tallies])
    return judged(evidence + _between_blocks(tallies, guesses), level, _CALLS, before)


def check_blocks(tallies: Sequence[Tally], guesses: IntArray, level: float) -> list[str]:
    """Return a warning, as `check_calls` does, about certification draws that differ from block to
    block; each block has calls of its own for each input."""
    return judged(_between_blocks(tallies, guesses), level, _CALLS)


def doubt(tallies: Sequence[Tally], guesses: IntArray) -> float:
    """Return the log of the e-value against "certification draws are the same in all blocks".

    Its product with the e-value of later draws is an e-value too: given the first, the expectation
    is at most the first. So a test may warn at either time, at the level of one test (Ville).
    """
    return log_mean_e_value(log for log, _ in _between_blocks(tallies, guesses))


def between_processes(
    first: Tally, others: Sequence[Tally], guesses: IntArray, level: float
) -> tuple[float, str]:
    """Return the log of an e-value against "all processes draw from one distribution", and the
    difference in words; no words if the e-value is below 1 / level.

    first: certification draws of the first process.  others: one tally for each new process.
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
    """Return a warning if the mean of e-values, which is an e-value, exceeds 1 / level. Raises
    DependentDrawsError if chance is excluded.

    before: log of an e-value of earlier draws.
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
    """Return evidence that entries differ between runs of a block, for each input and event."""
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
    """Return evidence that level sets differ between blocks, for each input and set."""
    counts = np.stack([tally.counts for tally in tallies])  # (blocks, levels, arms)
    return [
        (log_e_value(by_block[:, chosen].sum(axis=1), by_block.sum(axis=1)), name)
        for name, by_block in (("d1", counts[:, :, 0]), ("d2", counts[:, :, 1]))
        for chosen in level_sets(by_block.sum(axis=0), guesses)
    ]


def level_sets(counts: IntArray, guesses: IntArray) -> list[BoolArray]:
    """Return three sets of levels: where the rule guesses d1, where it guesses d2, and the lower
    half of the draws, as nearly as levels allow."""
    lower = np.cumsum(counts)
    half = np.argmin(np.abs(lower - lower[-1] / 2))
    return [guesses > 0, guesses < 0, np.arange(len(counts)) <= half]


def all_equal(outcomes: Outcomes) -> bool:
    """Return whether there are outcomes, and all are equal."""
    keys = outcomes.keys()
    return len(keys) > 0 and bool((keys == keys[0]).all())


def constant(output: str, arms: tuple[int, int], level: float) -> str:
    """Return a warning that all draws gave one output, with an upper bound on the probability of
    any other output.

    arms: draws of d1 and of d2.  level: error probability of the bound.
    """
    hidden = clopper_pearson_upper(0, min(arms), level)
    return (
        f"all {sum(arms):,} draws are {output}, for both d1 and d2; is this intended? An output "
        f"that never came up may still have a probability of up to {hidden:.2g} for one input alone"
    )


def check_computed(outcomes: Outcomes) -> None:
    """Raise MechanismError when the only output of all draws is None, NaN or infinite: the
    mechanism computed nothing."""
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
    """Return a note on a whole number, or a text, that differs in every draw, next to a part of the
    output that repeats. It is usually the seed of a hash function, which no event can use."""
    columns = draws.outcomes.columns
    if draws.size < _MANY or len(columns) < 2:
        return []
    # Other numbers are noise, and need not be sorted to be left out.
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
    """Return whether all entries are texts, or all are whole numbers."""
    if column.codes is not None and np.all(column.codes > 0):
        return True
    return column.codes is None and bool(np.all(column.numbers == np.rint(column.numbers)))
