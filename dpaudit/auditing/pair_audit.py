"""The audit of one pair of inputs, d1 and d2, from the first draw to the certificate.

engine.py calls `PairAudit(...).run()` for each pair. The stages follow docs/method.md §4.
Learning: each block of draws is bet on with the rules of earlier blocks, and then kept in a buffer
to learn from; after the buffer is full, draws are only counted. Freeze: a portfolio of up to three
rules is fixed; a rule guesses d1 or d2, or abstains, for each level (bin) of the output.
Certification: the exact test counts the guesses on the remaining draws. Confirmation: if a bet
refutes the claim early, the exact test counts separate fresh draws instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import accumulate, pairwise
from operator import add
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.early_bets import EARLY_UNTIL, EARLY_UNTIL_OF_COLUMNS, bet_early
from dpaudit.attacks.learning import best_point, learn, scorers_of
from dpaudit.attacks.objective import Objective
from dpaudit.auditing.checks import DrawChecks, certifying_tallies
from dpaudit.auditing.counted_learning import CountedLearning, learn_by_counting
from dpaudit.auditing.exact_tests import (
    example_outputs,
    frozen_rules,
    integer_noise,
    not_counted,
    several_points,
    single_outputs,
    telling_witness,
    unsearched,
    without_levels,
)
from dpaudit.auditing.ledger import LEARNING, TIMING, Ledger
from dpaudit.auditing.schedule import look_stride, wants_refit
from dpaudit.certificates.certificate import Certificate, FirstFailure, Redrawn
from dpaudit.certificates.certify import certify
from dpaudit.certificates.evidence import (
    CERTIFICATION_SHARE,
    CONFIRMATION_SHARE,
    EARLY_BETTING_SHARE,
    AccusedOutput,
    Evidence,
    FixedStage,
    FrozenRule,
    Method,
)
from dpaudit.certificates.fixed_test import STOPPED, FiniteRange, accused
from dpaudit.draws import FreshDraws, SelectionDraws, Tally, by_arm, pool
from dpaudit.levels.candidates import Scorer
from dpaudit.levels.portfolio import Learned, Portfolio
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.levels.rule_tables import evidence_of
from dpaudit.outcomes import narrowed
from dpaudit.outcomes.texts import how_read
from dpaudit.sampling.chunks import Counted, Failures, Measure, ToLearn, ToTime
from dpaudit.sampling.independence import STORED, never_repeated
from dpaudit.sampling.sampler import failures_by_arm
from dpaudit.stats.betting import h_of
from dpaudit.stats.witness import Witness

# Guesses of a rule for an interrupted run, which has no exact test: d1, d2, none.
_NO_RULE = (1, -1, 0)
_CountedStage = Literal["certification", "confirmation"]


class PairAudit:
    """The audit of one pair; call `run` once."""

    def __init__(
        self,
        ledger: Ledger,
        users_attacks: tuple[Scorer, ...] = (),
        compare: Callable[..., Redrawn | None] = lambda *refutation: None,
    ) -> None:
        """Prepare the audit of one pair of inputs.

        ledger: the draws and bets of this pair; no draw has been made yet.
        users_attacks: the user's own attacks.
        compare: called after a refutation as compare(rule, guesses), with the fields of
            `Refutation`. Returns a record of the comparison with new processes, or None if no
            comparison is asked for. If the draws of new processes differ, it raises MechanismError,
            and the audit ends with this error instead of a refutation.
        """
        spec = ledger.spec
        self._ledger, self._spec, self._plan = ledger, spec, ledger.plan
        self._claim, self._checks, self._compare = spec.tested, DrawChecks(ledger), compare
        self._users_attacks = users_attacks
        # Whether the point (ε, δ) to bet against is known. If the claim is a curve, it is known
        # only after the first fit, which chooses a point of the curve.
        self._has_point = len(self._claim.points()) == 1
        # Whether bettors keep a part of their stake for bets on rare outputs. They do if learning
        # may continue after the sample buffer is full: only then are there enough draws to find
        # rare outputs. This is decided here, since the part must be fixed before the first bet.
        self._reserves = (
            spec.sampling.time is not None or self._plan.freeze_at > self._plan.buffer_until
        )
        self._buffer: list[SelectionDraws] = []
        self._counted_learning: CountedLearning | None = None
        self._learned_from = 0
        # Rules learned so far, if bets alone may end the run: the event of one of these rules then
        # illustrates the refutation in the report. Each entry is (number of draws, rule), where the
        # rule was learned from this number of draws.
        self._events: list[tuple[int, Portfolio]] = []
        self._warnings: list[str] = []
        self._range = (
            None if spec.statistics.range is None else FiniteRange.of(spec.statistics.range)
        )

    def run(self) -> Certificate:
        """Return the certificate: the counts, bounds and warnings of the pair.

        The stages, with their shares of the pair's error probability α (`certificates.evidence`):

        1. Learning. The rules are learned from these draws, and frozen. Bets on each block, with
           rules that were learned from earlier blocks, may refute the claim (0.2 α).
        2. Certification, with further draws. The frozen rules are tested when all draws are made
           (0.75 α). Bets continue.
        3. Confirmation, in place of the test of stage 2, as soon as bets refute the claim: the
           strongest rule is tested on new draws (0.05 α).

        If bets alone may end the run, there is no confirmation: bets have 0.9 α, the test 0.1 α.

        Raises MechanismError if all draws are exceptions, if d1 or d2 seems to have the wrong type,
        or if the draws cannot be independent.
        """
        ledger, plan = self._ledger, self._plan
        learned = self._learn()
        self._warnings += filter(None, [narrowed(self._pool_buffer().outcomes)])
        if ledger.may_stop and ledger.ends_by_bets:
            return self._ended_by_bets(learned, *self._event_since())
        measure = self._measure(learned.portfolio)
        self._warnings += not_counted(self._claim, measure.atoms)
        witness = self._witness(learned)
        certifying: Tally | None = None
        if not ledger.may_stop:  # else bets have refuted the claim during learning
            ledger.bet_with(learned.beliefs)
            ledger.begin_witnesses(learned, self._pool_buffer())
            total = self._count("certification", plan.certifying_sizes(ledger.spent), measure)
            if not ledger.may_stop:
                return self._tested("certification", learned, measure, total, witness)
            if ledger.ends_by_bets:
                main = measure.portfolio.only(0)
                return self._ended_by_bets(learned, main, certifying_tallies(ledger))
            certifying = total.tally
        # Bets have refuted the claim. The confirmation counts only new draws. So its rule may be
        # chosen on all earlier draws, including those that the bets used.
        measure = self._with_strongest_rule(measure, certifying)
        total = self._count("confirmation", plan.confirming_sizes(ledger.spent), measure)
        return self._tested("confirmation", learned, measure, total, witness)

    def _tested(
        self,
        stage: _CountedStage,
        learned: Learned,
        measure: Measure,
        total: Counted,
        witness: Witness | None,
    ) -> Certificate:
        """Return the certificate of a run that the exact test has ended. Check its draws, and check
        a refutation with further draws.

        stage: the stage of the audit whose draws the exact test uses.
        measure: the frozen rules that counted these draws.
        total: the counts of these draws.
        learned: the latest rules.
        witness: the witness of a Rényi divergence to test; None without one.
        """
        portfolio, ledger, atoms = measure.portfolio, self._ledger, measure.atoms
        declared = self._declared(total if stage == "certification" else None)
        self._warnings += self._checks.check_exact_test(self._pool_buffer(), portfolio)
        self._warnings += self._checks.check_not_constant(self._kept, portfolio, total.unseen)
        evidence = self._evidence(
            learned,
            stage,
            frozen_rules(portfolio, is_one=atoms is not None),
            method=self._spec.statistics.bound if atoms is None else "probabilistic",
            witness=witness,
            accused=accused(atoms, total.atoms) if atoms and total.atoms else (),
            declared=declared,
            unseen=total.unseen,
            ranges=measure.seen is not None and measure.seen.has_ranges,
            new_texts=measure.seen is not None and measure.seen.new_texts,
        )
        certificate = self._certificate(evidence, learned)
        if certificate.refuted or self._spec.may_refute(certificate.p_value):
            guesses = certificate.fixed.rule.guess
            return self._doubted(certificate, measure, guesses, certifying_tallies(ledger))
        return certificate

    def _ended_by_bets(
        self, learned: Learned, portfolio: Portfolio, tallies: Sequence[Tally]
    ) -> Certificate:
        """Return the certificate of a run that bets have ended.

        learned: the latest rules.
        portfolio: a single rule, learned from the first draws of the run. Its event illustrates the
            refutation.
        tallies: counts of all later draws by the levels (bins) of the rule, block by block.
        """
        main, guesses = portfolio.main, portfolio.guesses
        counts = sum(tallies, Tally.empty(portfolio.levels)).counts
        by_guess = np.stack([counts[guesses == guess].sum(axis=0) for guess in (1, -1, 0)])
        rule = FrozenRule("main", 1.0, main.attack, (1, -1, 0), (main.words(1), main.words(-1)))
        evidence = self._evidence(learned, "betting", (rule,), illustration=Tally(by_guess))
        if self._range is not None:  # an interval needs all planned draws
            self._warnings.append(STOPPED)
        certificate = self._certificate(evidence, learned)
        return self._doubted(certificate, self._measure(portfolio), guesses, tallies)

    def interrupted(self) -> Certificate | None:
        """Return what the bets show of the draws so far, for a run that ends before its planned
        end; None without draws. An exception may have interrupted the run at any moment.

        Wealth that is bet against each ε of a grid bounds ε at all moments together (docs/method.md
        §4), so the bound is valid whatever decided the moment. The bound of the exact test would
        be valid only at the planned end.
        """
        ledger, spec, recorded = self._ledger, self._spec, self._ledger.recorded
        if recorded is None:
            return None
        blocks = tuple(ledger.blocks[: recorded.blocks])
        rounds = 1 + max((block.round for block in blocks if block.round is not None), default=-1)
        drawn, learned = (
            sum(block.draws for block in blocks if stage is None or block.stage == stage)
            for stage in (None, "learning")
        )
        limits = self._plan.limits
        evidence = Evidence(
            point=ledger.point,
            points=several_points(self._claim),
            alpha=spec.alpha,
            confidence=spec.statistics.confidence,
            budget=max(drawn, self._plan.budget) if self._plan.is_final else drawn,
            limits=limits,
            by_clock=spec.sampling.time is not None,
            stage="interrupted",
            method="game",
            rules=(FrozenRule("main", 1.0, "", _NO_RULE),),
            rounds=tuple(ledger.rounds[:rounds]),
            divergences=tuple(self._claim.divergences()),
            blocks=blocks,
            counted=max(0, learned - limits.buffer_draws),
            refuted_after=recorded.refuted_after,
            divergence_bets=recorded.divergence_bets,
            illustration=Tally.empty(len(_NO_RULE)),
        )
        label = spec.pairs[ledger.number].label
        return replace(certify(evidence), pair=label, warnings=tuple(self._warnings))

    def _event_since(self) -> tuple[Portfolio, list[Tally]]:
        """Return (rule, tallies): a rule that was learned from the first draws in the buffer, and
        counts of the later draws by the levels (bins) of this rule, block by block.

        Of all rules that were learned from at most half of the draws, return the latest. If there
        is none, return the first rule.
        """
        selection = self._pool_buffer()
        chosen = [one for one in self._events if 2 * one[0] <= selection.size] or self._events[:1]
        begin, portfolio = chosen[-1]
        ends = accumulate(block.draws for block in self._ledger.blocks)
        tallies = []
        for start, end in pairwise(end for end in ends if begin <= end <= selection.size):
            later = selection.take(slice(start, end))
            level = portfolio(later.outcomes)
            tallies.append(Tally(by_arm(level, portfolio.levels, later.is_d1)))
        return portfolio, tallies

    def _learn(self) -> Learned:
        """Learn from draws until the rules are to be frozen. Return the rules for certification or,
        after a refutation by bets, for the confirmation.
        """
        ledger, plan = self._ledger, self._plan
        learned = self._fill_buffer(None)
        self._checks.check_input_types()
        if not (ledger.may_stop or plan.is_final):
            self._time_draws(learned or self._fit())
            plan.plan_by_clock(ledger.spent)
        if learned is not None and ledger.may_stop and ledger.ends_by_bets:
            self._warnings += self._checks.check_buffer(self._pool_buffer())
            return learned
        learned = self._fit(quick=ledger.may_stop)
        if not (learned.predicts_bound or ledger.may_stop) and plan.extend_buffer():
            ledger.bet_with(learned.beliefs)
            self._fill_buffer(learned)
            learned = self._fit(quick=ledger.may_stop)
        self._warnings += self._checks.check_buffer(self._pool_buffer())
        if ledger.may_stop:
            return learned
        plan.plan_again(ledger.spent)
        may_find_more = not learned.predicts_bound and plan.may_count_after_buffer(ledger.spent)
        if not may_find_more and ledger.spent >= plan.freeze_at:
            return learned
        self._counted_learning = CountedLearning(self._pool_buffer(), learned)
        learned, warnings = learn_by_counting(
            ledger, self._counted_learning, learned, self._objective(), self._checks
        )
        self._warnings += warnings
        return learned

    def _fill_buffer(self, learned: Learned | None) -> Learned | None:
        """Draw until the sample buffer (the learning draws in memory) is full or the bets refute
        the claim. Bet on every block by the rules learned before it, if any, and then refit the
        rules if a refit is due. Return the rules that were learned last; None if none were learned.

        learned: rules from earlier draws; None before any fit.
        """
        ledger, plan = self._ledger, self._plan
        sizes = enumerate(plan.learning_sizes(ledger.spent), len(ledger.blocks))
        chunks = (ToLearn((ledger.number, LEARNING, place), size) for place, size in sizes)
        # The option `full` makes refits rarer. With a time limit it does not, since neither the
        # budget nor the size of the buffer is known yet.
        full = self._spec.sampling.full and self._spec.sampling.time is None
        for drawn in ledger.drawer(chunks):
            released = self._bet_and_release(drawn.fresh, learned)
            self._buffer.append(released)
            ledger.failures += Failures(
                failures_by_arm(released.outcomes, released.is_d1), drawn.failures.first
            )
            self._checks.check_not_all_failed()
            plan.close_buffer_if_due(ledger.spent)
            spent, buffer_until = ledger.spent, plan.buffer_until
            if ledger.may_stop or spent >= buffer_until:
                break
            points = len(self._claim.points())
            ends_by_bets = ledger.ends_by_bets
            if wants_refit(
                self._learned_from,
                spent,
                buffer_until,
                points,
                full=full,
                ends_by_bets=ends_by_bets,
            ):
                learned = self._fit()
                ledger.bet_with(learned.beliefs)
                ledger.begin_witnesses(learned, self._pool_buffer())
                if ends_by_bets and (not self._events or spent >= 2 * self._events[-1][0]):
                    self._events.append((spent, learned.portfolio.only(0)))
        return learned

    def _bet_and_release(self, fresh: FreshDraws, learned: Learned | None) -> SelectionDraws:
        """Bet on a block of draws. Return the draws of the block, to learn from.

        Bets are evaluated several times within the block, after each part of it. If the claim is
        refuted after a part, and the run ends, the draws of later parts are not returned.

        fresh: the draws of the block, which nothing has been learned from.
        learned: the rules to bet with; None: do not bet.
        """
        if learned is None:
            released = fresh.release()
            total = without_levels(released)
        else:
            stride = look_stride(fresh.size, ends_by_bets=self._ledger.ends_by_bets)
            rule = learned.portfolio
            looks = fresh.looks(rule, rule.levels, stride)
            looks = looks[: self._ledger.looks_to_refutation(looks)]
            released = fresh.release(len(looks) * stride)
            total = sum(looks, Tally.empty(rule.levels))
        if self._ledger.divergences is not None:
            self._ledger.divergences.record_draws(released)
        self._ledger.write("learning", total, is_bet_on=learned is not None)
        return released

    def _time_draws(self, learned: Learned) -> None:
        """Measure the number of draws per second, with all workers running.

        These draws are used for nothing else: their number depends on their durations, which may
        depend on their outputs, so counting them could bias a test. The speed cannot be measured in
        learning blocks: they are small, and each waits until the block before it is evaluated.

        learned: the rules that count these draws.
        """
        ledger, plan = self._ledger, self._plan
        measure, patience = self._measure(learned.portfolio), plan.seconds_to_start
        chunks = (
            ToTime((ledger.number, TIMING, n), size, measure, plan.limits.block, False, patience)
            for n, size in enumerate(plan.timed_sizes(ledger.spent))
        )
        for drawn in ledger.drawer(chunks):
            if plan.record_timed(drawn.tally.draws):
                break

    def _fit(self, *, quick: bool = True) -> Learned:
        selection, spec = self._pool_buffer(), self._spec
        attacks = scorers_of(selection, spec.switches)
        if not self._has_point:
            # Choose the point (ε, δ) of the claim to test. These draws may choose it: the claim is
            # tested on later draws, and no bet was made yet.
            point = best_point(selection, self._claim, self._ledger.coming, attacks)
            self._ledger.bet_against(point)
            self._has_point = True
        self._learned_from = selection.size
        objective, custom = self._objective(), self._users_attacks
        is_vector = len(selection.outcomes.columns) > 1
        until = EARLY_UNTIL_OF_COLUMNS if is_vector else EARLY_UNTIL
        if quick and self._ledger.ends_by_bets and selection.size < until:
            return bet_early(selection, objective, attacks)
        return learn(selection, objective, attacks, custom_scorers=custom, quick=quick)

    def _objective(self) -> Objective:
        points = several_points(self._claim)
        return Objective(self._ledger.point, self._ledger.coming, points, reserve=self._reserves)

    def _pool_buffer(self) -> SelectionDraws:
        """Join all draws in the sample buffer to one table, and return it."""
        self._buffer = [pool(self._buffer)]
        return self._buffer[0]

    @property
    def _kept(self) -> SelectionDraws:
        """All draws in the sample buffer, and later learning draws with rare outputs."""
        return (
            self._pool_buffer() if self._counted_learning is None else self._counted_learning.kept()
        )

    def _measure(self, portfolio: Portfolio) -> Measure:
        """Return a `Measure`, which lists the things to count in certifying draws: guesses of the
        rules, single outputs, outputs that the user has declared possible (`range`), and outputs
        with a value that no learning draw had.
        """
        singles = single_outputs(self._claim, self._pool_buffer(), self._ledger.point)
        declared = None if self._range is None else self._range.keys
        # Outputs with a value that no learning draw had are counted, except if a refutation by bets
        # may end the run: the report then does not mention such outputs.
        seen = None if self._ledger.may_stop else RareFilter.seen(self._kept)
        return Measure(portfolio, singles, declared, seen=seen)

    def _count(self, stage: _CountedStage, sizes: Iterable[int], measure: Measure) -> Counted:
        return reduce(add, self._ledger.draw_and_bet(stage, sizes, measure))

    def _with_strongest_rule(self, measure: Measure, counted: Tally | None = None) -> Measure:
        """Return a copy of `measure`, which says what to count in draws, with only one rule: the
        rule with the most evidence against the claim. It is used for a confirmation, the test on
        new draws after bets have refuted the claim.

        counted: tally of certifying draws; None: use the counts expected from learning draws.
        """
        portfolio, point, draws = measure.portfolio, self._ledger.point, self._ledger.spent
        if counted is None:
            games = [(*rule.right_and_wrong, h_of(rule.guesses)) for rule in portfolio.rules]
        else:
            draws = counted.draws
            played = [counted.game(guesses) for guesses in portfolio.all_guesses]
            games = [(game.correct, game.wrong, game.h) for game in played]
        evidence = [
            float(evidence_of(np.array(right), np.array(wrong), rule.point or point, draws, h))
            for rule, (right, wrong, h) in zip(portfolio.rules, games, strict=True)
        ]
        return replace(measure, portfolio=portfolio.only(int(np.argmax(evidence))), seen=None)

    def _witness(self, learned: Learned) -> Witness | None:
        """Choose the witness of a Rényi divergence for the exact test that comes next."""
        share = CONFIRMATION_SHARE if self._ledger.may_stop else CERTIFICATION_SHARE
        share = 1 - EARLY_BETTING_SHARE if self._ledger.ends_by_bets else share
        alpha = share * self._spec.alpha
        return telling_witness(
            self._claim, learned, self._pool_buffer(), self._ledger.coming, alpha
        )

    def _declared(self, total: Counted | None) -> tuple[tuple[str, int, int], ...] | None:
        """Return the draws of each output that the user declared, if the run made all planned
        draws; else add the reason to the warnings.

        total: counts of a complete certification; None if the run ended early.
        """
        if self._range is None:
            return None
        counts: tuple[tuple[str, int, int], ...] | str = STOPPED
        if total is not None and total.declared is not None:
            counts = self._range.counts(total.declared)
        if not isinstance(counts, str):
            return counts
        self._warnings.append(counts)
        return None

    def _doubted(
        self,
        certificate: Certificate,
        measure: Measure,
        guesses: NDArray[np.int64],
        tallies: Sequence[Tally],
    ) -> Certificate:
        """Check a refutation with further draws, from this process and from new processes. Return
        the certificate with the warnings of this check. Raise MechanismError if draws cannot be
        independent.

        certificate: the certificate, without the warnings of this check.
        measure: the frozen rules that count draws.
        guesses: (levels,), guesses of the rule that reports show.
        tallies: counts of the draws on which this rule was tested, one tally for each block.
        """
        buffer, events = self._pool_buffer(), certificate.fixed.events
        texts = [
            *certificate.warnings,
            *self._checks.check_with_further_draws(measure, guesses, tallies),
        ]
        redrawn = self._compare(measure.portfolio, guesses)
        # New processes have stored no results. Their draws agree with the draws of this process
        # (a difference raises MechanismError), so stored results did not cause the refutation, and
        # the warning about stored results is dropped.
        if redrawn is not None and redrawn.processes:
            texts = [text for text in texts if STORED not in text]
        notes = [
            *certificate.notes,
            *self._checks.further_words(),
            *example_outputs(events, buffer, measure.portfolio, guesses),
        ]
        return replace(certificate, warnings=tuple(texts), notes=tuple(notes), redrawn=redrawn)

    def _evidence(
        self,
        learned: Learned,
        stage: FixedStage,
        rules: tuple[FrozenRule, ...],
        *,
        method: Method = "game",
        witness: Witness | None = None,
        accused: tuple[AccusedOutput, ...] = (),
        declared: tuple[tuple[str, int, int], ...] | None = None,
        unseen: tuple[int, int] | None = None,
        ranges: bool = False,
        new_texts: bool = False,
        illustration: Tally | None = None,
    ) -> Evidence:
        """Return the evidence of the run, whose exact test has the given rules and counts."""
        ledger, bets = self._ledger, self._ledger.divergences
        drawn = sum(block.draws for block in ledger.blocks if block.stage == "learning")
        return Evidence(
            point=ledger.point,
            points=several_points(self._claim),
            alpha=self._spec.alpha,
            confidence=self._spec.statistics.confidence,
            budget=self._plan.budget,
            limits=self._plan.limits,
            by_clock=self._spec.sampling.time is not None,
            stage=stage,
            method=method,
            rules=rules,
            rounds=tuple(ledger.rounds),
            divergences=tuple(self._claim.divergences()),
            witness=witness,
            blocks=tuple(ledger.blocks),
            counted=drawn - self._pool_buffer().size,
            refuted_after=ledger.refuted_after,
            accused=accused,
            declared=declared,
            unseen=unseen,
            ranges=ranges,
            new_texts=new_texts,
            divergence_bets=None if bets is None else bets.recorded,
            illustration=illustration,
        )

    def _certificate(self, evidence: Evidence, learned: Learned) -> Certificate:
        failures, selection = self._ledger.failures, self._pool_buffer()
        statistics = self._spec.statistics
        left_out = unsearched(
            selection.outcomes,
            floating_point=statistics.floating_point,
            timing=statistics.timing,
        )
        dropped = [] if self._counted_learning is None else self._counted_learning.rare.dropped()
        return replace(
            certify(evidence, self._ledger.wealth),
            pair=self._spec.pairs[self._ledger.number].label,
            failures=failures.counts,
            first_failures={
                kind: FirstFailure(failures.first[kind].message, failures.first[kind].where)
                for kind in failures.counts
                if kind in failures.first
            },
            warnings=tuple(self._warnings),
            notes=(
                *integer_noise(self._claim, selection.outcomes),
                *never_repeated(selection),
                *how_read(selection.outcomes.contents),
            ),
            ignored=(*dropped, *left_out),
            attacks=learned.tried,
            scores=learned.scores,
        )
