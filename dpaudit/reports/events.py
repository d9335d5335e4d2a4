"""Describe events, and how an event refutes a claim, in the words of the field. P is the
distribution of the outputs for d1, Q that for d2."""

from __future__ import annotations

import math
import re

from dpaudit.certificates.certificate import (
    Certificate,
    DivergenceTest,
    EventCount,
    ExactEvent,
    FixedTest,
)
from dpaudit.claims import ProfilePoint
from dpaudit.reports import numbers
from dpaudit.reports.layout import Row
from dpaudit.wording import counted, shortened

AnyEvent = EventCount | ExactEvent

MAX_EVENT_CHARACTERS = 72
_SCORE = (", where the score is ", ", where the score ")
# A description that is too long is cut in front of one of these texts.
_ENDS = re.compile(r", most of (?:all|it from) |, | or | and ")
# A remark about rare outputs, which a description that is too long goes without.
_SEEN = re.compile(r" \(seen fewer than [\d,]+ times in [\d,]+ draws\)$")
# A threshold with at least 6 decimals, such as 0.1234567 in `output < 0.1234567`.
_LONG = re.compile(r"(?<=[<>≤≥] )-?\d+\.\d{6,}(?![\d.e])|-?\d+\.\d{6,}(?= [<≤] )")
_DIGITS, _MANY = 6, 12
# Two probabilities that are computed in different orders may differ by this rounding error.
_ROUNDING_ERROR = 1e-9
# An event about the whole output, such as `output < 1`, of which a sentence uses the plural.
_OF_OUTPUT = re.compile(r"output (?=[<>≤≥])")
_BY_EVENTS = "all events together exceed what the claim allows"
_BY_DIVERGENCES = "the Rényi divergences of the outputs exceed what the claim allows"


def shares(event: AnyEvent) -> tuple[float, float]:
    """Return the event's share of the draws of its guess, and its share of the draws of the other
    input."""
    if isinstance(event, ExactEvent):
        d1, d2 = event.probability_d1, event.probability_d2
    else:
        d1 = event.count_d1 / event.draws_d1 if event.draws_d1 else 0.0
        d2 = event.count_d2 / event.draws_d2 if event.draws_d2 else 0.0
    return (d1, d2) if event.guess == "d1" else (d2, d1)


def leading_event(certificate: Certificate) -> EventCount | None:
    """Return the event whose share exceeds its largest allowed share most; None if no events."""
    return max(
        certificate.fixed.events, key=lambda event: _excess(event, certificate.point), default=None
    )


def refutation(certificate: Certificate) -> tuple[str, str]:
    """Return two texts about a certificate that refutes its claim. The first says when: after which
    number of draws bets refuted it, such as ` after 1,080 draws`, or "". The second says what was
    observed, and what the claim allows."""
    event, point, test = leading_event(certificate), certificate.point, certificate.divergence
    fixed, is_by_events = certificate.fixed, _is_by_bets(certificate)
    if test is not None and is_by_divergence(certificate):
        allowed, lower = numbers.apart(test.allowed, test.lower, digits=2)
        return "", f"{divergence(test)} is at least {lower}; the claim allows {allowed}"
    moment = f" after {counted(certificate.evidence.refuted_after or certificate.draws, 'draw')}"
    if certificate.is_interrupted and certificate.refuted:
        return moment, _BY_EVENTS if is_by_events else _BY_DIVERGENCES
    if _is_by_bets_on_divergences(certificate) and not is_by_events:
        return moment, _BY_DIVERGENCES
    if certificate.ended_by_bets:
        if event is None or fixed.method == "probabilistic" or _excess(event, point) <= 0:
            return moment, _BY_EVENTS
        # The event only illustrates the bets; with few counts, it would seem to be the evidence.
        together = "" if _is_clear(event, point) else " by all events together"
        return f"{moment}{together}", compared(event, point)
    words = None
    if fixed.method == "probabilistic" and fixed.events:
        words = _violating_mass(fixed, point)
    elif event is not None and _excess(event, point) > 0:
        words = compared(event, point)
    if words is None and is_by_events:
        return moment, _BY_EVENTS
    return "", words or f"p {numbers.p_at_most(certificate.p_value)}"


def compared(event: AnyEvent, point: ProfilePoint) -> str:
    """Return words that compare an event's frequencies for both inputs with the claim."""
    guess, (mass, other_mass) = event.guess, shares(event)
    against = "d2" if guess == "d1" else "d1"
    appear = appears(event.words)
    of = f"of {'outputs' if isinstance(event, ExactEvent) else 'draws'} for {guess}"
    if other_mass == 0:
        limit = f"; the claim allows {numbers.share(point.delta)}" if point.delta else ""
        return f"{appear} in {numbers.share(mass)} {of}, never for {against}{limit}"
    if point.delta == 0:
        allowed, ratio = numbers.apart(
            math.exp(point.epsilon), mass / other_mass, digits=2, nearest=True
        )
        return f"{appear} {ratio} times as often for {guess}; the claim allows {allowed}"
    allowed, frequency = numbers.shares_apart(_limit(other_mass, point), mass)
    share = f"in {frequency} {of}, {numbers.share(other_mass)} for {against}"
    return f"{appear} {share}; the claim allows {allowed}"


