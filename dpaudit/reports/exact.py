"""The result of an exact audit as lines of the text report."""

from __future__ import annotations

import math

from dpaudit.certificates.certificate import ExactCertificate
from dpaudit.certificates.result import AuditResult, Exact
from dpaudit.claims import PrivacyClaim
from dpaudit.reports import numbers
from dpaudit.reports.bounds import own_bound
from dpaudit.reports.findings import EVEN, allowance, brief, compared, inputs, shares
from dpaudit.reports.layout import BELOW, paragraph, row, table

_DIGITS = 6
_NEARLY_CERTAIN = 0.99
_OF_PMF = "Computed from the mechanism's pmf; only an audit by sampling tests its code."
_STATED = (
    "The probabilities are those that the mechanism's own pmf states. Whether its code draws from "
    "them only an audit by sampling can tell, and other inputs may differ."
)


def said(result: AuditResult, ending: Exact) -> str:
    """Return the part of the headline after the name."""
    decisive = ending.deciding
    if decisive.refuted:
        return f"exact: {_refutation(decisive, result.claim)}"
    pairs = "this pair" if len(result.by_pair) == 1 else f"these {len(result.by_pair)} pairs"
    points = len(result.claim.points())
    what = result.claim.describe()
    claimed = what if points == 1 else f"the {points} points tested of {what}"
    return f"exact: {claimed} {'holds' if points == 1 else 'hold'} for {pairs}"


def found(result: AuditResult, ending: Exact, verbose: int) -> list[str]:
    """Return the rows of the deciding pair, or of all pairs if verbose."""
    shown = ending.certificates if verbose else (ending.deciding,)
    return [line for one in shown for line in _pair(one, result, verbose)]


def meaning(result: AuditResult, ending: Exact, verbose: int) -> list[str]:
    """Return sentences on what an attacker learns, and on what was not tested."""
    decisive = ending.deciding
    if not verbose:
        return paragraph(_OF_PMF)
    if math.isinf(decisive.epsilon):
        # Probability of the outputs that only one input can give, for the likelier input.
        d1 = math.fsum(p for _, p, q in decisive.law if q == 0)
        share = numbers.share(max(d1, math.fsum(q for _, p, q in decisive.law if p == 0)))
        learns = f"is certain after any output that only one can give: up to {share} of all"
    else:
        sure = 1 / (1 + math.exp(-decisive.epsilon))
        is_near = sure >= _NEARLY_CERTAIN  # which is not shown as 100 %
        most = numbers.sure(decisive.epsilon, numbers.UP) if is_near else numbers.share(sure)
        learns = f"can tell the inputs apart with up to {most} certainty, from one output"
    return [*paragraph(f"{EVEN} {learns}."), *paragraph(_STATED)]


def _pair(one: ExactCertificate, result: AuditResult, verbose: int) -> list[str]:
    claim, point = result.claim, one.point
    claimed, delta = numbers.plain(point.epsilon), numbers.plain(point.delta)
    by_mass = claim.counts_single_outputs
    epsilon = _exactly(one.epsilon_lower, point.epsilon, one.refuted and not by_mass)
    lower = _exactly(one.delta_lower, point.delta, one.refuted and not by_mass)
    mass = _exactly(one.probabilistic_delta, point.delta, one.refuted and by_mass)
    pure = f"; {numbers.about(one.epsilon, digits=_DIGITS)} at δ = 0" if point.delta else ""
    at_delta = f" at δ = {delta}" if point.delta else ""
    own = _own(one, claim)
    rows = list(own)
    if verbose or not (own or by_mass):
        rows += row("ε exactly", f"{epsilon}{at_delta} (claimed: {claimed}){pure}")
    if verbose or (point.delta and not (own or by_mass)):
        rows += row("δ exactly", f"{lower} at ε = {claimed} (claimed: {delta})")
    if verbose or by_mass:
        rows += row(
            "δ of PDP", f"{mass} at ε = {claimed}{f' (claimed: {delta})' if by_mass else ''}"
        )
    return [
        *rows,
        *inputs(result, one, shown=verbose > 0 or len(result.by_pair) == 1),
        *_event(one, verbose, by_mass),
        *row("outcomes", f"{len(one.law):,} possible ones; nothing was drawn"),
    ]


def _own(one: ExactCertificate, claim: PrivacyClaim) -> list[str]:
    """Return the row of the definition's own parameter (such as μ), if it has one."""
    own = own_bound(claim, one.point.epsilon, one.delta_lower)
    if own is None:
        return []
    least = numbers.at_least(own.lower, above=own.claimed)
    point = numbers.plain(one.point.epsilon)
    text = f"{least}, from δ at ε = {point} (claimed: {numbers.plain(own.claimed)})"
    return row(f"{own.symbol} at least", text)


def _event(one: ExactCertificate, verbose: int, by_mass: bool) -> list[str]:
    event = one.event
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
        *([] if by_mass else allowance("E", event, one.point)),
    ]


def _refutation(one: ExactCertificate, claim: PrivacyClaim) -> str:
    """Return the probabilities by which the claim fails."""
    event, point = one.event, one.point
    if event is None:
        raise ValueError(f"{one.pair}: refuted without an event")
    if claim.counts_single_outputs:
        allowed, seen = numbers.shares_apart(point.delta, shares(event)[0])
        times = f"more than e^{numbers.plain(point.epsilon)} times as likely for {event.guess}"
        return f"outputs {times} have probability {seen}; the claim allows {allowed}"
    return compared(event, point)


def _exactly(value: float, claimed: float, beyond: bool) -> str:
    """Return a number to 6 digits, or to as many as show that it exceeds the claim."""
    if beyond and value > claimed:
        return numbers.at_least(value, above=claimed, digits=_DIGITS)
    return numbers.about(value, digits=_DIGITS)
