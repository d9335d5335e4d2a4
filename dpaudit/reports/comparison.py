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
    Canaries,
    Exact,
    Recorded,
    Sampled,
    Verdict,
)
from dpaudit.errors import UsageError
from dpaudit.reports import numbers
from dpaudit.reports.bounds import bounds
from dpaudit.reports.markdown import escaped, table_head, table_row
from dpaudit.reports.report import is_expected
from dpaudit.reports.searched import as_lists
from dpaudit.reports.text import NOT_RUN
from dpaudit.wording import counted, shortened

_HEAD = ("", "audit", "what", "before", "now")
# Maps each kind of result to words that name the basis of its verdict, such as draws or exact
# probabilities.
_SOURCES: Mapping[type, str] = {
    Sampled: "draws",
    Recorded: "recorded outputs",
    Exact: "a stated law",
    Canaries: "guesses about canaries",
}
# Options of an audit whose changes are reported separately: a smaller number of draws, and another
# error probability. The list of "other settings" that differ leaves them out.
_COMPARED = ("samples", "confidence")
_INPUTS = ("d1", "d2", "pairs")
_MECHANISM = ("mechanism", "params", "command", "compose")


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one audit from the first run to the second run.

    name: name of the audit.
    what: the change, as text.
    is_regression: whether the change is a regression.
    before, now: result of the audit in the first and in the second run, as text; "" if that run
        lacks the audit.
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
        return len({one.name for one in self.changes if one.is_regression})

    @property
    def others(self) -> int:
        """Return the number of audits that changed without a regression."""
        return len({one.name for one in self.changes}) - self.regressions


def compare(
    before: Sequence[AuditResult],
    now: Sequence[AuditResult],
    remarks: Sequence[str] = (),
    not_run: Sequence[str] = (),
) -> Comparison:
    """Return the comparison of two runs. Audits with the same name are compared.

    not_run: names of audits that the second run left out because it stopped early.

    Raises UsageError if two audits of a run have the same name.
    """
    old, new = _by_name(before, "first"), _by_name(now, "second")
    changes: list[Change] = []
    for name in dict.fromkeys([*old, *new]):
        was, found = old.get(name), new.get(name)
        if was is None and found is not None:
            # A new audit with an unexpected result counts as a regression: later comparisons will
            # find it in both runs, and would never report it.
            is_bad = not is_expected(found)
            changes.append(Change(name, _new(found), is_bad, now=_shown(found)))
        elif found is None and was is not None:
            is_left_out = name in not_run
            what = NOT_RUN if is_left_out else "vanished"
            changes.append(Change(name, what, not is_left_out, before=_shown(was)))
        elif was is not None and found is not None:
            for what, is_regression in _differences(was, found):
                changes.append(Change(name, what, is_regression, _shown(was), _shown(found)))
    said = [*remarks, *_families(old, new)]
    if list(before) == list(now):
        said.append("both files hold the results of one and the same run")
    return Comparison(tuple(changes), len({**old, **new}), tuple(said))


def render(comparison: Comparison) -> str:
    """Return a comparison as a table of Markdown, with a row for each changed audit, those with
    a regression first."""
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
    found: dict[str, AuditResult] = {}
    for one in results:
        if one.name in found:
            raise UsageError(
                f"the {which} file has two audits named {one.name!r}, so it is unclear which "
                "to compare; give each audit its own name",
                code="name-not-unique",
            )
        found[one.name] = one
    return found


def _new(found: AuditResult) -> str:
    """Return text about an audit that only the second run has."""
    if is_expected(found):
        return "new audit"
    if found.verdict is Verdict.ERROR:
        return "an error, in a new audit"
    if found.failing_warnings:
        return f"{_strictly(found)}, in a new audit"
    if found.verdict is Verdict.VIOLATION:
        return "new violation, in a new audit"
    if found.underpowered is not None:
        return f"under-powered, in a new audit: {found.underpowered}"
    return "a violation that is expected was not found, in a new audit"


