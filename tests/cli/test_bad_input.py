"""Whatever is wrong: one clear line with the remedy, exit code 2 or 3, no traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

MECHANISM = """
def laplace(x, rng):
    return x + rng.laplace()
"""
GOOD = "{name: one, mechanism: 'm.py:laplace', d1: 0, d2: 1, claim: {epsilon: 1}"
BLANK, EMPTY = "' '", "''"
CLAIM = ("--epsilon", "1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.py").write_text(MECHANISM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_not_utf_8(refused: Any) -> None:
    Path("a.csv").write_text("x\n1\n")
    for kind in ("json", "csv", "yaml"):
        Path(f"u.{kind}").write_bytes(b"\xff\xfe")
        words = ("run", "m.py:laplace", "--d1", f"@u.{kind}", "--d2", "1", *CLAIM)
        assert refused(*words)[0] == "file-unreadable"
    assert refused("run", "u.yaml")[0] == "file-unreadable"
    assert refused("bound", "u.csv", "a.csv", *CLAIM)[0] == "file-unreadable"
    assert refused("report", "u.csv")[0] == "file-malformed"


# The text of a file, the code that it is refused with, and what the message names.
FILES = [
    (f"version: 1\naudits:\n  - {GOOD}, samples: 1e30}}\n", "option-invalid", "samples=1.00e+30"),
    (f"version: 1\naudits:\n  - {GOOD}, sampels: 9}}\n", "key-unknown", "'samples'"),
    (f"version: 1\naudits:\n  - {GOOD}}}\n  - {GOOD}}}\n", "name-not-unique", "'one'"),
    ("version: 1\naudits: !!python/object/apply:os.getcwd []\n", "value-refused", "!!python"),
    ("version: [1\n", "yaml-invalid", ""),
    (f"version: 9\naudits:\n  - {GOOD}}}\n", "version-unknown", "version=9"),
    ("version: 1\n", "configuration-shape", "audits"),
    (f"version: 1\naudits:\n  - {GOOD.replace('one', BLANK)}}}\n", "option-invalid", "name=' '"),
    (f"version: 1\naudits:\n  - {GOOD.replace('one', EMPTY)}}}\n", "option-invalid", "name=''"),
]


def test_files_that_are_not_valid(refused: Any, folder: Path) -> None:
    for text, code, named in FILES:
        (folder / "audits.yaml").write_text(text)
        found, line = refused("run", "audits.yaml")
        assert found == code, text
        assert line.startswith("error: audits.yaml")
        assert named in line
