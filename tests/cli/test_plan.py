"""`dpaudit plan`: what it says, and what it refuses."""

from __future__ import annotations

import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dpaudit.auditing import engine
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import AuditResult
from dpaudit.inputs.neighbouring import EQUAL_INPUTS
from tests.specs import replace

MECHANISMS = """
import time

def laplace(x, size, rng):
    return x + rng.laplace(size=size)

def constant(x):
    return 0

def blind(x, size, rng):
    return rng.normal(size=size)

def slow(x, rng):
    time.sleep(0.005)
    return x + rng.laplace()

def failing(x):
    raise ValueError(x)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.py").write_text(MECHANISMS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# What came of audits of these, by their settings: equal ones draw the same.
QUICK = ("m.py:laplace", "m.py:blind")
_DRAWN: dict[str, AuditResult] = {}
_PER_SECOND = 100_000


@pytest.fixture(autouse=True)
def equal_audits_are_drawn_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most plans here begin with the same trials, which take a second each. They report no
    progress, so that the command takes all seconds of the result for draws."""
    drawn_for = engine.run_audit

    def run_audit(spec: AuditSpec, on_progress: Any, *_: Any) -> AuditResult:
        if spec.target.name == "m.py:slow":
            result = drawn_for(spec, lambda now: on_progress(replace(now, rate=1 / 0.006)))
            return replace(result, seconds=result.draws * 0.006)
        if spec.target.name not in QUICK or spec.sampling.time is not None:
            return drawn_for(spec, on_progress)
        settings = repr(replace(spec, request=None, command=None, files=()))
        if settings not in _DRAWN:
            result = drawn_for(spec)
            # On a busy machine, too, all trials fit into the time.
            _DRAWN[settings] = replace(result, seconds=result.draws / _PER_SECOND)
        return _DRAWN[settings]

    monkeypatch.setattr(engine, "run_audit", run_audit)


@pytest.fixture(autouse=True)
def no_trial_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow a hundredth of the largest trial, a quarter of the usual trial and a fiftieth of the
    time that measures the speed. No result depends on them."""
    monkeypatch.setattr("dpaudit.auditing.power_trials._MAX_TRIAL_DRAWS", 5_000)
    monkeypatch.setattr("dpaudit.auditing.power_trials.TRIAL_DRAWS", 5_000)
    monkeypatch.setattr("dpaudit.cli.plan._TIMING_SECONDS", 0.02)


@pytest.fixture
def one_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan from one trial, without the rounds of eight trials that follow it."""
    monkeypatch.setattr("dpaudit.auditing.power_trials._MAX_ROUNDS", 0)


def words(text: str) -> str:
    return " ".join(text.split())


ASKED = ("plan", "m.py:laplace", "--d1", "0", "--d2", "1", "--epsilon", "1")


@pytest.mark.usefixtures("one_trial")
def test_the_number_alone(dpaudit: Any) -> None:
    usual = dpaudit(*ASKED, "--trial", "2000", "-q")
    sure = dpaudit(*ASKED, "--trial", "2000", "-q", "--confidence", "0.9999")
    assert (usual.exit_code, usual.stderr) == (0, "")
    assert int(sure.stdout) > int(usual.stdout)


@pytest.mark.usefixtures("one_trial")
def test_a_power_below_that_of_require_power_is_not_required(dpaudit: Any) -> None:
    result = dpaudit(*ASKED, "--power", "0.5")
    assert "with probability 0.5" in words(result.stdout)
    assert "--require-power" not in result.stdout


@pytest.mark.usefixtures("one_trial")
def test_rare_outputs_have_a_plan_where_inputs_look_alike(dpaudit: Any) -> None:
    """Only a leak that was asked for fails the plan."""
    asked = ("plan", "m.py:blind", *ASKED[2:], "--rare", "0.01")
    result = dpaudit(*asked)
    assert result.exit_code == 0
    assert "No plan: this pair showed no difference" in words(result.stdout)
    assert "--require-power" not in result.stdout
    samples = int(dpaudit(*asked, "-q").stdout)
    run = ("run", *asked[1:-2], "--samples", str(samples), "--require-rare", "0.01")
    assert dpaudit(*run).exit_code == 0
    assert dpaudit(*asked, "--excess", "1.2").exit_code == 4
    assert dpaudit(*asked, "--excess", "1.2", "-q").exit_code == 2


