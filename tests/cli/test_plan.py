"""`dpaudit plan`: its numbers, its exit codes, and what it refuses."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpaudit.auditing import engine
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import AuditResult, Progress
from dpaudit.inputs.neighbouring import EQUAL_INPUTS
from tests.specs import replace

MECHANISMS = """
def laplace(x, size, rng):
    return x + rng.laplace(size=size)

def blind(x, size, rng):
    return rng.normal(size=size)

def failing(x):
    raise ValueError(x)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.py").write_text(MECHANISMS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Results of trials, with their reports of progress, by their settings: equal trials draw the same.
_DRAWN: dict[str, tuple[AuditResult, list[Progress]]] = {}
# Draws per second of trials that are drawn once, and the seconds that they take to learn.
SPEED, LEARNING = 1_000, 20


@pytest.fixture(autouse=True)
def equal_trials_are_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = engine.run_audit

    def run_audit(spec: AuditSpec, on_progress: Callable[[Progress], None], *more: Any) -> Any:
        if not spec.requirements.allow_underpowered or spec.target.name == "m.py:failing":
            return run(spec, on_progress, *more)
        settings = repr(replace(spec, request=None, command=None, files=()))
        if settings not in _DRAWN:
            reports: list[Progress] = []
            _DRAWN[settings] = run(spec, reports.append, *more), reports
        result, reports = _DRAWN[settings]
        for report in reports:
            elapsed = LEARNING + report.draws / SPEED
            on_progress(replace(report, rate=report.draws / elapsed))
        return result

    monkeypatch.setattr(engine, "run_audit", run_audit)


def words(text: str) -> str:
    return " ".join(text.split())


ASKED = ("plan", "m.py:laplace", "--d1", "0", "--d2", "1", "--epsilon", "1")


def test_the_number_alone(dpaudit: Any) -> None:
    usual = dpaudit(*ASKED, "-q")
    sure = dpaudit(*ASKED, "-q", "--confidence", "0.9999")
    larger = dpaudit(*ASKED, "-q", "--excess", "1.4")
    assert (usual.exit_code, usual.stderr) == (0, "")
    assert int(sure.stdout) > int(usual.stdout) > int(larger.stdout)


@pytest.mark.parametrize("pairs", [1, 2])
def test_the_time_follows_from_the_speed_of_draws(dpaudit: Any, folder: Path, pairs: int) -> None:
    """Every pair has the planned draws. The printed time has two digits."""
    inputs = "[{d1: 0, d2: 1}, {d1: 0, d2: 0.9}]" if pairs == 2 else "[{d1: 0, d2: 1}]"
    audit = f"{{mechanism: m.py:laplace, claim: {{epsilon: 1}}, pairs: {inputs}}}"
    (folder / "pairs.yaml").write_text(f"version: 1\naudits: [{audit}]\n")
    stdout = words(dpaudit("plan", "pairs.yaml").stdout)
    draws, seconds = re.findall(r"^([\d,]+) draws, about ([\d.]+) s", stdout)[0]
    expected = pairs * int(draws.replace(",", "")) / SPEED
    assert float(seconds) == pytest.approx(expected, rel=0.05)
    assert stdout.count(" inputs ") == (2 if pairs == 2 else 0)


def test_rare_outputs_have_a_plan_where_inputs_look_alike(dpaudit: Any) -> None:
    """Only a leak that was requested fails the plan."""
    asked = ("plan", "m.py:blind", *ASKED[2:], "--rare", "0.01")
    result = dpaudit(*asked)
    assert result.exit_code == 0
    assert "No plan: 100,000 draws of a trial showed no difference" in words(result.stdout)
    assert "--require-power" not in result.stdout
    samples = int(dpaudit(*asked, "-q").stdout)
    run = ("run", *asked[1:-2], "--samples", str(samples), "--require-rare", "0.01")
    assert dpaudit(*run).exit_code == 0
    assert dpaudit(*asked, "--excess", "1.2").exit_code == 4
    refused = dpaudit(*asked, "--excess", "1.2", "-q")
    assert (refused.exit_code, refused.code) == (2, "plan-impossible")


