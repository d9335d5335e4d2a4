"""What `make gallery` found, as the table of docs/gallery.md: `python -m benchmarks.gallery`.

With --record the results are kept in configs/gallery, and their table in docs/gallery.md.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.reports import numbers
from dpaudit.reports.json import read_document

ROOT = Path(__file__).parents[1]
FOUND = ROOT / ".gallery" / "results.json"
RECORDED = ROOT / "configs" / "gallery" / "results.json"
DOCUMENT = ROOT / "docs" / "gallery.md"

_HEAD = """\
| audit | claimed | verdict | ε at least | draws | time |
|---|---|---|---|---|---|"""
_TABLE = re.compile(rf"{re.escape(_HEAD)}\n(?:\|.*\n)+")


def table(results: Sequence[AuditResult]) -> str:
    """Return the audits as a Markdown table, which ends in a newline."""
    return "\n".join([_HEAD, *map(_row, results)]) + "\n"


def table_of(document: str) -> str:
    """Return the table that a document has. Raises ValueError where it has none, or several."""
    (found,) = _TABLE.findall(document)
    return str(found)


def with_table(document: str, new: str) -> str:
    """Return a document with another table in place of its own."""
    return document.replace(table_of(document), new)


def _row(result: AuditResult) -> str:
    verdict = "**violation**" if result.verdict is Verdict.VIOLATION else "none found"
    cells = (
        result.name,
        f"ε = {numbers.plain(result.point.epsilon)}",
        verdict,
        numbers.at_least(result.epsilon_lower, above=result.point.epsilon),
        _draws(result),
        f"{numbers.about(result.seconds, digits=2)} s",
    )
    return f"| {' | '.join(cells)} |"


def _draws(result: AuditResult) -> str:
    (certificate,) = result.certificates
    if certificate.evidence.refuted_after is None:
        return f"{result.draws:,}"
    confirming = result.draws - certificate.evidence.refuted_after
    return f"{certificate.evidence.refuted_after:,}, and {confirming:,} to confirm"


def main(arguments: Sequence[str]) -> None:
    """Print the table, and record it when asked to."""
    if not FOUND.exists():
        raise SystemExit("there are no results yet; make gallery makes them")
    text = FOUND.read_text(encoding="utf-8")
    results = read_document(text).results
    new = table(results)
    print(new, end="")
    if "--record" in arguments:
        RECORDED.write_text(text, encoding="utf-8")
        document = DOCUMENT.read_text(encoding="utf-8")
        DOCUMENT.write_text(with_table(document, new), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
