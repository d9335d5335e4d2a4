"""Results to result files, other reports, and back."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.certificates.result import AuditResult
from dpaudit.reports.json import read_document
from dpaudit.reports.registry import FORMATS


def reported(form: str, results: Sequence[AuditResult]) -> str:
    """Return what `--report` writes of results that have all ended."""
    entries = [FORMATS[form].entry(result) for result in results]
    return FORMATS[form].document(entries, len(results))


def to_json(results: Sequence[AuditResult]) -> str:
    return reported("json", results)


def from_json(text: str) -> list[AuditResult]:
    results, _ = read_document(text)
    return results
