"""Show the lower bounds of an audit in reports.

The first bound is for the parameter of the claim's definition: μ for Gaussian DP, ρ for zCDP, and ε
or δ otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dpaudit.certificates.certificate import Certificate, ExactCertificate
from dpaudit.certificates.one_run import OneRunCertificate
from dpaudit.certificates.result import AuditResult, Family, Interrupted, Verdict
from dpaudit.claims import PrivacyClaim
from dpaudit.inputs.neighbouring import EQUAL
from dpaudit.reports import numbers
from dpaudit.reports.findings import bound_source
from dpaudit.reports.layout import Item, row
from dpaudit.wording import counted

# Explains the column of `may_miss` below a table of audits.
MAY_MISS = (
    "May miss ε < x: 9 of 10 such runs refute a true value of x or more that shows in the tested "
    "event."
)


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound for one privacy parameter, such as ε.

    symbol: the parameter.
    lower: the lower bound.
    claimed: value of the parameter in the claim.
    at: for a bound of ε, text with the δ at which it holds, such as ` at δ = 0.1`, and vice versa;
    "" for other parameters.
    """

    symbol: str
    lower: float
    claimed: float
    at: str = ""

    def row(self, result: AuditResult) -> list[Item]:
        """Return the bound as one row of a report: parameter, lower bound and claimed value."""
        implied, number = self._stated(result)
        label = f"{self.symbol} {'above' if implied else 'at least'}"
        confidence = 1 - result.level if implied else result.confidence
        sure = f"with {numbers.level(confidence)} confidence"
        source = bound_source(result) if self.symbol == "ε" and not implied else ""
        text = f"{number}{self.at}, {sure} (claimed: {numbers.plain(self.claimed)})"
        return row(label, f"{text}, {source}" if source else text)

    def brief(self, result: AuditResult) -> str:
        """Return the bound as a short text, such as `ε ≥ 1.69, claimed 1`."""
        implied, number = self._stated(result)
        relation = "=" if not result.ending.by_chance else ">" if implied else "≥"
        return f"{self.symbol} {relation} {number}, claimed {numbers.plain(self.claimed)}"

    def shown(self, result: AuditResult) -> float:
        """Return the number after the relation sign in the text of `brief`, such as 1.69 in `ε ≥
        1.69, claimed 1`. A table of audits can be sorted by it."""
        return self.claimed if self._stated(result)[0] else self.lower

    def _stated(self, result: AuditResult) -> tuple[bool, str]:
        """Return (is_claimed, number as text). Usually, the number is the lower bound, and
        is_claimed is False.

        In a family of audits, Holm's procedure may refute a claim although this bound, at the
        audit's own confidence, does not exceed the claimed value. Then the report only says that
        the parameter is above its claimed value: the number is the claimed value, and is_claimed is
        True.
        """
        falls_short = result.verdict is Verdict.VIOLATION and self.lower <= self.claimed
        if falls_short and result.ending.by_chance:
            return True, numbers.plain(self.claimed)
        return False, numbers.at_least(self.lower, above=self.claimed)


def rows(result: AuditResult, *, every: bool) -> list[Item]:
    """Return the bounds and the p-value of an audit as rows of a report.

    every: also return the bounds for ε and δ if the claim has another parameter.
    """
    lines = [line for one in bounds(result, every=every) for line in one.row(result)]
    p, level = p_value(result)
    pairs = getattr(result.ending, "pairs", len(result.certificates))
    corrected = f", corrected for {pairs} pairs" if pairs > 1 else ""
    of_family = "" if result.family is None else _of_the_family(result, result.family)
    text = f"{p} (violation if ≤ {level}{of_family}{corrected})"
    if pairs:
        is_drawn = all(
            one.evidence.recording is None and one.reproducible for one in result.certificates
        )
        seed = f", seed {result.seed}" if is_drawn else ""
        text += f", from {counted(result.draws, 'draw')}{seed}"
    return [*lines, *row("p-value", text)]


def decided_at(result: AuditResult) -> str:
    """Return the confidence of a verdict as a percentage: 1 minus the level at which the claim is
    refuted, or, if it is not refuted, the confidence of the bounds."""
    refuted = result.verdict is Verdict.VIOLATION
    return numbers.level(1 - result.level if refuted else result.confidence)


def p_value(result: AuditResult) -> tuple[str, str]:
    """Return the p-value and its threshold as texts. The claim is refuted if the p-value is at most
    the threshold. Both have enough digits to show which of them is larger."""
    p = numbers.p_at_most(result.p_value).removeprefix("= ")
    if result.family is None:
        return p, numbers.plain(result.level)
    level = _share(result.level)
    if float(level) < result.p_value <= result.level:
        return numbers.apart(result.p_value, result.level)
    return p, level


