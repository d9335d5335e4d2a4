"""Show the numbers of an audit: lower bounds, p-value, and the leaks that it would have refuted.

The first bound is for the parameter of the claim's definition: μ for Gaussian DP, ρ for zCDP, and ε
or δ otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dpaudit.auditing.underpowered import event_could_not
from dpaudit.certificates.canary_certificate import OneRunCertificate
from dpaudit.certificates.certificate import Certificate, EventCount, ExactCertificate
from dpaudit.certificates.result import (
    AnyCertificate,
    AuditResult,
    Family,
    Interrupted,
    Verdict,
)
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.inputs.neighbouring import EQUAL
from dpaudit.reports import numbers
from dpaudit.reports.events import brief, leading_event
from dpaudit.reports.layout import Item, row
from dpaudit.stats import power
from dpaudit.wording import counted

# Explains the column of `may_miss` below a table of audits.
MAY_MISS = (
    "May miss ε < x: 9 of 10 such runs refute a true value of x or more that shows in the tested "
    "event."
)
EVEN = f"An attacker who thinks d1 and d2 equally likely (50{numbers.GLUE}%)"
UNPROVEN = "No proof: other inputs, rarer events or more draws may still refute the claim."


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound for one privacy parameter, and the value that the claim states.

    at: for a bound of ε, the δ at which it holds, as text such as ` at δ = 0.1`; for a bound of δ,
        the ε; "" for other parameters.
    """

    symbol: str
    lower: float
    claimed: float
    at: str = ""

    def row(self, result: AuditResult) -> list[Item]:
        """Return the bound as one row of a report: parameter, lower bound and claimed value."""
        is_claimed, number = self._stated(result)
        label = f"{self.symbol} {'above' if is_claimed else 'at least'}"
        confidence = 1 - result.level if is_claimed else result.confidence
        source = bound_source(result) if self.symbol == "ε" and not is_claimed else ""
        text = f"{number}{self.at}, with {numbers.level(confidence)} confidence"
        text += f" (claimed: {numbers.plain(self.claimed)})"
        return row(label, f"{text}, {source}" if source else text)

    def brief(self, result: AuditResult) -> str:
        """Return the bound as a short text, such as `ε ≥ 1.69, claimed 1`."""
        is_claimed, number = self._stated(result)
        relation = "=" if not result.ending.by_chance else ">" if is_claimed else "≥"
        return f"{self.symbol} {relation} {number}, claimed {numbers.plain(self.claimed)}"

    def shown(self, result: AuditResult) -> float:
        """Return the number that `brief` shows, without its relation sign, to sort a table by."""
        return self.claimed if self._stated(result)[0] else self.lower

    def _stated(self, result: AuditResult) -> tuple[bool, str]:
        """Return (whether the parameter is only known to exceed the number, the number to show)."""
        # In a family of audits, Holm's procedure may refute a claim although the bound, at the
        # audit's own confidence, does not exceed the claimed value.
        falls_short = result.is_refuted_tonight and self.lower <= self.claimed
        if falls_short and result.ending.by_chance:
            return True, numbers.plain(self.claimed)
        return False, numbers.at_least(self.lower, above=self.claimed)


def bounds(result: AuditResult, *, every: bool = False) -> list[Bound]:
    """Return the bounds of an audit. The bound for the parameter of the claim's definition comes
    first. If the claim is refuted, return only the bounds that exceed their claimed values or, if
    none does, the first bound."""
    known = list(_bounds(result, every))
    if result.verdict is not Verdict.VIOLATION:
        return known
    return [bound for bound in known if bound.lower > bound.claimed] or known[:1]


def _bounds(result: AuditResult, every: bool) -> Iterator[Bound]:
    claim, point = result.claim, result.point
    bound = own_bound(claim, point.epsilon, result.delta_lower)
    if isinstance(result.ending, Interrupted):  # bets bound ε at the δ of the point
        bound = own_bound(claim, result.epsilon_lower, point.delta)
    mu = getattr(result.decisive, "mu_lower", None)
    if bound is not None and mu is not None and "mu" in claim.parameters():
        bound = replace(bound, lower=mu)
    for test in (certificate.divergence for certificate in result.certificates):
        stated = None if test is None else claim.own_of_divergence(test.witness.order, test.lower)
        if bound is not None and stated is not None and stated[1] > bound.lower:
            bound = replace(bound, lower=stated[1])
    if bound is not None:
        yield bound
        if not every:
            return
    at = f" at δ = {numbers.plain(point.delta)}" if point.delta else ""
    epsilon = Bound("ε", result.epsilon_lower, point.epsilon, at)
    at = "" if claim.is_distance else f" at ε = {numbers.plain(point.epsilon)}"
    delta = Bound("δ", result.delta_lower, point.delta, at)
    if claim.is_distance or (point.delta and not point.epsilon):  # the claim has no parameter but δ
        yield from (delta, epsilon) if every else (delta,)
    else:
        yield from (epsilon, delta) if every or point.delta else (epsilon,)


