"""How many draws an audit needs, so that it would catch a leak of a given size: from a short trial.

The trial learns an event and how probable it is. The leak that is planned for is the least that is
asked for, in this event: given that a draw is in it, the odds of its input are e^(factor ε). How
many draws its exact test then needs is worked out as `--require-power` judges it afterwards
(underpowered.py), so that the two agree.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dpaudit.auditing.options import MAXIMUM_SAMPLES, MINIMUM_SAMPLES
from dpaudit.auditing.schedule import Limits, Plan
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.underpowered import foreseen, most_powerful, rounded
from dpaudit.certificates.certificate import Certificate, FixedTest
from dpaudit.certificates.result import AuditResult
from dpaudit.errors import UsageError
from dpaudit.levels.portfolio import OTHER_SHARE, RARE_SHARE
from dpaudit.stats.binomial import clopper_pearson_lower, upper_tail
from dpaudit.stats.power import detectable_epsilon, detectable_epsilon_pair

# Draws of the first trial, and the fewest, where the usual ones take more than so many seconds.
TRIAL, _LEAST, _SHORT = 10_000, 1_000, 10.0
# Where nothing was seen that tells the inputs apart, and beside what was: events of other
# probabilities.
SHARES = (0.5, 0.1, 0.01, 0.001)
# Added to the seed, so that the audit has other draws than the trials which chose their number.
_OTHER_SEEDS = 2**32
# The event of a single trial is at least as probable, but for this probability; and that of another
# audit may have only this part of its share.
_DOUBT, _SLACK = 0.01, 0.9
# Further trials, each as large as the audit, within limits of draws and of seconds: how many
# at a time, and how often. Events of audits that choose alike have nearly the same share.
_SEVERAL, _ROUNDS = 8, 3
# Audits choose alike whose numbers of draws differ by no more than this factor.
_ALIKE = 1.2
# Of several trials the one that needs most may need so many times what the next one does: one that
# needs more has chosen an event of its own, as an audit does now and then.
_OWN = 2.0
_LARGEST = 400_000
# Seconds that all trials together may take, those that are told of beforehand, and those of a short
# trial that tell of the next one: in fewer of them, to begin takes longer than to draw.
PATIENCE, _WORTH_TELLING, _TELLING = 30.0, 5.0, 0.5
# In fewer seconds, the first trial may have spent most of them on what is loaded only once: it is
# timed again.
_LOADING = 2.0


@dataclass(frozen=True, slots=True)
class Planned:
    """What was found for one pair.

    share: of the draws, those in the event, at least, after what may be lost; words: the event of
    the trial that needs most.  samples: draws of an audit; None where no number of them is enough.
    certificate: of that trial.  differs: whether the trials together guessed the input better than
    chance does: an event that chance has chosen says nothing of the next one.
    """

    share: float
    words: str
    samples: int | None
    certificate: Certificate
    differs: bool = True


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What was found for all pairs. trials: how many there were.  last: the last one's result.
    draws: of the trials that showed it."""

    pairs: tuple[Planned, ...]
    trials: int
    last: AuditResult
    draws: int

    @property
    def differs(self) -> bool:
        """Whether the trials told the inputs of every pair apart."""
        return all(one.differs for one in self.pairs)

    @property
    def samples(self) -> int | None:
        """Draws of an audit, enough for every pair; None where there is no such number, or where no
        number would be honest."""
        return self.enough if self.differs else None

    @property
    def enough(self) -> int | None:
        """The same for the events of the trials, be they those of chance."""
        numbers = [one.samples for one in self.pairs]
        return None if None in numbers else max(one for one in numbers if one is not None)


