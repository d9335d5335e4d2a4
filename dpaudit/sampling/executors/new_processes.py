"""New processes that draw again after a refutation, to detect noise that a process draws only once
(docs/method.md §11, "New processes").

Their draws are compared with those of the auditing process. Each new process is a Python
interpreter that imports the mechanism for itself. Its clock runs ahead by a number of hours of its
own. Every second one has a hash seed of its own; the others have that of the auditing process. The
processes are kept for later refutations of the same command or test run.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpaudit.hash_seed import VARIABLE
from dpaudit.processes.cores import cores, room_for
from dpaudit.processes.other_clock import SHIFT, shift_as_asked
from dpaudit.sampling.chunks import Learning, ToLearn
from dpaudit.sampling.executors import WORKER, in_a_line
from dpaudit.watching import Watch

if TYPE_CHECKING:
    from dpaudit.sampling.executors.pools import Recipe

# Number of new processes that repeat the draws of each refutation; 0: no draws are repeated.
PROCESSES = 8
# If the import of the mechanism takes more than `SLOW_IMPORT` seconds, only this number draws.
FEWER_PROCESSES, SLOW_IMPORT = 4, 2.0
# Least number of new processes that draw at the same time, also on one core.
_MIN_PROCESSES = 2
# DRAWING_SECONDS: seconds of drawing of all new processes of a refutation together.
# WAITING_SECONDS: longest wait for all of them, with imports, on a busy machine.
DRAWING_SECONDS, WAITING_SECONDS = 10.0, 120.0
# The processes take turns on the cores. All have this number times as long as all would need if
# each took as long as the first.
TIMES_OF_FIRST = 2.0
# Seconds between two checks for results, while new processes draw.
_LOOK_SECONDS = 0.1
# The clock of new process number k runs k times this number of seconds ahead. This is neither a
# whole number of minutes nor of seconds, so noise that is seeded by the time differs between
# processes, even if the time is rounded.
_CLOCK_SHIFT = 7 * 3600 + 13 * 60 + 17.371
# A text whose hash tells hash seeds apart.
_TEXT = "dpaudit"
_ENDED = "a new process ended before it had drawn"


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """The result of `NewProcesses.draw`.

    drawn: the draws of each process that drew in time, in the order of the chunks.
    alike: indices into (auditing process, *drawn) of the processes that share one hash seed. The
        auditing process is one of them if the environment stated its hash seed.
    why: reason why draws are missing; empty if none are.
    failed: whether any process could not draw; `drawn` is empty then.
    """

    drawn: list[Learning]
    alike: tuple[int, ...] = ()
    why: str = ""
    failed: bool = False


class NewProcesses:
    """Starts new processes when they are first needed, and keeps them until `close`."""

    def __init__(self) -> None:
        self._processes: dict[int, _NewProcess] = {}

    def draw(
        self,
        recipe: Recipe,
        chunks: Sequence[ToLearn],
        look: Callable[[], None] = lambda: None,
    ) -> Answers:
        """Return the draws of each chunk, each made in a new process of its own.

        If the first process needs more than `SLOW_IMPORT` seconds to import the mechanism, only the
        first `FEWER_PROCESSES` chunks are drawn. When time runs out, the remaining chunks are left
        out. This is after `DRAWING_SECONDS`, or later if the first process needed long; but at the
        latest after `WAITING_SECONDS`.

        look: called every 0.1 seconds or so. An exception that it raises stops the drawing.
        """
        wanted, begun, limit = len(chunks), time.monotonic(), WAITING_SECONDS
        at_once = min(wanted, max(_MIN_PROCESSES, min(cores(), room_for(wanted))))
        running: dict[Future[_Reply], int] = {}
        learnings: dict[int, Learning] = {}
        hashes: dict[int, int] = {-1: hash(_TEXT)}  # of the auditing process, and of each new one
        with ThreadPoolExecutor(at_once) as threads:
            try:
                begin = 0
                while len(learnings) < wanted and time.monotonic() - begun < limit:
                    while begin < wanted and len(running) < at_once:
                        try:
                            process = self._process(begin)
                        except OSError as error:  # no process can be started
                            return Answers([], why=in_a_line(error), failed=True)
                        running[threads.submit(process.ask, recipe, chunks[begin])] = begin
                        begin += 1
                    for future in wait(running, _LOOK_SECONDS, FIRST_COMPLETED).done:
                        number, reply = running.pop(future), future.result()
                        if isinstance(reply.drawn, str):
                            return Answers([], why=reply.drawn, failed=True)
                        learnings[number], hashes[number] = reply.drawn, reply.hash
                        if len(learnings) == 1:
                            is_slow = reply.importing > SLOW_IMPORT
                            wanted = min(wanted, FEWER_PROCESSES) if is_slow else wanted
                            rounds = -(-wanted // at_once)
                            time_of_all = TIMES_OF_FIRST * rounds * (time.monotonic() - begun)
                            limit = min(WAITING_SECONDS, max(DRAWING_SECONDS, time_of_all))
                    look()
            finally:
                for number in running.values():
                    self._processes.pop(number).close()
        numbers = sorted(learnings)
        shared = [hashes[number] for number in numbers if not _has_own_seed(number)]
        alike = tuple(
            index for index, number in enumerate([-1, *numbers]) if hashes[number] in shared
        )
        why = "" if len(learnings) >= wanted else late(len(learnings))
        return Answers([learnings[number] for number in numbers], alike, why)

    def close(self) -> None:
        """Kill all new processes."""
        while self._processes:
            self._processes.popitem()[1].close()

    def _process(self, number: int) -> _NewProcess:
        process = self._processes.get(number)
        if process is None or not process.is_running():
            process = self._processes[number] = _NewProcess(number)
        return process


@dataclass(frozen=True, slots=True, eq=False)
class _Reply:
    """The draws of a new process, or its error in words; the time of its import, and a hash."""

    drawn: Learning | str
    importing: float = 0.0
    hash: int = 0


class _NewProcess:
    """A new Python interpreter, which runs `serve`."""

    def __init__(self, number: int) -> None:
        seed = os.environ.get(VARIABLE, "")
        offset = number + 1 if _has_own_seed(number) else 0
        environment = {
            **os.environ,
            VARIABLE: str((int(seed) if seed.isdecimal() else 0) + offset),
            SHIFT: str((number + 1) * _CLOCK_SHIFT),
        }
        program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing does
        self._number, self._is_closed = number, False
        self._closing = threading.Lock()
        self._process = subprocess.Popen(  # noqa: S603  # this interpreter
            [sys.executable, *flags, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )

    def is_running(self) -> bool:
        return not self._is_closed and self._process.poll() is None

    def ask(self, recipe: Recipe, chunk: ToLearn) -> _Reply:
        """Have the process draw a chunk, and wait for its reply."""
        requests, replies = self._process.stdin, self._process.stdout
        assert requests is not None
        assert replies is not None
        try:
            request = pickle.dumps((recipe, chunk))
            prepared = _prepared(self._number, has_main=b"__main__" in recipe.made)
            requests.write(pickle.dumps((prepared, request)))
            requests.flush()
            reply: _Reply = pickle.load(replies)
        except (OSError, EOFError, pickle.UnpicklingError):
            self.close()
            return _Reply(_ENDED)
        except Exception as error:  # noqa: BLE001  # raised by pickling
            return _Reply(in_a_line(error))
        return reply

    def close(self) -> None:
        """Kill the process and all processes that it started."""
        with self._closing:
            if self._is_closed:  # another process may have its number now
                return
            self._is_closed = True
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()


def _has_own_seed(number: int) -> bool:
    """Return whether new process `number` has a hash seed of its own."""
    return number % 2 == 1


def _prepared(number: int, *, has_main: bool) -> dict[str, Any]:
    """Return the path, the folder and, if needed, the main module that a new process takes over."""
    from multiprocessing import spawn

    prepared = spawn.get_preparation_data(f"{WORKER}-new-{number}")
    dropped = {"authkey"} if has_main else {"authkey", "init_main_from_name", "init_main_from_path"}
    return {key: value for key, value in prepared.items() if key not in dropped}


def serve() -> None:
    """Draw chunks for the auditing process until it closes the connection. This is the main
    function of a new process; the mechanism may print."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nothing, stream)
    threading.Thread(target=_end_with_parent, args=(requests.fileno(),), daemon=True).start()
    # The auditing process reads replies until no process can write any.
    os.register_at_fork(after_in_child=lambda: os.close(replies.fileno()))
    shift_as_asked()  # before the mechanism is imported
    Watch.may_warn = staticmethod(lambda: False)
    Watch.warns_of_steps = False
    with suppress(EOFError):
        while True:
            pickle.dump(_answer(*pickle.load(requests)), replies)
            replies.flush()


