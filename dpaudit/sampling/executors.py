"""Who draws the chunks: this process, or several. The draws are the same."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from dpaudit.errors import MechanismError, UsageError
from dpaudit.sampling.sampler import Chunk, Drawn, Sampler

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

# Yields what was drawn, in the order of the chunks. Chunks are asked for as they are needed, some
# ahead; closing the iterator discards what is under way.
Draws = Callable[[Iterable[Chunk]], Iterator[Drawn]]

# Chunks under way for each worker: one that it draws, one that waits.
_AHEAD = 2


def in_this_process(sampler: Sampler) -> Draws:
    """Draw one chunk after the other, each only when it is asked for."""
    return partial(map, sampler.draw)


@contextmanager
def in_processes(make_sampler: Callable[[], Sampler], workers: int) -> Iterator[Draws]:
    """Draw in `workers` new processes, each with a sampler of its own.

    make_sampler: picklable. Raises UsageError when it is not.
    """
    _check_picklable(make_sampler)
    # Imported here: a run in one process starts sooner without it.
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    # Spawned, never forked: a fork would copy the state of every generator, and locks held.
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(make_sampler,),
    )
    try:
        yield partial(_in_order, pool, _AHEAD * workers)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_order(pool: Executor, ahead: int, chunks: Iterable[Chunk]) -> Iterator[Drawn]:
    """Yield results in the order of the chunks, whatever the order in which they end."""
    waiting: deque[Future[Drawn]] = deque()
    source = iter(chunks)
    try:
        while True:
            for chunk in source:
                waiting.append(pool.submit(_draw, chunk))
                if len(waiting) >= ahead:
                    break
            if not waiting:
                return
            yield _result(waiting.popleft())
    finally:
        for future in waiting:
            future.cancel()


def _result(future: Future[Drawn]) -> Drawn:
    from concurrent.futures.process import BrokenProcessPool

    try:
        return future.result()
    except BrokenProcessPool:
        raise MechanismError(
            "a worker process died while it was sampling (out of memory, a crash of native code, "
            "or a script that asks for workers outside of `if __name__ == '__main__':`); with one "
            "worker the mechanism's own message may be seen, and with isolate it is an outcome"
        ) from None


# One sampler for each worker process, made when the first chunk comes, so that an error while
# making it reaches the caller as it would without workers.
_make: Callable[[], Sampler] | None = None
_sampler: Sampler | None = None


def _start_worker(make_sampler: Callable[[], Sampler]) -> None:
    import signal

    global _make
    _make = make_sampler
    # Ctrl-C is for the process that the user talks to, which then stops its workers.
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _draw(chunk: Chunk) -> Drawn:
    global _sampler
    if _sampler is None:
        if _make is None:
            raise RuntimeError("a worker was given a chunk before it was started")
        _sampler = _make()
    return _sampler.draw(chunk)


def _check_picklable(make_sampler: Callable[[], Sampler]) -> None:
    try:
        pickle.dumps(make_sampler)
    except Exception as error:  # whatever a user's object raises when it is pickled
        raise UsageError(
            f"the mechanism or a dataset cannot be sent to other processes ({error}); "
            "name it by import path, or use workers=1"
        ) from error
