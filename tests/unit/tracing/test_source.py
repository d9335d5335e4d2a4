"""A finding says where the scale of the noise is set."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.certificates.traced import SourceLine
from dpaudit.claims import PureDP
from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.source import origins
from dpaudit.tracing.trace import trace_pair


def named(data: list[float], rng: np.random.Generator) -> float:
    bound = 1.0
    width = bound / 4  # the planted line
    total = sum(data)
    return total + rng.laplace(0.0, width)


def by_keyword(data: list[float], rng: np.random.Generator) -> float:
    n = len(data)
    spread = 0.25  # the planted line
    return sum(data) + float(rng.laplace(size=1, loc=n, scale=spread)[0])


class Machine:
    def __init__(self, scale: float, rng: np.random.Generator) -> None:
        self.scale, self.rng = scale, rng

    def noisy(self, value: float) -> float:
        return value + self.rng.laplace(scale=self.scale)


def of_an_object(data: list[float], rng: np.random.Generator) -> float:
    value = sum(data)
    sensitivity = 0.25  # the planted line
    machine = Machine(sensitivity, rng)
    return machine.noisy(value)


def constant(data: list[float], rng: np.random.Generator) -> float:
    return sum(data) + rng.laplace(scale=0.25)


def of_a_parameter(data: list[float], width: float = 0.25, *, rng: np.random.Generator) -> float:
    return sum(data) + rng.laplace(scale=width)


def own_generator(data: list[float]) -> float:
    rng = np.random.default_rng()
    return sum(data) + rng.laplace(scale=0.25)


def line_of(function: Callable[..., Any], text: str) -> SourceLine:
    code = function.__code__
    lines = linecache.getlines(code.co_filename)
    number = next(
        number
        for number, line in enumerate(lines[code.co_firstlineno :], code.co_firstlineno + 1)
        if text in line
    )
    return SourceLine(code.co_filename, number, lines[number - 1].strip())


@pytest.mark.parametrize("function", [named, by_keyword], ids=lambda one: one.__name__)
def test_a_finding_names_the_line(function: Callable[..., Any]) -> None:
    planted = line_of(function, "the planted line")
    (cause,) = trace_pair(CallableTarget(function=function), [1.0], [0.0], PureDP(1.0)).causes
    assert planted.line in {one.line for one in cause.others}
    assert cause.words.endswith(f"its scale depends on line {planted.line}")


def test_of_an_object_it_is_where_its_scale_is_set() -> None:
    planted = line_of(of_an_object, "the planted line")
    assert planted in origins(line_of(of_an_object, "machine.noisy"))


@pytest.mark.parametrize(
    "function", [constant, of_a_parameter, own_generator], ids=lambda one: one.__name__
)
def test_what_is_set_nowhere_is_not_named(function: Callable[..., Any]) -> None:
    (cause,) = trace_pair(CallableTarget(function=function), [1.0], [0.0], PureDP(1.0)).causes
    assert "set on" not in cause.words


@pytest.mark.parametrize(
    "source",
    ["def f(:\n    x = 1\n", "", "x = 1\n", "\x00"],
    ids=["syntax", "empty", "module", "nul"],
)
def test_what_cannot_be_read_has_none(source: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(source)
    assert origins(SourceLine(str(file), 1, "x = 1")) == ()
    assert origins(SourceLine(str(tmp_path / "missing.py"), 3, "")) == ()
    assert str(file) not in sys.modules
