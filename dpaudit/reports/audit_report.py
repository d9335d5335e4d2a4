"""Write the report of one audit as rows, in one order: headline, claim, bounds, inputs and their
evidence, cause, search, remarks, meaning. The formats of reports lay the rows out. `verbose` is the
number of options -v: 1 asks for every pair and event, and for the steps that led to the result."""

from __future__ import annotations

import math
from typing import NamedTuple

from dpaudit.auditing.underpowered import is_mostly_new
from dpaudit.certificates.certificate import Certificate, EpsilonInterval, FixedTest
from dpaudit.certificates.result import (
    AuditResult,
    CanaryGuesses,
    Exact,
    Failed,
    Interrupted,
    Recorded,
    Verdict,
)
from dpaudit.inputs.neighbouring import EQUAL, EQUAL_INPUTS
from dpaudit.reports import (
    bounds_report,
    events,
    inputs_report,
    nights_report,
    numbers,
    parity_report,
    trace_report,
    undrawn,
)
from dpaudit.reports.layout import BELOW, Item, glued, paragraph, row, table
from dpaudit.wording import counted

# Largest number of types of exceptions, and of attacks, that a report lists.
_MAX_EXCEPTIONS, _MAX_ATTACKS = 3, 4
_OTHER_PAIR = (
    "These draws show no clear difference between d1 and d2. If another pair may leak, dpaudit "
    "search looks for it."
)
# The number is the largest budget of a pair of inputs.
_TIMED = (
    "the time limit planned the blocks of draws, so no command makes these draws again; with "
    "samples={} in place of time, reruns are equal"
)


def is_expected(result: AuditResult) -> bool:
    """Return whether an audit passes. It does if its verdict is as expected, if it had the required
    power, and if no warning makes it fail, as in a strict audit."""
    is_able = result.underpowered is None
    return result.meets_expectation and is_able and not result.failing_warnings


def leaves_open(result: AuditResult) -> bool:
    """Return whether the audit found no violation, so that more draws or other inputs may find
    one."""
    return result.verdict is Verdict.NO_VIOLATION_FOUND


def unable(result: AuditResult) -> str:
    """Return why an audit without a violation does not pass: `under-powered` or `interrupted`."""
    return "interrupted" if isinstance(result.ending, Interrupted) else "under-powered"


def verdict_of(result: AuditResult) -> str:
    """Return the verdict as text. It includes the reason if the audit does not pass, and `expected`
    if the user stated this verdict beforehand."""
    verdict = result.verdict.value
    if result.underpowered is not None:
        return f"{verdict} ({unable(result)})"
    if result.failing_warnings:
        return f"{verdict} (failed by warnings)"
    if result.expect is None:
        return verdict
    wanted = Verdict.VIOLATION.value if result.expect == "violation" else "no violation"
    return f"{verdict} (expected)" if is_expected(result) else f"{verdict} (expected: {wanted})"


def headline(result: AuditResult) -> str:
    """Return one sentence with the verdict, the name of the audit, the reason and, if the user
    stated one, the expected verdict."""
    text = f"{result.verdict.value}  {result.name}: {reason(result)}"
    is_met = result.meets_expectation
    is_able = result.underpowered is None and not result.failing_warnings
    if result.expect is None or result.verdict is Verdict.ERROR or (is_met and not is_able):
        return text
    return f"{text} (as expected)" if is_met else f"{text} (expected: {result.expect})"


def reason(result: AuditResult) -> str:
    """Return the reason for the verdict. If only warnings make a strict audit fail, return them,
    too."""
    is_interrupted = isinstance(result.ending, Interrupted)
    is_error = result.verdict is Verdict.ERROR
    if result.underpowered is not None and not (is_interrupted or is_error):
        text = f"under-powered: {result.underpowered}"
    else:
        text = parity_report.named(result, _reason(result))
    failing = result.failing_warnings
    if not failing:
        return text
    if result.underpowered is not None and leaves_open(result):
        text += "; the claim is not refuted"
    fail = "warning fails" if len(failing) == 1 else f"{len(failing)} warnings fail"
    return f"{text}; strict: {'1 ' * (len(failing) == 1)}{fail} the audit: {'; '.join(failing)}"


