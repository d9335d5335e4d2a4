"""The attack on sequences of few values: what each entry tells, given those before it.

The log-ratio of a sequence is the sum, over its entries, of that of each given those before it.
Those before it are summed up by how often each value came up among them: all there is to know where
entries are alike, and independent but for a number that all of them share, such as the noisy
threshold of the sparse vector technique. Where the last one foretells the next better, as in a
Markov chain, it stands in place of these numbers, or beside them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidate import Candidate, by_score
from dpaudit.levels.level_map import FOLDS, HALF, FloatArray, IntArray, by_fold, folds
from dpaudit.levels.scores import Scored, aligned, shares, with_most
from dpaudit.levels.stretches import expected
from dpaudit.outcomes import KIND, Column, Outcomes
from dpaudit.outcomes.bands import BAND
from dpaudit.stats.contingency import chi_squared

NAME = "sum over entries, each given those before it"

_LEAST_DRAWS = 1_000
_FEWEST_COLUMNS, _MOST_COLUMNS = 3, 128
# Different entries of all columns together, at most.
_MOST_VALUES = 8
# Pasts of an entry that are told apart, the most frequent ones; each of so many draws.
_MOST_PASTS, _DRAWS_OF_A_PAST = 64, 50
# Odds of one value against those after it, by the pasts of all entries: so many are learned fast.
_MOST_TABLES = 200
# Standard deviations by which entries must depend on their past more than they do by luck.
_DEPENDENT = 6.0
# A past of which nothing is known.
_LOST = 0
_NEWTON_STEPS = 8

# The first draws show what a past is best summed up by.
_LOOKED_AT = 4_096

Places = NDArray[np.intp]
Symbols = NDArray[np.uint8]
# The place of the last value, and how often each came up; -1 and 0 where that is not kept.
Past = tuple[int, ...]


def prefixes(selection: SelectionDraws) -> list[Candidate]:
    """Order sequences of few values by the sum of what each entry tells, given those before it."""
    if selection.size < _LEAST_DRAWS:
        return []
    walk = Walk.over(selection.outcomes)
    if walk is None:
        return []
    counts = [
        by_fold(cell, step.cells, selection.is_d1).reshape(FOLDS, *step.shape, 2)
        for cell, step in zip(walk.cells, walk.steps, strict=True)
    ]
    if not _depend([one.sum(axis=0) for one in counts]):
        return []
    fits = _weights([_trained(one) for one in counts], walk)
    fold = folds(selection.size)
    held_out, kept = np.zeros(selection.size), np.zeros(selection.size)
    halves, spread = np.zeros((2, selection.size)), []
    for cell, fit in zip(walk.cells, fits, strict=True):
        held_out += fit[fold, cell]
        own = fit[FOLDS][cell]
        kept += own
        halves += fit[-2:, cell]
        spread.append(float(own.std()))
    importance = shares([one.symbols.name for one in walk.steps], spread)
    steps = [one.weighing(fit[FOLDS]) for one, fit in zip(walk.steps, fits, strict=True)]
    freeze = partial(Prefixes, tuple(steps), walk.summary, importance)
    return [by_score(Scored(NAME, aligned(held_out, fold, kept), freeze, halves), selection)]


def kin_of(outcomes: Outcomes, counts: IntArray) -> Kin | None:
    """Return what different outcomes have to do with each other as sequences; None where they are
    none, or where entries do not depend on those before them. counts: (outcomes, 2)."""
    if counts.sum() < _LEAST_DRAWS:
        return None
    walk = Walk.over(outcomes, counts.sum(axis=1))
    if walk is None or not _depend([one[0] for one in walk.tables(counts[None])]):
        return None
    return Kin(walk)


@dataclass(frozen=True, slots=True, eq=False)
class Kin:
    """What counts of different sequences of few values say of each of them, together."""

    walk: Walk

    def __call__(self, counts: IntArray) -> FloatArray:
        """Return the log-ratio to expect of every sequence, (fits, sequences), by the counts of
        each: (fits, sequences, 2)."""
        fits = _weights(self.walk.tables(counts), self.walk)
        both = zip(self.walk.cells, fits, strict=True)
        return np.asarray(np.sum([fit[:, cell] for cell, fit in both], axis=0))


@dataclass(frozen=True, slots=True)
class _Symbols:
    """The place of an entry among `values`, their number for any other."""

    name: str
    values: tuple[float | str, ...]

    @property
    def classes(self) -> tuple[int, ...]:
        """What each value counts as in the past of others: bands of numbers as one."""
        is_band = [isinstance(one, str) and one.startswith(BAND) for one in self.values]
        first = is_band.index(True) if any(is_band) else 0
        return tuple(first if one else place for place, one in enumerate(is_band))

    def __call__(self, column: Column) -> Symbols:
        many = len(self.values)
        found = np.zeros(len(column.numbers), dtype=np.uint8)
        # Each value is met once at most: what is added up is how far its place is from the last.
        for place, value in enumerate(self.values):
            if not isinstance(value, str):
                found += np.equal(column.numbers, value).view(np.uint8) * np.uint8(many - place)
        if column.codes is not None:
            known = {value: many - place for place, value in enumerate(self.values)}
            by_code = np.array([0, *(known.get(label, 0) for label in column.labels)], np.uint8)
            found += by_code[column.codes]
        return np.uint8(many) - found


@dataclass(frozen=True, slots=True)
class Summary:
    """What is kept of the entries before another: how often each value came up, the last one."""

    times: bool
    last: bool

    def after(self, past: Past, symbol: int) -> Past:
        """Return the past of the entry after one."""
        times = list(past[1:])
        times[symbol] += self.times
        return (symbol if self.last else -1, *times)

    @property
    def words(self) -> str:
        kept = ["how often any came up before it"] if self.times else []
        return " and ".join([*kept, *(["the one before it"] if self.last else [])])


_BY_TIMES = Summary(times=True, last=False)
_BY_LAST = (Summary(times=False, last=True), Summary(times=True, last=True))
_BY_NOTHING = Summary(times=False, last=False)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One entry. weights, following: the log-ratio, and the past of the next entry, by the past of
    this one and its symbol: (pasts * symbols,)."""

    symbols: _Symbols
    weights: FloatArray
    following: Places

    @property
    def cells(self) -> int:
        return len(self.following)

    @property
    def shape(self) -> tuple[int, int]:
        """Pasts, and symbols."""
        symbols = len(self.symbols.values) + 1
        return self.cells // symbols, symbols

    def weighing(self, weights: FloatArray) -> Step:
        """Return the same step with other weights."""
        return Step(self.symbols, weights, self.following)


