"""Mechanisms of faulty.py in processes of their own, for tests, and the Pythons that there are."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.adapters.calls import Mechanism
from dpaudit.adapters.loading import load_mechanism
from dpaudit.outcomes import Raised
from dpaudit.targets.target import CallableTarget, ImportedTarget, IsolatedTarget, Limits

FAULTY = str(Path(__file__).with_name("faulty.py"))
# Minor versions of Python 3.
OLDEST, NEWEST = 8, 14


@functools.cache
def interpreters() -> tuple[str, ...]:
    """Return this Python, and others that are installed. They are asked all at once, and once for
    all test modules: this is known before any test runs."""
    found = map(shutil.which, (f"python3.{minor}" for minor in range(OLDEST, NEWEST + 1)))
    # What is on the path may be a stand-in, which takes longer to start than the Python behind it,
    # or finds none.
    words = ["-IS", "-c", "import sys; print(sys.executable)"]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    asked = [
        subprocess.Popen([one, *words], stdout=pipe, stderr=nothing, text=True)
        for one in found
        if one is not None
    ]
    said = [(one.communicate()[0].strip(), one.returncode) for one in asked]
    return (sys.executable, *(path for path, code in said if not code))


def target(
    attribute: str, *, python: str | None = None, limits: Limits | None = None, **more: Any
) -> IsolatedTarget:
    imported = ImportedTarget(path=f"{FAULTY}:{attribute}", **more)
    return IsolatedTarget(target=imported, python=python, limits=limits or Limits())


@contextmanager
def isolated(attribute: str, **more: Any) -> Iterator[Mechanism]:
    mechanism = load_mechanism(target(attribute, **more))
    try:
        yield mechanism
    finally:
        mechanism.close()


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def kinds(outcomes: Any) -> Counter[str]:
    return Counter(one.kind for one in outcomes if isinstance(one, Raised))


def lines(path: Path) -> list[str]:
    return path.read_text().split()


@contextmanager
def mechanism_of(function: Any, **more: Any) -> Iterator[Mechanism]:
    mechanism = load_mechanism(IsolatedTarget(target=CallableTarget(function=function, **more)))
    try:
        yield mechanism
    finally:
        mechanism.close()