def _reason(result: AuditResult) -> str:
    ending = result.ending
    if isinstance(ending, Failed):
        return ending.error or "the audit did not end"
    if isinstance(ending, Exact):
        return undrawn.exact_reason(result, ending)
    if isinstance(ending, CanaryGuesses):
        return undrawn.canary_reason(result, ending.deciding)
    level, interrupted = bounds_report.decided_at(result), ""
    if isinstance(ending, Interrupted):
        interrupted = _interruption(ending)
    if result.nights is not None and result.nights.first is not None:
        text = nights_report.alarm(result.nights, result.nights.first)
        return f"{text}; {interrupted}" if interrupted else text
    if result.verdict is Verdict.VIOLATION:
        is_outside = result.searched is not None and inputs_report.is_outside(result)
        where = " outside the space" if is_outside else ""
        moment, observation = events.refutation(ending.deciding)
        if result.is_parity:
            observation = parity_report.observation(result, ending.deciding)
        text = f"refuted at {level}{where}{moment}: {observation}"
        return f"{text}; {interrupted}" if interrupted else text
    if not interrupted:
        return f"{counted(result.draws, 'draw')} do not refute {result.claim.describe()} at {level}"
    at = f" at δ = {numbers.plain(result.point.delta)}" if result.point.delta else ""
    bets = " (bets)" if ending.deciding.is_interrupted else ""
    least = numbers.at_least(result.epsilon_lower, above=result.point.epsilon)
    return f"{interrupted}: ε ≥ {least}{at} with {level} confidence{bets}"


def _interruption(ending: Interrupted) -> str:
    last = ending.certificates[-1]
    text = f"interrupted after {last.draws:,}"
    if last.evidence.budget > last.draws:
        text += f" of {last.evidence.budget:,}"
    of_pairs = f" of pair {len(ending.certificates)} of {ending.pairs}" if ending.pairs > 1 else ""
    return f"{text} draws{of_pairs}"


def warnings_of(result: AuditResult) -> list[str]:
    """Return the warnings of an audit that its headline does not contain, without repetitions."""
    is_said = result.underpowered == EQUAL_INPUTS
    return [
        parity_report.named(result, text)
        for text in result.all_warnings
        if not (is_said and text == EQUAL)
    ]


def notes_of(result: AuditResult) -> list[str]:
    """Return the notes of an audit without repetitions."""
    of_pairs = (text for pair in result.by_pair for text in getattr(pair, "notes", ()))
    seeded = [pair for pair in result.certificates if pair.reproducible]
    budgets = [pair.evidence.budget for pair in seeded if pair.evidence.by_clock]
    timed = [_TIMED.format(max(budgets))] if budgets else []
    paced = [result.pace] if result.pace else []
    notes = dict.fromkeys([*paced, *result.notes, *of_pairs, *timed])
    return [parity_report.named(result, text) for text in notes]


class Statements(NamedTuple):
    """The rows of an audit, from the claim to the search, and the sentences about their meaning."""

    rows: list[Item]
    meaning: list[Item]


def statements(result: AuditResult, verbose: int) -> Statements:
    """Return the rows and sentences of an audit below its headline, without warnings and notes."""
    results = _results(result, verbose)
    rows = [
        *_claim_rows(result),
        *results,
        *([] if result.nights is None else nights_report.rows(result.nights)),
        *trace_report.rows(result),
        *([] if result.searched is None else inputs_report.rows(result, verbose)),
        *(_time(result) if results and verbose else []),
    ]
    if result.resumed:
        rows += row("runs", f"{result.resumed + 1}: this audit was resumed from its journal")
    meaning = _meaning(result, verbose)
    return Statements(
        parity_report.named_items(result, rows), parity_report.named_items(result, meaning)
    )


