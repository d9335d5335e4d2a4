"""Markdown: nothing in a name or an output can get out of its cell or its block."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dpaudit.certificates.result import AuditResult, Failed
from dpaudit.reports import markdown
from tests.cli.made_results import ERROR, PASS, VIOLATION
from tests.specs import replace

NASTY = ["a|b", "<script>x</script>", "`code`", "[a](http://b)", "two\nlines", "\x1b[31m", "\ud800"]


def written(results: list[AuditResult], planned: int = 0) -> str:
    return markdown.document([markdown.entry(one) for one in results], planned or len(results))


def test_a_table_of_all_with_what_nobody_expected_first_and_in_full() -> None:
    lines = written([PASS, VIOLATION, ERROR]).splitlines()
    assert lines[0] == "### dpaudit: 3 privacy audits: 2 not as expected"
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 5
    assert table[2].startswith("| **VIOLATION** | wrong-density | ")
    assert table[4].startswith("| NO VIOLATION FOUND | laplace | ")
    assert [line for line in lines if line.startswith("####")] == [
        "#### wrong-density",
        "#### broken",
    ]
    assert "VIOLATION  wrong-density: refuted at 99 %" in "\n".join(lines)


@pytest.mark.parametrize("name", NASTY)
def test_a_name_stays_in_its_cell(name: str) -> None:
    (row,) = (
        line
        for line in written([replace(PASS, name=name)]).splitlines()
        if "laplace" not in line and "NO VIOLATION" in line
    )
    assert len(re.findall(r"(?<!\\)\|", row)) == 8
    assert not re.search(r"(?<!\\)[<`\[@]", row.replace("&lt;", ""))
    assert "\x1b" not in row


@pytest.mark.parametrize("fence", ["```", "`````", "```\n# out"])
def test_a_report_stays_in_its_block(fence: str) -> None:
    text = written([replace(VIOLATION, ending=Failed(f"said\n{fence}\n"))])
    opened, *rest = re.findall(r"^(`{3,})(?:text)?$", text, re.MULTILINE)
    assert rest[-1] == opened
    assert all(len(one) < len(opened) for one in rest[:-1])


@pytest.mark.parametrize(
    ("results", "part"),
    [([replace(VIOLATION, ending=Failed("ä" * 400_000))] * 5, 1), ([PASS] * 900, 10)],
)
def test_it_stays_below_what_a_summary_may_have(
    results: Any, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """part: rows and reports that together fill a tenth of the room."""
    monkeypatch.setattr(markdown, "_MAX_BYTES", markdown._MAX_BYTES // part)
    text = written(results)
    assert len(text.encode()) < 2**20 / part
    assert " more" in text
