"""An audit as plain text of 80 columns: result in, string out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from dpaudit.certificates.result import (
    AuditResult,
    Certificate,
    EpsilonInterval,
    EventCount,
    FirstFailure,
    FixedTest,
    Recording,
    Verdict,
)
from dpaudit.claims import PrivacyClaim
from dpaudit.reports import exact, findings, numbers, one_run
from dpaudit.reports.findings import adjacency
from dpaudit.reports.layout import glued, paragraph, row, table, wrap
from dpaudit.reports.numbers import unglued
from dpaudit.wording import counted

_EVENTS_SHOWN = 4
_SHARED = (
    "Audits with the same seed share their random numbers, so that false alarms come together; a "
    "rerun with that seed is no further evidence."
)


def render(result: AuditResult, *, verbose: int = 0) -> str:
    """Return the report of one audit, without a final newline; its first word is the verdict.

    verbose: 0 shows the pair that decides, with what it takes to judge it; 1 shows every pair, and
    how the result came about.
    """
    lines = wrap(headline(result), further="  ")
    if result.certificates:
        lines += ["", *_found(result, verbose), *_warnings(result), "", *_meaning(result)]
    elif result.one_run is not None:
        lines += ["", *_asked(result), *_bounds(result), *one_run.found(result.one_run)]
        lines += [*_time(result, verbose), *_warnings(result), ""]
        lines += one_run.meaning(result.one_run, result.verdict)
    elif result.decisive_exact is not None:
        lines += ["", *_asked(result), *exact.found(result, result.decisive_exact, verbose)]
        lines += [*_time(result, verbose), *_warnings(result)]
        lines += ["", *exact.meaning(result.decisive_exact)]
    else:
        lines += ["", *_asked(result), *_warnings(result)]
    return unglued("\n".join(lines))


def render_line(result: AuditResult) -> str:
    """Return the verdict of one audit and why, in one line."""
    return unglued(headline(result))


def render_warnings(result: AuditResult) -> list[str]:
    """Return the warnings of one audit, each in one line."""
    return [unglued(f"warning: {result.name}: {text}") for text in warnings_of(result)]


def headline(result: AuditResult) -> str:
    """Return the verdict, the name and the reason, as one sentence."""
    if result.verdict is Verdict.ERROR:
        return f"ERROR  {result.name}: {result.error or 'the audit did not end'}"
    certificate = result.decisive
    claim = result.claim.describe()
    if result.decisive_exact is not None:
        said = exact.said(result, result.decisive_exact)
    elif result.one_run is not None:
        said = one_run.said(result, result.one_run)
    elif result.verdict is Verdict.VIOLATION and certificate is not None:
        why = findings.refutation(certificate)
        said = f"refuted at {numbers.level(result.confidence)}: {why}"
    else:
        level = numbers.level(result.confidence)
        said = f"{counted(result.draws, 'draw')} do not refute {claim} at {level}"
    if result.underpowered is not None:
        said = f"under-powered: {result.underpowered}"
    return f"{result.verdict.value}  {result.name}: {said}{_foreseen(result)}"


def render_summary(results: Sequence[AuditResult]) -> str:
    """Return counts over several audits, unmet expectations and the batch's false-alarm risk."""
    tally = Counter(result.verdict for result in results)
    counts = [
        counted(tally[Verdict.VIOLATION], "violation"),
        f"{tally[Verdict.NO_VIOLATION_FOUND]} with no violation found",
        *([counted(tally[Verdict.ERROR], "error")] if tally[Verdict.ERROR] else []),
    ]
    lines = wrap(f"{counted(len(results), 'audit')}: {', '.join(counts)}.")
    lines += _unmet(results)
    lines += wrap(_false_alarms(results)) if any(map(_by_chance, results)) else []
    lines += wrap(_SHARED) if _share_a_seed(results) else []
    return unglued("\n".join(lines))


def _foreseen(result: AuditResult) -> str:
    if result.expect is None or (result.underpowered is not None and result.meets_expectation):
        return ""
    return " (as expected)" if result.meets_expectation else f" (expected: {result.expect})"


def _unmet(results: Sequence[AuditResult]) -> list[str]:
    unmet = [
        f"{result.name} (expected: {result.expect})"
        for result in results
        if result.expect and not result.meets_expectation
    ]
    return wrap(f"Not as expected: {', '.join(unmet)}.") if unmet else []


def _false_alarms(results: Sequence[AuditResult]) -> str:
    alphas = [1 - one.confidence for one in results if _by_chance(one)]
    together = numbers.error_level(min(1.0, sum(alphas)))
    if len(alphas) == 1:
        return f"The chance of a false alarm is at most {together}."
    each = "its own chance" if len(set(alphas)) > 1 else "a chance"
    most = "" if len(set(alphas)) > 1 else f" of at most {numbers.error_level(alphas[0])}"
    return f"Each audit has {each}{most} of a false alarm, together at most {together}."


