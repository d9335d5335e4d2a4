"""Describe certificates and events in sentences that readers understand without statistics.

`brief` shortens the description of an event; -v and JSON keep all its digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpaudit.auditing.underpowered import event_could_not
from dpaudit.certificates.certificate import (
    Certificate,
    DivergenceTest,
    EventCount,
    ExactEvent,
    FixedTest,
)
from dpaudit.certificates.result import AnyCertificate, AuditResult, Interrupted, Verdict
from dpaudit.claims import ProfilePoint
from dpaudit.inputs.neighbouring import EQUAL
from dpaudit.inputs.pairs import describe_pair
from dpaudit.reports import numbers
from dpaudit.reports.layout import Item, Row, row
from dpaudit.wording import counted, shortened

AnyEvent = EventCount | ExactEvent

MAX_EVENT_CHARACTERS = 72
_SCORE = (", where the score is ", ", where the score ")
# Matches the texts that separate the parts of an event's description. A description that is too
# long is cut in front of one of these texts.
_ENDS = re.compile(r", most of (?:all|it from) |, | or | and ")
# Matches a remark about rare outputs at the end of a description; it is removed if the description
# is too long.
_SEEN = re.compile(r" \(seen fewer than [\d,]+ times in [\d,]+ draws\)$")
# Matches a threshold with at least 6 decimals, such as 0.1234567 in `output < 0.1234567`, which
# `brief` may round.
_LONG = re.compile(r"(?<=[<>≤≥] )-?\d+\.\d{6,}(?![\d.e])|-?\d+\.\d{6,}(?= [<≤] )")
_DIGITS, _MANY = 6, 12

_ATTACKS_SHOWN = 4
# Two probabilities that are computed in different orders may differ by this rounding error.
_ROUNDING_ERROR = 1e-9
# Matches the beginning of an event about the whole output, such as `output < 1`. A sentence uses
# the plural, `outputs < 1`.
_OF_OUTPUT = re.compile(r"output (?=[<>≤≥])")
EVEN = f"An attacker who thinks d1 and d2 equally likely (50{numbers.GLUE}%)"
UNPROVEN = "No proof: other inputs, rarer events or more draws may still refute the claim."


def leading_event(certificate: Certificate) -> EventCount | None:
    """Return the event that violates the claim most: the difference between its share of the draws
    and the largest allowed share is largest. Return None if no event was tested."""
    events, point = certificate.fixed.events, certificate.point
    return max(events, key=lambda one: _excess(one, point), default=None)


def bound_source(result: AuditResult) -> str:
    """Return what gives the lower bound for ε: bets, an event, or a pair; "" for the event that the
    report shows, and for a bound of 0."""
    shown = result.decisive
    if not isinstance(shown, Certificate) or result.epsilon_lower <= 0:
        return ""
    if shown.epsilon_lower < result.epsilon_lower:
        comparable = [one for one in result.certificates if one.point == result.point]
        return f"from {max(comparable, key=lambda one: one.epsilon_lower).pair}"
    tests = [
        one for one in (shown.fixed, *shown.others) if one.epsilon_lower == result.epsilon_lower
    ]
    if not tests:
        return "from all bets together"
    if tests[0].method == "probabilistic" or not tests[0].events:
        return ""
    lower = {event.words: _own_lower(event, shown.point.delta) for event in tests[0].events}
    most, leading = max(lower, key=lambda words: lower[words]), leading_event(shown)
    # Of two events with bounds of one order, either one may be shown.
    if leading is not None and 2 * lower.get(leading.words, -math.inf) >= lower[most]:
        return ""
    return f"from the event “{brief(most)}”"


def _own_lower(event: EventCount, delta: float) -> float:
    """Return the lower bound for ε from the intervals of one event."""
    ahead, behind = event.interval_d1, event.interval_d2
    if event.guess == "d2":
        ahead, behind = behind, ahead
    return max(0.0, math.log(max(ahead[0] - delta, 1e-300) / behind[1]))


def shares(event: AnyEvent) -> tuple[float, float]:
    """Return two shares of draws (or exact probabilities) in the event.

    The first is for the input `event.guess`, which is expected to give the event more often; the
    second is for the other input.
    """
    if isinstance(event, ExactEvent):
        d1, d2 = event.probability_d1, event.probability_d2
    else:
        d1 = event.count_d1 / event.draws_d1 if event.draws_d1 else 0.0
        d2 = event.count_d2 / event.draws_d2 if event.draws_d2 else 0.0
    return (d1, d2) if event.guess == "d1" else (d2, d1)


def refutation(certificate: Certificate) -> str:
    """Return text that states an observation that refutes the claim, and the largest value that the
    claim allows for it."""
    event, point = leading_event(certificate), certificate.point
    test = certificate.divergence
    if test is not None and is_by_divergence(certificate):
        allowed, lower = numbers.apart(test.allowed, test.lower, digits=2)
        return f"{divergence(test)} is at least {lower}; the claim allows {allowed}"
    found = None  # the counts of the event alone do not show the refutation
    if certificate.ended_by_bets or (certificate.is_interrupted and certificate.refuted):
        return f"betting wealth reached {_wealth(certificate)}"
    witnesses = certificate.divergence_bets
    is_by_witnesses = witnesses is not None and witnesses.wealth * witnesses.alpha >= 1
    if is_by_witnesses and not _is_by_bets(certificate):
        return f"betting wealth on divergences reached {_wealth(certificate)}"
    if certificate.fixed.method == "probabilistic" and certificate.fixed.events:
        found = _violating_mass(certificate.fixed, point)
    elif event is not None and _excess(event, point) > 0:
        found = compared(event, point)
    if found is not None:
        return found
    if _is_by_bets(certificate):
        return f"betting wealth reached {_wealth(certificate)}"
    return f"p {numbers.p_at_most(certificate.p_value)}"


def _is_by_bets(certificate: Certificate) -> bool:
    return certificate.wealth * certificate.alpha_betting >= 1


def _wealth(certificate: Certificate) -> str:
    found, wealth = certificate.divergence_bets, certificate.wealth
    # Bets on events and bets on a divergence need the same wealth for a refutation, so only the
    # larger wealth is shown.
    reached = numbers.at_least(wealth if found is None else max(wealth, found.wealth))
    return f"{reached} (violation at {numbers.about(1 / certificate.alpha_betting)})"


def by_bets_alone(certificate: Certificate) -> str:
    """If the bets refute the claim, and the exact test of the shown event does not, return a
    sentence that says so. Return "" in all other cases."""
    fixed, event = certificate.fixed, leading_event(certificate)
    if certificate.ended_by_bets:
        return ""
    is_shown = fixed.p_value <= fixed.alpha or is_by_divergence(certificate)
    if not _is_by_bets(certificate) or is_shown or event is None:
        return ""
    within = certificate.evidence.refuted_after or certificate.draws
    obeys = _excess(event, certificate.point) <= 0
    alone = "obeys it alone" if obeys else "does not do so alone"
    return (
        f"all bets within {counted(within, 'draw')} together: wealth {_wealth(certificate)}. All "
        f"events together refute the claim; the one shown {alone}, on the "
        f"{counted(fixed.draws, 'draw')} of its test."
    )


def bets(certificate: Certificate) -> list[tuple[str, str]]:
    """Return (name, value) pairs for a table about a run without an exact test: bets refuted the
    claim, or it was interrupted."""
    chosen = certificate.draws - certificate.fixed.draws
    found = certificate.divergence_bets
    witnesses = [] if found is None else [("on divergences", numbers.at_least(found.wealth))]
    rows = [
        ("wealth", numbers.at_least(certificate.wealth)),
        *witnesses,
        ("violation at", numbers.about(1 / certificate.alpha_betting)),
        ("draws", f"{certificate.draws:,}"),
        ("ε at every moment", f"≥ {numbers.at_least(certificate.epsilon_betting)}"),
    ]
    if certificate.is_interrupted:
        return rows
    return [
        *rows,
        (
            "event",
            f"chosen on the first {chosen:,} draws, counted on the {certificate.fixed.draws:,}"
            " later ones; an illustration, no test",
        ),
    ]


def is_by_divergence(certificate: Certificate) -> bool:
    """Return whether the test of a Rényi divergence refutes the claim and the exact test of the
    event does not."""
    test, fixed = certificate.divergence, certificate.fixed
    return test is not None and test.p_value <= test.alpha and fixed.p_value > fixed.alpha


def divergence(test: DivergenceTest) -> str:
    """Return the name of the tested Rényi divergence, such as `D_2(P ‖ Q)`. P and Q are the output
    distributions of d1 and d2."""
    order = f"D_{numbers.plain(test.witness.order)}"
    return f"{order}(P ‖ Q)" if test.witness.from_d1 else f"{order}(Q ‖ P)"


def attacker(result: AuditResult, certificate: Certificate) -> str:
    """Return a sentence on how certain an attacker, who sees one output, can be of the input."""
    if result.epsilon_lower <= 0:
        return f"{EVEN} was not shown to learn anything from this mechanism's output."
    sure, allowed = numbers.sure(result.epsilon_lower), result.point
    text = f"{EVEN} can tell the inputs apart with at least {sure} certainty, "
    text += _seeing(result, certificate)
    text += f" (shown with {numbers.level(result.confidence)} confidence)"
    if allowed.delta == 0:
        text += f"; the claim allows {numbers.sure(allowed.epsilon, numbers.NEAREST)}"
    return f"{text}."


def _seeing(result: AuditResult, certificate: Certificate) -> str:
    """Return text on the outputs that make an attacker certain, and on their share of the draws."""
    fixed = certificate.fixed
    if not fixed.events or fixed.epsilon_lower < result.epsilon_lower:
        return "from some of the outputs"  # the bound is not that of the events of the exact test
    names = [f"E{place + 1}" for place in range(len(fixed.events))]
    where = "E, which occurs" if len(names) == 1 else f"{' or '.join(names)}, which occur"
    share = numbers.share((fixed.correct + fixed.wrong) / fixed.draws)
    return f"from an output in {where} in {share} of the draws"


def inputs(result: AuditResult, one: AnyCertificate, *, shown: bool = True) -> list[Item]:
    """Return a row about a pair of inputs: name, values and neighbouring relation.

    shown: whether the report shows all pairs of the audit; if False, the row says how many more
    there are.
    """
    values, relation = _values(result, one.pair), getattr(one, "adjacency", None)
    parts = [f"{one.pair}: {values}" if values else one.pair]
    parts += [f"adjacency {relation}"] if relation else []
    parts += [] if shown else [f"1 of {len(result.by_pair)} pairs (-v shows all)"]
    return row("inputs", "; ".join(parts))


def _values(result: AuditResult, name: str) -> str | None:
    """Return text for the inputs of the pair called `name`, as the user wrote them in the settings.
    Return None if the settings have no pair with this name."""
    settings = (result.request or {}).get("settings")
    pairs = settings.get("pairs", ()) if isinstance(settings, Mapping) else ()
    for pair in pairs if isinstance(pairs, Sequence) else ():
        if isinstance(pair, Mapping) and pair.get("name") == name:
            return describe_pair(as_lists(pair.get("d1")), as_lists(pair.get("d2")))
    return None


def as_lists(value: Any) -> Any:
    """Return a value of the settings in a request with lists in place of tuples, as in a file."""
    if isinstance(value, Mapping):
        return {key: as_lists(part) for key, part in value.items()}
    return [as_lists(part) for part in value] if isinstance(value, list | tuple) else value


def allowance(name: str, event: AnyEvent, point: ProfilePoint) -> Row:
    """Return a row with the largest probability that the claim allows for an event, and its
    formula.

    name: short name of the event: `E`, or `E1` and so on in a table of several events.
    """
    label = "allowed" if name == "E" else f"allowed {name}"
    letter, (ahead, behind) = "P" if event.guess == "d1" else "Q", shares(event)
    factor = f"e^{numbers.plain(point.epsilon)} · " if point.epsilon else ""
    plus = f" + {numbers.plain(point.delta)}" if point.delta else ""
    limit, most = f"{factor}{numbers.share(behind)}{plus}", _most(behind, point)
    if most >= 1:
        limit = f"min(1, {limit})"
    written = numbers.share(most, numbers.UP)
    if ahead - most > _ROUNDING_ERROR:  # enough digits to show the difference, as in the headline
        written, _ = numbers.shares_apart(most, ahead)
    if not factor and not plus:
        return Row(label, f"{letter}({name}) ≤ {written}")
    return Row(label, f"{letter}({name}) ≤ {limit} = {written}")


def leaves_open(result: AuditResult) -> bool:
    """Return whether the audit found no violation, so that more draws or other inputs may still
    refute the claim."""
    return result.verdict is Verdict.NO_VIOLATION_FOUND


def untested(ignored: Iterable[str]) -> str:
    """Return a sentence on what no attack examined; "" if it is nothing.

    ignored: entries of `Certificate.ignored`, also of several audits.
    """
    listed = " and ".join(dict.fromkeys(ignored))
    return f"Not tested: {listed}." if listed else ""


def is_expected(result: AuditResult) -> bool:
    """Return whether an audit passes: its verdict is as expected, it had the required power, and no
    warning fails it (as with --strict)."""
    is_able = result.underpowered is None
    return result.meets_expectation and is_able and not result.failing_warnings


def unable(result: AuditResult) -> str:
    """Return why an audit without a violation does not pass: `under-powered` or `interrupted`."""
    return "interrupted" if isinstance(result.ending, Interrupted) else "under-powered"


def verdict_of(result: AuditResult) -> str:
    """Return the verdict as text. Append the reason if the audit does not pass, and `expected` if
    the user stated this verdict beforehand."""
    verdict = result.verdict.value
    if result.underpowered is not None:
        return f"{verdict} ({unable(result)})"
    if result.failing_warnings:
        return f"{verdict} (failed by warnings)"
    if result.expect is None:
        return verdict
    wanted = Verdict.VIOLATION.value if result.expect == "violation" else "no violation"
    return f"{verdict} (expected)" if is_expected(result) else f"{verdict} (expected: {wanted})"


def tried(certificate: Certificate) -> str:
    """Return text that lists the tried attacks with the bound on ε that each predicted, largest
    first, and the attacks that were not tried, with the reason."""
    promised: dict[str, float] = {}
    for one in certificate.attacks:
        if one.predicted is not None:
            promised[one.attack] = max(one.predicted, promised.get(one.attack, 0.0))
    order = sorted(promised, key=lambda name: -promised[name])
    listed = [f"{name} {numbers.about(promised[name])}" for name in order[:_ATTACKS_SHOWN]]
    if len(order) > _ATTACKS_SHOWN:
        listed.append(f"{len(order) - _ATTACKS_SHOWN} more")
    text = f"predicted bound: {', '.join(listed)}"
    skipped = [f"{one.attack} ({one.skipped})" for one in certificate.attacks if one.skipped]
    return f"{text}; not tried: {', '.join(skipped)}" if skipped else text


def detectable(certificate: Certificate) -> str:
    """Return a sentence on the leaks that would be refuted in 9 of 10 such runs, or on the reason
    why there are none.

    It states the smallest true ε that would be refuted with the tested event. It also states the
    smallest probability of an output that only one input gives and that would be refuted.
    """
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
        if rare is None:
            return f"{event}."
        return f"{event}; so would {output}." if is_rare_caught else f"{event}; {output} would be."
    if fixed.events:
        event = f"This event could have shown no leak: {reason}."
    elif is_rare_caught:
        event = "No event looked worth testing."
    else:
        return "No leak would have been caught: no event looked worth testing."
    said = f" {output[0].upper()}{output[1:]} would be refuted in 9 of 10 runs."
    return event if rare is None else f"{event}{said}"


def unseen(certificate: Certificate) -> str:
    """Return a sentence on test draws that resemble no draw used for learning.

    It states their number, and the largest δ of a leak that could be hidden in such outputs. Return
    "" if these draws were not counted.
    """
    found = certificate.unseen
    if found is None or EQUAL in certificate.warnings:
        return ""
    new, draws = found.count_d1 + found.count_d2, certificate.fixed.draws
    by_input = f"{found.count_d1:,} of d1, {found.count_d2:,} of d2"
    were = f"None of {draws:,} test draws was"
    if new:
        were = f"{new:,} of {draws:,} test draws ({by_input}) {'was' if new == 1 else 'were'}"
    ranges = " (for numbers: outside the range seen)" if found.ranges else ""
    return (
        f"{were} unlike any draw seen while learning{ranges}. Such outputs may hide a leak of "
        f"up to δ = {numbers.at_most(found.delta)}; rare outputs that were seen may hide more."
    )


def caught(epsilon: float, point: ProfilePoint, what: str) -> str:
    """Return the sentence `With WHAT, a true ε of EPSILON or more (at δ = DELTA) would be refuted
    in 9 of 10 runs`.

    point: point (ε, δ) of the tested claim. If its δ is 0, the sentence does not mention δ.
    """
    at = f" (at δ = {numbers.plain(point.delta)})" if point.delta else ""
    least = numbers.at_most(epsilon)
    return f"With {what}, a true ε of {least} or more{at} would be refuted in 9 of 10 runs"


def seen_shares(event: EventCount, point: ProfilePoint) -> tuple[str, str]:
    """Return the event's share of the draws of d1, and of the draws of d2, as percentages; "" for
    an input without draws. A share above the limit of the claim has enough digits to show that it
    is above, as in the headline (first sentence) of the report."""
    ahead, behind = shares(event)
    most = _most(behind, point)
    larger = (
        numbers.shares_apart(most, ahead)[1]
        if ahead - most > _ROUNDING_ERROR
        else numbers.share(ahead)
    )
    both = (larger, numbers.share(behind))
    d1, d2 = both if event.guess == "d1" else both[::-1]
    return d1 if event.draws_d1 else "", d2 if event.draws_d2 else ""


def counted_rows(name: str, event: EventCount, point: ProfilePoint) -> list[tuple[str, ...]]:
    """Return two rows of a table, for d1 and for d2: event, input, counts, share, and interval for
    the probability."""
    share_d1, share_d2 = seen_shares(event, point)
    return [
        (f"P({name})", "d1", f"{event.count_d1:,} of {event.draws_d1:,}", share_d1,
         _interval(event.interval_d1)),
        (f"Q({name})", "d2", f"{event.count_d2:,} of {event.draws_d2:,}", share_d2,
         _interval(event.interval_d2)),
    ]  # fmt: skip


def _interval(interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{numbers.share(low, numbers.DOWN)} to {numbers.share(high, numbers.UP)}"


def _subject(words: str) -> tuple[str, str]:
    """Return (subject, ending of its verb) for a sentence about an event: (`outputs < 1`, "")
    for "outputs < 1 appear …", or (the event in quotes, "s") for "“length of output is 2”
    appears …"."""
    short = brief(words)
    if _OF_OUTPUT.match(words) and " or " not in words and " and " not in words:
        return _OF_OUTPUT.sub("outputs ", short, count=1), ""
    return f"“{short}”", "s"


