"""`dpaudit plan`: compute how many draws, and how long, audits need to refute a leak."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import click

from dpaudit.auditing.options import OPTIONS, Requirements, flag_of
from dpaudit.auditing.planning import TRIAL_DRAWS, draws_for_leak, draws_for_output, trial_of
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.underpowered import draws_needed, event_share, most_powerful
from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.result import AuditResult, Progress, Verdict
from dpaudit.cli import exit_codes
from dpaudit.cli.batch import auditing, reason_of, run_one
from dpaudit.cli.click_classes import NUMBER, AuditCommand, option
from dpaudit.cli.completing import targets as complete_targets
from dpaudit.cli.flags import some_flags, warn_of_inputs, whole_number
from dpaudit.cli.group import exit_code
from dpaudit.cli.messages import tell
from dpaudit.cli.run import audits_of
from dpaudit.cli.signals import Requests
from dpaudit.cli.streams import set_apart
from dpaudit.errors import DpauditError, MechanismError, UsageError
from dpaudit.reports.layout import BELOW, wrap
from dpaudit.reports.numbers import GLUE, duration, unglued
from dpaudit.reports.text import name_width
from dpaudit.stats.power import POWER
from dpaudit.wording import visible

# Options of audits that a plan sets itself, or that have no effect on it.
_LEFT_OUT = (
    *("samples", "time", "require_power", "require_rare", "allow_underpowered", "expect"),
    *("exact", "stop"),
)
_FLAGS = tuple(
    option.name
    for option in OPTIONS.values()
    if option.flag and option.of not in ("run", "file") and option.name not in _LEFT_OUT
)
# Options of audits that check the options of a plan, and the flags to name in their place.
_FLAG_OF = {"require_power": "--excess", "require_rare": "--rare", "samples": "--trial"}
_EXCESS = 1.2
# Probabilities of the rarer events for which the report states the number of draws.
_RARER = (0.1, 0.01, 0.001)


@click.command(
    cls=AuditCommand,
    epilog="""\b
