"""Compare two runs of the same audits: list changes and regressions in a table.

Two runs of one mechanism draw different samples, so their bounds differ by chance. A bound is
therefore reported as changed only if the confidence intervals of both runs do not overlap. If
nothing changed, the probability of such a report is at most the sum of the error probabilities of
both runs (docs/guides/ci.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit.auditing.options import DEFAULTS
from dpaudit.certificates.certificate import ExactCertificate
from dpaudit.certificates.result import (
    AnyCertificate,
    AuditResult,
    CanaryGuesses,
    Exact,
    Recorded,
    Sampled,
    Verdict,
)
from dpaudit.errors import UsageError
from dpaudit.reports import numbers
from dpaudit.reports.audit_report import is_expected
from dpaudit.reports.bounds_report import bounds
from dpaudit.reports.inputs_report import as_lists
from dpaudit.reports.markdown import escaped, table_head, table_row
from dpaudit.reports.text import NOT_RUN
from dpaudit.wording import counted, shortened

_HEAD = ("", "audit", "what", "before", "now")
# Maps each kind of result to words that name the basis of its verdict, such as draws or exact
# probabilities.
_SOURCES: Mapping[type, str] = {
    Sampled: "draws",
    Recorded: "recorded outputs",
    Exact: "a stated law",
    CanaryGuesses: "guesses about canaries",
}
# Options of an audit whose changes are reported separately: a smaller number of draws, and another
# error probability. The list of "other settings" that differ leaves them out.
_COMPARED = ("samples", "confidence")
_INPUTS = ("d1", "d2", "pairs")
_MECHANISM = ("mechanism", "params", "command", "compose")


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the audit `name` from the first run to the second run.

    what: the change, as text.
    before, now: result of the audit in each run, as text; "" if that run lacks the audit.
    """

    name: str
    what: str
    is_regression: bool
    before: str = ""
    now: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes between two runs of audits.

    audits: number of audits that occur in at least one run.
    remarks: sentences about a run as a whole, in addition to the changes of single audits.
    """

    changes: tuple[Change, ...]
    audits: int
    remarks: tuple[str, ...] = ()

    @property
    def regressions(self) -> int:
        """Return the number of audits with a regression."""
        return len({change.name for change in self.changes if change.is_regression})

    @property
    def others(self) -> int:
        """Return the number of audits that changed without a regression."""
        return len({change.name for change in self.changes}) - self.regressions


def compare(
    before: Sequence[AuditResult],
    now: Sequence[AuditResult],
    remarks: Sequence[str] = (),
    not_run: Sequence[str] = (),
) -> Comparison:
    """Return the comparison of two runs, with audits matched by name. `not_run` has the names of
    audits that the second run left out. Raises UsageError if two audits of a run have the same
    name."""
    old_results, new_results = _by_name(before, "first"), _by_name(now, "second")
    changes: list[Change] = []
    for name in dict.fromkeys([*old_results, *new_results]):
        old, new = old_results.get(name), new_results.get(name)
        if old is None and new is not None:
            # A new audit with an unexpected result counts as a regression: later comparisons will
            # find it in both runs, and would never report it.
            is_bad = not is_expected(new)
            changes.append(Change(name, _new(new), is_bad, now=_shown(new)))
        elif new is None and old is not None:
            is_left_out = name in not_run
            what = NOT_RUN if is_left_out else "vanished"
            changes.append(Change(name, what, not is_left_out, before=_shown(old)))
        elif old is not None and new is not None:
            for what, is_regression in _differences(old, new):
                changes.append(Change(name, what, is_regression, _shown(old), _shown(new)))
    sentences = [*remarks, *_families(old_results, new_results)]
    if list(before) == list(now):
        sentences.append("both files hold the results of one and the same run")
    return Comparison(tuple(changes), len({**old_results, **new_results}), tuple(sentences))


def render(comparison: Comparison) -> str:
    """Return a comparison as a Markdown table: a row for each changed audit, regressions first."""
    lines = [f"### dpaudit compare: {escaped(_summary(comparison))}", ""]
    worse = {change.name for change in comparison.changes if change.is_regression}
    names = dict.fromkeys(change.name for change in comparison.changes)
    lines += table_head(_HEAD) if names else []
    for name in sorted(names, key=lambda name: name not in worse):
        changes = [change for change in comparison.changes if change.name == name]
        changes.sort(key=lambda change: not change.is_regression)
        what = "; ".join(change.what for change in changes)
        texts = (shortened(name, 120), what, changes[0].before, changes[0].now)
        kind = "**REGRESSION**" if name in worse else "change"
        lines.append(table_row([kind, *(escaped(numbers.unglued(text)) for text in texts)]))
    lines += [""] if names else []
    lines += [f"* {escaped(text)}" for text in comparison.remarks]
    return "\n".join(lines).rstrip("\n") + "\n"


def _by_name(results: Sequence[AuditResult], which: str) -> dict[str, AuditResult]:
    by_name: dict[str, AuditResult] = {}
    for result in results:
        if result.name in by_name:
            raise UsageError(
                f"the {which} file has two audits named {result.name!r}, so it is unclear which "
                "to compare; give each audit its own name",
                code="name-not-unique",
            )
        by_name[result.name] = result
    return by_name


def _new(result: AuditResult) -> str:
    """Return text about an audit that only the second run has."""
    if is_expected(result):
        return "new audit"
    if result.verdict is Verdict.ERROR:
        return "an error, in a new audit"
    if result.failing_warnings:
        return f"{_strictly(result)}, in a new audit"
    if result.verdict is Verdict.VIOLATION:
        return "new violation, in a new audit"
    if result.underpowered is not None:
        return f"under-powered, in a new audit: {result.underpowered}"
    return "a violation that is expected was not found, in a new audit"


def _differences(old: AuditResult, new: AuditResult) -> Iterator[tuple[str, bool]]:
    """Yield (text, whether it is a regression) for each difference of two results."""
    verdict = _verdicts(old, new)
    if verdict is not None:
        yield verdict
    if new.verdict is Verdict.NO_VIOLATION_FOUND and old.verdict is not Verdict.ERROR:
        yield from _power(old, new)
    if new.failing_warnings and not old.failing_warnings:
        yield _strictly(new), True
    yield from _setup_changes(old, new)
    yield from _interval_changes(old, new)
    if verdict is None and _should_be_equal(old, new) and _blocks(old) != _blocks(new):
        yield "other draws from the same seed: the code of the mechanism has changed", False


def _strictly(result: AuditResult) -> str:
    """Return text that lists the warnings that make a strict audit fail."""
    return f"failed by warnings (strict): {'; '.join(result.failing_warnings)}"


def _verdicts(old: AuditResult, new: AuditResult) -> tuple[str, bool] | None:
    is_new = old.verdict is not new.verdict
    if new.verdict is Verdict.ERROR:
        return ("an error, where there was a verdict", True) if is_new else None
    if new.verdict is Verdict.VIOLATION:
        if new.meets_expectation:
            return ("violation, as expected", False) if is_new else None
        if is_new or old.meets_expectation:
            return "new violation" if is_new else "a violation that is not expected any more", True
        return None
    if not is_new:
        return None
    if old.verdict is Verdict.ERROR:
        return "no error any more", False
    if new.expect == "violation":
        return "lost power: a violation that is expected was not found", True
    return "no violation any more", False


def _power(old: AuditResult, new: AuditResult) -> Iterator[tuple[str, bool]]:
    """Yield (text, True) if the new result lost power."""
    # The smallest detectable ε depends on the chosen event, which differs by chance.
    if new.underpowered is not None and old.underpowered is None:
        yield f"lost power: under-powered: {new.underpowered}", True
        return
    old_budget, new_budget = _budget(old), _budget(new)
    if old_budget is not None and new_budget is not None and new_budget < old_budget:
        yield f"lost power: {counted(new_budget, 'draw')}, before {old_budget:,}", True


def _budget(result: AuditResult) -> int | None:
    """Return the largest number of draws for all pairs together; None if there is no such limit."""
    if not result.certificates or any(
        certificate.evidence.by_clock for certificate in result.certificates
    ):
        return None
    return sum(certificate.evidence.budget for certificate in result.certificates)


def _setup_changes(old: AuditResult, new: AuditResult) -> Iterator[tuple[str, bool]]:
    """Yield (text, False) for each difference in claim, mechanism, inputs or other settings."""
    # Such a change is no regression: the two results answer different questions.
    reported_keys = [*_COMPARED]
    if old.claim != new.claim:
        yield f"another claim: {new.claim.describe()}, before {old.claim.describe()}", False
        reported_keys.append("claim")
    if old.target != new.target:
        yield f"another mechanism: {new.target}, before {old.target}", False
        reported_keys += _MECHANISM
    results = [result for result in (old, new) if result.verdict is not Verdict.ERROR]
    pairs = [[certificate.pair for certificate in result.by_pair] for result in results]
    if len(pairs) == 2 and pairs[0] != pairs[1] and not _has_same_inputs(old, new):
        yield f"other inputs: {'; '.join(pairs[1])}, before {'; '.join(pairs[0])}", False
        reported_keys += _INPUTS
    sources = [_SOURCES[type(result.ending)] for result in results]
    if len(sources) == 2 and sources[0] != sources[1]:
        yield f"judged by {sources[1]}, before by {sources[0]}", False
        reported_keys.append("exact")
    yield from _confidence_changes(old, new)
    other_keys = [key for key in _other_settings(old, new) if key not in reported_keys]
    if other_keys:
        yield f"other settings: {', '.join(other_keys)}", False


def _has_same_inputs(old: AuditResult, new: AuditResult) -> bool:
    """Return whether the settings of two audits name the same inputs."""
    # Not the descriptions of inputs, which may differ between two versions of dpaudit.
    old_settings, new_settings = (_settings(result.request or {}) for result in (old, new))
    named = [key for key in _INPUTS if key in old_settings or key in new_settings]
    return bool(named) and all(old_settings.get(key) == new_settings.get(key) for key in named)


def _confidence_changes(old: AuditResult, new: AuditResult) -> Iterator[tuple[str, bool]]:
    """Yield (text, False) for each difference in error probability."""
    if not (old.ending.by_chance and new.ending.by_chance):
        return
    old_confidence, new_confidence = (
        result.confidence if result.family is None else result.family.confidence
        for result in (old, new)
    )
    if old_confidence != new_confidence:
        now, then = numbers.level(new_confidence), numbers.level(old_confidence)
        yield f"another confidence: {now}, before {then}", False
    if (old.family is None) != (new.family is None):
        now = "its own" if new.family is None else f"that of {counted(new.family.size, 'audit')}"
        yield f"another error probability: {now}", False


def _families(
    old_results: Mapping[str, AuditResult], new_results: Mapping[str, AuditResult]
) -> list[str]:
    """Return a remark for each family whose number of audits has changed."""
    families = [
        (old_results[name].family, result.family)
        for name, result in new_results.items()
        if name in old_results
    ]
    sizes = {(old.size, new.size) for old, new in families if old is not None and new is not None}
    return [
        f"{counted(new, 'audit')} share an error probability, before {old:,}"
        for old, new in sorted(sizes)
        if old != new
    ]


def _other_settings(old: AuditResult, new: AuditResult) -> list[str]:
    """Return the names of the settings that differ. Return [] if a result has no settings."""
    if old.request is None or new.request is None:
        return []
    old_settings, new_settings = _settings(old.request), _settings(new.request)
    return [
        key
        for key in dict.fromkeys([*old_settings, *new_settings])
        if old_settings.get(key, DEFAULTS.get(key)) != new_settings.get(key, DEFAULTS.get(key))
    ]


def _settings(request: Mapping[str, Any]) -> dict[str, Any]:
    settings = as_lists(request.get("settings"))
    if not isinstance(settings, dict):
        return {}
    # The settings `name` and `expect` do not affect any draw, so they are not compared.
    return {key: value for key, value in settings.items() if key not in ("name", "expect")}


def _interval_changes(old: AuditResult, new: AuditResult) -> Iterator[tuple[str, bool]]:
    """Yield (text, False) for each pair whose intervals for ε in the two runs do not overlap."""
    intervals = {certificate.pair: _interval(certificate) for certificate in old.by_pair}
    if old.repeated != new.repeated:
        return
    for certificate in new.by_pair:
        if certificate.pair not in intervals:
            continue
        (low, high), (lower, upper) = intervals[certificate.pair], _interval(certificate)
        of = f" on {certificate.pair}" if len(new.by_pair) > 1 else ""
        if lower > high:
            now, then = numbers.at_least(lower, above=high), numbers.at_most(high)
            yield f"leaks more{of}: ε ≥ {now}, before ε ≤ {then}", False
        elif upper < low:
            yield (
                f"leaks less{of}: ε ≤ {numbers.at_most(upper)}, before ε ≥ {numbers.at_least(low)}",
                False,
            )


def _interval(certificate: AnyCertificate) -> tuple[float, float]:
    """Return the lower and the upper bound for the ε of a pair at δ = 0; the upper may be inf."""
    # A lower bound at a larger δ is also valid at δ = 0, since ε decreases as δ grows.
    if isinstance(certificate, ExactCertificate):
        return certificate.epsilon, certificate.epsilon
    interval = getattr(certificate, "interval", None)
    if interval is None:
        return certificate.epsilon_lower, float("inf")
    # The caller compares `epsilon_lower` of one run with `interval.upper` of the other. Each bound
    # has the error probability of its pair, so the probability of a false report is at most their
    # sum, as documented. `interval.lower` would be a third bound with an error probability of its
    # own.
    return certificate.epsilon_lower, interval.upper


def _should_be_equal(old: AuditResult, new: AuditResult) -> bool:
    """Return whether both runs must make the same draws, unless the code has changed."""
    certificates = [*old.certificates, *new.certificates]
    is_repeatable = all(
        certificate.reproducible
        and certificate.evidence.recording is None
        and not certificate.evidence.by_clock
        for certificate in certificates
    )
    if old.request is None or new.request is None:
        return False
    same = ("seed", "versions", "claim", "target", "confidence")
    are_same = all(getattr(old, name) == getattr(new, name) for name in same)
    is_asked_again = old.request.get("folder") == new.request.get("folder") and (
        _settings(old.request) == _settings(new.request)
    )
    return bool(certificates) and is_repeatable and are_same and is_asked_again


def _blocks(result: AuditResult) -> list[object]:
    return [certificate.evidence.blocks for certificate in result.certificates]


def _shown(result: AuditResult) -> str:
    """Return the verdict and the bound of an audit as one line."""
    verdict = result.verdict.value
    if result.verdict is Verdict.ERROR:
        return f"{verdict}: {shortened(' '.join((result.error or '').split()), 100)}"
    return f"{verdict}, {bounds(result)[0].brief(result)}"


def _summary(comparison: Comparison) -> str:
    same = comparison.audits - comparison.regressions - comparison.others
    parts = [
        counted(comparison.regressions, "regression") if comparison.regressions else "",
        f"{comparison.others:,} with other changes" if comparison.others else "",
        f"{same:,} without a change" if same else "",
    ]
    return f"{counted(comparison.audits, 'audit')}: {', '.join(filter(None, parts))}."