def _claim_rows(result: AuditResult) -> list[Item]:
    claim = result.claim
    where = f" ({result.source})" if result.source else ""
    rows = row("claim", f"{claim.describe()}, {claim.title}: {glued(claim.formula)}")
    if result.claimed_by is not None:
        rows += row("claimed by", result.claimed_by.describe())
    of_one_run = claim if result.repeated is None else result.repeated.claim
    if result.grouped is not None:
        record_claim, size = result.grouped.claim.describe(), result.grouped.size
        rows += row("", f"{record_claim} for one record, {of_one_run.describe()} for {size:,}")
    if result.repeated is not None:
        times = result.repeated.times
        rows += row("", f"{of_one_run.describe()} for one run, {claim.describe()} for {times}")
    return [*rows, *row("mechanism", f"{result.target}{where}")]


def _results(result: AuditResult, verbose: int) -> list[Item]:
    """Return the bounds, and the deciding pair of inputs, or all pairs, with the evidence."""
    ending = result.ending
    if isinstance(ending, CanaryGuesses):
        return undrawn.canary_rows(result, ending.deciding, verbose)
    if isinstance(ending, Exact):
        laws = ending.certificates if verbose else (ending.deciding,)
        return [line for pair in laws for line in undrawn.exact_rows(result, pair, verbose)]
    if ending.deciding is None:
        return []
    pairs = ending.certificates if verbose else (ending.deciding,)
    lines = [line for pair in pairs for line in _pair(pair, result, verbose)]
    return [*bounds_report.rows(result, every=verbose > 0), *lines]


def _pair(certificate: Certificate, result: AuditResult, verbose: int) -> list[Item]:
    has_several = len(result.certificates) > 1
    lines = inputs_report.inputs(result, certificate, shown=verbose > 0 or not has_several)
    if has_several and verbose:
        least = numbers.at_least(certificate.epsilon_lower, above=certificate.point.epsilon)
        bound = f"ε ≥ {least}, p {numbers.p_at_most(certificate.p_value)}"
        lines = ["", *lines, *row("", bound)]
    if certificate.ended_by_bets or certificate.is_interrupted:
        for index, (name, value) in enumerate(events.bets(certificate)):
            lines += row("" if index else "bets", f"{name}: {value}")
    workings = _workings(certificate) if verbose else []
    if certificate.is_interrupted:
        return lines + workings
    if events.is_by_divergence(certificate) and not verbose:
        lines += _divergence(certificate)  # the divergence refutes the claim, the event does not
    else:
        lines += _events(certificate, result.confidence, verbose)
        bets = events.evidence_of_bets(certificate)
        lines += row("evidence", bets) if bets else []
    if _has_row_of_draws(certificate, verbose):
        lines += row("draws", _draws(certificate))
    lines += [] if certificate.interval is None else _interval(certificate, certificate.interval)
    return lines + _exceptions(certificate, verbose) + workings


def _has_row_of_draws(certificate: Certificate, verbose: int) -> bool:
    return verbose > 0 or certificate.evidence.recording is not None


def _events(certificate: Certificate, confidence: float, verbose: int) -> list[Item]:
    leading, point = events.leading_event(certificate), certificate.point
    if leading is None:
        return row("event", "none: no output looked worth testing")
    shown = certificate.fixed.events if verbose else (leading,)
    names = [f"E{number}" for number in range(1, len(shown) + 1)] if len(shown) > 1 else ["E"]
    named = list(zip(names, shown, strict=True))
    learning_draws = _learned(certificate)
    if certificate.ended_by_bets:
        learning_draws = certificate.draws - certificate.fixed.draws
    # A row of draws already says how many draws chose the event.
    is_said = _has_row_of_draws(certificate, verbose)
    choice = "" if is_said else f"; chosen on {counted(learning_draws, 'separate draw')}"
    lines: list[Item] = []
    for name, event in named:
        words = event.words if verbose else events.brief(event.words)
        lines += row(f"event {name}", f"{words}  (points to {event.guess}{choice})")
    cells = [["", "", "seen in", "share", f"{numbers.level(confidence)} Clopper–Pearson"]]
    for name, event in named:
        cells += map(list, events.counted_rows(name, event, point))
    lines += table(cells, left=(0, 1, 4), margin=BELOW)
    if certificate.fixed.method != "probabilistic":
        lines += [events.allowance(name, event, point) for name, event in named]
    return lines


