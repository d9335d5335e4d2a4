"""Draws in processes of this machine, which are replaced when something kills them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.synchronize import Barrier, Lock
from typing import Any

from dpaudit.errors import MechanismError
from dpaudit.sampling.chunks import Chunk
from dpaudit.sampling.executors import WORKER, Setup, WorkerPool
from dpaudit.sampling.executors.pools import Done, Pool, Recipe, draw
from dpaudit.watching import Watch

# Signals that come from somewhere else: the system that is short of memory, a scheduler, a person.
# Of all others the mechanism is the cause.
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Times in a row that workers are replaced, at most, with no chunk done in between.
_REPLACED = 3
# Seconds that workers have to end by themselves when all is done; and that they wait for each other
# to start, where all are to have started before anything is drawn.
_GRACE, _TOGETHER = 2.0, 15.0


@contextmanager
def in_processes(setup: Setup) -> Iterator[WorkerPool]:
    """Draw in `workers` new processes, each with a sampler of its own. A chunk that is lost with
    its process is drawn again, from the same seed. Raises UsageError."""
    pool = ProcessPool(Recipe.of(setup.make), setup.workers)
    is_over = False
    try:
        yield pool
        is_over = True
    finally:
        pool.close(in_order=is_over)


@dataclass(slots=True, eq=False)
class _Task:
    """Chunks on their way, for whichever process is there to draw them."""

    chunks: Sequence[Chunk[Any]]
    future: Future[Done]


class ProcessPool(Pool):
    """A pool of processes, another one in its place when it breaks."""

    def __init__(self, recipe: Recipe, workers: int) -> None:
        super().__init__(workers)
        self._recipe = recipe
        self._tasks: list[_Task] = []
        self._breaks = 0
        self._open()

    def submit(self, chunks: Sequence[Chunk[Any]], /) -> _Task:
        try:
            future = self._executor.submit(_draw, chunks)
        except BrokenProcessPool:
            self._replace()
            future = self._executor.submit(_draw, chunks)
        self._tasks.append(_Task(chunks, future))
        return self._tasks[-1]

    def result(self, task: _Task, /) -> Done:
        """Wait for a task, which is begun again as often as its process is killed."""
        while True:
            try:
                done = task.future.result()
            except BrokenProcessPool:
                self._replace()
                continue
            self._breaks = 0
            self._tasks.remove(task)
            return done

    def cancel(self, task: _Task, /) -> None:
        self._tasks.remove(task)
        task.future.cancel()

    def start(self, chunks: Sequence[Chunk[Any]], seconds: float = _TOGETHER) -> list[Future[Done]]:
        """Start all processes now; of each return what becomes of the same chunks there. They wait
        so long for each other."""
        every = range(self.workers)
        return [self._executor.submit(_draw_together, chunks, seconds) for _ in every]

    def do(self, function: Callable[..., Done], *arguments: Any) -> Future[Done]:
        """Have a process call a function, and not again where the process is lost."""
        return self._executor.submit(function, *arguments)

    def settle(self, seconds: float) -> None:
        with suppress(BrokenProcessPool):  # which is seen to when a chunk is wanted
            wait(self.start((), seconds), seconds)

    def close(self, *, in_order: bool) -> None:
        """End the processes. in_order: whether all is done; whatever went wrong else, nobody waits
        for a draw that may never end."""
        self._end(_GRACE if in_order else 0.0)

    def _end(self, grace: float) -> None:
        """Let the processes end for so many seconds, then kill them and what they started."""
        if grace:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._context.wait(grace)
        self._context.kill()
        self._executor.hear_no_more()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _open(self) -> None:
        # Spawned, never forked: a fork would copy the state of every generator, and locks held.
        self._context = _Context()
        self._executor = _Executor(
            self.workers,
            mp_context=self._context,
            initializer=_start_worker,
            initargs=(
                self._recipe,
                self._context.Lock(),
                self._context.Barrier(self.workers),
                _own_way_with_warnings(),
            ),
        )

    def _replace(self) -> None:
        """Start new processes and hand them what was under way. Raises MechanismError when the
        mechanism is the cause, or nothing gets done."""
        self._end(0.0)
        codes = [process.exitcode or 0 for process in self._context.started]
        self._breaks += 1
        _check_from_outside(codes)
        if self._breaks > _REPLACED:
            raise MechanismError(
                f"worker processes were killed {self._breaks} times in a row while they drew the "
                f"same chunk ({_ended(max(codes))}); if memory runs out, use fewer workers; with "
                "isolate: true and memory_limit, a crash of the mechanism counts as an outcome"
            )
        self._open()
        for task in self._tasks:
            if not task.future.done() or isinstance(task.future.exception(), BrokenProcessPool):
                task.future = self._executor.submit(_draw, task.chunks)


def _check_from_outside(codes: Sequence[int]) -> None:
    """Raise for a process that the mechanism has ended: to draw again until it does not would keep
    only the draws that it survives."""
    own = [code for code in codes if -code not in _FROM_OUTSIDE]
    if own:
        raise MechanismError(
            f"a worker process died while it was sampling ({_ended(own[0])}: a crash of native "
            "code, an exit, or a script that asks for workers outside of `if __name__ == "
            "'__main__':`); with one worker you may see the mechanism's own message, and with "
            "isolate: true its crash counts as an outcome"
        )


def _ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"


class _Executor(ProcessPoolExecutor):
    """An executor whose processes may be killed when tasks were cancelled. Python 3.11 reports each
    of these as an error in a thread of its own; later versions do not."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        future = super().submit(function, *args, **more)
        future.__class__ = _Future
        return future

    def hear_no_more(self) -> None:
        """End the wait for the rest of what a process had begun to send when it was killed. This
        process holds the pipe open for writing, too, so that it would never end by itself."""
        writer = getattr(self._result_queue, "_writer", None)
        if writer is not None:
            writer.close()


