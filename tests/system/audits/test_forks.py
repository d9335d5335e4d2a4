"""Processes that a mechanism forks end, and do not go on with the audit."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

import dpaudit

MECHANISMS = """
import os, sys

def fork():
    with open(__file__ + ".forks", "a") as file:
        file.write(f"{os.getpid()} ")
    child = os.fork()
    if child == 0:
        ENDING
    os.waitpid(child, 0)

def single(x, rng):
    if rng.random() < 0.02:
        fork()
    return x + rng.laplace()

def always(x, rng):
    fork()
    return x + rng.laplace()

def many(x, size, rng):
    if rng.random() < 0.2:
        fork()
    return x + rng.laplace(size=size)
"""


@pytest.mark.parametrize(
    ("ending", "function", "isolate"),
    [
        ("sys.exit(0)", "single", False),
        ("raise ValueError('no')", "many", True),
        ("return", "single", False),
        ("return", "many", True),
    ],
)
def test_children_end_and_fork_no_more(
    tmp_path: Path, ending: str, isolate: bool, function: str
) -> None:
    file = tmp_path / "forking.py"
    file.write_text(MECHANISMS.replace("ENDING", ending))
    before = psutil.Process().children(recursive=True)
    result = dpaudit.audit(
        f"{file}:{function}", 0, 1, dpaudit.PureDP(1.5), samples=400, isolate=isolate
    )
    assert result.verdict is dpaudit.Verdict.NO_VIOLATION_FOUND, result.error
    (certificate,) = result.certificates
    assert (certificate.draws, certificate.failures) == (400, {})
    assert psutil.Process().children(recursive=True) == before
    forks = set(file.with_name("forking.py.forks").read_text().split())
    assert len(forks) == 1  # a child would add its own id


def test_a_child_of_a_traced_mechanism_ends(tmp_path: Path) -> None:
    file = tmp_path / "forking.py"
    file.write_text(MECHANISMS.replace("ENDING", "return"))
    trace = dpaudit.trace(f"{file}:always", 0, 1, dpaudit.PureDP(0.5))
    assert trace.likely is not None
    assert trace.likely.kind == "too-little-noise"
    forks = file.with_name("forking.py.forks").read_text().split()
    assert len(forks) >= trace.runs
    assert len(set(forks)) == 1
