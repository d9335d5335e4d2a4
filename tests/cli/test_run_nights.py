"""`dpaudit run --evidence`: nights add up, and an alarm fails the run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpaudit.nights import record

from .conftest import Invoke

MINE = """
def count(x, size, rng):
    return x + rng.laplace(size=size)
"""
NIGHT = ("run", "mine.py:count", "--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "2000")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the seeds 1, 2, 3 and so on in place of seeds from the system."""
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "damaged.json").write_text("no night\n")
    monkeypatch.chdir(tmp_path)
    seeds = iter(range(1, 100))
    monkeypatch.setattr("dpaudit.nights.record.secrets.randbits", lambda bits: next(seeds))


def night(dpaudit: Invoke, *more: str, evidence: str = "evidence.json") -> Any:
    """Run a night, and return its exit code and its result."""
    run = dpaudit(*NIGHT, "--evidence", evidence, "--json", "results.json", *more)
    return run.exit_code, json.loads(Path("results.json").read_text())["audits"][0]


def test_each_night_adds_a_line_and_its_evidence(dpaudit: Invoke) -> None:
    (first_code, first), (second_code, second) = night(dpaudit), night(dpaudit)
    assert (first_code, second_code) == (0, 0)
    assert (first["nights"]["count"], second["nights"]["count"]) == (1, 2)
    lines = record.read(Path("evidence.json"))
    assert [line.seed for line in lines] == [1, 2]
    assert [line.alarm for line in lines] == [False, False]
    assert lines[1].pairs[0].right == second["fresh"][0]["right"]
    assert second["verdict"] == "NO VIOLATION FOUND"


def test_an_alarm_fails_the_run_is_reported_and_the_evidence_begins_again(dpaudit: Invoke) -> None:
    formats = ("html", "markdown", "junit", "sarif", "github")
    reports = [word for name in formats for word in ("--report", f"{name}:{name}")]
    # Without a leak, the mean of the evidence after n nights is up to n.
    for _ in range(20):
        code, result = night(dpaudit, "--alarm", "0.9", *reports)
        if code:
            break
    lines = record.read(Path("evidence.json"))
    assert (code, result["verdict"]) == (1, "VIOLATION")
    assert result["nights"]["evidence"] >= 1 / 0.9
    assert result["nights"]["first"]["time"] in {line.time for line in lines}
    assert [line.alarm for line in lines] == [False] * (len(lines) - 1) + [True]
    for name in formats:
        assert lines[-1].code in Path(name).read_text()
    assert night(dpaudit, "--alarm", "0.9")[1]["nights"]["since_alarm"] == 1


def test_the_printed_command_repeats_the_draws_of_a_night(dpaudit: Invoke) -> None:
    _, result = night(dpaudit)
    again = dpaudit(*shlex.split(result["command"])[1:], "--json", "again.json")
    assert again.exit_code == 0
    repeated = json.loads(Path("again.json").read_text())["audits"][0]
    assert repeated["ending"] == result["ending"]
    assert repeated["nights"] is None
    assert dpaudit("report", "results.json", "--rerun").exit_code == 0
    assert len(record.read(Path("evidence.json"))) == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--evidence", "e.json", "--alarm", "0"), "option-invalid"),
        (("--evidence", "e.json", "--stop", "bets"), "options-conflict"),
        (("--evidence", "e.json", "--certification-seed", "3"), "options-conflict"),
        (("--evidence", "e.json", "--journal", "j"), "options-conflict"),
        (("--evidence", "damaged.json"), "evidence-damaged"),
        (("--evidence", "absent/e.json"), "cannot-write"),
        (("--evidence", "-"), "option-invalid"),
        (("--evidence", "e.json", "--json", "./e.json"), "options-conflict"),
        (("--evidence", "e.json", "--report", "html:e.json"), "options-conflict"),
        (("--alarm", "0.1"), "option-missing"),
    ],
)
def test_wrong_options_are_refused_before_the_first_draw(
    refused: Callable[..., tuple[str | None, str]],
    asked: list[Any],
    words: tuple[str, ...],
    code: str,
) -> None:
    assert refused(*NIGHT, *words)[0] == code
    assert asked == []
