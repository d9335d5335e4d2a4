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


def test_readme_has_blocks() -> None:
    kinds = [block.kind for block in blocks(ROOT / "README.md")]
    assert "console" in kinds
    assert "python" in kinds


def test_every_guide_is_in_one_group_of_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    parts = re.split(r"^## (.*)$", index, flags=re.MULTILINE)[1:]
    groups = {
        title: re.findall(r"\(guides/(\S+)\.md\)", links)
        for title, links in zip(parts[::2], parts[1::2], strict=True)
    }
    named = {title: guides for title, guides in groups.items() if guides}
    assert len(named) == 4
    listed = [guide for guides in named.values() for guide in guides]
    assert sorted(listed) == sorted(path.stem for path in (ROOT / "docs" / "guides").glob("*.md"))