Run = Callable[[AuditSpec], AuditResult]
Say = Callable[[str], None]


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
    """Return how many draws an audit needs to catch a leak of `factor` > 1 times the claimed ε with
    probability `power`.

    All trials together take about half a minute, beside a first one that somebody asked for.

    run: carries out an audit; within: one of the fewest draws, and raises UsageError when it takes
    longer than PATIENCE.  draws: of the first trial; None for as many as take some seconds.  say:
    tells of what takes longer.  Raises UsageError for one that cannot be planned, and
    MechanismError where the mechanism cannot be audited.
    """
    _check(spec)
    left = PATIENCE
    if draws is None:
        shortest = _trial_of(spec, MINIMUM_SAMPLES, 0)
        first = (within or run)(shortest)
        left -= first.seconds
        if first.seconds < _LOADING:
            again = run(shortest)
            left -= again.seconds
            first = min(first, again, key=lambda one: one.seconds)
        draws = _affordable(speed(first), left)
        if draws > MINIMUM_SAMPLES:
            if first.seconds >= _TELLING:
                _announce(say, "a trial", draws, speed(first))
            first = run(_trial_of(spec, draws, 0))
            left -= first.seconds
    else:
        first = run(_trial_of(spec, draws, 0))
    found = _planned([first], factor, power)
    rate, number = speed(first), 1
    for _ in range(_ROUNDS):
        samples = found.enough
        if samples is None:
            break
        size = max(draws, min(samples, _LARGEST))
        if size > left * rate:
            break
        # Of a short trial, learning took more than drawing did; a longer one is faster.
        _announce(say, "a trial", size, rate, about="at most")
        # Trials as large as the audit: which event is chosen depends on the number of draws.
        several = [run(_trial_of(spec, size, number))]
        left -= several[0].seconds
        rate = max(rate, speed(several[0]))
        if (_SEVERAL - 1) * size > left * rate:
            break
        _announce(say, f"{_SEVERAL - 1} trials", size, rate, _SEVERAL - 1)
        several += [run(_trial_of(spec, size, number + one)) for one in range(1, _SEVERAL)]
        number += _SEVERAL
        left -= sum(one.seconds for one in several[1:])
        rate = max(rate, speed(several[-1]))
        found = _planned(several, factor, power)
        if (found.enough or math.inf) <= _ALIKE * samples or size == _LARGEST:
            break
    return replace(found, trials=number)


def speed(result: AuditResult) -> float:
    """Return draws a second of an audit as a whole."""
    return result.draws / max(result.seconds, 1e-9)


def _affordable(rate: float, left: float) -> int:
    """Return draws of a first trial: fewer than usual where these would take long, and no more than
    there is time for."""
    fitting = min(TRIAL, left * rate, max(_SHORT * rate, _LEAST))
    return max(MINIMUM_SAMPLES, int(fitting))


def _announce(
    say: Say, what: str, draws: int, rate: float, times: int = 1, *, about: str = "about"
) -> None:
    """Tell of what takes some seconds."""
    seconds = times * draws / rate
    if seconds >= _WORTH_TELLING:
        say(f"{what} of {draws:,} draws: {about} {seconds:.0f} s")


def _check(spec: AuditSpec) -> None:
    """Raise UsageError for an audit that cannot be planned."""
    if spec.exact:
        raise UsageError("an exact audit makes no draws, so there are none to plan")
    if all(point.epsilon == 0 for point in spec.tested.points()):
        raise UsageError("a leak is planned for as a multiple of the claimed ε, which is 0 here")
    hopeless = foreseen(replace(spec, samples=MAXIMUM_SAMPLES))
    if hopeless is not None:
        raise UsageError(hopeless)


def _trial_of(spec: AuditSpec, draws: int, number: int) -> AuditSpec:
    """Return an audit to learn from, of other draws than those of the audit itself."""
    return replace(
        spec,
        samples=draws,
        time=None,
        seed=spec.seed + _OTHER_SEEDS + number,
        full=True,
        workers=1,
        executor=None,
        allow_underpowered=True,
        require_power=None,
        require_rare=None,
        expect=None,
        no_trace=True,  # a trial shows how large a leak is, not where it comes from
    )


def _planned(trials: Sequence[AuditResult], factor: float, power: float) -> AuditPlan:
    """Return what is enough for all trials, but for one that has chosen an event of its own."""
    by_pair = list(zip(*(one.certificates for one in trials), strict=True))
    is_several = len(trials) > 1
    pairs = [
        sorted((_of_one(one, factor, power, is_several) for one in certificates), key=_draws)
        for certificates in by_pair
    ]
    chosen = tuple(
        replace(_needs_most(found), differs=_differ(certificates))
        for found, certificates in zip(pairs, by_pair, strict=True)
    )
    return AuditPlan(chosen, len(trials), trials[-1], sum(one.draws for one in trials))


