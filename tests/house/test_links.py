"""Links between documents, as a reader of the repository follows them; `make docs` checks those of
the site."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.test_options_page import anchors

ROOT = Path(__file__).parents[2]
FOLDERS = ("", "docs", "docs/guides", "benchmarks", "tests")
DOCUMENTS = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.md"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    assert list(_broken(document, document.read_text(encoding="utf-8"))) == []


def test_broken_links_are_noticed() -> None:
    text = "[a](nowhere.md) [b](#nothing) [c](method.md#1-the-object)\n```\n[d](code.md)\n```\n"
    assert list(_broken(ROOT / "docs" / "index.md", text)) == ["nowhere.md", "#nothing"]


def _broken(document: Path, text: str) -> Iterator[str]:
    prose = re.sub(r"(?ms)^```.*?^```$|`[^`\n]+`", "", text)
    for link in re.findall(r"\]\(([^)\s]+)\)", prose):
        name, _, anchor = link.partition("#")
        if ":" not in name:
            file = document.parent / name if name else document
            there = file.exists()
            if not there or (anchor and anchor not in anchors(file.read_text(encoding="utf-8"))):
                yield link
