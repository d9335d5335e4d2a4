"""Model sequences whose entries take few values: the log-ratio of each entry given a state.

States are built without knowledge of the inputs. The log-ratio of each symbol given the state is
fitted to counts, and shrunk along rows of related states. `prefixes.py` makes scores from kept
draws, `counted_sequences.py` refits them to counts, and `single_outputs.py` estimates the log-ratio
of a whole sequence from those of related sequences (docs/method.md §5, *Scorers*).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.levels import tuning
from dpaudit.levels.candidates import Predictor
from dpaudit.levels.level_map import FloatArray, IntArray
from dpaudit.levels.limits import (
    DRAWS_PER_VALUE,
    EXAMINED_DRAWS,
    FEW_VALUES,
    MAX_COLUMNS,
    MAX_LEVELS,
    MAX_STEP,
    MIN_DRAWS_SLOW,
    TINY,
)
from dpaudit.levels.piecewise_smoothing import expected
from dpaudit.levels.rare_filter import USUAL_DRAWS
from dpaudit.levels.scores import shares, with_most
from dpaudit.outcomes import KIND, Column, Outcomes
from dpaudit.outcomes.known import BAND, Alphabet, Bands
from dpaudit.stats.p_values import chi_squared

# Least number of entries that a list of columns must have to count as a sequence.
_MIN_COLUMNS = 3
# This number is used for two limits, since more would take seconds: the largest number of free
# parameters of a model of sequences, and the largest number of tables whose odds ratios are fitted.
# There is a table for each value in each state; tables with few draws are left out.
_MAX_TABLES = 400
# Number of Newton steps in the fit of the log-odds of a value.
_NEWTON_STEPS = 8
# A state is a summary of the earlier entries of a sequence. Index of the state that stands for all
# rare or unknown summaries.
RARE_STATE = 0


Places = NDArray[np.intp]
# A summary of the earlier entries of a sequence: (last value, count of value 0, count of value 1,
# …). The last value is -1, and counts are 0, if the summary does not keep them.
Past = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a state keeps of the earlier entries of a sequence.

    times: whether it keeps, for each value, the number of earlier entries with this value.
    last: whether it keeps the value of the last earlier entry.
    """

    times: bool
    last: bool

    def after(self, past: Past, symbol: int) -> Past:
        """Return the summary `past` of the earlier entries, updated by one more entry."""
        times = list(past[1:])
        times[symbol] += self.times
        return (symbol if self.last else -1, *times)

    @property
    def words(self) -> str:
        counts = ["how often each value occurred before it"] if self.times else []
        return " and ".join([*counts, *(["the one before it"] if self.last else [])])


_BY_TIMES = Summary(times=True, last=False)
_BY_LAST = (Summary(times=False, last=True), Summary(times=True, last=True))
_BY_NOTHING = Summary(times=False, last=False)


@dataclass(frozen=True, slots=True, eq=False)
class EntryStep:
    """An entry of sequences, such as the third: its log-ratio and the next state, by state and
    symbol.

    symbols: maps the values of the entry to symbols.
    weights, following: (states * symbols,), the log-ratios and the next states.
    """

    symbols: Alphabet
    weights: FloatArray
    following: Places

    @property
    def cells(self) -> int:
        return len(self.following)

    @property
    def shape(self) -> tuple[int, int]:
        """(number of states, number of symbols)."""
        symbols = len(self.symbols.values) + 1
        return self.cells // symbols, symbols


