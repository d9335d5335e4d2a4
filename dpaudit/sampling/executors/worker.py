"""The side of a worker: one sampler for every audit, made in the process that draws with it."""

from __future__ import annotations

import os
import pickle
import platform
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.float_errors import ours
from dpaudit.sampling.chunks import Chunk
from dpaudit.sampling.executors import THREADS
from dpaudit.sampling.sampler import Sampler
from dpaudit.sampling.seeding import preserved
from dpaudit.version import __version__

# Audits whose samplers a worker keeps; several programs may use it by turns.
_KEPT = 4
# Tells this process from those on other machines; a fork has it too, but not the number.
_PROCESS = secrets.token_hex(8)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a worker makes its sampler from: a name of the audit, the pickled function that makes a
    sampler, the process and thread that audit, and the versions of what decides the draws there."""

    run: str
    made: bytes
    origin: tuple[str, int, int]
    versions: tuple[str, ...]

    @classmethod
    def of(
        cls, make: Callable[[], Sampler], dumps: Callable[[object], bytes] = pickle.dumps
    ) -> Recipe:
        """Raises UsageError for what cannot be pickled."""
        try:
            made = dumps(make)
        except Exception as error:  # whatever a user's object raises when it is pickled
            raise UsageError(
                f"the mechanism or a dataset cannot be sent to other processes ({error}); "
                "name it by import path, or use workers=1"
            ) from error
        origin = (_PROCESS, os.getpid(), threading.get_ident())
        return cls(secrets.token_hex(8), made, origin, _versions())


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """What was drawn, chunk by chunk, and the seconds that it took."""

    drawn: list[Any]
    seconds: float


_lock = threading.Lock()
_samplers: OrderedDict[str, Sampler] = OrderedDict()


def draw(recipe: Recipe, chunks: Sequence[Chunk[Any]]) -> Done:
    """Draw chunks one after the other, in a process that may do other work before and after."""
    process, number, thread = recipe.origin
    if (process, number) == (_PROCESS, os.getpid()) and thread != threading.get_ident():
        raise UsageError(THREADS)
    with _lock, ours():  # threads share the global generators
        sampler = _sampler(recipe)
        start = time.perf_counter()
        with preserved(sampler.carried):
            drawn = [sampler.draw(chunk) for chunk in chunks]
        return Done(drawn, time.perf_counter() - start)


def forget(run: str) -> None:
    """Let go of the sampler of an audit that has ended, unless this process is drawing."""
    if _lock.acquire(blocking=False):
        try:
            if run in _samplers:
                _samplers.pop(run).close()
        finally:
            _lock.release()


def _sampler(recipe: Recipe) -> Sampler:
    if recipe.run not in _samplers:
        here, there = _versions(), recipe.versions
        if here != there:  # draws need not be those that this seed gives there
            raise UsageError(
                f"the worker on {platform.node()} has {', '.join(here)}, the auditing process has "
                f"{', '.join(there)}: the same seed may give other draws; install the same "
                "versions in both"
            )
        _samplers[recipe.run] = pickle.loads(recipe.made)()
    _samplers.move_to_end(recipe.run)
    while len(_samplers) > _KEPT:
        _samplers.popitem(last=False)[1].close()
    return _samplers[recipe.run]


def _versions() -> tuple[str, ...]:
    python = ".".join(platform.python_version_tuple()[:2])
    return f"dpaudit {__version__}", f"numpy {np.__version__}", f"Python {python}"
