"""Audits as SARIF 2.1.0, which code-scanning tools such as GitHub's show as alerts.

Each unexpected result becomes an alert at a line of code: the likely cause, if a trace has found
one, else the line of the mechanism.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.reports import trace_report
from dpaudit.reports.audit_report import is_expected, reason
from dpaudit.reports.github import located, place, root, uri
from dpaudit.reports.numbers import unglued
from dpaudit.reports.text import NOT_RUN, render, stopped, unended
from dpaudit.version import __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_CLAIM, _ERROR, _POWER, _EXPECTED = "claim-refuted", "audit-error", "under-powered", "not-refuted"
_STRICT = "strict-warning"
# SARIF's name for the root of the repository, to which paths in the file are relative.
_ROOT = "%SRCROOT%"
# Level of all alerts: an audit with an alert fails the run, whose exit code is then not 0.
_LEVEL = "error"
# Maps each rule to (security severity, name, description, remedy).
_RULES = {
    _CLAIM: (
        "7.5",
        "A differential privacy claim is refuted",
        "Draws prove that the mechanism leaks more than it claims for the inputs of the audit.",
        "Mend the mechanism, or claim less. The message names the event that shows the leak, and "
        "the command that repeats the audit.",
    ),
    _ERROR: (
        "5.0",
        "An audit of a privacy claim ended with an error",
        "The mechanism could not be audited, so nothing is known about its claim.",
        "The message says why, and how to go on.",
    ),
    _POWER: (
        "3.0",
        "An audit of a privacy claim could not have failed",
        "The audit was too small to refute the claim, or its inputs were equal.",
        "Give it more draws, or other inputs.",
    ),
    _EXPECTED: (
        "3.0",
        "A violation that was expected was not found",
        "The audit expects a violation of the claim, and draws did not show one.",
        "Look whether the mechanism or the audit has changed.",
    ),
    _STRICT: (
        "3.0",
        "A strict audit of a privacy claim has a warning",
        "The verdict is as expected, and warnings fail the audit.",
        "The message lists the warnings. Remove their cause, or do without strict.",
    ),
}


def entry(result: AuditResult) -> dict[str, Any] | None:
    """Return the SARIF result of an unexpected audit result; None for an expected one."""
    if is_expected(result):
        return None
    rule = _rule(result)
    parts = [f"{result.name}: {unglued(reason(result))}", unglued(trace_report.briefly(result))]
    # SARIF reads [text](place) as a link. The added space prevents a link in the message.
    message = "\n".join(filter(None, parts)).replace("](", "] (")
    return {
        "ruleId": rule,
        "ruleIndex": list(_RULES).index(rule),
        "level": _LEVEL,
        "message": {"text": message},
        "locations": [_location(place(result))],
        "partialFingerprints": {"primaryLocationLineHash": _fingerprint(rule, result)},
        "properties": {
            "claim": result.claim.describe(),
            "epsilonLower": _number(result.epsilon_lower),
            "deltaLower": _number(result.delta_lower),
            "confidence": 1 - result.level,  # of the verdict and of the bounds
            "draws": result.draws,
            "seed": result.seed,
            "report": render(result),
            **({"command": result.command} if result.command else {}),
        },
    }


def document(
    entries: Sequence[dict[str, Any] | None], planned: int, not_run: Sequence[str] = ()
) -> str:
    """Return the SARIF document."""
    missing = unended(len(entries), planned, not_run)
    messages = [("error", missing)] if missing else []
    messages += [("warning", f"{NOT_RUN}: {name}; {stopped(not_run)}") for name in not_run]
    # If audits are missing, the run counts as failed. Otherwise code scanning would close earlier
    # alerts that this run has not checked.
    invocation: dict[str, Any] = {"executionSuccessful": not messages}
    if messages:
        invocation["toolExecutionNotifications"] = [
            {"level": level, "message": {"text": text}} for level, text in messages
        ]
    driver = {
        "name": "dpaudit",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_described(rule) for rule in _RULES],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "originalUriBaseIds": {_ROOT: {"uri": f"{uri(root()).removesuffix('/')}/"}},
        "columnKind": "unicodeCodePoints",
        "results": [entry for entry in entries if entry is not None],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(result: AuditResult) -> str:
    if result.verdict is Verdict.ERROR:
        return _ERROR
    if result.failing_warnings:
        return _STRICT
    if result.verdict is Verdict.VIOLATION:
        return _CLAIM
    return _EXPECTED if result.underpowered is None else _POWER


def _described(rule: str) -> dict[str, Any]:
    severity, name, says, remedy = _RULES[rule]
    return {
        "id": rule,
        "name": "".join(map(str.capitalize, rule.split("-"))),
        "shortDescription": {"text": name},
        "fullDescription": {"text": says},
        "help": {"text": remedy},
        "defaultConfiguration": {"level": _LEVEL},
        "properties": {
            "tags": ["security", "privacy"],
            "precision": "very-high",
            "security-severity": severity,
        },
    }


def _location(source: str | None) -> dict[str, Any]:
    """Return the location of a line such as `mine.py:12`; for None, that of the folder."""
    file, _, number = (source or "").rpartition(":")
    if not file or not number.isdigit():
        return {"physicalLocation": {"artifactLocation": {"uri": ".", "uriBaseId": _ROOT}}}
    line = int(number)
    start, end = _columns(Path(file), line)
    region = {"startLine": line, "endLine": line, "startColumn": start, "endColumn": end}
    location = located(file)
    artifact = {"uri": uri(location.path), **({"uriBaseId": _ROOT} if location.is_inside else {})}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}


def _columns(file: Path, line: int) -> tuple[int, int]:
    """Return the first and the last column of the text of a line, counted from 1."""
    try:
        text = file.read_text(encoding="utf-8").splitlines()[line - 1].rstrip()
    except (OSError, ValueError, IndexError):  # such as a name that no file can have
        return 1, 2
    return len(text) - len(text.lstrip()) + 1, max(2, len(text) + 1)


def _fingerprint(rule: str, result: AuditResult) -> str:
    """Return a fingerprint by which GitHub recognises the alert if its line has moved."""
    file = (result.source or "").rpartition(":")[0]
    file = located(file).path if file else file
    parts = "\0".join((rule, file, result.name, result.claim.describe()))
    return f"{hashlib.sha256(parts.encode(errors='surrogatepass')).hexdigest()[:16]}:1"


def _number(value: float) -> float | str:
    """Return a number; infinite numbers and NaN, which JSON does not have, become texts."""
    return value if abs(value) < float("inf") else str(value)
