"""Write the results of audits that draw nothing: of exact probabilities that a mechanism states,
and of guesses about the canaries of one training run."""

from __future__ import annotations

import math

from dpaudit.certificates.canary_certificate import CanaryScores, OneRunCertificate
from dpaudit.certificates.certificate import ExactCertificate
from dpaudit.certificates.result import AuditResult, Exact, Verdict
from dpaudit.claims import PrivacyClaim
from dpaudit.claims.tradeoff import gaussian_epsilon
from dpaudit.reports import bounds_report, numbers
from dpaudit.reports.events import allowance, brief, compared, shares
from dpaudit.reports.inputs_report import inputs
from dpaudit.reports.layout import BELOW, Item, Row, paragraph, row, table
from dpaudit.wording import counted

_DIGITS = 6
_NEARLY_CERTAIN = 0.99
_OF_PMF = "Computed from the mechanism's pmf; only an audit by sampling tests its code."
_STATED = (
    "The probabilities are those that the mechanism's own pmf states. Whether its code draws from "
    "them only an audit by sampling can tell, and other inputs may differ."
)
# The δ at which reports convert the lower bound for μ of Gaussian DP to an ε.
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


def exact_reason(result: AuditResult, ending: Exact) -> str:
    """Return the reason for the verdict of an audit of exact probabilities."""
    certificate, claim = ending.deciding, result.claim
    if certificate.refuted:
        return f"exact: {_refutation(certificate, claim)}"
    pairs = "this pair" if len(result.by_pair) == 1 else f"these {len(result.by_pair):,} pairs"
    points = len(claim.points())
    if points == 1:
        return f"exact: {claim.describe()} holds for {pairs}"
    return f"exact: the {points:,} points tested of {claim.describe()} hold for {pairs}"


def exact_rows(result: AuditResult, pair: ExactCertificate, verbose: int) -> list[Item]:
    """Return the rows about one pair of an audit of exact probabilities."""
    claim, point = result.claim, pair.point
    claimed, delta = numbers.plain(point.epsilon), numbers.plain(point.delta)
    is_by_mass = claim.counts_single_outputs
    is_beyond = pair.refuted and not is_by_mass
    rows = _own_parameter(pair, claim)
    is_shown = verbose > 0 or not (rows or is_by_mass)
    if is_shown:
        at_delta = f" at δ = {delta}" if point.delta else ""
        pure = f"; {numbers.about(pair.epsilon, digits=_DIGITS)} at δ = 0" if point.delta else ""
        epsilon = _exactly(pair.epsilon_lower, point.epsilon, is_beyond)
        rows += row("ε exactly", f"{epsilon}{at_delta} (claimed: {claimed}){pure}")
    if verbose or (point.delta and is_shown):
        lower = _exactly(pair.delta_lower, point.delta, is_beyond)
        rows += row("δ exactly", f"{lower} at ε = {claimed} (claimed: {delta})")
    if verbose or is_by_mass:
        mass = _exactly(pair.probabilistic_delta, point.delta, pair.refuted and is_by_mass)
        ending = f" (claimed: {delta})" if is_by_mass else ""
        rows += row("δ of PDP", f"{mass} at ε = {claimed}{ending}")
    rows += inputs(result, pair, shown=verbose > 0 or len(result.by_pair) == 1)
    rows += _exact_event(pair, verbose, is_by_mass=is_by_mass)
    return rows + row("outcomes", f"{len(pair.law):,} possible ones; nothing was drawn")