def _of_the_family(result: AuditResult, family: Family) -> str:
    """Return words that explain the audit's error probability as a share of the error probability
    of its family.

    A family is a set of audits with one error probability for all of them. Holm's procedure divides
    it among the audits, and raises the shares of the others when one claim is refuted.
    """
    of_all = f"{numbers.plain(1 - family.confidence)} for {counted(family.size, 'audit')}"
    share = 1 - result.confidence
    if result.level <= share * (1 + 1e-9):
        return f", its share of {of_all}"
    return f": its share, {_share(share)} of {of_all}, raised by Holm's step as others are refuted"


def _share(alpha: float) -> str:
    """Return an error probability as text with 2 digits, rounded down. The probability is first
    rounded to 12 digits, to remove a floating-point error such as the error of 1 - 0.9."""
    return numbers.at_least(float(f"{alpha:.12g}"), digits=2)


def bounds(result: AuditResult, *, every: bool = False) -> list[Bound]:
    """Return the bounds of an audit, the bound for the parameter of the claim's definition first.

    If the claim is refuted, return only the bounds that exceed their claimed values; if there are
    none, return only the first bound.

    every: also return the bounds for ε and δ if the claim has another parameter.
    """
    found = list(_bounds(result, every))
    if result.verdict is not Verdict.VIOLATION:
        return found
    return [one for one in found if one.lower > one.claimed] or found[:1]


def own_bound(claim: PrivacyClaim, epsilon: float, delta_lower: float) -> Bound | None:
    """Return the bound for a parameter such as μ or ρ that the claim has in place of ε and δ, or
    None if it has no such parameter.

    epsilon: ε of the point at which `delta_lower`, a lower bound for δ, holds.
    """
    own = claim.own_lower(epsilon, delta_lower)
    if own is None:
        return None
    name, lower = own
    return Bound(claim.symbol_of(name), lower, float(claim.parameters()[name]))


def detectable_epsilon(result: AuditResult) -> float | None:
    """Return the smallest true ε that 9 of 10 such runs refute, if it shows in the event of the
    pair that decides the verdict; inf if there is none, or no event. Return None if the claim is
    refuted, or if chance has no part in the verdict."""
    one = result.decisive
    if result.verdict is not Verdict.NO_VIOLATION_FOUND or isinstance(one, ExactCertificate | None):
        return None
    if not isinstance(one, Certificate):
        return one.detectable_epsilon
    is_event = one.fixed.events and EQUAL not in one.warnings
    return one.fixed.detectable_epsilon if is_event else math.inf


def may_miss(result: AuditResult) -> str:
    """Return the leak that the audit may miss as text, such as `ε < 1.02`, at the tested δ; "" if
    the claim is refuted, if chance has no part in the verdict, or if no leak of this kind is known.
    """
    least, point, one = detectable_epsilon(result), result.point, result.decisive
    if least is None or (isinstance(one, OneRunCertificate) and one.leading.method != "point"):
        return ""
    symbol = bounds(result)[0].symbol
    if math.isinf(least):
        return f"any {symbol}"
    at = "" if symbol == "ε" else f" at δ = {numbers.plain(point.delta)}"
    return f"ε < {numbers.at_most(least)}{at}"


def _bounds(result: AuditResult, every: bool) -> Iterator[Bound]:
    claim, point = result.claim, result.point
    own = own_bound(claim, point.epsilon, result.delta_lower)
    if isinstance(result.ending, Interrupted):  # bets bound ε at the δ of the point
        own = own_bound(claim, result.epsilon_lower, point.delta)
    mu = getattr(result.decisive, "mu_lower", None)
    if own is not None and mu is not None and "mu" in claim.parameters():
        own = replace(own, lower=mu)
    for test in (one.divergence for one in result.certificates):
        shown = None if test is None else claim.own_of_divergence(test.witness.order, test.lower)
        if own is not None and shown is not None and shown[1] > own.lower:
            own = replace(own, lower=shown[1])
    if own is not None:
        yield own
        if not every:
            return
    at = f" at δ = {numbers.plain(point.delta)}" if point.delta else ""
    epsilon = Bound("ε", result.epsilon_lower, point.epsilon, at)
    is_distance = list(claim.parameters()) == ["delta"]
    at = "" if is_distance else f" at ε = {numbers.plain(point.epsilon)}"
    delta = Bound("δ", result.delta_lower, point.delta, at)
    if is_distance or (point.delta and not point.epsilon):  # the claim has no parameter but δ
        yield from (delta, epsilon) if every else (delta,)
    else:
        yield from (epsilon, delta) if every or point.delta else (epsilon,)