@pytest.mark.usefixtures("one_trial")
def test_a_leak_that_no_audit_would_catch(dpaudit: Any) -> None:
    """The claim's δ excuses more than the event of a mechanism that leaks less has."""
    result = dpaudit(*ASKED, "--delta", "0.9")
    assert result.exit_code == 4
    assert "No plan: no number of draws would catch such a leak" in words(result.stdout)
    result = dpaudit(*ASKED, "--delta", "0.9", "-q")
    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.usefixtures("one_trial")
def test_a_curve_that_is_tested_at_0_is_not_said_to_be_out_of_reach(dpaudit: Any) -> None:
    """More draws do help; but 1.2 times 0 is no leak."""
    result = dpaudit(*ASKED[:-2], "--mu", "1")
    assert result.exit_code == 4
    said = "No plan: the trial's best event tests the claim at ε = 0, and a plan is for"
    assert words(result.stdout).startswith(said)
    assert "no number of draws" not in words(result.stdout)


def test_what_cannot_be_planned(refused: Any) -> None:
    coded: list[tuple[tuple[str, ...], str | None, str]] = [
        ((*ASKED, "--excess", "1"), "option-invalid", "--excess=1"),
        ((*ASKED, "--excess", "nan"), "option-invalid", "--excess=nan"),
        ((*ASKED, "--excess", "1e9"), "option-invalid", "--excess=1e+09"),
        ((*ASKED, "--power", "1"), "option-invalid", "--power=1"),
        ((*ASKED, "--rare", "0"), "option-invalid", "--rare=0"),
        ((*ASKED, "--rare", "2"), "option-invalid", "--rare=2"),
        ((*ASKED, "--trial", "7"), "option-invalid", "--trial=7"),
        ((*ASKED, "--rare", "abc"), None, "'abc'"),
        ((*ASKED, "--samples", "7"), None, "'--samples'"),
        ((*ASKED, "--familywise"), None, "'--familywise'"),
        (ASKED[:4], "option-missing", "--d2, --epsilon"),
        (("plan", "--epsilon", "1"), "option-missing", "dpaudit plan mine.py:mechanism"),
        (("plan", "a.yaml"), "wrong-kind-of-file", "'a.yaml'"),
    ]
    for words, code, named in coded:
        found, line = refused(*words)
        assert found == code, words
        assert named in line
    equal = ("plan", "m.py:laplace", "--d1", "1", "--d2", "1", "--epsilon", "1")
    for words, named in (
        ((*ASKED, "--delta", "0.1", "--rare", "0.1"), "--rare=0.1"),
        (("plan", "m.py:laplac", *ASKED[2:]), "'laplace'"),
        (equal, EQUAL_INPUTS),
        ((*ASKED[:-1], "0"), "0 here"),
    ):
        assert named in refused(*words)[1]


def test_a_mechanism_that_fails(dpaudit: Any) -> None:
    result = dpaudit("plan", "m.py:failing", *ASKED[2:])
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.code is not None


def test_a_slow_mechanism_is_waited_for_no_longer_than_is_said(
    dpaudit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the command goes on when the mechanism sleeps, which takes no time."""
    clock, wait = [0.0], time.sleep

    def sleep(seconds: float) -> None:
        if seconds == 0.005:  # of the mechanism
            clock[0] += seconds
        else:
            wait(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr("dpaudit.cli.plan.time", SimpleNamespace(monotonic=lambda: clock[0]))
    asked = ("plan", "m.py:slow", *ASKED[2:])
    monkeypatch.setattr("dpaudit.cli.plan.TRIALS_SECONDS", 0.1)
    result = dpaudit(*asked)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.code == "mechanism-slow"
    assert "--trial 100" in result.stderr
    monkeypatch.setattr("dpaudit.cli.plan._CALLS", 0)
    result = dpaudit(*asked)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.code == "mechanism-slow"
    assert "--trial 100" in result.stderr
    result = dpaudit(*asked, "--trial", "100")
    assert result.exit_code in (0, 4)
    monkeypatch.setattr("dpaudit.cli.plan.TRIALS_SECONDS", 30)
    monkeypatch.setattr("dpaudit.auditing.power_trials.TRIALS_SECONDS", 8.0)
    monkeypatch.setattr("dpaudit.auditing.power_trials._ANNOUNCED_SECONDS", 0.1)
    result = dpaudit(*asked)
    told = re.findall(r"^a trial of ([\d,]+) draws: at most \d+ s$", result.stderr, re.MULTILINE)
    assert told == ["1,000"], (result.stderr, result.stdout)
    assert "note: " in result.stderr  # on the draws that time left out
