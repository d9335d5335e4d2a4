"""Mechanisms of diffprivlib, traced in its environment: their parameters are compared, too."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.libraries.conftest import assert_lines_are_named, environment, run, traces

THERE = environment("diffprivlib-0.6.6")
MECHANISMS = """
from diffprivlib.mechanisms import LaplaceBoundedDomain, LaplaceTruncated

def truncated(rows, upper=0.0):
    made = LaplaceTruncated(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=upper + len(rows))
    return made.randomise(float(sum(rows)))

def far(rows):
    return truncated(rows, 1000.0)

def bounded(rows):
    made = LaplaceBoundedDomain(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=float(len(rows)))
    return made.randomise(float(sum(rows)))

def sensitive(rows):
    made = LaplaceBoundedDomain(epsilon=1.0, sensitivity=3.0 + len(rows), lower=0.0, upper=4.0)
    return made.randomise(float(sum(rows)))
"""
PARAMETER = "data-dependent-parameter"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("diffprivlib")
    (found / "m.py").write_text(MECHANISMS)
    return found


@pytest.fixture(scope="module")
def traced(folder: Path) -> dict[str, Any]:
    names = ["bounded", "far", "sensitive"]
    return traces(THERE, folder, "m.py", *((one, 0.0) for one in names), ("far", 1e-9))


def findings(trace: Any) -> list[tuple[str, bool]]:
    return [(one["kind"], one["is_cause"]) for one in trace["findings"]]


def test_lines_with_noise_of_diffprivlib_are_named() -> None:
    causes = assert_lines_are_named(THERE, "diffprivlib")
    assert [kind for kind, _ in causes["truncated-at-the-size"]] == [PARAMETER]
    assert causes["half-the-sensitivity"] == [["too-little-noise", 2.0]]


def test_a_bound_that_no_output_comes_near_is_a_cause_but_for_a_delta(
    traced: dict[str, Any],
) -> None:
    assert findings(traced["far 0"]) == [(PARAMETER, True)]
    assert findings(traced["far 1e-09"]) == [(PARAMETER, False)]


def test_parameters_of_unknown_noise_are_compared(traced: dict[str, Any]) -> None:
    assert findings(traced["bounded 0"]) == [(PARAMETER, True)]
    assert findings(traced["sensitive 0"]) == [(PARAMETER, False)]


def test_another_python_traces_the_same(folder: Path) -> None:
    words = ("trace", "m.py:truncated", "--d1", "[1, 1]", "--d2", "[1]", "--epsilon", "1")
    here = Path(sys.executable).parent / "dpaudit"
    said = run(folder, here, *words, "--json", "-", "--python", THERE / "python")
    assert findings(json.loads(said.stdout)) == [(PARAMETER, True)]


def test_the_class_of_a_library_is_the_mechanism(folder: Path) -> None:
    words = ("trace", "diffprivlib.mechanisms:Laplace", "--call", "randomise", "--epsilon", "1")
    made = ("--init", "{epsilon: 2.0, sensitivity: 1.0}", "--d1", "0.0", "--d2", "1.0")
    found = json.loads(run(folder, THERE / "dpaudit", *words, *made, "--json", "-").stdout)
    (cause,) = found["findings"]
    assert (cause["kind"], cause["cost"]) == ("too-little-noise", 2.0)
