"""Traces in a process of its own: the same as here, and runs that end the process."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

import dpaudit
from dpaudit import PureDP, UsageError
from dpaudit.certificates.traced import CUT, Trace
from dpaudit.errors import TargetError
from dpaudit.targets.target import (
    CallableTarget,
    CommandTarget,
    ComposedTarget,
    ImportedTarget,
    IsolatedTarget,
    Limits,
)
from dpaudit.tracing import tracer
from dpaudit.tracing.mechanism_trace import subject_of, trace_pair
from dpaudit.tracing.runs import coupling, running
from dpaudit.tracing.runs.coupling import couple
from tests import sent
from tests.isolated import OLDEST, interpreters
from tests.raising import code

ONE = PureDP(1.0)
PYTHONS = interpreters()
SOURCE = """
import os, random, time
import numpy as np

SOURCE = np.random.default_rng(7)

class Halved:
    def __init__(self, scale):
        self.scale = scale
    def __call__(self, x, shift=0):
        return x + shift + SOURCE.laplace(scale=self.scale)

def make(scale):
    return Halved(scale)

def batched(rows, size, rng):
    return len(rows) + rng.laplace(scale=0.5, size=size)

def helper(x, scale):
    return x + random.gauss(0, 1) * scale

def own(x):
    return helper(x, scale=0.5)

def fails(x, how):
    noise = random.random()
    if x:
        end(how)
    return noise

def end(how):
    if how == "abort":
        os.abort()
    if how == "exit":
        os._exit(3)
    time.sleep(600)

def may_end(x):
    if random.random() < 0.5:
        os._exit(3)
    return x + random.random()

def both(x):
    os.abort()

def raises(x):
    noise = random.random()
    if x:
        raise KeyError("none")
    return noise

def doubled(x):
    return {"value": x}