@dataclass(frozen=True, slots=True, eq=False)
class Prefixes:
    """The score that adds up what entries say, from the first one on."""

    steps: tuple[Step, ...]
    summary: Summary
    columns: tuple[tuple[str, float], ...]

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        total, past = np.zeros(outcomes.size), np.full(outcomes.size, _LOST + 1, dtype=np.intp)
        columns = outcomes.named(one.symbols.name for one in self.steps)
        for step, column in zip(self.steps, columns, strict=True):
            past *= len(step.symbols.values) + 1
            past += step.symbols(column)
            total += step.weights.take(past)
            past = step.following.take(past)
        return total

    def words(self) -> str:
        what = f"adds up {len(self.steps):,} entries, each given {self.summary.words}"
        return with_most(what, self.columns)


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """The way of some outcomes from entry to entry, without a look at their inputs.

    steps: by entry. cells: by entry, every outcome's past and symbol. pasts: by entry. worth: the
    log-likelihood of all entries given their pasts, less what its parameters cost (Schwarz 1978).
    """

    summary: Summary
    steps: tuple[Step, ...]
    cells: tuple[Places, ...]
    pasts: tuple[tuple[Past, ...], ...]
    worth: float

    @classmethod
    def over(cls, outcomes: Outcomes, draws: IntArray | None = None) -> Walk | None:
        """Return the way of outcomes, each of so many draws; None if they are no sequences of few
        values, or of so many that it divides too often."""
        columns, values = _of_few_values(outcomes.columns)
        if not _FEWEST_COLUMNS <= len(columns) <= _MOST_COLUMNS:
            return None
        symbols = [_Symbols(column.name, tuple(values)) for column in columns]
        few = outcomes if outcomes.size <= _LOOKED_AT else outcomes.take(slice(_LOOKED_AT))
        of_few = None if draws is None else draws[:_LOOKED_AT]
        usual = cls._by(_BY_TIMES, symbols, few, of_few)
        if usual is None:
            return None
        # Where few draws show no dependence, numbers of times are what may show it with more.
        others = [cls._by(one, symbols, few, of_few) for one in (_BY_NOTHING, *_BY_LAST)]
        best = max(filter(None, (usual, *others)), key=lambda one: one.worth)
        chosen = best if best.summary.last else usual
        return chosen if few is outcomes else cls._by(chosen.summary, symbols, outcomes, draws)

    @classmethod
    def _by(
        cls,
        summary: Summary,
        symbols: Sequence[_Symbols],
        outcomes: Outcomes,
        draws: IntArray | None,
    ) -> Walk | None:
        """Return the way where pasts are summed up so. symbols: of all entries."""
        values = len(symbols[0].values)
        past = np.full(outcomes.size, _LOST + 1, dtype=np.intp)
        columns = outcomes.named(one.name for one in symbols)
        of_past: tuple[Past, ...] = ((-2, *[0] * values), (-1, *[0] * values))
        steps, cells, pasts, tables, likelihood, total = [], [], [], 0, 0.0, 0.0
        for own, column in zip(symbols, columns, strict=True):
            cell = past * (values + 1) + own(column)
            many = np.bincount(cell, weights=draws, minlength=len(of_past) * (values + 1))
            following, next_pasts = _following(many, of_past, summary, own.classes)
            steps.append(Step(own, np.zeros(len(following)), following))
            cells.append(cell)
            pasts.append(of_past)
            past, of_past = following.take(cell), next_pasts
            table = many.reshape(-1, values + 1)
            tables += _that_tell(table)
            if tables > _MOST_TABLES:
                return None
            likelihood += _log_likelihood(table)
            total += float(many.sum())
        worth = likelihood - tables * math.log(max(1.0, total)) / 2
        return cls(summary, tuple(steps), tuple(cells), tuple(pasts), worth)

    def tables(self, counts: IntArray) -> list[IntArray]:
        """Return the draws by entry, (fits, pasts, symbols, 2), of those of all outcomes: (fits,
        outcomes, 2)."""
        found = []
        for cell, step in zip(self.cells, self.steps, strict=True):
            arms = np.moveaxis(counts, 2, 1).reshape(-1, counts.shape[1])
            every = [np.bincount(cell, weights=arm, minlength=step.cells) for arm in arms]
            table = np.array(every, dtype=np.int64).reshape(len(counts), 2, *step.shape)
            found.append(np.moveaxis(table, 1, -1))
        return found


