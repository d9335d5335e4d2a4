"""The formats that results are written in, by name: a new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit.certificates.result import AuditResult
from dpaudit.did_you_mean import did_you_mean
from dpaudit.errors import UsageError
from dpaudit.reports import batch, github, json, junit, markdown, sarif
from dpaudit.reports.html import format as html


@dataclass(frozen=True, slots=True)
class Format:
    """A format of reports. suffix: how its files end. is_prose: whether it is for people, not for
    programs. entry: what is kept of one audit, as soon as it has ended. document: the text of all
    that were kept, in order, and of how many there are to be. check: raises UsageError where
    something is missing that the format needs."""

    suffix: str
    entry: Callable[[AuditResult], Any]
    document: Callable[[Sequence[Any], int], str]
    is_prose: bool = False
    check: Callable[[], None] = lambda: None


FORMATS: Mapping[str, Format] = {
    "text": Format(".txt", lambda result: result, batch.render_all, is_prose=True),
    "json": Format(".json", json.entry, json.document),
    "junit": Format(".xml", junit.entry, junit.document),
    "markdown": Format(".md", markdown.entry, markdown.document),
    "sarif": Format(".sarif", sarif.entry, sarif.document),
    "github": Format(".txt", github.entry, github.document),
    "html": Format(".html", html.entry, html.document, check=html.check),
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
                f"--report {first} --report {second}:{rest}"
            )
        FORMATS[name].check()
        return FORMATS[name], file or "-"
    known = f"known formats: {', '.join(formats)}"
    if not text.strip(" :"):
        raise UsageError(f"--report {text!r} names no format; give one, as in junit:FILE; {known}")
    meant = did_you_mean(name, formats)
    if name and name not in FORMATS and (file or (meant and name.isalpha())):
        raise UsageError(f"--report {text!r}: {known}.{meant}")
    path = text.lstrip(":")
    fitting = next((key for key in formats if path.endswith(FORMATS[key].suffix)), "text")
    example = f"{name}:FILE" if name in FORMATS else f"{fitting}:{path}"
    raise UsageError(f"--report {text!r} must be FORMAT or FORMAT:FILE, as {example}; {known}")
