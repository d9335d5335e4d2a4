"""Mechanisms of diffprivlib, traced in its environment: their parameters are compared, too."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.libraries.conftest import environment, run, traces

THERE = environment("diffprivlib-0.6.6")
MECHANISMS = """
from diffprivlib.mechanisms import (
    GeometricTruncated, LaplaceBoundedDomain, LaplaceFolded, LaplaceTruncated, Staircase
)

def truncated(rows, upper=None, sensitivity=1.0):
    upper = float(len(rows)) if upper is None else upper
    made = LaplaceTruncated(epsilon=1.0, sensitivity=sensitivity, lower=0.0, upper=upper)
    return made.randomise(float(sum(rows)))

def fixed(rows):
    return truncated(rows, 10.0)

def far(rows):
    return truncated(rows, 1000.0 + len(rows))

def scaled(rows):
    return truncated(rows, 10.0, float(len(rows)))

def folded(rows):
    made = LaplaceFolded(epsilon=1.0, sensitivity=1.0, lower=0.0, upper=float(len(rows)))
    return made.randomise(float(sum(rows)))

def bounded(rows, sensitivity=1.0):
    upper = float(len(rows)) if sensitivity == 1.0 else 4.0
    made = LaplaceBoundedDomain(epsilon=1.0, sensitivity=sensitivity, lower=0.0, upper=upper)
    return made.randomise(float(sum(rows)))

def sensitive(rows):
    return bounded(rows, 3.0 + len(rows))

def whole(rows):
    made = GeometricTruncated(epsilon=1.0, sensitivity=1, lower=-len(rows), upper=10)
    return made.randomise(sum(rows))
"""
PARAMETER = "data-dependent-parameter"


BOUNDED = ["truncated", "folded", "bounded", "whole"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("diffprivlib")
    (found / "m.py").write_text(MECHANISMS)
    return found


@pytest.fixture(scope="module")
def traced(folder: Path) -> dict[str, Any]:
    names = [*BOUNDED, "far", "fixed", "scaled", "sensitive"]
    return traces(THERE, folder, "m.py", *((one, 0.0) for one in names), ("far", 1e-9))


def findings(trace: Any) -> list[tuple[str, bool]]:
    return [(one["kind"], one["is_cause"]) for one in trace["findings"]]


@pytest.mark.parametrize("name", BOUNDED)
def test_a_bound_that_depends_on_the_data_is_a_cause(traced: dict[str, Any], name: str) -> None:
    assert findings(traced[f"{name} 0"]) == [(PARAMETER, True)]


def test_a_bound_that_no_output_comes_near_is_a_cause_but_for_a_delta(
    traced: dict[str, Any],
) -> None:
    assert findings(traced["far 0"]) == [(PARAMETER, True)]
    assert findings(traced["far 1e-09"]) == [(PARAMETER, False)]


def test_other_parameters_are_compared(traced: dict[str, Any]) -> None:
    assert findings(traced["fixed 0"]) == []
    assert findings(traced["scaled 0"]) == [("data-dependent-scale", True)]
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
