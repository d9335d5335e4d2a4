"""What makes a gate strict, and what stops it: --strict, -x, --maxfail."""

from __future__ import annotations

import json
import xml.etree.ElementTree as XML
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import PureDP, Verdict, audit

MECHANISMS = """
def laplace(x, size, rng): return x + rng.laplace(size=size)
def seven(x): return 7
def weighed(x, weight): return 7
def is_text(x): return isinstance(x, str)
def broken(x): raise ValueError("broken")
"""
PAIR = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "2000")
BATCH = """version: 1
defaults: {mechanism: "m.py:laplace", d1: 0, d2: 1, claim: {epsilon: 2}, samples: 1_000}
audits:
  - {name: first}
  - {name: second, claim: {epsilon: 0.1}}
  - {name: third, claim: {epsilon: 0.1}}
  - {name: fourth}
"""
NAMES = ["first", "second", "third", "fourth"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.py").write_text(MECHANISMS)
    (tmp_path / "audits.yaml").write_text(BATCH)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def saved(file: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path(file).read_text("utf-8"))
    return document


def names(file: str) -> list[str]:
    return [one["name"] for one in saved(file)["audits"]]


def test_a_warning_fails_a_strict_audit_and_no_other(dpaudit: Any) -> None:
    assert dpaudit("run", "m.py:seven", *PAIR, "-q").exit_code == 0
    strict = dpaudit("run", "m.py:seven", *PAIR, "-q", "--strict", "--json", "r.json")
    assert strict.exit_code == 1
    assert "strict: 1 warning " in strict.stdout
    (found,) = saved("r.json")["audits"]
    assert (found["strict"], found["verdict"]) == (True, "NO VIOLATION FOUND")
    assert dpaudit("run", "m.py:laplace", *PAIR, "--strict").exit_code == 0


def test_strict_in_python() -> None:
    result = audit(lambda x: 7, 0, 1, PureDP(1.0), samples=2_000, strict=True)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert len(result.failing_warnings) == 1
    assert audit(lambda x: 7, 0, 1, PureDP(1.0), samples=2_000).failing_warnings == ()


def test_strict_holds_in_a_file_for_one_audit(dpaudit: Any) -> None:
    text = BATCH.replace("{name: first}", '{name: first, mechanism: "m.py:seven"}')
    text = text.replace("claim: {epsilon: 0.1}", "claim: {epsilon: 2}")
    Path("audits.yaml").write_text(text)
    assert dpaudit("run", "audits.yaml").exit_code == 0
    Path("audits.yaml").write_text(text.replace("name: first,", "name: first, strict: true,"))
    result = dpaudit("run", "audits.yaml", "--report", "junit:r.xml", "--report", "sarif:r.sarif")
    assert result.exit_code == 1
    assert "first: NO VIOLATION FOUND" in result.stdout
    root = XML.fromstring(Path("r.xml").read_bytes())
    assert (root.get("tests"), root.get("failures")) == ("4", "1")
    (found,) = saved("r.sarif")["runs"][0]["results"]
    assert (found["ruleId"], found["level"]) == ("strict-warning", "error")


def test_a_violation_that_was_expected_fails_for_its_warnings(dpaudit: Any) -> None:
    # One input is a text and the other a number, which warns.
    words = ("run", "m.py:is_text", "--d1", '"a"', "--d2", "1", *PAIR[4:], "--expect", "violation")
    assert dpaudit(*words).exit_code == 0
    assert dpaudit(*words, "-q", "--strict", "--json", "r.json").exit_code == 1
    (found,) = saved("r.json")["audits"]
    assert found["verdict"] == "VIOLATION"


def test_what_was_allowed_fails_no_strict_audit(dpaudit: Any) -> None:
    equal = ("run", "m.py:laplace", "--d1", "0", "--d2", "0", *PAIR[4:], "--strict")
    assert dpaudit(*equal).exit_code == 4
    assert dpaudit(*equal, "--allow-underpowered").exit_code == 0
    weak = ("run", "m.py:laplace", *PAIR[:4], "--epsilon", "12", "--samples", "2000", "--strict")
    assert dpaudit(*weak).exit_code == 4
    assert dpaudit(*weak, "--allow-underpowered").exit_code == 0
    # A warning beats it: 1 before 4.
    assert dpaudit("run", "m.py:seven", *weak[2:]).exit_code == 1


@pytest.mark.parametrize("command", ["run", "search"])
def test_a_warning_about_a_flag_refuses_a_strict_run(dpaudit: Any, command: str) -> None:
    more = ("--space", "number in [0, 1]", "--adjacency", "l1:1") if command == "search" else ()
    inputs = PAIR[4:] if command == "search" else ("--d1", "0", "--d2", "1", *PAIR[4:])
    words = (command, "m.py:weighed", *inputs, *more, "--param", "weight=no")
    assert dpaudit(*words).exit_code == 0
    result = dpaudit(*words, "--strict")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("error: --param weight: no is text here")


def test_a_warning_of_a_strict_audit_is_a_problem_of_its_file(dpaudit: Any) -> None:
    Path("audits.yaml").write_text(BATCH.replace("{name: first}", "{name: first, d1: yes}"))
    assert dpaudit("check", "audits.yaml").exit_code == 0
    Path("audits.yaml").write_text(
        BATCH.replace("{name: first}", "{name: first, d1: yes, strict: true}")
    )
    result = dpaudit("check", "audits.yaml")
    assert result.exit_code == 2
    problems = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert [line[:25] for line in problems] == ["error: audits.yaml:4: d1:"]
    assert dpaudit("run", "audits.yaml").stderr.splitlines()[-1] == problems[0]


def test_strict_recordings(dpaudit: Any) -> None:
    np.save("a.npy", np.zeros(1_000))
    np.save("b.npy", np.zeros(1_000))
    words = ("bound", "a.npy", "b.npy", "--epsilon", "1")
    assert dpaudit(*words).exit_code == 0
    assert dpaudit(*words, "--strict").exit_code == 1


def test_a_comparison_tells_a_warning_that_fails(dpaudit: Any) -> None:
    dpaudit("run", "m.py:seven", *PAIR, "--json", "old.json")
    dpaudit("run", "m.py:seven", *PAIR, "--json", "new.json", "--strict")
    assert dpaudit("report", "new.json", "--rerun").exit_code == 0
    result = dpaudit("compare", "old.json", "new.json")
    assert result.exit_code == 1
    assert "failed by warnings" in result.stdout
    assert dpaudit("compare", "new.json", "old.json").exit_code == 0


@pytest.mark.parametrize(
    ("flags", "ended"),
    [
        (["-x"], 2),
        (["--maxfail", "2"], 3),
    ],
)
def test_a_run_stops_at_its_failures(dpaudit: Any, flags: list[str], ended: int) -> None:
    result = dpaudit("run", "audits.yaml", "--json", "r.json", *flags)
    assert result.exit_code == 1
    assert names("r.json") == NAMES[:ended]
    assert saved("r.json").get("not_run", []) == NAMES[ended:]
    listed = [line.split() for line in result.stdout.splitlines() if line.startswith("not run")]
    assert [words[-1] for words in listed] == NAMES[ended:]


@pytest.mark.parametrize("flags", [["--maxfail", "0"], ["--maxfail", "1.5"], ["-x", "--maxfail=2"]])
def test_no_such_number_of_failures(dpaudit: Any, flags: list[str]) -> None:
    result = dpaudit("run", "audits.yaml", *flags)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--maxfail" in result.stderr
