"""Plans the draws of an audit, so that it would catch a leak of a given size: from short trials.

A trial learns an event and its probability. The leak that is planned for is in this event: given
that a draw is in it, the odds of the inputs are e^(factor ε). The draws that the exact test then
needs are computed as `--require-power` judges an audit (underpowered.py), so that the two agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dpaudit.auditing.options import MAXIMUM_SAMPLES, MINIMUM_SAMPLES
from dpaudit.auditing.schedule import Limits, Plan
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.underpowered import fewest_draws, foreseen, limits_of, most_powerful
from dpaudit.certificates.certificate import Certificate, FixedTest
from dpaudit.certificates.result import AuditResult
from dpaudit.errors import UsageError
from dpaudit.levels.portfolio import OTHER_SHARE, RARE_SHARE
from dpaudit.stats.binomial import clopper_pearson_lower, upper_tail
from dpaudit.stats.power import detectable_epsilon, detectable_epsilon_pair

# Draws of the first trial: 10,000, or those of ten seconds, but 1,000 at least.
TRIAL = 10_000
_LEAST_TRIAL = 1_000
_TRIAL_SECONDS = 10.0
# Further trials are as large as the audit, up to this number of draws: which event is chosen
# depends on the number of draws. Up to three rounds of eight trials.
_LARGEST = 400_000
_TRIALS_OF_A_ROUND = 8
_ROUNDS = 3
# Audits whose numbers of draws differ by no more than this factor choose the same event.
_SAME_EVENT = 1.2
# A trial that needs more than twice the draws of the next one has chosen an unusual event, as an
# audit does now and then; it is ignored.
_UNUSUAL_EVENT = 2.0
# Seconds for all trials together, and for a trial that is announced.
PATIENCE = 30.0
_WORTH_TELLING = 5.0
# A trial of fewer seconds does not show the duration of the next one, since it starts for longer
# than it draws.
_LEAST_TO_PREDICT = 0.5
# A first trial of fewer seconds may have spent them on imports: it is timed again.
_IMPORT_SECONDS = 2.0
# Added to the seed, so that the audit draws others than the trials that chose their number.
_SEED_OFFSET = 2**32
# Probability that the event of a single trial is rarer than assumed, and that trials which differ
# by chance seem to show a leak.
_DOUBT = 0.01
# The share of draws in the event, in another audit, relative to that of the trial.
_SHARE_IN_NEXT_AUDIT = 0.9
# Events that `dpaudit plan` shows in addition to that of the trial, by their share of draws.
SHARES = (0.5, 0.1, 0.01, 0.001)

Run = Callable[[AuditSpec], AuditResult]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan for one pair.

    share: least share of the draws that are in the event.  words: the event.
    samples: draws of an audit; None where no number is enough.
    certificate: of the trial that needs most draws.
    differs: whether the trials together guessed the input better than chance. An event that chance
        has chosen says nothing about the next audit.
    """

    share: float
    words: str
    samples: int | None
    certificate: Certificate
    differs: bool = True


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The plan for all pairs.

    trials: number of all trials.  last: result of the last one.  draws: of the trials of the plan.
    """

    pairs: tuple[Planned, ...]
    trials: int
    last: AuditResult
    draws: int

    @property
    def differs(self) -> bool:
        """Whether the trials distinguished the inputs of every pair."""
        return all(pair.differs for pair in self.pairs)

    @property
    def samples(self) -> int | None:
        """Draws of an audit, enough for every pair; None where no number is, or is known."""
        return self.enough if self.differs else None

    @property
    def enough(self) -> int | None:
        """Draws of an audit, enough for every pair, even if chance may have chosen the events."""
        numbers = [pair.samples for pair in self.pairs]
        return None if None in numbers else max(n for n in numbers if n is not None)


def plan(
    spec: AuditSpec,
    factor: float,
    power: float,
    run: Run,
    draws: int | None = None,
    *,
    within: Run | None = None,
    say: Say = lambda text: None,
) -> AuditPlan:
    """Return the draws that an audit needs to catch a leak.

    All trials together take about half a minute, in addition to a first one of given size.

    Parameters
    ----------
    spec : AuditSpec
        The audit.
    factor : float
        Size of the leak, as a multiple of the claimed ε; above 1.
    power : float
        Probability to catch it, in (0, 1).
    run : callable
        Runs an audit.
    draws : int, optional
        Draws of the first trial. Default: those of some seconds.
    within : callable, optional
        Runs the shortest audit; raises UsageError if it takes longer than PATIENCE. Default: run.
    say : callable
        Called with an announcement of trials that take some seconds.

    Returns
    -------
    AuditPlan
        The plan, with `samples` of None where no number of draws is enough.

    Raises
    ------
    UsageError
        If such an audit cannot be planned.
    MechanismError
        If the mechanism cannot be audited.
    """
    _check(spec)
    trials = _Trials(spec, run, say)
    if draws is None:
        first, draws = trials.first(within or run)
    else:
        first = run(_trial_of(spec, draws, 0))
    planned = _planned([first], factor, power)
    trials.rate = speed(first)
    for _ in range(_ROUNDS):
        samples = planned.enough
        if samples is None:
            break
        size = max(draws, min(samples, _LARGEST))
        results = trials.round(size)
        if len(results) < _TRIALS_OF_A_ROUND:
            break
        planned = _planned(results, factor, power)
        if (planned.enough or math.inf) <= _SAME_EVENT * samples or size == _LARGEST:
            break
    return replace(planned, trials=trials.made)


class _Trials:
    """Runs trials while the time lasts.

    made: number of trials that count.  rate: draws per second.
    """

    def __init__(self, spec: AuditSpec, run: Run, say: Say) -> None:
        self._spec, self._run, self._say = spec, run, say
        self._left = PATIENCE
        self.made, self.rate = 1, 0.0

    def first(self, shortest: Run) -> tuple[AuditResult, int]:
        """Return a trial of some seconds, and its draws. shortest: runs an audit of the fewest."""
        fewest = _trial_of(self._spec, MINIMUM_SAMPLES, 0)
        result = self._timed(fewest, shortest)
        if result.seconds < _IMPORT_SECONDS:
            again = self._timed(fewest)
            result = min(result, again, key=lambda trial: trial.seconds)
        rate = speed(result)
        fitting = min(TRIAL, self._left * rate, max(_TRIAL_SECONDS * rate, _LEAST_TRIAL))
        draws = max(MINIMUM_SAMPLES, int(fitting))
        if draws > MINIMUM_SAMPLES:
            if result.seconds >= _LEAST_TO_PREDICT:
                self._announce("a trial", draws / rate, draws)
            result = self._timed(_trial_of(self._spec, draws, 0))
        return result, draws

    def round(self, size: int) -> list[AuditResult]:
        """Return trials of a size; fewer than those of a round if the time is too short."""
        if size > self._left * self.rate:
            return []
        # A longer trial is faster: a short one spends more time on learning.
        self._announce("a trial", size / self.rate, size, about="at most")
        results = [self._timed(_trial_of(self._spec, size, self.made))]
        self.rate = max(self.rate, speed(results[0]))
        others = _TRIALS_OF_A_ROUND - 1
        if others * size > self._left * self.rate:
            return results
        self._announce(f"{others} trials", others * size / self.rate, size)
        for number in range(1, _TRIALS_OF_A_ROUND):
            results.append(self._timed(_trial_of(self._spec, size, self.made + number)))
        self.made += _TRIALS_OF_A_ROUND
        self.rate = max(self.rate, speed(results[-1]))
        return results

    def _timed(self, trial: AuditSpec, run: Run | None = None) -> AuditResult:
        result = (run or self._run)(trial)
        self._left -= result.seconds
        return result

    def _announce(self, trials: str, seconds: float, draws: int, about: str = "about") -> None:
        if seconds >= _WORTH_TELLING:
            self._say(f"{trials} of {draws:,} draws: {about} {seconds:.0f} s")


def speed(result: AuditResult) -> float:
    """Return the draws per second of an audit, learning included."""
    return result.draws / max(result.seconds, 1e-9)


def _check(spec: AuditSpec) -> None:
    """Raise UsageError for an audit that cannot be planned."""
    if spec.exact:
        raise UsageError(
            "an exact audit makes no draws, so there are none to plan", code="plan-impossible"
        )
    if all(point.epsilon == 0 for point in spec.tested.points()):
        raise UsageError(
            "a leak is planned for as a multiple of the claimed ε, which is 0 here",
            code="plan-impossible",
        )
    hopeless = foreseen(replace(spec, samples=MAXIMUM_SAMPLES))
    if hopeless is not None:
        raise UsageError(hopeless, code="plan-impossible")


def _trial_of(spec: AuditSpec, draws: int, number: int) -> AuditSpec:
    """Return an audit to plan with, whose seed differs from that of the audit itself."""
    return replace(
        spec,
        samples=draws,
        time=None,
        seed=spec.seed + _SEED_OFFSET + number,
        full=True,
        workers=1,
        executor=None,
        allow_underpowered=True,
        require_power=None,
        require_rare=None,
        expect=None,
        no_trace=True,  # a trial shows the size of a leak, not its place
    )


def _planned(trials: Sequence[AuditResult], factor: float, power: float) -> AuditPlan:
    """Return the draws that are enough for all trials, but for one with an unusual event."""
    pairs = []
    for certificates in zip(*(trial.certificates for trial in trials), strict=True):
        every = [_of_trial(one, factor, power, is_single=len(trials) == 1) for one in certificates]
        *others, most = sorted(every, key=_draws)
        if others and _draws(most) > _UNUSUAL_EVENT * _draws(others[-1]):
            most = others[-1]
        pairs.append(replace(most, differs=_differ(certificates)))
    return AuditPlan(tuple(pairs), len(trials), trials[-1], sum(one.draws for one in trials))


def _draws(planned: Planned) -> float:
    return math.inf if planned.samples is None else planned.samples


def _differ(certificates: Sequence[Certificate]) -> bool:
    """Return whether the trials together guessed the input better than chance."""
    tests = list(map(most_powerful, certificates))
    right, wrong = sum(test.correct for test in tests), sum(test.wrong for test in tests)
    return bool(upper_tail(right, right + wrong, 0.5) <= _DOUBT)


def _of_trial(certificate: Certificate, factor: float, power: float, *, is_single: bool) -> Planned:
    test = most_powerful(certificate)
    if test.method == "probabilistic":
        raise UsageError(
            "single outputs, by which the probabilistic definition is tested, are not planned for; "
            "claim --definition approximate, which it implies",
            code="plan-impossible",
        )
    inside = test.correct + test.wrong
    # In this order: another one changes the last bit, and with it the draws of a plan by one.
    share = _SHARE_IN_NEXT_AUDIT * inside / test.draws
    if is_single and inside:
        share = _SHARE_IN_NEXT_AUDIT * clopper_pearson_lower(inside, test.draws, _DOUBT)
    words = " or ".join(event.words for event in test.events)
    return Planned(share, words, draws_needed(certificate, share, factor, power), certificate)


def draws_needed(certificate: Certificate, share: float, factor: float, power: float) -> int | None:
    """Return the fewest draws of an audit whose event has this share of them; None where no number
    is enough."""
    epsilon = certificate.point.epsilon
    if epsilon <= 0 or share <= 0:
        return None
    return fewest_draws(
        lambda samples: _detectable(certificate, samples, share, power) <= factor * epsilon
    )


def certifying(samples: int, limits: Limits) -> int:
    """Return the least number of draws that are left for the exact test."""
    schedule = Plan(samples, None, limits)
    counts = schedule.freeze_at > schedule.buffer_until
    # Learning by counting may take up to half of the budget.
    return samples // 2 if counts else samples - schedule.freeze_at


def _detectable(certificate: Certificate, samples: int, share: float, power: float) -> float:
    """Return the least ε that the exact test of such an audit catches."""
    test, point = most_powerful(certificate), certificate.point
    draws = certifying(samples, limits_of(certificate))
    if test.method == "clopper-pearson":
        return _detectable_by_pair(certificate, draws, share, power)
    side = 1.0 if test.two_guesses else 0.5
    return detectable_epsilon(
        math.floor(share * draws),
        point.epsilon,
        _alpha(test),
        draws=draws,
        spared=side * point.delta,
        power=power,
    )


def _alpha(test: FixedTest) -> float:
    """Return the least error probability of a rule of this kind in any audit, which may find rules
    that the trial did not find."""
    shares = {"main": 1 - RARE_SHARE - OTHER_SHARE, "rare": RARE_SHARE, "other": OTHER_SHARE}
    return test.alpha / test.share * min(test.share, shares[test.kind])


def _detectable_by_pair(certificate: Certificate, draws: int, share: float, power: float) -> float:
    """Return the least ε that a pair of Clopper-Pearson bounds catches, with the best event."""
    test, point = most_powerful(certificate), certificate.point
    seen, half = (test.correct + test.wrong) / test.draws, draws // 2
    alpha = _alpha(test) / max(1, len(test.events))
    least = math.inf
    for event in test.events:
        other, of = event.count_d2, event.draws_d2
        if event.guess == "d2":
            other, of = event.count_d1, event.draws_d1
        behind = math.floor(half * (other / max(of, 1)) * share / seen)
        epsilon = detectable_epsilon_pair(
            behind, half, behind, half, point.epsilon, point.delta, alpha, power=power
        )
        least = min(least, epsilon)
    return least