def own_bound(claim: PrivacyClaim, epsilon: float, delta_lower: float) -> Bound | None:
    """Return the bound for a parameter, such as μ or ρ, that the claim has in place of ε and δ.
    Return None if the claim has no such parameter. `epsilon` is the ε at which `delta_lower`
    holds."""
    parameter = claim.own_lower(epsilon, delta_lower)
    if parameter is None:
        return None
    name, lower = parameter
    return Bound(claim.symbol_of(name), lower, float(claim.parameters()[name]))


def bound_source(result: AuditResult) -> str:
    """Return a text that says what gives the lower bound for ε: bets, an event, or a pair. Return
    "" if this is the event that the report shows, or if the bound is 0."""
    certificate = result.decisive
    if not isinstance(certificate, Certificate) or result.epsilon_lower <= 0:
        return ""
    if certificate.epsilon_lower < result.epsilon_lower:
        comparable = [pair for pair in result.certificates if pair.point == result.point]
        return f"from {max(comparable, key=lambda pair: pair.epsilon_lower).pair}"
    tests = (certificate.fixed, *certificate.others)
    test = next((test for test in tests if test.epsilon_lower == result.epsilon_lower), None)
    if test is None:
        return "from all bets together"
    if test.method == "probabilistic" or not test.events:
        return ""
    lower = {event.words: _epsilon_of(event, certificate.point.delta) for event in test.events}
    strongest, leading = max(lower, key=lambda words: lower[words]), leading_event(certificate)
    # Of two events with bounds of one order, either one may be shown.
    if leading is not None and 2 * lower.get(leading.words, -math.inf) >= lower[strongest]:
        return ""
    return f"from the event “{brief(strongest)}”"


def _epsilon_of(event: EventCount, delta: float) -> float:
    """Return the lower bound for ε at δ that follows from the intervals of one event."""
    interval, other_interval = event.interval_d1, event.interval_d2
    if event.guess == "d2":
        interval, other_interval = other_interval, interval
    return max(0.0, math.log(max(interval[0] - delta, 1e-300) / other_interval[1]))


def rows(result: AuditResult, *, every: bool) -> list[Item]:
    """Return the bounds and the p-value as rows."""
    lines = [line for bound in bounds(result, every=every) for line in bound.row(result)]
    p, level = p_value(result)
    pairs = getattr(result.ending, "pairs", len(result.certificates))
    corrected = f", corrected for {pairs:,} pairs" if pairs > 1 else ""
    of_family = "" if result.family is None else _of_the_family(result, result.family)
    text = f"{p} (violation if ≤ {level}{of_family}{corrected})"
    if pairs:
        is_drawn = all(
            certificate.evidence.recording is None and certificate.reproducible
            for certificate in result.certificates
        )
        seed = f", seed {result.seed}" if is_drawn else ""
        text += f", from {counted(result.draws, 'draw')}{seed}"
    return [*lines, *row("p-value", text)]


def decided_at(result: AuditResult) -> str:
    """Return the confidence of a verdict as a percentage. If the claim is refuted, it is 1 minus
    the level at which it is refuted; else it is the confidence of the bounds."""
    is_refuted = result.verdict is Verdict.VIOLATION
    return numbers.level(1 - result.level if is_refuted else result.confidence)


def p_value(result: AuditResult) -> tuple[str, str]:
    """Return the p-value, and the level at or below which a p-value refutes the claim, as texts.
    Both have enough digits to show which is larger."""
    p = numbers.p_at_most(result.p_value).removeprefix("= ")
    if result.family is None:
        return p, numbers.plain(result.level)
    level = _share(result.level)
    if float(level) < result.p_value <= result.level:
        return numbers.apart(result.p_value, result.level)
    return p, level


def _of_the_family(result: AuditResult, family: Family) -> str:
    """Return words that explain the level: it is a share of the error probability of a family."""
    of_all = f"{numbers.plain(1 - family.confidence)} for {counted(family.size, 'audit')}"
    share = 1 - result.confidence
    if result.level <= share * (1 + 1e-9):
        return f", its share of {of_all}"
    return f": its share, {_share(share)} of {of_all}, raised by Holm's step as others are refuted"


def _share(alpha: float) -> str:
    # 12 digits remove a floating-point error such as the error of 1 - 0.9.
    return numbers.at_least(float(f"{alpha:.12g}"), digits=2)


def detectable_epsilon(result: AuditResult) -> float | None:
    """Return the smallest true ε that 9 of 10 such runs refute, if the leak shows in the event of
    the deciding pair. Return inf if there is no such ε or no event. Return None if the claim is
    refuted, or if chance has no part in the verdict."""
    certificate = result.decisive
    is_pass = result.verdict is Verdict.NO_VIOLATION_FOUND
    if not is_pass or isinstance(certificate, ExactCertificate | None):
        return None
    if not isinstance(certificate, Certificate):
        return certificate.detectable_epsilon
    has_event = certificate.fixed.events and EQUAL not in certificate.warnings
    return certificate.fixed.detectable_epsilon if has_event else math.inf


