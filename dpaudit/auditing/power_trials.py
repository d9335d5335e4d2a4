"""Plan the number of draws that an audit needs to detect a leak of a given size (`dpaudit plan`).

`plan` runs short audits, called trials. Each trial learns an event (a set of outputs) and its
probability. The leak to detect is assumed to be in this event: for a draw in the event, the odds of
d1 against d2 are e^(factor · ε), where ε is the claimed value and `factor` is the size of the leak
(option `--excess`, such as 1.2). The number of draws that the exact test needs is computed from the
probability of the event. The option `--require-power` judges a finished audit by the same formulas
(underpowered.py), and so accepts an audit of the planned size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dpaudit.auditing.options import MAX_SAMPLES, MIN_SAMPLES
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.underpowered import (
    ESTIMATE_ALPHA,
    draws_needed,
    foreseen,
    most_powerful,
    share_in_next_audit,
)
from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.evidence import FEW_DRAWS
from dpaudit.certificates.result import AuditResult
from dpaudit.errors import UsageError
from dpaudit.stats.binomial import upper_tail

# Usual number of draws of the first trial (a short audit that measures the event and the speed). If
# time is short, it has `FEW_DRAWS` or `MIN_SAMPLES` draws: no number of draws in between, so
# that the plan does not follow small differences of speed.
TRIAL_DRAWS = 10_000
# Largest number of draws of a trial (short audit) after the first trial. The learned event depends
# on the number of draws, so a trial has the number of draws of the planned audit, up to this limit:
# a larger trial would take too long.
_MAX_TRIAL_DRAWS = 400_000
# Number of trials (short audits) in a round. All trials of a round have the same number of draws.
_TRIALS_PER_ROUND = 8
# Largest number of rounds of trials (short audits) that plan an audit.
_MAX_ROUNDS = 3
# Trials (short audits) that plan the number of draws are made in rounds. The rounds end when a
# round has raised the planned number by at most this factor: audits of similar size learn the same
# event, so a further round would change the number little.
_STABLE_FACTOR = 1.2
# Each trial (short audit) asks for a number of draws. The largest number is ignored if it is more
# than this factor times the second largest: by chance, its trial has learned an unusual event.
_OUTLIER_FACTOR = 2.0
# Time limit, in seconds, for all trials (short audits) together. If the user gave the number of
# draws of the first trial, the time of that trial does not count.
TRIALS_SECONDS = 30.0
# A trial (short audit) is announced to the user if it will take at least this number of seconds.
_ANNOUNCED_SECONDS = 5.0
# If the shortest trial draws for less than this number of seconds, it is run and timed again, since
# modules that dpaudit imports on first use may have taken most of this time.
_IMPORT_SECONDS = 2.0
# Added to the seed for the trials, so that the planned audit makes other draws than the trials. It
# may not count the draws of the trials again, since they have chosen its number of draws.
_SEED_OFFSET = 2**32

# A function that shows a message to the user.
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Timed:
    """The result of an audit, and the time that its draws took.

    drawing: seconds from the first block of draws to the end of the last one. Imports, the start of
        processes and the calls before the first block are not part of it.
    """

    result: AuditResult
    drawing: float

    @property
    def rate(self) -> float:
        """Draws per second, without the time before the first block."""
        return self.result.draws / max(self.drawing, 1e-9)

    @property
    def overhead(self) -> float:
        """Seconds of the audit in which it did not draw."""
        return max(0.0, self.result.seconds - self.drawing)


# A function that runs an audit and times its draws.
Run = Callable[[AuditSpec], Timed]


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan for one pair of inputs.

    share: assumed share of all draws that are in the event (the outputs at which the rule guesses).
    words: description of the event.
    samples: number of draws that an audit needs; None if no number is enough.
    certificate: certificate of the trial (short audit) from which `samples` follows. Of all trials,
        this trial asks for the largest number of draws; a trial with an unusual event is ignored.
    differs: whether the rules of the trials guessed the inputs better than chance, at level 0.01.
        If not, chance has chosen the event, and another audit will learn another event.
    """

    share: float
    words: str
    samples: int | None
    certificate: Certificate
    differs: bool = True


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The plan for all pairs of inputs.

    pairs: the plan for each pair.
    trials: number of trials (short audits) that were made: a first trial, then 8 trials in each
        round. A round that was not completed does not count.
    last: result of the last trial.
    draws: number of draws of the trials on which the plan is based.
    rate: draws per second in the fastest trial.
    overhead: smallest number of seconds in which a trial did not draw.
    is_cut: whether trials were left out because time was short. If not, the plan depends on the
        seed and not on the speed of the machine.
    """

    pairs: tuple[Planned, ...]
    trials: int
    last: AuditResult
    draws: int
    rate: float = 0.0
    overhead: float = 0.0
    is_cut: bool = False

    @property
    def differs(self) -> bool:
        """Whether, for every pair of inputs, the trials guessed d1 or d2 better than chance."""
        return all(pair.differs for pair in self.pairs)

    @property
    def samples(self) -> int | None:
        """Number of draws that is enough for every pair. None if no number is enough, and None if
        the trials could not distinguish d1 from d2, so that the number is unknown.
        """
        return self.enough if self.differs else None

    @property
    def enough(self) -> int | None:
        """Number of draws that is enough for every pair; None if there is no such number.

        Unlike `samples`, this number is also given if the trials guessed d1 and d2 no better than
        chance. Their events are then chance findings, and so is the number.
        """
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
    """Return the number of draws that an audit needs to detect a leak of a given size.

    The number is computed from trials (short audits). All trials together take about half a minute.
    If `draws` is given, the time of the first trial is added.

    Parameters
    ----------
    spec : AuditSpec
        The audit to plan.
    factor : float
        Size of the leak, as a multiple of the claimed ε; above 1.
    power : float
        Probability with which the audit detects the leak, in (0, 1).
    run : callable
        Called with an AuditSpec; runs the audit and returns a Timed.
    draws : int, optional
        Number of draws of the first trial. Default: 10,000, or 1,000 or 100 if time is short.
    within : callable, optional
        Used in place of `run` for the shortest trial, which has 100 draws and measures the speed of
        the mechanism. Raises UsageError after `TRIALS_SECONDS` (30) seconds. Default: `run`.
    say : callable
        Called with a text that announces trials of five seconds or more.

    Returns
    -------
    AuditPlan
        The plan, with `samples` of None where no number of draws is enough.

    Raises
    ------
    UsageError
        If the number of draws cannot be planned, such as for an exact audit.
    MechanismError
        If the mechanism cannot be audited.
    """
    why = _why_not(spec)
    if why is not None:
        raise UsageError(why, code="plan-impossible")
    trials = _Trials(spec, run, say)
    first = trials.first(within or run) if draws is None else trials.given(draws)
    draws = draws or first.draws // len(spec.pairs)
    planned = _planned([first], factor, power)
    for _ in range(_MAX_ROUNDS):
        samples = planned.enough
        if samples is None:
            break
        size = max(draws, min(samples, _MAX_TRIAL_DRAWS))
        results = trials.round(size)
        if len(results) < _TRIALS_PER_ROUND:
            break
        planned = _planned(results, factor, power)
        if (planned.enough or math.inf) <= _STABLE_FACTOR * samples or size == _MAX_TRIAL_DRAWS:
            break
    return replace(
        planned,
        trials=trials.made,
        rate=trials.rate,
        overhead=trials.overhead,
        is_cut=trials.is_cut,
    )


class _Trials:
    """Runs trials (short audits) until `TRIALS_SECONDS` seconds are used.

    The clock decides only whether a trial is left out, never its number of draws.

    made: number of trials: 1, plus 8 for each complete round.
    rate: draws per second in the fastest trial so far.
    overhead: smallest number of seconds so far in which a trial did not draw.
    is_cut: whether a trial was left out because time was short.
    """

    def __init__(self, spec: AuditSpec, run: Run, say: Say) -> None:
        self._spec, self._run, self._say = spec, run, say
        self._left = TRIALS_SECONDS
        self.made, self.rate, self.overhead, self.is_cut = 1, 0.0, math.inf, False

    def given(self, draws: int) -> AuditResult:
        """Run a trial (short audit) of `draws` draws, whose time does not count, and return its
        result."""
        result = self._timed(_trial_of(self._spec, draws, 0))
        self._left = TRIALS_SECONDS
        return result

    def first(self, shortest: Run) -> AuditResult:
        """Run trials (short audits) of 100, 1,000 and 10,000 draws while they fit into the time.
        Return the result of the last one.

        shortest: runs the trial of `MIN_SAMPLES` draws, which measures the speed.
        """
        fewest = _trial_of(self._spec, MIN_SAMPLES, 0)
        result = self._timed(fewest, shortest)
        if _IMPORT_SECONDS * self.rate > MIN_SAMPLES:
            result = self._timed(fewest)
        for size in (FEW_DRAWS, TRIAL_DRAWS):
            if not self._fits(size):
                break
            self._announce("a trial", size, about="at most")
            result = self._timed(_trial_of(self._spec, size, 0))
        return result

    def round(self, size: int) -> list[AuditResult]:
        """Run 8 trials (short audits) of `size` draws and return their results. If time is short,
        run only 1 trial, or none.
        """
        if not self._fits(size):
            return []
        # The duration is announced as "at most", since it is computed from the draws per second of
        # a smaller trial. A larger trial makes more draws per second, since learning takes a
        # smaller share of its time.
        self._announce("a trial", size, about="at most")
        results = [self._timed(_trial_of(self._spec, size, self.made))]
        others = _TRIALS_PER_ROUND - 1
        if not self._fits(size, others):
            return results
        self._announce(f"{others} trials", size, others)
        for number in range(1, _TRIALS_PER_ROUND):
            results.append(self._timed(_trial_of(self._spec, size, self.made + number)))
        self.made += _TRIALS_PER_ROUND
        return results

    def _timed(self, trial: AuditSpec, run: Run | None = None) -> AuditResult:
        timed = (run or self._run)(trial)
        self._left -= timed.result.seconds
        self.rate = max(self.rate, timed.rate)
        self.overhead = min(self.overhead, timed.overhead)
        return timed.result

    def _takes(self, size: int, trials: int) -> float:
        draws = size * len(self._spec.pairs)
        return trials * (self.overhead + draws / self.rate)

    def _fits(self, size: int, trials: int = 1) -> bool:
        """Return whether trials of `size` draws fit into the time that is left. If not, record
        this."""
        fits = self._takes(size, trials) <= self._left
        self.is_cut = self.is_cut or not fits
        return fits

    def _announce(self, words: str, size: int, trials: int = 1, about: str = "about") -> None:
        seconds = self._takes(size, trials)
        if seconds >= _ANNOUNCED_SECONDS:
            self._say(f"{words} of {size:,} draws: {about} {seconds:.0f} s")


def _why_not(spec: AuditSpec) -> str | None:
    """Return the reason why an audit cannot be planned, or None."""
    if spec.statistics.exact:
        return "an exact audit makes no draws, so there are none to plan"
    if all(point.epsilon == 0 for point in spec.tested.points()):
        return "a leak is planned for as a multiple of the claimed ε, which is 0 here"
    return foreseen(replace(spec, sampling=replace(spec.sampling, samples=MAX_SAMPLES)))


def _trial_of(spec: AuditSpec, draws: int, number: int) -> AuditSpec:
    """Return the specification of a trial (short audit) of `draws` draws. Options that a trial does
    not need, such as the required power, are reset.

    spec: the audit to plan.
    draws: number of draws of the trial.
    number: index of the trial, which decides its seed.
    """
    sampling = replace(
        spec.sampling,
        samples=draws,
        time=None,
        seed=spec.sampling.seed + _SEED_OFFSET + number,
        full=True,
        workers=1,
        executor=None,
    )
    requirements = replace(
        spec.requirements,
        allow_underpowered=True,
        require_power=None,
        require_rare=None,
        expect=None,
    )
    # A trial shows the size of a leak, not its place.
    return replace(spec, sampling=sampling, requirements=requirements, no_trace=True)


def _planned(trials: Sequence[AuditResult], factor: float, power: float) -> AuditPlan:
    """Return a plan from the results of trials (short audits). Each trial asks for a number of
    draws, and the plan has the largest of these numbers. The largest is ignored if it is more than
    twice the next one: that trial has learned an unusual event.

    trials: results of one round, or of the first trial alone.
    factor: size of the leak to detect, as a multiple of the claimed ε.
    power: probability to detect it.
    """
    pairs = []
    for certificates in zip(*(trial.certificates for trial in trials), strict=True):
        every = [_of_trial(one, factor, power, is_single=len(trials) == 1) for one in certificates]
        *others, most = sorted(every, key=_draws)
        if others and _draws(most) > _OUTLIER_FACTOR * _draws(others[-1]):
            most = others[-1]
        tests = list(map(most_powerful, certificates))
        right, wrong = sum(test.correct for test in tests), sum(test.wrong for test in tests)
        differs = bool(upper_tail(right, right + wrong, 0.5) <= ESTIMATE_ALPHA)
        pairs.append(replace(most, differs=differs))
    return AuditPlan(tuple(pairs), len(trials), trials[-1], sum(one.draws for one in trials))


def _draws(planned: Planned) -> float:
    return math.inf if planned.samples is None else planned.samples


def _of_trial(certificate: Certificate, factor: float, power: float, *, is_single: bool) -> Planned:
    test = most_powerful(certificate)
    if test.method == "probabilistic":
        raise UsageError(
            "single outputs, by which the probabilistic definition is tested, are not planned for; "
            "claim --definition approximate, which it implies",
            code="plan-impossible",
        )
    share = share_in_next_audit(test, is_single=is_single)
    words = _joined([event.words for event in test.events])
    return Planned(share, words, draws_needed(certificate, share, factor, power), certificate)


def _joined(events: Sequence[str]) -> str:
    """Return the descriptions of events, joined by "or". If all explain the same score, as in
    `score < 1, where the score is …`, the explanation is written once, at the end."""
    parts = [words.partition(", where the score ") for words in events]
    tails = {tail for _, _, tail in parts}
    if len(parts) < 2 or len(tails) > 1 or "" in tails:
        return " or ".join(events)
    return f"{' or '.join(head for head, _, _ in parts)}, where the score {tails.pop()}"
