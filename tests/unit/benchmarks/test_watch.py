"""docs/watch.md follows from results: one row for each audit, and every violation is named."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import yaml

from benchmarks import gallery, watch
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.claims.base import ClaimSource
from dpaudit.reports.json import read_document

SOURCE = ClaimSource("Mine", "1.2", "m.map(d_in=1)", "ε = 1")


@pytest.fixture(scope="module")
def recorded() -> list[AuditResult]:
    """The nine audits of the gallery."""
    return read_document(gallery.RECORDED.read_text(encoding="utf-8")).results


def test_the_page_has_a_row_for_each_audit(recorded: list[AuditResult]) -> None:
    results = [replace(one, claimed_by=SOURCE, confidence=0.99955) for one in recorded]
    page = watch.page({"mine-1.2": results}, {"mine-1.2": 12})
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")][1:]
    assert [row[0].removeprefix("| ") for row in rows] == [one.name for one in results]
    refuted = [one.name for one in results if one.verdict is Verdict.VIOLATION]
    assert [row[0].removeprefix("| ") for row in rows if row[2] == "**violation**"] == refuted
    assert len(refuted) == 4
    assert all(row[1] == "m.map(d_in=1): ε = 1" for row in rows)
    assert "## Mine 1.2\n" in page
    assert [line for line in page.splitlines() if line.startswith("- Mine 1.2: ")] == [
        f"- Mine 1.2: {name}, which has no explanation yet" for name in refuted
    ]
    assert f"{len(results)} of 12 audits" in page
    assert "12 audits has an error probability of 0.00045, so at most 0.0054 false finds" in page


def test_a_find_has_a_link_to_its_explanation(recorded: list[AuditResult]) -> None:
    refuted = next(one for one in recorded if one.verdict is Verdict.VIOLATION)
    page = watch.page({"pure-ldp-9": [replace(refuted, name="RAPPORClient-2")]}, {"pure-ldp-9": 1})
    assert "\n- pure-ldp 9: [RAPPORClient-2](gallery.md#pure-ldp-" in page
    headings = (gallery.ROOT / "docs" / "gallery.md").read_text(encoding="utf-8").splitlines()
    anchors = {re.sub("[^a-z0-9 -]", "", one.lower()).strip().replace(" ", "-") for one in headings}
    assert set(watch._EXPLAINED.values()) <= anchors


def test_all_files_together_have_at_most_one_false_find_in_20_runs() -> None:
    files = (gallery.ROOT / "configs" / "watch").glob("*.yaml")
    documents = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
    alphas = [
        1 - one.get("confidence", document["defaults"]["confidence"])
        for document in documents
        for one in document["audits"]
    ]
    assert len(alphas) >= 60
    assert 0.045 < sum(alphas) <= 0.05
