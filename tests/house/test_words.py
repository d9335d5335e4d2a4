"""Words that make a sentence hard to read, in code, documents and messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("dpaudit", "mechanisms", "benchmarks", "tests", "docs")
NAMES = ("README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
AVOIDED = re.compile(
    r"\b(?:anew|foretold|foretells?|told apart|tells? apart|hangs? on|seldom|amid|likewise|thereby"
    r"|so many|take notice|let go|speaks? for|all the while|for good|nobody|somebody|is said"
    r"|are said|who draws|that which)\b",
    re.IGNORECASE,
)
# Places that may keep such a word, as (file, word). This file is one more place.
ALLOWED: set[tuple[str, str]] = set()


def test_avoided_words_are_found_as_whole_words_in_any_case() -> None:
    assert AVOIDED.findall("Nobody speaks for it, AMID so many of a random_anew.") == [
        "Nobody",
        "speaks for",
        "AMID",
        "so many",
    ]


def test_no_avoided_word_is_used() -> None:
    used = {(str(path.relative_to(ROOT)), word) for path in _texts() for word in _words(path)}
    assert used == ALLOWED
    assert len(ALLOWED) < 10


def _texts() -> Iterator[Path]:
    yield from (ROOT / name for name in NAMES)
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".yaml") and path != Path(__file__):
                yield path


def _words(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    yield from (match.group().lower() for match in AVOIDED.finditer(text))
