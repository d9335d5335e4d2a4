"""The audit of one pair: learn and bet, freeze, certify; or stop early and confirm."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.bits import has_fractions, has_integers
from dpaudit.attacks.learning import attacks_for, learn, most_telling
from dpaudit.attacks.objective import Objective
from dpaudit.attacks.single_outputs import accuse, has_atoms
from dpaudit.auditing.checks import DrawChecks, check_inputs
from dpaudit.auditing.counting import CountingStage, Counts
from dpaudit.auditing.ledger import Ledger, PairProgress
from dpaudit.auditing.redrawing import Refutation
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
from dpaudit.certificates.fixed_test import Accused, FrozenRule, accused
from dpaudit.certificates.interval import STOPPED, FiniteRange
from dpaudit.certificates.replay import round_of
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.draws import FreshDraws, SelectionDraws, Tally, pool
from dpaudit.errors import MechanismError
from dpaudit.levels.candidates import Attack
from dpaudit.levels.level_map import NearLevels
from dpaudit.levels.portfolio import Learned, Portfolio, SingleOutputs
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.levels.rules import evidence_of
from dpaudit.levels.witnesses import most_telling_witness
from dpaudit.outcomes import Outcomes, narrowed
from dpaudit.sampling.chunks import Counted, Failures, Measure, ToCount, ToLearn, ToTime
from dpaudit.sampling.executors import Drawer
from dpaudit.sampling.independence import STORED, never_repeated
from dpaudit.sampling.sampler import failures_by_arm
from dpaudit.stats.witness import Witness
from dpaudit.targets.target import what_to_check

# What names the random streams of a stage, after the number of the pair.
LEARNING, CERTIFYING, CONFIRMING, PROBING, AFRESH, COUNTING, DOUBTING, TIMING = range(8)

# So many draws that are all exceptions end an audit while it still learns.
_HOPELESS = 500
_CONTINUOUS = (
    "outputs hardly ever repeat, so single outputs cannot be counted: the audit tests the "
    "approximate definition, which the probabilistic one implies"
)


class PairAudit:
    """Audits one pair; `run` once."""

    def __init__(
        self,
        spec: AuditSpec,
        number: int,
        plan: Plan,
        draws: Drawer,
        notify: Callable[[PairProgress], None],
        users: tuple[Attack, ...] = (),
        compare: Callable[[Refutation], Redrawn | None] = lambda refuted: None,
    ) -> None:
        """compare: compares a refutation with draws of new processes; returns None where that is
        not asked for, and raises MechanismError where they differ."""
        self._checks, self._compare = DrawChecks(spec, draws), compare
        self._spec, self._number, self._plan = spec, number, plan
        self._draws = draws
        self._claim = spec.tested
        self._attacks = attacks_for(
            floating_point=spec.floating_point, timing=spec.timing, repeated=spec.runs > 1
        )
        self._users = users
        self._is_settled = len(self._claim.points()) == 1
        self._ledger = Ledger(spec, plan, self._claim.point(), notify)
        # For good, since no bettor may get another stake: whether there may be much to count.
        self._reserves = spec.time is not None or plan.freeze_at > plan.hold_until
        self._parts: list[SelectionDraws] = []
        self._counts: Counts | None = None
        self._learned_from = self._counted_on = 0
        self._warnings: list[str] = []
        self._notes: tuple[str, ...] = ()
        self._ignored: list[str] = []
        self._range = None if spec.range is None else FiniteRange.of(spec.range)
        self._interval: EpsilonInterval | None = None
        self._limited: tuple[Witness, float] | None = None

    @property
    def has_failures(self) -> bool:
        """Whether any draw was an exception."""
        return self._ledger.failures.total > 0

    def run(self) -> Certificate:
        """Return the certificate. Raises MechanismError when there is nothing to certify."""
        learned = self._learn()
        self._remark()
        portfolio = learned.portfolio
        if self._ledger.may_stop:
            portfolio = portfolio.only(self._favoured(portfolio))
        measure = self._measure(portfolio)
        share = CONFIRMATION_SHARE if self._ledger.may_stop else CERTIFICATION_SHARE
        alpha = share * self._spec.alpha
        self._limited = limited_divergence(
            self._claim, learned, self._selection(), self._coming, alpha
        )
        if self._ledger.may_stop:
            # Refuted while learning: everything drawn may decide what the fresh block confirms.
            evidence = self._confirm(measure)
        else:
            self._ledger.believe(learned.beliefs)
            measure, evidence = self._certify(measure)
        found = self._certificate(evidence, learned)
        if not (found.refuted or self._spec.may_refute(found.p_value)):
            return found
        blocks, is_cheap = self._ledger.blocks, not self._plan.limits.single_draws
        stream = self._number, DOUBTING
        guesses = np.array(found.guesses, dtype=np.int64)
        most = self._plan.limits.learned
        warned = self._checks.doubted(
            stream, blocks, measure, guesses, is_cheap=is_cheap, most=most
        )
        redrawn = self._compare(self._refutation(measure, guesses))
        warned = [*found.warnings, *warned]
        if redrawn is not None and redrawn.processes:  # a new process has stored nothing
            warned = [text for text in warned if STORED not in text]
        return replace(found, warnings=tuple(warned), redrawn=redrawn)

    def _refutation(self, measure: Measure, guesses: NDArray[np.int64]) -> Refutation:
        kinds, columns = self._ledger.failures.counts, self._selection().outcomes.columns
        is_number = len(columns) == 1 and columns[0].codes is None and not self._spec.floating_point
        if is_number:  # a sum of floats over a set depends on the order of the set
            rule = measure.portfolio
            near = NearLevels.of(rule.level, columns[0].numbers)
            measure = replace(measure, portfolio=replace(rule, level=near))
        stream = self._number, AFRESH
        return Refutation(stream, self._ledger.blocks, measure, guesses, kinds, is_number)

    def _learn(self) -> Learned:
        """Bet on each block with what was learned before it, then learn from it.

        Returns what is frozen for the exact bound, or to be confirmed after a refutation.
        """
        learned, ledger, plan = self._keep(None), self._ledger, self._plan
        self._check_inputs()
        if not (ledger.may_stop or plan.is_final):
            self._take_time(learned or self._fit())
            plan.ends_learning(ledger.spent)
        learned = self._fit(thorough=not ledger.may_stop)
        if not (learned.promises or ledger.may_stop) and plan.keep_half():
            ledger.believe(learned.beliefs)
            self._keep(learned)
            learned = self._fit(thorough=not ledger.may_stop)
        self._warnings += self._checks.learned(self._selection(), ledger.blocks, ledger.point)
        if ledger.may_stop:
            return learned
        plan.goes_on(ledger.spent)
        is_wanted = not learned.promises and plan.may_count_first(ledger.spent)
        if ledger.spent < plan.freeze_at or is_wanted:
            return self._count_on(learned)
        return learned

    def _keep(self, learned: Learned | None) -> Learned | None:
        """Draw what there is to keep, or up to a refutation, and bet on it by what is learned all
        the while. Returns what was learned last, if anything was."""
        first = sum(block.stage == "learning" for block in self._ledger.blocks)
        sizes = self._plan.learning_sizes(self._ledger.spent)
        chunks = (ToLearn((self._number, LEARNING, n), size) for n, size in enumerate(sizes, first))
        for drawn in self._draws(chunks):
            released = self._take(drawn.fresh, learned)
            self._ledger.failures += Failures(
                failures_by_arm(released.outcomes, released.is_d1), drawn.failures.first
            )
            self._check_alive()
            self._plan.learned(self._ledger.spent)
            spent, hold_until = self._ledger.spent, self._plan.hold_until
            if self._ledger.may_stop or spent >= hold_until:
                break
            points = len(self._claim.points())
            # By the clock it is open what part of the budget is kept.
            full = self._spec.full and self._spec.time is None
            if wants_refit(self._learned_from, spent, hold_until, points, full=full):
                learned = self._fit()
                self._ledger.believe(learned.beliefs)
        return learned

    def _take_time(self, learned: Learned) -> None:
        """See how fast draws are counted once all who draw are there, to plan how many there is
        time for: on draws that count for nothing, since how long a draw takes may depend on its
        output. Blocks to learn from are too small, and come too slowly, to show it."""
        measure = self._measure(learned.portfolio)
        sizes = self._plan.timed_sizes(self._ledger.spent)
        block, patience = self._plan.limits.block, self._plan.patience
        chunks = (
            ToTime((self._number, TIMING, number), size, measure, block, False, patience)
            for number, size in enumerate(sizes)
        )
        for drawn in self._draws(chunks):
            if self._plan.timed(drawn.tally.draws):
                break

    def _count_on(self, learned: Learned) -> Learned:
        """Learn from draws that are not kept but counted."""
        stream = (self._number, COUNTING)
        self._counts = counts = Counts(self._selection(), learned)
        stage = CountingStage(stream, self._plan, self._ledger, self._checks, counts, self._aim)
        learned = stage.learn(learned, self._draws)
        self._counted_on = stage.draws
        self._warnings += stage.warnings
        self._ignored += counts.dropped()
        return learned

    def _take(self, fresh: FreshDraws, learned: Learned | None) -> SelectionDraws:
        """Bet on a learning block, record it as far as the first refutation, release it."""
        if learned is None:
            released = fresh.release()
            d1 = int(released.is_d1.sum())
            total = Tally(np.array([[d1, released.size - d1]]))
        else:
            stride, rule = look_stride(fresh.size), learned.portfolio
            looks = self._that_count(fresh.looks(rule, rule.levels, stride))
            released = fresh.release(len(looks) * stride)
            total = Tally(np.sum([look.counts for look in looks], axis=0))
        self._ledger.write("learning", total, is_bet_on=learned is not None)
        self._parts.append(released)
        return released

    def _that_count(self, looks: tuple[Tally, ...]) -> tuple[Tally, ...]:
        """Return all looks, or those up to the first that refutes where that ends the run."""
        if self._ledger.refuted_after is not None:
            return looks
        first = self._ledger.wealth.first_refuting(looks)
        if first is None:
            return looks
        seen = looks[: first + 1]
        return seen if self._ledger.can_confirm(sum(look.draws for look in seen)) else looks

    def _favoured(self, portfolio: Portfolio, counted: Tally | None = None) -> int:
        """Return the rule with the most evidence against the claim so far, which a confirmation is
        for. counted: by the portfolio; None while its rules are known from learning alone."""
        point, drawn = self._ledger.point, self._ledger.spent
        if counted is None:
            games = [(*one.right_and_wrong, _h(one.guesses)) for one in portfolio.rules]
        else:
            drawn = counted.draws
            played = [counted.game(guesses) for guesses in portfolio.table]
            games = [(one.correct, one.wrong, one.h) for one in played]
        found = [
            float(evidence_of(np.array(right), np.array(wrong), rule.point or point, drawn, h))
            for rule, (right, wrong, h) in zip(portfolio.rules, games, strict=True)
        ]
        return int(np.argmax(found))

    def _certify(self, measure: Measure) -> tuple[Measure, Evidence]:
        """Count the rest of the budget with the frozen portfolio, still betting at every block's
        end. Returns what was measured last, too: after a refutation, by one rule."""
        sizes = self._plan.certifying_sizes(self._ledger.spent)
        total = self._counted("certification", sizes, measure)
        if self._ledger.may_stop:
            portfolio = measure.portfolio
            measure = replace(
                measure, portfolio=portfolio.only(self._favoured(portfolio, total.tally))
            )
            return measure, self._confirm(measure)
        if self._range is not None and total.declared is not None:
            found = self._range.interval(total.declared, self._spec.alpha)
            if isinstance(found, str):
                self._warnings.append(found)
            else:
                self._interval = found
        return measure, self._evidence("certification", measure, total)

    def _confirm(self, measure: Measure) -> Evidence:
        """Spend the exact test on a fresh block, as large as all that came before it."""
        if self._range is not None:
            self._warnings.append(STOPPED)
        sizes = self._plan.confirming_sizes(self._ledger.spent)
        total = self._counted("confirmation", sizes, replace(measure, seen=None))
        return self._evidence("confirmation", measure, total)

    def _counted(self, stage: FixedStage, sizes: Iterable[int], measure: Measure) -> Counted:
        """Return what one rule has counted, recorded block by block."""
        is_bet_on = stage == "certification"
        stream = CERTIFYING if is_bet_on else CONFIRMING
        chunks = (
            ToCount((self._number, stream, index), size, measure, self._plan.limits.block)
            for index, size in enumerate(sizes)
        )
        total: Counted | None = None
        for counted in self._draws(chunks):
            self._ledger.count(stage, counted, is_bet_on=is_bet_on)
            total = counted if total is None else total + counted
            if is_bet_on and self._ledger.may_stop:
                break
        if total is None:
            raise RuntimeError(f"no draws were left for the {stage}")
        return total

    def _fit(self, *, thorough: bool = False) -> Learned:
        selection = self._selection()
        if not self._is_settled:
            # By draws that certify nothing, and before anything is bet.
            self._ledger.settle(most_telling(selection, self._claim, self._coming, self._attacks))
            self._is_settled = True
        self._learned_from = selection.size
        return learn(selection, self._aim(), self._attacks, users=self._users, thorough=thorough)

    def _aim(self) -> Objective:
        several = len(self._claim.points()) > 1
        points = several_points(self._claim)
        point, coming = self._ledger.point, self._coming
        return Objective(point, coming, for_delta=several, points=points, reserve=self._reserves)

    @property
    def _coming(self) -> int:
        """Draws that what is learned now is for: those of the confirmation, or what is left."""
        if self._ledger.may_stop:
            return sum(self._plan.confirming_sizes(self._ledger.spent))
        return max(self._plan.budget - self._ledger.spent, 1)

    def _selection(self) -> SelectionDraws:
        self._parts = [pool(self._parts)]
        return self._parts[0]

    def _remark(self) -> None:
        """Take notice of what was not looked at, and of what could not be counted."""
        selection = self._selection()
        self._warnings += filter(None, [narrowed(selection.outcomes)])
        self._notes = tuple(never_repeated(selection))
        if not self._spec.floating_point:
            self._ignored += low_bits(selection.outcomes, "floating_point")
        self._warnings += single_outputs(self._claim, selection, self._ledger.point)[1]

    def _measure(self, portfolio: Portfolio) -> Measure:
        """Return what is kept of a draw that certifies."""
        selection = self._selection()
        atoms, _ = single_outputs(self._claim, selection, self._ledger.point)
        declared = None if self._range is None else self._range.keys
        # Of a claim that is refuted already, nobody asks what else there may be.
        kept = selection if self._counts is None else self._counts.kept()
        seen = None if self._ledger.may_stop else RareFilter.seen(kept)
        return Measure(portfolio, atoms, declared, seen=seen)

    def _check_alive(self) -> None:
        """Raise when nothing but exceptions came out, which says nothing about privacy."""
        failures, spent = self._ledger.failures, self._ledger.spent
        if spent >= min(_HOPELESS, self._plan.freeze_at) or self._ledger.may_stop:
            self._check_inputs()
        if failures.total == spent >= min(_HOPELESS, self._plan.freeze_at):
            first = next(iter(failures.first.values()))
            raise MechanismError(
                f"all {spent} draws of both inputs raised an exception, the first one "
                f"{first.words}; an audit needs outputs: "
                f"{what_to_check(self._spec.target, first.kind)}"
            )

    def _check_inputs(self) -> None:
        """Raise for an input of a wrong type. The inputs of a search are meant as they are."""
        failures = self._ledger.failures
        if self._spec.on_error == "auto" and self._spec.search is None and failures.total:
            is_d1 = [part.is_d1 for part in self._parts]
            d1 = sum(int(one.sum()) for one in is_d1)
            draws = (d1, sum(map(len, is_d1)) - d1)
            check_inputs(self._spec.pairs[self._number], failures, draws)

    def _evidence(self, stage: FixedStage, measure: Measure, total: Counted) -> Evidence:
        """Check the draws of the exact test; return what the certificate is to follow from."""
        portfolio, ledger = measure.portfolio, self._ledger
        self._warnings += self._checks.counted(
            self._selection(), ledger.blocks, ledger.heads, portfolio
        )
        known = self._selection() if self._counts is None else self._counts.kept()
        self._warnings += self._checks.varied(known, ledger.blocks, portfolio, total.unseen)
        found: Accused = ()
        if measure.atoms is not None and total.atoms is not None:
            found = accused(measure.atoms, total.atoms)
        return Evidence(
            point=ledger.point,
            alpha=self._spec.alpha,
            confidence=self._spec.confidence,
            blocks=tuple(ledger.blocks),
            stage=stage,
            method=self._spec.bound if measure.atoms is None else "probabilistic",
            rules=frozen_rules(portfolio, is_one=measure.atoms is not None),
            rounds=tuple(map(round_of, ledger.rounds)),
            accused=found,
            limited=self._limited,
            unseen=total.unseen,
            ranges=measure.seen is not None and measure.seen.has_ranges,
            points=several_points(self._claim),
        )

    def _certificate(self, evidence: Evidence, learned: Learned) -> Certificate:
        ledger = self._ledger
        return certificate(
            evidence,
            ledger.wealth,
            pair=self._spec.pairs[self._number].label,
            budget=self._plan.budget,
            refuted_after=ledger.refuted_after,
            failures=ledger.failures.counts,
            first_failures={
                kind: FirstFailure(one.message, one.where)
                for kind in ledger.failures.counts
                if (one := ledger.failures.first.get(kind)) is not None
            },
            reproducible=True,
            warnings=tuple(self._warnings),
            notes=(*integer_noise(self._claim, self._selection().outcomes), *self._notes),
            interval=self._interval,
            ignored=tuple(self._ignored),
            attacks=learned.tried,
            scores=learned.scores,
            schedule=Schedule(
                learned=self._plan.limits.learned,
                block=self._plan.limits.block,
                by_clock=self._spec.time is not None,
                full=self._spec.full,
                counted=self._counted_on,
                confirming=self._plan.limits.confirming,
            ),
        )


def several_points(claim: PrivacyClaim) -> tuple[ProfilePoint, ...]:
    """Return the points of a claim that is a curve; none where there is only one."""
    points = tuple(claim.points())
    return points if len(points) > 1 else ()


def _h(guesses: NDArray[np.int64]) -> float:
    """Return the factor of δ: 1 for a rule that may guess both inputs, ½ for one input."""
    return 1.0 if (guesses > 0).any() and (guesses < 0).any() else 0.5


def frozen_rules(portfolio: Portfolio, *, is_one: bool) -> tuple[FrozenRule, ...]:
    """Return the rules of a portfolio as their tests need them; of single outputs, which are tested
    one by one, only how they were tallied.

    is_one: whether single outputs are tested.
    """
    rules = [
        FrozenRule(
            one.kind,
            one.share,
            one.attack,
            tuple(guesses.tolist()),
            (one.words(1), one.words(-1)),
            one.point,
        )
        for one, guesses in zip(portfolio.rules, portfolio.table, strict=True)
    ]
    return (replace(rules[0], share=1.0),) if is_one else tuple(rules)


def limited_divergence(
    claim: PrivacyClaim, learned: Learned, selection: SelectionDraws, coming: int, alpha: float
) -> tuple[Witness, float] | None:
    """Return the witness of a Rényi divergence to certify, and the largest divergence that the
    claim allows; None where the claim limits none, or no witness promises to show anything.

    selection: draws that were learned from.  coming: draws to certify with.
    alpha: the error probability of the exact tests, half of which is for the witness.
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
    """Return the single outputs to certify, where a claim is about these and they repeat; and a
    warning where they do not."""
    if not claim.counts_single_outputs:
        return None, []
    if not has_atoms(selection):
        return None, [_CONTINUOUS]
    return accuse(selection, point), []


def integer_noise(claim: PrivacyClaim, outcomes: Outcomes) -> tuple[str, ...]:
    """Return what a claim that continuous noise satisfies says of outputs that are integers."""
    note = claim.note_for_integers()
    return (note,) if note is not None and has_integers(outcomes) else ()


def low_bits(outcomes: Outcomes, remedy: str) -> list[str]:
    """Return, for what looks at no low-order bits, that there are some, and the remedy."""
    return [f"low-order bits of floats ({remedy})"] if has_fractions(outcomes) else []
