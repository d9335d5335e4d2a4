"""The audit of one pair of inputs, from the first call to the certificate (docs/method.md §4).

probe
    The first calls show how large outputs are, and how fast calls are.
learn
    Each block of draws is bet on with the rules of earlier blocks, and then learned from. When the
    sample buffer is full, draws may also be counted only (counted_learning.py).
freeze
    A portfolio is fixed.
certify, or confirm
    The exact test counts the guesses of the portfolio on the remaining draws. If bets refute the
    claim early, it counts those of the strongest rule on new draws instead.
certificate
    Bounds are computed from the evidence, and judged by the safeguards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Literal

import numpy as np

from dpaudit.attacks.early_bets import EARLY_UNTIL, EARLY_UNTIL_OF_COLUMNS, bet_early
from dpaudit.attacks.learning import best_point, learn, scorers_of
from dpaudit.attacks.objective import Objective
from dpaudit.auditing import pace
from dpaudit.auditing.counted_learning import CountedLearning, learn_by_counting
from dpaudit.auditing.exact_tests import (
    early_rule,
    frozen_rules,
    not_counted,
    several_points,
    single_outputs,
    strongest_rule,
    telling_witness,
)
from dpaudit.auditing.ledger import LEARNING, PROBING, Ledger
from dpaudit.auditing.safeguards import CountedBlocks, KeptDraws, safeguards
from dpaudit.auditing.schedule import PROBE_CALLS, Plan, limits_for, wants_refit
from dpaudit.auditing.source import Source
from dpaudit.certificates.certificate import Certificate, FirstFailure
from dpaudit.certificates.certify import certify
from dpaudit.certificates.evidence import (
    CERTIFICATION_SHARE,
    CONFIRMATION_SHARE,
    EARLY_BETTING_SHARE,
    Evidence,
    FrozenRule,
)
from dpaudit.certificates.rule_bounds import STOPPED, FiniteRange, suspect_counts
from dpaudit.draws import SelectionDraws, Tally, pool
from dpaudit.errors import MechanismError
from dpaudit.levels.limits import MIN_DRAWS_SLOW
from dpaudit.levels.portfolio import Learned, Portfolio
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.sampling.chunks import Failures, LevelCounts, Measure, Probe, ToLearn, ToProbe
from dpaudit.sampling.executors import LOCAL, WORTHWHILE_SECONDS
from dpaudit.sampling.sampler import failures_by_arm
from dpaudit.stats.witness import DivergenceWitness

_Test = Literal["certification", "confirmation"]


def probe(source: Source, number: int) -> Ledger:
    """Make the first calls for the pair with index `number`, and choose the options that depend on
    their speed. Return the ledger of the pair, without draws."""
    spec, is_single = source.spec, source.sampler.mechanism.interleaved
    source.time.begin(number)
    first = source.first_calls(number)
    seconds = spec.sampling.time
    if is_single and spec.sampling.executor in LOCAL and seconds is not None:
        is_here = source.begins_here and seconds <= WORTHWHILE_SECONDS
        workers = 1 if is_here else source.most_workers
        source.time.check(workers / max(first.seconds, 1e-9), -PROBE_CALLS)
    (second,) = source.draw([ToProbe((number, PROBING, 0), PROBE_CALLS // 4)])
    source.is_reproducible = second.reproducible
    columns = max(first.columns, second.columns)
    by_outputs = spec.tested.counts_single_outputs
    limits = limits_for(columns, single_draws=is_single, by_outputs=by_outputs)
    pace.choose(source, number, first, second, limits)
    spec, seconds = source.spec, source.time.pair_seconds()
    limits = replace(limits, ends_by_bets=spec.sampling.stop == "bets")
    plan = Plan(spec.sampling.samples, seconds, limits, source.journal.clock, source.time.check)
    shown = Probe(second.reproducible, columns, first.seconds)
    ledger = Ledger(spec, number, plan, shown, source.draw, source.time.show)
    source.time.plan(ledger, seconds)
    return ledger


class PairAudit:
    """The audit of one pair after `probe`; call `run` once."""

    def __init__(self, source: Source, ledger: Ledger) -> None:
        spec, plan = ledger.spec, ledger.plan
        self._ledger, self._spec, self._plan = ledger, spec, plan
        self._claim, self._users_attacks = spec.tested, source.attacks
        self._safeguards = safeguards(source, ledger)
        # Whether the point (ε, δ) to bet against is known. If the claim is a curve, the first fit
        # chooses a point of it.
        self._has_point = len(self._claim.points()) == 1
        # Whether bettors keep a part of their stake for bets on rare outputs, which only an audit
        # can find that learns after the buffer is full. It must be fixed before the first bet.
        self._reserves = spec.sampling.time is not None or plan.freeze_at > plan.buffer_until
        self._buffer: list[SelectionDraws] = []
        self._counted_learning: CountedLearning | None = None
        self._learned_from = 0
        # Rules learned so far, each with its number of draws, if bets alone may end the run: one of
        # their events then illustrates the refutation.
        self._early_rules: list[tuple[int, Portfolio]] = []
        declared = spec.statistics.range
        self._range = None if declared is None else FiniteRange.of(declared)

    def run(self) -> Certificate:
        """Return the certificate of the pair. Raise MechanismError if all draws are exceptions, if
        d1 or d2 seems to have the wrong type, or if the draws cannot be independent.

        The error probability α of the pair is divided (`certificates.evidence`). Bets get 0.2 α,
        and the exact test gets 0.75 α at the planned end and 0.05 α in a confirmation. If bets
        alone may end the run, they get 0.9 α, and the exact test gets 0.1 α.
        """
        try:
            learned_rules = self._learn()
            certificate, counts = self._certified(learned_rules)
            certificate = replace(
                certificate, attacks=learned_rules.tried, scores=learned_rules.scores
            )
            for safeguard in self._safeguards:
                certificate = safeguard.judge(certificate, counts)
        except MechanismError as error:
            explained = reduce(lambda e, safeguard: safeguard.explain(e), self._safeguards, error)
            if explained is error:
                raise
            raise explained from error
        return certificate

    def _certified(self, learned_rules: Learned) -> tuple[Certificate, CountedBlocks]:
        """Freeze and make the exact test. Return the certificate, and the counts of its rule."""
        ledger, plan = self._ledger, self._plan
        if ledger.may_stop and ledger.ends_by_bets:
            sizes = (block.draws for block in ledger.blocks)
            rule, tallies = early_rule(self._early_rules, self._selection, sizes)
            return self._ended_by_bets(rule, tallies)
        measure, witness = self._freeze(learned_rules)
        total: LevelCounts | None = None
        if not ledger.may_stop:  # else bets have refuted the claim during learning
            ledger.set_beliefs(learned_rules.beliefs)
            ledger.begin_witnesses(learned_rules, self._selection)
            total = self._count("certification", plan.certifying_sizes(ledger.spent), measure)
            if not ledger.may_stop:
                return self._tested("certification", measure, total, witness)
            if ledger.ends_by_bets:
                return self._ended_by_bets(measure.portfolio.only(0), ledger.after_learning)
        # Bets have refuted the claim. The confirmation counts only new draws. So its rule may be
        # chosen on all earlier draws, including those that the bets used.
        tally = None if total is None else total.tally
        strongest = strongest_rule(measure.portfolio, ledger.point, ledger.spent, tally)
        measure = replace(measure, portfolio=strongest, seen=None)
        total = self._count("confirmation", plan.confirming_sizes(ledger.spent), measure)
        return self._tested("confirmation", measure, total, witness)

    # Learn

    def _learn(self) -> Learned:
        """Return the rules to certify with, or to confirm with if bets have refuted the claim."""
        ledger, plan = self._ledger, self._plan
        learned_rules = self._fill_buffer(None)
        if not (ledger.may_stop or plan.is_final):
            ledger.time_draws(self._measure((learned_rules or self._fit()).portfolio))
            plan.plan_by_clock(ledger.spent)
        if learned_rules is not None and ledger.may_stop and ledger.ends_by_bets:
            self._observe(KeptDraws(self._selection, is_complete=True))
            return learned_rules
        learned_rules = self._fit(early=ledger.may_stop)
        if not (learned_rules.predicts_bound or ledger.may_stop) and plan.extend_buffer():
            ledger.set_beliefs(learned_rules.beliefs)
            self._fill_buffer(learned_rules)
            learned_rules = self._fit(early=ledger.may_stop)
        self._observe(KeptDraws(self._selection, is_complete=True))
        if ledger.may_stop:
            return learned_rules
        plan.plan_again(ledger.spent)
        may_find_more = not learned_rules.predicts_bound and plan.may_count_after_buffer(
            ledger.spent
        )
        if not may_find_more and ledger.spent >= plan.freeze_at:
            return learned_rules
        self._counted_learning = counted = CountedLearning(self._selection, learned_rules)
        return learn_by_counting(ledger, counted, learned_rules, self._objective(), self._observe)

    def _fill_buffer(self, learned_rules: Learned | None) -> Learned | None:
        """Draw and bet until the sample buffer is full or bets refute; return the last rules."""
        ledger, plan = self._ledger, self._plan
        sizes = enumerate(plan.learning_sizes(ledger.spent), len(ledger.blocks))
        chunks = (ToLearn((ledger.number, LEARNING, index), size) for index, size in sizes)
        # `stop: never` makes refits rarer. With a time limit it does not, since neither the
        # budget nor the size of the buffer is known yet.
        full = self._spec.sampling.full and self._spec.sampling.time is None
        points, ends_by_bets = len(self._claim.points()), ledger.ends_by_bets
        for learning in ledger.drawer(chunks):
            rule = None if learned_rules is None else learned_rules.portfolio
            released = ledger.bet_and_release(learning.fresh, rule)
            self._buffer.append(released)
            ledger.failures += Failures(
                failures_by_arm(released.outcomes, released.is_d1), learning.failures.first
            )
            self._observe(KeptDraws(released))
            plan.close_buffer_if_due(ledger.spent)
            spent, until = ledger.spent, plan.buffer_until
            if ledger.may_stop or spent >= until:
                break
            if wants_refit(
                self._learned_from, spent, until, points, full=full, ends_by_bets=ends_by_bets
            ):
                learned_rules = self._fit()
                ledger.set_beliefs(learned_rules.beliefs)
                ledger.begin_witnesses(learned_rules, self._selection)
                if ends_by_bets and (
                    not self._early_rules or spent >= 2 * self._early_rules[-1][0]
                ):
                    self._early_rules.append((spent, learned_rules.portfolio.only(0)))
        return learned_rules

    def _fit(self, *, early: bool = True) -> Learned:
        selection = self._selection
        attacks = scorers_of(selection, self._spec.switches)
        if not self._has_point:
            # Choose the point (ε, δ) of the claim to test. These draws may choose it: the claim is
            # tested on later draws, and no bet was made yet.
            point = best_point(selection, self._claim, self._ledger.future_draws, attacks)
            self._ledger.set_point(point)
            self._has_point = True
        self._learned_from = selection.size
        objective = self._objective()
        is_vector = len(selection.outcomes.columns) > 1
        until = EARLY_UNTIL_OF_COLUMNS if is_vector else EARLY_UNTIL
        if early and self._ledger.ends_by_bets and selection.size < until:
            return bet_early(selection, objective, attacks)
        # A user's attack may be slow, and may fail on few draws.
        if not early or selection.size >= MIN_DRAWS_SLOW:
            attacks = (*attacks, *self._users_attacks)
        return learn(selection, objective, attacks)

    def _objective(self) -> Objective:
        points = several_points(self._claim)
        return Objective(
            self._ledger.point,
            self._ledger.future_draws,
            points,
            reserve=self._reserves,
            for_distance=self._claim.is_distance,
        )

    @property
    def _selection(self) -> SelectionDraws:
        """All draws in the sample buffer, in one table."""
        self._buffer = [pool(self._buffer)]
        return self._buffer[0]

    @property
    def _learning_draws(self) -> SelectionDraws:
        """All draws in the sample buffer, and later learning draws with rare outputs."""
        counted = self._counted_learning
        return self._selection if counted is None else counted.kept()

    def _observe(self, draws: KeptDraws | CountedBlocks) -> None:
        for safeguard in self._safeguards:
            self._ledger.warnings += safeguard.observe(draws)

    # Freeze, and certify or confirm

    def _freeze(self, learned_rules: Learned) -> tuple[Measure, DivergenceWitness | None]:
        """Return what the exact test counts, and the witness that it tests; both are fixed now."""
        ledger = self._ledger
        measure = self._measure(learned_rules.portfolio)
        ledger.warnings += not_counted(self._claim, measure.atoms)
        share = CONFIRMATION_SHARE if ledger.may_stop else CERTIFICATION_SHARE
        alpha = (1 - EARLY_BETTING_SHARE if ledger.ends_by_bets else share) * self._spec.alpha
        witness = telling_witness(
            self._claim, learned_rules, self._selection, ledger.future_draws, alpha
        )
        return measure, witness

    def _measure(self, portfolio: Portfolio) -> Measure:
        """Return what to count in certifying draws."""
        singles = single_outputs(self._claim, self._selection, self._ledger.point)
        declared = None if self._range is None else self._range.keys
        # Outputs with a value that no learning draw had are counted, except if a refutation by bets
        # may end the run: the report then does not mention such outputs.
        unseen_filter = None if self._ledger.may_stop else RareFilter.seen(self._learning_draws)
        return Measure(portfolio, singles, declared, seen=unseen_filter)

    def _count(self, stage: _Test, sizes: Iterable[int], measure: Measure) -> LevelCounts:
        return reduce(add, self._ledger.draw_and_bet(stage, sizes, measure))

    # Certificate

    def _tested(
        self, stage: _Test, measure: Measure, total: LevelCounts, witness: DivergenceWitness | None
    ) -> tuple[Certificate, CountedBlocks]:
        """Return the certificate of a run that the exact test has ended."""
        rule, atoms, tallies = measure.portfolio, measure.atoms, self._ledger.after_learning
        declared = self._declared(total if stage == "certification" else None)
        counts = CountedBlocks(stage, rule, rule.guesses, tallies, self._learning_draws)
        self._observe(counts)
        evidence = replace(
            self._ledger.evidence(),
            budget=self._plan.budget,
            stage=stage,
            method=self._spec.statistics.bound if atoms is None else "probabilistic",
            rules=frozen_rules(rule, is_one=atoms is not None),
            witness=witness,
            accused=suspect_counts(atoms, total.atoms) if atoms and total.atoms else (),
            declared=declared,
            unseen=total.unseen,
            ranges=measure.seen is not None and measure.seen.has_ranges,
            new_texts=measure.seen is not None and measure.seen.new_texts,
            illustration=None,
        )
        certificate = self._certificate(evidence)
        return certificate, replace(counts, guesses=certificate.fixed.rule.guess)

    def _ended_by_bets(
        self, portfolio: Portfolio, tallies: Sequence[Tally]
    ) -> tuple[Certificate, CountedBlocks]:
        """Return the certificate of a run that bets have ended; `portfolio` illustrates it."""
        main, guesses = portfolio.main, portfolio.guesses
        counts = sum(tallies, Tally.empty(portfolio.levels)).counts
        by_guess = np.stack([counts[guesses == guess].sum(axis=0) for guess in (1, -1, 0)])
        rule = FrozenRule("main", 1.0, main.attack, (1, -1, 0), (main.words(1), main.words(-1)))
        evidence = replace(
            self._ledger.evidence(),
            budget=self._plan.budget,
            stage="betting",
            rules=(rule,),
            illustration=Tally(by_guess),
        )
        self._declared(None)
        certificate = self._certificate(evidence)
        return certificate, CountedBlocks("learning", portfolio, guesses, tallies)

    def _declared(self, total: LevelCounts | None) -> tuple[tuple[str, int, int], ...] | None:
        """Return the draws of each declared output; add a warning if the run ended early."""
        if self._range is None:
            return None
        counts: tuple[tuple[str, int, int], ...] | str = STOPPED
        if total is not None and total.declared is not None:
            counts = self._range.counts(total.declared)
        if not isinstance(counts, str):
            return counts
        self._ledger.warnings.append(counts)
        return None

    def _certificate(self, evidence: Evidence) -> Certificate:
        ledger, counted = self._ledger, self._counted_learning
        failures = ledger.failures
        return replace(
            certify(evidence, ledger.wealth),
            pair=self._spec.pairs[ledger.number].label,
            failures=failures.counts,
            first_failures={
                kind: FirstFailure(failures.first[kind].message, failures.first[kind].where)
                for kind in failures.counts
                if kind in failures.first
            },
            reproducible=ledger.probe.reproducible,
            warnings=tuple(ledger.warnings),
            ignored=() if counted is None else tuple(counted.rare.dropped()),
        )