def evidence_of_bets(certificate: Certificate) -> str:
    """Return a sentence with the wealth of the bets, if nothing else refutes the claim; else ""."""
    fixed, event = certificate.fixed, leading_event(certificate)
    is_shown = fixed.p_value <= fixed.alpha or is_by_divergence(certificate)
    if certificate.ended_by_bets or is_shown:
        return ""
    within = f"within {counted(certificate.evidence.refuted_after or certificate.draws, 'draw')}"
    if not _is_by_bets(certificate):
        if not _is_by_bets_on_divergences(certificate):
            return ""
        return f"all bets on divergences {within} together: wealth {_wealth(certificate)}."
    if event is None:
        return ""
    obeys = _excess(event, certificate.point) <= 0
    alone = "obeys it alone" if obeys else "does not do so alone"
    return (
        f"all bets {within} together: wealth {_wealth(certificate)}. All "
        f"events together refute the claim; the one shown {alone}, on the "
        f"{counted(fixed.draws, 'draw')} of its test."
    )


def bets(certificate: Certificate) -> list[tuple[str, str]]:
    """Return (name, value) pairs about a run that ended without an exact test, by bets or early."""
    chosen = certificate.draws - certificate.fixed.draws
    divergences = certificate.divergence_bets
    rows = [("wealth", numbers.at_least(certificate.wealth))]
    if divergences is not None:
        rows.append(("on divergences", numbers.at_least(divergences.wealth)))
    rows += [
        ("violation at", numbers.about(1 / certificate.alpha_betting)),
        ("draws", f"{certificate.draws:,}"),
        ("ε at every moment", f"≥ {numbers.at_least(certificate.epsilon_betting)}"),
    ]
    if not certificate.is_interrupted:
        use = f"chosen on the first {chosen:,} draws, counted on the {certificate.fixed.draws:,}"
        rows.append(("event", f"{use} later ones; an illustration, no test"))
    return rows


def _is_by_bets(certificate: Certificate) -> bool:
    return certificate.wealth * certificate.alpha_betting >= 1


def _is_by_bets_on_divergences(certificate: Certificate) -> bool:
    bets_made = certificate.divergence_bets
    return bets_made is not None and bets_made.wealth * bets_made.alpha >= 1


def _wealth(certificate: Certificate) -> str:
    """Return the larger of the wealths on events and on divergences: both need the same wealth."""
    divergences, wealth = certificate.divergence_bets, certificate.wealth
    reached = wealth if divergences is None else max(wealth, divergences.wealth)
    needed = numbers.about(1 / certificate.alpha_betting)
    return f"{numbers.at_least(reached)} (violation at {needed})"


def is_by_divergence(certificate: Certificate) -> bool:
    """Return whether a Rényi divergence refutes the claim and the exact test does not."""
    test, fixed = certificate.divergence, certificate.fixed
    return test is not None and test.p_value <= test.alpha and fixed.p_value > fixed.alpha


def divergence(test: DivergenceTest) -> str:
    """Return the name of the tested Rényi divergence, such as `D_2(P ‖ Q)`."""
    order = f"D_{numbers.plain(test.witness.order)}"
    return f"{order}(P ‖ Q)" if test.witness.from_d1 else f"{order}(Q ‖ P)"


def allowance(name: str, event: AnyEvent, point: ProfilePoint) -> Row:
    """Return a row with the largest probability that the claim allows for an event, and its
    formula. `name` is short: `E`, or `E1` and so on in a table of several events."""
    label = "allowed" if name == "E" else f"allowed {name}"
    letter, (mass, other_mass) = "P" if event.guess == "d1" else "Q", shares(event)
    factor = f"e^{numbers.plain(point.epsilon)} · " if point.epsilon else ""
    plus = f" + {numbers.plain(point.delta)}" if point.delta else ""
    formula, limit = f"{factor}{numbers.share(other_mass)}{plus}", _limit(other_mass, point)
    if limit >= 1:
        formula = f"min(1, {formula})"
    written = numbers.share(limit, numbers.UP)
    if mass - limit > _ROUNDING_ERROR:  # enough digits to show the difference, as in the headline
        written, _ = numbers.shares_apart(limit, mass)
    if not factor and not plus:
        return Row(label, f"{letter}({name}) ≤ {written}")
    return Row(label, f"{letter}({name}) ≤ {formula} = {written}")


