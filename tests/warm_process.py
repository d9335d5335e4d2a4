"""The warm process: it imports once what `dpaudit` imports, and forks for each program asked of it.

A script of its own, which warm.py starts. A forked program starts like a
new one: with its own arguments, environment, working directory, standard streams, signals,
`__main__` and `sys.path`, and the code of `python -c` or of the console script. It inherits the
settings that Python fixes at its start: options, encodings, the hash seed.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import marshal
import os
import select
import signal
import socket
import sys
import tempfile
import threading
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

PRELOADED = (
    *(f"dpaudit.cli.{name}" for name in ("commands", "run", "bound", "explain", "report", "list")),
    *("dpaudit.auditing.engine", "dpaudit.auditing.recheck", "dpaudit.cli.batch"),
    *("dpaudit.cli.batch", "dpaudit.config.loading", "dpaudit.reports.json", "numpy"),
    *("scipy.special", "rich.console", "rich.progress", "rich.table", "yaml"),
    *("dpaudit.cli.search", "dpaudit.cli.sensitivity", "dpaudit.tracing.trace"),
    *("dpaudit.tracing.forked_trace", "dpaudit.attacks.scorers", "dpaudit.attacks.trees"),
    *("dpaudit.auditing.journal", "dpaudit.stats.trinomial", "dpaudit.library_claims"),
    "hypothesis.strategies",  # takes as long as all others, wherever pairs are drawn at random
)
# Variables that Python reads when it starts; where one of them differs, a new program must start.
_AT_START = ("PYTHON", "LC_", "LANG")
_PATH = "PYTHONPATH"
# Time limit of the trace that follows a violation, in place of two seconds.
_FOR_A_TRACE = 10.0
# The exit code where there is no program: none that dpaudit has.
FAILURE = 99


def serve() -> tuple[types.CodeType, dict[str, Any]]:
    """Fork for whoever connects, until standard input ends; return, in each program, its code."""
    for name in PRELOADED:
        importlib.import_module(name)
    # What the first audit of a program makes, and keeps for others.
    ramps, ones = sys.modules["dpaudit.levels.piecewise_logit"], sys.modules["numpy"].ones
    for levels in (16, 32, 64):
        ramps.log_odds(ones((levels, 2), dtype=int))
    # On a busy machine a report must not be without its cause.
    sys.modules["dpaudit.tracing.forked_trace"].__dict__["TRACE_SECONDS"] = _FOR_A_TRACE
    # The default number of draws must not depend on the load of the machine.
    sys.modules["dpaudit.auditing.pace"].__dict__["clock"] = lambda: 0.0
    # Violations are compared with new processes by programs that are started, and in their tests.
    sys.modules["dpaudit.sampling.executors.new_processes"].__dict__["PROCESSES"] = 0
    # Neither of these may be inherited by a fork.
    assert threading.active_count() == 1
    assert sys.platform != "linux" or len([*Path("/proc/self/task").iterdir()]) == 1
    assert tempfile.tempdir is None
    gc.collect()
    gc.freeze()  # else the end of each program would go through all that was imported here
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a developer's Ctrl-C, the programs hear
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen()
    print("ready", flush=True)  # noqa: T201  # what the starter waits for
    awaited: list[Any] = [listener, 0]
    while listener in select.select(awaited, [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            _, descriptors, *_ = socket.recv_fds(connection, 1, 4)
            with connection.makefile("rb") as request:
                words, environment = marshal.load(request)
            program = os.fork()
            if program == 0:
                listener.detach(), connection.detach()
                return _become(words, environment, descriptors)
            _watch(program, connection, descriptors)
        connection.close()
        _reap(os.WNOHANG)
    _reap(0)
    sys.exit()


def _reap(how: int) -> None:
    """Wait for programs, so that their processor time counts as this process's."""
    try:
        while os.waitpid(-1, how)[0]:
            pass
    except ChildProcessError:
        pass


def _watch(program: int, connection: socket.socket, descriptors: list[int]) -> NoReturn:
    """Tell how a program ends, or kill it when the one who wanted it has gone."""
    for one in descriptors:
        os.close(one)
    awake, waking = os.pipe()
    awaited: list[Any] = [awake, connection]
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    ended, status = os.waitpid(program, os.WNOHANG)
    while not ended:
        if connection in select.select(awaited, [], [])[0]:
            os.kill(program, signal.SIGKILL)
        else:
            os.read(awake, 1)
        ended, status = os.waitpid(program, os.WNOHANG)
    connection.sendall(marshal.dumps(os.waitstatus_to_exitcode(status)))
    os._exit(0)


def _become(
    words: list[str], environment: dict[str, str], descriptors: list[int]
) -> tuple[types.CodeType, dict[str, Any]]:
    """Make this process that of a program; return its code and the names of its `__main__`."""
    *streams, folder = descriptors
    os.fchdir(folder)
    for number, one in enumerate(streams):
        os.dup2(one, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    sys.stdin = sys.__stdin__ = _reopened(sys.stdin, 0, "rb")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _reopened(sys.stdout, 1, "wb")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _reopened(sys.stderr, 2, "wb")  # type: ignore[misc]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.modules["numpy"].random.seed()  # from the system, as `random` does by itself

    before, now = (
        {key: value for key, value in one.items() if key.startswith(_AT_START) and key != _PATH}
        for one in (os.environ, environment)
    )
    if before != now:
        print(f"start a new program: {before} was, {now} is", file=sys.stderr)  # noqa: T201
        sys.exit(FAILURE)
    searched = [path for path in sys.path[1:] if path not in _searched_first(os.environ)]
    os.environ.clear()
    os.environ.update(environment)

    main = types.ModuleType("__main__")
    if Path(words[0]).name == "dpaudit":
        script = Path(sys.executable).with_name("dpaudit")
        first, sys.argv, text = str(script.parent), [str(script), *words[1:]], script.read_text()
        main.__file__ = str(script)
    else:
        first, sys.argv, text = "", ["-c", *words[3:]], words[2]
    sys.path[:] = [first, *_searched_first(environment), *searched]
    sys.modules["__main__"] = main
    return compile(text, getattr(main, "__file__", "<string>"), "exec"), main.__dict__


def _searched_first(environment: Mapping[str, str]) -> list[str]:
    paths = environment.get(_PATH, "").split(os.pathsep)
    return [str(Path(one).absolute()) for one in paths if one]


def _reopened(stream: Any, number: int, mode: str) -> io.TextIOWrapper:
    """Return a standard stream as Python makes it."""
    size = 0 if number and stream.write_through else -1  # PYTHONUNBUFFERED
    binary: Any = open(number, mode, size, closefd=False)  # noqa: SIM115  # it stays open
    return io.TextIOWrapper(
        binary,
        stream.encoding,
        stream.errors,
        line_buffering=not stream.write_through and (number == 2 or os.isatty(number)),
        write_through=stream.write_through,
    )


def _end(code: int) -> NoReturn:
    """End as Python does, but for taking all modules apart: that writes to the memory which is
    shared with the warm process, and costs more than all else that a short program does."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except OSError:
        sys.exit(code)  # Python says so, with a code of its own
    os._exit(code & 0xFF)


if __name__ == "__main__":
    code, names = serve()
    try:
        exec(code, names)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        _end(end.code or 0)
    _end(0)
