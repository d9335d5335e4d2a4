"""Worker processes on this machine, which are replaced when something outside kills them.

A thread of the auditing process serves each worker: it takes a task, sends it, and waits for the
reply or for the end of the process.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection, util
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Lock
from queue import SimpleQueue
from typing import Any

from dpaudit.errors import MechanismError
from dpaudit.processes.child import ending
from dpaudit.sampling.chunks import Chunk
from dpaudit.sampling.executors import WORKER
from dpaudit.sampling.executors.pools import Done, OrderedPool, Recipe, draw
from dpaudit.watching import Watch

# Signals that come from outside: a system short of memory, a job scheduler, a person. The mechanism
# is the cause of all others.
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# How often a worker is replaced for one task.
_REPLACED = 3
# Seconds that workers have to end by themselves after the last task.
_GRACE = 2.0
# Signals to a whole process group. Only the process that the user talks to acts on them, and ends
# its workers; a worker that ended by itself at that moment would look like a crash.
_FOR_ALL = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    function: Callable[..., Done]
    arguments: tuple[Any, ...]
    future: Future[Done]


class ProcessPool(OrderedPool):
    """A pool of new processes, each with a sampler of its own.

    A chunk that is lost with its process is drawn again from the same seed, so it is the same.
    Processes are spawned, never forked: a fork would copy the state of every generator, and locks.
    """

    def __init__(
        self,
        recipe: Recipe,
        workers: int,
        first: Sequence[Chunk[Any]] | None = None,
        starting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Start the processes.

        first: every process begins with these chunks; `started` has the results. None: processes
        begin with nothing.  starting: context in which each process is started.
        """
        super().__init__(workers)
        self._recipe = recipe
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        context = multiprocessing.get_context("spawn")
        show = warnings.showwarning
        # Where the command line shows warnings in its own way, its workers do so too.
        is_ours = getattr(show, "__module__", "").startswith("dpaudit.")
        arguments = (context.Lock(), show if is_ours else None)
        begin = [None if first is None else self._task(draw, recipe, first) for _ in range(workers)]
        self.started = [task.future for task in begin if task is not None]
        self._workers: list[_Worker] = []
        # At exit, Python waits for its processes, also for those of a pool that was not closed.
        util.Finalize(self, _kill, args=(self._workers,), exitpriority=10)
        try:
            for number, task in enumerate(begin):
                name = f"{WORKER}-{number}"
                self._workers.append(_Worker(name, self._tasks, task, starting, arguments))
        except BaseException:
            self.close(in_order=False)
            raise

    def submit(self, chunks: Sequence[Chunk[Any]], /) -> Future[Done]:
        return self.call(draw, self._recipe, chunks)

    def call(self, function: Callable[..., Done], *arguments: Any) -> Future[Done]:
        """Have the next free process call a function."""
        task = self._task(function, *arguments)
        self._tasks.put(task)
        return task.future

    def settle(self, seconds: float) -> None:
        wait(self.started, seconds)

    def close(self, *, in_order: bool) -> None:
        """End the processes. in_order: give them some seconds to end by themselves; otherwise kill
        them immediately, since a draw may never end."""
        for worker in self._workers:
            worker.is_wanted = False
            self._tasks.put(None)
        deadline = time.monotonic() + (_GRACE if in_order else 0.0)
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        _kill(self._workers)

    @staticmethod
    def _task(function: Callable[..., Done], *arguments: Any) -> _Task:
        return _Task(function, arguments, Future())


