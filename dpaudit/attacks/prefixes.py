"""The scorer of sequences of few values: the log-ratio of each entry, given the entries before it.

The log-ratio of a sequence is the sum, over its entries, of the log-ratio of each entry given the
earlier entries. A state sums up the earlier entries: by how often each value occurred. This loses
nothing if entries are alike and independent except for a common number, such as the noisy threshold
of the sparse vector technique. Where the last value predicts the next one better, as in a Markov
chain, the state is the last value, or the last value and the counts. States are in `sequences.py`;
`counted_sequences.py` refits the score when further draws are counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dpaudit.attacks.counted_sequences import SequenceScored, SequenceView, Sum, relearned
from dpaudit.attacks.sequences import NAME, MarkovStates, Prefixes, depend, weights
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import OrderedBins
from dpaudit.levels.level_map import FOLDS, HALF, FloatArray, IntArray, by_fold, folds
from dpaudit.levels.scores import aligned
from dpaudit.outcomes import Outcomes

# Least number of draws.
_LEAST_DRAWS = 1_000


def prefixes(selection: SelectionDraws) -> list[OrderedBins]:
    """Order sequences of few values by the sum over entries of the log-ratio of each entry, given
    the entries before it."""
    if selection.size < _LEAST_DRAWS:
        return []
    states = MarkovStates.over(selection.outcomes)
    if states is None:
        return []
    counts = [
        by_fold(cell, step.cells, selection.is_d1).reshape(FOLDS, *step.shape, 2)
        for cell, step in zip(states.cells, states.steps, strict=True)
    ]
    if not depend([one.sum(axis=0) for one in counts]):
        return []
    fits = weights([_trained(one) for one in counts], states)
    fold = folds(selection.size)
    held_out, kept = np.zeros(selection.size), np.zeros(selection.size)
    halves, spread = np.zeros((2, selection.size)), []
    for cell, fit in zip(states.cells, fits, strict=True):
        held_out += fit.take(fold * fit.shape[1] + cell)
        own = fit[FOLDS].take(cell)
        kept += own
        for half, by_half in zip(halves, fit[-2:], strict=True):
            half += by_half.take(cell)
        spread.append(float(own.std()))
    states = replace(states, cells=())  # arrays as long as the draws are not kept
    freeze = partial(Prefixes.of, states, [fit[FOLDS] for fit in fits], spread)
    scored = SequenceScored(
        NAME, aligned(held_out, fold, kept), freeze, halves, sequence_view=SequenceView(states)
    )
    return [relearned(scored, selection, Sum.of(scored))]


def sequence_predictor(outcomes: Outcomes, counts: IntArray) -> SequencePredictor | None:
    """Return a predictor of the log-ratios of different outcomes as sequences; None if outcomes are
    no sequences, or if entries do not depend on earlier entries.

    counts: draws of each outcome by input, (outcomes, 2).
    """
    if counts.sum() < _LEAST_DRAWS:
        return None
    states = MarkovStates.over(outcomes, counts.sum(axis=1))
    if states is None or not depend([table[0] for table in states.tables(counts[None])]):
        return None
    return SequencePredictor(states)


@dataclass(frozen=True, slots=True, eq=False)
class SequencePredictor:
    """Predicts the log-ratio of every sequence of few values from the counts of all sequences."""

    states: MarkovStates

    def __call__(self, counts: IntArray) -> FloatArray:
        """Return the predicted log-ratio of every sequence: (fits, sequences).

        counts: draws of each sequence by input, for each fit: (fits, sequences, 2).
        """
        fits = weights(self.states.tables(counts), self.states)
        both = zip(self.states.cells, fits, strict=True)
        return np.asarray(np.sum([fit[:, cell] for cell, fit in both], axis=0))


def _trained(counts: IntArray) -> IntArray:
    """Return the draws that fits are made from: (fits, states, symbols, 2). The fits are, in order:
    without each fold, to all draws, to the first half of the folds, to the second half.

    counts: (folds, states, symbols, 2), draws by fold, state, symbol and input.
    """
    everything = counts.sum(axis=0)
    halves = counts[:HALF].sum(axis=0), counts[HALF:].sum(axis=0)
    return np.stack([*(everything - counts), everything, *halves])
