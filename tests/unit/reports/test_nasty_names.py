"""Whatever a name, a message or a command holds, no report breaks, and no terminal is steered."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from dpaudit.certificates.result import AuditResult, Failed
from dpaudit.reports.formats import FORMATS
from dpaudit.reports.text import (
    render,
    render_line,
    render_remarks,
    render_row,
    render_summary,
    render_warnings,
)
from dpaudit.wording import visible
from tests.cli.made_results import ERROR, PASS, VIOLATION
from tests.result_files import from_json, reported
from tests.specs import replace

NASTY = {
    "quotes": "a\"b'c`d",
    "control": "a\x00\x07\b\x1b]0;title\x07\x1b[31m\x7fb",
    "c1": "a\x9b31m\x85\x90b",
    "newlines": "a\n::error::b\r\nVIOLATION  c\x0b\x0c\u2028d\u2029e",
    "commands": f"::error::a\r::error::b {'long ' * 30}" + " ::error::c" * 30 + "##[error]d",
    "markup": "a]]><b>&amp;</script><!-- --> | b",
    "direction": "a\u202eb\u2066c\u200f",
    "halves": "a\ud800b\udfffc",
}
_STEERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\u200e\u200f\ud800-\udfff]"
)

# What GitHub Actions takes for a command, in whatever a step writes.
_COMMANDS = re.compile(r"^\s*::|##\[", re.MULTILINE)


def odd(base: AuditResult, text: str) -> AuditResult:
    ending = Failed(text) if base is ERROR else base.ending
    more = {"target": text, "source": text, "command": text, "warnings": (text,), "notes": (text,)}
    return replace(base, name=text, ending=ending, **more)


@pytest.mark.parametrize("kind", NASTY)
@pytest.mark.parametrize("base", [PASS, VIOLATION, ERROR], ids=["pass", "violation", "error"])
def test_no_text_steers_a_terminal(base: AuditResult, kind: str) -> None:
    result = odd(base, NASTY[kind])
    for line in (render_line(result), render_row(result, 30), *render_warnings(result)):
        assert len(line.splitlines()) == 1
        assert not _STEERS.search(line)
        assert not _COMMANDS.search(line)
    texts = [render(result), render(result, verbose=1), render_summary([result, PASS])]
    for text in (*texts, *render_remarks(result)):
        assert not _STEERS.search(text)
        assert not _COMMANDS.search(text)
    repeat = next(line for line in render(result).splitlines() if line.startswith("  repeat"))
    assert repeat == visible(f"  repeat      {NASTY[kind]}".replace("\n", "\\n"))


@pytest.mark.parametrize("kind", NASTY)
@pytest.mark.parametrize("form", [one for one in FORMATS if FORMATS[one].suffix != ".html"])
def test_every_format_stays_whole(form: str, kind: str) -> None:
    text = reported(form, [odd(one, NASTY[kind]) for one in (PASS, VIOLATION, ERROR)])
    if form in ("json", "sarif"):
        json.loads(text)
    elif form == "junit":
        cases = ElementTree.fromstring(text.encode()).iter("testcase")
        assert [[part.tag for part in case][-3:][0] for case in cases]
    else:
        assert not _STEERS.search(text)
    if form == "json":
        assert {one.name for one in from_json(text)} == {NASTY[kind]}
    if form == "github":
        lines = text.splitlines()
        assert len(lines) == 2
        assert all(line.startswith("::error ") for line in lines)
        assert not any(_COMMANDS.search(line.removeprefix("::error ")) for line in lines)
    if form == "markdown":
        assert sum(line.startswith("| ") for line in text.splitlines()) == 5
