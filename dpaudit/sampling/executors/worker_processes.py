"""Worker processes on this machine: a `ProcessPoolExecutor` whose processes end with this one.

The processes are spawned, never forked: a fork would copy the state of random generators and locks.
If a process dies, the executor is made again. The bundles that were not drawn are sent again, with
a warning, but only if equal seeds gave equal outputs. Otherwise, repeating draws until the process
survives would keep only draws without a crash, and bias the audit.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from functools import partial
from multiprocessing import connection, resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.synchronize import Barrier, Lock
from pathlib import Path
from typing import Any

from dpaudit.errors import MechanismError, Name, UsageError
from dpaudit.processes.child import ending
from dpaudit.sampling.chunks import Chunk
from dpaudit.sampling.executors import WORKER, Setup, in_a_line
from dpaudit.sampling.executors.pools import Done, Pool, Recipe, draw
from dpaudit.watching import Watch

# Largest number of times in an audit that the executor is made again.
_MAX_RESTARTS = 3
# Seconds that processes have to end by themselves after the last task, before they are killed.
_GRACE_SECONDS = 2.0


class _Process(SpawnProcess):
    """A worker process, which starts with SIGINT blocked."""

    # Ctrl-C in a terminal reaches all processes, and is handled by the auditing process alone.

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{**settings, "name": WORKER})

    def start(self) -> None:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class _Context(SpawnContext):
    """The context in which an executor starts its processes. It keeps them in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[_Process] = []

    def Process(self, *args: Any, **settings: Any) -> _Process:  # type: ignore[override]  # noqa: N802  # as multiprocessing calls it
        process = _Process(*args, **settings)
        self.processes.append(process)
        return process

    def kill(self) -> None:
        """Kill the processes, and all processes that the mechanism has started in them."""
        for process in self.processes:
            if process.pid is not None:
                with suppress(ProcessLookupError, PermissionError):  # no group, or an empty one
                    os.killpg(process.pid, signal.SIGKILL)
                process.kill()

    def exit_code(self) -> int:
        """Return the exit code of the process that died. The executor ends all others itself."""
        codes = (process.exitcode for process in self.processes)
        by_itself = (code for code in codes if code is not None and code != -signal.SIGTERM)
        return next(by_itself, -signal.SIGTERM)


class ProcessPool(Pool):
    """A pool of new processes on this machine. Each process receives the recipe once, when it
    starts. Processes start with the first tasks, one with each task.

    A process leaves its results in a file of a temporary folder, and returns the path of the file.
    If it returned the results and were killed meanwhile, the executor would wait for the rest
    forever.
    """

    # The executor hands nearly all bundles on at once, and cannot cancel those. Before Python 3.12,
    # its thread fails on a cancelled future if a process ends at the same moment.
    cancels = False

    def __init__(self, setup: Setup, workers: int) -> None:
        """Make the pool without processes. Raise UsageError if no other process can make the
        mechanism."""
        self._may_repeat = setup.may_repeat
        self._restarts, self._is_settled = 0, False
        recipe = Recipe.of(setup.make)
        if b"__main__" in recipe.made and not hasattr(sys.modules["__main__"], "__file__"):
            raise UsageError(
                "the mechanism or a dataset is defined in no file, but in a notebook or at a "
                "prompt, so other processes cannot import it; put it into a file and import it, "
                "or use workers=1",
                code="not-picklable",
            )
        self._folder = tempfile.mkdtemp(prefix="dpaudit-")
        try:
            self._context, executor = _executor(recipe, workers, self._folder)
        except OSError:  # no semaphore can be made
            shutil.rmtree(self._folder)
            raise
        super().__init__(executor, recipe, workers)

    def submit(self, bundle: Sequence[Chunk[Any]]) -> Future[Path]:
        # The worker unpickles the bundle, so that an error there is raised here, too.
        return self._executor.submit(_draw, pickle.dumps(bundle))

    def result(self, future: Future[Path]) -> Done:
        file = future.result()
        done: Done = pickle.loads(file.read_bytes())
        file.unlink()
        return done

    def in_each(self, chunks: Sequence[Chunk[Any]], seconds: float | None = None) -> list[Done]:
        """Draw the chunks in every process, and return the results of all processes. Raises
        TimeoutError if this takes more than `seconds`."""
        data = pickle.dumps(chunks)
        futures = [self._executor.submit(_draw_in_each, data) for _ in range(self.workers)]
        if wait(futures, seconds).not_done:
            raise TimeoutError(f"processes had not started after {seconds} s")
        return [self.result(future) for future in futures]

    def settle(self) -> None:
        if not self._is_settled:
            with suppress(BrokenExecutor):  # as the next bundle reports
                self.in_each([])
        self._is_settled = True

    def restart(self, error: BrokenExecutor) -> None:
        self._end()  # all futures and processes have ended then
        how, self._restarts = ending(self._context.exit_code()), self._restarts + 1
        if self._restarts > _MAX_RESTARTS or not self._may_repeat(how):
            raise _died(how, self._restarts) from error
        self._context, self._executor = _executor(self._recipe, self.workers, self._folder)
        self._is_settled = False

    def close(self, *, in_order: bool) -> None:
        if not in_order:
            self._context.kill()  # a draw may never end
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self) -> None:
        killing = threading.Timer(_GRACE_SECONDS, self._context.kill)
        killing.start()
        self._executor.shutdown(cancel_futures=True)
        killing.cancel()
        self._context.kill()


