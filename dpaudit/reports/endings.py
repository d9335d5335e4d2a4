"""Make the rows and sentences of a report for each kind of result; `VIEWS` maps a kind to its
functions. Results of the kinds `Sampled`, `Recorded` and `Failed` use the same functions. A failed
audit shows the pairs of inputs that were complete before the error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dpaudit.auditing.underpowered import is_mostly_new
from dpaudit.certificates.certificate import (
    Certificate,
    EpsilonInterval,
    ExactCertificate,
    FirstFailure,
    FixedTest,
)
from dpaudit.certificates.result import (
    AuditResult,
    Canaries,
    Exact,
    Failed,
    Interrupted,
    Recorded,
    Sampled,
    Verdict,
)
from dpaudit.claims import PrivacyClaim
from dpaudit.inputs.neighbouring import EQUAL
from dpaudit.reports import bounds, canaries, findings, numbers, searched, trace
from dpaudit.reports.bounds import own_bound
from dpaudit.reports.findings import EVEN, allowance, brief, compared, inputs, shares
from dpaudit.reports.layout import BELOW, Item, paragraph, row, table
from dpaudit.wording import counted

# Largest number of types of exceptions that a report without -v shows.
_MAX_EXCEPTIONS = 3
_OTHER_PAIR = (
    "These draws show no clear difference between d1 and d2. If another pair may leak, dpaudit "
    "search looks for it."
)


def _draws_said(result: AuditResult, ending: Sampled | Failed) -> str:
    """Return the headline of an audit that used draws: the reason for the verdict."""
    if isinstance(ending, Failed):
        return ending.error or "the audit did not end"
    level = bounds.decided_at(result)
    if result.verdict is Verdict.VIOLATION:
        is_outside = result.searched is not None and searched.is_outside(result)
        where = " outside the space" if is_outside else ""
        return f"refuted at {level}{where}: {findings.refutation(ending.deciding)}"
    return f"{counted(result.draws, 'draw')} do not refute {result.claim.describe()} at {level}"


def _interrupted_said(result: AuditResult, ending: Interrupted) -> str:
    """Return the headline of an interrupted audit."""
    last, point = ending.certificates[-1], result.point
    is_planned = last.evidence.budget > last.draws
    made = (
        f"{last.draws:,} of {last.evidence.budget:,} draws"
        if is_planned
        else f"{last.draws:,} draws"
    )
    if ending.pairs > 1:
        made += f" of pair {len(ending.certificates)} of {ending.pairs}"
    ended = f"interrupted after {made}"
    if result.verdict is Verdict.VIOLATION:
        return f"{_draws_said(result, ending)}; {ended}"
    at = f" at δ = {numbers.plain(point.delta)}" if point.delta else ""
    bets = " (bets)" if ending.deciding.is_interrupted else ""
    level = numbers.level(result.confidence)
    least = numbers.at_least(result.epsilon_lower, above=point.epsilon)
    return f"{ended}: ε ≥ {least}{at} with {level} confidence{bets}"


def _draws_found(result: AuditResult, ending: Sampled | Failed, verbose: int) -> list[Item]:
    """Return the rows of the result: bounds, then the pair of inputs that decides the verdict.

    verbose: 0 shows this pair alone; 1 shows all pairs.
    """
    if ending.deciding is None:
        return []
    shown = ending.certificates if verbose else (ending.deciding,)
    pairs = [line for one in shown for line in _pair(one, result, verbose)]
    return [*bounds.rows(result, every=verbose > 0), *pairs]


def _draws_meaning(result: AuditResult, ending: Sampled | Failed, verbose: int) -> list[Item]:
    """Return sentences on how certain an attacker can be of the input, and on the limits of the
    audit."""
    if ending.deciding is None:
        return []
    # A claim may be refuted in another parameter, such as μ, while the bound for ε is 0. A sentence
    # about ε ≥ 0 would say nothing about an attacker.
    says = result.epsilon_lower > 0 or result.verdict is not Verdict.VIOLATION
    lines = paragraph(findings.attacker(result, ending.deciding)) if verbose and says else []
    if ending.deciding.is_interrupted:
        return [*lines, *paragraph(findings.UNPROVEN)]
    if result.verdict is Verdict.NO_VIOLATION_FOUND:
        lines += paragraph(findings.detectable(ending.deciding))
        reach = findings.unseen(ending.deciding)
        lines += paragraph(reach) if reach else []
        lines += paragraph(_OTHER_PAIR) if _shows_nothing(result) else []
        lines += paragraph(trace.DECIDES) if trace.may_decide(result) else []
        left_out = findings.untested(ending.deciding.ignored)
        lines += paragraph(left_out) if left_out else []
        lines += paragraph(findings.UNPROVEN)
    return lines


def _shows_nothing(result: AuditResult) -> bool:
    """Return whether the draws show no difference between d1 and d2, for pairs that the user chose:
    the bound for ε is 0, and the intervals of each tested event overlap. Return False for equal
    inputs, which have a warning, and for outputs that are mostly new, of which no event says
    anything."""
    if result.searched is not None or isinstance(result.ending, Recorded):
        return False
    tests = [test for one in result.certificates for test in one.rules]
    return (
        result.epsilon_lower <= 0
        and not any(EQUAL in one.warnings or is_mostly_new(one) for one in result.certificates)
        and all(
            max(event.interval_d1[0], event.interval_d2[0])
            <= min(event.interval_d1[1], event.interval_d2[1])
            for test in tests
            for event in test.events
        )
    )


def _pair(certificate: Certificate, result: AuditResult, verbose: int) -> list[Item]:
    several = len(result.certificates) > 1
    lines = findings.inputs(result, certificate, shown=verbose > 0 or not several)
    if several and verbose:
        least = numbers.at_least(certificate.epsilon_lower, above=certificate.point.epsilon)
        own = f"ε ≥ {least}, p {numbers.p_at_most(certificate.p_value)}"
        lines = ["", *lines, *row("", own)]
    if certificate.ended_by_bets or certificate.is_interrupted:
        for place, (name, value) in enumerate(findings.bets(certificate)):
            lines += row("bets" if place == 0 else "", f"{name}: {value}")
    if certificate.is_interrupted:
        return lines + (_workings(certificate) if verbose else [])
    if findings.is_by_divergence(certificate) and not verbose:
        lines += _divergence(certificate)  # the divergence refutes the claim, the event does not
    else:
        lines += _events(certificate, result.confidence, verbose)
        bets = findings.by_bets_alone(certificate)
        lines += row("evidence", bets) if bets else []
    if _has_row_of_draws(certificate, verbose):
        lines += row("draws", _draws(certificate))
    lines += [] if certificate.interval is None else _interval(certificate, certificate.interval)
    lines += _exceptions(certificate, verbose)
    return lines + (_workings(certificate) if verbose else [])


def _has_row_of_draws(certificate: Certificate, verbose: int) -> bool:
    return verbose > 0 or certificate.evidence.recording is not None


def _exceptions(certificate: Certificate, verbose: int) -> list[Item]:
    """Return rows that count exceptions of the mechanism by type, the most frequent type first."""
    every = sorted(certificate.failures.items(), key=lambda one: -sum(one[1]))
    most = len(every) if verbose else _MAX_EXCEPTIONS
    lines: list[Item] = []
    for kind, counts in every[:most]:
        lines += row("exceptions", f"{kind}: {_draws_of(counts)}")
        lines += _first_failure(certificate.first_failures.get(kind))
    if rest := [counts for _, counts in every[most:]]:
        counts = sum(d1 for d1, _ in rest), sum(d2 for _, d2 in rest)
        lines += row("exceptions", f"of {counted(len(rest), 'more type')}: {_draws_of(counts)}")
    return lines


def _draws_of(counts: tuple[int, int]) -> str:
    return f"{counted(counts[0], 'draw')} of d1, {counted(counts[1], 'draw')} of d2"


def _events(certificate: Certificate, confidence: float, verbose: int) -> list[Item]:
    every = certificate.fixed.events
    leading = findings.leading_event(certificate)
    if leading is None:
        return row("event", "none: no output looked worth testing")
    shown = every if verbose else (leading,)
    names = [f"E{place + 1}" for place in range(len(shown))] if len(shown) > 1 else ["E"]
    learned = sum(one.draws for one in certificate.evidence.blocks if one.stage == "learning")
    if certificate.ended_by_bets:
        learned = certificate.draws - certificate.fixed.draws
    # If the report has a row of draws, it already says how many draws were used to choose the
    # event, and the text below does not repeat it.
    is_shown = _has_row_of_draws(certificate, verbose)
    choice = "" if is_shown else f"; chosen on {counted(learned, 'separate draw')}"
    lines: list[Item] = []
    for name, event in zip(names, shown, strict=True):
        words = event.words if verbose else brief(event.words)
        lines += row(f"event {name}", f"{words}  (points to {event.guess}{choice})")
    cells = [["", "", "seen in", "share", f"{numbers.level(confidence)} Clopper–Pearson"]]
    for name, event in zip(names, shown, strict=True):
        cells += map(list, findings.counted_rows(name, event, certificate.point))
    lines += table(cells, left=(0, 1, 4), margin=BELOW)
    if certificate.fixed.method == "probabilistic":
        return lines
    for name, event in zip(names, shown, strict=True):
        lines.append(findings.allowance(name, event, certificate.point))
    return lines


def _draws(certificate: Certificate) -> str:
    recording, kept = certificate.evidence.recording, certificate.fixed.draws
    if recording is not None:
        made = f"{recording.draws_d1:,} of d1 and {recording.draws_d2:,} of d2 recorded"
        return f"{made}; {certificate.draws - kept:,} to learn from, {kept:,} for the exact bound"
    text = f"{certificate.draws:,} of {certificate.evidence.budget:,}"
    counted_on = certificate.evidence.counted
    if counted_on:
        learned = sum(one.draws for one in certificate.evidence.blocks if one.stage == "learning")
        text += f"; {learned - counted_on:,} kept and {counted_on:,} counted to learn from"
    if certificate.evidence.refuted_after is not None:
        text += f"; refuted after {certificate.evidence.refuted_after:,}"
    if certificate.fixed.stage == "confirmation":
        return f"{text}, confirmed on {kept:,} more"
    if certificate.ended_by_bets:
        return f"{text} by bets alone"
    return f"{text}; {kept:,} of them kept for the exact bound"


def _interval(certificate: Certificate, interval: EpsilonInterval) -> list[Item]:
    """Return a row with lower and upper bound for ε. The user has declared all possible outputs,
    which an upper bound needs."""
    at_zero = " at δ = 0" if certificate.point.delta else ""
    level, lower = numbers.level(1 - certificate.alpha), numbers.at_least(interval.lower)
    if math.isfinite(interval.upper):
        lies = f"between {lower} and {numbers.at_most(interval.upper)}, at {level}"
    else:
        lies = f"at least {lower}, at {level}; not bounded from above, since {_unseen(certificate)}"
    return row("range", f"ε for this pair{at_zero} is {lies}")


def _unseen(certificate: Certificate) -> str:
    """Return text that names a declared output that was not drawn for d1 or for d2, so that ε has
    no upper bound."""
    words, d1, d2 = next(
        output for output in certificate.evidence.declared or () if not (output[1] and output[2])
    )
    if d1 or d2:
        return f"{words} was never drawn for {'d2' if d1 else 'd1'}"
    return f"{words} was never drawn"


def _first_failure(first: FirstFailure | None) -> list[Item]:
    """Return a row with the message and the line of code of an exception: the first one of its
    type. Return [] if both are unknown."""
    if first is None or not (first.message or first.where):
        return []
    said = " ".join(first.message.split()) or "without a message"
    return row("", f"the first: {said}" + (f" ({first.where})" if first.where else ""))


def _divergence(certificate: Certificate) -> list[Item]:
    """Return a row about the test of a Rényi divergence, or [] if none was tested."""
    test = certificate.divergence
    if test is None:
        return []
    allowed, lower = numbers.plain(test.allowed), numbers.at_least(test.lower, above=test.allowed)
    bounded = f"{findings.divergence(test)} ≥ {lower} (allowed: {allowed})"
    p = numbers.p_at_most(test.p_value)
    return row("divergence", f"{bounded}, p {p}; P of d1, Q of d2")


def _workings(certificate: Certificate) -> list[Item]:
    fixed, several = certificate.fixed, bool(certificate.others)
    attack = certificate.fixed.rule.attack
    found = row("found by", attack) if attack else []
    found += row("attacks", findings.tried(certificate)) if certificate.attacks else []
    bound = f"ε ≥ {numbers.at_least(fixed.epsilon_lower)}, p {numbers.p_at_most(fixed.p_value)}"
    inputs = "either input" if fixed.two_guesses else "one input only"
    guesses = f"{fixed.correct:,} right and {fixed.wrong:,} wrong guesses, at {inputs}"
    which = f", {fixed.rule.kind} rule" if several else ""
    exact = row("exact test", f"{fixed.method}{which}: {guesses}; this test alone: {bound}")
    if certificate.ended_by_bets:
        exact = row("exact test", "none: bets ended the run")
    if certificate.is_interrupted:
        exact = row("exact test", "none: the run was interrupted")
    exact += _rules(certificate)
    exact += _divergence(certificate)
    if certificate.evidence.recording is not None:
        return [*found, *exact]
    betting = f"ε ≥ {numbers.at_least(certificate.epsilon_betting)}"
    wealth = numbers.at_least(certificate.wealth)
    needed = numbers.about(1 / certificate.alpha_betting)
    if certificate.divergence_bets is not None:
        wealth += (
            f" on events, {numbers.at_least(certificate.divergence_bets.wealth)} on divergences"
        )
    # `fixed.alpha` is the error probability of this rule alone. Divided by the rule's share, it is
    # the error probability of all rules of the exact test together.
    alphas = (certificate.alpha_betting, fixed.alpha / fixed.rule.share)
    spent = [numbers.error_level(one) for one in alphas]
    tests = "for the exact test"
    if certificate.divergence is not None:
        tests = "each for the exact test and the divergence"
    tests += " (its rules share that)" if several else ""
    recorded = (
        counted(len(certificate.evidence.blocks), "block"),
        counted(len(certificate.evidence.rounds), "round"),
    )
    return [
        *found,
        *row("betting", f"wealth {wealth} (violation at {needed}); {betting}"),
        *exact,
        *row("error split", f"{spent[0]} for betting, {spent[1]} {tests}"),
        *row("record", f"{recorded[0]} of draws, {recorded[1]} of bets"),
    ]


def _rules(certificate: Certificate) -> list[Item]:
    """Return one row for each rule of the exact test, or [] if the main rule is the only one.

    A rule guesses d1 or d2 for some outputs; the exact test counts its right guesses.
    """
    every = certificate.rules
    if [one.rule.kind for one in every] == ["main"]:
        return []
    lines = [row("rules" if place == 0 else "", _rule(one)) for place, one in enumerate(every)]
    return [line for one in lines for line in one]


def _rule(test: FixedTest) -> str:
    share = f"{100 * test.rule.share:.4g}{numbers.GLUE}%"
    bound = f"ε ≥ {numbers.at_least(test.epsilon_lower)}"
    events = " or ".join(event.words for event in test.events)
    return f"{test.rule.kind} ({share}): {bound}, {brief(events) if events else 'no event'}"


_DIGITS = 6
_NEARLY_CERTAIN = 0.99
_OF_PMF = "Computed from the mechanism's pmf; only an audit by sampling tests its code."
_STATED = (
    "The probabilities are those that the mechanism's own pmf states. Whether its code draws from "
    "them only an audit by sampling can tell, and other inputs may differ."
)


def _exact_said(result: AuditResult, ending: Exact) -> str:
    """Return the headline of an audit that computed exact probabilities: the reason for the
    verdict."""
    decisive = ending.deciding
    if decisive.refuted:
        return f"exact: {_refutation(decisive, result.claim)}"
    pairs = "this pair" if len(result.by_pair) == 1 else f"these {len(result.by_pair)} pairs"
    points = len(result.claim.points())
    what = result.claim.describe()
    claimed = what if points == 1 else f"the {points} points tested of {what}"
    return f"exact: {claimed} {'holds' if points == 1 else 'hold'} for {pairs}"


def _exact_found(result: AuditResult, ending: Exact, verbose: int) -> list[Item]:
    """Return the rows about the pair of inputs that decides the verdict, or about all pairs if
    `verbose` is at least 1."""
    shown = ending.certificates if verbose else (ending.deciding,)
    return [line for one in shown for line in _exact_pair(one, result, verbose)]


def _exact_meaning(result: AuditResult, ending: Exact, verbose: int) -> list[Item]:
    """Return sentences on how certain an attacker can be, and on the limits of the audit."""
    decisive = ending.deciding
    if not verbose:
        return paragraph(_OF_PMF)
    if math.isinf(decisive.epsilon):
        # Probability, under d1, of all outputs that are impossible under d2. The next line takes
        # the larger of this and the reverse.
        d1 = math.fsum(p for _, p, q in decisive.law if q == 0)
        share = numbers.share(max(d1, math.fsum(q for _, p, q in decisive.law if p == 0)))
        learns = f"is certain after any output that only one can give: up to {share} of all"
    else:
        sure = 1 / (1 + math.exp(-decisive.epsilon))
        is_near = sure >= _NEARLY_CERTAIN  # a certainty below 1 is never shown as 100 %
        most = numbers.sure(decisive.epsilon, numbers.UP) if is_near else numbers.share(sure)
        learns = f"can tell the inputs apart with up to {most} certainty, from one output"
    return [*paragraph(f"{EVEN} {learns}."), *paragraph(_STATED)]


def _exact_pair(one: ExactCertificate, result: AuditResult, verbose: int) -> list[Item]:
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
        *_exact_event(one, verbose, by_mass),
        *row("outcomes", f"{len(one.law):,} possible ones; nothing was drawn"),
    ]


def _own(one: ExactCertificate, claim: PrivacyClaim) -> list[Item]:
    """Return a row for a parameter such as μ or ρ that the claim has in place of ε and δ, or [] if
    it has none."""
    own = own_bound(claim, one.point.epsilon, one.delta_lower)
    if own is None:
        return []
    least = numbers.at_least(own.lower, above=own.claimed)
    point = numbers.plain(one.point.epsilon)
    text = f"{least}, from δ at ε = {point} (claimed: {numbers.plain(own.claimed)})"
    return row(f"{own.symbol} at least", text)


def _exact_event(one: ExactCertificate, verbose: int, by_mass: bool) -> list[Item]:
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
        *([] if by_mass else [allowance("E", event, one.point)]),
    ]


def _refutation(one: ExactCertificate, claim: PrivacyClaim) -> str:
    """Return text with the two probabilities that refute the claim, and the largest probability
    that the claim allows."""
    event, point = one.event, one.point
    if event is None:
        raise ValueError(f"{one.pair}: refuted without an event")
    if claim.counts_single_outputs:
        allowed, seen = numbers.shares_apart(point.delta, shares(event)[0])
        times = f"more than e^{numbers.plain(point.epsilon)} times as likely for {event.guess}"
        return f"outputs {times} have probability {seen}; the claim allows {allowed}"
    return compared(event, point)


def _exactly(value: float, claimed: float, beyond: bool) -> str:
    """Return a number as text with 6 digits.

    beyond: whether the number exceeds `claimed`. If so, digits are added until the text shows it.
    """
    if beyond and value > claimed:
        return numbers.at_least(value, above=claimed, digits=_DIGITS)
    return numbers.about(value, digits=_DIGITS)


class View(NamedTuple):
    """The functions that make the report of one kind of result.

    said: returns the reason for the verdict.
    found: returns the rows of the result.
    meaning: returns sentences on how certain an attacker can be, and on the limits of the audit.

    The last argument of `found` and `meaning` is the number of -v options; 1 asks for more rows.
    """

    said: Callable[[AuditResult, Any], str]
    found: Callable[[AuditResult, Any, int], list[Item]]
    meaning: Callable[[AuditResult, Any, int], list[Item]]


_OF_DRAWS = View(_draws_said, _draws_found, _draws_meaning)
VIEWS: Mapping[type, View] = {
    Sampled: _OF_DRAWS,
    Recorded: _OF_DRAWS,
    Interrupted: View(_interrupted_said, _draws_found, _draws_meaning),
    Failed: _OF_DRAWS,
    Exact: View(_exact_said, _exact_found, _exact_meaning),
    Canaries: View(canaries.said, canaries.found, canaries.meaning),
}
