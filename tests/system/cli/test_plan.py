"""Plans of `dpaudit plan`, and the audits that are planned."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from tests.cli.test_plan import ASKED, words
from tests.cli.test_plan import equal_audits_are_drawn_for_once as equal_audits_are_drawn_for_once
from tests.cli.test_plan import folder as folder
from tests.cli.test_plan import no_trial_is_large as no_trial_is_large
from tests.cli.test_plan import one_trial as one_trial


def test_the_audit_that_is_planned_passes_what_it_requires(
    dpaudit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Larger than the audit that is planned, as trials mostly may be.
    monkeypatch.setattr("dpaudit.auditing.power_trials._MAX_TRIAL_DRAWS", 20_000)
    result = dpaudit(*ASKED, "--excess", "1.2")
    assert (result.exit_code, result.stderr) == (0, "")
    assert re.match(r"[\d,]+ draws, about \d+ s .*\bε = 1.2,", result.stdout)
    assert "caught with probability 0.9" in words(result.stdout)
    assert "Assumed:" in result.stdout
    command = next(line for line in result.stdout.splitlines() if line.startswith("  run "))
    asked = shlex.split(command)[2:]
    assert asked[-2:] == ["--require-power", "1.2"]
    assert dpaudit(*asked).exit_code == 0
    fewer = [*asked[:-3], str(int(asked[-3]) // 2), *asked[-2:]]
    assert dpaudit(*fewer).exit_code == 4


def test_rare_outputs_are_planned_for_next_to_a_leak(dpaudit: Any) -> None:
    result = dpaudit(*ASKED, "--rare", "2e-3")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "37,300 draws, about" in words(result.stdout)
    assert "output of probability 0.002 " in words(result.stdout)
    command = next(line for line in result.stdout.splitlines() if line.startswith("  run "))
    asked = shlex.split(command)[2:]
    assert asked[-6:] == [
        *("--samples", "37300", "--require-power", "1.2", "--require-rare", "0.002")
    ]
    assert dpaudit(*asked).exit_code == 0
    fewer = [*asked[:-5], "20000", *asked[-4:]]
    assert dpaudit(*fewer).exit_code == 4
    assert int(dpaudit(*ASKED, "--rare", "2e-3", "-q").stdout) == 37_300
    less = dpaudit(*ASKED, "--rare", "2e-3", "--power", "0.5", "-q")
    assert int(less.stdout) < 37_300


@pytest.mark.usefixtures("one_trial")
def test_rare_outputs_are_planned_for_at_the_best_point_of_a_curve(dpaudit: Any) -> None:
    """Under μ = ½ some points allow an output of probability 0.05, and one of them is tested."""
    inputs = ("m.py:blind", "--d1", "0", "--d2", "1", "--mu", "0.5")
    asked = ("plan", *inputs, "--rare", "0.05", "-q")
    samples = int(dpaudit(*asked).stdout)
    run = ("run", *inputs, "--samples", str(samples), "--require-rare", "0.05")
    assert dpaudit(*run).exit_code == 0
    fewer = dpaudit("run", *inputs, "--samples", str(samples // 2), "--require-rare", "0.05")
    assert fewer.exit_code == 4
    (number,) = re.findall(r"--samples ([\d_]+)\.", words(fewer.stdout))
    enough = ("--samples", number, "--require-rare", "0.05")
    assert dpaudit("run", *inputs, *enough).exit_code == 0


@pytest.mark.usefixtures("one_trial")
def test_a_rare_output_that_no_number_of_draws_would_catch(
    dpaudit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpaudit.auditing.underpowered.MAX_SAMPLES", 100_000)
    asked = (*ASKED, "--delta", "0.001", "--rare", "0.001001")
    result = dpaudit(*asked)
    assert result.exit_code == 4
    assert "No number of draws would catch an output of probability 0.001001" in words(
        result.stdout
    )
    result = dpaudit(*asked, "-q")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no number of draws would catch" in result.stderr


def test_inputs_that_no_trial_tells_apart_have_no_plan(dpaudit: Any) -> None:
    """Another trial would choose another event, and plan for other numbers of draws."""
    result = dpaudit("plan", "m.py:blind", *ASKED[2:])
    said = words(result.stdout)
    assert result.exit_code == 4
    assert re.match(r"No plan: .* no difference in [\d,]+ draws ", said)
    assert re.search(r" --trial \d+ takes ", said)
    assert "1 of " not in result.stdout  # a share of an event
    result = dpaudit("plan", "m.py:blind", *ASKED[2:], "-q")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "showed no difference" in result.stderr


@pytest.mark.usefixtures("one_trial")
@pytest.mark.parametrize("claim", [("--mu", "2"), ("--rho", "0.6")])
def test_a_claim_that_leaks_most_at_a_point_without_a_multiple(
    dpaudit: Any, claim: tuple[str]
) -> None:
    asked = ("plan", "m.py:laplace", "--d1", "0", "--d2", "1", *claim)
    result = dpaudit(*asked)
    said = words(result.stdout)
    assert result.exit_code == 4
    assert "best event tests the claim at ε = 0" in said
    assert "anything else" not in said
    found = re.search(r"Plan for a claim that this one implies: (--epsilon \S+ --delta \S+),", said)
    assert found
    assert "No plan" in said
    result = dpaudit(*asked[:-2], *found[1].split(), "--excess", "1.5")
    assert result.exit_code == 0
