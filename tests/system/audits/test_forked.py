"""Forked workers behave like spawned ones."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from dpaudit.sampling.executors.pools import Recipe
from dpaudit.sampling.executors.processes import ProcessPool


def here() -> tuple[object, ...]:
    return (
        os.environ.get("WHO"),
        Path.cwd(),
        sys.path,
        np.random.random(),
        random.random(),
        "dpaudit.auditing.recheck" in sys.modules,  # which nothing here imports
    )


def from_a_new_worker() -> tuple[object, ...]:
    pool = ProcessPool(Recipe("", b"", ("", 0, 0), ()), 1)
    try:
        return pool.call(here).result()  # type: ignore[arg-type, return-value]  # no draws
    finally:
        pool.close(in_order=True)


def test_each_has_what_a_new_process_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen = []
    for who in ("one", "two"):
        monkeypatch.setenv("WHO", who)
        *same, drawn, also_drawn, is_fork = from_a_new_worker()
        assert same == [who, tmp_path, sys.path]
        assert is_fork
        seen += [drawn, also_drawn]
    assert len(set(seen)) == 4


def test_a_test_may_ask_for_new_processes(spawned: None) -> None:
    *_, is_fork = from_a_new_worker()
    assert not is_fork
