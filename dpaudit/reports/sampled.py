"""The result of an audit by draws, made or recorded, as lines of the text report.

Of an audit that failed, these are the pairs that were finished before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpaudit.certificates.certificate import (
    Certificate,
    EpsilonInterval,
    EventCount,
    FirstFailure,
    FixedTest,
)
from dpaudit.certificates.result import AuditResult, Failed, Sampled, Verdict
from dpaudit.claims import ProfilePoint
from dpaudit.reports import bounds, findings, numbers, searched
from dpaudit.reports.findings import brief
from dpaudit.reports.layout import BELOW, paragraph, row, table
from dpaudit.wording import counted

# Largest number of types of exceptions that are listed without -v.
_MOST_EXCEPTIONS = 3


def said(result: AuditResult, ending: Sampled | Failed) -> str:
    """Return the part of the headline after the name."""
    if isinstance(ending, Failed):
        return ending.error or "the audit did not end"
    level = bounds.decided_at(result)
    if result.verdict is Verdict.VIOLATION:
        where = " outside the space" if searched.is_outside(result) else ""
        return f"refuted at {level}{where}: {findings.refutation(ending.deciding)}"
    return f"{counted(result.draws, 'draw')} do not refute {result.claim.describe()} at {level}"


def found(result: AuditResult, ending: Sampled | Failed, verbose: int) -> list[str]:
    """Return the bounds, and the rows of the deciding pair, or of all pairs if verbose."""
    if ending.deciding is None:
        return []
    shown = ending.certificates if verbose else (ending.deciding,)
    pairs = [line for one in shown for line in _pair(one, result, verbose)]
    return [*bounds.rows(result, every=verbose > 0), *pairs]


def meaning(result: AuditResult, ending: Sampled | Failed, verbose: int) -> list[str]:
    """Return sentences on what an attacker learns, and on what the audit could not show."""
    if ending.deciding is None:
        return []
    # Of a violation that another parameter shows, a bound of 0 for ε says nothing.
    says = result.epsilon_lower > 0 or result.verdict is not Verdict.VIOLATION
    lines = paragraph(findings.attacker(result)) if verbose and says else []
    if result.verdict is Verdict.NO_VIOLATION_FOUND:
        lines += paragraph(findings.detectable(ending.deciding))
        reach = findings.unseen(ending.deciding)
        lines += paragraph(reach) if reach else []
        lines += paragraph(findings.UNPROVEN)
        listed = " and ".join(ending.deciding.ignored)
        lines += paragraph(f"Not tested: {listed}.") if listed and verbose else []
    return lines


def _pair(certificate: Certificate, result: AuditResult, verbose: int) -> list[str]:
    several = len(result.certificates) > 1
    lines = findings.inputs(result, certificate, shown=verbose > 0 or not several)
    if several and verbose:
        least = numbers.at_least(certificate.epsilon_lower, above=certificate.point.epsilon)
        own = f"ε ≥ {least}, p {numbers.p_at_most(certificate.p_value)}"
        lines = ["", *lines, *row("", own)]
    if findings.is_by_divergence(certificate) and not verbose:
        lines += _divergence(certificate)  # the event stays within the claim
    else:
        lines += _events(certificate, result.confidence, verbose)
        bets = findings.by_bets_alone(certificate)
        lines += row("evidence", bets) if bets else []
    if _has_row_of_draws(certificate, verbose):
        lines += row("draws", _draws(certificate))
    lines += _interval(certificate)
    lines += _exceptions(certificate, verbose)
    return lines + (_workings(certificate) if verbose else [])


def _has_row_of_draws(certificate: Certificate, verbose: int) -> bool:
    return verbose > 0 or certificate.recording is not None


def _exceptions(certificate: Certificate, verbose: int) -> list[str]:
    """Return rows of exceptions by type, the most frequent types first."""
    every = sorted(certificate.failures.items(), key=lambda one: -sum(one[1]))
    most = len(every) if verbose else _MOST_EXCEPTIONS
    lines: list[str] = []
    for kind, counts in every[:most]:
        lines += row("exceptions", f"{kind}: {_draws_of(counts)}")
        lines += _first_failure(certificate.first_failures.get(kind))
    if rest := [counts for _, counts in every[most:]]:
        counts = sum(d1 for d1, _ in rest), sum(d2 for _, d2 in rest)
        lines += row("exceptions", f"of {counted(len(rest), 'more type')}: {_draws_of(counts)}")
    return lines


def _draws_of(counts: tuple[int, int]) -> str:
    return f"{counted(counts[0], 'draw')} of d1, {counted(counts[1], 'draw')} of d2"


def _events(certificate: Certificate, confidence: float, verbose: int) -> list[str]:
    every = certificate.fixed.events
    leading = findings.leading_event(certificate)
    if leading is None:
        return row("event", "none: no output looked worth testing")
    shown = every if verbose else (leading,)
    names = [f"E{place + 1}" for place in range(len(shown))] if len(shown) > 1 else ["E"]
    learned = sum(one.draws for one in certificate.blocks if one.stage == "learning")
    # A row of draws, if there is one, says how many draws chose the event.
    is_shown = _has_row_of_draws(certificate, verbose)
    choice = "" if is_shown else f"; chosen on {counted(learned, 'separate draw')}"
    lines: list[str] = []
    for name, event in zip(names, shown, strict=True):
        words = event.words if verbose else brief(event.words)
        lines += row(f"event {name}", f"{words}  (points to {event.guess}{choice})")
    cells = _cells(names, shown, certificate.point, confidence)
    lines += table(cells, left=(0, 1, 4), margin=BELOW)
    if certificate.fixed.method == "probabilistic":
        return lines
    for name, event in zip(names, shown, strict=True):
        lines += findings.allowance(name, event, certificate.point)
    return lines


def _cells(
    names: Sequence[str], events: Sequence[EventCount], point: ProfilePoint, confidence: float
) -> list[list[str]]:
    cells = [["", "", "seen in", "share", f"{numbers.level(confidence)} Clopper–Pearson"]]
    for name, one in zip(names, events, strict=True):
        cells += map(list, findings.counted_rows(name, one, point))
    return cells


def _draws(certificate: Certificate) -> str:
    recording, kept = certificate.recording, certificate.fixed.draws
    if recording is not None:
        made = f"{recording.draws_d1:,} of d1 and {recording.draws_d2:,} of d2 recorded"
        return f"{made}; {certificate.draws - kept:,} to learn from, {kept:,} for the exact bound"
    text = f"{certificate.draws:,} of {certificate.budget:,}"
    counted_on = 0 if certificate.schedule is None else certificate.schedule.counted
    if counted_on:
        learned = sum(one.draws for one in certificate.blocks if one.stage == "learning")
        text += f"; {learned - counted_on:,} kept and {counted_on:,} counted to learn from"
    if certificate.refuted_after is not None:
        text += f"; refuted after {certificate.refuted_after:,}"
    if certificate.fixed.stage == "confirmation":
        return f"{text}, confirmed on {kept:,} more"
    return f"{text}; {kept:,} of them kept for the exact bound"


def _interval(certificate: Certificate) -> list[str]:
    """Return the row of the interval for a declared range; empty without one."""
    interval = certificate.interval
    if interval is None:
        return []
    at_zero = " at δ = 0" if certificate.point.delta else ""
    level, lower = numbers.level(1 - certificate.alpha), numbers.at_least(interval.lower)
    if math.isfinite(interval.upper):
        lies = f"between {lower} and {numbers.at_most(interval.upper)}, at {level}"
    else:
        lies = f"at least {lower}, at {level}; not bounded from above, since {_unseen(interval)}"
    return row("range", f"ε for this pair{at_zero} is {lies}")


def _unseen(interval: EpsilonInterval) -> str:
    """Return the declared output because of which ε has no upper bound."""
    words, d1, d2 = next(one for one in interval.atoms if not (one[1] and one[2]))
    if d1 or d2:
        return f"{words} was never drawn for {'d2' if d1 else 'd1'}"
    return f"{words} was never drawn"


def _first_failure(first: FirstFailure | None) -> list[str]:
    """Return the row with message and place of the first exception of a kind."""
    if first is None or not (first.message or first.where):
        return []
    said = " ".join(first.message.split()) or "without a message"
    return row("", f"the first: {said}" + (f" ({first.where})" if first.where else ""))


def _divergence(certificate: Certificate) -> list[str]:
    """Return the row of a Rényi divergence; empty without one."""
    test = certificate.divergence
    if test is None:
        return []
    allowed, lower = numbers.plain(test.allowed), numbers.at_least(test.lower, above=test.allowed)
    bounded = f"{findings.divergence(test)} ≥ {lower} (allowed: {allowed})"
    p = numbers.p_at_most(test.p_value)
    return row("divergence", f"{bounded}, p {p}; P of d1, Q of d2")


def _workings(certificate: Certificate) -> list[str]:
    fixed, several = certificate.fixed, bool(certificate.others)
    found = row("found by", certificate.attack)
    found += row("attacks", findings.tried(certificate)) if certificate.attacks else []
    bound = f"ε ≥ {numbers.at_least(fixed.epsilon_lower)}, p {numbers.p_at_most(fixed.p_value)}"
    inputs = "either input" if fixed.two_guesses else "one input only"
    guesses = f"{fixed.correct:,} right and {fixed.wrong:,} wrong guesses, at {inputs}"
    which = f", {fixed.kind} rule" if several else ""
    exact = row("exact test", f"{fixed.method}{which}: {guesses}; this test alone: {bound}")
    exact += _rules(certificate)
    exact += _divergence(certificate)
    if certificate.recording is not None:
        return [*found, *exact]
    betting = f"ε ≥ {numbers.at_least(certificate.epsilon_betting)}"
    wealth = numbers.at_least(certificate.wealth)
    needed = numbers.about(1 / certificate.alpha_betting)
    # The rules of a portfolio share what the exact test may spend.
    alphas = (certificate.alpha_betting, fixed.alpha / fixed.share)
    spent = [numbers.error_level(one) for one in alphas]
    tests = "for the exact test"
    if certificate.divergence is not None:
        tests = "each for the exact test and the divergence"
    tests += " (its rules share that)" if several else ""
    recorded = counted(len(certificate.blocks), "block"), counted(len(certificate.rounds), "round")
    return [
        *found,
        *row("betting", f"wealth {wealth} (violation at {needed}); {betting}"),
        *exact,
        *row("error split", f"{spent[0]} for betting, {spent[1]} {tests}"),
        *row("record", f"{recorded[0]} of draws, {recorded[1]} of bets"),
    ]


def _rules(certificate: Certificate) -> list[str]:
    """Return a row for each rule of the exact test; empty if there is only the main rule."""
    every = certificate.rules
    if [one.kind for one in every] == ["main"]:
        return []
    lines = [row("rules" if place == 0 else "", _rule(one)) for place, one in enumerate(every)]
    return [line for one in lines for line in one]


def _rule(test: FixedTest) -> str:
    share = f"{100 * test.share:.4g}{numbers.GLUE}%"
    bound = f"ε ≥ {numbers.at_least(test.epsilon_lower)}"
    events = " or ".join(event.words for event in test.events)
    return f"{test.kind} ({share}): {bound}, {brief(events) if events else 'no event'}"
