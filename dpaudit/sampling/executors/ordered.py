"""Chunks out in bundles, results back in order, whatever the order in which they end."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dpaudit.sampling.chunks import Chunk, Found, ToCount, ToTime
from dpaudit.sampling.executors import Crew
from dpaudit.sampling.executors.worker import Done

# Bundles under way for each worker: one that it draws, one that waits.
_AHEAD = 2
# Seconds that a bundle should take for every one that is under way, at least: all go through one
# process, and come back.
_FOR_EACH = 0.003
# Chunks of a bundle, at most.
_MOST = 256


class Pool(Crew):
    """Workers, which draw bundles of chunks: a task each, such as a future."""

    # That a bundle should take to draw, at least: what its way there and back takes is then small
    # beside it, a millisecond between processes.
    seconds = 0.1

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def ahead(self) -> int:
        """Return how many bundles are to be under way now."""
        return _AHEAD * self.workers

    @abstractmethod
    def submit(self, chunks: Sequence[Chunk[Any]], /) -> Any: ...

    @abstractmethod
    def result(self, task: Any, /) -> Done:
        """Wait for a bundle."""

    def cancel(self, task: Any, /) -> None:
        """Discard a bundle, unless it is being drawn already."""
        task.cancel()

    def settle(self, seconds: float) -> None:
        """Wait until all are there who will draw, before the time of draws is taken; not longer
        than so many seconds. Most are there from the start."""

    def __call__(self, chunks: Iterable[Chunk[Found]], /) -> Iterator[Found]:
        """Yield what was drawn in the order of the chunks. Bundles depend on the clock, what is
        drawn does not: a chunk has random streams of its own."""
        waiting: deque[Any] = deque()
        source, size, is_settled = iter(chunks), 1, False
        try:
            while True:
                while len(waiting) < self.ahead() and (bundle := _bundle(source, size)):
                    if isinstance(bundle[0], ToTime) and not is_settled:
                        self.settle(bundle[0].patience)
                        is_settled = True
                    waiting.append(self.submit(bundle))
                if not waiting:
                    return
                done = self.result(waiting.popleft())
                size = _fitting(done, max(self.seconds, _FOR_EACH * self.ahead()))
                yield from done.drawn
        finally:
            for task in waiting:
                self.cancel(task)


def _bundle(source: Iterator[Chunk[Any]], size: int) -> list[Chunk[Any]]:
    """Return the next chunks, none when there are no more; learning blocks, which are waited for
    one by one, and those whose time is taken, by themselves."""
    bundle: list[Chunk[Any]] = []
    for chunk in source:
        bundle.append(chunk)
        if type(chunk) is not ToCount or len(bundle) >= size:
            break
    return bundle


def _fitting(done: Done, wanted: float) -> int:
    """Return how many chunks take a worker so many seconds, by what the last ones took; no more
    than double their number."""
    size = len(done.drawn)
    return int(min(_MOST, 2 * size, max(1.0, wanted * size / max(done.seconds, 1e-9))))
