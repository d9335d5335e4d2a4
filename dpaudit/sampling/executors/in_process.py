"""The pool of an audit without `workers`: the auditing process draws, and workers may join later.

`InProcess` draws every chunk in this process at first. If the audit will take several seconds more,
it starts worker processes (`JoiningWorkers`), as many as cores and memory allow, and goes on
drawing while they start. Before workers join, each worker has to repeat a few test draws of this
process from an equal seed. If any test draw differs, or the mechanism keeps state between calls,
this process draws alone. The draws of the audit do not depend on when workers join, since the
random streams of a chunk follow from the seed and the key of the chunk.
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

from dpaudit.errors import MechanismError, UsageError
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
from dpaudit.sampling.executors import Setup, WorkerPool, in_a_line
from dpaudit.sampling.state import Written, changed, kept_state

if TYPE_CHECKING:  # most audits start no process, and this import takes some 30 ms
    from dpaudit.sampling.executors.processes import ProcessPool

# Workers are started only if drawing would take at least 5 s more in this process alone: a worker
# takes about 1 s to start.
WORTHWHILE = 5.0
# Workers are started at the earliest 1 s after the first draw, since an audit may find a violation
# before that.
_FIRST = 1.0
# Test draws that each worker has to repeat before workers join.
# _SHOWN: at most 64 test draws are made.
# _SHOWING: fewer are made if 64 would take this process more than 0.25 s, but at least 4.
_SHOWN, _SHOWING = 64, 0.25
# Key of the chunk of test draws; no chunk of an audit has this key.
_KEY = (0, 99, 0)
# A note names at most 3 of the variables that calls change.
_NAMED = 3


class InProcess(WorkerPool):
    """Draws each chunk in this process when its result is requested.

    If `setup.left` is not None, and says that drawing will take long, worker processes join.
    """

    is_here, others_drew = True, False

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._joining: JoiningWorkers | None = None
        self._may_join = setup.left is not None
        # _since: clock, in seconds, when drawing began; NaN before.
        # _drew, _busy: seconds of wall time and of processor time that drawing took so far.
        # _rate: draws per second in the last chunk.
        self._since, self._drew, self._busy, self._rate = math.nan, 0.0, 0.0, 0.0

    def __call__(self, chunks: Iterable[Chunk[Result]], /) -> Iterator[Result]:
        if self._setup.left is None:
            return map(self._setup.sampler.draw, chunks)
        return self._drawn(iter(chunks))

    def close(self, *, in_order: bool) -> None:
        """End the workers. in_order: let workers end by themselves for some seconds, then kill."""
        if self._joining is not None:
            self._joining.close(in_order=in_order)

    def _drawn(self, source: Iterator[Chunk[Any]]) -> Iterator[Any]:
        for chunk in source:
            if isinstance(chunk, ToTime):  # measures the rate of all workers: let them join first
                self._look(now=True)
                if self._joining is not None:
                    self._joining.wait(chunk.patience)
                    self._look()
            if self._joining is not None and self._can_send(chunk):
                self.others_drew, self.workers = True, self._joining.workers
                yield from self._joining.draw(chain([chunk], source))
                return
            yield self._timed(chunk)
            # Only here, after the audit has used the result, is it known how many draws are left.
            self._look()

    def _timed(self, chunk: Chunk[Any]) -> Any:
        """Draw a chunk in this process, and update the rate of draws per second."""
        start, busy = time.perf_counter(), time.process_time()
        if math.isnan(self._since):
            self._since = start
        drawn = self._setup.sampler.draw(chunk)
        seconds = time.perf_counter() - start
        self._drew += seconds
        self._busy += time.process_time() - busy
        if isinstance(chunk, FirstCalls):
            # If a call makes many draws, the time of a call for one draw shows no rate.
            is_single = self._setup.sampler.mechanism.interleaved
            self._rate = 1 / max(drawn.seconds, 1e-9) if is_single else 0.0
        elif not isinstance(chunk, ToProbe):
            self._rate = chunk.size / max(seconds, 1e-9)
        return drawn

    def _look(self, *, now: bool = False) -> None:
        """Start worker processes if that will save time; let started workers join if all are ready.

        now: start workers also within the first `_FIRST` seconds.
        """
        left = self._setup.left
        if not self._may_join or left is None:
            return
        is_time = now or time.perf_counter() - self._since >= _FIRST
        try:
            if self._joining is not None:
                self._joining.look()
                self.is_here = not self._joining.are_there
            elif is_time and self._rate > 0 and left(self._rate) > WORTHWHILE:
                used = self._busy / self._drew
                self._joining = JoiningWorkers(self._setup, self._rate, used)
        except _CannotJoinError as reason:
            self._stay(reason)

    def _can_send(self, chunk: Chunk[Any]) -> bool:
        """Return whether workers have joined and the chunk can be pickled.

        A chunk that counts may contain a rule of the user's own attack, which may not be picklable.
        """
        if self._joining is None or not self._joining.are_there:
            return False
        try:
            self._joining.check(chunk)
        except _CannotJoinError as reason:
            self._stay(reason)
        return self._may_join

    def _stay(self, reason: _CannotJoinError) -> None:
        """End the workers, and draw everything in this process from now on."""
        self.close(in_order=False)
        self._joining, self._may_join, self.is_here = None, False, True
        self.differed = reason.differed
        if str(reason):
            self.note = f"only one process drew, though more would have been faster: {reason}"


class _CannotJoinError(Exception):
    """Workers cannot join; the message gives the reason, or is empty if no note is needed.

    differed: whether a worker gave different outputs for an equal seed.
    """

    differed = False


class JoiningWorkers:
    """Worker processes that start while the auditing process draws, and that join when ready.

    workers: number of worker processes.
    are_there: whether the workers have joined, so that they make all further draws.
    """

    def __init__(self, setup: Setup, rate: float, used: float) -> None:
        """Start the worker processes. Raises _CannotJoinError if that is not possible.

        rate: draws per second in this process.
        used: number of cores that drawing in this process keeps busy.
        """
        self._sampler = setup.sampler
        self.are_there = False
        self._sent: object = None
        wanted = round(cores.cores() / max(1.0, used))
        self.workers = min(wanted, cores.room_for(wanted))
        if wanted < 2:
            raise _CannotJoinError
        if self.workers < 2:
            raise _CannotJoinError("there is no memory for another process as large as this one")
        if _is_in_no_file():
            raise _CannotJoinError("the program that runs is in no file")
        few = ToLearn(_KEY, min(_SHOWN, max(4, int(rate * _SHOWING))))
        try:
            self._pool = self._started(setup, few)
        except UsageError as error:
            raise _CannotJoinError(str(error.__cause__)) from None
        except MechanismError as error:  # raised by draws that do not belong to the audit
            raise _CannotJoinError(in_a_line(error)) from None
        except OSError as error:
            raise _CannotJoinError(f"no process can be started ({error})") from None

    def look(self) -> None:
        """Let the workers join if all have started and have repeated the test draws.

        Raises _CannotJoinError if a worker failed to start, or made different test draws.
        """
        if self.are_there or not all(future.done() for future in self._pool.started):
            return
        for error in filter(None, (future.exception() for future in self._pool.started)):
            if getattr(error, "code", None) == "worker-died":
                raise _CannotJoinError(
                    "a process that was to draw ended at once (in a script, audits belong into "
                    "`if __name__ == '__main__':`)"
                )
            raise _CannotJoinError(in_a_line(error))
        shown = [_keys(future.result().drawn[0]) for future in self._pool.started]
        if self._shown is not None and not all(np.array_equal(self._shown, keys) for keys in shown):
            reason = "there, equal seeds give other outputs than in this process"
            differs = _CannotJoinError(reason)
            differs.differed = True
            raise differs
        self._sampler.close()  # the workers have samplers of their own
        self.are_there = True

    def wait(self, seconds: float) -> None:
        """Wait, at most `seconds`, until the workers have started; later calls do not wait."""
        self._pool.settle(seconds)

    def check(self, chunk: Chunk[Any]) -> None:
        """Raise _CannotJoinError for a chunk that cannot be pickled."""
        if isinstance(chunk, ToCount) and chunk.measure is not self._sent:
            try:
                pickle.dumps(chunk)
            except Exception as error:  # noqa: BLE001  # whatever a user's object raises
                raise _CannotJoinError(in_a_line(error)) from None
            self._sent = chunk.measure

    def draw(self, chunks: Iterable[Chunk[Result]]) -> Iterator[Result]:
        return self._pool(chunks)

    def close(self, *, in_order: bool) -> None:
        self._pool.close(in_order=in_order and self.are_there)

    def _started(self, setup: Setup, few: ToLearn) -> ProcessPool:
        """Make some test draws twice in this process, then start workers that repeat the draws.

        Raises _CannotJoinError if the mechanism must not run in several processes: its calls change
        variables, or all of them write to one file.

        few: chunk of the test draws.
        """
        from dpaudit.sampling.executors.pools import Recipe
        from dpaudit.sampling.executors.processes import ProcessPool

        recipe = Recipe.of(setup.make)
        parts = self._sampler.mechanism.parts
        before = kept_state(*parts)
        with Written() as once:
            keys = _keys(self._sampler.draw(few))
        with Written() as twice:
            again = _keys(self._sampler.draw(few))
        if names := changed(before, kept_state(*parts)):
            listed = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
            raise _CannotJoinError(
                f"the mechanism keeps state between calls, which changed {listed}"
            )
        if files := sorted(once.files & twice.files):
            raise _CannotJoinError(f"its calls all write to {files[0]}")
        # If two runs from one seed differ, the seed does not determine the draws, and the draws of
        # workers cannot be compared with draws of this process.
        self._shown = keys if np.array_equal(keys, again) else None
        pool = ProcessPool(recipe, self.workers, [few])
        pool.start()
        return pool


def _keys(drawn: Learning) -> KeyArray:
    return drawn.fresh.release().outcomes.keys()


def _is_in_no_file() -> bool:
    """Return whether the running program has no file, so that a new process cannot import it.

    Programs from standard input are an example.
    """
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    return main.__spec__ is None and file is not None and not Path(file).exists()
