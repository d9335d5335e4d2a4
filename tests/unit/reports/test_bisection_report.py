"""A bisection in each format: its numbers and answers, and text that cannot break a page."""

from __future__ import annotations

import json
import math
import re

from dpaudit.releases.bisecting import Bisection, ReleaseResult
from dpaudit.reports.bisection_report import FORMATS

TESTED = (
    ReleaseResult("1.0", "not refuted", "", 0.25, 0.5, 0.4, 20_000),
    ReleaseResult("1.1", "refuted", "", 1.25, 1.5, 1e-9, 20_000),
    ReleaseResult("1.2", "cannot tell", "does not install: <b>|x\x1b[31m"),
    ReleaseResult("1.3", "cannot tell", "under-powered", 0.0, math.inf, 1.0, 20_000),
)
RESULT = Bisection(
    "mine", "1.1", "m:f", "d1 = 0, d2 = 1", "1-DP", "output > 3", 0.99, 0.0025, 7, TESTED
)


def test_the_json_has_every_field_and_no_infinity() -> None:
    found = json.loads(FORMATS["json"](RESULT))
    assert found["summary"] == RESULT.summary
    assert [one["answer"] for one in found["tested"]] == [one.answer for one in TESTED]
    assert found["tested"][1]["epsilon_lower"] == 1.25
    assert found["tested"][3]["detectable"] is None
    assert (found["level"], found["seed"], found["found_in"]) == (0.0025, 7, "1.1")


def test_the_markdown_is_a_table_with_escaped_cells() -> None:
    rows = [one for one in FORMATS["markdown"](RESULT).splitlines() if one.startswith("|")]
    assert len(rows) == 2 + len(TESTED)
    assert len({len(re.findall(r"(?<!\\)\|", one)) for one in rows}) == 1
    assert "<b>" not in "".join(rows)


def test_the_page_loads_nothing_and_marks_answers() -> None:
    page = FORMATS["html"](RESULT)
    assert re.findall(r'<tr class="([\w-]+)"', page) == [
        "not-refuted",
        "refuted",
        "cannot-tell",
        "cannot-tell",
    ]
    assert "<b>" not in page
    assert not re.search(r"(src|href)=|url\(", page)
