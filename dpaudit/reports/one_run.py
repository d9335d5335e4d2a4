"""The result of an audit of one run with canaries as lines of the text report."""

from __future__ import annotations

import math

from dpaudit.auditing.underpowered import no_guesses_could
from dpaudit.certificates.certificate import OneRunCertificate
from dpaudit.certificates.result import AuditResult, Canaries, Verdict
from dpaudit.reports import bounds, numbers
from dpaudit.reports.findings import caught, inputs
from dpaudit.reports.layout import paragraph, row
from dpaudit.wording import counted

_IF = "Holds if fair coins chose the canaries, and no guess was made knowing them."
_ASSUMED = (
    "This holds if a fair coin of its own put every canary in or left it out, and the guesses were "
    "made without knowing the coins."
)
_FIXED = (
    "With δ > 0, the number of guesses had to be fixed before the scores of the canaries were seen."
)
_UNPROVEN = "No proof: other canaries, or a better attack, may still refute the claim."


def said(result: AuditResult, ending: Canaries) -> str:
    """Return the part of the headline after the name."""
    one = ending.deciding
    level = numbers.level(result.confidence)
    verb = "was" if one.correct == 1 else "were"
    right = f"{one.correct:,} of {counted(one.guesses, 'guess')} {verb} right"
    if not one.refuted:
        return f"{right}, which does not refute {result.claim.describe()} at {level}"
    p = f"p {numbers.p_at_most(one.p_value)}"
    return f"refuted at {level}: {right} about {_canaries(one)} ({p})"


def _canaries(one: OneRunCertificate) -> str:
    return "1 canary" if one.canaries == 1 else f"{one.canaries:,} canaries"


def found(result: AuditResult, ending: Canaries, verbose: int) -> list[str]:
    """Return the bounds and the rows of the guesses."""
    one = ending.deciding
    share = f" ({numbers.share(one.correct / one.guesses)})" if one.guesses else ""
    right = f"{one.correct:,} right{share}"
    return [
        *bounds.rows(result, every=verbose > 0),
        *inputs(result, one),
        *row("guesses", f"{one.guesses:,} about {_canaries(one)}, {right}"),
    ]


def meaning(result: AuditResult, ending: Canaries, verbose: int) -> list[str]:
    """Return sentences on what an attacker learns, and on what the audit could not show."""
    one = ending.deciding
    said = f"{_attacker(result, one)} {_ASSUMED}" if verbose else _IF
    lines = paragraph(f"{said} {_FIXED}" if one.point.delta else said)
    if result.verdict is not Verdict.NO_VIOLATION_FOUND:
        return lines
    if math.isfinite(one.detectable_epsilon):
        detectable = f"{caught(one.detectable_epsilon, one.point, 'these guesses')}."
    elif no_guesses_could(one.point, one.alpha):
        detectable = "No leak would have been caught, and none would be with any number of guesses."
    else:
        detectable = "No leak would have been caught with so few guesses (more canaries help)."
    return [*lines, *paragraph(detectable), *paragraph(_UNPROVEN)]


def _attacker(result: AuditResult, one: OneRunCertificate) -> str:
    even = f"An attacker who thinks it even (50{numbers.GLUE}%) whether a canary was in"
    if one.epsilon_lower <= 0:
        return f"{even} was not shown to learn anything from the output."
    sure, level = numbers.sure(one.epsilon_lower), numbers.level(result.confidence)
    return (
        f"{even} can tell with at least {sure} certainty, from one output (shown with {level} "
        "confidence)."
    )