def _share_a_seed(results: Sequence[AuditResult]) -> bool:
    seeds = Counter(one.seed for one in results if one.certificates and _was_drawn(one))
    return any(count > 1 for count in seeds.values())


def _was_drawn(result: AuditResult) -> bool:
    """Whether a seed decided what the mechanism drew, and not somebody else."""
    return all(one.recording is None for one in result.certificates)


def _by_chance(result: AuditResult) -> bool:
    """Whether chance had a part in what an audit found."""
    return bool(result.certificates) or result.one_run is not None


def _asked(result: AuditResult) -> list[str]:
    claim = result.claim
    return [
        *row("claim", f"{claim.describe()}, {claim.title}: {glued(claim.formula)}"),
        *_runs(result, claim),
        *row("mechanism", result.target),
    ]


def _runs(result: AuditResult, claim: PrivacyClaim) -> list[str]:
    """Return what is claimed for one run and for all, where an output is several."""
    if result.repeated is None:
        return []
    each, times = result.repeated.claim.describe(), result.repeated.times
    return row("", f"{each} for one run, {claim.describe()} for {times}")


def _found(result: AuditResult, verbose: int) -> list[str]:
    shown = _shown(result, verbose)
    lines = [*_asked(result), *_bounds(result)]
    for certificate in shown:
        lines += _pair(certificate, result, verbose)
    for certificate in result.certificates:
        if certificate not in shown:
            lines += row("other pair", f"{certificate.pair}: {_own(certificate)}")
    return [*lines, *_run(result, verbose)]


def _shown(result: AuditResult, verbose: int) -> tuple[Certificate, ...]:
    if verbose or result.decisive is None:
        return result.certificates
    return (result.decisive,)


def _bounds(result: AuditResult) -> list[str]:
    point = result.point
    claimed, delta = numbers.plain(point.epsilon), numbers.plain(point.delta)
    at_delta = f" at δ = {delta}" if point.delta else ""
    epsilon = numbers.at_least(result.epsilon_lower, above=point.epsilon)
    if result.verdict is Verdict.VIOLATION and result.epsilon_lower == point.epsilon > 0:
        epsilon = f"more than {epsilon}"  # that much was rejected, and no larger one
    lower = numbers.at_least(result.delta_lower, above=point.delta)
    confident = f"with {numbers.level(result.confidence)} confidence"
    return [
        *row("ε at least", f"{epsilon}{at_delta}, {confident} (claimed: {claimed})"),
        *row("δ at least", f"{lower} at ε = {claimed}, {confident} (claimed: {delta})"),
        *_own_bound(result),
        *row("p-value", _p_value(result)),
    ]


def _own_bound(result: AuditResult) -> list[str]:
    """Return the bound in the definition's own parameter, where it has one."""
    own = result.claim.own_lower(result.point.epsilon, result.delta_lower)
    if own is None:
        return []
    symbol, lower = own
    *_, claimed = result.claim.parameters().values()
    bound = numbers.at_least(lower, above=claimed)
    confident = f"with {numbers.level(result.confidence)} confidence"
    return row(f"{symbol} at least", f"{bound}, {confident} (claimed: {numbers.plain(claimed)})")


def _p_value(result: AuditResult) -> str:
    p = numbers.p_at_most(result.p_value).removeprefix("= ")
    alpha = numbers.plain(1 - result.confidence)
    pairs = len(result.certificates)
    corrected = f", corrected for {pairs} pairs" if pairs > 1 else ""
    return f"{p} (refuted at {alpha} or less{corrected})"


def _pair(certificate: Certificate, result: AuditResult, verbose: int) -> list[str]:
    lines = [*row("inputs", certificate.pair), *adjacency(certificate)]
    if len(result.certificates) > 1:
        lines = ["", *lines, *row("", _own(certificate))] if verbose else lines
    lines += _events(certificate, result.confidence, verbose)
    lines += row("draws", _draws(certificate))
    lines += _interval(certificate)
    for kind, (d1, d2) in certificate.failures.items():
        lines += row("exceptions", _failure(kind, d1, d2))
        lines += _first_failure(certificate.first_failures.get(kind))
    return lines + (_workings(certificate) if verbose else [])


def _own(certificate: Certificate) -> str:
    """Return what one pair of several has shown."""
    epsilon = numbers.at_least(certificate.epsilon_lower, above=certificate.point.epsilon)
    return f"ε ≥ {epsilon}, p {numbers.p_at_most(certificate.p_value)}"


