"""Mechanisms that tests send to worker processes.

A process imports the module of what it draws from: here NumPy alone, in a test's own module pytest
and most of dpaudit, half a second for each process.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np


def single(x: float, rng: np.random.Generator) -> float:
    return x + float(rng.laplace())


def batch(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + rng.laplace(size=size)


def from_global(x: float) -> float:
    return x + random.expovariate(1.0) - random.expovariate(1.0)


def with_legacy(x: float) -> float:
    return x + float(np.random.laplace())


class Carries:
    """Has a generator of its own."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(5)

    def __call__(self, x: float) -> float:
        return x + float(self.rng.laplace())


def ends_with(code: int, x: float) -> float:
    os._exit(code)


def ends_by(number: int, x: float) -> float:
    os.kill(os.getpid(), number)
    return x


def killed_once(flag: str, x: float, size: int, rng: np.random.Generator) -> Any:
    """Whoever comes first to a large batch is killed."""
    if size > 10_000 and not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return batch(x, size, rng)


def mutates(rows: Any) -> int:
    rows.append(1)
    return len(rows)


def hangs(x: float, size: int) -> Any:
    time.sleep(600 if size > 100 else 0)
    return np.zeros(size)