def _learned(certificate: Certificate) -> int:
    return sum(block.draws for block in certificate.evidence.blocks if block.stage == "learning")


def _draws(certificate: Certificate) -> str:
    evidence, test_draws = certificate.evidence, certificate.fixed.draws
    if evidence.recording is not None:
        recording = evidence.recording
        counts = f"{recording.draws_d1:,} of d1 and {recording.draws_d2:,} of d2 recorded"
        use = (
            f"{certificate.draws - test_draws:,} to learn from, {test_draws:,} for the exact bound"
        )
        return f"{counts}; {use}"
    text = f"{certificate.draws:,} of {evidence.budget:,}"
    if evidence.counted:
        uncounted = _learned(certificate) - evidence.counted
        text += f"; {uncounted:,} kept and {evidence.counted:,} counted to learn from"
    if evidence.refuted_after is not None:
        text += f"; refuted after {evidence.refuted_after:,}"
    if certificate.fixed.stage == "confirmation":
        return f"{text}, confirmed on {test_draws:,} more"
    if certificate.ended_by_bets:
        return f"{text} by bets alone"
    return f"{text}; {test_draws:,} of them kept for the exact bound"


def _interval(certificate: Certificate, interval: EpsilonInterval) -> list[Item]:
    at_zero = " at δ = 0" if certificate.point.delta else ""
    level, lower = numbers.level(1 - certificate.alpha), numbers.at_least(interval.lower)
    if math.isfinite(interval.upper):
        lies = f"between {lower} and {numbers.at_most(interval.upper)}, at {level}"
    else:
        # An output that was never drawn for an input leaves ε without an upper bound.
        words, d1, d2 = next(
            output for output in certificate.evidence.declared or () if not all(output[1:])
        )
        never = f" for {'d2' if d1 else 'd1'}" if d1 or d2 else ""
        why = f"{words} was never drawn{never}"
        lies = f"at least {lower}, at {level}; not bounded from above, since {why}"
    return row("range", f"ε for this pair{at_zero} is {lies}")


def _exceptions(certificate: Certificate, verbose: int) -> list[Item]:
    """Return rows that count exceptions of the mechanism by type, the most frequent type first."""
    kinds = sorted(certificate.failures.items(), key=lambda failure: -sum(failure[1]))
    shown = len(kinds) if verbose else _MAX_EXCEPTIONS
    lines: list[Item] = []
    for kind, counts in kinds[:shown]:
        lines += row("exceptions", f"{kind}: {_draws_of(counts)}")
        first = certificate.first_failures.get(kind)
        if first is not None and (first.message or first.where):
            message = " ".join(first.message.split()) or "without a message"
            where = f" ({first.where})" if first.where else ""
            lines += row("", f"the first: {message}{where}")
    if remaining := [counts for _, counts in kinds[shown:]]:
        counts = sum(d1 for d1, _ in remaining), sum(d2 for _, d2 in remaining)
        types = counted(len(remaining), "more type")
        lines += row("exceptions", f"of {types}: {_draws_of(counts)}")
    return lines


def _draws_of(counts: tuple[int, int]) -> str:
    return f"{counted(counts[0], 'draw')} of d1, {counted(counts[1], 'draw')} of d2"


