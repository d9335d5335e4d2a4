"""Draw in this process, and move to worker processes if the audit will take several seconds more.

An audit moves at most once: worker processes, as many as cores and memory allow, then make all
further draws. Before that, each of them repeats some test draws of this process from an equal seed.
If any draw differs, or the mechanism keeps state, this process draws alone.
"""

from __future__ import annotations

import math
import pickle
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.outcomes import KeyArray
from dpaudit.processes import cores
from dpaudit.sampling.chunks import (
    Chunk,
    FirstCalls,
    Learning,
    Result,
    ToCount,
    ToLearn,
    ToProbe,
    ToTime,
)
from dpaudit.sampling.executors import WORTHWHILE_SECONDS, Setup, WorkerPool, in_a_line
from dpaudit.sampling.sampler import Sampler
from dpaudit.sampling.state import Written, changed, kept_state
from dpaudit.wording import ONE_PROCESS

if TYPE_CHECKING:  # most audits start no process
    from dpaudit.sampling.executors.worker_processes import ProcessPool

# An audit moves only if it has drawn for at least this many seconds, in which it may find a
# violation.
_FIRST_SECONDS = 1.0
# Libraries whose import takes some ten seconds. An audit that has imported one moves only if it has
# drawn for this many seconds, and has this many seconds of drawing left.
LARGE_LIBRARIES = ("torch", "opacus")
_FIRST_SECONDS_LARGE, _WORTHWHILE_SECONDS_LARGE = 10.0, 30.0
# If JAX or a similar library compiles the mechanism for each number of draws, a call for fewer
# draws than this takes about as long as a call for this number.
_COMPILED_DRAWS = 1_024
# Chunks of a compiled mechanism that must be timed, without compilation, before an audit moves.
_COMPILED_CHUNKS = 4
# Largest number of test draws, the seconds that they may take in this process, and their key, which
# no chunk of an audit has.
_TEST_DRAWS, _TEST_SECONDS, _TEST_KEY = 64, 0.25, (0, 99, 0)
# Longest wait for the start of worker processes and their test draws, in seconds.
_STARTING_SECONDS = 60.0
# Largest number of variables with state that a note names.
_MAX_NAMED = 3


class _StayError(Exception):
    """Raised if this process has to draw alone; the message is a note to the user, or empty."""


class InProcess(WorkerPool):
    """A pool that draws in this process until it moves to worker processes."""

    is_here, others_drew = True, False

    def __init__(self, setup: Setup) -> None:
        self._setup, self._speed = setup, _Speed(setup.sampler)
        self._pool: ProcessPool | None = None
        self._may_move = setup.left is not None
        self._sendable: object = None  # the last measure that could be pickled

    def __call__(self, chunks: Iterable[Chunk[Result]], /) -> Iterator[Result]:
        return self._results(iter(chunks))

    def close(self, *, in_order: bool) -> None:
        if self._pool is not None:
            self._pool.close(in_order=in_order)

    def settle(self) -> None:
        self._look(_FIRST_SECONDS_LARGE if _is_large() else 0.0)

    def _results(self, source: Iterator[Chunk[Any]]) -> Iterator[Any]:
        for chunk in source:
            if isinstance(chunk, ToTime):  # these draws measure the speed of all processes
                self._look(0.0)
            if self._can_send(chunk) and self._pool is not None:
                yield from self._pool(chain([chunk], source))
                return
            if not self._may_move:
                yield self._setup.sampler.draw(chunk)
                continue
            yield self._speed.drawn(chunk)
            # The audit has used this result, so it knows how many draws are left.
            self._look(_FIRST_SECONDS_LARGE if _is_large() else _FIRST_SECONDS)

    def _can_send(self, chunk: Chunk[Any]) -> bool:
        """Return whether workers draw `chunk`; if its rule cannot be pickled, none will."""
        if self._pool is not None and isinstance(chunk, ToCount):
            if chunk.measure is self._sendable:
                return True
            self._sendable = chunk.measure
            try:
                pickle.dumps(chunk)
            except Exception as error:  # noqa: BLE001  # a user's object may raise any exception
                self._stay(in_a_line(error))
        return self._pool is not None

    def _look(self, first_seconds: float) -> None:
        """Move to worker processes if moving would save time after `first_seconds`."""
        speed, left = self._speed, self._setup.left
        if self._pool is not None or not self._may_move or left is None or speed.rate == 0.0:
            return
        if speed.seconds < first_seconds or left(speed.rate) <= speed.least_left():
            return
        try:
            self._move()
        except _StayError as reason:
            self._stay(str(reason))

    def _stay(self, reason: str) -> None:
        """End the worker processes, and make all further draws in this process."""
        self.close(in_order=False)
        self._pool, self._may_move, self.is_here = None, False, True
        if reason:
            self.note = f"{ONE_PROCESS}: {reason}"

    def _move(self) -> None:
        wanted = round(cores.cores() / max(1.0, self._speed.cores_used()))
        workers = min(wanted, cores.room_for(wanted))
        if wanted < 2:
            raise _StayError
        if workers < 2:
            raise _StayError("there is no memory for another process as large as this one")
        if _is_in_no_file():
            raise _StayError("the program that runs is in no file")
        draws = min(_TEST_DRAWS, max(4, int(self._speed.rate * _TEST_SECONDS)))
        chunk = ToLearn(_TEST_KEY, draws)
        keys = _test_keys(self._setup.sampler, chunk)
        keys_there = self._keys_of_workers(workers, chunk)
        # If two runs from one seed differ in this process, the seed does not determine the draws.
        self.differed = keys is not None and any(
            not np.array_equal(keys, worker_keys) for worker_keys in keys_there
        )
        if self.differed:
            raise _StayError("there, equal seeds give other outputs than in this process")
        self.workers, self.others_drew, self.is_here = workers, True, False
        self._setup.sampler.close()  # the workers have samplers of their own

    def _keys_of_workers(self, workers: int, chunk: ToLearn) -> list[KeyArray]:
        """Start worker processes, and return the keys of the test draws of each process."""
        from concurrent.futures import BrokenExecutor

        from dpaudit.sampling.executors.worker_processes import ProcessPool

        try:
            self._pool = ProcessPool(self._setup, workers)
            return [_keys(done.drawn[0]) for done in self._pool.in_each([chunk], _STARTING_SECONDS)]
        except BrokenExecutor:
            raise _StayError(
                "a process that was to draw ended at once (in a script, audits belong into "
                "`if __name__ == '__main__':`)"
            ) from None
        except UsageError as error:
            raise _StayError(str(error.__cause__ or error)) from None
        except Exception as error:  # noqa: BLE001  # the mechanism may raise any exception there
            raise _StayError(in_a_line(error)) from None


