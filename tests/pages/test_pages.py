"""The commands and programs of docs, run; `make docs` does this before it builds the site."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents import ROOT, follow

PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_blocks_do_what_they_show(page: Path, tmp_path: Path) -> None:
    follow(page, tmp_path)
