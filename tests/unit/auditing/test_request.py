"""Digests of requests: equal in another process, different after an edit."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import ApproximateDP, PureDP
from dpaudit.auditing.options import DrawnSeed
from dpaudit.auditing.request import differences, digest, request
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import Family
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.targets.target import (
    CallableTarget,
    CommandTarget,
    ComposedTarget,
    ImportedTarget,
    IsolatedTarget,
    Limits,
    RepeatedTarget,
)
from tests.specs import audit_of, replace

PAIR = NeighbouringPair(0, 1, None, "0, 1")


def spec_of(target: Any, **more: Any) -> AuditSpec:
    return audit_of(**{"name": "a", "target": target, "pairs": (PAIR,), "claim": PureDP(1), **more})


def words(one: AuditSpec, other: AuditSpec) -> str:
    return differences(request(one), request(other))


def test_other_values_have_other_digests() -> None:
    for first, second in (
        (1, 1.0),
        (1, True),
        (1, "1"),
        ([1, [2]], [1, 2]),
        ({"a": 1}, {"a": 2}),
        (np.zeros(3), np.zeros((3, 1))),
        (np.zeros(2), np.array([0.0, -0.0])),
        (PureDP(1.0), PureDP(2.0)),
        (PureDP(1.0), ApproximateDP(1.0, 0.0)),
        (len, max),
        (ImportedTarget(path="m:f"), ImportedTarget(path="m:f", params={"x": 1})),
        (None, "None"),
    ):
        assert digest(first) != digest(second)


def test_equal_values_have_equal_digests() -> None:
    for first, second in (
        ((1, 2), [1, 2]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({3, 1, 2}, {1, 2, 3}),
        (DrawnSeed(3), 3),
        (np.float64(0.1), 0.1),
        (np.random.default_rng(0).random, np.random.default_rng(1).random),
        (partial(max, 1), partial(max, 1)),
    ):
        assert digest(first) == digest(second)


def test_a_function_that_was_edited_is_another(tmp_path: Path) -> None:
    made = []
    for number in (1, 2):
        file = tmp_path / f"made_{number}.py"
        file.write_text(f"def draw(x):\n    return x + {number}\n")
        space: dict[str, Any] = {"__name__": "made"}
        exec(compile(file.read_text(), str(file), "exec"), space)
        made.append(space["draw"])
    assert digest(made[0]) != digest(made[1])


def test_limits_are_part_of_a_request() -> None:
    inner = CallableTarget(function=len)
    one, other = (
        spec_of(IsolatedTarget(target=inner, limits=Limits(timeout=one))) for one in (1.0, 2.0)
    )
    assert words(one, other) == "the content of target differs"


@pytest.mark.parametrize("more", [{}, {"time": 5.0}])
def test_the_number_of_workers_is_no_difference(more: dict[str, Any]) -> None:
    one, two, auto = (
        spec_of(CallableTarget(function=len), workers=count, **more) for count in (1, 2, "auto")
    )
    assert words(one, two) == words(one, auto) == words(auto, two) == ""


def test_a_request_includes_the_code_of_all_import_paths_and_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "other", "post"):
        (tmp_path / f"{name}.py").write_text("def f(x):\n    return x\n")
    (tmp_path / "program").write_text("#!/bin/sh\n")
    parts = (
        ImportedTarget(path="mine.py:f", post_process="post.py:f"),
        IsolatedTarget(target=ImportedTarget(path="other.py:f"), python="somewhere/python"),
        IsolatedTarget(target=ImportedTarget(path="only.there:f"), python="somewhere/python"),
        CommandTarget(words=("./program", "--fast")),
    )
    target = RepeatedTarget(target=ComposedTarget(parts=parts), times=2)
    spec = spec_of(target, attacks=("mechanisms.laplace:laplace",))
    asked = request(spec)
    code = {name.removeprefix("the code of ") for name in asked if name.startswith("the code")}
    assert code == {"mine.py", "post.py", "other.py", "./program", "mechanisms.laplace"}
    (tmp_path / "program").write_text("#!/bin/sh\nexit\n")
    (tmp_path / "other.py").unlink()
    assert differences(asked, request(spec)) == "the code of ./program has changed"


def test_a_request_includes_the_confidence_of_the_family() -> None:
    """It decides which refutations are compared with new processes, which is recorded."""
    alone = spec_of(CallableTarget(function=len), confidence=0.995)
    two, ten = (
        replace(alone, family=Family("a.yaml", size, confidence, 0.005))
        for size, confidence in ((2, 0.99), (10, 0.95))
    )
    assert words(alone, two) == "familywise was off, is at 0.99"
    assert words(two, ten) == "familywise was at 0.99, is at 0.95"
    named = Family("./a.yaml", 2, 0.99, 0.01)
    assert words(two, replace(two, family=named)) == words(alone, alone) == ""
