"""`dpaudit plan`: compute how many draws, and how much time, an audit needs to catch a leak of a
given size."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from dpaudit.adapters.loading import load_mechanism
from dpaudit.auditing.options import MIN_SAMPLES, OPTIONS
from dpaudit.auditing.power_trials import (
    TRIAL_DRAWS,
    TRIALS_SECONDS,
    AuditPlan,
    Planned,
    Timed,
    plan,
)
from dpaudit.auditing.schedule import FIRST_CALLS, PROBE_CALLS
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.underpowered import draws_for_rare, draws_needed, most_powerful
from dpaudit.certificates.result import AuditResult, Progress, Verdict
from dpaudit.claims import ProfilePoint
from dpaudit.cli import exit_codes
from dpaudit.cli.batch import auditing, run_one
from dpaudit.cli.completing import targets as complete_targets
from dpaudit.cli.flags import (
    check_complete,
    check_target,
    given_settings,
    some_flags,
    warn_of_inputs,
    whole_number,
)
from dpaudit.cli.messages import folded
from dpaudit.cli.options import NUMBER, AuditCommand, command_line, option, repeating
from dpaudit.cli.process.ending import Requests, kept_from_leaving
from dpaudit.cli.process.streams import kept, set_apart
from dpaudit.config.building import build_spec
from dpaudit.config.project import here
from dpaudit.errors import MechanismError, UsageError
from dpaudit.reports.layout import wrap
from dpaudit.reports.numbers import GLUE, duration, unglued
from dpaudit.sampling.seeding import preserved
from dpaudit.stats.power import POWER
from dpaudit.targets.target import runs_in_another_process
from dpaudit.wording import counted

# Options of `dpaudit run` that `dpaudit plan` does not have: the plan sets them itself, or they
# have no effect on it.
_LEFT_OUT = (
    *("samples", "time", "require_power", "require_rare", "allow_underpowered", "expect"),
    *("exact", "full"),
)
_FLAGS = tuple(
    one.name
    for one in OPTIONS.values()
    if one.flag and one.of not in ("run", "file") and one.name not in _LEFT_OUT
)
# Largest allowed value of --excess (leak divided by claimed ε). A few draws show any larger leak,
# so no plan is needed.
_MAX_EXCESS = 100
# Probabilities of rarer events. For each one below the probability of the trial's event, the plan
# shows how many draws an event of this probability needs.
_RARER = (0.5, 0.1, 0.01, 0.001)
# Values of --excess (leak divided by claimed ε) that are tried, in order, if no audit can catch the
# leak of the given size. A message suggests the first value that an audit can catch.
_LARGER = (1.5, 2, 3, 5, 10)
# Largest number of draws of --trial, about an hour for a fast mechanism.
_MAX_TRIAL = 10**10
# Number of calls of the mechanism in the shortest trial: its draws, and the calls made before them
# to examine the mechanism.
_CALLS = MIN_SAMPLES + FIRST_CALLS + PROBE_CALLS
# Seconds of drawing, for each pair, in which the speed is measured.
_TIMING_SECONDS = 1.0
# Draws per second. If the last trial was slower than this, no further draws are made to measure the
# speed, and the speed of the trial is used.
_SLOW_RATE = 1_000
# Note if time was short. Only then does the plan depend on the speed of the machine.
_CUT = (
    f"note: {TRIALS_SECONDS:.0f} s were too short for all trials, so another run with this seed "
    "may plan another number of draws; a number of draws in your file stays the same"
)


@click.command(
    cls=AuditCommand,
    epilog="""\b
