"""Show the result of an audit of one training run with canaries, as rows and sentences of the text
report."""

from __future__ import annotations

import math

from dpaudit.certificates.one_run import CanaryScores, OneRunCertificate
from dpaudit.certificates.result import AuditResult, Canaries, Verdict
from dpaudit.claims.tradeoff import gaussian_epsilon
from dpaudit.reports import bounds, numbers
from dpaudit.reports.findings import caught, inputs
from dpaudit.reports.layout import Item, Row, paragraph, row
from dpaudit.wording import counted

# Reports convert the lower bound for μ of Gaussian DP to an ε. This is the δ at which they do so.
_FAMILY_DELTA = 1e-5
_ASSUMED = (
    "Holds if a fair coin of its own put each canary in or left it out, and the guesses depend on "
    "the coins only through the run."
)
_FIXED = "It also holds only if the number of guesses was fixed before the run."
_INDEPENDENT = (
    "It also holds only if what the run reveals about one canary is independent of what it reveals "
    "about the others, as assumed by --independent-canaries. Training may violate this."
)
_UNPROVEN = "No proof: other canaries, or a better attack, may still refute the claim."


def said(result: AuditResult, ending: Canaries) -> str:
    """Return the headline of an audit of one training run: the number of right guesses, and whether
    they refute the claim."""
    one = ending.deciding
    leading, level = one.leading, numbers.level(result.confidence)
    if one.is_independent:
        level += " if the canaries are independent"
    verb = "was" if leading.correct == 1 else "were"
    right = f"{leading.correct:,} of {counted(leading.guesses, 'guess')} {verb} right"
    if not one.refuted:
        return f"{right}, which does not refute {result.claim.describe()} at {level}"
    p = f"p {numbers.p_at_most(one.p_value)}"
    return f"refuted at {level}: {right} about {_canaries(one)} ({p})"


def _canaries(one: OneRunCertificate) -> str:
    return "1 canary" if one.canaries == 1 else f"{one.canaries:,} canaries"


def found(result: AuditResult, ending: Canaries, verbose: int) -> list[Item]:
    """Return the rows of the report: bounds, inputs, guesses, and the scores of the canaries if
    they are known."""
    one = ending.deciding
    return [
        *bounds.rows(result, every=verbose > 0),
        *_of_family(result, one),
        *inputs(result, one),
        *_guesses(one),
        *(_of_scores(result, one.scores) if one.scores else []),
    ]


def _guesses(one: OneRunCertificate) -> list[Item]:
    """Return a row for each number of guesses."""
    items: list[Item] = []
    for test in one.tests:
        share = f" ({numbers.share(test.correct / test.guesses)})" if test.guesses else ""
        text = f"{test.guesses:,} about {_canaries(one)}, {test.correct:,} right{share}"
        if one.is_independent:
            text += f"; all say in, {test.guesses - test.correct:,} wrong as fixed before"
        elif one.scores is not None:
            text += "; all say in" if one.scores.sides == "in" else "; half say in, half out"
        if len(one.tests) > 1:
            text += f"; tested with {numbers.plain(test.share)} of the error probability"
        items += row("" if items else "guesses", text)
    return items


def _of_scores(result: AuditResult, scores: CanaryScores) -> list[Item]:
    """Return rows of the report that describe the scores of the canaries, such as AUROC. No bound
    follows from these rows."""
    rates = [
        Row(
            "" if place else "TPR at FPR",
            f"{numbers.share(one.false_positives)}: {numbers.share(one.above / scores.included)} "
            f"[{numbers.share(one.lower, numbers.DOWN)}, {numbers.share(one.upper, numbers.UP)}]",
        )
        for place, one in enumerate(scores.rates)
    ]
    intervals = f"({numbers.level(result.confidence)} intervals, for independent canaries)"
    total = scores.included + scores.excluded
    return [
        *row("AUROC", f"{numbers.about(scores.auroc)} over all {total:,} canaries"),
        *rates,
        *row("", intervals),
        *row("coins", f"{scores.included:,} in, {scores.excluded:,} out; digest {scores.digest}"),
    ]


def _of_family(result: AuditResult, one: OneRunCertificate) -> list[Item]:
    """Return a row with the ε at δ = 10⁻⁵ that follows from the lower bound for μ if the noise is
    Gaussian.

    Return [] if there is no bound for μ, or if the claim has no parameter μ.
    """
    if not one.mu_lower or "mu" not in result.claim.parameters():
        return []
    epsilon = numbers.at_least(gaussian_epsilon(one.mu_lower, _FAMILY_DELTA))
    at = f"at δ = {numbers.plain(_FAMILY_DELTA)}"
    return row("as an ε", f"{epsilon} {at} in the Gaussian family (no bound for other noise)")


def meaning(result: AuditResult, ending: Canaries, verbose: int) -> list[Item]:
    """Return sentences for the report. They say how certain an attacker can be whether a canary was
    included, and what the audit assumes and does not show."""
    one = ending.deciding
    sentences = [_attacker(result, one), _ASSUMED] if verbose else [_ASSUMED]
    if one.is_independent:
        sentences.append(_INDEPENDENT)
    elif one.fixes_guesses and len(one.tests) == 1:
        sentences.append(_FIXED)
    lines = paragraph(" ".join(sentences))
    if result.verdict is not Verdict.NO_VIOLATION_FOUND:
        return lines
    detectable = "Even if all guesses had been right, the claim would not have been refuted."
    if math.isfinite(one.detectable_epsilon) and one.leading.method == "point":
        detectable = f"{caught(one.detectable_epsilon, one.point, 'these guesses')}."
    elif math.isfinite(one.detectable_epsilon):
        share = numbers.sure(one.detectable_epsilon, numbers.UP)
        detectable = (
            "Power: the claim is refuted in 9 of 10 runs if each guess is right with "
            f"probability {share}."
        )
    return [*lines, *paragraph(detectable), *paragraph(_UNPROVEN)]


def _attacker(result: AuditResult, one: OneRunCertificate) -> str:
    even = f"An attacker with even odds (50{numbers.GLUE}%) whether a canary was in"
    if one.epsilon_lower <= 0 and one.mu_lower:
        mu = numbers.at_least(one.mu_lower)
        return f"The run reveals more about a canary than Gaussian noise with μ = {mu} would."
    if one.epsilon_lower <= 0:
        return f"{even} was not shown to learn anything from the output."
    sure, level = numbers.sure(one.epsilon_lower), numbers.level(result.confidence)
    return (
        f"For some canary and some output of the run, an attacker with even odds becomes at least "
        f"{sure} certain (shown with {level} confidence)."
    )
