"""Chunks out in bundles, results back in order, whatever the order in which they end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from dpaudit.sampling.chunks import Chunk, Found, ToCount
from dpaudit.sampling.executors.worker import Done

# Bundles under way for each worker: one that it draws, one that waits.
AHEAD = 2
# Seconds that a bundle should take to draw, at least: what its way there and back takes is then
# small beside it, a millisecond between processes.
_SECONDS = 0.1
# More of them for every bundle that is under way: all go through one process, and come back.
_FOR_EACH = 0.003
# Chunks of a bundle, at most.
_MOST = 256


class Pending(Protocol):
    """A bundle under way."""

    def result(self) -> Done:
        """Wait for it."""
        ...

    def cancel(self) -> object:
        """Discard it, unless it is being drawn already."""
        ...


Submit = Callable[[Sequence[Chunk[Any]]], Pending]


def in_order(
    submit: Submit,
    ahead: Callable[[], int],
    chunks: Iterable[Chunk[Found]],
    seconds: float = _SECONDS,
) -> Iterator[Found]:
    """Yield what was drawn in the order of the chunks.

    ahead: how many bundles are to be under way now.  seconds: how long one should take, at least.

    Bundles depend on the clock, what is drawn does not: a chunk has random streams of its own.
    """
    waiting: deque[Pending] = deque()
    source, size = iter(chunks), 1
    try:
        while True:
            while len(waiting) < ahead() and (bundle := _bundle(source, size)):
                waiting.append(submit(bundle))
            if not waiting:
                return
            done = waiting.popleft().result()
            size = _fitting(done, max(seconds, _FOR_EACH * ahead()))
            yield from done.drawn
    finally:
        for pending in waiting:
            pending.cancel()


def _bundle(source: Iterator[Chunk[Any]], size: int) -> list[Chunk[Any]]:
    """Return the next chunks, none when there are no more; learning blocks, which are waited for
    one by one, by themselves."""
    bundle: list[Chunk[Any]] = []
    for chunk in source:
        bundle.append(chunk)
        if not isinstance(chunk, ToCount) or len(bundle) >= size:
            break
    return bundle


def _fitting(done: Done, wanted: float) -> int:
    """Return how many chunks take a worker so many seconds, by what the last ones took; no more
    than double their number."""
    size = len(done.drawn)
    return int(min(_MOST, 2 * size, max(1.0, wanted * size / max(done.seconds, 1e-9))))