@dataclass(frozen=True, slots=True, eq=False)
class MarkovStates:
    """The states of sequences at each entry.

    summary: which parts of the earlier entries a state keeps.
    steps: for each entry, the log-ratios (0 until fitted) and the next states.
    cells: for each entry, (sequences,), the index of its state and symbol; empty if not kept.
    pasts: for each entry and state, the summary of the earlier entries that the state stands for.
    worth: Schwarz's criterion (1978): log-likelihood of all entries given their states, minus ½
        log(draws) for each parameter.
    """

    summary: Summary
    steps: tuple[EntryStep, ...]
    cells: tuple[Places, ...]
    pasts: tuple[tuple[Past, ...], ...]
    worth: float

    @classmethod
    def over(cls, outcomes: Outcomes, draws: IntArray | None = None) -> MarkovStates | None:
        """Return the states of these sequences, with the summary that fits best. Return None if
        entries take more than 8 distinct values, or if the states need more than 400 parameters.

        draws: (outcomes,), number of draws of each outcome; None: 1 each.
        """
        columns, values = _of_few_values(outcomes.columns)
        if not _MIN_COLUMNS <= len(columns) <= MAX_COLUMNS:
            return None
        symbols = [Alphabet(column.name, tuple(values)) for column in columns]
        few = outcomes if outcomes.size <= EXAMINED_DRAWS else outcomes.take(slice(EXAMINED_DRAWS))
        of_few = None if draws is None else draws[:EXAMINED_DRAWS]
        usual = cls._by(_BY_TIMES, symbols, few, of_few)
        if usual is None:
            return None
        # A state summarises the earlier entries of a sequence. By default, it counts how often each
        # value occurred among them. Another summary replaces the default if it fits the first draws
        # best. Exception: a summary that keeps nothing (`_BY_NOTHING`) never does so, since further
        # draws may show that entries depend on the counts.
        alternatives = [
            cls._by(summary, symbols, few, of_few) for summary in (_BY_NOTHING, *_BY_LAST)
        ]
        best = max(filter(None, (usual, *alternatives)), key=lambda states: states.worth)
        chosen = best if best.summary.last else usual
        return chosen if few is outcomes else cls._by(chosen.summary, symbols, outcomes, draws)

    @classmethod
    def _by(
        cls,
        summary: Summary,
        symbols: Sequence[Alphabet],
        outcomes: Outcomes,
        draws: IntArray | None,
        least: int = DRAWS_PER_VALUE,
    ) -> MarkovStates | None:
        """Return the states of sequences; None if they need more than 400 parameters."""
        values = len(symbols[0].values)
        past = np.full(outcomes.size, RARE_STATE + 1, dtype=np.intp)
        columns = outcomes.named(alphabet.name for alphabet in symbols)
        of_past: tuple[Past, ...] = ((-2, *[0] * values), (-1, *[0] * values))
        steps, cells, pasts, tables, likelihood, total = [], [], [], 0, 0.0, 0.0
        for alphabet, column in zip(symbols, columns, strict=True):
            cell = past * (values + 1) + alphabet(column)
            counts = np.bincount(cell, weights=draws, minlength=len(of_past) * (values + 1))
            following, next_pasts = _following(counts, of_past, summary, _classes(alphabet), least)
            steps.append(EntryStep(alphabet, np.zeros(len(following)), following))
            cells.append(cell)
            pasts.append(of_past)
            past, of_past = following.take(cell), next_pasts
            table = counts.reshape(-1, values + 1)
            tables += _free_parameters(table)
            if tables > _MAX_TABLES:
                return None
            likelihood += _log_likelihood(table)
            total += float(counts.sum())
        worth = likelihood - tables * math.log(max(1.0, total)) / 2
        return cls(summary, tuple(steps), tuple(cells), tuple(pasts), worth)

    def finer(self, outcomes: Outcomes) -> MarkovStates:
        """Return more states, for draws that are still to be counted. A summary gets a state of its
        own if it occurs in 10 draws of `outcomes`, instead of 50; rarer ones share `RARE_STATE`.
        Return the present states if there would be more than 400 parameters.

        outcomes: the sequences for which the present states were made.
        """
        symbols = [step.symbols for step in self.steps]
        return self._by(self.summary, symbols, outcomes, None, USUAL_DRAWS) or self

    def through(self, bands: Bands) -> MarkovStates:
        """Return the same states, for sequences of numbers that are replaced by their bands."""
        steps = [replace(step, symbols=step.symbols.through(bands)) for step in self.steps]
        return replace(self, steps=tuple(steps))

    def tables(self, counts: IntArray) -> list[IntArray]:
        """Return, for each entry, the counts by fit, state and symbol: (fits, states, symbols, 2).

        counts: (fits, outcomes, 2), by the outcomes for which the states were made.
        """
        tables = []
        for cell, step in zip(self.cells, self.steps, strict=True):
            arms = np.moveaxis(counts, 2, 1).reshape(-1, counts.shape[1])
            every = [np.bincount(cell, weights=arm, minlength=step.cells) for arm in arms]
            table = np.array(every, dtype=np.int64).reshape(len(counts), 2, *step.shape)
            tables.append(np.moveaxis(table, 1, -1))
        return tables


