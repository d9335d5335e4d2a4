"""The commands and programs of the README; `tests/pages` runs those of docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documents import ROOT, blocks, follow


def test_blocks_of_the_readme_do_what_they_show(tmp_path: Path) -> None:
    follow(ROOT / "README.md", tmp_path)


@pytest.mark.parametrize("name", ["budget", "guides/journal", "guides/scale"])
def test_a_page_for_users_of_the_package_needs_no_clone(name: str) -> None:
    there = list(blocks(ROOT / f"docs/{name}.md"))
    assert "mine.py" in [block.file for block in there]
    assert not [block.text for block in there if "mechanisms." in block.text]


def test_every_page_is_listed_once() -> None:
    docs = ROOT / "docs"
    listed = re.findall(
        r"^- \[[^]]+\]\((\S+\.md)\)", (docs / "contents.md").read_text("utf-8"), re.MULTILINE
    )
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    of_other_folders = {page.stem for page in map(Path, listed) if page.parts[0] == ".."}
    assert len(listed) == len(set(listed))
    own = {page for page in listed if not page.startswith("..")}
    shown = {"architecture.md", "changelog.md", "contributing.md", "measurements.md", "tests.md"}
    assert pages - own == {"contents.md", "index.md"} | shown
    assert len(of_other_folders) == len(shown)


def test_the_landing_page_has_at_most_twelve_links() -> None:
    assert 8 <= len(re.findall(r"\]\(", (ROOT / "docs" / "index.md").read_text("utf-8"))) <= 12


def test_every_picture_is_small_and_has_both_themes() -> None:
    pictures = sorted((ROOT / "docs" / "pictures").glob("*.png"))
    names = {path.stem.rpartition("-")[0] for path in pictures}
    assert [path.stem for path in pictures] == [
        f"{name}-{theme}" for name in sorted(names) for theme in ("dark", "light")
    ]
    assert max(path.stat().st_size for path in pictures) < 120_000
