"""Mechanisms of diffprivlib, traced in its environment: their parameters are compared, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.libraries.conftest import Program, environment

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


@pytest.fixture(autouse=True)
def file(tmp_path: Path) -> Path:
    (tmp_path / "m.py").write_text(MECHANISMS)
    return tmp_path


def traced(program: Program, name: str, *claim: str) -> list[tuple[str, bool]]:
    """Return the findings: the kind, and whether it is a cause."""
    words = (f"m.py:{name}", "--d1", "[1, 1]", "--d2", "[1]", *claim, "--json", "-")
    said = program(THERE / "dpaudit", "trace", *words, "--python", str(THERE / "python"))
    found = json.loads(said.stdout)["trace"]
    return [(one["kind"], one["is_cause"]) for one in found["findings"]]


@pytest.mark.parametrize("name", ["truncated", "folded", "bounded", "whole"])
def test_a_bound_that_depends_on_the_data_is_a_cause(program: Program, name: str) -> None:
    assert traced(program, name, "--epsilon", "1") == [(PARAMETER, True)]


def test_a_bound_that_no_output_comes_near_is_a_cause_but_for_a_delta(program: Program) -> None:
    assert traced(program, "far", "--epsilon", "1") == [(PARAMETER, True)]
    assert traced(program, "far", "--epsilon", "1", "--delta", "1e-9") == [(PARAMETER, False)]


def test_other_parameters_are_compared(program: Program) -> None:
    assert traced(program, "fixed", "--epsilon", "1") == []
    assert traced(program, "scaled", "--epsilon", "1") == [("data-dependent-scale", True)]
    assert traced(program, "sensitive", "--epsilon", "1") == [(PARAMETER, False)]
