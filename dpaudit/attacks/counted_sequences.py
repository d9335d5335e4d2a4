"""Scores of sequences that are refitted when further draws are counted.

The score of an entry follows from counts by state and symbol (`sequences.py`), so no draw has to be
kept to refit it. How well a score orders outcomes is measured on draws that came after its fit. The
final score is fitted to all learning draws, so none is left to measure it. Therefore it gets the
counts of the last measured score: both scores are cut into bins with the same shares of the draws
in memory, and bin k of one gets the counts of bin k of the other (docs/method.md §5, *Continued
learning*).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from operator import itemgetter

import numpy as np

from dpaudit.attacks.additive import scale_of
from dpaudit.attacks.sequences import MarkovStates, Prefixes, weights
from dpaudit.draws import SelectionDraws, by_arm
from dpaudit.levels.candidates import Candidate, by_score
from dpaudit.levels.digitiser import Digitiser
from dpaudit.levels.level_map import CellCounter, FloatArray, IntArray, by_group, pieces
from dpaudit.levels.limits import MANY_DRAWS, MAX_SCORE, TINY
from dpaudit.levels.piecewise_logit import probability
from dpaudit.levels.rule_tables import balanced
from dpaudit.levels.scores import Score, Scored, ScoreLevels
from dpaudit.levels.shrinkage import ExpectedDraws, shrunk_to
from dpaudit.outcomes import Outcomes


@dataclass(frozen=True, slots=True, eq=False)
class SequenceScored(Scored):
    """A score of sequences with `states`, by which it can be refitted to counts of further
    draws."""

    final_score: Callable[[], Prefixes]
    states: MarkovStates


@dataclass(frozen=True, slots=True, eq=False)
class Sum:
    """A score that is a sum of scores, some of which are refitted when further draws are counted.

    states: for each score of sequences that is refitted, the states of its sequences.
    made: a function from the refitted scores to the whole score.
    rest: the sum of the other scores, which stay fixed; None if all scores are refitted.
    """

    states: tuple[MarkovStates, ...]
    made: Callable[[Sequence[Prefixes]], Score]
    rest: Score | None = None

    @classmethod
    def of(cls, scored: SequenceScored) -> Sum:
        """Return a `Sum` of a single score of sequences, `scored`, which is refitted."""
        return cls((scored.states,), itemgetter(0))


def relearned(scored: Scored, selection: SelectionDraws, total: Sum) -> Candidate:
    """Return the candidate for a score of the draws in memory. If they are many enough, it is
    refitted when further draws are counted. `total` is the same score as a `Sum`."""
    refit = FirstCounts(selection, scored, total) if selection.size >= MANY_DRAWS else None
    return by_score(scored, selection, refit)


@dataclass(frozen=True, eq=False)
class FirstCounts:
    """Refits a score of sequences to the first counts of further draws. It makes a
    `CountedEntries`, which does the work, only when draws are counted.

    selection, scored, total: the arguments of `CountedEntries.of`.
    """

    selection: SelectionDraws
    scored: Scored
    total: Sum

    @cached_property
    def entries(self) -> CountedEntries | None:
        return CountedEntries.of(self.selection, self.scored, self.total)

    @cached_property
    def counter(self) -> CellCounter:
        return self.scored.level_map() if self.entries is None else self.entries.counter

    def after(self, candidate: Candidate, counts: IntArray) -> Candidate:
        if self.entries is None:
            return replace(candidate, counts=candidate.counts + counts)
        return self.entries.after(candidate, counts)


@dataclass(frozen=True, slots=True, eq=False)
class ByEntry:
    """A counter of outcomes that gives the counts to refit scores of sequences. It counts an
    outcome once in the bin of its score, and once for each entry of its sequences, in the cell of
    the state and symbol of that entry.

    scores: the scores of the sequences.
    total: the whole score of an outcome: the sum of `scores` and a fixed rest.
    digitise: finds the bin of a score.
    """

    scores: tuple[Prefixes, ...]
    total: Sum
    digitise: Digitiser

    @property
    def bins(self) -> int:
        """Number of bins of the score, including one for outcomes without a score."""
        return len(self.digitise.edges) + 2

    @property
    def levels(self) -> int:
        return self.bins + sum(step.cells for score in self.scores for step in score.steps)

    def tally(self, outcomes: Outcomes) -> IntArray:
        counts = np.zeros(self.levels, dtype=np.int64)
        for piece in pieces(outcomes):
            fixed, result = self.total.rest, []
            total = np.zeros(piece.size) if fixed is None else fixed(piece)
            for score in self.scores:
                # Terms are added in the same order as in the score itself: another order would
                # round differently, and edges between bins are exact scores of outcomes.
                score_total = np.zeros(piece.size)
                for step, cell in score.along(piece):
                    score_total += step.weights.take(cell)
                    result.append(np.bincount(cell, minlength=step.cells))
                total = total + score_total
            gaps = np.isnan(total)
            level = np.bincount(self.digitise(total[~gaps]), minlength=self.bins)
            level[-1] = np.count_nonzero(gaps)
            counts += np.concatenate([level, *result])
        return counts


@dataclass(frozen=True, slots=True, eq=False)
class KeptOutcomes:
    """The distinct outcomes of the draws in memory, and their frequencies.

    outcomes: the distinct outcomes.
    often: (outcomes,), number of draws in memory with each outcome.
    """

    outcomes: Outcomes
    often: IntArray

    @classmethod
    def of(cls, outcomes: Outcomes, scores: Iterable[Score]) -> KeptOutcomes:
        """Return the distinct outcomes, and their frequencies, without outcomes for which a score
        is NaN."""
        _, first, often = np.unique(outcomes.keys(), return_index=True, return_counts=True)
        some = outcomes.take(first)
        known = np.ones(len(first), dtype=bool)
        for score in scores:
            known &= ~np.isnan(score(some))
        return cls(some.take(np.flatnonzero(known)), often[known])

    @property
    def size(self) -> int:
        return int(self.often.sum())

    def scored(self, score: Score) -> FloatArray:
        """Return the score of each distinct outcome, (outcomes,), clipped to ±`MAX_SCORE`."""
        return np.clip(score(self.outcomes), -MAX_SCORE, MAX_SCORE)

    def by_bin(self, result: FloatArray, edges: FloatArray, each: FloatArray) -> FloatArray:
        """Return the sum of `each` over the draws in memory in each bin of the score: (bins, 2).

        result: (outcomes,), the score of each distinct outcome.
        edges: edges between bins, rising.
        each: (outcomes, 2), for each distinct outcome, the row that each of its draws adds.
        """
        level = np.searchsorted(edges, result, side="right")
        return by_group(each * self.often[:, None], level, len(edges) + 1)


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredBins:
    """Bins of a score, with counts of draws that the score was not fitted to.

    result: (outcomes,), the score of each distinct outcome of the draws in memory.
    edges: edges between the bins, rising.
    counts: (bins + 1, 2), draws by bin and input; the last row is for outcomes without a score.
    """

    result: FloatArray
    edges: FloatArray
    counts: IntArray

    @classmethod
    def without_draws(cls, score: Score, kept: KeptOutcomes) -> MeasuredBins:
        """Return bins of a score with counts of 0. Each bin has about the same number of the draws
        in memory. These are not counted, since the score was fitted to them."""
        result = kept.scored(score)
        edges = Scored("", np.repeat(result, kept.often), lambda: score, None).edges
        return cls(result, edges, np.zeros((len(edges) + 2, 2), dtype=np.int64))

    @property
    def draws(self) -> int:
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class CountedEntries:
    """Refits scores of sequences to counts, whenever the number of learning draws has doubled.

    kept: the draws in memory, whose scores decide where a score is cut into bins.
    total: the whole score, a sum of refitted scores and a fixed rest.
    by_entry: for each sequence and entry, (states, symbols, 2), the counts so far.
    scores: the present scores of sequences, fitted to the first `fitted_to` draws.
    trial: bins of the present score, with the draws counted since its fit.
    earlier: bins of the previous score. Their counts are used until `trial` has at least half as
        many draws; then None.
    """

    kept: KeptOutcomes
    total: Sum
    by_entry: tuple[tuple[IntArray, ...], ...]
    scores: tuple[Prefixes, ...]
    fitted_to: int
    trial: MeasuredBins
    earlier: MeasuredBins | None

    @classmethod
    def of(cls, kept: SelectionDraws, scored: Scored, total: Sum) -> CountedEntries | None:
        """Return the object that refits `scored`, a score of the draws in memory; None if it has no
        value for any outcome. `total` is the same score as a `Sum`."""
        states = [markov.finer(kept.outcomes) for markov in total.states]
        by_entry = tuple(
            tuple(
                by_arm(cell, step.cells, kept.is_d1).reshape(*step.shape, 2)
                for cell, step in zip(markov.cells, markov.steps, strict=True)
            )
            for markov in states
        )
        total = replace(total, states=tuple(replace(markov, cells=()) for markov in states))
        scores, first = _fitted(total, by_entry), scored.final_score()
        fixed = () if total.rest is None else (total.rest,)
        some = KeptOutcomes.of(kept.outcomes, (first, *fixed))
        if not some.size:
            return None
        counts = by_arm(scored.levels, len(scored.edges) + 2, kept.is_d1)
        earlier = MeasuredBins(some.scored(first), scored.edges, counts)
        trial = MeasuredBins.without_draws(total.made(scores), some)
        return cls(some, total, by_entry, scores, kept.size, trial, earlier)

    @property
    def counter(self) -> ByEntry:
        bins = np.arange(len(self.trial.edges) + 1, dtype=np.intp)
        return ByEntry(self.scores, self.total, Digitiser(self.trial.edges, bins))

    def after(self, candidate: Candidate, counts: IntArray) -> Candidate:
        measured = len(self.trial.counts)
        trial = replace(self.trial, counts=self.trial.counts + counts[:measured])
        by_entry, left = [], counts[measured:]
        for tables in self.by_entry:
            sizes = [table.size // 2 for table in tables]
            *further, left = np.split(left, np.cumsum(sizes))
            every = zip(tables, further, strict=True)
            by_entry.append(tuple(table + new.reshape(table.shape) for table, new in every))
        # How well a score orders outcomes is measured on the draws after its fit. The measurement
        # of a refitted score replaces the measurement of the earlier score once it rests on at
        # least half as many draws.
        earlier = self.earlier
        if earlier is not None and 2 * trial.draws >= earlier.draws:
            earlier = None
        later = replace(self, by_entry=tuple(by_entry), trial=trial, earlier=earlier)
        return later._refitted()._candidate(candidate)

    def _refitted(self) -> CountedEntries:
        """Return a copy with scores refitted to all draws, if the number of draws has doubled."""
        draws = int(self.by_entry[0][0].sum())
        if draws < 2 * self.fitted_to:
            return self
        latest = self._latest
        trial = MeasuredBins.without_draws(self.total.made(latest), self.kept)
        return replace(self, scores=latest, fitted_to=draws, trial=trial, earlier=self._measured)

    @property
    def _measured(self) -> MeasuredBins:
        """The bins of the previous score, or those of the present one if it has enough draws."""
        return self.trial if self.earlier is None else self.earlier

    @cached_property
    def _latest(self) -> tuple[Prefixes, ...]:
        """The scores of sequences, each fitted to all draws so far."""
        return _fitted(self.total, self.by_entry)

    @cached_property
    def _latest_scores(self) -> FloatArray:
        """The latest score of every distinct outcome in memory: (outcomes,)."""
        return self.kept.scored(self.total.made(self._latest))

    def _candidate(self, earlier: Candidate) -> Candidate:
        """Return the candidate for the latest score."""
        # No draws came after the fit of the latest score, so its bins have no counts. They get the
        # counts of the score in `_measured`, bin by bin: in both scores, bin k holds the same share
        # of the draws in memory.
        edges = self._edges()
        return replace(
            earlier,
            counts=self._measured.counts,
            level_map=cache(partial(ScoreLevels.cut, self.total.made(self._latest), edges)),
            is_smooth=False,
            position=None,
            estimate=ExpectedDraws(self._expected(edges), is_one_fit=True),
            refit=self,
        )

    def _edges(self) -> FloatArray:
        """Return edges between bins of the latest score, by the shares of draws in `_measured`."""
        measured, outcomes = self._measured, self.kept
        draws = outcomes.by_bin(measured.result, measured.edges, np.ones((len(measured.result), 2)))
        upto = np.cumsum(draws[:, 0]).astype(np.intp)[:-1]
        edges = np.sort(np.repeat(self._latest_scores, outcomes.often))[
            np.minimum(upto, outcomes.size - 1)
        ]
        # If several edges are equal, because many draws have the same score, increase the later
        # ones to the next larger float.
        for index in range(1, len(edges)):
            edges[index] = max(edges[index], np.nextafter(edges[index - 1], np.inf))
        return edges

    def _expected(self, edges: FloatArray) -> FloatArray:
        """Return the expected draws by input in each bin of the latest score: (bins, 2)."""
        # All predicted log-ratios are multiplied by one factor of at most 1, which is smaller if
        # they agree less with the counted draws. In each bin, the counted share of d1 is then
        # shrunk towards the share predicted by the products.
        measured, outcomes = self._measured, self.kept
        counts, arms = measured.counts[:-1], measured.counts.sum(axis=0)
        predicted = outcomes.by_bin(measured.result, measured.edges, _shares(self._latest_scores))
        ratio = np.log((predicted[:, 0] + TINY) / (predicted[:, 1] + TINY))
        factor = min(1.0, scale_of(ratio[None], balanced(counts, arms)[None]))
        shares = outcomes.by_bin(self._latest_scores, edges, _shares(factor * self._latest_scores))
        shares += TINY
        share = shrunk_to(np.log(shares[:, 0] / shares[:, 1]), counts, arms)
        draws = shares.sum(axis=1) * (counts.sum() / outcomes.size)
        return np.asarray(draws[:, None] * np.stack([share, 1 - share], axis=1))


def _shares(score: FloatArray) -> FloatArray:
    """Return (Pr[d1], Pr[d2]) for each outcome, from its log-ratio `score`: (outcomes, 2)."""
    share = probability(score)
    return np.stack([share, 1 - share], axis=1)


def _fitted(total: Sum, by_entry: Sequence[Sequence[IntArray]]) -> tuple[Prefixes, ...]:
    """Return one score for each set of sequences in `total`, fitted to counts."""
    result = []
    for states, counts in zip(total.states, by_entry, strict=True):
        fits = [fit[0] for fit in weights([table[None] for table in counts], states)]
        spread = []
        for fit, table in zip(fits, counts, strict=True):
            share = table.sum(axis=2).ravel() / table.sum()
            spread.append(float(np.sqrt(share @ (fit - share @ fit) ** 2)))
        result.append(Prefixes.of(states, fits, spread))
    return tuple(result)
