"""Compares the files that `make generated` writes with what the code gives."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def check(file: Path, text: str) -> None:
    """Fail if a file does not hold the text, and show the changed lines and the command that
    writes the file."""
    written = file.read_text(encoding="utf-8") if file.exists() else ""
    if written == text:
        return
    lines = list(unified_diff(written.splitlines(), text.splitlines(), n=0, lineterm=""))[2:]
    name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    head = f"{name} differs from the code (+); `make generated` writes it."
    pytest.fail("\n".join([head, *lines]), pytrace=False)
