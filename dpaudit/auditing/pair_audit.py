"""The audit of one pair of inputs, d1 and d2, from the first draw to the certificate.

engine.py calls `PairAudit(...).run()` for each pair; recorded.py uses the functions at the end.
The stages follow docs/method.md §4. Learning: draws are kept in a buffer, bet on and learned from.
Freeze: a portfolio of up to three rules is fixed; a rule guesses d1 or d2, or abstains, for each
level (bin) of the output. Certification: the exact test counts the guesses on the remaining draws.
Confirmation: if a bet refutes the claim early, the exact test counts separate fresh draws instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.learning import best_point, learn, scorers_for
from dpaudit.attacks.objective import Objective
from dpaudit.attacks.single_columns import has_fractions, has_integers
from dpaudit.attacks.single_outputs import choose_single_outputs, has_atoms
from dpaudit.auditing.checks import DrawChecks, Refutation, check_inputs
from dpaudit.auditing.counting import CountingStage, Counts, Ledger, PairProgress
from dpaudit.auditing.schedule import Plan, look_stride, wants_refit
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.certificate import (
    Certificate,
    EpsilonInterval,
    FirstFailure,
    FixedStage,
    Redrawn,
    Schedule,
)
from dpaudit.certificates.evidence import (
    CERTIFICATION_SHARE,
    CONFIRMATION_SHARE,
    Evidence,
    certificate,
)
from dpaudit.certificates.fixed_test import FrozenRule, accused
from dpaudit.certificates.interval import STOPPED, FiniteRange
from dpaudit.certificates.wealth import round_of
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.draws import FreshDraws, SelectionDraws, Tally, pool
from dpaudit.errors import MechanismError
from dpaudit.levels.candidates import Scorer
from dpaudit.levels.level_map import NearLevels
from dpaudit.levels.portfolio import Learned, Portfolio, SingleOutputs
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.levels.rules import evidence_of, most_telling_witness
from dpaudit.outcomes import Outcomes, narrowed
from dpaudit.sampling.chunks import Counted, Failures, Measure, ToCount, ToLearn, ToTime
from dpaudit.sampling.executors import Drawer
from dpaudit.sampling.independence import STORED, never_repeated
from dpaudit.sampling.sampler import failures_by_arm
from dpaudit.stats.witness import Witness
from dpaudit.targets.target import what_to_check

# Stages that have random streams of their own. A stream is selected by the numbers of the pair, of
# the stage, and of the chunk of draws.
LEARNING, CERTIFYING, CONFIRMING, PROBING, REDRAWING, COUNTING, DOUBTING, TIMING = range(8)

# Number of first draws after which an audit ends with an error if all of them are exceptions.
_HOPELESS_DRAWS = 500
_CONTINUOUS = (
    "outputs hardly ever repeat, so single outputs cannot be counted: the audit tests the "
    "approximate definition, which the probabilistic one implies"
)

# Size of the buffer and point, and `single_outputs` of them.
_SingleOutputsOf = tuple[tuple[int, ProfilePoint], tuple[SingleOutputs | None, list[str]]]


class PairAudit:
    """The audit of one pair; call `run` once.

    *Learning*: each block of draws is bet on with the rules learned from earlier blocks, and then
    kept in a buffer to learn from. If the buffer is full, later learning draws are only counted.
    *Certification*: the rules are frozen; further draws are counted for the exact test and bet on.
    *Confirmation*: follows if a bet refutes the claim; the exact test counts only draws made later.
    """

    def __init__(
        self,
        spec: AuditSpec,
        number: int,
        plan: Plan,
        drawer: Drawer,
        notify: Callable[[PairProgress], None],
        users_attacks: tuple[Scorer, ...] = (),
        compare: Callable[[Refutation], Redrawn | None] = lambda refutation: None,
    ) -> None:
        """Prepare the audit of pair `number` of `spec`.

        plan: budget and sizes of blocks.
        drawer: called with chunks (requests for one block of draws each); yields their results.
        notify: called with a PairProgress after every block.
        users_attacks: the user's own attacks.
        compare: called with a refutation; compares it with draws of new processes. Returns None if
        no comparison is asked for, and raises MechanismError if the processes differ.
        """
        self._spec, self._number, self._plan, self._drawer = spec, number, plan, drawer
        self._checks, self._compare = DrawChecks(spec, drawer), compare
        self._claim = spec.tested
        self._attacks = scorers_for(
            floating_point=spec.floating_point, timing=spec.timing, repeated=spec.runs > 1
        )
        self._users_attacks = users_attacks
        # Whether the point (ε, δ) to bet against is fixed. A claim that is a curve has several
        # points; the first fit chooses.
        self._has_point = len(self._claim.points()) == 1
        self._ledger = Ledger(spec, plan, self._claim.point(), notify)
        # Whether bettors keep a part of the stake for rare outputs, which only many draws show. The
        # shares of the stake have to be fixed before the first bet.
        self._reserves = spec.time is not None or plan.freeze_at > plan.buffer_until
        self._buffer: list[SelectionDraws] = []
        self._counts: Counts | None = None
        self._single: _SingleOutputsOf | None = None
        self._learned_from = self._counted_draws = 0
        self._warnings: list[str] = []
        self._ignored: list[str] = []
        self._range = None if spec.range is None else FiniteRange.of(spec.range)
        self._interval: EpsilonInterval | None = None
        self._limited: tuple[Witness, float] | None = None

    @property
    def has_failures(self) -> bool:
        """Whether any draw was an exception."""
        return self._ledger.failures.total > 0

    def run(self) -> Certificate:
        """Return the certificate: the counts, bounds and warnings of the pair.

        Raises MechanismError if all draws are exceptions, if d1 or d2 seems to have the wrong type,
        or if the draws cannot be independent.
        """
        ledger = self._ledger
        learned = self._learn()
        portfolio = learned.portfolio
        self._warn_of_limits()
        if ledger.may_stop:
            portfolio = portfolio.only(self._strongest_rule(portfolio))
        measure = self._measure(portfolio)
        share = CONFIRMATION_SHARE if ledger.may_stop else CERTIFICATION_SHARE
        self._limited = limited_divergence(
            self._claim, learned, self._selection, self._coming, share * self._spec.alpha
        )
        if ledger.may_stop:
            # Refuted while learning. The rule was chosen on all draws so far, which is valid since
            # the confirmation makes new draws.
            evidence = self._confirm(measure)
        else:
            ledger.bet_with(learned.beliefs)
            measure, evidence = self._certify(measure)
        certificate = self._certificate(evidence, learned)
        if certificate.refuted or self._spec.may_refute(certificate.p_value):
            return self._doubted(certificate, measure)
        return certificate

    def _learn(self) -> Learned:
        """Return the rules for the certification, or for the confirmation after a refutation."""
        ledger, plan = self._ledger, self._plan
        learned = self._fill_buffer(None)
        self._check_inputs()
        if not (ledger.may_stop or plan.is_final):
            self._time_draws(learned or self._fit())
            plan.plan_by_clock(ledger.spent)
        learned = self._fit(thorough=not ledger.may_stop)
        if not (learned.promises or ledger.may_stop) and plan.extend_buffer():
            ledger.bet_with(learned.beliefs)
            self._fill_buffer(learned)
            learned = self._fit(thorough=not ledger.may_stop)
        self._warnings += self._checks.learned(self._selection, ledger.blocks, ledger.point)
        if ledger.may_stop:
            return learned
        plan.plan_again(ledger.spent)
        may_find_more = not learned.promises and plan.may_count_after_buffer(ledger.spent)
        if not may_find_more and ledger.spent >= plan.freeze_at:
            return learned
        self._counts = counts = Counts(self._selection, learned)
        stream = self._number, COUNTING
        stage = CountingStage(stream, plan, ledger, self._checks, counts, self._objective)
        learned = stage.learn(learned, self._drawer)
        self._counted_draws = stage.draws
        self._warnings += stage.warnings
        self._ignored += counts.rare.dropped()
        return learned

    def _fill_buffer(self, learned: Learned | None) -> Learned | None:
        """Draw until the buffer is full or a bet refutes the claim; bet on every block.

        learned: rules from earlier draws; None before any fit.  Returns the last rules that were
        learned, or None.
        """
        ledger, plan = self._ledger, self._plan
        first = sum(block.stage == "learning" for block in ledger.blocks)
        sizes = plan.learning_sizes(ledger.spent)
        chunks = (ToLearn((self._number, LEARNING, n), size) for n, size in enumerate(sizes, first))
        # With a time limit, the budget and so the size of the buffer are not known yet, so fits
        # come as often as in a run that a refutation ends.
        full = self._spec.full and self._spec.time is None
        for drawn in self._drawer(chunks):
            released = self._bet_and_release(drawn.fresh, learned)
            self._buffer.append(released)
            ledger.failures += Failures(
                failures_by_arm(released.outcomes, released.is_d1), drawn.failures.first
            )
            self._check_failures()
            plan.close_buffer_if_due(ledger.spent)
            spent, buffer_until = ledger.spent, plan.buffer_until
            if ledger.may_stop or spent >= buffer_until:
                break
            points = len(self._claim.points())
            if wants_refit(self._learned_from, spent, buffer_until, points, full=full):
                learned = self._fit()
                ledger.bet_with(learned.beliefs)
        return learned

    def _bet_and_release(self, fresh: FreshDraws, learned: Learned | None) -> SelectionDraws:
        """Bet on a block of draws, and return the block to learn from.

        A look is a tally of some consecutive draws within the block. If a look refutes the claim
        and ends the run, the draws after that look are not returned.
        """
        if learned is None:
            released = fresh.release()
            d1 = int(released.is_d1.sum())
            total = Tally(np.array([[d1, released.size - d1]]))
        else:
            stride, rule = look_stride(fresh.size), learned.portfolio
            looks = fresh.looks(rule, rule.levels, stride)
            looks = looks[: self._ledger.looks_to_refutation(looks)]
            released = fresh.release(len(looks) * stride)
            total = sum(looks, Tally.empty(rule.levels))
        self._ledger.write("learning", total, is_bet_on=learned is not None)
        return released

    def _time_draws(self, learned: Learned) -> None:
        """Measure the draws per second after all workers have started.

        These draws are used for nothing else, since the duration of a draw may depend on its
        output. Blocks of learning are too small to show the rate, and wait for each other.
        """
        measure, plan = self._measure(learned.portfolio), self._plan
        sizes = plan.timed_sizes(self._ledger.spent)
        block, patience = plan.limits.block, plan.seconds_to_start
        chunks = (
            ToTime((self._number, TIMING, n), size, measure, block, False, patience)
            for n, size in enumerate(sizes)
        )
        for drawn in self._drawer(chunks):
            if plan.record_timed(drawn.tally.draws):
                break

    def _fit(self, *, thorough: bool = False) -> Learned:
        selection = self._selection
        if not self._has_point:
            # The choice may depend on these draws: they certify nothing, and no bet was made yet.
            point = best_point(selection, self._claim, self._coming, self._attacks)
            self._ledger.settle(point)
            self._has_point = True
        self._learned_from = selection.size
        return learn(
            selection,
            self._objective(),
            self._attacks,
            users=self._users_attacks,
            thorough=thorough,
        )

    def _objective(self) -> Objective:
        points = several_points(self._claim)
        return Objective(
            self._ledger.point,
            self._coming,
            for_delta=bool(points),
            points=points,
            reserve=self._reserves,
        )

    @property
    def _coming(self) -> int:
        """Number of draws for which a rule is chosen: the confirmation, or the remaining budget."""
        if self._ledger.may_stop:
            return sum(self._plan.confirming_sizes(self._ledger.spent))
        return max(self._plan.budget - self._ledger.spent, 1)

    @property
    def _selection(self) -> SelectionDraws:
        """All draws in the buffer."""
        self._buffer = [pool(self._buffer)]
        return self._buffer[0]

    @property
    def _kept(self) -> SelectionDraws:
        """All draws in the buffer, and later learning draws with rare outputs."""
        return self._selection if self._counts is None else self._counts.kept()

    def _single_outputs(self) -> tuple[SingleOutputs | None, list[str]]:
        """Return `single_outputs` of the buffer, computed once for each size of the buffer."""
        key = self._selection.size, self._ledger.point
        if self._single is None or self._single[0] != key:
            self._single = key, single_outputs(self._claim, self._selection, self._ledger.point)
        return self._single[1]

    def _measure(self, portfolio: Portfolio) -> Measure:
        """Return the rules by which certifying draws are counted, and what else is counted."""
        single, _ = self._single_outputs()
        declared = None if self._range is None else self._range.keys
        # Outputs that learning has not seen are reported only for a claim that is not refuted.
        seen = None if self._ledger.may_stop else RareFilter.seen(self._kept)
        return Measure(portfolio, single, declared, seen=seen)

    def _certify(self, measure: Measure) -> tuple[Measure, Evidence]:
        """Count the remaining budget, bet on each block, and return the evidence of the exact test.

        Returns (rules of the exact test, evidence). If a bet refutes the claim and ends the run, a
        confirmation follows: the rules are then the rule with the most evidence alone, and the
        evidence comes from fresh draws.
        """
        sizes = self._plan.certifying_sizes(self._ledger.spent)
        total = self._count("certification", sizes, measure)
        if self._ledger.may_stop:
            portfolio = measure.portfolio
            strongest = self._strongest_rule(portfolio, total.tally)
            measure = replace(measure, portfolio=portfolio.only(strongest))
            return measure, self._confirm(measure)
        if self._range is not None and total.declared is not None:
            interval = self._range.interval(total.declared, self._spec.alpha)
            if isinstance(interval, str):
                self._warnings.append(interval)
            else:
                self._interval = interval
        return measure, self._evidence("certification", measure, total)

    def _confirm(self, measure: Measure) -> Evidence:
        """Return the evidence of the exact test on fresh draws, made after a bet has refuted."""
        if self._range is not None:
            self._warnings.append(STOPPED)
        sizes = self._plan.confirming_sizes(self._ledger.spent)
        total = self._count("confirmation", sizes, replace(measure, seen=None))
        return self._evidence("confirmation", measure, total)

    def _count(self, stage: FixedStage, sizes: Iterable[int], measure: Measure) -> Counted:
        is_bet_on = stage == "certification"
        stream = CERTIFYING if is_bet_on else CONFIRMING
        chunks = (
            ToCount((self._number, stream, n), size, measure, self._plan.limits.block)
            for n, size in enumerate(sizes)
        )
        total: Counted | None = None
        for counted in self._drawer(chunks):
            self._ledger.count(stage, counted, is_bet_on=is_bet_on)
            total = counted if total is None else total + counted
            if is_bet_on and self._ledger.may_stop:
                break
        if total is None:
            raise RuntimeError(f"no draws were left for the {stage}")
        return total

    def _strongest_rule(self, portfolio: Portfolio, counted: Tally | None = None) -> int:
        """Return the index of the rule with the most evidence against the claim.

        counted: tally of certifying draws; None: use the counts expected from the learning draws.
        """
        point, draws = self._ledger.point, self._ledger.spent
        if counted is None:
            games = [(*rule.right_and_wrong, _h(rule.guesses)) for rule in portfolio.rules]
        else:
            draws = counted.draws
            played = [counted.game(guesses) for guesses in portfolio.table]
            games = [(game.correct, game.wrong, game.h) for game in played]
        evidence = [
            float(evidence_of(np.array(right), np.array(wrong), rule.point or point, draws, h))
            for rule, (right, wrong, h) in zip(portfolio.rules, games, strict=True)
        ]
        return int(np.argmax(evidence))

    def _warn_of_limits(self) -> None:
        """Record warnings about parts of outputs that are ignored or cannot be counted."""
        outcomes = self._selection.outcomes
        self._warnings += filter(None, [narrowed(outcomes)])
        if not self._spec.floating_point:
            self._ignored += low_bits(outcomes, "floating_point")
        self._warnings += self._single_outputs()[1]

    def _check_failures(self) -> None:
        """Raise MechanismError if all draws are exceptions, which shows nothing about privacy."""
        failures, spent = self._ledger.failures, self._ledger.spent
        is_enough = spent >= min(_HOPELESS_DRAWS, self._plan.freeze_at)
        if is_enough or self._ledger.may_stop:
            self._check_inputs()
        if is_enough and failures.total == spent:
            first = next(iter(failures.first.values()))
            raise MechanismError(
                f"all {spent} draws of both inputs raised an exception, the first one "
                f"{first.words}; an audit needs outputs: "
                f"{what_to_check(self._spec.target, first.kind)}",
                code="always-raises",
            )

    def _check_inputs(self) -> None:
        """Raise MechanismError if d1 or d2 alone seems to have the wrong type.

        Inputs that a search made are not checked: they have the type that the user asked for.
        """
        failures = self._ledger.failures
        if self._spec.on_error == "auto" and self._spec.search is None and failures.total:
            d1 = sum(int(part.is_d1.sum()) for part in self._buffer)
            draws = d1, sum(part.size for part in self._buffer) - d1
            check_inputs(self._spec.pairs[self._number], failures, draws)

    def _doubted(self, certificate: Certificate, measure: Measure) -> Certificate:
        """Return the certificate of a refutation after a check with further draws.

        The further draws come from this process and from new processes. The returned certificate
        has the warnings of this check. Raises MechanismError if draws cannot be independent.
        """
        guesses = np.array(certificate.guesses, dtype=np.int64)
        limits, ledger = self._plan.limits, self._ledger
        texts = self._checks.doubted(
            (self._number, DOUBTING),
            ledger.blocks,
            measure,
            guesses,
            is_cheap=not limits.single_draws,
            most=limits.learned,
        )
        columns = self._selection.outcomes.columns
        is_number = len(columns) == 1 and columns[0].codes is None and not self._spec.floating_point
        if is_number:  # in another process, a set may be added up in another order, and so rounded
            near = NearLevels.of(measure.portfolio.level, columns[0].numbers)
            measure = replace(measure, portfolio=replace(measure.portfolio, level=near))
        stream, kinds = (self._number, REDRAWING), ledger.failures.counts
        refutation = Refutation(stream, ledger.blocks, measure, guesses, kinds, is_number)
        redrawn = self._compare(refutation)
        texts = [*certificate.warnings, *texts]
        if redrawn is not None and redrawn.processes:  # new processes cannot return stored results
            texts = [text for text in texts if STORED not in text]
        return replace(certificate, warnings=tuple(texts), redrawn=redrawn)

    def _evidence(self, stage: FixedStage, measure: Measure, total: Counted) -> Evidence:
        """Check the draws, and return the evidence from which the certificate is computed.

        stage: stage of the draws of the exact test.  total: counts of these draws.
        """
        portfolio, ledger, checks = measure.portfolio, self._ledger, self._checks
        self._warnings += checks.counted(self._selection, ledger.blocks, ledger.heads, portfolio)
        self._warnings += checks.varied(self._kept, ledger.blocks, portfolio, total.unseen)
        has_single = measure.atoms is not None
        singles = None
        if measure.atoms is not None and total.atoms is not None:
            singles = accused(measure.atoms, total.atoms)
        return Evidence(
            point=ledger.point,
            alpha=self._spec.alpha,
            confidence=self._spec.confidence,
            blocks=tuple(ledger.blocks),
            stage=stage,
            method="probabilistic" if has_single else self._spec.bound,
            rules=frozen_rules(portfolio, is_one=has_single),
            rounds=tuple(map(round_of, ledger.rounds)),
            accused=singles or (),
            limited=self._limited,
            unseen=total.unseen,
            ranges=measure.seen is not None and measure.seen.has_ranges,
            points=several_points(self._claim),
        )

    def _certificate(self, evidence: Evidence, learned: Learned) -> Certificate:
        ledger, plan, selection = self._ledger, self._plan, self._selection
        first = {kind: ledger.failures.first.get(kind) for kind in ledger.failures.counts}
        return certificate(
            evidence,
            ledger.wealth,
            pair=self._spec.pairs[self._number].label,
            budget=plan.budget,
            refuted_after=ledger.refuted_after,
            failures=ledger.failures.counts,
            first_failures={
                kind: FirstFailure(raised.message, raised.where)
                for kind, raised in first.items()
                if raised is not None
            },
            reproducible=True,
            warnings=tuple(self._warnings),
            notes=(
                *integer_noise(self._claim, selection.outcomes),
                *never_repeated(selection),
            ),
            interval=self._interval,
            ignored=tuple(self._ignored),
            attacks=learned.tried,
            scores=learned.scores,
            schedule=Schedule(
                learned=plan.limits.learned,
                block=plan.limits.block,
                by_clock=self._spec.time is not None,
                full=self._spec.full,
                counted=self._counted_draws,
                confirming=plan.limits.confirming,
            ),
        )


def several_points(claim: PrivacyClaim) -> tuple[ProfilePoint, ...]:
    """Return the points (ε, δ) of a claim that is a curve; () for a claim with one point."""
    points = tuple(claim.points())
    return points if len(points) > 1 else ()


def _h(guesses: NDArray[np.int64]) -> float:
    """Return h, the factor of δ in docs/method.md §2: 1 if a rule can guess both inputs, else 1/2.

    guesses: (levels,), 1 for d1, -1 for d2, 0 to abstain.
    """
    return 1.0 if (guesses > 0).any() and (guesses < 0).any() else 0.5


def frozen_rules(portfolio: Portfolio, *, is_one: bool) -> tuple[FrozenRule, ...]:
    """Return the rules of a portfolio in the form that the exact test takes.

    is_one: whether to return the main rule only, with the whole error probability. True for the
        probabilistic definition, which tests single outputs in place of rules.
    """
    rules = [
        FrozenRule(
            rule.kind,
            rule.share,
            rule.attack,
            tuple(guesses.tolist()),
            (rule.words(1), rule.words(-1)),
            rule.point,
        )
        for rule, guesses in zip(portfolio.rules, portfolio.table, strict=True)
    ]
    return (replace(rules[0], share=1.0),) if is_one else tuple(rules)


def limited_divergence(
    claim: PrivacyClaim, learned: Learned, selection: SelectionDraws, coming: int, alpha: float
) -> tuple[Witness, float] | None:
    """Return the witness of a Rényi divergence, and the largest divergence that the claim allows.

    A witness is a bounded function g of the level, with an order and a direction, that bounds the
    divergence from below (docs/method.md §6). Returns None if the claim limits no divergence, or if
    no witness is expected to show a divergence above the limit.

    selection: the learning draws.  coming: number of draws to certify with.
    alpha: error probability of the exact tests; the test of the witness takes half of it.
    """
    limits = dict(claim.divergences())
    expected = learned.expected_as_in(selection) if limits else None
    if expected is None:
        return None
    witness = most_telling_witness(expected, limits, coming, alpha / 2)
    return None if witness is None else (witness, limits[witness.order])


def single_outputs(
    claim: PrivacyClaim, selection: SelectionDraws, point: ProfilePoint
) -> tuple[SingleOutputs | None, list[str]]:
    """Return the single outputs to test for the probabilistic definition, and a list of warnings.

    Returns None and no warning for any other definition. Returns None and a warning if outputs do
    not repeat, so that single outputs cannot be counted.

    selection: the learning draws.  point: the inequality (ε, δ) that is tested.
    """
    if not claim.counts_single_outputs:
        return None, []
    if not has_atoms(selection):
        return None, [_CONTINUOUS]
    return choose_single_outputs(selection, point), []


def integer_noise(claim: PrivacyClaim, outcomes: Outcomes) -> tuple[str, ...]:
    """Return the claim's note about integer outputs; empty without a note or without integers."""
    note = claim.note_for_integers()
    return (note,) if note is not None and has_integers(outcomes) else ()


def low_bits(outcomes: Outcomes, remedy: str) -> list[str]:
    """Return a remark that low-order bits of floats are ignored; empty without such floats.

    remedy: name of the option, or the command, that searches low-order bits.
    """
    return [f"low-order bits of floats ({remedy})"] if has_fractions(outcomes) else []
