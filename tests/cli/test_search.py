"""`dpaudit search` as a command: exit codes, messages, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

MECHANISMS = """
import math


def clipped(rows):
    numbers = (0.0 if x is None or math.isnan(x) else x for x in rows)
    return math.fsum(min(max(x, 0.0), 1.0) for x in numbers)


def good(rows, size, rng):
    return clipped(rows) + rng.laplace(size=size)


def bad(rows, size, rng):
    return clipped(rows) + rng.laplace(scale=0.3, size=size)


def passes_nan(rows, size, rng):
    return sum(min(max(x, 0.0), 1.0) for x in rows if x is not None) + rng.laplace(size=size)


def of_number(x, size, rng):
    return x + rng.laplace(size=size)


def never(rows, rng):
    raise ValueError("nothing will do")
"""
SPACE = "list of number in [0, 1]"
# Such a search takes a third of the time.
NUMBER = ("--space", "number in [0, 1]", "--adjacency", "l1:1", "--epsilon", "1")
UNIT = ("--space", SPACE, "--adjacency", "add-remove", "--epsilon", "1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.py").write_text(MECHANISMS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_exit_codes(folder: Path, dpaudit: Any) -> None:
    assert dpaudit("search", "m.py:of_number", *NUMBER, "--samples", "2000").exit_code == 0
    ended = dpaudit("search", "m.py:never", *NUMBER, "--samples", "1000", "--json", "never.json")
    assert ended.exit_code == 3
    (audit,) = json.loads(Path("never.json").read_text())["audits"]
    assert audit["ending"]["code"] == "always-raises"


def test_few_draws_are_said_to_be_too_few(folder: Path, dpaudit: Any) -> None:
    ended = dpaudit("search", "m.py:of_number", *NUMBER[:-1], "9", "--samples", "100")
    assert ended.exit_code == 4
    assert "under-powered" in ended.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--space", "list of numbr"), "Did you mean 'number'"),
        (("--adjacency", "remove"), "Did you mean 'add-remove'"),
        (("--keep", "0"), "from 1 to 100"),
        (("--as", "pandas"), "as pandas"),
    ],
)
def test_wrong_things(folder: Path, dpaudit: Any, words: tuple[str, str], said: str) -> None:
    flags = dict(zip(UNIT[::2], UNIT[1::2], strict=True)) | dict([words])
    ended = dpaudit("search", "m.py:good", *(word for pair in flags.items() for word in pair))
    assert ended.exit_code == 2, ended.stdout
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