def _differences(was: AuditResult, found: AuditResult) -> Iterator[tuple[str, bool]]:
    """Yield (text, whether it is a regression) for each difference between two results of one
    audit.

    was: result in the first run.
    found: result in the second run.
    """
    verdict = _verdicts(was, found)
    if verdict is not None:
        yield verdict
    if found.verdict is Verdict.NO_VIOLATION_FOUND and was.verdict is not Verdict.ERROR:
        yield from _power(was, found)
    if found.failing_warnings and not was.failing_warnings:
        yield _strictly(found), True
    yield from _asked(was, found)
    yield from _moved(was, found)
    if verdict is None and _should_be_equal(was, found) and _drawn(was) != _drawn(found):
        yield "other draws from the same seed: the code of the mechanism has changed", False


def _strictly(found: AuditResult) -> str:
    """Return text that lists the warnings that make a strict audit fail."""
    return f"failed by warnings (strict): {'; '.join(found.failing_warnings)}"


def _verdicts(was: AuditResult, found: AuditResult) -> tuple[str, bool] | None:
    is_new = was.verdict is not found.verdict
    if found.verdict is Verdict.ERROR:
        return ("an error, where there was a verdict", True) if is_new else None
    if found.verdict is Verdict.VIOLATION:
        if found.meets_expectation:
            return ("violation, as expected", False) if is_new else None
        if is_new or was.meets_expectation:
            return "new violation" if is_new else "a violation that is not expected any more", True
        return None
    if not is_new:
        return None
    if was.verdict is Verdict.ERROR:
        return "no error any more", False
    if found.expect == "violation":
        return "lost power: a violation that is expected was not found", True
    return "no violation any more", False


def _power(was: AuditResult, found: AuditResult) -> Iterator[tuple[str, bool]]:
    """Yield (text, True), where True marks a regression, if only the second result, `found`, is
    under-powered, or if `found` has a smaller budget of draws than the first result, `was`. The
    smallest detectable ε is not compared: it depends on the chosen event, which differs by
    chance."""
    if found.underpowered is not None and was.underpowered is None:
        yield f"lost power: under-powered: {found.underpowered}", True
        return
    before, after = _budget(was), _budget(found)
    if before is not None and after is not None and after < before:
        yield f"lost power: {counted(after, 'draw')}, before {before:,}", True


def _budget(result: AuditResult) -> int | None:
    """Return the budget of an audit: the largest number of draws that it may make for all pairs of
    inputs together. Return None if a time limit replaces the budget, or if nothing is drawn."""
    if not result.certificates or any(one.evidence.by_clock for one in result.certificates):
        return None
    return sum(one.evidence.budget for one in result.certificates)


def _asked(was: AuditResult, found: AuditResult) -> Iterator[tuple[str, bool]]:
    """Yield (text, False) for each difference in claim, mechanism, inputs or other settings.

    Such a change is no regression, since the two results then answer different questions.
    """
    said = [*_COMPARED]
    if was.claim != found.claim:
        yield f"another claim: {found.claim.describe()}, before {was.claim.describe()}", False
        said.append("claim")
    if was.target != found.target:
        yield f"another mechanism: {found.target}, before {was.target}", False
        said += _MECHANISM
    ended = [one for one in (was, found) if one.verdict is not Verdict.ERROR]
    pairs = [[one.pair for one in result.by_pair] for result in ended]
    if len(pairs) == 2 and pairs[0] != pairs[1] and not _has_same_inputs(was, found):
        yield f"other inputs: {'; '.join(pairs[1])}, before {'; '.join(pairs[0])}", False
        said += _INPUTS
    sources = [_SOURCES[type(one.ending)] for one in ended]
    if len(sources) == 2 and sources[0] != sources[1]:
        yield f"judged by {sources[1]}, before by {sources[0]}", False
        said.append("exact")
    yield from _risked(was, found)
    other = [key for key in _other_settings(was, found) if key not in said]
    if other:
        yield f"other settings: {', '.join(other)}", False


def _has_same_inputs(was: AuditResult, found: AuditResult) -> bool:
    """Return whether the settings of two audits name the same inputs.

    The settings are compared, not the descriptions of inputs: two versions of dpaudit may describe
    the same inputs differently.
    """
    before, after = (_settings(one.request or {}) for one in (was, found))
    named = [key for key in _INPUTS if key in before or key in after]
    return bool(named) and all(before.get(key) == after.get(key) for key in named)


