"""Other processes that join this one when an audit takes long.

A chunk's random streams follow from its key, so it does not matter who draws it. What does matter
is that others draw as this process does: before they join they show it, on a few draws that count
for nothing. Until then, and if they cannot, this process goes on by itself.
"""

from __future__ import annotations

import math
import pickle
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpaudit.errors import DpauditError, MechanismError, UsageError
from dpaudit.outcomes import KeyArray
from dpaudit.processes import cores
from dpaudit.sampling.chunks import (
    Chunk,
    FirstCalls,
    Found,
    Learning,
    ToCount,
    ToLearn,
    ToProbe,
    ToTime,
)
from dpaudit.sampling.executors import Setup, WorkerPool
from dpaudit.sampling.state import Written, changed, kept_state

if TYPE_CHECKING:  # most audits start no process, and these imports take some 30 ms
    from concurrent.futures import Future

    from dpaudit.sampling.executors.processes import ProcessPool

# Seconds of drawing that are worth other processes, which take about one each to start; and those
# that an audit takes before any do, since it may soon find something.
WORTHWHILE, _FIRST = 5.0, 1.0
# Draws that show that others draw alike, at most, and the seconds that they may take here.
_SHOWN, _SHOWING = 64, 0.25
# No chunk of an audit has this key.
_KEY = (0, 99, 0)
# Variables that a note names.
_NAMED = 3


class InProcess(WorkerPool):
    """Draws each chunk in this process, when it is asked for. Where the setup says what is left,
    others join it when that is long."""

    is_here, others_drew = True, False

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._others: JoiningWorkers | None = None
        # Since when, with how many seconds of how many cores, and how many a second at last.
        self._since, self._drew, self._busy, self._rate = math.nan, 0.0, 0.0, 0.0

    def __call__(self, chunks: Iterable[Chunk[Found]], /) -> Iterator[Found]:
        sampler, left = self._setup.sampler, self._setup.left
        return map(sampler.draw, chunks) if left is None else self._drawn(chunks, left)

    def end(self, *, in_order: bool) -> None:
        """End the others; at once, where anything went wrong."""
        if self._others is not None:
            self._others.end(in_order=in_order)

    def _drawn(self, chunks: Iterable[Chunk[Any]], left: Callable[[float], float]) -> Iterator[Any]:
        source = iter(chunks)
        for chunk in source:
            if isinstance(chunk, ToTime):  # its time is taken, which wants all who will draw
                self._look(left, now=True)
                if self._others is not None:
                    self._others.wait(chunk.patience)
                    self._look(left)
            is_theirs = self._others is not None and self._others.take(chunk)
            self._hear()
            if self._others is not None and is_theirs:
                self.others_drew, self.workers = True, self._others.workers
                yield from self._others.draw(chain([chunk], source))
                return
            yield self._timed(chunk)
            # Now that whoever asked knows what it was good for.
            self._look(left)

    def _timed(self, chunk: Chunk[Any]) -> Any:
        """Draw a chunk, and take notice of how long it takes."""
        start, busy = time.perf_counter(), time.process_time()
        if math.isnan(self._since):
            self._since = start
        found = self._setup.sampler.draw(chunk)
        seconds = time.perf_counter() - start
        self._drew += seconds
        self._busy += time.process_time() - busy
        if isinstance(chunk, FirstCalls):
            # A call for many draws at once says nothing of how long one takes.
            is_single = self._setup.sampler.mechanism.interleaved
            self._rate = 1 / max(found.seconds, 1e-9) if is_single else 0.0
        elif not isinstance(chunk, ToProbe):
            self._rate = chunk.size / max(seconds, 1e-9)
        return found

    def _look(self, left: Callable[[float], float], *, now: bool = False) -> None:
        """Let others start when that is worth while, and draw when they can.

        now: though it has not taken long yet.
        """
        is_time = now or time.perf_counter() - self._since >= _FIRST
        if self._others is not None:
            self._others.look()
        elif is_time and self._rate > 0 and left(self._rate) > WORTHWHILE:
            self._others = JoiningWorkers(self._setup, self._rate, self._busy / self._drew)
        self._hear()

    def _hear(self) -> None:
        """Take notice of what the others say."""
        if self._others is not None:
            self.is_here = not self._others.are_there
            self.note, self.differed = self._others.note, self._others.differed


