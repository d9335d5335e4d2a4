"""The audit of one pair: learn and bet, freeze, certify; or stop early and confirm."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from dpaudit.attacks.bits import has_fractions
from dpaudit.attacks.rare import rare as rare_outputs
from dpaudit.attacks.selection import (
    Aim,
    accuse,
    attacks_for,
    gains_by_more,
    has_atoms,
    is_sure,
    is_undecided,
    learn,
    learn_again,
    most_telling,
)
from dpaudit.auditing.checks import DrawChecks
from dpaudit.auditing.journal.interface import PairProgress
from dpaudit.auditing.options import MINIMUM_SAMPLES
from dpaudit.auditing.schedule import Plan, look_stride, wants_refit
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.certificate import (
    Block,
    Certificate,
    EpsilonInterval,
    FirstFailure,
    FixedStage,
    Schedule,
    Stage,
)
from dpaudit.certificates.evidence import (
    BETTING_SHARE,
    CERTIFICATION_SHARE,
    CONFIRMATION_SHARE,
    Evidence,
    certificate,
)
from dpaudit.certificates.fixed_test import Accused, accused
from dpaudit.certificates.interval import STOPPED, FiniteRange
from dpaudit.certificates.replay import block_of, round_of
from dpaudit.certificates.wealth import Wealth
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.draws import FreshDraws, SelectionDraws, pool
from dpaudit.errors import MechanismError
from dpaudit.levels.candidate import Attack, Candidate
from dpaudit.levels.distinguisher import AccusedAtoms, Distinguisher, Learned
from dpaudit.levels.sieve import Sieve
from dpaudit.levels.witnesses import most_telling_witness
from dpaudit.outcomes import Outcomes, narrowed
from dpaudit.sampling.chunks import (
    MOST_KEPT,
    Counted,
    Failures,
    Head,
    Measure,
    Rare,
    ToCount,
    ToLearn,
)
from dpaudit.sampling.executors import Draws
from dpaudit.sampling.sampler import failures_by_arm
from dpaudit.stats.betting import Beliefs
from dpaudit.stats.witness import Witness
from dpaudit.tally import Tally, by_arm
from dpaudit.wording import counted as counted_words

# What names the random streams of a stage, after the number of the pair.
LEARNING, CERTIFYING, CONFIRMING, PROBING, AFRESH, COUNTING = range(6)

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
        draws: Draws,
        notify: Callable[[PairProgress], None],
        users: tuple[Attack, ...] = (),
        afresh: Draws | None = None,
    ) -> None:
        """afresh: draws in a new process; None where draws are made in this one."""
        self._checks = DrawChecks(spec, afresh)
        self._spec, self._number, self._plan = spec, number, plan
        self._draws, self._notify = draws, notify
        self._claim = spec.tested
        self._attacks = attacks_for(
            floating_point=spec.floating_point, timing=spec.timing, repeated=spec.runs > 1
        )
        self._users = users
        self._point = self._claim.point()
        self._is_settled = len(self._claim.points()) == 1
        self._wealth = Wealth(self._point, BETTING_SHARE * spec.alpha)
        # For good, since no bettor may get another stake: whether there may be much to count.
        self._reserves = spec.time is not None or plan.freeze_at > plan.hold_until
        self._parts: list[SelectionDraws] = []
        self._learned_from = 0
        self._rounds: list[Beliefs] = []
        self._blocks: list[Block] = []
        self._spent = self._counted_on = 0
        self._failures = Failures()
        self._refuted_after: int | None = None
        self._warnings: list[str] = []
        self._ignored: list[str] = []
        self._heads: list[Head] = []
        self._range = None if spec.range is None else FiniteRange.of(spec.range)
        self._interval: EpsilonInterval | None = None
        self._limited: tuple[Witness, float] | None = None

    def run(self) -> Certificate:
        """Return the certificate. Raises MechanismError when there is nothing to certify."""
        learned = self._learn()
        measure = self._measure(learned.distinguisher)
        room = self._plan.budget - self._spent
        share, coming = (
            (CONFIRMATION_SHARE, min(self._spent, room))
            if self._may_stop
            else (CERTIFICATION_SHARE, room)
        )
        self._limited = limited_divergence(self._claim, learned, coming, share * self._spec.alpha)
        if self._may_stop:
            # Refuted while learning: everything drawn may decide what the fresh block confirms.
            evidence = self._confirm(measure)
        else:
            self._believe(learned)
            evidence = self._certify(measure)
        found = self._certificate(evidence, learned)
        if not found.refuted:
            return found
        warned = self._checks.refuted((self._number, AFRESH), self._blocks, measure)
        return replace(found, warnings=(*found.warnings, *warned))

    @property
    def _may_stop(self) -> bool:
        """Whether a refutation ends the run: asked for, and enough budget left to confirm it."""
        return self._refuted_after is not None and self._can_confirm(0)

    def _learn(self) -> Learned:
        """Bet on each block with what was learned before it, then learn from it.

        Returns what is frozen for the exact bound, or to be confirmed after a refutation.
        """
        learned: Learned | None = None
        sizes = self._plan.learning_sizes()
        chunks = (ToLearn((self._number, LEARNING, n), size) for n, size in enumerate(sizes))
        self._plan.asks()
        for drawn in self._draws(chunks):
            self._plan.gets(drawn.fresh.size)
            released = self._take(drawn.fresh, learned)
            self._failures += Failures(
                failures_by_arm(released.outcomes, released.is_d1), drawn.failures.first
            )
            self._check_alive()
            self._plan.learned(self._spent, ahead=self._spec.draws_ahead)
            hold_until = self._plan.hold_until
            if self._may_stop or self._spent >= hold_until:
                break
            points = len(self._claim.points())
            if wants_refit(self._learned_from, self._spent, hold_until, points):
                learned = self._fit()
                self._believe(learned)
            self._plan.asks()
        self._warnings += self._checks.learned(self._selection(), self._blocks, self._point)
        if self._may_stop:
            return self._fit()
        learned = self._fit(thorough=True)
        return learned if self._spent >= self._plan.freeze_at else self._count_on(learned)

    def _count_on(self, learned: Learned) -> Learned:
        """Learn from draws that are not kept but counted, by the orders that promised most, and of
        which the rare ones are kept; bet on them all the while."""
        selection = self._selection()
        sieve = Sieve.of(selection)
        orders = learned.leading
        rare = Rare(selection.take(np.flatnonzero(sieve.strange(selection.outcomes))))
        arms = by_arm(np.zeros(selection.size, np.intp), 1, selection.is_d1)[0]
        counters = tuple(one.counter for one in orders)
        number = 0
        while True:
            self._believe(learned)
            measure = Measure(learned.distinguisher, others=counters, sieve=sieve)
            total: Counted | None = None
            tallies: list[Tally] = []
            for counted in self._draws(self._to_count_on(measure, number)):
                number += 1
                tallies.append(counted.tally)
                self._failures += counted.failures
                self._heads += counted.heads
                self._wealth.record([counted.tally])
                self._record("learning", len(self._rounds) - 1, counted.tally)
                total = counted if total is None else total + counted
                if self._may_stop:
                    break
            if total is None or total.rare is None:
                raise RuntimeError("no draws were left to count")
            self._warnings += self._checks.learned_again(tallies, learned.distinguisher)
            rare, arms = rare + total.rare, arms + total.tally.counts.sum(axis=0)
            orders = tuple(
                one.counted_on(more.counts) for one, more in zip(orders, total.others, strict=True)
            )
            self._counted_on += total.tally.draws
            found = [*orders, *rare_outputs(sieve, rare.kept, arms)]
            is_last = self._may_stop or self._is_enough(found)
            if is_last and rare.lost:
                self._ignored.append(
                    f"{counted_words(rare.lost, 'rare output')} beyond {MOST_KEPT:,}"
                )
            learned = learn_again(found, self._aim(), to_bet=not is_last)
            if is_last:
                return learned

    def _is_enough(self, found: list[Candidate]) -> bool:
        """Whether to freeze: what is left of the budget is worth more than learning is."""
        spent, plan, aim = self._spent, self._plan, self._aim()
        if spent < plan.freeze_at and not (plan.may_freeze(spent) and is_sure(found, aim)):
            return False
        if not plan.may_count_on(spent):
            return True
        most = plan.budget / 2 / spent
        return not (is_undecided(found, aim, most) or gains_by_more(found, aim))

    def _to_count_on(self, measure: Measure, number: int) -> Iterator[ToCount]:
        sizes = self._plan.counting_sizes(self._spent)
        for place, size in enumerate(sizes, number):
            key = (self._number, COUNTING, place)
            yield ToCount(key, size, measure, self._plan.limits.block)

    def _take(self, fresh: FreshDraws, learned: Learned | None) -> SelectionDraws:
        """Bet on a learning block, record it as far as the first refutation, release it."""
        if learned is None:
            released = fresh.release()
            d1 = int(released.is_d1.sum())
            self._record("learning", None, Tally(np.array([[d1, released.size - d1]])))
        else:
            stride, rule = look_stride(fresh.size), learned.distinguisher
            looks = self._that_count(fresh.looks(rule, rule.levels, stride))
            released = fresh.release(len(looks) * stride)
            total = Tally(np.sum([look.counts for look in looks], axis=0))
            self._wealth.record([total])
            self._record("learning", len(self._rounds) - 1, total)
        self._parts.append(released)
        return released

    def _that_count(self, looks: tuple[Tally, ...]) -> tuple[Tally, ...]:
        """Return all looks, or those up to the first that refutes where that ends the run."""
        first = self._wealth.first_refuting(looks) if self._refuted_after is None else None
        if first is None:
            return looks
        seen = looks[: first + 1]
        return seen if self._can_confirm(sum(look.draws for look in seen)) else looks

    def _can_confirm(self, coming: int) -> bool:
        room = self._plan.budget - self._spent - coming
        return not self._spec.full and room >= MINIMUM_SAMPLES

    def _certify(self, measure: Measure) -> Evidence:
        """Count the rest of the budget with one frozen rule, still betting at every block's end."""
        sizes = self._plan.certifying_sizes(self._spent)
        total = self._counted("certification", sizes, measure)
        if self._may_stop:
            return self._confirm(measure)
        if self._range is not None and total.declared is not None:
            found = self._range.interval(total.declared, self._spec.alpha)
            if isinstance(found, str):
                self._warnings.append(found)
            else:
                self._interval = found
        return self._evidence("certification", measure, total)

    def _confirm(self, measure: Measure) -> Evidence:
        """Spend the exact test on a fresh block, as large as all that came before it."""
        if self._range is not None:
            self._warnings.append(STOPPED)
        sizes = self._plan.confirming_sizes(self._spent)
        total = self._counted("confirmation", sizes, measure)
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
            self._failures += counted.failures
            self._heads += counted.heads
            if is_bet_on:
                self._wealth.record([counted.tally])
            self._record(stage, len(self._rounds) - 1 if is_bet_on else None, counted.tally)
            total = counted if total is None else total + counted
            if is_bet_on and self._may_stop:
                break
        if total is None:
            raise RuntimeError(f"no draws were left for the {stage}")
        return total

    def _fit(self, *, thorough: bool = False) -> Learned:
        selection = self._selection()
        coming = max(self._plan.budget - selection.size, MINIMUM_SAMPLES)
        if not self._is_settled:
            # By draws that certify nothing, and before anything is bet.
            self._point = most_telling(selection, self._claim, coming, self._attacks)
            self._wealth = Wealth(self._point, BETTING_SHARE * self._spec.alpha)
            self._is_settled = True
        self._learned_from = selection.size
        return learn(selection, self._aim(), self._attacks, users=self._users, thorough=thorough)

    def _aim(self) -> Aim:
        coming = max(self._plan.budget - self._spent, MINIMUM_SAMPLES)
        several = len(self._claim.points()) > 1
        return Aim(self._point, coming, for_delta=several, reserve=self._reserves)

    def _selection(self) -> SelectionDraws:
        self._parts = [pool(self._parts)]
        return self._parts[0]

    def _believe(self, learned: Learned) -> None:
        self._rounds.append(learned.beliefs)
        self._wealth.believe(learned.beliefs)

    def _measure(self, distinguisher: Distinguisher) -> Measure:
        selection = self._selection()
        self._warnings += filter(None, [narrowed(selection.outcomes)])
        if not self._spec.floating_point:
            self._ignored += low_bits(selection.outcomes, "--floating-point")
        atoms, warned = single_outputs(self._claim, selection, self._point)
        self._warnings += warned
        return Measure(distinguisher, atoms, None if self._range is None else self._range.keys)

    def _record(self, stage: Stage, place: int | None, tally: Tally) -> None:
        self._blocks.append(block_of(stage, place, tally))
        self._spent += tally.draws
        if self._refuted_after is None and self._wealth.refuted:
            self._refuted_after = self._spent
        moment = PairProgress(
            draws=self._spent,
            budget=self._plan.budget,
            is_planned=self._plan.is_final,
            wealth=math.exp(min(self._wealth.log_largest, 700.0)),
            epsilon_lower=self._wealth.epsilon_lower,
            point=self._point,
            rounds=len(self._rounds),
            gains=self._wealth.gains,
        )
        self._notify(moment)

    def _check_alive(self) -> None:
        """Raise when nothing but exceptions came out, which says nothing about privacy."""
        if self._failures.total == self._spent >= min(_HOPELESS, self._plan.freeze_at):
            first = next(iter(self._failures.first.values())).words
            raise MechanismError(
                f"all {self._spent} draws of both inputs raised an exception, the first one "
                f"{first}; an audit needs outputs"
            )

    def _evidence(self, stage: FixedStage, measure: Measure, total: Counted) -> Evidence:
        """Check the draws of the exact test; return what the certificate is to follow from."""
        rule = measure.distinguisher
        self._warnings += self._checks.counted(self._selection(), self._blocks, self._heads, rule)
        found: Accused = ()
        if measure.atoms is not None and total.atoms is not None:
            found = accused(measure.atoms, total.atoms)
        return Evidence(
            point=self._point,
            alpha=self._spec.alpha,
            confidence=self._spec.confidence,
            blocks=tuple(self._blocks),
            stage=stage,
            method=self._spec.bound if measure.atoms is None else "probabilistic",
            guesses=tuple(rule.guesses.tolist()),
            words=(rule.words(1), rule.words(-1)),
            rounds=tuple(map(round_of, self._rounds)),
            accused=found,
            limited=self._limited,
        )

    def _certificate(self, evidence: Evidence, learned: Learned) -> Certificate:
        return certificate(
            evidence,
            self._wealth,
            pair=self._spec.pairs[self._number].label,
            attack=learned.distinguisher.attack,
            budget=self._plan.budget,
            refuted_after=self._refuted_after,
            failures=self._failures.counts,
            first_failures={
                kind: FirstFailure(one.message, one.where)
                for kind in self._failures.counts
                if (one := self._failures.first.get(kind)) is not None
            },
            reproducible=True,
            warnings=tuple(self._warnings),
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
            ),
        )


def limited_divergence(
    claim: PrivacyClaim, learned: Learned, coming: int, alpha: float
) -> tuple[Witness, float] | None:
    """Return the witness of a Rényi divergence to certify, and the most that the claim allows it to
    be; None where the claim limits none, or none promises to show anything.

    coming: draws to certify with.  alpha: what their exact tests may spend, half of it on this one.
    """
    limits = dict(claim.divergences())
    if not limits or learned.expected is None:
        return None
    witness = most_telling_witness(learned.expected, limits, coming, alpha / 2)
    return None if witness is None else (witness, limits[witness.order])


def single_outputs(
    claim: PrivacyClaim, selection: SelectionDraws, point: ProfilePoint
) -> tuple[AccusedAtoms | None, list[str]]:
    """Return the single outputs to certify, where a claim is about these and they repeat; and a
    warning where they do not."""
    if not claim.counts_single_outputs:
        return None, []
    if not has_atoms(selection):
        return None, [_CONTINUOUS]
    return accuse(selection, point), []


def low_bits(outcomes: Outcomes, remedy: str) -> list[str]:
    """Return, for what looks at no low-order bits, that there are some, and the remedy."""
    return [f"low-order bits of floats ({remedy})"] if has_fractions(outcomes) else []
