"""The scorer of single outputs: every outcome that was seen at least twice is a cell of its own.

`learning.py` calls `atoms`. For the probabilistic definition of DP, which is tested on single
outputs, `auditing/` calls `choose_single_outputs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import ProfilePoint
from dpaudit.draws import LevelArray, SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, CellOrder, fixed
from dpaudit.levels.cells import NO_OUTPUT, RARELY_SEEN, listed, none_of, shortened
from dpaudit.levels.level_map import (
    FOLDS,
    IntArray,
    LevelMap,
    by_fold,
    cut_by_mass,
    held_out_tally,
    log_ratio,
    training_counts,
)
from dpaudit.levels.limits import MAX_CELLS, MAX_LEVELS, MAX_LISTED_ITEMS, MIN_REPEATS, SMALL_SHARE
from dpaudit.levels.portfolio import SingleOutputs
from dpaudit.outcomes import RAISED, KeyArray, Outcomes, raised

if TYPE_CHECKING:
    from dpaudit.outcomes.known import Bands, Known

# If all of the first 2,000 outcomes differ, no outcome is frequent enough to be scored by itself.
_EXAMINED_DRAWS = 2_000


@dataclass(frozen=True, slots=True, eq=False)
class AtomCounts:
    """Counts of outcomes that were seen at least twice.

    keys: (outcomes,), hashes of the outcomes, rising.
    counts: (folds, outcomes + 1, 2), draws by fold; the last row of a fold counts all other
        outcomes.
    outcomes: the distinct outcomes.
    """

    keys: KeyArray
    counts: IntArray
    outcomes: Outcomes


def count_atoms(selection: SelectionDraws) -> AtomCounts:
    """Count the outcomes that were seen at least twice; if there are more than 4,096, only the most
    frequent."""
    keys = selection.outcomes.keys()
    distinct, first, index, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    frequent = np.argsort(-counts, kind="stable")[:MAX_CELLS]
    frequent = np.sort(frequent[counts[frequent] >= MIN_REPEATS])
    column = np.full(len(distinct), len(frequent))
    column[frequent] = np.arange(len(frequent))
    table = by_fold(column[index], len(frequent) + 1, selection.is_d1)
    return AtomCounts(distinct[frequent], table, selection.outcomes.take(first[frequent]))


def atoms(selection: SelectionDraws, bands: Bands | None = None) -> list[Candidate]:
    """Return a list with one candidate, which orders the outcomes that were seen at least twice by
    their log-ratios. The list is empty if the first 2,000 outcomes all differ.

    bands: the bands that have replaced the numbers of these draws; they replace the numbers of
        later outcomes, too. None: no number was replaced.
    """
    some = selection.outcomes.take(slice(_EXAMINED_DRAWS))
    if len(np.unique(some.keys())) == some.size:
        return []
    result = count_atoms(selection)
    if len(result.keys) == 0:
        return []
    counts, everything = result.counts, result.counts.sum(axis=0)
    arms, each_draws = everything.sum(axis=0), everything[:-1]
    fits = training_counts(counts[:, :-1])[: FOLDS + 1]
    level, levels = cut_by_mass(log_ratio(fits, arms), each_draws.sum(axis=1).astype(np.float64))
    by_level = held_out_tally(level[:-1], counts, levels)
    final = np.append(level[-1], levels).astype(np.intp)
    from dpaudit.outcomes.known import Known  # needed only where outcomes repeat

    known, distinct = Known.of(result.keys, result.outcomes), result.outcomes.trimmed()
    if bands is not None:
        known = known.through(bands)
    level_map = AtomLevels(known, final, distinct)
    has_many = len(result.keys) > tuning.FEW_CELLS
    every = AtomLevels(known, np.arange(len(result.keys) + 1, dtype=np.intp), distinct)
    # A predictor estimates the log-ratio of a sequence from the log-ratios of related sequences. It
    # is fitted only if outputs may be sequences and nearly all draws have an outcome in `result`.
    predictor = None
    if everything[-1].sum() <= SMALL_SHARE * arms.sum() and len(selection.outcomes.columns) > 1:
        # Imported here, since only outcomes that may be sequences need it.
        from dpaudit.attacks.sequences import sequence_predictor

        predictor = sequence_predictor(result.outcomes, each_draws)
    cell_order = CellOrder(every, everything, predictor)
    return [
        Candidate(
            "single outputs",
            by_level,
            fixed(level_map),
            has_many_cells=has_many,
            refit=cell_order,
        )
    ]


@dataclass(frozen=True, slots=True, eq=False)
class AtomLevels(LevelMap):
    """Level map with a level for each known outcome, and one for all others.

    known: finds the index of an outcome in `each`.
    level: (known outcomes + 1,), the level of each; the last entry is for all other outcomes.
    each: the known outcomes.
    """

    known: Known
    level: LevelArray
    each: Outcomes

    @property
    def levels(self) -> int:
        return int(self.level[-1]) + 1

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        return np.asarray(self.level[self.known.places(outcomes)])

    def alternatives(self, chosen: NDArray[np.bool_]) -> tuple[int, int]:
        return int(np.count_nonzero(chosen[self.level])), 0

    def words(self, chosen: NDArray[np.bool_]) -> str:
        known = chosen[self.level[:-1]]
        indices, is_raised = np.flatnonzero(known), raised(self.each)[known]
        failed, outputs = indices[is_raised], indices[~is_raised]
        kinds = self.each.words(failed.tolist())
        if chosen[-1] and len(left_out := np.flatnonzero(~known)) <= MAX_LISTED_ITEMS:
            remaining = none_of(self.each.words(left_out.tolist()))
            if not remaining:
                return "any output"
            return ", or ".join(filter(None, [event_words(kinds, []), f"output is {remaining}"]))
        few = self.each.words(outputs[:MAX_LISTED_ITEMS].tolist())
        words = event_words(kinds, few, len(outputs) - len(few))
        if not chosen[-1]:
            return words or NO_OUTPUT
        remaining = RARELY_SEEN if len(outputs) else f"output is {RARELY_SEEN}"
        return f"{words}, or {remaining}" if words else remaining


def event_words(kinds: Iterable[str], names: Sequence[str], further: int = 0) -> str:
    """Describe the event that the mechanism raises one of some exceptions or returns one of some
    values. Return "" if there are neither.

    kinds: the exceptions, each as "raised" and its type.
    names: the values, in words.
    further: number of values beyond `names`, worded as "3 more values".
    """
    some = [shortened(name) for name in names[:MAX_LISTED_ITEMS]]
    further += len(names) - len(some)
    if further:
        some.append(f"{further} more values")
    parts = [f"{kind.removeprefix(RAISED)} is raised" for kind in kinds]
    if some:
        parts.append(f"output is {some[0]}")
    return listed([*parts, *some[1:]], "or")


def choose_single_outputs(selection: SelectionDraws, point: ProfilePoint) -> SingleOutputs:
    """Return the outputs to test one by one against a point (ε, δ), at most 64 for each input.

    For each input, the outputs that it gave are sorted by their log-ratio towards this input minus
    its standard error, the largest first. An output is chosen if its log-ratio exceeds ε. It is
    also chosen if the outputs before it may have a total probability of at most δ under this input,
    by a lower bound. Exceptions are not chosen.
    """
    result = count_atoms(selection)
    raw = ~raised(result.outcomes)
    every = result.counts.sum(axis=0)
    counts, arms = every[:-1], every.sum(axis=0)
    masks = np.zeros((2, len(counts)), dtype=bool)
    for mask, step in zip(masks, (1, -1), strict=True):
        mask[_suspects(counts[:, ::step], arms[::step], raw, point)] = True
    chosen = np.flatnonzero(masks.any(axis=0))
    words = tuple(result.outcomes.words(chosen.tolist()))
    return SingleOutputs(result.keys[chosen], words, masks[0, chosen], masks[1, chosen])


def has_atoms(selection: SelectionDraws) -> bool:
    """Return whether more than a tenth of the draws have an output that was seen at least twice."""
    result = count_atoms(selection)
    return bool(result.counts[:, :-1][:, ~raised(result.outcomes)].sum() > selection.size / 10)


def _suspects(
    counts: IntArray, arms: IntArray, raw: NDArray[np.bool_], point: ProfilePoint
) -> IntArray:
    """Return the indices of the outputs to test for one input, the most suspect first."""
    error = np.sqrt(1 / (counts[:, 0] + 0.5) + 1 / (counts[:, 1] + 0.5))
    ratio = log_ratio(counts, arms)
    order = np.argsort(-(ratio - error), kind="stable")
    order = order[raw[order] & (counts[order, 0] > 0)]
    mass = np.cumsum(counts[order, 0]) / max(1, arms[0])
    lower = mass - tuning.PENALTY_OF_MASS * np.sqrt(mass / max(1, arms[0]))
    needed = int(np.searchsorted(lower, point.delta, side="right")) + 1
    looks_violating = ratio[order] > point.epsilon
    keep = looks_violating | (np.arange(len(order)) < needed)
    return np.asarray(order[keep][:MAX_LEVELS], dtype=np.int64)
