"""Whole runs with the settings of `[tool.dpaudit]`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.test_project import TARGET, project, requested
from tests.cli.test_project import folder as folder
from tests.system.cli.test_run_journal import KILLED


def test_other_commands_take_what_they_have(dpaudit: Any) -> None:
    project("samples = 2_000\nconfidence = 0.9\nseed = 5\nrequire_rare = 0.3\nstrict = true")
    words = ("--space", "number in [0, 1]", "--adjacency", "l1:1", "--epsilon", "3")
    dpaudit("search", "m.py:noisy", *words, "--json", "r.json", "--samples", "3000")
    assert requested()[0][1:] == (0.9, 5)
    Path("guesses.csv").write_text("included,guess\n" + "1,1\n0,0\n" * 50)
    dpaudit("bound", "--guesses", "guesses.csv", "--epsilon", "9", "--json", "g.json")
    (found,) = json.loads(Path("g.json").read_text("utf-8"))["audits"]
    assert (found["confidence"], found["strict"]) == (0.9, True)
    assert dpaudit("plan", *TARGET, "-q", "--excess", "2").exit_code == 0


def test_a_journal_of_the_project_is_gone_once_a_run_has_ended(dpaudit: Any) -> None:
    project("samples = 2_000\njournal = '.kept'")
    for _ in range(2):
        assert dpaudit("run", "-q").exit_code == 0
        assert list(Path(".kept").iterdir()) == []
    assert dpaudit("run", "-q", "--journal", "own").exit_code == 0
    assert len(list(Path("own").iterdir())) == 2


def test_an_interrupted_run_goes_on_from_the_journal_of_the_project(dpaudit: Any) -> None:
    project("samples = 20_000\njournal = '.kept'")
    words = [sys.executable, "-c", KILLED, "5000", "run", "-q"]
    assert subprocess.run(words, capture_output=True, timeout=120).returncode == -9
    assert list(Path(".kept").iterdir()) != []
    assert dpaudit("run", "-q", "--json", "r.json").exit_code == 0
    resumed = [one["resumed"] for one in json.loads(Path("r.json").read_text("utf-8"))["audits"]]
    assert resumed == [1, 0]
    assert list(Path(".kept").iterdir()) == []