def _divergence(certificate: Certificate) -> list[Item]:
    test = certificate.divergence
    if test is None:
        return []
    allowed, lower = numbers.plain(test.allowed), numbers.at_least(test.lower, above=test.allowed)
    bounded = f"{events.divergence(test)} ≥ {lower} (allowed: {allowed})"
    p = numbers.p_at_most(test.p_value)
    return row("divergence", f"{bounded}, p {p}; P of d1, Q of d2")


def _workings(certificate: Certificate) -> list[Item]:
    """Return the rows on attack, bets, exact test and error probabilities."""
    attack = certificate.fixed.rule.attack
    rows = row("found by", attack) if attack else []
    rows += row("attacks", _tried(certificate)) if certificate.attacks else []
    tests = [*_exact_test(certificate), *_divergence(certificate)]
    if certificate.evidence.recording is not None:
        return [*rows, *tests]
    needed = numbers.about(1 / certificate.alpha_betting)
    wealth = numbers.at_least(certificate.wealth)
    if certificate.divergence_bets is not None:
        of_divergences = numbers.at_least(certificate.divergence_bets.wealth)
        wealth += f" on events, {of_divergences} on divergences"
    bound = f"ε ≥ {numbers.at_least(certificate.epsilon_betting)}"
    rows += row("betting", f"wealth {wealth} (violation at {needed}); {bound}")
    # `fixed.alpha` is the error probability of this rule alone. Divided by the rule's share, it is
    # the error probability of all rules of the exact test together.
    fixed = certificate.fixed
    alphas = (certificate.alpha_betting, fixed.alpha / fixed.rule.share)
    of_bets, of_tests = map(numbers.error_level, alphas)
    purpose = "for the exact test"
    if certificate.divergence is not None:
        purpose = "each for the exact test and the divergence"
    purpose += " (its rules share that)" if certificate.others else ""
    blocks = counted(len(certificate.evidence.blocks), "block")
    rounds = counted(len(certificate.evidence.rounds), "round")
    return [
        *rows,
        *tests,
        *row("error split", f"{of_bets} for betting, {of_tests} {purpose}"),
        *row("record", f"{blocks} of draws, {rounds} of bets"),
    ]


def _exact_test(certificate: Certificate) -> list[Item]:
    fixed = certificate.fixed
    if certificate.ended_by_bets:
        text = "none: bets ended the run"
    elif certificate.is_interrupted:
        text = "none: the run was interrupted"
    else:
        bound = f"ε ≥ {numbers.at_least(fixed.epsilon_lower)}, p {numbers.p_at_most(fixed.p_value)}"
        inputs = "either input" if fixed.two_guesses else "one input only"
        guesses = f"{fixed.correct:,} right and {fixed.wrong:,} wrong guesses, at {inputs}"
        which = f", {fixed.rule.kind} rule" if certificate.others else ""
        text = f"{fixed.method}{which}: {guesses}; this test alone: {bound}"
    lines = row("exact test", text)
    tests = certificate.rules
    if [test.rule.kind for test in tests] != ["main"]:
        for index, test in enumerate(tests):
            lines += row("" if index else "rules", _rule(test))
    return lines


def _rule(test: FixedTest) -> str:
    share = f"{100 * test.rule.share:.4g}{numbers.GLUE}%"
    bound = f"ε ≥ {numbers.at_least(test.epsilon_lower)}"
    words = " or ".join(event.words for event in test.events)
    return f"{test.rule.kind} ({share}): {bound}, {events.brief(words) if words else 'no event'}"


def _tried(certificate: Certificate) -> str:
    """Return the predicted bounds of the attacks, and the attacks that were not tried."""
    predicted: dict[str, float] = {}
    for tried in certificate.attacks:
        if tried.predicted is not None:
            predicted[tried.attack] = max(tried.predicted, predicted.get(tried.attack, 0.0))
    order = sorted(predicted, key=lambda name: -predicted[name])
    listed = [f"{name} {numbers.about(predicted[name])}" for name in order[:_MAX_ATTACKS]]
    if len(order) > _MAX_ATTACKS:
        listed.append(f"{len(order) - _MAX_ATTACKS} more")
    text = f"predicted bound: {', '.join(listed)}"
    skipped = [
        f"{tried.attack} ({tried.skipped})" for tried in certificate.attacks if tried.skipped
    ]
    return f"{text}; not tried: {', '.join(skipped)}" if skipped else text