def exact_meaning(ending: Exact, verbose: int) -> list[Item]:
    """Return sentences on how certain an attacker can be, and on the limits of the audit."""
    certificate = ending.deciding
    if not verbose:
        return paragraph(_OF_PMF)
    if math.isinf(certificate.epsilon):
        only_d1 = math.fsum(p for _, p, q in certificate.law if q == 0)
        only_d2 = math.fsum(q for _, p, q in certificate.law if p == 0)
        share = numbers.share(max(only_d1, only_d2))
        learns = f"is certain after any output that only one can give: up to {share} of all"
    else:
        sure = 1 / (1 + math.exp(-certificate.epsilon))
        is_near = sure >= _NEARLY_CERTAIN  # a certainty below 1 is never shown as 100 %
        percent = numbers.sure(certificate.epsilon, numbers.UP) if is_near else numbers.share(sure)
        learns = f"can tell the inputs apart with up to {percent} certainty, from one output"
    return [*paragraph(f"{bounds_report.EVEN} {learns}."), *paragraph(_STATED)]


def _refutation(pair: ExactCertificate, claim: PrivacyClaim) -> str:
    """Return the two probabilities that refute the claim, and what the claim allows."""
    event, point = pair.event, pair.point
    if event is None:
        raise ValueError(f"{pair.pair}: refuted without an event")
    if claim.counts_single_outputs:
        allowed, probability = numbers.shares_apart(point.delta, shares(event)[0])
        times = f"more than e^{numbers.plain(point.epsilon)} times as likely for {event.guess}"
        return f"outputs {times} have probability {probability}; the claim allows {allowed}"
    return compared(event, point)


def _own_parameter(pair: ExactCertificate, claim: PrivacyClaim) -> list[Item]:
    bound = bounds_report.own_bound(claim, pair.point.epsilon, pair.delta_lower)
    if bound is None:
        return []
    least = numbers.at_least(bound.lower, above=bound.claimed)
    point = numbers.plain(pair.point.epsilon)
    text = f"{least}, from δ at ε = {point} (claimed: {numbers.plain(bound.claimed)})"
    return row(f"{bound.symbol} at least", text)


def _exact_event(pair: ExactCertificate, verbose: int, *, is_by_mass: bool) -> list[Item]:
    event = pair.event
    if event is None:
        return row("event", "none: both inputs give every output the same probability")
    cells = [
        ["P(E)", "d1", numbers.about(event.probability_d1, digits=_DIGITS)],
        ["Q(E)", "d2", numbers.about(event.probability_d2, digits=_DIGITS)],
    ]
    words = event.words if verbose else brief(event.words)
    return [
        *row("event E", f"{words}  (points to {event.guess})"),
        *table(cells, left=(0, 1, 2), margin=BELOW),
        *([] if is_by_mass else [allowance("E", event, pair.point)]),
    ]


def _exactly(value: float, claimed: float, is_beyond: bool) -> str:
    """Return a number with 6 digits. Add digits if the text must show that it exceeds `claimed`."""
    if is_beyond and value > claimed:
        return numbers.at_least(value, above=claimed, digits=_DIGITS)
    return numbers.about(value, digits=_DIGITS)


def canary_reason(result: AuditResult, run: OneRunCertificate) -> str:
    """Return the number of right guesses about canaries, and whether they refute the claim."""
    leading, level = run.leading, numbers.level(result.confidence)
    if run.is_independent:
        level += " if the canaries are independent"
    verb = "was" if leading.correct == 1 else "were"
    right = f"{leading.correct:,} of {counted(leading.guesses, 'guess')} {verb} right"
    if not run.refuted:
        return f"{right}, which does not refute {result.claim.describe()} at {level}"
    p = f"p {numbers.p_at_most(run.p_value)}"
    return f"refuted at {level}: {right} about {_canaries(run)} ({p})"


def canary_rows(result: AuditResult, run: OneRunCertificate, verbose: int) -> list[Item]:
    """Return the rows of an audit of one training run: bounds, inputs, guesses and scores."""
    rows = bounds_report.rows(result, every=verbose > 0)
    if run.mu_lower and "mu" in result.claim.parameters():
        epsilon = numbers.at_least(gaussian_epsilon(run.mu_lower, _FAMILY_DELTA))
        at = f"at δ = {numbers.plain(_FAMILY_DELTA)}"
        rows += row("as an ε", f"{epsilon} {at} in the Gaussian family (no bound for other noise)")
    rows += [*inputs(result, run), *_guesses(run)]
    return rows + ([] if run.scores is None else _scores(result, run.scores))


