"""The formats that results are written in, by name: a new one is a file and a line here."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

from dpaudit.certificates.result import AuditResult
from dpaudit.errors import UsageError
from dpaudit.float_errors import auditor_errstate
from dpaudit.wording import did_you_mean


@dataclass(frozen=True, slots=True)
class Format:
    """A format of reports. suffix: how its files end. home: the module that writes them, with
    functions like the methods here. is_prose: whether it is for people, not for programs.

    A home is imported when its format is asked for: most runs ask for none, and should not wait for
    what all of them need."""

    suffix: str
    home: str
    is_prose: bool = False

    def check(self) -> None:
        """Import the home. Raises UsageError where something is missing that the format needs."""
        check = getattr(self._home(), "check", None)
        if check is not None:
            check()

    def entry(self, result: AuditResult) -> Any:
        """Return what is kept of one audit, as soon as it has ended."""
        with auditor_errstate():  # rather than as a mechanism has left it
            return self._home().entry(result)

    def document(self, entries: Sequence[Any], planned: int, not_run: Sequence[str] = ()) -> str:
        """Return the text of all that were kept, in order. planned: how many there are to be.
        not_run: names of those that the run stopped before."""
        with auditor_errstate():
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
    """Return the format and the file of `FORMAT:FILE`; `-`, standard output, for `FORMAT` alone.
    formats: those that are named where it is none. Raises UsageError."""
    name, colon, file = text.partition(":")
    if name in FORMATS and bool(colon) is bool(file):
        second = next((one for one in FORMATS if f",{one}:" in file), None)
        if second is not None:
            first, _, rest = text.partition(f",{second}:")
            raise UsageError(
                f"--report {text!r} names two reports; give --report twice: "
                f"--report {first} --report {second}:{rest}",
                code="report-format-unknown",
            )
        return FORMATS[name], file or "-"
    known = f"known formats: {', '.join(formats)}"
    if not text.strip(" :"):
        raise UsageError(
            f"--report {text!r} names no format; give one, as in junit:FILE; {known}",
            code="report-format-unknown",
        )
    meant = did_you_mean(name, formats)
    if name and name not in FORMATS and (file or (meant and name.isalpha())):
        raise UsageError(
            f"--report {text!r}: {name!r} is no format; {known}.{meant}",
            code="report-format-unknown",
        )
    if name == text and re.fullmatch(r"\w+", text):
        raise UsageError(
            f"--report {text!r} is no format; {known}; to write text to a file of this name, give "
            f"text:{text}",
            code="report-format-unknown",
        )
    path = text.lstrip(":")
    fitting = next((key for key in formats if path.endswith(FORMATS[key].suffix)), "text")
    example = f"{name}:FILE" if name in FORMATS else f"{fitting}:{path}"
    raise UsageError(
        f"--report {text!r} must be FORMAT or FORMAT:FILE, as {example}; {known}",
        code="report-format-unknown",
    )
