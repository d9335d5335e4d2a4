"""The commands and programs of docs, run; `make docs` does this before it builds the site."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import warm
from tests.documents import ROOT, follow

PAGES = sorted((ROOT / "docs").rglob("*.md"))
# Of these, the programs are started as a user starts them; otherwise a warm process forks them.
STARTED = [ROOT / "docs/guides/pytest.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_blocks_do_what_they_show(page: Path, tmp_path: Path) -> None:
    started = page in STARTED
    here = Path(sys.executable).parent
    programs = [here] if started else [warm.folder(), here]
    python = [sys.executable] if started else warm.python()
    follow(page, tmp_path, python, programs, source=str(ROOT))
