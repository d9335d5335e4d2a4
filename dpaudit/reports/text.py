"""An audit as plain text of 80 columns: result in, string out."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpaudit.certificates.certificate import (
    Certificate,
    EpsilonInterval,
    EventCount,
    FirstFailure,
    FixedTest,
    Recording,
)
from dpaudit.certificates.result import AuditResult, Canaries, Exact, Verdict
from dpaudit.reports import exact, findings, numbers, one_run
from dpaudit.reports.bounds import bounds
from dpaudit.reports.layout import glued, paragraph, row, table, wrap
from dpaudit.reports.numbers import unglued
from dpaudit.wording import counted, shortened


def render(result: AuditResult, *, verbose: int = 0) -> str:
    """Return the report of one audit, without a final newline; its first word is the verdict.

    verbose: 0 shows the verdict, the claim, the event that decides and the command that repeats the
    audit; 1 shows every pair and event, how the result came about and what it does not show.
    """
    lines = [*wrap(headline(result), further="  "), "", *_asked(result)]
    lines += _found(result, verbose)
    if result.resumed:
        lines += row("runs", f"{result.resumed + 1}: this audit was resumed from its journal")
    lines += _warnings(result)
    # As it is, since a line that was broken could not be pasted.
    lines += [f"  repeat      {result.command}"] if result.command is not None else []
    meaning = _meaning(result, verbose)
    return unglued("\n".join([*lines, *([""] if meaning else []), *meaning]))


def render_line(result: AuditResult) -> str:
    """Return the verdict of one audit and why, in one line."""
    return unglued(headline(result))


def render_warnings(result: AuditResult) -> list[str]:
    """Return the warnings of one audit, each in one line."""
    return [unglued(f"warning: {result.name}: {text}") for text in warnings_of(result)]


def headline(result: AuditResult) -> str:
    """Return the verdict, the name and the reason, as one sentence."""
    foreseen = "" if result.verdict is Verdict.ERROR else _foreseen(result)
    return f"{result.verdict.value}  {result.name}: {reason(result)}{foreseen}"


def reason(result: AuditResult) -> str:
    """Return why the verdict is what it is."""
    level = numbers.level(result.confidence)
    if result.verdict is Verdict.ERROR:
        return result.error or "the audit did not end"
    if result.underpowered is not None:
        return f"under-powered: {result.underpowered}"
    if isinstance(result.ending, Exact):
        return exact.said(result, result.ending)
    if isinstance(result.ending, Canaries):
        return one_run.said(result, result.ending.deciding)
    if result.verdict is Verdict.VIOLATION and result.ending.deciding is not None:
        return f"refuted at {level}: {findings.refutation(result.ending.deciding)}"
    return f"{counted(result.draws, 'draw')} do not refute {result.claim.describe()} at {level}"


def _foreseen(result: AuditResult) -> str:
    if result.expect is None or (result.underpowered is not None and result.meets_expectation):
        return ""
    return " (as expected)" if result.meets_expectation else f" (expected: {result.expect})"


def _asked(result: AuditResult) -> list[str]:
    claim = result.claim
    where = f" ({result.source})" if result.source else ""
    rows = row("claim", f"{claim.describe()}, {claim.title}: {glued(claim.formula)}")
    if result.repeated is not None:
        each, times = result.repeated.claim.describe(), result.repeated.times
        rows += row("", f"{each} for one run, {claim.describe()} for {times}")
    return [*rows, *row("mechanism", f"{result.target}{where}")]


def _found(result: AuditResult, verbose: int) -> list[str]:
    if isinstance(result.ending, Exact):
        lines = exact.found(result, result.ending, verbose)
    elif result.ending.deciding is None:
        return []
    else:
        lines = [line for one in bounds(result, every=verbose > 0) for line in one.row(result)]
        lines += row("p-value", _p_value(result))
        if isinstance(result.ending, Canaries):
            lines += one_run.found(result, result.ending.deciding)
        else:
            for one in result.certificates if verbose else (result.ending.deciding,):
                lines += _pair(one, result, verbose)
    return [*lines, *(_time(result) if verbose else [])]


def _p_value(result: AuditResult) -> str:
    p = numbers.p_at_most(result.p_value).removeprefix("= ")
    alpha = numbers.plain(1 - result.confidence)
    pairs = len(result.certificates)
    corrected = f", corrected for {pairs} pairs" if pairs > 1 else ""
    return f"{p} (violation if ≤ {alpha}{corrected}){_drawn(result)}"


def _drawn(result: AuditResult) -> str:
    """Return what the p-value was computed from, unless that is no draws."""
    if not result.certificates:
        return ""
    is_drawn = all(one.recording is None and one.reproducible for one in result.certificates)
    seed = f", seed {result.seed}" if is_drawn else ""
    return f", from {counted(result.draws, 'draw')}{seed}"


def _pair(certificate: Certificate, result: AuditResult, verbose: int) -> list[str]:
    several = len(result.certificates) > 1
    lines = findings.inputs(result, certificate, shown=verbose > 0 or not several)
    if several and verbose:
        least = numbers.at_least(certificate.epsilon_lower, above=certificate.point.epsilon)
        own = f"ε ≥ {least}, p {numbers.p_at_most(certificate.p_value)}"
        lines = ["", *lines, *row("", own)]
    lines += _events(certificate, result.confidence, verbose)
    if verbose or certificate.recording is not None:
        lines += row("draws", _draws(certificate))
    lines += _interval(certificate)
    for kind, (d1, d2) in certificate.failures.items():
        seen = f"{counted(d1, 'draw')} of d1, {counted(d2, 'draw')} of d2"
        lines += row("exceptions", f"{kind}: {seen}")
        lines += _first_failure(certificate.first_failures.get(kind))
    return lines + (_workings(certificate) if verbose else [])


def _events(certificate: Certificate, confidence: float, verbose: int) -> list[str]:
    every = certificate.fixed.events
    leading = findings.leading_event(certificate)
    if leading is None:
        return row("event", "none: no output looked worth testing")
    shown = every if verbose else (leading,)
    names = [f"E{place + 1}" for place in range(len(shown))] if len(shown) > 1 else ["E"]
    lines: list[str] = []
    for name, event in zip(names, shown, strict=True):
        words = event.words if verbose else shortened(event.words, findings.LONGEST)
        lines += row(f"event {name}", f"{words}  (evidence for {event.guess})")
    lines += table(_cells(names, shown, confidence), left=(0, 1, 4))
    if certificate.fixed.method == "probabilistic":
        return lines
    for name, event in zip(names, shown, strict=True):
        behind = findings.shares(event)[1]
        lines += findings.allowance(name, event.guess, behind, certificate.point)
    return lines


def _cells(
    names: Sequence[str], events: Sequence[EventCount], confidence: float
) -> list[list[str]]:
    cells = [["", "", "seen in", "share", f"{numbers.level(confidence)} Clopper–Pearson"]]
    for name, one in zip(names, events, strict=True):
        cells.append(_count(f"P({name})", "d1", one.count_d1, one.draws_d1, one.interval_d1))
        cells.append(_count(f"Q({name})", "d2", one.count_d2, one.draws_d2, one.interval_d2))
    return cells


def _count(name: str, arm: str, count: int, draws: int, interval: tuple[float, float]) -> list[str]:
    low, high = numbers.share_at_least(interval[0]), numbers.share_at_most(interval[1])
    seen = f"{numbers.count(count)} of {numbers.count(draws)}"
    return [name, arm, seen, numbers.share(count / draws) if draws else "", f"{low} to {high}"]


def _draws(certificate: Certificate) -> str:
    if certificate.recording is not None:
        return _recorded(certificate, certificate.recording)
    text = f"{numbers.count(certificate.draws)} of {numbers.count(certificate.budget)}"
    kept = numbers.count(certificate.fixed.draws)
    if certificate.refuted_after is not None:
        text += f"; refuted after {numbers.count(certificate.refuted_after)}"
    if certificate.fixed.stage == "confirmation":
        return f"{text}, confirmed on {kept} more"
    return f"{text}; {kept} of them kept for the exact bound"


def _recorded(certificate: Certificate, recording: Recording) -> str:
    made = f"{numbers.count(recording.draws_d1)} of d1 and {numbers.count(recording.draws_d2)} of"
    kept = certificate.fixed.draws
    learned = f"{numbers.count(certificate.draws - kept)} to learn from"
    return f"{made} d2 recorded; {learned}, {numbers.count(kept)} for the exact bound"


def _interval(certificate: Certificate) -> list[str]:
    """Return the row of a declared range, or nothing."""
    interval = certificate.interval
    if interval is None:
        return []
    at_zero = " at δ = 0" if certificate.point.delta else ""
    level, lower = numbers.level(1 - certificate.alpha), numbers.at_least(interval.lower)
    if math.isfinite(interval.upper):
        upper = numbers.at_most(interval.upper)
        text = f"ε for this pair{at_zero} is between {lower} and {upper}, at {level}"
        return row("range", text)
    text = f"ε for this pair{at_zero} is at least {lower}, at {level}; not bounded from above"
    return row("range", f"{text}, since {_unseen(interval)}")


def _unseen(interval: EpsilonInterval) -> str:
    """Return which declared output bars an upper end."""
    words, d1, d2 = next(one for one in interval.atoms if not (one[1] and one[2]))
    if d1 or d2:
        return f"{words} never came up for {'d2' if d1 else 'd1'}"
    return f"{words} never came up"


def _first_failure(first: FirstFailure | None) -> list[str]:
    """Return what the first exception of a kind said, and where."""
    if first is None or not (first.message or first.where):
        return []
    said = " ".join(first.message.split()) or "without a message"
    return row("", f"the first: {said}" + (f" ({first.where})" if first.where else ""))


def _workings(certificate: Certificate) -> list[str]:
    fixed = certificate.fixed
    found = row("found by", certificate.attack)
    # What each attack promised, and which were left out and why.
    found += row("attacks", findings.tried(certificate)) if certificate.attacks else []
    bound = f"ε ≥ {numbers.at_least(fixed.epsilon_lower)}, p {numbers.p_at_most(fixed.p_value)}"
    exact = row("exact test", f"{fixed.method}: {_guesses(fixed)}; {bound}")
    if certificate.recording is not None:
        return [*found, *exact]
    betting = f"ε ≥ {numbers.at_least(certificate.epsilon_betting)}"
    wealth = numbers.at_least(certificate.wealth)
    needed = numbers.about(1 / certificate.alpha_betting)
    spent = [numbers.error_level(one) for one in (certificate.alpha_betting, fixed.alpha)]
    recorded = counted(len(certificate.blocks), "block"), counted(len(certificate.rounds), "round")
    return [
        *found,
        *row("betting", f"wealth {wealth} (violation at {needed}); {betting}"),
        *exact,
        *row("error split", f"{spent[0]} for betting, {spent[1]} for the exact test"),
        *row("record", f"{recorded[0]} of draws, {recorded[1]} of bets"),
    ]


def _guesses(fixed: FixedTest) -> str:
    rule = "either input" if fixed.two_guesses else "one input only"
    right, wrong = numbers.count(fixed.correct), numbers.count(fixed.wrong)
    return f"{right} right and {wrong} wrong guesses, at {rule}"


def _time(result: AuditResult) -> list[str]:
    lines = row("seed", str(result.seed)) if result.certificates else []
    lines += row("time", numbers.duration(result.seconds))
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    return lines + row("versions", versions)


def _warnings(result: AuditResult) -> list[str]:
    noted = dict.fromkeys(text for one in result.by_pair for text in getattr(one, "notes", ()))
    said = [("warning", text) for text in warnings_of(result)] + [("note", text) for text in noted]
    return [line for label, text in said for line in row(label, text)]


def warnings_of(result: AuditResult) -> list[str]:
    """Return every warning of an audit once."""
    every = [*result.warnings, *(text for one in result.by_pair for text in one.warnings)]
    return list(dict.fromkeys(every))


def _meaning(result: AuditResult, verbose: int) -> list[str]:
    """Return what the result means for an attacker, and what it does not show."""
    if isinstance(result.ending, Exact):
        return exact.meaning(result.ending.deciding, verbose)
    if isinstance(result.ending, Canaries):
        return one_run.meaning(result.ending.deciding, result.verdict, verbose)
    deciding = result.ending.deciding
    if deciding is None:
        return []
    lines = paragraph(findings.attacker(result)) if verbose else []
    if result.verdict is Verdict.NO_VIOLATION_FOUND:
        lines += paragraph(findings.detectable(deciding))
        lines += paragraph(findings.UNPROVEN)
        listed = " and ".join(deciding.ignored)
        lines += paragraph(f"Not tested: {listed}.") if listed and verbose else []
    return lines