def _classes(alphabet: Alphabet) -> tuple[int, ...]:
    """Return, for each value, the value that stands for it in states: one stands for all bands."""
    is_band = [isinstance(value, str) and value.startswith(BAND) for value in alphabet.values]
    first = is_band.index(True) if any(is_band) else 0
    return tuple(first if is_one else index for index, is_one in enumerate(is_band))


def _free_parameters(draws: NDArray[Any]) -> int:
    """Return the number of free parameters of the distributions of symbols in all states."""
    # A state with draws of k symbols has k - 1 parameters; `RARE_STATE` has none.
    known = draws[RARE_STATE + 1 :]
    later = np.cumsum(known[:, ::-1], axis=1)[:, ::-1]
    return int(((known[:, :-1] > 0) & (later[:, 1:] > 0)).sum())


def _log_likelihood(draws: NDArray[Any]) -> float:
    """Return the log-likelihood of symbols given states."""
    share = draws / np.maximum(1, draws.sum(axis=1, keepdims=True))
    return float((draws * np.log(np.where(draws > 0, share, 1.0))).sum())


def _following(
    draws: NDArray[Any],
    pasts: Sequence[Past],
    summary: Summary,
    classes: Sequence[int],
    least: int,
) -> tuple[Places, tuple[Past, ...]]:
    """Return the state after each state and symbol, (states * symbols,), and the new pasts."""
    nexts: list[Past | None] = []
    total: Counter[Past] = Counter()
    symbols = len(draws) // len(pasts)
    for index, count in enumerate(draws.tolist()):
        past, symbol = divmod(index, symbols)
        result = None
        if past != RARE_STATE and symbol < symbols - 1:
            result = summary.after(pasts[past], classes[symbol])
            total[result] += count
        nexts.append(result)
    often = [past for past, count in total.most_common(MAX_LEVELS) if count >= least]
    known = {past: state for state, past in enumerate(often, RARE_STATE + 1)}
    following = [known.get(past, RARE_STATE) if past is not None else RARE_STATE for past in nexts]
    return np.array(following, dtype=np.intp), (pasts[RARE_STATE], *often)


def _of_few_values(columns: Sequence[Column]) -> tuple[list[Column], list[float | str]]:
    """Return the columns that have at most 8 distinct entries in all, and these entries."""
    total: Counter[float | str] = Counter()
    result = []
    for column in columns:
        if column.name.startswith(KIND):
            continue
        entries = _entries(column)
        if entries is not None and len(total | entries) <= FEW_VALUES:
            result.append(column)
            total += entries
    return result, [entry for entry, _ in total.most_common()]


def _entries(column: Column) -> Counter[float | str] | None:
    """Return the draws of each distinct entry of a column; None if there are more than 8."""
    # 100 numbers show quickly that a column has many values. NaN, at labels, counts once.
    if len(column.labels) > FEW_VALUES or len(np.unique(column.numbers[:100])) > 2 * FEW_VALUES:
        return None
    codes = column.codes
    numbers = column.numbers if codes is None else column.numbers[codes == 0]
    values, counts = np.unique(numbers, return_counts=True)
    if len(values) > FEW_VALUES or np.isnan(values).any():
        return None
    result = Counter[float | str](dict(zip(values.tolist(), counts.tolist(), strict=True)))
    if codes is not None:
        labels = np.bincount(codes, minlength=len(column.labels) + 1)[1:].tolist()
        result.update(
            {label: count for label, count in zip(column.labels, labels, strict=True) if count}
        )
    return result


def depend(counts: Sequence[IntArray]) -> bool:
    """Return whether entries depend on the earlier entries, by a χ² test over both inputs.

    counts: for each entry, counts by state, symbol and input, (states, symbols, 2).
    """
    tables = (table for draws in counts for table in np.moveaxis(draws[RARE_STATE + 1 :], -1, 0))
    total, freedom = chi_squared(tables)
    return total > freedom + tuning.DEVIATIONS_BEYOND_LUCK * math.sqrt(2 * freedom)