"""


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("elsewhere") / "mine.py"
    file.write_text(SOURCE)
    return file


def isolated(path: str, *, python: str | None = None, **more: Any) -> IsolatedTarget:
    limits = more.pop("limits", Limits())
    target = ImportedTarget(path=path, **more)
    return IsolatedTarget(target=target, python=python, limits=limits)


def bare(found: Trace) -> Any:
    """Return what a trace shows, without the process that it was made in."""
    return (found.findings, found.sites, found.total, found.not_understood, found.excerpts,
            found.notes, found.runs)  # fmt: skip


def line_with(file: Path, piece: str) -> int:
    lines = file.read_text().splitlines()
    (number,) = (place for place, line in enumerate(lines, 1) if piece in line)
    return number


# The sources.


@pytest.mark.parametrize(
    "script", [tracer.__file__, *map(str, sorted(Path(running.__file__).parent.rglob("*.py")))]
)
def test_what_runs_elsewhere_is_written_for_python_3_8(script: str) -> None:
    source = Path(script).read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, OLDEST))
    imported = {
        (one.names[0].name if isinstance(one, ast.Import) else str(one.module)).partition(".")[0]
        for one in ast.walk(tree)
        if isinstance(one, ast.Import | ast.ImportFrom) and not getattr(one, "level", 0)
    }
    allowed = {*sys.stdlib_module_names, "numpy"}
    # As part of dpaudit, and as a script.
    allowed |= {"dpaudit", "child_script"} if script == tracer.__file__ else set()
    assert imported <= allowed


# The same as here.


@pytest.mark.parametrize("python", PYTHONS)
def test_every_python_shows_the_same(mine: Path, python: str) -> None:
    target = isolated(f"{mine}:batched", python=python)
    here = trace_pair(target.target, [1, 2], [1], ONE)
    try:
        found = trace_pair(target, [1, 2], [1], ONE)
    except UsageError as error:
        assert error.code == "package-missing"  # noqa: PT017  # Python without NumPy
        return
    (cause,) = found.causes
    assert cause.kind == "too-little-noise"
    assert cause.line.line == line_with(mine, "scale=0.5, size=size")
    assert found.sites[0].cost == 2.0
    assert found.runs == here.runs
    if python == sys.executable:
        assert bare(found) == bare(here)


@pytest.mark.parametrize(
    ("attribute", "more"),
    [
        ("Halved", {"init": {"scale": 0.5}, "call": "__call__"}),
        (
            "make",
            {
                "init": [0.5],
                "factory": True,
                "params": {"shift": 2},
                "post_process": "{file}:doubled",
            },
        ),
        ("raises", {}),
    ],
)
def test_it_is_made_as_it_is_here(
    mine: Path, attribute: str, more: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    more = {key: one.format(file=mine) if isinstance(one, str) else one
            for key, one in more.items()}  # fmt: skip
    target = isolated(f"{mine}:{attribute}", **more)
    found = trace_pair(target, 0, 1, ONE, seeds=2)
    assert found.sites or found.findings
    assert bare(found) == bare(trace_pair(target.target, 0, 1, ONE, seeds=2))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("is_named", [True, False])
def test_a_primitive_of_the_users_own(mine: Path, is_named: bool) -> None:
    target = isolated(f"{mine}:own")
    given: Any = f"{mine}:helper"
    if not is_named:
        given = dpaudit.import_path.resolve(given)
        with pytest.raises(UsageError, match="a primitive cannot be read"):
            trace_pair(target, 0, 1, ONE, primitives=[given])
        return
    (site,) = trace_pair(target, 0, 1, ONE, primitives=[given]).sites
    assert (site.primitive, site.scales) == ("helper", (0.5, 0.5))


def test_a_primitive_that_is_no_function(mine: Path) -> None:
    target = isolated(f"{mine}:own")
    assert code(trace_pair, target, 0, 1, ONE, primitives=[f"{mine}:SOURCE"]) == "process-failed"


def test_runs_are_sent_as_they_are() -> None:
    target = CallableTarget(function=sent.from_both_generators)
    found = couple(subject_of(target), 0, 1, 2)
    # As text, since scales that are not known are NaN.
    assert repr(coupling.read(coupling.written(found))) == repr(found)
    odd = found._replace(over="ε \ud800", coupled=[])
    assert coupling.read(coupling.written(odd)) == odd


@pytest.mark.parametrize(
    "text",
    [b"", b"1", b'{"Runs": []}', b'{"None": [1]}', b"[" * 100_000, b'{"dict": [1]}'],
)  # fmt: skip
def test_anything_else_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        coupling.read(text)


# Crashes.


@pytest.mark.parametrize("how", ["abort", "exit", "sleep"])
def test_a_run_that_does_not_return_ends_the_trace(mine: Path, how: str) -> None:
    limits = Limits(timeout=0.5) if how == "sleep" else Limits()
    target = isolated(f"{mine}:fails", params={"how": how}, limits=limits)
    found = trace_pair(target, 0, 1, ONE)
    assert (found.runs, found.findings) == (0, ())
    assert found.cut is not None
    assert not found.understood


def test_a_run_that_does_not_return_ends_with_the_time_of_the_trace(mine: Path) -> None:
    target = isolated(f"{mine}:fails", params={"how": "sleep"})
    (note,) = trace_pair(target, 0, 1, ONE, seconds=0.3).notes
    assert note.startswith(f"{CUT}: {running.OVER}; ")


@pytest.mark.parametrize("name", ["both", "may_end"])
def test_crashes_of_both_inputs_tell_nothing(mine: Path, name: str) -> None:
    found = trace_pair(isolated(f"{mine}:{name}"), 0, 1, ONE, seeds=6)
    assert not found.findings
    assert not found.understood
    (note,) = found.notes
    assert note.startswith(f"{CUT}: ")
    assert "ended its process" in note


# What cannot be traced.


def test_programs_and_several_mechanisms_are_refused(mine: Path) -> None:
    single = isolated(f"{mine}:raises")
    for other in (CommandTarget(words=("true",)), ComposedTarget(parts=(single, single))):
        with pytest.raises(UsageError, match=r"another program|one by one"):
            trace_pair(other, 0, 1, ONE)


def test_what_cannot_be_made_is_refused(mine: Path) -> None:
    with pytest.raises(TargetError, match="has no 'missing'"):
        trace_pair(isolated(f"{mine}:missing"), 0, 1, ONE)
    with pytest.raises(TargetError, match="cannot be started"):
        trace_pair(isolated(f"{mine}:raises", python="no-such-python"), 0, 1, ONE)