class _Future(Future[Any]):
    def set_exception(self, exception: BaseException | None) -> None:
        with suppress(InvalidStateError):
            super().set_exception(exception)


class _Context(SpawnContext):
    """Spawns processes, and remembers them."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[SpawnProcess] = []

    def Process(self, *args: Any, **more: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802  # a class there
        process = _Process(*args, **more)
        process.name = f"{WORKER}-{len(self.started)}"
        self.started.append(process)
        return process

    def wait(self, seconds: float) -> None:
        """Wait until all have ended, but not longer than that."""
        left = {process.sentinel for process in self.started}
        deadline = time.monotonic() + seconds
        while left and (ended := connection.wait(left, max(0.0, deadline - time.monotonic()))):
            left.difference_update(ended)

    def kill(self) -> None:
        """Kill the processes that are left, each with what it started."""
        for process in self.started:
            if process.is_alive() and process.pid is not None:
                with suppress(ProcessLookupError, PermissionError):  # not yet a group of its own
                    os.killpg(process.pid, signal.SIGKILL)
                process.kill()


# What ends a group of processes. It is for the one that the user talks to, which then ends its
# workers; one that ended by itself at that moment would be taken for a crash.
_FOR_ALL = (signal.SIGTERM, signal.SIGHUP)


class _Process(SpawnProcess):
    """A process that Ctrl-C does not reach, from its first moment on, nor what else ends a group,
    until it has a group of its own."""

    def start(self) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *_FOR_ALL})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


_recipe: Recipe | None = None
_together: Barrier | None = None


def _own_way_with_warnings() -> Callable[..., None] | None:
    """Return how the command line shows warnings, in its workers, too; else None."""
    show = warnings.showwarning
    return show if getattr(show, "__module__", "").startswith("dpaudit.") else None


def _start_worker(
    recipe: Recipe, told: Lock, together: Barrier, show: Callable[..., None] | None
) -> None:
    """together: of all processes.  told: whoever acquires it, which nobody gives back, is the one
    to say what all would say.  show: takes the place of `warnings.showwarning`."""
    global _recipe, _together
    _recipe, _together = recipe, together
    Watch.may_tell = staticmethod(partial(told.acquire, False))
    Watch.is_first = False
    if show is not None:
        warnings.showwarning = show
    os.setpgid(0, 0)  # what the mechanism starts belongs to it, and ends with it
    # What has come until now is dropped.
    usual = {one: signal.signal(one, signal.SIG_IGN) for one in (*_FOR_ALL, signal.SIGINT)}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, usual)
    for number in _FOR_ALL:
        signal.signal(number, usual[number])
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process and what it started when the auditing process has, however it did."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os.killpg(0, signal.SIGKILL)


def _draw(chunks: Sequence[Chunk[Any]]) -> Done:
    if _recipe is None:
        raise RuntimeError("a worker was given a chunk before it was started")
    return draw(_recipe, chunks)


def _draw_together(chunks: Sequence[Chunk[Any]], seconds: float) -> Done:
    """Draw, and wait until every other process has, too: so that each of them is given one task."""
    done = _draw(chunks)
    if _together is not None:
        with suppress(threading.BrokenBarrierError):
            _together.wait(seconds)
    return done