def _answer(prepared: dict[str, Any], request: bytes) -> _Reply:
    from multiprocessing import process, spawn

    from dpaudit.sampling.executors.pools import draw

    begun = time.perf_counter()
    current: Any = process.current_process()
    try:
        current._inheriting = True  # an audit of the main module must not start processes
        try:
            spawn.prepare(prepared)
        finally:
            del current._inheriting
        recipe, chunk = pickle.loads(request)
        done = draw(recipe, [chunk])
        return _Reply(done.drawn[0], time.perf_counter() - begun - done.seconds, hash(_TEXT))
    except BaseException as error:  # noqa: BLE001  # the mechanism may raise any exception
        return _Reply(in_a_line(error))


def _end_with_parent(requests: int) -> None:
    """Kill this process and all that it started when the auditing process disconnects."""
    closed = select.poll()
    closed.register(requests, 0)
    closed.poll()
    os.killpg(0, signal.SIGKILL)


# The new processes that were given to each open `compared_with` context, in which audits compare
# refutations with draws of these processes; the innermost context comes last. There is usually one:
# a command or a test run opens a context for all of its audits.
_current: list[NewProcesses] = []


@contextmanager
def compared_with(processes: NewProcesses) -> Iterator[None]:
    """Return a context in which a refutation is compared with draws of `processes`."""
    _current.append(processes)
    try:
        yield
    finally:
        _current.remove(processes)


def current() -> NewProcesses | None:
    """Return the new processes of the innermost `compared_with` context, or None outside of one."""
    return _current[-1] if _current else None


def late(drawn: int) -> str:
    """Return the message that only `drawn` of the new processes, which may be 0, drew in time."""
    if drawn:
        return "the others had not drawn in time, on a busy machine or after a slow import"
    return f"none had drawn within {WAITING_SECONDS:g} s"
