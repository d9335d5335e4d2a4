"""Worker processes on this machine: start, tasks, replacement and end.

`ProcessPool` starts the processes and queues tasks (a function and its arguments, usually `draw`
and some chunks). Each process has a thread in the auditing process (`_Worker`), which takes a task
from the queue, sends the task, and waits for the reply or for the end of the process. A process
that is killed from outside, for example when memory runs out, is replaced, and its task is
repeated. A process that ends for any other reason ends the audit with an error. `NewProcesses` uses
this pool, too.
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

# A process that ends by one of these signals was killed from outside: by a system short of memory,
# a job scheduler or a person. Any other end is caused by the mechanism.
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# A process is replaced at most 3 times for one task.
_REPLACED = 3
# Workers have 2 s to end by themselves after the last task; then they are killed.
_GRACE = 2.0
# Signals that a terminal or a scheduler sends to a whole group of processes. Workers block these
# signals while they start: only the auditing process acts on a signal, and ends its workers. A
# worker that the signal ended directly would look like a crash.
_FOR_ALL = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    function: Callable[..., Done]
    arguments: tuple[Any, ...]
    future: Future[Done]


class ProcessPool(OrderedPool):
    """A pool of new processes on this machine, each with a sampler of its own.

    If a process is killed, its chunk is drawn again from the chunk's seed, which gives equal draws.
    Processes are never forked, since a fork would copy the state of random generators and of locks.

    started: futures of the first results of the processes, if processes begin with chunks.
    """

    def __init__(
        self,
        recipe: Recipe,
        workers: int,
        first: Sequence[Chunk[Any]] | None = None,
        starting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Start the processes.

        recipe: makes the sampler of each process.
        workers: number of processes.
        first: chunks that every process draws first; `started` has the results. An empty sequence:
            every process makes its sampler and draws nothing. None: neither.
        starting: returns the context in which a process is started.
        """
        super().__init__(workers)
        self._recipe = recipe
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        context = multiprocessing.get_context("spawn")
        show = warnings.showwarning
        # If the command line has replaced `warnings.showwarning`, workers replace it, too.
        is_ours = getattr(show, "__module__", "").startswith("dpaudit.")
        arguments = (context.Lock(), show if is_ours else None)
        begin = [None if first is None else self._task(draw, recipe, first) for _ in range(workers)]
        self.started = [task.future for task in begin if task is not None]
        self._workers: list[_Worker] = []
        # At exit, Python waits for its child processes. So kill the processes of a pool that was
        # not closed.
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
        """Queue a call of a function in the next free process; return the future of its result."""
        task = self._task(function, *arguments)
        self._tasks.put(task)
        return task.future

    def settle(self, seconds: float) -> None:
        wait(self.started, seconds)

    def close(self, *, in_order: bool) -> None:
        """End the processes.

        in_order: give processes `_GRACE` seconds to end by themselves. Otherwise kill them
            immediately, since a draw may never end.
        """
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
    """A thread of the auditing process that starts a worker process and gives it tasks.

    is_wanted: whether to go on with further tasks, and to replace a process that is killed.
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
        """Kill the process and all processes that it started."""
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
        except BaseException as error:  # noqa: BLE001  # raised again by `task.future.result()`
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
        """Return the exit code of the process after it has closed its connection.

        The process gets `_GRACE` seconds to end; then it is killed with all that it started.
        """
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
    """Return the error for a process that the mechanism has ended.

    The chunk is not drawn again: repeating draws until the process survives would keep only draws
    without a crash, and bias the audit.

    code: exit code as `subprocess` gives it (negative: number of the signal).
    """
    return MechanismError(
        f"a worker process died while it was sampling ({ending(code)}: a crash of native code, an "
        "exit, or a script that asks for workers outside of `if __name__ == '__main__':`); with "
        "one worker you may see the mechanism's own message, and with isolate: true its crash "
        "counts as an outcome",
        code="worker-died",
    )


class _Process(SpawnProcess):
    """A spawned process that starts with Ctrl-C and the signals in `_FOR_ALL` blocked.

    `_work` unblocks the signals after the process has a process group of its own.
    """

    def start(self) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *_FOR_ALL})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(here: Connection, told: Lock, show: Callable[..., None] | None) -> None:
    """Run in a worker process: serve tasks until the auditing process closes the connection.

    told: lock that is never released. The worker that acquires it logs warnings about slow calls,
        which all workers would log otherwise.
    show: replaces `warnings.showwarning`, unless None.
    """
    Watch.may_warn = staticmethod(partial(told.acquire, False))
    Watch.warns_of_steps = False
    if show is not None:
        warnings.showwarning = show
    os.setpgid(0, 0)  # a group with all processes that the mechanism starts, to kill together
    # Signals that arrived while they were blocked are ignored. Ctrl-C (SIGINT) stays ignored.
    usual = {number: signal.signal(number, signal.SIG_IGN) for number in (*_FOR_ALL, signal.SIGINT)}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, usual)
    for number in _FOR_ALL:
        signal.signal(number, usual[number])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    serve(here)


def serve(here: Connection) -> None:
    """Run the tasks that `ask` sends, and send results back, until the connection is closed."""
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
    """Send a function call to another process, and return the result or the exception of the call.

    there: connection to the process, which runs `serve`.
    data: pickle of the function and its arguments.
    sentinels: `sentinel` of the process, if known. It shows that the process has ended, also if
        forks of the process keep the connection open.

    Raises EOFError or OSError if the process ends.
    """
    there.send_bytes(data)
    ends: list[Any] = [there, *sentinels]
    if there not in connection.wait(ends):
        raise EOFError
    reply: Done | BaseException = there.recv()
    return reply


def result_of(reply: Done | BaseException) -> Done:
    """Return a reply, or raise the reply if it is an exception."""
    if isinstance(reply, BaseException):
        raise reply
    return reply


def _pickled(error: BaseException) -> bytes:
    """Return the pickle of an exception, with this process's traceback as a note.

    An exception that cannot be pickled becomes a RuntimeError with its type and message.
    """
    with suppress(Exception):
        error.add_note("".join(traceback.format_exception(error)))
        data = pickle.dumps(error)
        pickle.loads(data)
        return data
    return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))


def _end_with_parent() -> None:
    """Wait for the end of the auditing process; then kill this process and all that it started."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os.killpg(0, signal.SIGKILL)
