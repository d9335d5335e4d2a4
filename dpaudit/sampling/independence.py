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
_SERIES_COLUMNS, _LAGS, _LEAST = 4, 10, 1_000
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
    log_chances = [math.log(collision_bound(arm)) for arm in longest.by_arm]
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
    chance, lag = repetition_p_value(series.keys)
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
        for column in filter(is_telling, outcomes.columns[:_SERIES_COLUMNS])
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


BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
# The logarithm of an e-value, and what it is about.
Evidence = tuple[float, str]

# Each input's draws of a block are compared in so many runs, which the sampler's calls are.
_RUNS = 4
# Columns that are looked at, and where they are cut.
_CALL_COLUMNS = 8
_QUANTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True)
class Difference:
    """What is said of draws that differ more than what is independent: that they do (with a place
    for the input), the cause when it cannot be chance, and the advice when it may be."""

    words: str
    cause: str
    advice: str


CALLS = Difference(
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


def check_calls(draws: SelectionDraws, blocks: Sequence[int], level: float) -> list[str]:
    """Return a warning about learning draws, made in blocks of these sizes, that differ from call
    to call more than chance allows. Raises MechanismError for what independent draws cannot do.

    What was learned is left out: it fits the draws that it was learned from better than later ones,
    and that is no sign of anything.
    """
    return judged(_of_calls(draws, blocks), level, CALLS)


def check_further(
    draws: SelectionDraws,
    tallies: Sequence[Tally],
    guesses: IntArray,
    level: float,
    before: float = 0.0,
) -> list[str]:
    """Return a warning, as `check_calls` does, about draws that were made only to be checked: by
    their entries, and by the levels that a rule gives them, with a tally for each block.

    before: what `doubt` returned for other draws."""
    found = _of_calls(draws, [one.draws for one in tallies]) + _of_blocks(tallies, guesses)
    return judged(found, level, CALLS, before)


def _of_calls(draws: SelectionDraws, blocks: Sequence[int]) -> list[Evidence]:
    draws = beginning(draws)
    found: list[Evidence] = []
    events = list(_events(draws))
    for name, arm in (("d1", draws.is_d1), ("d2", ~draws.is_d1)):
        runs = _runs(arm, blocks)
        sizes = np.bincount(runs)
        found += [
            (log_e_value(np.bincount(runs, weights=inside[arm]).astype(np.int64), sizes), name)
            for inside in events
        ]
    return found


def check_blocks(tallies: Sequence[Tally], guesses: IntArray, level: float) -> list[str]:
    """Return a warning, as `check_calls` does, about certification draws that differ from block to
    block; every one has calls of its own for each input."""
    return judged(_of_blocks(tallies, guesses), level, CALLS)


def between_processes(
    first: Tally, others: Sequence[Tally], guesses: IntArray, level: float
) -> tuple[float, str]:
    """Return the log of an e-value against "all processes draw from one law", and the difference in
    words: no words if the e-value is below 1 / level.

    first: certified draws of the first process.  others: one tally for each new process.
    """
    found = _of_blocks([first, *others], guesses)
    evidence = log_mean_e_value(one for one, _ in found)
    if evidence < -math.log(level):
        return evidence, ""
    place = max(range(len(found)), key=lambda one: found[one][0])
    arm, number = divmod(place, len(found) // 2)
    event = level_sets(sum(others, first).counts[:, arm], guesses)[number]
    draws, *more = (int(one.counts[:, arm].sum()) for one in (first, *others))
    here, *there = (100 * one.counts[event, arm].sum() for one in (first, *others))
    shares = [inside / size for inside, size in zip(there, more, strict=True) if size]
    low, high = min(shares, default=0.0), max(shares, default=0.0)
    own = f"came up in {here / max(1, draws):.3g} % of" if here else "never came up in"
    new = f"in {low:.3g} % to {high:.3g} % of" if high else "never in"
    return evidence, _FROM_PROCESSES.format(found[place][1], level, own, draws, new)


def doubt(tallies: Sequence[Tally], guesses: IntArray) -> float:
    """Return the log of the e-value of certification draws that differ from block to block.

    Whatever it made of them, draws that were made later give another one, and the product of both
    is one again: its expectation, given the first, is at most the first. A test that goes on in
    this way may warn at either look, at the level of one (Ville).
    """
    return log_mean_e_value(one for one, _ in _of_blocks(tallies, guesses))


def _of_blocks(tallies: Sequence[Tally], guesses: IntArray) -> list[Evidence]:
    counts = np.stack([tally.counts for tally in tallies])  # (blocks, levels, arms)
    return [
        (log_e_value(by_block[:, chosen].sum(axis=1), by_block.sum(axis=1)), name)
        for name, by_block in (("d1", counts[:, :, 0]), ("d2", counts[:, :, 1]))
        for chosen in level_sets(by_block.sum(axis=0), guesses)
    ]


def judged(
    found: Sequence[Evidence], level: float, difference: Difference, before: float = 0.0
) -> list[str]:
    """Return what to say of e-values, of one event and one input each, whose mean is one again.

    before: the log of one of other draws, which came first."""
    evidence = before + log_mean_e_value(one for one, _ in found)
    if evidence < -math.log(level):
        return []
    words = difference.words.format(max(found)[1])
    if evidence >= -math.log(IMPOSSIBLE):
        raise DependentDrawsError(f"{words} can (p < {IMPOSSIBLE:g}){difference.cause}")
    return [f"{words} should (p < {math.exp(-evidence):.1e}), but {difference.advice}"]


def _runs(arm: BoolArray, blocks: Sequence[int]) -> IntArray:
    """Return, for every draw of an input, the number of its run: a quarter of its block's draws of
    that input, in order."""
    parts = np.split(arm, np.cumsum(blocks)[:-1])
    runs = [len(run) for part in parts for run in np.array_split(part[part], _RUNS)]
    return np.repeat(np.arange(len(runs)), runs)


def _events(draws: SelectionDraws) -> Iterator[BoolArray]:
    """Yield events whose frequency may tell calls apart: entries up to a quantile."""
    for column in filter(is_telling, draws.outcomes.columns[:_CALL_COLUMNS]):
        values = numbers(column)
        cuts = np.unique(np.quantile(values, _QUANTILES, method="lower"))
        yield from (values <= cut for cut in cuts)


def level_sets(counts: IntArray, guesses: IntArray) -> list[BoolArray]:
    """Return sets of levels: those that speak for d1, for d2, and the lower half, as nearly as
    levels allow."""
    lower = np.cumsum(counts)
    half = np.argmin(np.abs(lower - lower[-1] / 2))
    return [guesses > 0, guesses < 0, np.arange(len(counts)) <= half]


# What comes out of a computation that gave nothing.
_EMPTY = {"None", "NaN"}
# Draws by which a number that never repeats is known, and the share of distinct values of a part
# that repeats, at most.
_MANY, _REPEATING = 500, 0.1


def all_equal(outcomes: Outcomes) -> bool:
    """Return whether there are outcomes, and all are one output."""
    keys = outcomes.keys()
    return len(keys) > 0 and bool((keys == keys[0]).all())


def constant(output: str, arms: tuple[int, int], level: float) -> str:
    """Return a warning that all draws gave one output, with a bound of this error probability for
    any other output. arms: draws of d1 and of d2."""
    hidden = clopper_pearson_upper(0, min(arms), level)
    return (
        f"all {sum(arms):,} draws are {output}, for both d1 and d2; is this intended? An output "
        f"that never came up may still have a probability of up to {hidden:.2g} for one input alone"
    )


def check_computed(outcomes: Outcomes) -> None:
    """Raise MechanismError when the one output of all draws is None, NaN or infinite: nothing was
    computed."""
    columns = outcomes.columns
    if columns and all(map(_is_empty, columns)):
        word, cause = outcomes.word(0), "did the function forget to return?"
        if word != "None":
            cause = "an overflow, a division by zero, or a missing value among the inputs?"
        raise MechanismError(f"every output was {word}: {cause}")


def never_repeated(draws: SelectionDraws) -> list[str]:
    """Return a note on a whole number, or a text, that is another one in every draw, next to a part
    of the output that repeats: the seed of a hash function, as a rule, without which no event says
    what the other part means."""
    columns = draws.outcomes.columns
    if draws.size < _MANY or len(columns) < 2:
        return []
    # Noise is a column of other numbers, which need not be sorted to be left out.
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
    """Whether all entries are texts, or whole numbers: other numbers are noise."""
    if column.codes is not None and np.all(column.codes > 0):
        return True
    numbers = column.numbers
    return column.codes is None and bool(np.all(numbers == np.rint(numbers)))


def _is_empty(column: Column) -> bool:
    """Whether the one entry of a column is what a failed computation leaves."""
    if column.codes is not None and column.codes[0] > 0:
        return column.labels[column.codes[0] - 1] in _EMPTY
    return not np.isfinite(column.numbers[0])
