"""Programs that start at once: forks of a process that has imported what they import.

`warm.dpaudit()` stands for the words of the command `dpaudit`, `warm.python()` for an interpreter
that takes `-c`, code and arguments: both are given to subprocess.run as any program is. What is
not tested with them: how Python itself starts (options, PYTHON... variables, encodings, closed
streams) and is taken apart at the end, what is imported, what differs between two seeds of hashes,
limits that are set between fork and exec, and signals, which the client does not pass on.
"""

from __future__ import annotations

import atexit
import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import warm_process

# The least that a program can start with: it hands over its arguments, its environment, its streams
# and its folder, and ends as the fork does. The first lines are those of pip's scripts, for a path
# to Python with spaces in it.
_CLIENT = """\
#!/bin/sh
'''exec' '{python}' -IS "$0" "$@"
' '''
import _signal, _socket, array, marshal, os, sys
connection = _socket.socket(_socket.AF_UNIX)
connection.connect({place!r})
descriptors = array.array("i", [0, 1, 2, os.open(".", os.O_RDONLY)])
connection.sendmsg([b"!"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)])
connection.sendall(marshal.dumps([sys.argv, dict(os.environ)]))
told = connection.recv(100)
code = marshal.loads(told) if told else {failure}
if code < 0:
    if -code != _signal.SIGKILL:
        _signal.signal(-code, _signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


def dpaudit() -> list[str]:
    """Return the words of `dpaudit`, as the console script runs it."""
    return [str(folder() / "dpaudit")]


def python() -> list[str]:
    """Return the words of an interpreter; the next must be `-c`."""
    return [str(folder() / "warm-python")]


@functools.cache
def folder(path: str | None = None) -> Path:
    """Return a folder with the programs of a warm process, which lives as long as this one.

    path: PYTHONPATH, of a process for another copy of the package.
    """
    place = Path(tempfile.mkdtemp(prefix="warm-"))
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # threads do not outlive a fork
    if path is not None:
        environment["PYTHONPATH"] = path
    process = subprocess.Popen(
        [sys.executable, warm_process.__file__, str(place / "socket")],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    atexit.register(_end, process, place)
    client = _CLIENT.format(
        python=sys.executable, place=str(place / "socket"), failure=warm_process.FAILURE
    )
    for name in ("dpaudit", "warm-python"):
        (place / name).write_text(client)
        (place / name).chmod(0o700)
    return place


def _end(process: subprocess.Popen[bytes], place: Path) -> None:
    process.communicate()  # closes its input, which ends it
    for one in place.iterdir():
        one.unlink()
    place.rmdir()
