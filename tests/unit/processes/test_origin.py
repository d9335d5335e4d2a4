"""The place of an exception is in the user's own file, even if a library raised it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.adapters.loading import load_mechanism
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.outcomes import Raised, from_raw
from dpaudit.processes.origin import origin
from dpaudit.sampling.chunks import Failures, ToLearn
from dpaudit.sampling.sampler import Sampler
from dpaudit.targets.target import (
    CallableTarget,
    ComposedTarget,
    ImportedTarget,
    IsolatedTarget,
    RepeatedTarget,
)

SOURCE = """\
import json
import numpy as np
def own(x): raise ValueError("own")
def calls(x): return own(x)
def library(x): return json.loads("{")
def array(x): return np.linalg.inv(np.zeros((2, 2)))
def compiled(x): return int("x")
def every_other(x):
    if x: raise KeyError(x)
    return 0
def text(x): return eval("1 / 0")
def post(y): raise TypeError("post")
"""
LINES = {"own": 3, "calls": 3, "library": 5, "array": 6, "compiled": 7, "text": 11}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "raises_somewhere.py"
    path.write_text(SOURCE)
    return path


def first(target: Any) -> Raised:
    mechanism = load_mechanism(target)
    try:
        outcome = mechanism.sample(0, 2, np.random.default_rng(0))[0]
    finally:
        mechanism.close()
    assert isinstance(outcome, Raised)
    return outcome


def test_the_innermost_line_of_the_users_file(file: Path) -> None:
    for name, line in LINES.items():
        target = ImportedTarget(path=f"{file}:{name}")
        assert first(target).where == f"{file.name}:{line}"
        if name in ("library", "text"):
            assert first(IsolatedTarget(target=target)).where == f"{file.name}:{line}"


def test_post_processing_compositions_and_repetitions(file: Path) -> None:
    raising = ImportedTarget(path=f"{file}:calls")
    fine = ImportedTarget(path=f"{file}:every_other", post_process=f"{file}:post")
    for target in (fine, IsolatedTarget(target=fine)):
        assert first(target).where == f"post_process post, {file.name}:12"
    composed = ComposedTarget(
        parts=(replace(fine, post_process=None),), post_process=f"{file}:post"
    )
    assert first(composed).where == f"post_process post, {file.name}:12"
    of_the_mechanism = replace(raising, post_process=f"{file}:post")
    for target in (of_the_mechanism, IsolatedTarget(target=of_the_mechanism)):
        assert first(target).where == f"{file.name}:3"
    assert first(ComposedTarget(parts=(raising, raising))).where == f"{file.name}:3"
    assert first(RepeatedTarget(target=raising, times=3)).where == f"{file.name}:3"


def test_an_exception_outside_of_python_has_no_line() -> None:
    assert first(CallableTarget(function=len)).where == ""
    assert origin(ValueError("never raised")) == ""


def test_the_line_does_not_distinguish_outcomes() -> None:
    one, other = Raised("KeyError", "'x'", "a.py:1"), Raised("KeyError", "'x'", "b.py:2")
    assert one == other
    assert hash(one) == hash(other)
    assert len(set(from_raw([one, other, Raised("KeyError", "'x'")]).keys().tolist())) == 1


def test_exceptions_that_all_differ_are_all_outcomes(file: Path) -> None:
    mechanism = load_mechanism(ImportedTarget(path=f"{file}:every_other"))
    outcomes = mechanism.sample_each(range(300), np.random.default_rng(0))
    assert [one.message for one in outcomes[1:]] == [str(one) for one in range(1, 300)]
    assert outcomes[1].where == outcomes[2].where == f"{file.name}:9"


@pytest.fixture
def sampler(file: Path) -> Callable[..., Sampler]:
    def made(**options: Any) -> Sampler:
        target = ImportedTarget(path=f"{file}:every_other")
        return Sampler(target, [NeighbouringPair(0, 1)], 3, **options)

    return made


def test_chunks_keep_the_first_exception_of_each_kind(sampler: Any) -> None:
    drawn = sampler().draw(ToLearn((0, 0, 0), 40))
    other = Failures({"KeyError": (0, 1)}, {"KeyError": Raised("KeyError", "later", "b.py:9")})
    kept = (drawn.failures + other).first["KeyError"]
    assert (kept.message, kept.where) == ("1", "raises_somewhere.py:9")
    assert pickle.loads(pickle.dumps(drawn.failures)).first["KeyError"].where == kept.where
