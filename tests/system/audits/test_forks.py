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
        file.write("!")
    child = os.fork()
    if child == 0:
        ENDING
    os.waitpid(child, 0)

def single(x, rng):
    if rng.random() < 0.01:
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
        ("sys.exit('no')", "single", True),
        ("raise ValueError('no')", "single", False),
        ("raise ValueError('no')", "single", True),
        ("raise ValueError('no')", "many", False),
        ("raise ValueError('no')", "many", True),
    ],
)
def test_children_that_raise_end(tmp_path: Path, ending: str, isolate: bool, function: str) -> None:
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
    assert file.with_name("forking.py.forks").read_text()
