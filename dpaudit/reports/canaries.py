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
_FIXED = (
    "It also holds only if the number of guesses was fixed before the scores of the canaries were "
    "seen."
)
_INDEPENDENT = (
    "It also holds only if what the run reveals about one canary is independent of what it reveals "
    "about the others, as assumed by --independent-canaries. Training may violate this."
)
_UNPROVEN = "No proof: other canaries, or a better attack, may still refute the claim."


def said(result: AuditResult, ending: Canaries) -> str:
    """Return the headline of an audit of one training run: the number of right guesses, and whether
    they refute the claim."""
    one = ending.deciding
    level = numbers.level(result.confidence)
    if one.method == "independent":
        level += " if the canaries are independent"
    verb = "was" if one.correct == 1 else "were"
    right = f"{one.correct:,} of {counted(one.guesses, 'guess')} {verb} right"
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
    share = f" ({numbers.share(one.correct / one.guesses)})" if one.guesses else ""
    right = f"{one.correct:,} right{share}"
    return [
        *bounds.rows(result, every=verbose > 0),
        *_of_family(result, one),
        *inputs(result, one),
        *row("guesses", f"{one.guesses:,} about {_canaries(one)}, {right}{_chosen(result, one)}"),
        *(_of_scores(result, one.scores) if one.scores else []),
    ]


def _chosen(result: AuditResult, one: OneRunCertificate) -> str:
    """Return words that say which canaries were guessed, and which were used to choose the number
    of guesses. Return "" if the canaries have no scores."""
    if one.scores is None:
        return ""
    sides = "all say in" if one.scores.sides == "in" else "half say in, half out"
    others = f"{one.scores.chosen_on:,} other canaries (seed {result.seed})"
    if not one.scores.chosen_on:
        return f"; {sides}"
    if one.method == "independent":
        return f"; {sides}, above a threshold from {others}"
    return f"; {sides}; how many was chosen on {others}"


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
    if one.method == "independent":
        sentences.append(_INDEPENDENT)
    elif one.fixes_guesses and not (one.scores and one.scores.chosen_on):
        sentences.append(_FIXED)
    lines = paragraph(" ".join(sentences))
    if result.verdict is not Verdict.NO_VIOLATION_FOUND:
        return lines
    detectable = "Even if all guesses had been right, the claim would not have been refuted."
    if math.isfinite(one.detectable_epsilon) and one.method == "point":
        detectable = f"{caught(one.detectable_epsilon, one.point, 'these guesses')}."
    elif math.isfinite(one.detectable_epsilon):
        share = numbers.sure(one.detectable_epsilon, numbers.UP)
        detectable = (
            "Power: for the claim to be refuted in 9 of 10 runs, each guess must be right with "
            f"probability {share}."
        )
    elif one.scores is not None and one.scores.chosen_on:
        detectable = (
            f"The other canaries chose {counted(one.guesses, 'guess')}, which cannot refute the "
            "claim even if all are right. Scores that tell more lead to more guesses."
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