def canary_meaning(result: AuditResult, run: OneRunCertificate, verbose: int) -> list[Item]:
    """Return sentences on how sure an attacker can be whether a canary was included, on what the
    audit assumes, and on what it does not show."""
    sentences = [_attacker(result, run), _ASSUMED] if verbose else [_ASSUMED]
    if run.is_independent:
        sentences.append(_INDEPENDENT)
    elif run.fixes_guesses and len(run.tests) == 1:
        sentences.append(_FIXED)
    lines = paragraph(" ".join(sentences))
    if result.verdict is not Verdict.NO_VIOLATION_FOUND:
        return lines
    power = "Even if all guesses had been right, the claim would not have been refuted."
    if math.isfinite(run.detectable_epsilon) and run.leading.method == "point":
        power = f"{bounds_report.caught(run.detectable_epsilon, run.point, 'these guesses')}."
    elif math.isfinite(run.detectable_epsilon):
        share = numbers.sure(run.detectable_epsilon, numbers.UP)
        power = (
            "Power: the claim is refuted in 9 of 10 runs if each guess is right with "
            f"probability {share}."
        )
    return [*lines, *paragraph(power), *paragraph(_UNPROVEN)]


def _canaries(run: OneRunCertificate) -> str:
    return "1 canary" if run.canaries == 1 else f"{run.canaries:,} canaries"


def _guesses(run: OneRunCertificate) -> list[Item]:
    """Return a row for each number of guesses."""
    items: list[Item] = []
    for test in run.tests:
        share = f" ({numbers.share(test.correct / test.guesses)})" if test.guesses else ""
        text = f"{test.guesses:,} about {_canaries(run)}, {test.correct:,} right{share}"
        if run.is_independent:
            text += f"; all say in, {test.guesses - test.correct:,} wrong as fixed before"
        elif run.scores is not None:
            text += "; all say in" if run.scores.sides == "in" else "; half say in, half out"
        if len(run.tests) > 1:
            text += f"; tested with {numbers.plain(test.share)} of the error probability"
        items += row("" if items else "guesses", text)
    return items


def _scores(result: AuditResult, scores: CanaryScores) -> list[Item]:
    """Return rows that describe the scores of the canaries; no bound follows from them."""
    rates = [
        f"{numbers.share(rate.false_positives)}: {numbers.share(rate.above / scores.included)} "
        f"[{numbers.share(rate.lower, numbers.DOWN)}, {numbers.share(rate.upper, numbers.UP)}]"
        for rate in scores.rates
    ]
    intervals = f"({numbers.level(result.confidence)} intervals, for independent canaries)"
    total = scores.included + scores.excluded
    return [
        *row("AUROC", f"{numbers.about(scores.auroc)} over all {total:,} canaries"),
        *(Row("" if index else "TPR at FPR", text) for index, text in enumerate(rates)),
        *row("", intervals),
        *row("coins", f"{scores.included:,} in, {scores.excluded:,} out; digest {scores.digest}"),
    ]


def _attacker(result: AuditResult, run: OneRunCertificate) -> str:
    if run.epsilon_lower <= 0 and run.mu_lower:
        mu = numbers.at_least(run.mu_lower)
        return f"The run reveals more about a canary than Gaussian noise with μ = {mu} would."
    if run.epsilon_lower <= 0:
        even = f"An attacker with even odds (50{numbers.GLUE}%) whether a canary was in"
        return f"{even} was not shown to learn anything from the output."
    sure, level = numbers.sure(run.epsilon_lower), numbers.level(result.confidence)
    return (
        f"For some canary and some output of the run, an attacker with even odds becomes at least "
        f"{sure} certain (shown with {level} confidence)."
    )