def compared(event: AnyEvent, point: ProfilePoint) -> str:
    """Return text that compares the event's frequency for the two inputs with the largest frequency
    that the claim allows."""
    subject, ending = _subject(event.words)
    guess, (ahead, behind) = event.guess, shares(event)
    appear, against = f"{subject} appear{ending}", "d2" if guess == "d1" else "d1"
    of = f"of {'outputs' if isinstance(event, ExactEvent) else 'draws'} for {guess}"
    if behind == 0:
        limit = f"; the claim allows {numbers.share(point.delta)}" if point.delta else ""
        return f"{appear} in {numbers.share(ahead)} {of}, never for {against}{limit}"
    if point.delta == 0:
        both = math.exp(point.epsilon), ahead / behind
        limit, ratio = numbers.apart(*both, digits=2, nearest=True)
        return f"{appear} {ratio} times as often for {guess}; the claim allows {limit}"
    limit, seen = numbers.shares_apart(_most(behind, point), ahead)
    share = f"in {seen} {of}, {numbers.share(behind)} for {against}"
    return f"{appear} {share}; the claim allows {limit}"


def _most(behind: float, point: ProfilePoint) -> float:
    """Return the largest probability that the claim allows for an event under one input: min(1, e^ε
    · behind + δ).

    behind: probability of the event under the other input.
    """
    return min(1.0, math.exp(min(point.epsilon, 700.0)) * behind + point.delta)