Example:
  dpaudit plan mine.py:count --d1 '[1, 2]' --d2 '[1]' --epsilon 1 --excess 1.1""",
)
@click.argument("target", required=False, metavar="TARGET", shell_complete=complete_targets)
@some_flags(*_FLAGS)
@option(
    "--excess",
    type=NUMBER,
    default=1.2,
    metavar="FACTOR",
    section="Usual options",
    help="Leak to catch, as a multiple of ε. Default: 1.2.",
)
@option(
    "--rare",
    type=NUMBER,
    metavar="PROBABILITY",
    section="Usual options",
    help="Also catch an output of this probability. Only one input gives it. Example: 1e-4.",
)
@option(
    "--power",
    type=NUMBER,
    default=POWER,
    section="Usual options",
    help=f"Probability of catching the leak. Default: {POWER:g}.",
)
@option(
    "--trial",
    callback=whole_number,
    metavar="NUMBER",
    help="Draws of the trial audit. It shows how probable the event is. "
    f"Default: {TRIAL_DRAWS:,}, fewer if a draw is slow.",
)
@some_flags(quiet="Print only the number of draws.")
@some_flags("debug")
@click.pass_context
def plan_(
    ctx: click.Context,
    /,
    target: str | None,
    excess: float,
    rare: float | None,
    power: float,
    trial: int | None,
    quiet: bool,
    **flags: Any,
) -> int:
    """Compute how many draws, and how much time, an audit of TARGET needs.

    The audit should catch a leak of FACTOR times the claimed ε and, with --rare, a rare output that
    only one input gives. Short trial audits learn events that show a leak, and measure how probable
    they are.
    """
    stdout = ctx.with_resource(set_apart())
    settings = given_settings(ctx, flags)
    _check(excess, rare, power, trial)
    spec = _spec(target, settings)
    if rare is not None:
        _check_rare(spec, rare)
    warn_of_inputs(spec.pairs, spec.group)
    with auditing() as requests:
        say = (lambda text: None) if quiet else partial(click.echo, err=True)
        run = partial(_result, requests, quiet)
        within = partial(_result, requests, quiet, seconds=TRIALS_SECONDS)
        if trial is None:
            _check_speed(spec)
        found = plan(spec, excess, power, run, trial, within=within, say=say)
        rate = 0.0 if quiet else _rate(spec, found, requests)
    if found.is_cut:
        click.echo(folded(_CUT), err=True)
    shown = _PlanText(found, spec.tested.points(), rate, excess, rare, power)
    # If the user gave --rare and not --excess, the command succeeds even if no number of draws
    # catches a leak of the default --excess.
    is_asked = rare is None or ctx.get_parameter_source("excess") is not ParameterSource.DEFAULT
    is_planned = (found.samples is not None or not is_asked) and shown.samples is not None
    if quiet:
        if not is_planned:
            why = _hopeless(found) if found.samples is None and is_asked else _hopeless_rare(rare)
            raise UsageError(f"{why}; run it without -q for details", code="plan-impossible")
        click.echo(shown.samples, file=stdout)
        return exit_codes.NOTHING_FOUND
    if found.samples is None:
        head = f"No plan: {_hopeless(found)}."
        lines = [*wrap(head), "", *shown.pairs(), *wrap(_remedy(found, spec, excess, power, rate))]
        lines += shown.only_rare(_command(ctx, target, spec))
    else:
        lines = shown.lines(_command(ctx, target, spec))
    click.echo(unglued("\n".join(lines)), file=stdout)
    return exit_codes.NOTHING_FOUND if is_planned else exit_codes.UNDERPOWERED


def _check_rare(spec: AuditSpec, rare: float) -> None:
    """Raise UsageError if an audit with these settings could never catch an output of probability
    `rare` that only one input gives."""
    try:
        requirements = replace(spec.requirements, require_rare=rare, allow_underpowered=False)
        replace(spec, requirements=requirements)
    except UsageError as error:
        parts = [str(one).replace("require_rare", "--rare") for one in error.parts]
        raise UsageError("".join(parts), code=error.code) from None


def _check(excess: float, rare: float | None, power: float, trial: int | None) -> None:
    if not 1 < excess < float("inf"):
        raise UsageError(f"--excess={excess:g} must be above 1, such as 1.1", code="option-invalid")
    if excess > _MAX_EXCESS:
        raise UsageError(
            f"--excess={excess:g} is too large; give at most {_MAX_EXCESS}, such as 1.1",
            code="option-invalid",
        )
    if rare is not None and not 0 < rare < 1:
        raise UsageError(
            f"--rare={rare:g} must be a probability between 0 and 1, such as 1e-4",
            code="option-invalid",
        )
    if not 0 < power < 1:
        raise UsageError(f"--power={power:g} must lie in (0, 1), e.g. 0.9", code="option-invalid")
    if trial is not None and trial < MIN_SAMPLES:
        raise UsageError(
            f"--trial={trial} is too few; give at least {MIN_SAMPLES}", code="option-invalid"
        )
    if trial is not None and trial > _MAX_TRIAL:
        raise UsageError(
            f"--trial={trial:,} is too large; give at most {_MAX_TRIAL:,}",
            code="option-invalid",
        )


def _spec(target: str | None, settings: dict[str, Any]) -> AuditSpec:
    """Return the audit for which the plan is made."""
    if target is None and "command" not in settings:
        raise UsageError(
            "the mechanism is missing; a plan looks like dpaudit plan mine.py:mechanism "
            "--d1 '[1, 2]' --d2 '[1]' --epsilon 1",
            code="option-missing",
        )
    check_target(target, "; a plan is for one mechanism, such as mine.py:function")
    example = f"dpaudit plan {target or '--command …'} --d1 '[1, 2]' --d2 '[1]' --epsilon 1"
    check_complete(settings, ("d1", "d2"), "a plan", example)
    named = {} if target is None else {"mechanism": target}
    # Only these settings of the project (pyproject.toml) apply to a plan. The plan chooses the
    # number of draws itself, and the size of the leak to detect comes from its own options.
    given = here().beneath(settings, ("confidence", "seed", "workers"))
    return build_spec({**named, **given})


def _check_speed(spec: AuditSpec) -> None:
    """Raise UsageError if the shortest possible trial would take longer than TRIALS_SECONDS
    seconds.

    The speed comes from the faster of two calls, since the first call may import modules.
    """
    if runs_in_another_process(spec.target):
        return
    taken = []
    # Ignore errors of the mechanism here: the trial that follows reports them.
    with kept(), kept_from_leaving(), preserved(), suppress(Exception, SystemExit):
        mechanism = load_mechanism(spec.target)
        for _ in range(2):
            one = deepcopy(spec.pairs[0].d1)
            began = time.monotonic()
            mechanism.sample(one, 1, np.random.default_rng(0))
            taken.append(time.monotonic() - began)
    needed = _CALLS * min(taken, default=0.0)
    if needed > TRIALS_SECONDS:
        raise UsageError(
            f"the mechanism is slow: a draw takes {duration(min(taken))}, so the shortest trial "
            f"takes about {duration(needed)}; to wait for it, give --trial {MIN_SAMPLES}",
            code="mechanism-slow",
        )


class _Stopwatch:
    """Measures the time that an audit draws, from its progress reports."""

    def __init__(self) -> None:
        self._by_pair: dict[str, float] = {}

    def check(self, progress: Progress) -> None:
        if progress.rate > 0:
            self._by_pair[progress.pair] = progress.draws / progress.rate

    def timed(self, result: AuditResult) -> Timed:
        drawing = sum(self._by_pair.values()) or result.seconds
        return Timed(result, min(drawing, result.seconds))


def _result(
    requests: Requests, quiet: bool, spec: AuditSpec, *, seconds: float = math.inf
) -> Timed:
    """Run a trial audit, and return its result and the time that its draws took.

    Raises MechanismError if the trial ends with an error, and UsageError if it takes longer than
    `seconds`.
    """
    began, stopwatch = time.monotonic(), _Stopwatch()

    def check(progress: Progress) -> None:
        stopwatch.check(progress)
        spent, samples = time.monotonic() - began, spec.sampling.samples
        if spent <= seconds or progress.draws >= samples:
            return
        whole = duration(spent + progress.remaining)
        raise UsageError(
            f"the mechanism is slow: {progress.draws:,} draws took {duration(spent)}, so the "
            f"trial takes about {whole}; to wait for it, give --trial {samples}",
            code="mechanism-slow",
        )

    result = run_one(spec, requests, f"{spec.name} (trial)", quiet=quiet, check=check)
    if result.verdict is Verdict.ERROR:
        raise MechanismError(
            f"the trial ended with an error: {result.error}", code=result.error_code
        )
    return stopwatch.timed(result)


def _rate(spec: AuditSpec, found: AuditPlan, requests: Requests) -> float:
    """Return the speed of the audit in one process, in draws per second, without the time before
    its first draw."""
    if found.rate < _SLOW_RATE:  # if draws are slow, they took nearly all of the trial's time
        return found.rate
    seconds = found.overhead + _TIMING_SECONDS * len(spec.pairs)
    sampling = replace(spec.sampling, time=seconds, full=True, stop_early=None, workers=1)
    timed = replace(spec, sampling=sampling, no_trace=True)
    stopwatch = _Stopwatch()
    title = f"{spec.name} (speed)"
    result = run_one(timed, requests, title, quiet=True, check=stopwatch.check)
    return max(found.rate, stopwatch.timed(result).rate)


def _hopeless(found: AuditPlan) -> str:
    """Return a text that says why no number of draws catches the leak."""
    if not found.differs or any(one.share == 0 for one in found.pairs):
        which = "this pair" if len(found.pairs) == 1 else "a pair"
        return f"{which} showed no difference in {counted(found.draws, 'draw')} of trials"
    if any(one.certificate.point.epsilon == 0 for one in found.pairs):
        return (
            "the trial's best event tests the claim at ε = 0, and a plan is for a leak that is a "
            "multiple of ε"
        )
    return "no number of draws would catch such a leak in the event that the trial found"


def _remedy(found: AuditPlan, spec: AuditSpec, excess: float, power: float, rate: float) -> str:
    """Return advice for an audit for which no number of draws suffices.

    rate: speed in draws per second.
    """
    if found.last.verdict is Verdict.VIOLATION:
        return "The trial refutes the claim already: audit it without a plan."
    if not found.differs or any(one.share == 0 for one in found.pairs):
        longer = 10 * found.last.draws
        seconds = duration(longer / rate)
        return (
            "Without a difference, chance chooses the event, and a number of draws means nothing. "
            "Choose a pair that differs more, such as a record at the boundary, or a longer trial: "
            f"--trial {longer} takes about {seconds}."
        )
    if any(one.certificate.point.epsilon == 0 for one in found.pairs):
        points = [one for one in spec.tested.points() if one.epsilon > 0]
        point = min(points, key=lambda one: abs(one.epsilon - 1))
        return (
            "Plan for a claim that this one implies: "
            f"--epsilon {point.epsilon:g} --delta {point.delta:.3g}, in its place."
        )
    for larger in (one for one in _LARGER if one > excess):
        if all(draws_needed(one.certificate, one.share, larger, power) for one in found.pairs):
            return f"A larger leak can be planned for: --excess {larger:g}."
    return "Choose a pair that differs more, or a claim with a smaller δ."


def _command(ctx: click.Context, target: str | None, spec: AuditSpec) -> str:
    """Return the command line `dpaudit run …` for the planned audit. It has the options of `dpaudit
    plan` that `dpaudit run` shares."""
    words = shlex.split(repeating(ctx, [] if target is None else [target], spec.sampling.seed))
    kept, skipped = list[str](), False
    for word in words:
        if skipped:
            skipped = False
        elif word in ("--excess", "--rare", "--power", "--trial"):
            skipped = True
        else:
            kept.append(word)
    return command_line(["run", *kept[kept.index("dpaudit") + 2 :]])


def _hopeless_rare(rare: float | None) -> str:
    return f"no number of draws would catch an output of probability {rare:g}"


@dataclass(frozen=True)
class _PlanText:
    """Describes a plan in lines of text.

    points: points (ε, δ) of the claim's privacy profile.
    rate: speed in draws per second.
    excess: size of the leak that an audit should catch, as a multiple of the claimed ε.
    rare: probability of an output that only one of the two inputs can give; None if the user did
        not ask for such outputs.
    power: probability with which the audit should catch each leak.
    """

    found: AuditPlan
    points: Sequence[ProfilePoint]
    rate: float
    excess: float
    rare: float | None
    power: float

    @property
    def samples(self) -> int | None:
        """Number of draws that catches both leaks; None if no number does."""
        if self.rare is not None and self.rare_samples is None:
            return None
        numbers = [self.found.samples, self.rare_samples]
        return max((one for one in numbers if one is not None), default=None)

    @cached_property
    def rare_samples(self) -> int | None:
        """Return the number of draws with which the audit catches, on every pair of inputs, an
        output of the probability --rare that only one of the two inputs gives. Return None if the
        user did not give --rare, or if no number of draws is enough."""
        if self.rare is None:
            return None
        pairs = self.found.pairs
        needed = [
            draws_for_rare(one.certificate, self.rare, self.points, power=self.power)
            for one in pairs
        ]
        return None if None in needed else max(one for one in needed if one is not None)

    def lines(self, command: str) -> list[str]:
        """Return the lines of the plan that the terminal shows.

        command: command line of the audit without --samples, which is added here.
        """
        samples = self.found.samples or 0
        return [
            *wrap(f"{samples:,} draws, about {self._time(samples)}: {self._aim()}"),
            *self._lines_rare(),
            "",
            *self.pairs(),
            f"  run         {command}{self._flags()}",
            "",
            *wrap(self._assumed()),
        ]

    def only_rare(self, command: str) -> list[str]:
        """Return the lines of a plan for the option --rare alone: the number of draws that catches
        an output of this probability that only one input gives. Used if no number of draws catches
        the leak of --excess. Return [] if the user did not give --rare.

        command: command line of the audit, without --samples.
        """
        if self.rare is None:
            return []
        lines = ["", *self._lines_rare()]
        if self.samples is not None:
            lines += ["", f"  run         {command}{self._flags()}"]
        return lines

    def _lines_rare(self) -> list[str]:
        if self.rare is None:
            return []
        output = f"an output of probability {self.rare:g} that only one input gives"
        samples = self.rare_samples
        if samples is None:
            return wrap(f"No number of draws would catch {output}: choose a larger probability.")
        caught = f"{output} is then caught with probability {self.power:g}"
        return wrap(f"{samples:,} draws, about {self._time(samples)}: {caught}")

    def _flags(self) -> str:
        """Return the flags to add to the audit's command line: --samples, and --require-power and
        --require-rare if the planned power is high enough for them."""
        samples = max(self.found.samples or 0, self.rare_samples or 0)
        flags = f" --samples {samples}"
        if self.power < POWER:
            return flags
        flags += "" if self.found.samples is None else f" --require-power {self.excess:g}"
        return flags + ("" if self.rare_samples is None else f" --require-rare {self.rare:g}")

    def pairs(self) -> list[str]:
        """Return lines that show, for each pair of inputs, the event that the trial found, and how
        many draws the audit needs if the leak shows only in an event of a smaller probability, such
        as 10 %. Return [] if the trial found no difference."""
        if not self.found.differs:
            return []
        lines = [line for one in self.found.pairs for line in self._of_pair(one)]
        return [*lines, ""] if lines else []

    def _aim(self) -> str:
        point = self.found.pairs[0].certificate.point
        delta = f" at δ = {point.delta:g}" if point.delta else ""
        return (
            f"a leak of ε = {self.excess * point.epsilon:.4g}{delta}, {self.excess:g} times the "
            f"claim, is then caught with probability {self.power:g}"
        )

    def _of_pair(self, one: Planned) -> list[str]:
        lines = []
        if len(self.found.pairs) > 1:
            lines.append(f"  inputs      {one.certificate.pair}")
        if one.share:
            test = most_powerful(one.certificate)
            is_any = test.correct + test.wrong == test.draws
            event = f"{one.words}; at least {100 * one.share:.3g}{GLUE}% of the draws"
            lines += wrap(
                "any output" if is_any else event,
                "  event       ",
                " " * 14,
            )
        table = (
            (share, draws_needed(one.certificate, share, self.excess, self.power))
            for share in _RARER
            if not one.share or share < one.share
        )
        said = [
            f"{100 * share:g}{GLUE}%: {number:,}" for share, number in table if number is not None
        ]
        if said:
            lines += wrap(
                f"draws, if the event that leaks has {'; '.join(said)}", "  rarer       ", " " * 14
            )
        return lines

    def _time(self, samples: int) -> str:
        seconds = samples / max(self.rate, 1e-9)
        for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
            if seconds >= 2 * length:
                return f"{seconds / length:.0f} {unit} of one core"
        return f"{max(1, round(seconds))} s of one core"

    def _assumed(self) -> str:
        last, trials = self.found.last, self.found.trials
        found = f"that a trial of {counted(last.draws, 'draw')} found"
        if trials > 1:
            found = f"that {trials} trials found (the last: {counted(last.draws, 'draw')})"
        refuted = last.verdict is Verdict.VIOLATION
        already = "The last trial refutes the claim already. " if refuted else ""
        return (
            f"{already}Assumed: the leak shows in an event as probable as the events {found}, and "
            "an output in this event has a likelihood ratio of e^ε. A leak in a rarer "
            "event needs more draws. No plan covers a leak on other inputs."
        )