def _kill(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.is_wanted = False
        worker.kill()
        worker.join(_GRACE)


class _Worker(threading.Thread):
    """A process, and the thread that serves it.

    is_wanted: whether the process is replaced when something outside kills it.
    """

    def __init__(
        self,
        name: str,
        tasks: SimpleQueue[_Task | None],
        first: _Task | None,
        starting: Callable[[], AbstractContextManager[None]],
        arguments: tuple[Any, ...],
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._tasks, self._first = tasks, first
        self._starting, self._arguments = starting, arguments
        self.is_wanted = True
        self._lock = threading.Lock()  # held while the process is started or killed
        self._start_process()
        self.start()

    def run(self) -> None:
        if self._first is not None:
            self._serve(self._first)
        while self.is_wanted and (task := self._tasks.get()) is not None:
            self._serve(task)
        self._connection.close()  # which ends the process
        self._process.join()

    def kill(self) -> None:
        """Kill the process and what it started."""
        with self._lock:
            if self._process.is_alive() and self._process.pid is not None:
                with suppress(ProcessLookupError, PermissionError):  # not yet a group of its own
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._process.kill()

    def _serve(self, task: _Task) -> None:
        if not task.future.set_running_or_notify_cancel():
            return
        try:
            task.future.set_result(self._reply(task))
        except BaseException as error:  # noqa: BLE001  # it is for whoever waits for the task
            task.future.set_exception(error)

    def _reply(self, task: _Task) -> Done:
        data = pickle.dumps((task.function, task.arguments))
        for _ in range(_REPLACED + 1):
            if not self._process.is_alive():
                self._start_process()
            try:
                reply = ask(self._connection, data, self._process.sentinel)
            except (EOFError, OSError):
                code = self._code()
                if -code not in _FROM_OUTSIDE:
                    raise _died(code) from None
                continue
            return result_of(reply)
        raise MechanismError(
            f"worker processes were killed {_REPLACED + 1} times in a row while they drew the same "
            f"chunk ({ending(code)}); if memory runs out, use fewer workers; with isolate: true "
            "and memory_limit, a crash of the mechanism counts as an outcome",
            code="worker-killed",
        )

    def _code(self) -> int:
        """Return the exit code of the process, which has closed its end of the connection."""
        self._process.join(_GRACE)
        self.kill()
        self._process.join()
        self._connection.close()
        return self._process.exitcode or 0

    def _start_process(self) -> None:
        with self._lock:
            if not self.is_wanted:
                raise CancelledError
            self._connection, there = connection.Pipe()
            with there, self._starting():
                arguments = (there, *self._arguments)
                self._process = _Process(target=_work, args=arguments, name=self.name)
                self._process.start()


def _died(code: int) -> MechanismError:
    """Return the error of a process that the mechanism has ended: drawing again until it does not
    would keep only the draws that it survives."""
    return MechanismError(
        f"a worker process died while it was sampling ({ending(code)}: a crash of native code, an "
        "exit, or a script that asks for workers outside of `if __name__ == '__main__':`); with "
        "one worker you may see the mechanism's own message, and with isolate: true its crash "
        "counts as an outcome",
        code="worker-died",
    )


class _Process(SpawnProcess):
    """A process that Ctrl-C does not reach from its first moment on. Other signals to its group are
    blocked until it has a group of its own."""

    def start(self) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *_FOR_ALL})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(here: Connection, told: Lock, show: Callable[..., None] | None) -> None:
    """Serve tasks until the auditing process closes the connection.

    told: the worker that acquires this lock, which is never released, gives the warnings that all
    workers would give.  show: replaces `warnings.showwarning`.
    """
    Watch.may_warn = staticmethod(partial(told.acquire, False))
    Watch.warns_of_steps = False
    if show is not None:
        warnings.showwarning = show
    os.setpgid(0, 0)  # what the mechanism starts belongs to this process, and ends with it
    # Signals that came before are dropped.
    usual = {number: signal.signal(number, signal.SIG_IGN) for number in (*_FOR_ALL, signal.SIGINT)}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, usual)
    for number in _FOR_ALL:
        signal.signal(number, usual[number])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    serve(here)


def serve(here: Connection) -> None:
    """Serve the tasks of `ask` until the other end closes the connection."""
    with suppress(EOFError, OSError):
        while True:
            data = here.recv_bytes()
            try:
                function, arguments = pickle.loads(data)
                reply = pickle.dumps(function(*arguments))
            except BaseException as error:  # noqa: BLE001  # whatever the mechanism raises
                reply = _pickled(error)
            here.send_bytes(reply)


def ask(there: Connection, data: bytes, *sentinels: int) -> Done | BaseException:
    """Send a pickled function with its arguments; return the result, or the exception.

    sentinels: of the process at the other end, whose own forks may keep the connection open.
    Raises EOFError or OSError if that process ends.
    """
    there.send_bytes(data)
    ends: list[Any] = [there, *sentinels]
    if there not in connection.wait(ends):
        raise EOFError
    reply: Done | BaseException = there.recv()
    return reply


def result_of(reply: Done | BaseException) -> Done:
    """Return a result, or raise an exception."""
    if isinstance(reply, BaseException):
        raise reply
    return reply


def _pickled(error: BaseException) -> bytes:
    """Return an error that the auditing process can read, with the traceback of this process."""
    with suppress(Exception):
        error.add_note("".join(traceback.format_exception(error)))
        data = pickle.dumps(error)
        pickle.loads(data)
        return data
    return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))


def _end_with_parent() -> None:
    """End this process and what it started when the auditing process has ended, however it did."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os.killpg(0, signal.SIGKILL)
