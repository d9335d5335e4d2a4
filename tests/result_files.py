"""Results to result files, other reports, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence

from jsonschema_rs import Draft202012Validator

from dpaudit.certificates.result import AuditResult
from dpaudit.reports.formats import FORMATS
from dpaudit.reports.json import read_document
from dpaudit.reports.json import schema as result_schema

# By a compiled validator: nearly every audit of the suite goes through it.
SCHEMA = Draft202012Validator(result_schema())


def reported(form: str, results: Sequence[AuditResult]) -> str:
    """Return what `--report` writes of results that have all ended."""
    entries = [FORMATS[form].entry(result) for result in results]
    return FORMATS[form].document(entries, len(results))


def to_json(results: Sequence[AuditResult]) -> str:
    text = reported("json", results)
    check_schema(text)
    return text


def check_schema(text: str) -> None:
    """Raise for a result file that the published schema refuses."""
    SCHEMA.validate(json.loads(text))


def from_json(text: str) -> list[AuditResult]:
    return read_document(text).results
