"""docs/watch.md follows from results: one row for each audit, and every violation is named."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import gallery, watch
from dpaudit.certificates.result import Family, Verdict
from dpaudit.claims.source import ClaimSource
from dpaudit.reports.json import read_document

SOURCE = ClaimSource("Mine", "1.2", "m.map(d_in=1)", "ε = 1")


def test_the_page_has_a_row_for_each_audit() -> None:
    recorded, _ = read_document(gallery.RECORDED.read_text(encoding="utf-8"))
    results = [
        replace(one, claimed_by=SOURCE, family=Family("mine", len(recorded), 0.98, 1e-3))
        for one in recorded
    ]
    page = watch.page({"mine-1.2": results}, {"mine-1.2": 12})
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")][1:]
    assert [row[0].removeprefix("| ") for row in rows] == [one.name for one in results]
    refuted = [one.name for one in results if one.verdict is Verdict.VIOLATION]
    assert [row[0].removeprefix("| ") for row in rows if row[2] == "**violation**"] == refuted
    assert len(refuted) == 4
    assert all(row[1] == "m.map(d_in=1): ε = 1" for row in rows)
    assert "## Mine 1.2\n" in page
    assert f"Refuted: {', '.join(refuted)}." in page
    assert f"{len(results)} of 12 audits" in page
    assert "0.02" in page


def test_without_a_source_the_claim_itself_is_shown_and_the_file_names_the_library() -> None:
    recorded, _ = read_document(gallery.RECORDED.read_text(encoding="utf-8"))
    results = [replace(one, family=Family("mine", 1, 0.98, 1e-3)) for one in recorded]
    page = watch.page({"my-library-1.2": results}, {"my-library-1.2": len(results)})
    assert "## my-library 1.2\n" in page
    assert f"| {results[0].name} | {results[0].claim.describe()} |" in page
