"""What an exact audit found, as lines of the text report."""

from __future__ import annotations

import math

from dpaudit.certificates.exact_certificate import ExactCertificate, ExactEvent
from dpaudit.certificates.result import AuditResult
from dpaudit.claims import PrivacyClaim
from dpaudit.reports import numbers
from dpaudit.reports.findings import adjacency, other, quoted
from dpaudit.reports.layout import paragraph, row, table
from dpaudit.reports.numbers import GLUE

_DIGITS = 6
_NEARLY_CERTAIN = 0.99
_STATED = (
    "The probabilities are those that the mechanism's own pmf states. Whether its code draws from "
    "them only an audit by sampling can tell, and other inputs may differ."
)


def said(result: AuditResult, decisive: ExactCertificate) -> str:
    """Return what the headline says after the name."""
    if decisive.refuted:
        return f"exact: {_refutation(decisive, result.claim)}"
    pairs = "this pair" if len(result.exact) == 1 else f"these {len(result.exact)} pairs"
    points = len(result.claim.points())
    what = result.claim.describe()
    claimed = what if points == 1 else f"the {points} points looked at of {what}"
    return f"exact: {claimed} {'holds' if points == 1 else 'hold'} for {pairs}"


def found(result: AuditResult, decisive: ExactCertificate, verbose: int) -> list[str]:
    """Return the rows of the pair that decides, or with `verbose` of all."""
    shown = result.exact if verbose else (decisive,)
    lines = [line for one in shown for line in _pair(one, result.claim)]
    for one in result.exact:
        if one not in shown:
            epsilon = _exactly(one.epsilon_lower, one.point.epsilon, one.refuted)
            lines += row("other pair", f"{one.pair}: ε = {epsilon}")
    return lines


def meaning(decisive: ExactCertificate) -> list[str]:
    """Return what it means for an attacker, and what was not looked at."""
    even = f"An attacker who thinks d1 and d2 equally likely (50{GLUE}%)"
    if math.isinf(decisive.epsilon):
        share = numbers.share(_telling(decisive))
        learns = f"is certain after any output that only one can give: up to {share} of all"
    else:
        learns = f"becomes up to {_sure(decisive.epsilon)} sure which one it was"
    return [*paragraph(f"{even} {learns}."), *paragraph(_STATED)]


def _telling(one: ExactCertificate) -> float:
    """Return the probability of outputs that only one input can give, of the likelier side."""
    d1 = math.fsum(p for _, p, q in one.law if q == 0)
    return max(d1, math.fsum(q for _, p, q in one.law if p == 0))


def _sure(epsilon: float) -> str:
    """Return how sure an attacker becomes from even odds; never 100 %."""
    sure = 1 / (1 + math.exp(-epsilon))
    return numbers.share(sure) if sure < _NEARLY_CERTAIN else numbers.sure_at_most(epsilon)


def _pair(one: ExactCertificate, claim: PrivacyClaim) -> list[str]:
    point = one.point
    claimed, delta = numbers.plain(point.epsilon), numbers.plain(point.delta)
    by_mass = claim.counts_single_outputs
    epsilon = _exactly(one.epsilon_lower, point.epsilon, one.refuted and not by_mass)
    lower = _exactly(one.delta_lower, point.delta, one.refuted and not by_mass)
    mass = _exactly(one.probabilistic_delta, point.delta, one.refuted and by_mass)
    pure = f"; {numbers.about(one.epsilon, digits=_DIGITS)} at δ = 0" if point.delta else ""
    at_delta = f" at δ = {delta}" if point.delta else ""
    return [
        *row("ε exactly", f"{epsilon}{at_delta} (claimed: {claimed}){pure}"),
        *row("δ exactly", f"{lower} at ε = {claimed} (claimed: {delta})"),
        *row("δ of PDP", f"{mass} at ε = {claimed}{f' (claimed: {delta})' if by_mass else ''}"),
        *_own(one, claim),
        *row("inputs", one.pair),
        *adjacency(one),
        *_event(one.event),
        *row("outcomes", f"{numbers.count(len(one.law))} possible ones; nothing was drawn"),
    ]


def _own(one: ExactCertificate, claim: PrivacyClaim) -> list[str]:
    """Return the bound in the definition's own parameter, where it has one."""
    own = claim.own_lower(one.point.epsilon, one.delta_lower)
    if own is None:
        return []
    symbol, lower = own
    return row(f"{symbol} at least", f"{numbers.at_least(lower)}, from δ at this ε")


def _event(event: ExactEvent | None) -> list[str]:
    if event is None:
        return row("event", "none: both inputs give every output the same probability")
    cells = [
        ["P(E)", "d1", numbers.about(event.probability_d1, digits=_DIGITS)],
        ["Q(E)", "d2", numbers.about(event.probability_d2, digits=_DIGITS)],
    ]
    return [
        *row("event E", f"{event.words}  (speaks for {event.guess})"),
        *table(cells, left=(0, 1, 2)),
    ]


def _refutation(one: ExactCertificate, claim: PrivacyClaim) -> str:
    """Return why the claim fails."""
    event, point = one.event, one.point
    if event is None:
        raise ValueError(f"{one.pair}: refuted without an event")
    guess, against = event.guess, other(event.guess)
    ahead, behind = event.probability_d1, event.probability_d2
    if guess == "d2":
        ahead, behind = behind, ahead
    if claim.counts_single_outputs:
        allowed, seen = numbers.shares_apart(point.delta, ahead)
        times = f"more than e^{numbers.plain(point.epsilon)} times as likely for {guess}"
        mass = f"have probability {seen}; the claim allows {allowed}"
        return f"outputs {times} as for {against} {mass}"
    if behind == 0:
        share = numbers.share(ahead)
        return f"{quoted(event.words)} has probability {share} for {guess}, none for {against}"
    if point.delta == 0:
        allowed, ratio = numbers.apart(math.exp(point.epsilon), ahead / behind, digits=2)
        times = f"{quoted(event.words)} is {ratio} times as likely for {guess} as for {against}"
        return f"{times}; the claim allows {allowed}"
    most = math.exp(min(point.epsilon, 700.0)) * behind + point.delta
    allowed, seen = numbers.shares_apart(most, ahead)
    return (
        f"{quoted(event.words)} has probability {seen} for {guess}, {numbers.share(behind)} for "
        f"{against}; the claim allows {allowed} for {guess}"
    )


def _exactly(value: float, claimed: float, beyond: bool) -> str:
    """Return a number to some digits, to more when it takes them to see that it is too large."""
    if beyond and value > claimed:
        return numbers.at_least(value, above=claimed, digits=_DIGITS)
    return numbers.about(value, digits=_DIGITS)
