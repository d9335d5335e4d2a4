"""Test whether several processes draw from one distribution (docs/method.md §11, *New processes*).

The draws of all processes are divided into cells. The table of counts by process and cell is tested
given its totals. Since the cells follow from the draws of all processes together, the test is
exact. The order of a list may be the order of a set of texts, which the hash seed determines. So
the cells of a rule divide only the draws of processes with the same hash seed. Other cells depend
on the entries of a list, but not on their order.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import SelectionDraws, by_arm
from dpaudit.levels.level_map import equal_mass_runs
from dpaudit.levels.portfolio import Portfolio
from dpaudit.outcomes import Column, Outcomes
from dpaudit.stats.dependence import log_mean_e_value, log_table_e_value

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Largest number of cells of equal mass into which numbers are divided.
_CELLS = 16
# Largest numbers of entries that are counted in each list: intervals of numbers, and labels.
_COUNTED = 8
# Largest number of places of an output whose entries are compared.
_MAX_PLACES = 256
# Equal sums of floats, added up in the order of a set, differ by rounding. Repeated numbers count
# as equal if they differ by at most this share.
_ROUNDING = 1e-12
_INDEX = re.compile(r"\[\d+\]")
_WORDS = (
    "outputs for {} differ from process to process more than independent draws can (p < {:g}): an "
    "event {} {:,} draws here and {} draws of new processes; every process of the mechanism keeps "
    "something, such as noise that it draws when it is imported or takes from the clock or from "
    "hash(); draw fresh noise for every output and keep nothing between calls; if outputs contain "
    "the date or the time, remove it by post_process"
)


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """A division of the draws into cells.

    cell: the cell of every draw, of shape (draws,). It may depend on all draws together, but not on
        which process made which draw.
    processes: numbers of the processes that this division compares.
    """

    cell: IntArray
    processes: Sequence[int]


def between_processes(
    parts: Sequence[SelectionDraws], divisions: Sequence[Division], level: float
) -> tuple[float, str]:
    """Return (log of an e-value, text) for the hypothesis "all processes draw from one
    distribution".

    If the e-value is at least 1 / level, the hypothesis is rejected, and the text is an error
    message that says how the draws differ. Otherwise the text is empty.

    parts: the draws of each process; process 0 is the auditing process.
    level: probability that the hypothesis is rejected although it is true.
    """
    process = np.repeat(np.arange(len(parts)), [part.size for part in parts])
    is_d1 = np.concatenate([part.is_d1 for part in parts])
    tables = [_tables(division.cell, process, is_d1, len(parts)) for division in divisions]
    logs = [
        [log_table_e_value(table[list(division.processes)]) for table in arms]
        for arms, division in zip(tables, divisions, strict=True)
    ]
    # Given the numbers of draws, the draws of d1 and of d2 are independent, so the product of their
    # e-values is an e-value.
    evidence = log_mean_e_value(map(sum, logs))
    if evidence < -math.log(level):
        return evidence, ""
    index, arm = divmod(int(np.argmax(logs)), 2)
    processes = list(divisions[index].processes)
    return evidence, _words(tables[index][arm], processes, f"d{arm + 1}", level)


def _tables(cell: IntArray, process: IntArray, is_d1: NDArray[np.bool_], count: int) -> IntArray:
    """Return the number of draws by input, process and cell."""
    cells = int(cell.max(initial=0)) + 1
    counts = by_arm(process * cells + cell, count * cells, is_d1)
    return np.moveaxis(counts.reshape(count, cells, 2), 2, 0)


def _words(table: IntArray, processes: Sequence[int], name: str, level: float) -> str:
    sizes = table.sum(axis=1, keepdims=True)
    shares = 100 * table / np.maximum(sizes, 1)
    drew = [number for number in processes if sizes[number] > 0]
    event = int(np.ptp(shares[drew], axis=0).argmax())
    new_shares = shares[[number for number in drew if number > 0], event]
    here, low, high = shares[0, event], new_shares.min(), new_shares.max()
    frequency = f"came up in {here:.3g} % of" if here else "never came up in"
    new = f"in {low:.3g} % to {high:.3g} % of" if high else "never in"
    return _WORDS.format(name, level, frequency, int(sizes[0, 0]), new)


def rule_cells(outcomes: Outcomes, rule: Portfolio, guesses: IntArray) -> list[IntArray]:
    """Return two divisions of the draws into cells. One is by the guess of the refuting rule, the
    other by up to 16 runs of consecutive levels with about equal numbers of draws."""
    levels = rule(outcomes)
    runs = equal_mass_runs(np.bincount(levels, minlength=rule.levels), _CELLS)
    return [guesses[levels] + 1, np.asarray(runs[levels], dtype=np.int64)]


def order_free_cells(outcomes: Outcomes) -> Iterator[IntArray]:
    """Yield divisions of outcomes into cells that depend on the entries of lists and on the
    characters of texts, but not on their order."""
    groups: dict[str, list[Column]] = {}
    for column in outcomes.columns:
        groups.setdefault(_INDEX.sub("[]", column.name), []).append(column)
    for columns in list(groups.values())[:_MAX_PLACES]:
        known: dict[str, int] = {}
        labels = np.stack([_sorted_labels(column, known) for column in columns])
        numbers = np.stack([column.numbers for column in columns])
        is_number = (labels == 0) & ~np.isnan(numbers)
        if len(columns) == 1:
            yield np.where(labels[0], _CELLS + _frequent(labels[0]), _cells(numbers[0], _CELLS))
        else:
            yield from _list_cells(np.where(is_number, numbers, np.nan), labels)


def _sorted_labels(column: Column, known: dict[str, int]) -> IntArray:
    """Return a number for each entry's label; equal numbers mean equal characters, in any order."""
    if column.codes is None:
        return np.zeros(len(column.numbers), dtype=np.int64)
    numbers = [known.setdefault("".join(sorted(label)), len(known) + 1) for label in column.labels]
    return np.array([0, *numbers], dtype=np.int64)[column.codes]