def detectable_distance(certificate: AnyCertificate) -> float | None:
    """Return the smallest total variation distance in the tested event that 9 of 10 such runs
    refute; None for a point with ε > 0, another test, and if there is none."""
    if not isinstance(certificate, Certificate) or certificate.point.epsilon > 0:
        return None
    test = certificate.fixed
    if test.method != "game" or not math.isfinite(test.detectable_epsilon):
        return None
    guesses, delta = test.correct + test.wrong, certificate.point.delta
    distance = power.detectable_distance(
        guesses, test.draws, delta, test.alpha, two_guesses=test.two_guesses
    )
    return distance if math.isfinite(distance) else None


def may_miss(result: AuditResult) -> str:
    """Return the leak that the audit may miss at the tested δ, such as `ε < 1.02`. Return "" if the
    claim is refuted, if chance has no part in the verdict, or if no such leak is known."""
    least, certificate = detectable_epsilon(result), result.decisive
    is_of_curve = isinstance(certificate, OneRunCertificate) and (
        certificate.leading.method != "point"
    )
    if least is None or is_of_curve:
        return ""
    symbol = bounds(result)[0].symbol
    if math.isinf(least):
        return f"any {symbol}"
    distance = None if certificate is None else detectable_distance(certificate)
    if distance is not None and symbol == "δ":
        return f"{symbol} < {numbers.at_most(distance)}"
    at = "" if symbol == "ε" else f" at δ = {numbers.plain(result.point.delta)}"
    return f"ε < {numbers.at_most(least)}{at}"


def detectable(certificate: Certificate) -> str:
    """Return a sentence on what 9 of 10 such runs would refute: the smallest true ε in the tested
    event, and the smallest probability of an output that only one input gives; or why there is no
    such ε."""
    fixed, rare = certificate.fixed, certificate.detectable_rare
    if EQUAL in certificate.warnings:
        return "No leak would have been caught: d1 and d2 are equal."
    reason = event_could_not(certificate)
    is_rare_caught = rare is not None and math.isfinite(rare)
    output = "no output that only one input gives"
    if is_rare_caught:
        chance = numbers.at_most(rare or 0.0)
        output = f"an output of probability {chance} or more that only one input gives"
    if fixed.events and reason is None:
        event = caught(fixed.detectable_epsilon, certificate.point, "this event")
        distance = detectable_distance(certificate)
        if distance is not None:
            size = numbers.at_most(distance)
            event = (
                f"A total variation of {size} or more that shows in this event would be refuted "
            )
            event += "in 9 of 10 runs"
        if rare is None:
            return f"{event}."
        return f"{event}; so would {output}." if is_rare_caught else f"{event}; {output} would be."
    if fixed.events:
        event = f"This event could have shown no leak: {reason}."
    elif is_rare_caught:
        event = "No event looked worth testing."
    else:
        return "No leak would have been caught: no event looked worth testing."
    sentence = f" {output[0].upper()}{output[1:]} would be refuted in 9 of 10 runs."
    return event if rare is None else f"{event}{sentence}"


def caught(epsilon: float, point: ProfilePoint, what: str) -> str:
    """Return `With WHAT, a true ε of EPSILON or more would be refuted in 9 of 10 runs`, with the δ
    of the point unless it is 0."""
    at = f" (at δ = {numbers.plain(point.delta)})" if point.delta else ""
    least = numbers.at_most(epsilon)
    return f"With {what}, a true ε of {least} or more{at} would be refuted in 9 of 10 runs"


def unseen(certificate: Certificate) -> str:
    """Return a sentence on test draws that resemble no draw used for learning, and on the largest δ
    of a leak that such outputs could hide. Return "" if these draws were not counted."""
    new = certificate.unseen
    if new is None or EQUAL in certificate.warnings:
        return ""
    count, draws = new.count_d1 + new.count_d2, certificate.fixed.draws
    by_input = f"{new.count_d1:,} of d1, {new.count_d2:,} of d2"
    were = f"None of {draws:,} test draws was"
    if count:
        were = f"{count:,} of {draws:,} test draws ({by_input}) {'was' if count == 1 else 'were'}"
    ranges = " (for numbers: outside the range seen)" if new.ranges else ""
    return (
        f"{were} unlike any draw seen while learning{ranges}. Such outputs may hide a leak of "
        f"up to δ = {numbers.at_most(new.delta)}; rare outputs that were seen may hide more."
    )


def untested(ignored: Iterable[str]) -> str:
    """Return a sentence on the parts of the outputs that no attack examined
    (`Certificate.ignored`); "" if there are none."""
    listed = " and ".join(dict.fromkeys(ignored))
    return f"Not tested: {listed}." if listed else ""
