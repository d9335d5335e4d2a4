"""A green run that is empty is not green, and -q tells what matters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

MECHANISMS = """
import math

def laplace(x, size, rng): return x + rng.laplace(size=size)
def count(x): return len(x)
def forgot(x, rng): rng.laplace()
def nan(x): return math.nan
def seven(x): return 7.0
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.py").write_text(MECHANISMS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(text: str) -> str:
    return " ".join(text.split())


TOO_FEW = ("run", "m.py:count", "--d1", "[1]", "--d2", "[]", "--epsilon", "12", "--samples", "5000")


def test_too_few_draws_exit_4_and_say_so_before_drawing(dpaudit: Any) -> None:
    result = dpaudit(*TOO_FEW, "--json", "r.json")
    assert result.exit_code == 4
    reason = "5,000 draws cannot "
    assert f"NO VIOLATION FOUND count: under-powered: {reason}" in words(result.stdout)
    assert "at least 896,338 could (samples)" in words(result.stdout)
    assert result.stderr.startswith(f"warning: count: under-powered: {reason}")
    (audit,) = json.loads(Path("r.json").read_text())["audits"]
    assert audit["underpowered"].startswith(reason)
    report = dpaudit("report", "r.json")
    assert (report.exit_code, "under-powered" in report.stdout) == (0, True)


def test_what_no_recording_and_no_guesses_can_refute(dpaudit: Any) -> None:
    np.save("a.npy", np.zeros(1_000))
    np.save("b.npy", np.ones(1_000))
    recorded = dpaudit("bound", "a.npy", "b.npy", "--epsilon", "800")
    assert recorded.exit_code == 4
    assert words(recorded.stdout).count("no number could") == 2
    guessed = dpaudit("bound", "--guesses", 1000, 100, 100, "--epsilon", "800")
    assert guessed.exit_code == 4
    assert "no number could" in words(guessed.stdout)
    few = dpaudit("bound", "--guesses", 1000, 20, 20, "--epsilon", "4")
    assert "at least 254 guesses" in words(few.stdout)


def test_it_can_be_allowed(dpaudit: Any, folder: Path) -> None:
    result = dpaudit(*TOO_FEW, "--allow-underpowered")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "warning 5,000 draws cannot refute" in words(result.stdout)
    (folder / "a.yaml").write_text(
        "version: 1\naudits:\n  - {name: a, mechanism: m.py:count, d1: [1], d2: [],\n"
        "     claim: {epsilon: 12}, samples: 5000, allow_underpowered: true}\n"
    )
    assert dpaudit("run", "a.yaml").exit_code == 0


@pytest.mark.parametrize(("factor", "code"), [("1.2", 0), ("1.01", 4)])
def test_as_much_power_as_is_asked_for(dpaudit: Any, folder: Path, factor: str, code: int) -> None:
    asked = ("m.py:laplace", "--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "20_000")
    assert dpaudit("run", *asked, "--require-power", factor).exit_code == code
    (folder / "a.yaml").write_text(
        "version: 1\naudits:\n  - {name: a, mechanism: m.py:laplace, d1: 0, d2: 1,\n"
        f"     claim: {{epsilon: 1}}, samples: 20_000, require_power: {factor}}}\n"
    )
    assert dpaudit("run", "a.yaml").exit_code == code


def test_a_violation_needs_no_power(dpaudit: Any) -> None:
    asked = ("m.py:laplace", "--d1", "0", "--d2", "1", "--epsilon", "0.3", "--samples", "5_000")
    assert dpaudit("run", *asked, "--require-power", "1.1").exit_code == 1


ASKED_RARE = ("m.py:laplace", "--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "10_000")


@pytest.mark.parametrize(("probability", "code"), [("0.01", 0), ("0.001", 4)])
def test_rare_outputs_that_would_have_been_caught(
    dpaudit: Any, folder: Path, probability: str, code: int
) -> None:
    result = dpaudit("run", *ASKED_RARE, "--require-rare", probability, "--json", "r.json")
    assert result.exit_code == code
    (audit,) = json.loads(Path("r.json").read_text())["audits"]
    assert (audit["underpowered"] is None) is (code == 0)
    if code:
        # From which probability on, the one asked for, and a number of draws that is enough.
        assert "--require-rare 0.001:" in audit["underpowered"]
        assert "--samples 74_600" in audit["underpowered"]
        assert "0.00746" in audit["underpowered"]
    (folder / "a.yaml").write_text(
        "version: 1\naudits:\n  - {name: a, mechanism: m.py:laplace, d1: 0, d2: 1,\n"
        f"     claim: {{epsilon: 1}}, samples: 10_000, require_rare: {probability}}}\n"
    )
    assert dpaudit("run", "a.yaml").exit_code == code


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ("--require-power 0.9", "--require-power=0.9"),
        ("--require-power much", "'much'"),
        ("--require-power 1.2 --allow-underpowered", "--allow-underpowered"),
        ("--require-rare 0", "--require-rare=0.0"),
        ("--require-rare 0.1 --allow-underpowered", "--allow-underpowered"),
        ("--require-rare 1e-6 --delta 1e-5", "=1e-06"),
        ("--require-rare 0.1 --bound clopper-pearson", "--bound"),
        ("--require-rare 0.1 --delta 0.01 --definition probabilistic", "approximate DP"),
    ],
)
def test_what_cannot_be_required(refused: Any, more: str, named: str) -> None:
    assert named in refused("run", *ASKED_RARE, *more.split())[1]


def test_no_multiple_of_a_claim_of_delta_alone(refused: Any) -> None:
    claim = ("--epsilon", "0", "--delta", "0.5", "--require-power", "1.2")
    assert "--require-power " in refused("run", *ASKED_RARE[:5], *claim)[1]


def test_a_batch_is_as_its_worst(dpaudit: Any, folder: Path) -> None:
    (folder / "a.yaml").write_text(
        "version: 1\ndefaults: {samples: 5000, d1: [1], d2: []}\naudits:\n"
        "  - {name: few, mechanism: m.py:count, claim: {epsilon: 12}}\n"
        "  - {name: leak, mechanism: m.py:count, claim: {epsilon: 1}, expect: EXPECT}\n"
    )
    text = (folder / "a.yaml").read_text()
    for expect, code in (("violation", 4), ("pass", 1)):
        (folder / "a.yaml").write_text(text.replace("EXPECT", expect))
        assert dpaudit("run", "a.yaml", "-q").exit_code == code


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        ("forgot", "every output was None: "),
        ("nan", "every output was NaN: "),
    ],
)
def test_outputs_that_are_nothing_are_an_error(dpaudit: Any, mechanism: str, message: str) -> None:
    given = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "5000")
    result = dpaudit("run", f"m.py:{mechanism}", *given)
    assert result.exit_code == 3
    assert message in words(result.stdout)


def test_one_output_for_everything_is_a_warning(dpaudit: Any) -> None:
    given = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "5000")
    result = dpaudit("run", "m.py:seven", *given)
    assert result.exit_code == 0
    assert "all 5,000 draws are" in words(result.stdout)
    # log(100) / 2,490: the larger of what could hide in the draws of either input.
    assert " of up to 0.0019 " in words(result.stdout)


def test_what_could_not_fail_is_not_as_expected(dpaudit: Any) -> None:
    Path("a.yaml").write_text(
        "version: 1\naudits:\n  - {name: a, mechanism: m.py:count, d1: [1], d2: [],\n"
        "     claim: {epsilon: 12}, samples: 5000, expect: pass}\n"
    )
    result = dpaudit("run", "a.yaml", "-q")
    assert result.exit_code == 4
    assert "as expected" not in result.stdout