def _needs_most(found: Sequence[Planned]) -> Planned:
    """Return which of the trials of a pair, those that need few draws first, tells how many."""
    *others, most = found
    return others[-1] if others and _draws(most) > _OWN * _draws(others[-1]) else most


def _differ(certificates: Sequence[Certificate]) -> bool:
    """Return whether more guesses of the trials together were right than chance would have."""
    tests = list(map(most_powerful, certificates))
    right, wrong = sum(one.correct for one in tests), sum(one.wrong for one in tests)
    return bool(upper_tail(right, right + wrong, 0.5) <= _DOUBT)


def _draws(one: Planned) -> float:
    return math.inf if one.samples is None else one.samples


def _of_one(one: Certificate, factor: float, power: float, is_one_of_several: bool) -> Planned:
    test = most_powerful(one)
    if test.method == "probabilistic":
        raise UsageError(
            "single outputs, by which the probabilistic definition is tested, are not planned for; "
            "claim --definition approximate, which it implies"
        )
    inside = test.correct + test.wrong
    share = _SLACK * inside / test.draws if is_one_of_several else _least_share(inside, test.draws)
    words = " or ".join(event.words for event in test.events)
    return Planned(share, words, draws_needed(one, share, factor, power), one)


def draws_needed(one: Certificate, share: float, factor: float, power: float) -> int | None:
    """Return the fewest draws of an audit whose event has such a share of them; None where there is
    no such number."""

    def is_enough(samples: int) -> bool:
        return _detectable(one, samples, share, power) <= factor * one.point.epsilon

    if one.point.epsilon <= 0 or share <= 0:
        return None
    # From below: SciPy before 1.17 has no Clopper-Pearson bounds of 10¹² draws.
    enough = MINIMUM_SAMPLES
    while not is_enough(enough):
        enough *= 2
        if enough >= MAXIMUM_SAMPLES:
            return None
    budgets = range(max(MINIMUM_SAMPLES, enough // 2), enough)
    samples = budgets.start + bisect_left(budgets, True, key=is_enough)
    while not is_enough(rounded(samples)):  # whole numbers of guesses go up and down a little
        samples = math.ceil(1.01 * samples)
    return rounded(samples)


def certifying(samples: int, limits: Limits) -> int:
    """Return the draws that are left for the exact test, at least."""
    schedule = Plan(samples, None, limits)
    counts = schedule.freeze_at > schedule.buffer_until
    # To learn by counting may go on, to half of the budget.
    return samples // 2 if counts else samples - schedule.freeze_at


def _least_share(inside: int, draws: int) -> float:
    """Return a share of draws that the event has at least, but for a small probability, after what
    another audit may lose."""
    return _SLACK * clopper_pearson_lower(inside, draws, _DOUBT) if inside else 0.0


def _detectable(one: Certificate, samples: int, share: float, power: float) -> float:
    """Return the least ε that the exact test of such an audit catches."""
    schedule, test, point = one.schedule, most_powerful(one), one.point
    limits = Limits()
    if schedule is not None:
        limits = Limits(schedule.learned, schedule.block, schedule.confirming)
    draws = certifying(samples, limits)
    if test.method == "clopper-pearson":
        return _by_pair(one, draws, share, power)
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
    """Return the least error probability that a rule of this kind has in any audit: the audit may
    find rules that the trial did not find."""
    shares = {"main": 1 - RARE_SHARE - OTHER_SHARE, "rare": RARE_SHARE, "other": OTHER_SHARE}
    return test.alpha / test.share * min(test.share, shares[test.kind])


def _by_pair(one: Certificate, draws: int, share: float, power: float) -> float:
    """Return the same for the bounds of two inputs: the best of the events, in proportion."""
    test, point = most_powerful(one), one.point
    seen = (test.correct + test.wrong) / test.draws
    least = math.inf
    for event in test.events:
        other, of = (event.count_d2, event.draws_d2)
        if event.guess == "d2":
            other, of = event.count_d1, event.draws_d1
        half = draws // 2
        behind = math.floor(half * (other / max(of, 1)) * share / seen)
        alpha = _alpha(test) / max(1, len(test.events))
        found = detectable_epsilon_pair(
            behind, half, behind, half, point.epsilon, point.delta, alpha, power=power
        )
        least = min(least, found)
    return least