def _frequent(labels: IntArray) -> IntArray:
    """Return a cell for each of the most frequent labels, and cell 0 for all others."""
    frequent = [label for label, _ in Counter(labels[labels > 0].tolist()).most_common(_CELLS)]
    cell = np.zeros(int(labels.max(initial=0)) + 1, dtype=np.int64)
    cell[frequent] = np.arange(1, len(frequent) + 1)
    return np.asarray(cell[labels])


def _list_cells(numbers: FloatArray, labels: IntArray) -> Iterator[IntArray]:
    """Yield divisions of lists: by sum, by extremes, by numbers in an interval, and by labels."""
    if not np.isnan(numbers).all():
        with np.errstate(invalid="ignore", over="ignore"):
            yield _cells(np.nansum(numbers, axis=0), _CELLS)
        yield _cells(np.fmin.reduce(numbers, axis=0), _CELLS)
        yield _cells(np.fmax.reduce(numbers, axis=0), _CELLS)
        interval = _cells(numbers.ravel(), _COUNTED).reshape(numbers.shape)
        for number in range(_COUNTED):
            yield _cells((interval == number).sum(axis=0).astype(float), _CELLS)
    frequent = _frequent(labels.ravel()).reshape(labels.shape)
    for number in range(1, min(_COUNTED, int(frequent.max(initial=0))) + 1):
        yield _cells((frequent == number).sum(axis=0).astype(float), _CELLS)


def _cells(numbers: FloatArray, cells: int) -> IntArray:
    """Return the cell of each number. Cells are runs with about equal mass, and one for NaN."""
    values, index, counts = np.unique(
        numbers, return_inverse=True, return_counts=True, equal_nan=True
    )
    counts = np.where(np.isnan(values), 0, counts)
    run = equal_mass_runs(counts, cells)
    repeated = np.flatnonzero(counts > 1)
    with np.errstate(invalid="ignore"):
        steps = np.diff(values[repeated]) > _ROUNDING * np.abs(values[repeated][1:])
    if not steps.all():  # repeated numbers that differ by rounding share the cell of the first
        first = np.maximum.accumulate(np.where(np.append(True, steps), np.arange(len(repeated)), 0))
        run[repeated] = run[repeated[first]]
    return np.where(np.isnan(values), cells, run)[index].astype(np.int64)
