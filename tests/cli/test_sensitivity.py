"""`dpaudit sensitivity`: what it says, and what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

FUNCTIONS = """
import os, sys
import numpy as np

def total(rows):
    return sum(rows)

def mean(rows):
    return sum(rows) / len(rows)

def clamped(rows):
    print("chatter")
    return sum(min(max(row, 0), 1) for row in rows if row is not None and row == row)

def wide(rows):
    return [1e9 * len(rows), *np.arange(200)]

def shifted(rows):
    return 1e9 + rows[0] / 3

def noisy(rows):
    return sum(rows) + np.random.laplace()

def failing(rows):
    raise KeyError("nothing")

def leaving(rows):
    os._exit(0)

def quitting(rows):
    sys.exit(3)

class Scaled:
    def __init__(self, scale):
        self.scale = scale
    def fit(self, rows, power=1):
        return self.scale * len(rows) ** power
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


def narrow(text: str) -> bool:
    """Whether all lines but those of the program fit into a terminal."""
    return all(len(line) <= 80 for line in text.splitlines() if not line.startswith("    "))


def test_a_claim_that_is_exceeded(dpaudit: Any) -> None:
    result = dpaudit("sensitivity", "f.py:total", *SPACE, "--adjacency", "add-remove",
                     "--claimed", "1/2", "--inside")  # fmt: skip
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith("EXCEEDED  f.py:total: distance 1, claimed at most 0.5\n\n")
    for line in (
        "  claim       ‖f(d1) − f(d2)‖₁ ≤ 0.5",
        "  function f  f.py:total (f.py:5)",
        "  inputs      list of 0 to 4 number in [0, 1]; neighbours: add-remove",
        "  d2          [1.0]",
        "  f(d2)       1.0",
        "  distance    1",
        "    from f import total",
        "    d2 = [1.0]",
        "    print(total(d2))",
    ):
        assert line in result.stdout.splitlines()
    assert narrow(result.stdout)


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
    assert narrow(result.stdout)


def test_a_witness_outside_the_space_is_said_to_be_one(dpaudit: Any) -> None:
    result = dpaudit("sensitivity", "f.py:total", *ASKED, "--outside")
    assert result.exit_code == 1
    said = words(result.stdout)
    assert " outside the space" in said
    assert "also the output is 0 for d1 and NaN for d2: " in said
    assert "also raises only for d2: TypeError: " in said
    assert "largest 1, for d1 = " in said


def test_an_exception_of_one_input(dpaudit: Any) -> None:
    result = dpaudit("sensitivity", "f.py:mean", *ASKED)
    assert result.exit_code == 1
    assert words(result.stdout).startswith(
        "EXCEEDED f.py:mean raises only for d1: ZeroDivisionError: division by zero (f.py:9)"
    )
    assert "  distance    ∞" in result.stdout.splitlines()


def test_quiet_is_one_sentence(dpaudit: Any) -> None:
    result = dpaudit("sensitivity", "f.py:total", *ASKED, "--inside", "-q")
    assert result.exit_code == 0
    assert result.stdout == (
        "NOT EXCEEDED  f.py:total: largest distance seen 1, claimed at most 1\n"
    )
    result = dpaudit("sensitivity", "f.py:mean", *ASKED, "-q")
    assert result.exit_code == 1
    assert words(result.stdout).startswith("EXCEEDED f.py:mean raises only for d1")
    assert "\n\n" not in result.stdout


def test_what_a_function_prints_is_no_result(dpaudit: Any) -> None:
    result = dpaudit("sensitivity", "f.py:clamped", *ASKED)
    assert result.exit_code == 0
    assert "chatter" not in result.stdout


def test_inputs_outside_the_space_decide_nothing(dpaudit: Any) -> None:
    result = dpaudit("sensitivity", "f.py:total", *ASKED)
    assert result.exit_code == 0
    assert result.stdout.startswith("NOT EXCEEDED")
    said = words(result.stdout)
    assert "outside distance 2: d1 = [], d2 = [2.0]" in said
    assert "print(total(d2))" in said
    assert narrow(result.stdout)
    silent = dpaudit("sensitivity", "f.py:total", *ASKED, "--inside")
    assert "d2 = [2.0]" not in silent.stdout
    both = dpaudit("sensitivity", "f.py:total", *ASKED, "--inside", "--outside")
    assert both.exit_code == 2


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