def weights(trained: Sequence[IntArray], states: MarkovStates) -> list[FloatArray]:
    """Return, for each entry, the log-ratio of every state and symbol: (fits, states * symbols).

    For every state and value, a table of two by two counts the draws of this value, and of all
    values with larger symbols, by input. The log odds ratios of these tables are shrunk in two
    steps. First, their mean over the states of an entry is shrunk towards the means of neighbouring
    entries. Then the deviation of each state from this mean is shrunk towards those of states that
    differ only in the count of their most frequent value.

    trained: for each entry, the counts of each fit: (fits, states, symbols, 2).
    """
    value_draws, later_draws, rows, entries, shapes = [], [], list[int](), list[int](), []
    known: dict[tuple[int, ...], int] = {}
    for entry, (counts, pasts) in enumerate(zip(trained, states.pasts, strict=True)):
        train = counts.copy()
        train[:, RARE_STATE] = 0
        later = np.cumsum(train[:, :, ::-1], axis=2)[:, :, ::-1]
        value_draws.append(train[:, :, :-1].reshape(len(train), -1, 2))
        later_draws.append(later[:, :, 1:].reshape(len(train), -1, 2))
        shapes.append(train.shape[1:3])
        for last, *times in pasts:
            frequent = max(range(len(times)), key=times.__getitem__)
            for value in range(train.shape[2] - 1):
                row = (value, last, frequent, *times[:frequent], *times[frequent + 1 :])
                rows.append(known.setdefault(row, len(known)))
                entries.append(value * len(trained) + entry)
    every = np.concatenate(value_draws, axis=1), np.concatenate(later_draws, axis=1)
    indices = np.array(entries), np.array(entries) // len(trained), np.array(rows)
    of_value, of_later = _log_ratios(*every, _odds_ratios(*every, *indices))
    result, start = [], 0
    for past_count, symbols in shapes:
        columns = slice(start, start + past_count * (symbols - 1))
        start = columns.stop
        by_past = len(of_value), past_count, symbols - 1
        total = np.zeros((len(of_value), past_count, symbols))
        total[:, :, 1:] = np.cumsum(of_later[:, columns].reshape(by_past), axis=2)
        total[:, :, :-1] += of_value[:, columns].reshape(by_past)
        total[:, :, -1] = 0.0  # the last symbol, for an entry that is none of the known values
        result.append(total.reshape(len(of_value), -1))
    return result


def _odds_ratios(
    value_draws: IntArray,
    later_draws: IntArray,
    entries: IntArray,
    values: IntArray,
    rows: IntArray,
) -> FloatArray:
    """Return the expected log odds ratio of each two-by-two table: (fits, tables)."""
    # There is a table for each entry, state and value, with the draws of this value and of all
    # values with larger indices, on d1 and on d2. `entries` and `rows` number groups of tables:
    # those of one value and entry, and those of related states, whose odds ratios are similar.
    value, later = value_draws + 0.5, later_draws + 0.5
    observed = np.log(value[..., 0] * later[..., 1] / (value[..., 1] * later[..., 0]))
    variance = (1 / value + 1 / later).sum(axis=2)
    result = np.zeros_like(observed)
    # To save time, only the tables with the most draws are fitted. The log odds ratio of every
    # other table stays 0.
    least = np.minimum(value_draws.sum(axis=(0, 2)), later_draws.sum(axis=(0, 2)))
    fitted = np.sort(np.argsort(-least, kind="stable")[:_MAX_TABLES])
    fitted = fitted[least[fitted] > 0]
    if len(fitted) == 0:
        return result
    observed, variance = observed[:, fitted], variance[:, fitted]
    _, first, entry = np.unique(entries[fitted], return_index=True, return_inverse=True)
    weight = 1 / variance
    of_entry, total = (
        np.stack([np.bincount(entry, weights=amounts) for amounts in numbers])
        for numbers in (weight, weight * observed)
    )
    along = _in_rows(values[fitted][first])
    common = expected(total / of_entry, 1 / of_entry, along)[:, entry]
    # The deviation of a state is taken from the mean of all states of the entry, this state
    # included. If the state has nearly all draws, its deviation is nearly 0 whatever its odds ratio
    # is. So the variance of the deviation is divided by the weight of the other states.
    other_share = np.maximum(1 - weight / of_entry[:, entry], TINY)
    result[:, fitted] = common + expected(
        observed - common, variance / other_share, _in_rows(rows[fitted])
    )
    return result


def _in_rows(row: IntArray) -> IntArray:
    """Return one row of indices for each distinct number: [5, 3, 5] gives [[1, -1], [0, 2]]."""
    _, counts = np.unique(row, return_counts=True)
    table = np.full((len(counts), counts.max(initial=0)), -1)
    table[np.arange(table.shape[1]) < counts[:, None]] = np.argsort(row, kind="stable")
    return table


