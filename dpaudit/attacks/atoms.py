"""The attack on single values: every outcome seen often enough is a cell of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.prefixes import kin_of
from dpaudit.draws import LevelArray, SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidate import Candidate, Fine
from dpaudit.levels.cells import NO_OUTPUT, listed, shortened
from dpaudit.levels.level_map import (
    FOLDS,
    IntArray,
    LevelMap,
    by_fold,
    cut_by_mass,
    held_out_tally,
    log_ratio,
)
from dpaudit.outcomes import RAISED, KeyArray, Outcomes
from dpaudit.outcomes.known import Known

_LEAST = 2
_MOST = 4096
# Without a repetition among so many draws, hardly any single output could be worth a level.
_FIRST_LOOK = 2_000
_WORDS = 6
# Of more draws of other outcomes, sequences say too little of each other.
_FEW_OTHERS = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class AtomCounts:
    """Outcomes seen at least twice: keys (rising), counts (folds, atoms, 2), words, and one of
    each; and the draws of all others, (2,)."""

    keys: KeyArray
    counts: IntArray
    words: tuple[str, ...]
    outcomes: Outcomes
    rest: IntArray


def count_atoms(selection: SelectionDraws) -> AtomCounts:
    """Return the most frequent outcomes of the selection draws."""
    keys = selection.outcomes.keys()
    distinct, first, place, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    frequent = np.argsort(-counts, kind="stable")[:_MOST]
    frequent = np.sort(frequent[counts[frequent] >= _LEAST])
    column = np.full(len(distinct), len(frequent))
    column[frequent] = np.arange(len(frequent))
    table = by_fold(column[place], len(frequent) + 1, selection.is_d1)
    each = selection.outcomes.take(first[frequent])
    words = tuple(each.words(range(each.size)))
    return AtomCounts(distinct[frequent], table[:, :-1], words, each, table[:, -1].sum(axis=0))


def atoms(selection: SelectionDraws) -> list[Candidate]:
    """Order single outcomes by their smoothed log-ratios."""
    some = selection.outcomes.take(slice(_FIRST_LOOK))
    if len(np.unique(some.keys())) == some.size:
        return []
    found = count_atoms(selection)
    if len(found.keys) == 0:
        return []
    everything = found.counts.sum(axis=0)
    arms = everything.sum(axis=0) + found.rest
    fits = np.concatenate([everything - found.counts, everything[None]])
    level, levels = cut_by_mass(log_ratio(fits, arms), everything.sum(axis=1).astype(np.float64))
    rest = np.zeros((FOLDS, 1, 2), dtype=np.int64)
    rest[0] = found.rest
    held_out = held_out_tally(level[:-1], np.append(found.counts, rest, axis=1), levels)
    final = np.append(level[-1], levels).astype(np.intp)
    known = Known.of(found.keys, found.outcomes)
    freeze = partial(AtomLevels, known, final, found.words)
    penalty = tuning.PENALTY if len(found.keys) <= tuning.FEW_CELLS else tuning.PENALTY_ANY_ORDER
    every = AtomLevels(known, np.arange(len(found.keys) + 1, dtype=np.intp), found.words)
    are_all = found.rest.sum() <= _FEW_OTHERS * arms.sum()
    kin = kin_of(found.outcomes, everything) if are_all else None
    fine = Fine(every, np.append(everything, found.rest[None], axis=0), kin)
    return [Candidate("single outputs", held_out, penalty, freeze, fine=fine)]


@dataclass(frozen=True, slots=True, eq=False)
class AtomLevels(LevelMap):
    """The level of an outcome by itself. level: (atoms + 1,), the last one of all others."""

    known: Known
    level: LevelArray
    names: tuple[str, ...]

    @property
    def levels(self) -> int:
        return int(self.level[-1]) + 1

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        return np.asarray(self.level[self.known.places(outcomes)])

    def words(self, chosen: NDArray[np.bool_]) -> str:
        every = [name for name, level in zip(self.names, self.level, strict=False) if chosen[level]]
        raised = [name for name in every if name.startswith(RAISED)]
        names = [shortened(name) for name in every if name not in raised]
        if chosen[-1]:
            names.append("anything else")
        if len(names) > _WORDS:
            names = [*names[:_WORDS], f"{len(names) - _WORDS} more values"]
        parts = [f"{name.removeprefix(RAISED)} is raised" for name in raised]
        if names:
            parts.append(f"output is {names[0]}")
        return listed([*parts, *names[1:]], "or") or NO_OUTPUT
