"""Workers that are forked are as workers that are spawned."""

from __future__ import annotations

import os
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from dpaudit.sampling.executors import processes


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
    with ProcessPoolExecutor(1, mp_context=processes._Context()) as pool:
        return pool.submit(here).result()


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


def test_who_asks_gets_a_new_process(spawned: None) -> None:
    *_, is_fork = from_a_new_worker()
    assert not is_fork
