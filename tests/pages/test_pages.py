"""The commands and programs of docs, run; `make docs` does this before it builds the site."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents import ROOT, follow

# The blocks of notebooks.md are cells of one notebook, which tests/system/test_notebook.py runs.
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if page.name != "notebooks.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_blocks_do_what_they_show(page: Path, tmp_path: Path) -> None:
    follow(page, tmp_path)
