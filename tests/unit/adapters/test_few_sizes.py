"""Mechanisms that are compiled for each number of draws are called with few of these numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit import PureDP, audit
from dpaudit.adapters.calls import BATCH_SIZES, batch_sizes, draw_in_few_sizes
from dpaudit.adapters.loading import load_mechanism
from dpaudit.targets.compiled import is_compiled_by_size
from dpaudit.targets.target import ImportedTarget, IsolatedTarget
from tests import sent


@given(st.integers(1, 1_000_000))
def test_sizes_cover_the_draws_and_drop_few(size: int) -> None:
    sizes = batch_sizes(size)
    assert len(BATCH_SIZES) <= 12
    assert set(sizes) <= set(BATCH_SIZES)
    assert 0 <= sum(sizes) - size <= max(4, size / 8)


@given(st.integers(1, 5_000))
def test_the_last_outputs_are_dropped(size: int) -> None:
    sizes: list[int] = []

    def draw(batch: int) -> Any:
        sizes.append(batch)
        return np.arange(batch) + sum(sizes[:-1])

    assert list(draw_in_few_sizes(draw, size)) == list(range(size))


def test_arrays_of_different_types_keep_their_values() -> None:
    parts: Iterator[Any] = iter([np.full(16, 2**53 + 1), np.full(4, 0.5), [None]])
    outputs = draw_in_few_sizes(lambda batch: list(next(parts))[:batch], 21)
    assert outputs == [2**53 + 1] * 16 + [0.5] * 4 + [None]


_jax = ModuleType("jax")


class _OfJax:
    """Has the module of an array of JAX."""


_OfJax.__module__ = "jaxlib._jax"


class _Holding:
    def __init__(self, value: object) -> None:
        self.step = value

    def release(self, x: float, size: int) -> object:
        return self.step


def _uses_module(x: float, size: int) -> object:
    return _jax.random


def _by_another(x: float, size: int) -> object:
    return _uses_module(x, size)


def _plain(x: object, size: int) -> object:
    return np.zeros(size)


@pytest.mark.parametrize(
    "mechanism",
    [
        _by_another,
        sent.compiled,
        partial(_plain, _OfJax()),
        _Holding(_OfJax()).release,
        _Holding([_OfJax()]),
    ],
)
def test_finds_what_uses_a_compiler(mechanism: object) -> None:
    assert is_compiled_by_size(mechanism)


@pytest.mark.parametrize(
    "mechanism",
    [_plain, sent.batch, sent.Carries(), _Holding(np.ones(3)).release, min, partial(max, 1)],
)
def test_leaves_others_alone(mechanism: object) -> None:
    assert not is_compiled_by_size(mechanism)


def test_an_audit_has_few_sizes_and_the_same_draws_with_workers() -> None:
    sent.sizes_of_calls.clear()
    here, there = (
        audit(sent.compiled, 0.0, 1.0, PureDP(1.2), samples=1_000, seed=3, workers=workers)
        for workers in (1, 2)
    )
    assert set(sent.sizes_of_calls) <= set(BATCH_SIZES)
    assert here.certificates[0].evidence.blocks == there.certificates[0].evidence.blocks


def test_another_process_says_what_it_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jax.py").write_text("")
    source = (
        "import jax, random\nsizes = []\n\ndef release(x, size):\n    sizes.append(size)\n"
        "    return [len(sizes) and size for _ in range(size)]\n"
    )
    (tmp_path / "with_jax.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    mechanism = load_mechanism(IsolatedTarget(target=ImportedTarget(path="with_jax:release")))
    try:
        outputs = list(mechanism.sample(0.0, 700, np.random.default_rng(0)))
    finally:
        mechanism.close()
    assert "jax" not in sys.modules
    assert len(outputs) == 700
    assert set(outputs) <= set(BATCH_SIZES)
