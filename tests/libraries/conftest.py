"""Programs of the environments that `make libraries` builds."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Program = Callable[..., subprocess.CompletedProcess[str]]


def environment(name: str) -> Path:
    """Return the folder of the programs of an environment."""
    found = ROOT / ".libraries" / name / "bin"
    assert (found / "dpaudit").exists(), f"{name} is not installed: make libraries"
    return found


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return a function that runs a program in an empty folder."""

    def run(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
        settings = {**os.environ, "COLUMNS": "80"}
        return subprocess.run(
            [path, *words], cwd=tmp_path, env=settings, capture_output=True, text=True, check=False
        )

    return run
