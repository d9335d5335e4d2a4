"""What a certificate found, in sentences that need no statistics to read."""

from __future__ import annotations

import math

from dpaudit.certificates.exact_certificate import ExactCertificate
from dpaudit.certificates.result import AuditResult, Certificate, EventCount, FixedTest
from dpaudit.claims import ProfilePoint
from dpaudit.reports import numbers
from dpaudit.reports.layout import row
from dpaudit.reports.numbers import GLUE
from dpaudit.wording import counted

_LONGEST_QUOTE = 60
_ATTACKS_SHOWN = 4
UNPROVEN = (
    "This proves nothing beyond that: other inputs, a rarer event or more draws may still refute "
    "the claim."
)


def leading_event(certificate: Certificate) -> EventCount | None:
    """Return the event that goes furthest beyond what the claim allows; None without events."""
    events, point = certificate.fixed.events, certificate.point
    return max(events, key=lambda one: _excess(one, point), default=None)


def shares(event: EventCount) -> tuple[float, float]:
    """Return the observed shares of the event: of the input it speaks for, and of the other."""
    d1 = event.count_d1 / event.draws_d1 if event.draws_d1 else 0.0
    d2 = event.count_d2 / event.draws_d2 if event.draws_d2 else 0.0
    return (d1, d2) if event.guess == "d1" else (d2, d1)


def refutation(certificate: Certificate) -> str:
    """Return why the claim is refuted: what was seen, beside what the claim allows."""
    event, point = leading_event(certificate), certificate.point
    if certificate.fixed.method == "probabilistic" and certificate.fixed.events:
        found = _violating_mass(certificate.fixed, point)
    else:
        found = None if event is None else _excessive(event, point)
    return found or _evidence(certificate)


def attacker(result: AuditResult) -> str:
    """Return what the lower bound means for somebody who guesses the input from the output."""
    even = f"An attacker who thinks d1 and d2 equally likely (50{GLUE}%)"
    if result.epsilon_lower <= 0:
        return f"{even} was not shown to learn anything from this mechanism's output."
    allowed = result.point
    limit = (
        f"; the claim allows {numbers.sure_at_most(allowed.epsilon)}" if allowed.delta == 0 else ""
    )
    sure = numbers.sure(result.epsilon_lower)
    return f"{even} can become at least {sure} sure which one it was, from one output{limit}."


def adjacency(certificate: Certificate | ExactCertificate) -> list[str]:
    """Return the row of the relation between the inputs; none for draws made elsewhere."""
    return [] if certificate.adjacency is None else row("adjacency", certificate.adjacency)


def tried(certificate: Certificate) -> str:
    """Return which attacks were considered: the bound that each promised, the best one first, and
    why others were left out."""
    promised: dict[str, float] = {}
    for one in certificate.attacks:
        if one.predicted is not None:
            promised[one.attack] = max(one.predicted, promised.get(one.attack, 0.0))
    order = sorted(promised, key=lambda name: -promised[name])
    listed = [f"{name} {numbers.about(promised[name])}" for name in order[:_ATTACKS_SHOWN]]
    if len(order) > _ATTACKS_SHOWN:
        listed.append(f"{len(order) - _ATTACKS_SHOWN} more")
    text = f"bound promised by selection draws: {', '.join(listed)}"
    skipped = [f"{one.attack} ({one.skipped})" for one in certificate.attacks if one.skipped]
    return f"{text}; not tried: {', '.join(skipped)}" if skipped else text


def detectable(certificate: Certificate) -> str:
    """Return the smallest leak that this run would have caught, or why there is none."""
    fixed = certificate.fixed
    if not fixed.events:
        return "No ε would have been detected: no event looked worth testing."
    if math.isinf(fixed.detectable_epsilon):
        guesses = counted(fixed.correct + fixed.wrong, "guess")
        return (
            f"No ε would have been detected: {guesses} cannot refute ε = "
            f"{numbers.plain(certificate.point.epsilon)}, even if all of them are right "
            "(more draws help)."
        )
    return caught(fixed.detectable_epsilon, certificate.point, "visible to this event")


def caught(epsilon: float, point: ProfilePoint, where: str) -> str:
    """Return that a leak of so large an ε would have been caught."""
    at = f" (at δ = {numbers.plain(point.delta)})" if point.delta else ""
    return (
        f"A leak of ε ≥ {numbers.at_most(epsilon)}{at} {where} would have been caught about 9 "
        "times in 10."
    )


def quoted(words: str) -> str:
    """Return the words of an event in quotation marks, cut to fit a line."""
    short = words if len(words) <= _LONGEST_QUOTE else f"{words[: _LONGEST_QUOTE - 1]}…"
    return f"“{short}”"


def other(guess: str) -> str:
    """Return the input that an event does not speak for."""
    return "d2" if guess == "d1" else "d1"


def _allowed(event: EventCount, point: ProfilePoint) -> float:
    """Return the most that the claim allows for one input, given what was seen of the other."""
    behind = shares(event)[1]
    return min(1.0, math.exp(min(point.epsilon, 700.0)) * behind + point.delta)


def _excess(event: EventCount, point: ProfilePoint) -> float:
    return shares(event)[0] - _allowed(event, point)


def _excessive(event: EventCount, point: ProfilePoint) -> str | None:
    """Return the event's excess; None when its counts alone do not show one."""
    if _excess(event, point) <= 0:
        return None
    ahead, behind = shares(event)
    words, guess, against = quoted(event.words), event.guess, other(event.guess)
    if behind == 0:
        return (
            f"{words} came up in {numbers.share(ahead)} of the draws for {guess}, "
            f"never for {against}"
        )
    if point.delta == 0:
        allowed, ratio = numbers.apart(math.exp(point.epsilon), ahead / behind, digits=2)
        times = f"{words} is {ratio} times as frequent for {guess} as for {against}"
        return f"{times}; the claim allows {allowed}"
    allowed, seen = numbers.shares_apart(_allowed(event, point), ahead)
    return (
        f"{words} came up in {seen} of the draws for {guess}, "
        f"{numbers.share(behind)} for {against}; the claim allows {allowed} for {guess}"
    )


def _violating_mass(fixed: FixedTest, point: ProfilePoint) -> str | None:
    """Return how often the certified atoms came up, for the input that they accuse most."""
    mass = {guess: _mass(fixed.events, guess) for guess in ("d1", "d2")}
    guess = max(mass, key=lambda one: mass[one])
    if mass[guess] <= point.delta:
        return None
    allowed, seen = numbers.shares_apart(point.delta, mass[guess])
    return (
        f"outputs more than e^{numbers.plain(point.epsilon)} times as likely for {guess} as for "
        f"{other(guess)} came up in {seen} of its draws; the claim allows {allowed}"
    )


def _mass(events: tuple[EventCount, ...], guess: str) -> float:
    return sum(shares(event)[0] for event in events if event.guess == guess)


def _evidence(certificate: Certificate) -> str:
    if certificate.wealth * certificate.alpha_betting >= 1:
        needed = numbers.about(1 / certificate.alpha_betting)
        return (
            f"bets against the claim multiplied their stake by "
            f"{numbers.at_least(certificate.wealth)}; {needed} refutes it"
        )
    return f"p {numbers.p_at_most(certificate.p_value)}"
