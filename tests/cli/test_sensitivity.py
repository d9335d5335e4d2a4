"""`dpaudit sensitivity`: what it says, and what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

FUNCTIONS = """
import os
import numpy as np

def total(rows):
    return sum(rows)

def mean(rows):
    return sum(rows) / len(rows)

def noisy(rows):
    return sum(rows) + np.random.laplace()

def failing(rows):
    raise KeyError("nothing")

def leaving(rows):
    os._exit(0)

"""
SPACE = ("--space", "list of 0 to 4 number in [0, 1]")
ASKED = (*SPACE, "--adjacency", "add-remove", "--claimed", "1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "f.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpaudit.searching.sensitivity._RANDOM_PAIRS", 20)
    return tmp_path


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_claim_that_is_exceeded(dpaudit: Any) -> None:
    result = dpaudit("sensitivity", "f.py:total", *SPACE, "--adjacency", "add-remove",
                     "--claimed", "1/2", "--inside")  # fmt: skip
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith("EXCEEDED  f.py:total: distance 1, claimed at most 0.5\n\n")
    for line in ("  d2          [1.0]", "  distance    1", "    print(total(d2))"):
        assert line in result.stdout.splitlines()


def test_a_claim_that_is_not_exceeded_is_not_called_right(dpaudit: Any) -> None:
    result = dpaudit("sensitivity", "f.py:total", *ASKED, "--inside")
    assert (result.exit_code, result.stderr) == (0, "")
    said = words(result.stdout)
    assert said.startswith(
        "NOT EXCEEDED f.py:total: largest distance seen 1, claimed at most 1 claim "
    )
    assert "largest 1, for d1 = " in said
    assert "does not show " in said
    assert "print(" not in said
    quiet = dpaudit("sensitivity", "f.py:total", *ASKED, "--inside", "-q")
    assert (quiet.exit_code, quiet.stdout) == (0, result.stdout.partition("\n\n")[0] + "\n")


def test_another_python(dpaudit: Any) -> None:
    asked = ("sensitivity", "f.py:mean", *ASKED)
    here, there = dpaudit(*asked), dpaudit(*asked, "--python", sys.executable)
    assert there.exit_code == here.exit_code == 1
    assert there.stdout.splitlines()[0] == here.stdout.splitlines()[0]
    assert dpaudit(*asked, "--python", "no-such-python").exit_code == 2


@pytest.mark.parametrize("to", ["-", "found.json"])
def test_json(dpaudit: Any, folder: Path, to: str) -> None:
    result = dpaudit("sensitivity", "f.py:total", *ASKED, "--outside", "--json", to)
    assert result.exit_code == 1
    shown, text = (
        (result.stderr, result.stdout)
        if to == "-"
        else (result.stdout, (folder / to).read_text("utf-8"))
    )
    assert shown.startswith("EXCEEDED")
    found = json.loads(text)
    assert found["kind"] == "sensitivity"
    assert found["exceeded"] is True
    assert found["claimed"] == 1.0
    assert [one["kind"] for one in found["witnesses"]] == ["distance", "infinite", "raises"]
    assert eval(found["witnesses"][0]["d2"]) == [2.0]
    assert found["witnesses"][1]["distance"] == "inf"
    assert found["largest"]["distance"] == 1.0
    assert sum(found["tried"].values()) > 20


# The function, its options, the exit code, the code of the error (None where click refuses it, or
# where another room checks), and what the message names.
REFUSED: list[tuple[str, tuple[str, ...], int, str | None, str]] = [
    ("f.py:total", (), 2, "option-missing", "--space, --adjacency, --claimed"),
    ("f.py:noisy", ASKED, 2, "function-not-repeatable", "f.py:noisy"),
    ("f.py:failing", ASKED, 3, "always-raises", "f.py:failing raised KeyError"),
    ("f.py:leaving", ASKED, 3, None, "os._exit(0)"),
    ("f.py:total", (*ASKED[:5], "one"), 2, "option-invalid", "'one'"),
    ("f.py:total", (*ASKED[:5], "-2"), 2, "option-invalid", "--claimed=-2.0"),
    ("f.py:total", (*ASKED, "--norm", "records"), 2, "answer-without-distance", "--norm l1"),
    ("f.py:total", (*ASKED, "--as", "pandas"), 2, "form-impossible", "pandas"),
    ("f.py:total", (*ASKED, "--seed", "-1"), 2, "option-invalid", "--seed=-1"),
    ("f.py:total", (*ASKED, "--json", "no/such/file"), 2, "cannot-write", "no/such"),
    ("f.py:total", ("--space", "number in [1, 0]", *ASKED[2:]), 2, "space-invalid", "[0, 1]"),
    ("f.py:total", ("--space", "text", *ASKED[2:]), 2, "space-without-neighbours", "text"),
]


def test_bad_input(dpaudit: Any) -> None:
    for function, asked, exit_code, code, named in REFUSED:
        result = dpaudit("sensitivity", function, *asked)
        assert (result.exit_code, result.stdout) == (exit_code, "")
        assert result.code == code or code is None, (function, asked)
        assert named in words(result.stderr)
        assert result.stderr.startswith("error: ")
        assert len(result.stderr.splitlines()) == 1