def _excess(event: EventCount, point: ProfilePoint) -> float:
    ahead, behind = shares(event)
    return ahead - _most(behind, point)


def _violating_mass(fixed: FixedTest, point: ProfilePoint) -> str | None:
    """Return text about the outputs that are more than e^ε times as likely for d1 as for d2, which
    is certified for each output. The text states the share of these outputs in the draws of d1. If
    outputs that are more likely for d2 have a larger share in the draws of d2, the text is about
    them instead. Return None if the share is at most the claimed δ."""
    mass = {
        guess: sum(shares(event)[0] for event in fixed.events if event.guess == guess)
        for guess in ("d1", "d2")
    }
    guess = max(mass, key=lambda one: mass[one])
    if mass[guess] <= point.delta:
        return None
    allowed, seen = numbers.shares_apart(point.delta, mass[guess])
    return (
        f"outputs more than e^{numbers.plain(point.epsilon)} times as likely for {guess} appear in "
        f"{seen} of its draws; the claim allows {allowed}"
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
    of_score = any(one in words for one in _SCORE)
    for found in reversed(list(_ENDS.finditer(line))):
        kept = line[: found.start()]
        shown = kept if of_score else f"{kept} and more" if _joins(line) else f"{kept} or others"
        if len(shown) <= MAX_EVENT_CHARACTERS and _is_whole(kept):
            return shown
    return shortened(line, MAX_EVENT_CHARACTERS)


def _rounded(line: str) -> str:
    """Return `line` with its thresholds rounded to 6 digits. If two thresholds would become
    equal, none is rounded. A threshold very near to a number of 6 digits, such as
    0.30000000000000004, is not rounded either: an output of 0.3 may lie on either side of it."""
    if "'" in line or '"' in line:  # a quoted output may contain text that looks like a threshold
        return line
    found = _LONG.findall(line)
    short = {one: f"{float(one):.{_DIGITS}g}" for one in found}
    if len(set(short.values())) < len(short):
        return line
    # A threshold such as 0.30000000000000004, the float next to 0.3, keeps all digits. Rounded to
    # 0.3, it would not show on which side of the threshold an output of 0.3 lies.
    plain = [one for one in short if float(short[one]) != float(f"{float(one):.{_MANY}g}")]
    return _LONG.sub(lambda one: short[one[0]] if one[0] in plain else one[0], line)


def _joins(line: str) -> bool:
    """Return whether the parts of an event's description must all hold: they are joined by " and ",
    and " or " does not occur."""
    return " and " in line and " or " not in line


def _is_whole(part: str) -> bool:
    """Return whether `part`, the beginning of an event's description, has no bracket or quote left
    open."""
    part = re.sub(r"\\.", "", part)  # an escaped quote does not end a quoted text
    pairs = all(part.count(one) == part.count(other) for one, other in ("()", "[]", "{}"))
    return pairs and part.count("'") % 2 == 0 and part.count('"') % 2 == 0