def _that_tell(draws: NDArray[Any]) -> int:
    """Return of how many values it is open whether they come up, or one after them in their order,
    from the draws by past and symbol."""
    known = draws[_LOST + 1 :]
    later = np.cumsum(known[:, ::-1], axis=1)[:, ::-1]
    return int(((known[:, :-1] > 0) & (later[:, 1:] > 0)).sum())


def _log_likelihood(draws: NDArray[Any]) -> float:
    """Return that of symbols given their pasts, from the draws by past and symbol."""
    share = draws / np.maximum(1, draws.sum(axis=1, keepdims=True))
    return float((draws * np.log(np.where(draws > 0, share, 1.0))).sum())


def _following(
    draws: NDArray[Any], pasts: Sequence[Past], summary: Summary, classes: Sequence[int]
) -> tuple[Places, tuple[Past, ...]]:
    """Return the next past by past and symbol, whose draws are given, and all of these pasts.
    classes: of the symbols, but for the last one, of all other entries."""
    nexts: list[Past | None] = []
    total: Counter[Past] = Counter()
    symbols = len(draws) // len(pasts)
    for place, many in enumerate(draws.tolist()):
        past, symbol = divmod(place, symbols)
        found = None
        if past != _LOST and symbol < symbols - 1:
            found = summary.after(pasts[past], classes[symbol])
            total[found] += many
        nexts.append(found)
    often = [one for one, many in total.most_common(_MOST_PASTS) if many >= _DRAWS_OF_A_PAST]
    known = {one: place for place, one in enumerate(often, _LOST + 1)}
    following = [known.get(one, _LOST) if one is not None else _LOST for one in nexts]
    return np.array(following, dtype=np.intp), (pasts[_LOST], *often)


def _of_few_values(columns: Sequence[Column]) -> tuple[list[Column], list[float | str]]:
    """Return the columns that have few different entries, and these, the most frequent first."""
    total: Counter[float | str] = Counter()
    found = []
    for column in columns:
        if column.name.startswith(KIND):
            continue
        own = _entries(column)
        if own is not None and len(total | own) <= _MOST_VALUES:
            found.append(column)
            total += own
    return found, [one for one, _ in total.most_common()]


def _entries(column: Column) -> Counter[float | str] | None:
    """Return how often a column has each of its entries; None if these are many."""
    if len(column.labels) > _MOST_VALUES or len(np.unique(column.numbers[:100])) > 2 * _MOST_VALUES:
        return None
    codes = column.codes
    numbers = column.numbers if codes is None else column.numbers[codes == 0]
    own: Counter[float | str] = Counter()
    rest = numbers
    while len(rest):
        if len(own) == _MOST_VALUES:
            return None
        is_one = rest == rest[0]
        own[float(rest[0])] = int(is_one.sum())
        rest = rest[~is_one]
    if codes is not None:
        counts = np.bincount(codes, minlength=len(column.labels) + 1)[1:].tolist()
        every = zip(column.labels, counts, strict=True)
        own.update({label: many for label, many in every if many})
    return own


