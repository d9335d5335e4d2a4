"""The attack on repeated runs: one log-ratio, learned from all runs at once and added up over them.

The runs on one input are independent and alike, so that the sum is the best score there is when
the log-ratio of one run is known, and learning it from all runs takes as many times fewer draws.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from dpaudit.attacks.additive import Additive, Total
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidate import Candidate, by_score
from dpaudit.levels.cells import make_cells
from dpaudit.levels.scores import Scored, shares, with_most
from dpaudit.outcomes import Column
from dpaudit.outcomes.columns import join

_CELLS = 64
_RUN = re.compile(r"\boutput\[\d+\]")
_EVERY = "output[*]"


def exchangeable(selection: SelectionDraws) -> list[Candidate]:
    """Order lists of runs by the sum of the evidence of each run."""
    groups = _alike(selection.outcomes.columns)
    if not groups:
        return []
    names, total = [], Total(selection)
    for name, columns in groups.items():
        cells = make_cells(join([replace(one, name=name) for one in columns]), _CELLS)
        total.add(cells, *(cells(column) for column in columns))
        names.append([column.name for column in columns])
    tables, spread, held_out, halves = total.settle()
    importance = shares(list(groups), spread)
    what = f"adds up {max(map(len, names))} runs"
    said = with_most(what, importance) if len(importance) > 1 else what
    pairs = tuple((one, name) for one, own in zip(tables, names, strict=True) for name in own)
    freeze = partial(Additive, pairs, importance, said)
    return [by_score(Scored("sum over runs", held_out, freeze, halves), selection)]


def _alike(columns: Sequence[Column]) -> dict[str, list[Column]]:
    """Return the columns of runs, by what they are of every run."""
    found: dict[str, list[Column]] = {}
    for column in columns:
        name, replaced = _RUN.subn(_EVERY, column.name, count=1)
        if replaced:
            found.setdefault(name, []).append(column)
    return found