def test_long_values_are_cut_and_numbers_are_not_rounded_to_the_claim(dpaudit: Any) -> None:
    result = dpaudit("sensitivity", "f.py:wide", *SPACE, "--adjacency", "add-remove",
                     "--claimed", "999999990")  # fmt: skip
    assert result.exit_code == 1
    assert "distance 1e+09, claimed at most 999999990" in words(result.stdout)
    assert "…" in result.stdout
    assert narrow(result.stdout)


def test_what_only_rounding_exceeds_is_said_to_be_so(dpaudit: Any) -> None:
    result = dpaudit("sensitivity", "f.py:shifted", "--space", "vector of 1 number in [0, 1]",
                     "--adjacency", "linf:1", "--claimed", "1/3", "--inside")  # fmt: skip
    exceeds = result.exit_code == 1
    assert exceeds == ("arithmetic of floats" in words(result.stdout))
    result = dpaudit("sensitivity", "f.py:total", "--space", "vector of 1 number in [0, 1]",
                     "--adjacency", "linf:1", "--claimed", "1/3", "--inside")  # fmt: skip
    assert result.exit_code == 1
    assert "arithmetic of floats" not in words(result.stdout)


def test_classes_and_parameters(dpaudit: Any) -> None:
    result = dpaudit("sensitivity", "f.py:Scaled", "--init", "[3]", "--call", "fit",
                     "--param", "power=2", *ASKED, "--inside")  # fmt: skip
    assert result.exit_code == 1
    assert "print(Scaled(3).fit(d1, power=2))" in result.stdout


# The function, its options, the exit code, the code of the error (None where click refuses it, or
# where another room checks), and what the message names.
REFUSED: list[tuple[str, tuple[str, ...], int, str | None, str]] = [
    ("f.py:total", (), 2, "option-missing", "--space, --adjacency, --claimed"),
    ("f.py:total", ASKED[:4], 2, "option-missing", "--claimed"),
    ("f.py:totl", ASKED, 2, None, "Did you mean 'total'"),
    ("f.py", ASKED, 2, None, "function"),
    ("f.py:noisy", ASKED, 2, "function-not-repeatable", "f.py:noisy"),
    ("f.py:failing", ASKED, 3, "always-raises", "f.py:failing raised KeyError"),
    ("f.py:quitting", ASKED, 3, "always-raises", "f.py:quitting raised SystemExit: 3"),
    ("f.py:leaving", ASKED, 3, None, "os._exit(0)"),
    ("f.py:total", (*ASKED[:5], "one"), 2, "option-invalid", "'one'"),
    ("f.py:total", (*ASKED[:5], "1/0"), 2, "option-invalid", "'1/0'"),
    ("f.py:total", (*ASKED[:5], "-2"), 2, "option-invalid", "--claimed=-2.0"),
    ("f.py:total", (*ASKED[:5], "inf"), 2, "option-invalid", "--claimed=inf"),
    ("f.py:total", (*ASKED, "--norm", "l5"), 2, None, "'l5'"),
    ("f.py:total", (*ASKED, "--norm", "records"), 2, "answer-without-distance", "--norm l1"),
    ("f.py:total", (*ASKED, "--as", "pandas"), 2, "form-impossible", "pandas"),
    ("f.py:total", (*ASKED, "--time", "soon"), 2, "option-invalid", "'soon'"),
    ("f.py:total", (*ASKED, "--time", "0"), 2, "option-invalid", "--time='0'"),
    ("f.py:total", (*ASKED, "--seed", "-1"), 2, "option-invalid", "--seed=-1"),
    ("f.py:total", (*ASKED, "--json", "no/such/file"), 2, "cannot-write", "no/such"),
    ("f.py:total", ("--space", "list of nmber", *ASKED[2:]), 2, "space-invalid", "'number'"),
    ("f.py:total", ("--space", "number in [1, 0]", *ASKED[2:]), 2, "space-invalid", "[0, 1]"),
    ("f.py:total", ("--space", "text", *ASKED[2:]), 2, "space-without-neighbours", "text"),
    ("f.py:total", (*ASKED[:3], "addremove", *ASKED[4:]), 2, "adjacency-invalid", "'add-remove'"),
    ("f.py:total", (*ASKED, "--epsilon", "1"), 2, None, "'--epsilon'"),
]


def test_bad_input(dpaudit: Any) -> None:
    for function, asked, exit_code, code, named in REFUSED:
        result = dpaudit("sensitivity", function, *asked)
        assert (result.exit_code, result.stdout) == (exit_code, "")
        assert result.code == code or code is None, (function, asked)
        assert named in words(result.stderr)
        assert result.stderr.startswith("error: ")
        assert len(result.stderr.splitlines()) == 1
