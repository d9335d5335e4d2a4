"""Worker processes on this machine: start, tasks, replacement and end.

`ProcessPool` starts the processes and queues tasks. A task is a function and its arguments, usually
`draw` and some chunks (requests for draws). Each process has a thread in the auditing process
(`_Worker`), which takes a task from the queue, sends the task, and waits for the reply or for the
end of the process. A process that is killed from outside, for example when memory runs out, is
replaced, and its task is repeated. A process that ends for any other reason ends the audit with an
error.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import select
import signal
import struct
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection, util
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Lock
from queue import SimpleQueue
from typing import Any

from dpaudit.errors import MechanismError
from dpaudit.processes.child import LOOK_SECONDS, ending
from dpaudit.sampling.chunks import Chunk
from dpaudit.sampling.executors import WORKER
from dpaudit.sampling.executors.pools import Done, OrderedPool, Recipe, draw
from dpaudit.watching import Watch

# Signals from outside of a process, such as from a system short of memory, a job scheduler or a
# person. If a worker ends in any other way, the mechanism has caused it.
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Largest number of processes that replace a killed process during one task. Each task has a count
# of its own.
_MAX_REPLACED = 3
# Seconds that workers have to end by themselves after the last task, before they are killed.
_GRACE_SECONDS = 2.0
# Signals that a terminal or a scheduler sends to a whole group of processes. Only the auditing
# process should react to them, by ending its workers. So workers block these signals while they
# start: a worker that ended by a signal would look as if the mechanism had crashed it.
_FOR_ALL = (signal.SIGTERM, signal.SIGHUP)
# _LENGTH: format of the number at the beginning of a message, its length in bytes: an unsigned
#     64-bit integer.
# _READ: largest number of bytes that are read in one step, 1 MiB.
# _WRITTEN: largest number of bytes that are written in one step, 16 KiB. A connection that is ready
#     takes this many without blocking.
_LENGTH, _READ, _WRITTEN = struct.Struct("!Q"), 1 << 20, 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    function: Callable[..., Done]
    arguments: tuple[Any, ...]
    future: Future[Done]


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """Settings that all processes of a pool share.

    tasks: queue of the tasks; None in the queue ends a process.
    keep: pickle of the first task of each process, which makes its sampler.
    arguments: arguments of `_work`, the main function of each process, after the first, the
        connection.
    """

    tasks: SimpleQueue[_Task | None]
    keep: bytes
    arguments: tuple[Any, ...]


class ProcessPool(OrderedPool):
    """A pool of new processes on this machine. Each process has a sampler of its own, and draws
    chunks.

    If a process is killed, its chunk is drawn again from the chunk's seed, which gives equal draws.
    Processes are never forked, since a fork would copy the state of random generators and of locks.

    started: for each process, the future of its first draws.
    """

    def __init__(
        self,
        recipe: Recipe,
        workers: int,
        first: Sequence[Chunk[Any]] = (),
    ) -> None:
        """Make the pool without processes. Each of the first `workers` tasks starts a process.

        recipe: makes the sampler of each process.
        workers: number of processes.
        first: chunks that every process draws first; `started` holds the futures of their results.
        """
        super().__init__(workers)
        context = multiprocessing.get_context("spawn")
        show = warnings.showwarning
        # If the command line has replaced `warnings.showwarning`, workers get the same function.
        is_ours = getattr(show, "__module__", "").startswith("dpaudit.")
        arguments = (context.Lock(), show if is_ours else None)
        self._plan = _Plan(SimpleQueue(), pickle.dumps((_keep, (recipe,))), arguments)
        self._first, self._is_settled = first, False
        self.started: list[Future[Done]] = []
        self._workers: list[_Worker] = []
        # Python waits at its exit for all child processes. The processes of a pool that was not
        # closed would wait for tasks, so they are killed.
        util.Finalize(self, _kill, args=(self._workers,), exitpriority=10)

    def start(self) -> None:
        """Start all processes now, instead of at the first tasks."""
        try:
            while len(self._workers) < self.workers:
                self._start_next()
        except BaseException:
            self.close(in_order=False)
            raise

    def submit(self, chunks: Sequence[Chunk[Any]], /) -> Future[Done]:
        """Queue some chunks for the next free process; return the future of their results.

        Raises the error of a process that could not start.
        """
        for future in self.started:
            if future.done() and (error := future.exception()) is not None:
                raise error
        return self.call(_draw, chunks)

    def call(self, function: Callable[..., Done], *arguments: Any) -> Future[Done]:
        """Queue a call of a function in the next free process; return the future of its result."""
        if len(self._workers) < self.workers:
            self._start_next()
        task = _Task(function, arguments, Future())
        self._plan.tasks.put(task)
        return task.future

    def settle(self, seconds: float) -> None:
        if not self._is_settled:
            self.start()
            wait(self.started, seconds)
        self._is_settled = True

    def close(self, *, in_order: bool) -> None:
        """End the processes.

        in_order: give processes `_GRACE_SECONDS` seconds to end by themselves. Otherwise kill them
            immediately, since a draw may never end.
        """
        for worker in self._workers:
            worker.is_wanted = False
            self._plan.tasks.put(None)
        deadline = time.monotonic() + (_GRACE_SECONDS if in_order else 0.0)
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        _kill(self._workers)

    def _start_next(self) -> None:
        task = _Task(_draw, (self._first,), Future())
        self._workers.append(_Worker(f"{WORKER}-{len(self._workers)}", task, self._plan))
        self.started.append(task.future)


def _kill(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.is_wanted = False
        worker.kill()
        worker.join(_GRACE_SECONDS)


class _Worker(threading.Thread):
    """A thread of the auditing process that starts one worker process, and passes tasks to it.

    is_wanted: whether to pass on further tasks, and to replace the process if it is killed.
    """

    _process: SpawnProcess
    _connection: Connection

    def __init__(self, name: str, first: _Task, plan: _Plan) -> None:
        super().__init__(name=name, daemon=True)
        self._first, self._plan = first, plan
        self.is_wanted = self._is_new = True
        self._group: int | None = None
        self._lock = threading.Lock()  # held while the process is started or killed
        self._start_process()
        self.start()

    def run(self) -> None:
        self._serve(self._first)
        while self.is_wanted and (task := self._plan.tasks.get()) is not None:
            self._serve(task)
        self._connection.close()  # the process then ends
        self._process.join()

    def kill(self) -> None:
        """Kill the process and all processes that it has started. These are killed even if the
        process has ended already.
        """
        with self._lock:
            if self._group is not None:
                with suppress(ProcessLookupError, PermissionError):  # no group, or an empty one
                    os.killpg(self._group, signal.SIGKILL)
                self._process.kill()
            self._group = None  # another process may have this number later

    def _serve(self, task: _Task) -> None:
        if not task.future.set_running_or_notify_cancel():
            return
        try:
            task.future.set_result(self._reply(task))
        except BaseException as error:  # noqa: BLE001  # raised again by `task.future.result()`
            task.future.set_exception(error)

    def _reply(self, task: _Task) -> Done:
        data = pickle.dumps((task.function, task.arguments))
        for left in range(_MAX_REPLACED, -1, -1):
            try:
                reply = self._ask(data)
            except (EOFError, OSError):
                code = self._code()
            else:
                return result_of(reply)
            if left:
                self._start_process()
        raise _killed(code, _MAX_REPLACED + 1)

    def _ask(self, data: bytes) -> Done | BaseException:
        is_alive = self._process.is_alive
        if not is_alive():
            raise EOFError
        if self._is_new:
            ask(self._connection, self._plan.keep, is_alive)
        self._is_new = False
        return ask(self._connection, data, is_alive)

    def _code(self) -> int:
        """Return the exit code of the process if a signal from outside, such as the kill of a
        process that uses too much memory, has ended it. Raise MechanismError if it ended otherwise.

        The process has closed its connection, and gets `_GRACE_SECONDS` seconds to end. If it does
        not, it is killed, and MechanismError is raised.
        """
        self._process.join(_GRACE_SECONDS)
        has_ended = not self._process.is_alive()
        self.kill()
        self._process.join()
        self._connection.close()
        if not has_ended:
            raise _died(f"it closed its connection, and had not ended {_GRACE_SECONDS:g} s later")
        code = self._process.exitcode or 0
        if -code not in _FROM_OUTSIDE:
            raise _died(ending(code))
        return code

    def _start_process(self) -> None:
        with self._lock:
            if not self.is_wanted:
                raise CancelledError
            here, there = connection.Pipe()
            with there:
                arguments = (there, *self._plan.arguments)
                process = _Process(target=_work, args=arguments, name=self.name)
                process.start()
            self._process, self._group = process, process.pid
            self._connection, self._is_new = here, True


def _died(how: str) -> MechanismError:
    """Return the error for a process that the mechanism has ended.

    The chunk is not drawn again: repeating draws until the process survives would keep only draws
    without a crash, and bias the audit.

    how: how the process ended, in words.
    """
    return MechanismError(
        f"a worker process died while it was sampling ({how}: a crash of native code, an "
        "exit, or a script that asks for workers outside of `if __name__ == '__main__':`); with "
        "one worker you may see the mechanism's own message, and with isolate: true its crash "
        "counts as an outcome",
        code="worker-died",
    )


def _killed(code: int, times: int) -> MechanismError:
    return MechanismError(
        f"worker processes were killed {times} times in a row while they drew the same chunk "
        f"({ending(code)}); if memory runs out, use fewer workers; with isolate: true and "
        "memory_limit, a crash of the mechanism counts as an outcome",
        code="worker-killed",
    )


class _Process(SpawnProcess):
    """A spawned process that starts with SIGINT (Ctrl-C), SIGTERM and SIGHUP blocked.

    Its main function `_work` unblocks these signals after it has moved the process to a process
    group of its own.
    """

    def start(self) -> None:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *_FOR_ALL})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


# In a worker process: the recipe for its sampler; None until the process has received it.
_recipe: Recipe | None = None


def _keep(recipe: Recipe) -> None:
    global _recipe
    _recipe = recipe


def _draw(chunks: Sequence[Chunk[Any]]) -> Done:
    if _recipe is None:
        raise RuntimeError("a worker was given a chunk before the recipe")
    return draw(_recipe, chunks)


def _work(here: Connection, told: Lock, show: Callable[..., None] | None) -> None:
    """Serve tasks until the auditing process closes the connection. This function is the main
    function of a worker process.

    here: connection to the auditing process.
    told: lock that is never released. The worker that acquires it logs warnings about slow calls,
        which all workers would log otherwise.
    show: function that replaces `warnings.showwarning`; None: do not replace it.
    """
    Watch.may_warn = staticmethod(partial(told.acquire, False))
    Watch.warns_of_steps = False
    if show is not None:
        warnings.showwarning = show
    os.setpgid(0, 0)  # one group, to kill all processes that the mechanism starts
    # Signals that arrived while they were blocked must have no effect. So they are ignored,
    # unblocked, and then handled as usual again. SIGINT (Ctrl-C) stays ignored.
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
            data = _receive(here)
            try:
                function, arguments = pickle.loads(data)
                reply = pickle.dumps(function(*arguments))
            except BaseException as error:  # noqa: BLE001  # the mechanism may raise any exception
                reply = _pickled(error)
            _send(here, reply)


def ask(
    there: Connection, data: bytes, is_alive: Callable[[], bool] | None = None
) -> Done | BaseException:
    """Send a function call to another process, and return the result or the exception of the call.

    there: connection to the process, which runs `serve`.
    data: pickle of the function and its arguments.
    is_alive: returns whether the process runs. It is checked since the connection may stay open
        after the end of the process, if forks of it still run. None: it is not checked.

    Raises EOFError or OSError if the process ends.
    """
    _send(there, data, is_alive)
    reply: Done | BaseException = pickle.loads(_receive(there, is_alive))
    return reply


def _send(there: Connection, data: bytes, is_alive: Callable[[], bool] | None = None) -> None:
    ready = select.poll()
    ready.register(there.fileno(), select.POLLOUT)
    for part in (_LENGTH.pack(len(data)), data):
        left = memoryview(part)
        while left:
            if ready.poll(LOOK_SECONDS * 1_000):
                left = left[os.write(there.fileno(), left[:_WRITTEN]) :]
            elif is_alive is not None and not is_alive():
                raise EOFError


def _receive(there: Connection, is_alive: Callable[[], bool] | None = None) -> bytes:
    """Wait for the next message and return it.

    is_alive: returns whether the process at the other end runs; None: assume that it does.

    Raises EOFError if the connection is closed, or if the process has ended.
    """
    (length,) = _LENGTH.unpack(_read(there, _LENGTH.size, is_alive))
    return _read(there, length, is_alive)


def _read(there: Connection, length: int, is_alive: Callable[[], bool] | None) -> bytes:
    data = bytearray()
    while len(data) < length:
        if is_alive is None or connection.wait([there], LOOK_SECONDS):
            piece = os.read(there.fileno(), min(_READ, length - len(data)))
            if not piece:
                raise EOFError
            data += piece
        elif not is_alive():
            raise EOFError
    return bytes(data)


def result_of(reply: Done | BaseException) -> Done:
    """Return a reply of another process, or raise it if it is an exception."""
    if isinstance(reply, BaseException):
        raise reply
    return reply


def _pickled(error: BaseException) -> bytes:
    """Return the pickle of an exception. A note with this process's traceback is added to the
    exception.

    An exception that cannot be pickled becomes a RuntimeError with its type and message.
    """
    with suppress(Exception):
        error.add_note("".join(traceback.format_exception(error)))
        data = pickle.dumps(error)
        pickle.loads(data)
        return data
    return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))


def _end_with_parent() -> None:
    """Wait for the end of the auditing process. Then kill this worker and all processes that it
    started.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os.killpg(0, signal.SIGKILL)
