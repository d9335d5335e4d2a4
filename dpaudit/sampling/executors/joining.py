"""Other processes that join this one when an audit takes long.

A chunk's random streams follow from its key, so it does not matter who draws it. What does matter
is that others draw as this process does: before they join they show it, on a few draws that count
for nothing. Until then, and if they cannot, this process goes on by itself.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.errors import DpauditError, MechanismError, UsageError
from dpaudit.outcomes import KeyArray
from dpaudit.processes.cores import cores, room_for
from dpaudit.sampling.chunks import Chunk, Found, Learning, ToCount, ToLearn
from dpaudit.sampling.executors import Setup
from dpaudit.sampling.executors.processes import ProcessPool
from dpaudit.sampling.executors.worker import Recipe
from dpaudit.sampling.state import changed, kept_state
from dpaudit.sampling.writing import Written

# Draws that show that others draw alike, at most, and the seconds that they may take here.
_SHOWN, _SHOWING = 64, 0.25
# No chunk of an audit has this key.
_KEY = (0, 99, 0)
# Variables that a note names.
_NAMED = 3


class Others:
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
        hands = round(cores() / max(1.0, used))
        self.workers = min(hands, room_for(hands))
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
        """Draw, as `Draws` does."""
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