class _Speed:
    """Draws chunks in this process, and measures how fast."""

    # `rate`: draws per second in the last chunk; 0 if it is not known yet.

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self.rate = self.seconds = self._busy = 0.0
        self._chunks = 0  # of a compiled mechanism, timed

    def drawn(self, chunk: Chunk[Any]) -> Any:
        """Return the result of a chunk, and update the speed."""
        start, busy, earlier = time.perf_counter(), time.process_time(), self._compiled()
        result = self._sampler.draw(chunk)
        seconds = max(time.perf_counter() - start, 1e-9)
        self.seconds += seconds
        self._busy += time.process_time() - busy
        compiled = self._compiled()
        if isinstance(chunk, FirstCalls):
            # Each of these calls asks for one draw, which does not show the speed of a mechanism
            # that makes many draws in a call.
            is_single = self._sampler.mechanism.interleaved
            self.rate = 1 / max(result.seconds, 1e-9) if is_single else 0.0
        elif isinstance(chunk, ToProbe) or compiled > earlier:
            pass
        elif compiled:  # on a busy machine, the fastest chunk shows the rate best
            self._chunks += 1
            self.rate = max(self.rate, max(chunk.size, _COMPILED_DRAWS) / seconds)
        else:
            self.rate = chunk.size / seconds
        return result

    def cores_used(self) -> float:
        """Return the number of cores that drawing in this process keeps busy."""
        return self._busy / self.seconds

    def least_left(self) -> float:
        """Return the least seconds of drawing that must be left to move."""
        # Each worker has to compile a compiled mechanism, too.
        least = _WORTHWHILE_SECONDS_LARGE if _is_large() else WORTHWHILE_SECONDS
        if not self._compiled():
            return least
        return max(least, 2 * self.seconds) if self._chunks >= _COMPILED_CHUNKS else math.inf

    def _compiled(self) -> int:
        return len(getattr(self._sampler.mechanism, "compiled", ()))


def _test_keys(sampler: Sampler, chunk: ToLearn) -> KeyArray | None:
    """Return the keys of test draws made twice here; None if they differ. Raises _StayError."""
    parts = sampler.mechanism.parts
    state = kept_state(*parts)
    try:
        with Written() as once:
            keys = _keys(sampler.draw(chunk))
        with Written() as twice:
            again = _keys(sampler.draw(chunk))
    except Exception as error:  # noqa: BLE001  # these draws do not belong to the audit
        raise _StayError(in_a_line(error)) from None
    if names := changed(state, kept_state(*parts)):
        listed = ", ".join(names[:_MAX_NAMED]) + (", …" if len(names) > _MAX_NAMED else "")
        raise _StayError(f"the mechanism keeps state between calls, which changed {listed}")
    if files := sorted(once.files & twice.files):
        raise _StayError(f"its calls all write to {files[0]}")
    return keys if np.array_equal(keys, again) else None


def _keys(learning: Learning) -> KeyArray:
    return learning.fresh.release().outcomes.keys()


def _is_large() -> bool:
    return any(name in sys.modules for name in LARGE_LIBRARIES)


def _is_in_no_file() -> bool:
    """Return whether new processes could not import this program, as one from standard input."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    return main.__spec__ is None and file is not None and not Path(file).exists()
