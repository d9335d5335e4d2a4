"""The attack on repeated runs: one log-ratio, learned from all runs at once and added up over them.

The runs on one input are independent and alike, so that the sum is the best score there is when
the log-ratio of one run is known, and learning it from all runs takes as many times fewer draws.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dpaudit.attacks.additive import Total
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidate import Candidate, by_score
from dpaudit.levels.cells import Cells, make_cells
from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.scores import Scored, most, shares
from dpaudit.outcomes import Column, Outcomes
from dpaudit.outcomes.columns import join

_CELLS = 64
_RUN = re.compile(r"\boutput\[\d+\]")
_EVERY = "output[*]"

Names = tuple[str, ...]


def exchangeable(selection: SelectionDraws) -> list[Candidate]:
    """Order lists of runs by the sum of the evidence of each run."""
    groups = _alike(selection.outcomes.columns)
    if not groups:
        return []
    names, total = [], Total(selection)
    for name, columns in groups.items():
        cells = make_cells(join([replace(one, name=name) for one in columns]), _CELLS)
        total.add(cells, *(cells(column) for column in columns))
        names.append(tuple(column.name for column in columns))
    tables, spread, held_out, halves = total.settle()
    freeze = partial(
        Exchangeable, tuple(zip(tables, names, strict=True)), shares(list(groups), spread)
    )
    return [by_score(Scored("sum over runs", held_out, freeze, halves), selection)]


@dataclass(frozen=True, slots=True, eq=False)
class Exchangeable:
    """The score that adds up what every run says. tables: cell to score, and the columns that it
    is for, one of each run."""

    tables: tuple[tuple[Cells, Names], ...]
    columns: tuple[tuple[str, float], ...]

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        total = np.zeros(outcomes.size)
        for table, names in self.tables:
            for column in outcomes.named(names):
                total += table(column)
        return total

    def words(self) -> str:
        what = f"adds up {max(len(names) for _, names in self.tables)} runs"
        named = most(self.columns) if len(self.columns) > 1 else ()
        return f"{what}, most of all {', '.join(named)}" if named else what


def _alike(columns: Sequence[Column]) -> dict[str, list[Column]]:
    """Return the columns of runs, by what they are of every run."""
    found: dict[str, list[Column]] = {}
    for column in columns:
        name, replaced = _RUN.subn(_EVERY, column.name, count=1)
        if replaced:
            found.setdefault(name, []).append(column)
    return found