def counted_rows(name: str, event: EventCount, point: ProfilePoint) -> list[tuple[str, ...]]:
    """Return two rows, for d1 and for d2: event, input, counts, share, and interval."""
    share_d1, share_d2 = _seen_shares(event, point)
    return [
        (f"P({name})", "d1", f"{event.count_d1:,} of {event.draws_d1:,}", share_d1,
         _interval(event.interval_d1)),
        (f"Q({name})", "d2", f"{event.count_d2:,} of {event.draws_d2:,}", share_d2,
         _interval(event.interval_d2)),
    ]  # fmt: skip


def _seen_shares(event: EventCount, point: ProfilePoint) -> tuple[str, str]:
    """Return the shares for d1 and d2 as text, with digits that show which exceeds its limit."""
    mass, other_mass = shares(event)
    limit = _limit(other_mass, point)
    is_above = mass - limit > _ROUNDING_ERROR
    larger = numbers.shares_apart(limit, mass)[1] if is_above else numbers.share(mass)
    written = (larger, numbers.share(other_mass))
    d1, d2 = written if event.guess == "d1" else written[::-1]
    return d1 if event.draws_d1 else "", d2 if event.draws_d2 else ""


def _interval(interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{numbers.share(low, numbers.DOWN)} to {numbers.share(high, numbers.UP)}"


def appears(words: str) -> str:
    """Return subject and verb of a sentence about an event, such as `outputs < 1 appear`."""
    if _OF_OUTPUT.match(words) and " or " not in words and " and " not in words:
        return f"{_OF_OUTPUT.sub('outputs ', brief(words), count=1)} appear"
    return f"“{brief(words)}” appears"


def _limit(other_mass: float, point: ProfilePoint) -> float:
    """Return the largest probability that the claim allows: min(1, e^ε·other_mass + δ)."""
    return min(1.0, math.exp(min(point.epsilon, 700.0)) * other_mass + point.delta)


def _excess(event: EventCount, point: ProfilePoint) -> float:
    mass, other_mass = shares(event)
    return mass - _limit(other_mass, point)


def _is_clear(event: EventCount, point: ProfilePoint) -> bool:
    """Return whether the intervals of an event, too, exceed what the claim allows."""
    interval, other_interval = event.interval_d1, event.interval_d2
    if event.guess == "d2":
        interval, other_interval = other_interval, interval
    return interval[0] > _limit(other_interval[1], point)


def _violating_mass(fixed: FixedTest, point: ProfilePoint) -> str | None:
    """Return words for the share of outputs with a loss above ε; None if it is at most δ."""
    mass = {
        guess: sum(shares(event)[0] for event in fixed.events if event.guess == guess)
        for guess in ("d1", "d2")
    }
    guess = max(mass, key=lambda name: mass[name])
    if mass[guess] <= point.delta:
        return None
    allowed, frequency = numbers.shares_apart(point.delta, mass[guess])
    return (
        f"outputs more than e^{numbers.plain(point.epsilon)} times as likely for {guess} appear in "
        f"{frequency} of its draws; the claim allows {allowed}"
    )


def brief(words: str) -> str:
    """Return the description of an event in at most `MAX_EVENT_CHARACTERS` characters, with
    thresholds rounded to 6 digits."""
    line = _rounded(" ".join(words.split()))
    for old, new in zip(_SCORE, (", ", ", which "), strict=True):
        line = line.replace(old, new, 1)
    if len(line) > MAX_EVENT_CHARACTERS:
        line = _SEEN.sub("", line)
    if len(line) <= MAX_EVENT_CHARACTERS:
        return line
    is_of_score = any(text in words for text in _SCORE)
    # Parts that must all hold are joined by " and ".
    more = "and more" if " and " in line and " or " not in line else "or others"
    for end in reversed(list(_ENDS.finditer(line))):
        beginning = line[: end.start()]
        short = beginning if is_of_score else f"{beginning} {more}"
        if len(short) <= MAX_EVENT_CHARACTERS and _is_whole(beginning):
            return short
    return shortened(line, MAX_EVENT_CHARACTERS)


def _rounded(line: str) -> str:
    """Return a description with thresholds rounded to 6 digits, unless two would become equal."""
    if "'" in line or '"' in line:  # a quoted output may contain text that looks like a threshold
        return line
    thresholds = _LONG.findall(line)
    short = {text: f"{float(text):.{_DIGITS}g}" for text in thresholds}
    if len(set(short.values())) < len(short):
        return line
    # A threshold such as 0.30000000000000004, the float next to 0.3, keeps all digits. Rounded to
    # 0.3, it would not show on which side of the threshold an output of 0.3 lies.
    plain = [text for text in short if float(short[text]) != float(f"{float(text):.{_MANY}g}")]
    return _LONG.sub(lambda match: short[match[0]] if match[0] in plain else match[0], line)


def _is_whole(part: str) -> bool:
    """Return whether no bracket or quote is left open."""
    part = re.sub(r"\\.", "", part)  # an escaped quote does not end a quoted text
    brackets = all(part.count(left) == part.count(right) for left, right in ("()", "[]", "{}"))
    return brackets and part.count("'") % 2 == 0 and part.count('"') % 2 == 0