def _depend(counts: Sequence[IntArray]) -> bool:
    """Return whether entries depend on their past, of either input, beyond luck: by χ²."""
    tables = (table for one in counts for table in np.moveaxis(one[_LOST + 1 :], -1, 0))
    total, freedom = chi_squared(tables)
    return total > freedom + _DEPENDENT * math.sqrt(2 * freedom)


def _trained(counts: IntArray) -> IntArray:
    """Return the draws without each fold, all, and those of two halves, from those by fold."""
    everything = counts.sum(axis=0)
    halves = counts[:HALF].sum(axis=0), counts[HALF:].sum(axis=0)
    return np.stack([*(everything - counts), everything, *halves])


def _weights(trained: Sequence[IntArray], walk: Walk) -> list[FloatArray]:
    """Return what every past and symbol says, by entry, (fits, pasts * symbols), from the draws by
    entry: (fits, pasts, symbols, 2).

    Of every past each value is told apart from those that come after it in their order by an odds
    ratio. Those of one value in a row of entries are shrunk towards each other: of pasts that
    differ in nothing but how often their most frequent value came up, if that is kept.
    """
    ahead, behind, shapes = [], [], []
    rows: dict[tuple[int, ...], list[int]] = {}
    place = 0
    for one, before in zip(trained, walk.pasts, strict=True):
        train = one.copy()
        train[:, _LOST] = 0
        later = np.cumsum(train[:, :, ::-1], axis=2)[:, :, ::-1]
        ahead.append(train[:, :, :-1].reshape(len(train), -1, 2))
        behind.append(later[:, :, 1:].reshape(len(train), -1, 2))
        shapes.append(train.shape[1:3])
        for last, *times in before:
            most = max(range(len(times)), key=times.__getitem__)
            for value in range(train.shape[2] - 1):
                key = (value, last, most, *times[:most], *times[most + 1 :])
                rows.setdefault(key, []).append(place)
                place += 1
    every = np.concatenate(ahead, axis=1), np.concatenate(behind, axis=1)
    of_value, of_later = _log_ratios(*every, list(rows.values()))
    found, start = [], 0
    for many, symbols in shapes:
        own = slice(start, start + many * (symbols - 1))
        start = own.stop
        by_past = len(of_value), many, symbols - 1
        total = np.zeros((len(of_value), many, symbols))
        total[:, :, 1:] = np.cumsum(of_later[:, own].reshape(by_past), axis=2)
        total[:, :, :-1] += of_value[:, own].reshape(by_past)
        total[:, :, -1] = 0.0  # an entry that is none of the values
        found.append(total.reshape(len(of_value), -1))
    return found


def _log_ratios(
    ahead: IntArray, behind: IntArray, rows: Sequence[Sequence[int]]
) -> tuple[FloatArray, FloatArray]:
    """Return the log-ratios of a value and of those after it, both (fits, tables), from their draws
    by input, (fits, tables, 2). rows: of tables, whose odds ratios may be alike."""
    value, later = ahead + 0.5, behind + 0.5
    seen = np.log(value[..., 0] * later[..., 1] / (value[..., 1] * later[..., 0]))
    variance = (1 / value + 1 / later).sum(axis=2)
    tells = (ahead.sum(axis=(0, 2)) > 0) & (behind.sum(axis=(0, 2)) > 0)
    inside = [kept for row in rows if (kept := [place for place in row if tells[place]])]
    table = np.full((len(inside), max(map(len, inside), default=0)), -1)
    for row, places in zip(table, inside, strict=True):
        row[: len(places)] = np.searchsorted(np.flatnonzero(tells), places)
    odds_ratio = np.zeros_like(seen)
    odds_ratio[:, tells] = expected(seen[:, tells], variance[:, tells], table)
    # The log-odds of the value, in the middle of the two inputs, by its share of both.
    draws = (ahead + behind).astype(np.float64)
    wanted = ahead.sum(axis=2) + 0.5
    centre = np.log(wanted / (behind.sum(axis=2) + 0.5))
    draws += 0.5
    for _ in range(_NEWTON_STEPS):
        of_d1, of_d2 = _share(centre + odds_ratio / 2), _share(centre - odds_ratio / 2)
        off = wanted - draws[..., 0] * of_d1 - draws[..., 1] * of_d2
        bend = draws[..., 0] * of_d1 * (1 - of_d1) + draws[..., 1] * of_d2 * (1 - of_d2)
        centre += np.clip(off / np.maximum(bend, 1e-9), -1, 1)
    of_d2, of_d1 = centre - odds_ratio / 2, centre + odds_ratio / 2
    of_value = np.logaddexp(0, -of_d2) - np.logaddexp(0, -of_d1)
    of_later = np.logaddexp(0, of_d2) - np.logaddexp(0, of_d1)
    return np.where(tells, of_value, 0.0), np.where(tells, of_later, 0.0)


def _share(odds: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-odds)))