def _executor(recipe: Recipe, workers: int, folder: str) -> tuple[_Context, ProcessPoolExecutor]:
    show = warnings.showwarning
    # If the command line has replaced `warnings.showwarning`, workers get the same function.
    is_ours = getattr(show, "__module__", "").startswith("dpaudit.")
    if is_ours:
        _start_tracker()
    context = _Context()
    settings = recipe, folder, context.Barrier(workers), context.Lock(), show if is_ours else None
    return context, ProcessPoolExecutor(workers, context, _begin, settings)


def _start_tracker() -> None:
    """Start the process that removes semaphores which this process leaves, unless it runs."""
    # Users can do nothing about its warning that it has removed some, as after SIGKILL.
    previous = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [previous, "ignore:resource_tracker"]))
    try:
        resource_tracker.ensure_running()
    finally:
        del os.environ["PYTHONWARNINGS"]
        if previous is not None:
            os.environ["PYTHONWARNINGS"] = previous


def _died(how: str, times: int) -> MechanismError:
    where = f"a worker process died while it drew ({how}; deaths in this audit: {times})"
    outcome = ", a crash of the mechanism counts as an outcome"
    cause = "; after another cause, such as too little memory, a run with "
    script = "; in a script, audits belong into `if __name__ == '__main__':`"
    isolated = where, "; with ", Name("isolate"), outcome
    resumed = cause, Name("journal"), " continues with ", Name("resume"), script
    return MechanismError(*isolated, *resumed, code="worker-died")


# In a worker process: the recipe for its sampler, the folder of its results, and the barrier at
# which all workers of the pool wait for each other.
_recipe: Recipe
_folder: str
_barrier: Barrier


def _begin(
    recipe: Recipe, folder: str, barrier: Barrier, lock: Lock, show: Callable[..., None] | None
) -> None:
    """Prepare a worker process. The process that gets `lock` logs warnings about slow calls."""
    global _recipe, _folder, _barrier
    _recipe, _folder, _barrier = recipe, folder, barrier
    Watch.may_warn = staticmethod(partial(lock.acquire, False))
    Watch.warns_of_steps = False
    if show is not None:
        warnings.showwarning = show
        os.dup2(1, 2)  # the command line shows each line that is written to 1 once
    os.setpgid(0, 0)  # one group, to kill all processes that the mechanism starts
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    shutil.rmtree(_folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


def _draw(data: bytes) -> Path:
    """Draw pickled chunks in a worker process, and return the path of the pickled results."""
    try:
        done = draw(_recipe, pickle.loads(data))
        with tempfile.NamedTemporaryFile(dir=_folder, delete=False) as file:
            pickle.dump(done, file)
        return Path(file.name)
    except SystemExit as error:
        raise MechanismError(in_a_line(error), code="worker-died") from error
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # noqa: BLE001  # classes of the user may raise any exception
            raise RuntimeError(in_a_line(error)) from error
        raise


def _draw_in_each(data: bytes) -> Path:
    """Draw pickled chunks when every worker has started, so that each worker gets one such task."""
    _barrier.wait()
    return _draw(data)