class JoiningWorkers:
    """A process for each core, from when they are started to the end.

    workers: how many there are.  are_there: whether they draw.  differed: whether they gave other
    outputs from the same seed.  note: why they do not draw, and never will.
    """

    def __init__(self, setup: Setup, rate: float, used: float) -> None:
        """rate: draws a second in this process.  used: the cores that they take."""
        self._sampler, self._rate = setup.sampler, rate
        self.are_there = self.differed = False
        self.note: str | None = None
        self._pool: ProcessPool | None = None
        self._starting: list[Future[Any]] = []
        self._shown: KeyArray | None = None
        self._sent: object = None
        self._has_waited = False
        hands = round(cores.cores() / max(1.0, used))
        self.workers = min(hands, cores.room_for(hands))
        if self.workers < 2:
            if hands > 1:
                self._stay("there is no memory for another process as large as this one")
            return
        try:
            self._start(setup)
        except UsageError as error:
            self._stay(str(error.__cause__))
        except MechanismError as error:  # of draws that are none of the audit's
            self._stay(_words(error))
        except OSError as error:
            self._stay(f"no process can be started ({error})")

    def look(self) -> None:
        """Let them draw if they all can, and draw alike."""
        if not self._starting or not all(one.done() for one in self._starting):
            return
        starting, self._starting = self._starting, []
        from concurrent.futures.process import BrokenProcessPool

        # Whatever it is, it is well here: what ends those processes must not end this one.
        wrong = next(filter(None, (one.exception() for one in starting)), None)
        if isinstance(wrong, BrokenProcessPool):
            self._stay(
                "a process that was to draw ended at once (in a script, audits belong into "
                "`if __name__ == '__main__':`)"
            )
            return
        if wrong is not None:
            self._stay(_words(wrong))
            return
        shown = [_keys(one.result().drawn[0]) for one in starting]
        if self._shown is not None and not all(np.array_equal(self._shown, one) for one in shown):
            self.differed = True
            self._stay("there, equal seeds give other outputs than in this process")
            return
        self._sampler.close()  # the others have samplers of their own
        self.are_there = True

    def wait(self, seconds: float) -> None:
        """Wait until they have started, once, and if that does not take too long."""
        from concurrent.futures import wait

        wait(self._starting, 0.0 if self._has_waited else seconds)
        self._has_waited = True

    def take(self, chunk: Chunk[Any]) -> bool:
        """Return whether they draw a chunk: it must be possible to send what it measures, which may
        be of the user's making, too."""
        if self.are_there and isinstance(chunk, ToCount) and chunk.measure is not self._sent:
            try:
                pickle.dumps(chunk)
            except Exception as error:  # noqa: BLE001  # whatever a user's object raises
                self._stay(_words(error))
            self._sent = chunk.measure
        return self.are_there

    def draw(self, chunks: Iterable[Chunk[Found]]) -> Iterator[Found]:
        """Draw, as `Drawer` does."""
        if self._pool is None:
            raise RuntimeError("nobody is there to draw")
        return self._pool(chunks)

    def end(self, *, in_order: bool) -> None:
        """End the processes; at once, where some still start or anything went wrong."""
        if self._pool is not None:
            self._pool.close(in_order=in_order and self.are_there)
            self._pool = None

    def _start(self, setup: Setup) -> None:
        """Start them, unless what is drawn here shows that it belongs to one process alone."""
        if _is_in_no_file():
            self._stay("the program that runs is in no file")
            return
        from dpaudit.sampling.executors.pools import Recipe

        recipe = Recipe.of(setup.make)
        few = ToLearn(_KEY, min(_SHOWN, max(4, int(self._rate * _SHOWING))))
        parts = self._sampler.mechanism.parts
        before = kept_state(*parts)
        with Written() as once:
            one = _keys(self._sampler.draw(few))
        with Written() as twice:
            other = _keys(self._sampler.draw(few))
        names = changed(before, kept_state(*parts))
        if names:
            listed = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
            self._stay(f"the mechanism keeps state between calls, which changed {listed}")
            return
        files = sorted(once.files & twice.files)
        if files:
            self._stay(f"its calls all write to {files[0]}")
            return
        # Where no seed reaches the mechanism, nothing can be compared.
        self._shown = one if np.array_equal(one, other) else None
        from dpaudit.sampling.executors.processes import ProcessPool

        self._pool = ProcessPool(recipe, self.workers)
        self._starting = self._pool.start([few])

    def _stay(self, why: str) -> None:
        """Leave all that is drawn to this process."""
        self.end(in_order=False)
        self.are_there = False
        self.note = f"only one process drew, though more would have been faster: {why}"


def _keys(drawn: Learning) -> KeyArray:
    return drawn.fresh.release().outcomes.keys()


def _is_in_no_file() -> bool:
    """Return whether the program is none that another process could run, such as one that Python
    reads from standard input."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    return main.__spec__ is None and file is not None and not Path(file).exists()


def _words(error: BaseException) -> str:
    said = " ".join(str(error).split())
    is_ours = isinstance(error, DpauditError)
    return said if is_ours and said else f"{type(error).__name__}: {said}".removesuffix(": ")