def _log_ratios(
    value_draws: IntArray, later_draws: IntArray, odds_ratio: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the log-ratios of a value and of all values after it, both (fits, tables)."""
    # The log-odds of the value (against the values after it) are `centre` + `odds_ratio` / 2 on d1
    # and `centre` - `odds_ratio` / 2 on d2. Newton's method finds the `centre` for which the
    # expected draws of the value, d1 and d2 together, equal the observed draws.
    draws = (value_draws + later_draws).astype(np.float64)
    wanted = value_draws.sum(axis=2) + 0.5
    centre = np.log(wanted / (later_draws.sum(axis=2) + 0.5))
    draws += 0.5
    for _ in range(_NEWTON_STEPS):
        of_d1, of_d2 = (
            1 / (1 + np.exp(-(centre + off))) for off in (odds_ratio / 2, -odds_ratio / 2)
        )
        off = wanted - draws[..., 0] * of_d1 - draws[..., 1] * of_d2
        bend = draws[..., 0] * of_d1 * (1 - of_d1) + draws[..., 1] * of_d2 * (1 - of_d2)
        centre += np.clip(off / np.maximum(bend, TINY), -MAX_STEP, MAX_STEP)
    of_d2, of_d1 = centre - odds_ratio / 2, centre + odds_ratio / 2
    of_value = np.logaddexp(0, -of_d2) - np.logaddexp(0, -of_d1)
    return of_value, np.logaddexp(0, of_d2) - np.logaddexp(0, of_d1)


def sequence_predictor(outcomes: Outcomes, counts: IntArray) -> Predictor | None:
    """Return a function that predicts the log-ratio of each sequence, (fits, sequences), from the
    counts of all sequences, (fits, sequences, 2). Return None for fewer than 1,000 draws, if
    entries take many distinct values, or if entries do not depend on earlier entries.

    outcomes: the distinct sequences.
    counts: (sequences, 2), draws of each sequence.
    """
    if counts.sum() < MIN_DRAWS_SLOW:
        return None
    states = MarkovStates.over(outcomes, counts.sum(axis=1))
    if states is None or not depend([table[0] for table in states.tables(counts[None])]):
        return None
    return partial(_predicted, states)


def _predicted(states: MarkovStates, counts: IntArray) -> FloatArray:
    fits = weights(states.tables(counts), states)
    pairs = zip(states.cells, fits, strict=True)
    return np.asarray(np.sum([fit[:, cell] for cell, fit in pairs], axis=0))


NAME = "sum over entries, each given those before it"


@dataclass(frozen=True, slots=True, eq=False)
class Prefixes:
    """The score that sums the log-ratios of the entries of a sequence, each given its state."""

    steps: tuple[EntryStep, ...]
    summary: Summary
    columns: tuple[tuple[str, float], ...]

    @classmethod
    def of(
        cls, states: MarkovStates, fit: Sequence[FloatArray], spread: Sequence[float]
    ) -> Prefixes:
        """Return the score that sums the given log-ratios over the entries of a sequence.

        fit: for each entry, (states * symbols,), the log-ratios.
        spread: for each entry, the standard deviation of its log-ratio over the draws.
        """
        importance = shares([step.symbols.name for step in states.steps], spread)
        pairs = zip(states.steps, fit, strict=True)
        steps = tuple(replace(step, weights=log_ratios) for step, log_ratios in pairs)
        return cls(steps, states.summary, importance)

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        total = np.zeros(outcomes.size)
        for step, cell in self.along(outcomes):
            total += step.weights.take(cell)
        return total

    def along(self, outcomes: Outcomes) -> Iterator[tuple[EntryStep, Places]]:
        """Yield (step, indices) for each entry: its `EntryStep`, and the index of state and symbol
        of every outcome, (size,). The array of indices is overwritten when the next pair is
        yielded."""
        past = np.full(outcomes.size, RARE_STATE + 1, dtype=np.intp)
        columns = outcomes.named(step.symbols.name for step in self.steps)
        for step, column in zip(self.steps, columns, strict=True):
            past *= len(step.symbols.values) + 1
            past += step.symbols(column)
            yield step, past
            past = step.following.take(past)

    def words(self) -> str:
        what = f"adds up {len(self.steps):,} entries, each given {self.summary.words}"
        named = with_most(what, self.columns)
        has_bands = any(step.symbols.bands is not None for step in self.steps)
        return f"{named}, of numbers the band that they lie in" if has_bands else named