def _time(result: AuditResult) -> list[Item]:
    lines = row("seed", str(result.seed)) if result.certificates else []
    lines += row("workers", str(result.workers)) if result.workers is not None else []
    lines += row("time", numbers.duration(result.seconds))
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    return lines + row("versions", versions)


def _meaning(result: AuditResult, verbose: int) -> list[Item]:
    """Return sentences on what an attacker learns, and on the limits of the audit."""
    ending = result.ending
    if isinstance(ending, Exact):
        return undrawn.exact_meaning(ending, verbose)
    if isinstance(ending, CanaryGuesses):
        return undrawn.canary_meaning(result, ending.deciding, verbose)
    certificate = ending.deciding
    if certificate is None:
        return []
    # A claim may be refuted in another parameter, such as μ, while the bound for ε is 0. A sentence
    # about ε ≥ 0 would say nothing about an attacker.
    is_news = result.epsilon_lower > 0 or result.verdict is not Verdict.VIOLATION
    sentences = [_attacker(result, certificate)] if verbose and is_news else []
    if certificate.is_interrupted:
        sentences.append(bounds_report.UNPROVEN)
    elif leaves_open(result):
        sentences += [
            bounds_report.detectable(certificate),
            bounds_report.unseen(certificate),
            _shows_nothing(result),
            trace_report.DECIDES if trace_report.may_decide(result) else "",
            bounds_report.untested(certificate.ignored),
            bounds_report.UNPROVEN,
        ]
    return [line for sentence in sentences if sentence for line in paragraph(sentence)]


def _attacker(result: AuditResult, certificate: Certificate) -> str:
    """Return a sentence on how sure of the input an attacker can be who sees one output."""
    if result.epsilon_lower <= 0:
        return f"{bounds_report.EVEN} was not shown to learn anything from this mechanism's output."
    sure, allowed, fixed = numbers.sure(result.epsilon_lower), result.point, certificate.fixed
    seeing = "from some of the outputs"
    if fixed.events and fixed.epsilon_lower >= result.epsilon_lower:
        names = [f"E{number}" for number in range(1, len(fixed.events) + 1)]
        where = "E, which occurs" if len(names) == 1 else f"{' or '.join(names)}, which occur"
        share = numbers.share((fixed.correct + fixed.wrong) / fixed.draws)
        seeing = f"from an output in {where} in {share} of the draws"
    text = (
        f"{bounds_report.EVEN} can tell the inputs apart with at least {sure} certainty, {seeing}"
    )
    text += f" (shown with {numbers.level(result.confidence)} confidence)"
    if allowed.delta == 0:
        text += f"; the claim allows {numbers.sure(allowed.epsilon, numbers.NEAREST)}"
    return f"{text}."


def _shows_nothing(result: AuditResult) -> str:
    """Return a sentence if the draws of the user's pairs show no difference; else ""."""
    if result.searched is not None or isinstance(result.ending, Recorded):
        return ""
    pairs = result.certificates
    # Equal inputs have a warning, and of outputs that are mostly new no event says anything.
    if any(EQUAL in pair.warnings or is_mostly_new(pair) for pair in pairs):
        return ""
    tested = [event for pair in pairs for test in pair.rules for event in test.events]
    is_alike = result.epsilon_lower <= 0 and all(
        max(event.interval_d1[0], event.interval_d2[0])
        <= min(event.interval_d1[1], event.interval_d2[1])
        for event in tested
    )
    if not is_alike:
        return ""
    return parity_report.ALIKE if result.is_parity else _OTHER_PAIR
