"""Mechanisms that tests send to worker processes.

A process imports the module of what it draws from: here NumPy alone, in a test's own module pytest
and most of dpaudit, half a second for each process.
"""

from __future__ import annotations

import os
import random
import signal
from multiprocessing import parent_process
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


def from_both_generators(x: float) -> float:
    return x + random.gauss(0, 1) + float(np.random.laplace())


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


def ends_once(folder: str, times: int, x: float, size: int, rng: np.random.Generator) -> Any:
    """A large batch ends its process, this number of times in all."""
    ended = Path(folder, str(len(list(Path(folder).iterdir()))))
    if size > 10 and int(ended.name) < times:
        ended.touch()
        os._exit(3)
    return batch(x, size, rng)


_source = random.SystemRandom()
_noise = dict[float, float]()
_made = 0


def unseeded(x: float) -> float:
    """Noise that no seed reaches."""
    return x + _source.expovariate(1.0) - _source.expovariate(1.0)


def unseeded_crash(x: float) -> float:
    """Such noise, of which large values end the process for one of the inputs."""
    noise = unseeded(0.0)
    if x == 1 and noise > 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return x + noise


def keeps_noise(x: float) -> float:
    """Such noise, drawn once for each input in every process."""
    return _noise.setdefault(x, unseeded(x)) + _source.gauss(0.0, 0.3)


def other_elsewhere(x: float, size: int, rng: np.random.Generator) -> Any:
    """What the process that audits has set is not set in others."""
    return x + (1.0 if parent_process() is None else 0.5) * rng.laplace(size=size)


def ends_elsewhere(x: float, size: int, rng: np.random.Generator) -> Any:
    if parent_process() is not None:
        os._exit(3)
    return batch(x, size, rng)


def keeps_count(x: float, size: int, rng: np.random.Generator) -> Any:
    global _made
    _made += size
    return batch(x, size, rng)


def writes(path: str, x: float, size: int, rng: np.random.Generator) -> Any:
    """Draws by way of a file."""
    Path(path).write_bytes(batch(x, size, rng).tobytes())
    return np.frombuffer(Path(path).read_bytes())


def mutates(rows: Any) -> int:
    rows.append(1)
    return len(rows)


# Numbers of draws for which `compiled` was called in this process.
sizes_of_calls: list[int] = []


def compiled(x: float, size: int, rng: np.random.Generator) -> Any:
    """Names jax in its code, as a mechanism does whose calls are compiled for each size."""
    sizes_of_calls.append(size)
    if size < 0:
        import jax

        return jax
    return x + rng.laplace(size=size)