def _risked(was: AuditResult, found: AuditResult) -> Iterator[tuple[str, bool]]:
    """Yield (text, is_regression) for each difference in error probability. is_regression is always
    False. The user should know the difference, since a smaller error probability reduces the power
    of an audit."""
    if not (was.ending.by_chance and found.ending.by_chance):
        return
    before, after = (
        one.confidence if one.family is None else one.family.confidence for one in (was, found)
    )
    if before != after:
        now, then = numbers.level(after), numbers.level(before)
        yield f"another confidence: {now}, before {then}", False
    if (was.family is None) != (found.family is None):
        now = (
            "its own" if found.family is None else f"that of {counted(found.family.size, 'audit')}"
        )
        yield f"another error probability: {now}", False


def _families(old: Mapping[str, AuditResult], new: Mapping[str, AuditResult]) -> list[str]:
    """Return a remark for each family whose number of audits has changed. The audits of a family
    share one error probability."""
    both = [(old[name].family, one.family) for name, one in new.items() if name in old]
    sizes = {(was.size, now.size) for was, now in both if was is not None and now is not None}
    return [
        f"{counted(now, 'audit')} share an error probability, before {was:,}"
        for was, now in sorted(sizes)
        if was != now
    ]


def _other_settings(was: AuditResult, found: AuditResult) -> list[str]:
    """Return the names of the settings that differ between two results of an audit. Return [] if
    the file of either result contains no settings."""
    if was.request is None or found.request is None:
        return []
    before, after = _settings(was.request), _settings(found.request)
    return [
        key
        for key in dict.fromkeys([*before, *after])
        if before.get(key, DEFAULTS.get(key)) != after.get(key, DEFAULTS.get(key))
    ]


def _settings(request: Mapping[str, Any]) -> dict[str, Any]:
    settings = as_lists(request.get("settings"))
    if not isinstance(settings, dict):
        return {}
    # The settings `name` and `expect` do not affect any draw, so they are not compared.
    return {key: value for key, value in settings.items() if key not in ("name", "expect")}


def _moved(was: AuditResult, found: AuditResult) -> Iterator[tuple[str, bool]]:
    """Yield (text, False) for each pair of inputs whose confidence intervals for ε in the two runs
    do not overlap. False says that the difference is no regression."""
    old = {one.pair: _interval(one) for one in was.by_pair}
    if was.repeated != found.repeated:
        return
    for one in found.by_pair:
        if one.pair not in old:
            continue
        (low, high), (lower, upper) = old[one.pair], _interval(one)
        of = f" on {one.pair}" if len(found.by_pair) > 1 else ""
        if lower > high:
            more, most = numbers.at_least(lower, above=high), numbers.at_most(high)
            yield f"leaks more{of}: ε ≥ {more}, before ε ≤ {most}", False
        elif upper < low:
            yield (
                f"leaks less{of}: ε ≤ {numbers.at_most(upper)}, before ε ≥ {numbers.at_least(low)}",
                False,
            )


def _interval(one: AnyCertificate) -> tuple[float, float]:
    """Return the lower and upper bound for the ε of a pair at δ = 0. The upper bound may be inf.

    A lower bound for ε at a larger δ is also valid at δ = 0, since ε decreases as δ grows.
    """
    if isinstance(one, ExactCertificate):
        return one.epsilon, one.epsilon
    interval = getattr(one, "interval", None)
    if interval is None:
        return one.epsilon_lower, float("inf")
    # The caller compares `epsilon_lower` of one run with `interval.upper` of the other. Each bound
    # has the error probability of its pair, so the probability of a false report is at most their
    # sum, as documented. `interval.lower` would be a third bound with an error probability of its
    # own.
    return one.epsilon_lower, interval.upper


def _should_be_equal(was: AuditResult, found: AuditResult) -> bool:
    """Return whether the two runs would have made the same draws if the code had not changed: same
    seed and settings, and the seed controls all noise."""
    drawn = [*was.certificates, *found.certificates]
    is_repeatable = all(
        one.reproducible and one.evidence.recording is None and not one.evidence.by_clock
        for one in drawn
    )
    if was.request is None or found.request is None:
        return False
    same = ("seed", "versions", "claim", "target", "confidence")
    are_same = all(getattr(was, name) == getattr(found, name) for name in same)
    is_asked_again = was.request.get("folder") == found.request.get("folder") and (
        _settings(was.request) == _settings(found.request)
    )
    return bool(drawn) and is_repeatable and are_same and is_asked_again


def _drawn(result: AuditResult) -> list[object]:
    return [one.evidence.blocks for one in result.certificates]


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
