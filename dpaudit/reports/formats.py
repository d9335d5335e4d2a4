"""List the formats of reports by name. A new format needs a module and one line in this file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

from dpaudit.certificates.result import AuditResult
from dpaudit.errors import UsageError
from dpaudit.float_errors import auditor_errstate
from dpaudit.wording import MAX_WIDTH, did_you_mean, of_width


@dataclass(frozen=True, slots=True)
class Format:
    """A format of reports.

    suffix: suffix of its files.
    home: module with functions named like the methods of this class, which make the report. It is
        imported when the format is used, since most runs use only one format.
    is_prose: whether the format is text for people, and not data for programs.
    """

    suffix: str
    home: str
    is_prose: bool = False

    def check(self) -> None:
        """Import the module of the format. Raises UsageError if a package is missing."""
        check = getattr(self._home(), "check", None)
        if check is not None:
            check()

    def entry(self, result: AuditResult) -> Any:
        """Return the data about one audit, which has ended, for a report."""
        # A mechanism may have changed NumPy's settings.
        with auditor_errstate(), of_width(MAX_WIDTH):
            return self._home().entry(result)

    def document(self, entries: Sequence[Any], planned: int, not_run: Sequence[str] = ()) -> str:
        """Return the text of a report on all audits, from their entries in order."""
        with auditor_errstate(), of_width(MAX_WIDTH):
            text: str = self._home().document(entries, planned, not_run)
        return text

    def _home(self) -> ModuleType:
        return import_module(self.home)


FORMATS: Mapping[str, Format] = {
    "text": Format(".txt", "dpaudit.reports.text", is_prose=True),
    "json": Format(".json", "dpaudit.reports.json"),
    "junit": Format(".xml", "dpaudit.reports.junit"),
    "markdown": Format(".md", "dpaudit.reports.markdown"),
    "sarif": Format(".sarif", "dpaudit.reports.sarif"),
    "github": Format(".txt", "dpaudit.reports.github"),
    "html": Format(".html", "dpaudit.reports.html.page"),
}


def parse_report(text: str, formats: Collection[str] = FORMATS) -> tuple[Format, str]:
    """Return the format and the file of a text `FORMAT:FILE`. `FORMAT` alone stands for standard
    output, the file `-`. Raises UsageError for a format that is not in `formats`."""
    name, colon, file = text.partition(":")
    if name in formats and bool(colon) is bool(file):
        return FORMATS[name], file or "-"
    meant = "" if name in formats else did_you_mean(name, formats)
    raise UsageError(
        f"--report {text!r} must be FORMAT or FORMAT:FILE; formats: {', '.join(formats)}.{meant}",
        code="report-format-unknown",
    )