def _events(certificate: Certificate, confidence: float, verbose: int) -> list[str]:
    every = certificate.fixed.events
    if not every:
        return row("event", "none: no output looked worth testing")
    shown = every if verbose else every[:_EVENTS_SHOWN]
    names = [f"E{place + 1}" for place in range(len(shown))] if len(every) > 1 else ["E"]
    lines: list[str] = []
    for name, event in zip(names, shown, strict=True):
        lines += row(f"event {name}", f"{event.words}  (speaks for {event.guess})")
    lines += table(_cells(names, shown, confidence), left=(0, 1, 4))
    hidden = counted(len(every) - len(shown), "event")
    return lines + (row("", f"and {hidden} more (-v shows all)") if len(every) > len(shown) else [])


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


def _failure(kind: str, d1: int, d2: int) -> str:
    return f"{kind}: {counted(d1, 'draw')} of d1, {counted(d2, 'draw')} of d2"


def _first_failure(first: FirstFailure | None) -> list[str]:
    """Return what the first exception of a kind said, and where."""
    if first is None or not (first.message or first.where):
        return []
    said = " ".join(first.message.split()) or "without a message"
    return row("", f"the first: {said}" + (f" ({first.where})" if first.where else ""))


def _workings(certificate: Certificate) -> list[str]:
    fixed = certificate.fixed
    exact = f"ε ≥ {numbers.at_least(fixed.epsilon_lower)}, p {numbers.p_at_most(fixed.p_value)}"
    if certificate.recording is not None:
        return [
            *row("found by", certificate.attack),
            *_tried(certificate),
            *row("exact test", f"{fixed.method}: {_guesses(fixed)}; {exact}"),
        ]
    betting = f"ε ≥ {numbers.at_least(certificate.epsilon_betting)}"
    wealth = numbers.at_least(certificate.wealth)
    needed = numbers.about(1 / certificate.alpha_betting)
    spent = [numbers.error_level(one) for one in (certificate.alpha_betting, fixed.alpha)]
    recorded = counted(len(certificate.blocks), "block"), counted(len(certificate.rounds), "round")
    return [
        *row("found by", certificate.attack),
        *_tried(certificate),
        *row("betting", f"evidence {wealth} of {needed} needed; {betting}"),
        *row("exact test", f"{fixed.method}: {_guesses(fixed)}; {exact}"),
        *row("error split", f"{spent[0]} for betting, {spent[1]} for the exact test"),
        *row("record", f"{recorded[0]} of draws, {recorded[1]} of bets"),
    ]


def _tried(certificate: Certificate) -> list[str]:
    """Return what each attack promised, and which were left out and why."""
    return row("attacks", findings.tried(certificate)) if certificate.attacks else []


def _guesses(fixed: FixedTest) -> str:
    rule = "either input" if fixed.two_guesses else "one input only"
    right, wrong = numbers.count(fixed.correct), numbers.count(fixed.wrong)
    return f"{right} right and {wrong} wrong guesses, at {rule}"


def _run(result: AuditResult, verbose: int) -> list[str]:
    lines = row("seed", str(result.seed))
    if not all(one.reproducible for one in result.certificates):
        lines = row("seed", f"{result.seed}, but equal seeds do not give equal outcomes")
    return lines + _time(result, verbose)


def _time(result: AuditResult, verbose: int) -> list[str]:
    lines = row("time", numbers.duration(result.seconds))
    if result.resumed:
        lines += row("runs", f"{result.resumed + 1}: this audit was resumed from its journal")
    if verbose:
        versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
        lines += row("versions", versions)
    return lines


def _warnings(result: AuditResult) -> list[str]:
    noted = dict.fromkeys(text for one in result.by_pair for text in getattr(one, "notes", ()))
    said = [("warning", text) for text in warnings_of(result)] + [("note", text) for text in noted]
    return [line for label, text in said for line in row(label, text)]


def warnings_of(result: AuditResult) -> list[str]:
    """Return every warning of an audit once."""
    every = [*result.warnings, *(text for one in result.by_pair for text in one.warnings)]
    return list(dict.fromkeys(every))


def _ignored(certificate: Certificate) -> str:
    listed = " and ".join(certificate.ignored)
    return f" Not looked at: {listed}." if listed else ""


def _meaning(result: AuditResult) -> list[str]:
    lines = paragraph(findings.attacker(result))
    if result.verdict is Verdict.NO_VIOLATION_FOUND and result.decisive is not None:
        caught = findings.detectable(result.decisive)
        lines += paragraph(f"{caught} {findings.UNPROVEN}{_ignored(result.decisive)}")
    return lines