def test_a_leak_that_no_audit_would_refute(dpaudit: Any) -> None:
    """The claim's δ excuses more than the event of a mechanism that leaks less has."""
    result = dpaudit(*ASKED, "--delta", "0.9")
    assert result.exit_code == 4
    assert "No plan: no number of draws would refute such a leak" in words(result.stdout)
    result = dpaudit(*ASKED, "--delta", "0.9", "-q")
    assert (result.exit_code, result.stdout) == (2, "")


def test_a_curve_that_is_tested_at_0_has_no_multiple(dpaudit: Any) -> None:
    result = dpaudit(*ASKED[:-2], "--mu", "1")
    assert result.exit_code == 4
    assert words(result.stdout).startswith("No plan: the event of the trial tests the claim at ε =")


def test_what_cannot_be_planned(refused: Any) -> None:
    coded: list[tuple[tuple[str, ...], str | None, str]] = [
        ((*ASKED, "--excess", "1"), "option-invalid", "--excess=1"),
        ((*ASKED, "--power", "1"), "option-invalid", "--power=1"),
        ((*ASKED, "--rare", "0"), "option-invalid", "--rare=0"),
        ((*ASKED, "--trial", "7"), "option-invalid", "--trial=7"),
        (ASKED[:4], "option-missing", "--d2, --epsilon"),
        (("plan", "--epsilon", "1"), "option-missing", "audits.yaml"),
        ((*ASKED[:-1], "0"), "options-conflict", "--excess is a multiple"),
        ((*ASKED, "--delta", "0.1", "--rare", "0.1"), "options-conflict", "--rare=0.1"),
        (
            (*ASKED, "--delta", "0.1", "--definition", "probabilistic"),
            "plan-impossible",
            "--definition approximate",
        ),
    ]
    for arguments, code, named in coded:
        found, line = refused(*arguments)
        assert found == code, arguments
        assert named in line
    equal = ("plan", "m.py:laplace", "--d1", "1", "--d2", "1", "--epsilon", "1")
    for arguments, named in (
        (("plan", "m.py:laplac", *ASKED[2:]), "'laplace'"),
        (equal, EQUAL_INPUTS),
    ):
        assert named in refused(*arguments)[1]


def test_a_mechanism_that_fails(dpaudit: Any) -> None:
    result = dpaudit("plan", "m.py:failing", *ASKED[2:])
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.code is not None


FILE = """
version: 1
defaults: {d1: 0, d2: 1, claim: {epsilon: 1}}
audits:
  - {name: count, mechanism: "m.py:laplace", time: 3s}
  - {name: count of all, mechanism: "m.py:laplace", claim: {epsilon: 1.5}, require_power: 1.3}
  - {mechanism: "m.py:blind"}
  - {mechanism: "m.py:failing"}
"""


def test_audits_of_a_file_have_a_line_each(dpaudit: Any, folder: Path) -> None:
    (folder / "audits.yaml").write_text(FILE)
    result = dpaudit("plan")
    assert result.exit_code == 3
    assert "error: failing: " in words(result.stderr)
    count, all_of_it, blind = result.stdout.splitlines()
    assert count.startswith("count ")
    assert all_of_it.startswith("count of all ")
    assert words(blind).startswith("blind no plan: ")
    result = dpaudit("plan", "audits.yaml", "-k", "count", "-q")
    alone = int(dpaudit(*ASKED, "-q").stdout)
    larger = int(dpaudit(*ASKED[:-1], "1.5", "-q").stdout)
    assert result.stdout.splitlines() == [f"{alone} count", f"{larger} count of all"]
    assert dpaudit("plan", "-k", "blind").exit_code == 4
    assert dpaudit("plan", "-k", "blind", "-q").exit_code == 2
    nothing = dpaudit("plan", "-k", "nothing")
    assert (nothing.exit_code, nothing.stdout) == (5, "")


def run_of(stdout: str) -> list[str]:
    """Return the words of the command that a plan prints, without `dpaudit`."""
    command = next(line for line in stdout.splitlines() if line.startswith("  run "))
    return shlex.split(command)[2:]


def test_the_audit_that_is_planned_passes_what_it_requires(dpaudit: Any) -> None:
    result = dpaudit(*ASKED, "--excess", "1.2")
    assert (result.exit_code, result.stderr) == (0, "")
    run = run_of(result.stdout)
    assert run[-2:] == ["--require-power", "1.2"]
    assert dpaudit(*run).exit_code == 0
    assert dpaudit(*run[:-3], str(int(run[-3]) // 4), *run[-2:]).exit_code == 4