Examples:
  dpaudit plan mine.py:count --d1 '[1, 2]' --d2 '[1]' --epsilon 1 --excess 1.1
  dpaudit plan audits.yaml -k count""",
)
@click.argument(
    "targets", nargs=-1, metavar="[TARGET|FILE.yaml...]", shell_complete=complete_targets
)
@some_flags(*_FLAGS)
@option(
    "--excess",
    type=NUMBER,
    metavar="FACTOR",
    section="Usual options",
    help=f"Leak to refute, as a multiple of ε. Default: {_EXCESS:g}.",
)
@option(
    "--rare",
    type=NUMBER,
    metavar="PROBABILITY",
    section="Usual options",
    help="Also refute an output of this probability. Only one input gives it. Example: 1e-4.",
)
@option(
    "--power",
    type=NUMBER,
    default=POWER,
    section="Usual options",
    help=f"Probability of refuting the leak. Default: {POWER:g}.",
)
@option(
    "--trial",
    callback=whole_number,
    default=str(TRIAL_DRAWS),
    metavar="NUMBER",
    help=f"Draws of the trial audit. It shows how probable the event is. Default: {TRIAL_DRAWS:,}.",
)
@some_flags(
    pattern="Plan only audits whose name contains PATTERN. 'not PATTERN' plans all others; =NAME "
    "plans the audit of this name.",
    quiet="Print only the number of draws; for several audits, with their names.",
)
@some_flags("debug")
@click.pass_context
def plan_(
    ctx: click.Context,
    /,
    excess: float | None,
    rare: float | None,
    power: float,
    trial: int,
    pattern: str | None,
    quiet: bool,
    **_: Any,
) -> int:
    """Compute how many draws, and how much time, audits need.

    An audit should refute a leak of FACTOR times the claimed ε and, with --rare, a rare output that
    only one input gives. One short trial learns an event that shows a leak, and measures how
    probable it is.

    TARGET is package.module:function or path/to/file.py:function. Without arguments, dpaudit plans
    the audits of the files named in pyproject.toml, or of audits.yaml. For several audits, it
    prints one line each.
    """
    stdout = ctx.with_resource(set_apart())
    if not 0 < power < 1:
        raise UsageError(f"--power={power:g} must lie in (0, 1), e.g. 0.9", code="option-invalid")
    specs = audits_of(ctx)
    if not specs:
        tell(f"no audit's name matches -k {pattern!r}")
        return exit_codes.NOTHING_MATCHED
    codes, width = [], name_width([spec.name for spec in specs])
    with auditing() as requests:
        for spec in specs:
            warn_of_inputs(spec.pairs, spec.group)
            try:
                plan = _planned(spec, requests, trial, excess, rare, power, quiet=quiet)
            except DpauditError as error:
                if len(specs) == 1:
                    raise
                text = f"error: {spec.name}: {reason_of(error, spec)}"
                tell(text)
                codes.append(exit_code(error))
                continue
            name = visible(spec.name)
            if quiet:
                text = f"{plan.samples} {name}" if len(specs) > 1 else f"{plan.samples}"
            else:
                text = f"{name:<{width}}  {plan.row()}" if len(specs) > 1 else plan.report()
            click.echo(unglued(text), file=stdout)
            is_planned = plan.samples is not None
            codes.append(exit_codes.NOTHING_FOUND if is_planned else exit_codes.UNDERPOWERED)
    return exit_codes.worst(codes)


def _planned(
    spec: AuditSpec,
    requests: Requests,
    draws: int,
    excess: float | None,
    rare: float | None,
    power: float,
    *,
    quiet: bool,
) -> _AuditPlan:
    """Run a trial of `draws` draws for an audit, and return the plan of the audit."""
    factor, is_optional = excess or _EXCESS, excess is None and rare is not None
    try:
        replace(spec, requirements=Requirements(require_power=factor, require_rare=rare))
        trial = trial_of(spec, draws)
    except UsageError as error:
        parts = error.spelled(lambda name: _FLAG_OF.get(name) or flag_of(name))
        raise UsageError(*parts, code=error.code) from None
    reports: list[Progress] = []
    title = f"{spec.name} (trial)"
    result = run_one(trial, requests, title, quiet=quiet, check=reports.append)
    if result.verdict is Verdict.ERROR:
        raise MechanismError(
            f"the trial ended with an error: {result.error}", code=result.error_code
        )
    certificates = result.certificates
    point = certificates[0].point
    delta = f" at δ = {point.delta:g}" if point.delta else ""
    leak = f"a leak of ε = {factor * point.epsilon:.4g}{delta}, {factor:g} times the claim,"
    flag = f"--require-power {factor:g}"
    draws_for = partial(draws_for_leak, certificates, factor, power)
    aims = [_aim(leak, flag, draws_for, optional=is_optional)]
    if rare is not None:
        output = f"an output of probability {rare:g} that only one input gives"
        flag = f"--require-rare {rare:g}"
        points = spec.tested.points()
        draws_for = partial(draws_for_output, certificates, rare, points, power)
        aims.append(_aim(output, flag, draws_for))
    plan = _AuditPlan(spec, result, _rate(reports), aims, factor, power)
    if quiet and plan.samples is None:
        raise UsageError(plan.reason, code="plan-impossible")
    return plan


def _rate(reports: Sequence[Progress]) -> float:
    """Return draws per second in the second half of a trial, in which little is learned."""
    last = reports[-1]
    half = next(now for now in reports if now.pair == last.pair and 2 * now.draws >= last.draws)
    seconds = last.draws / last.rate - half.draws / half.rate
    return (last.draws - half.draws) / seconds if seconds > 0 else last.rate


@dataclass(frozen=True, slots=True)
class _Aim:
    """What an audit should refute: the leak in words, and the option that requires the power.

    samples: number of draws that is enough. None: no number is known, for the `reason`.
    optional: whether there can be a plan without this aim.
    """

    words: str
    flag: str
    samples: int | None
    reason: str
    optional: bool


def _aim(words: str, flag: str, draws: Callable[[], int], *, optional: bool = False) -> _Aim:
    try:
        return _Aim(words, flag, draws(), "", optional)
    except UsageError as error:
        return _Aim(words, flag, None, str(error), optional)


@dataclass(frozen=True, slots=True)
class _AuditPlan:
    """The plan of one audit, and its report.

    rate: draws per second of the trial.
    factor: the leak to refute, as a multiple of the claimed ε.
    power: the probability with which to refute it.
    """

    spec: AuditSpec
    trial: AuditResult
    rate: float
    aims: Sequence[_Aim]
    factor: float
    power: float

    @property
    def reason(self) -> str:
        """Why there is no plan; "" if there is one."""
        required = [aim.reason for aim in self.aims if not aim.optional]
        return next(filter(None, required), "")

    @property
    def samples(self) -> int | None:
        """Number of draws for each pair that is enough for all aims. None if there is no plan."""
        numbers = [aim.samples for aim in self.aims if aim.samples is not None]
        return None if self.reason else max(numbers)

    def row(self) -> str:
        """Return the plan on one line."""
        return f"no plan: {self.reason}" if self.samples is None else self._cost(self.samples)

    def report(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for aim in self.aims:
            text = f"No plan: {aim.reason}."
            if aim.samples is not None:
                cost = self._cost(aim.samples)
                text = f"{cost}: {aim.words} is then refuted with probability {self.power:g}"
            yield from wrap(text)
        if self.aims[0].samples is not None:
            yield ""
            for certificate in self.trial.certificates:
                yield from self._event(certificate)
        if self.samples is not None:
            # The requirements are about a power of `POWER`.
            flags = [aim.flag for aim in self.aims if aim.samples and self.power >= POWER]
            command = str(self.spec.origin.command).replace("dpaudit plan", "dpaudit run", 1)
            yield ""
            yield " ".join([f"  run         {command} --samples {self.samples}", *flags])
        if self.aims[0].samples is not None:
            yield ""
            is_refuted = self.trial.verdict is Verdict.VIOLATION
            refuted = "The trial refutes the claim already. " if is_refuted else ""
            yield from wrap(
                f"{refuted}Assumed: in an event half as probable as that of the trial, each "
                f"output has a likelihood ratio of e^({self.factor:g} ε). A leak in a rarer event "
                "needs more draws. No plan covers a leak on other inputs."
            )

    def _cost(self, samples: int) -> str:
        seconds = samples * len(self.trial.certificates) / self.rate
        return f"{samples:,} draws, about {duration(max(1.0, seconds))} of one core"

    def _event(self, certificate: Certificate) -> Iterator[str]:
        """Yield the rows about the event of a pair, and about rarer events."""
        if len(self.trial.certificates) > 1:
            yield f"  inputs      {certificate.pair}"
        test = most_powerful(certificate)
        share, words = event_share(test), " or ".join(event.words for event in test.events)
        text = f"{words}; at least {100 * share:.3g}{GLUE}% of the draws"
        yield from wrap(text, "  event       ", BELOW)
        rarer = [
            f"{100 * smaller:g}{GLUE}%: {samples:,}"
            for smaller in _RARER
            if smaller < share
            and (samples := draws_needed(certificate, smaller, self.factor, self.power))
        ]
        if rarer:
            text = f"draws, if the event of the audit has {'; '.join(rarer)}"
            yield from wrap(text, "  rarer       ", BELOW)
