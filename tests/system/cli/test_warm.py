"""The programs that a warm process forks are those that a user starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import warm

ROOT = Path(__file__).parents[3]
STARTED = [str(Path(sys.executable).with_name("dpaudit"))]
INPUTS = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "2000")
LOOK = """
import json, os, random, scipy.special, signal, sys, tempfile, threading, warnings
print(json.dumps({
    "name": __name__, "main": vars(sys.modules["__main__"]) is globals(),
    "argv": sys.argv, "path": sys.path, "folder": os.getcwd(),
    "descriptors": sorted(one for one in range(200) if os.path.exists(f"/dev/fd/{one}")),
    "environment": {key: value for key, value in os.environ.items() if key != "PWD"},
    "signals": [str(signal.getsignal(one)) for one in range(1, 32)],
    "streams": [
        [one.encoding, one.errors, one.line_buffering, one.write_through, str(type(one.buffer))]
        for one in (sys.stdin, sys.stdout, sys.stderr)
    ],
    "rest": [str(warnings.filters), threading.active_count(), tempfile.tempdir, sys.flags[:]],
}))
"""


def run(words: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=ROOT, text=True, capture_output=True, timeout=300, **more)


def test_a_command_does_what_the_console_script_does() -> None:
    words = ("run", "mechanisms.laplace:laplace", *INPUTS, "--quiet")
    forked, started = run([*warm.dpaudit(), *words]), run([*STARTED, *words])
    assert forked.stdout + forked.stderr
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        (started.returncode, started.stdout, started.stderr)
    )


def test_a_program_begins_as_one_that_was_started(tmp_path: Path) -> None:
    more = {"env": {**os.environ, "PYTHONPATH": str(tmp_path), "MINE": "é"}, "input": ""}
    forked, started = (
        json.loads(run([*python, "-c", LOOK, "a", "b c"], **more).stdout)
        for python in (warm.python(), [sys.executable])
    )
    assert forked == started


def test_two_programs_have_random_numbers_of_their_own() -> None:
    code = "import numpy, random; print(random.random(), numpy.random.random())"
    first, second = (run([*warm.python(), "-c", code]).stdout.split() for _ in range(2))
    assert not set(first) & set(second)


def test_what_ends_a_program_is_told() -> None:
    assert run([*warm.python(), "-c", "import sys; sys.exit(7)"]).returncode == 7
    raised = run([*warm.python(), "-c", "1 / 0"])
    assert raised.returncode == 1
    assert raised.stderr.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT, signal.SIGINT, signal.SIGPIPE])
def test_a_signal_that_ends_a_program_is_told(number: int) -> None:
    code = f"import os, signal; signal.signal({number}, 0); os.kill(os.getpid(), {number})"
    code = code if number != signal.SIGKILL else "import os; os.kill(os.getpid(), 9)"
    ended = run([*warm.python(), "-c", code])
    assert (ended.returncode, ended.stdout, ended.stderr) == (-number, "", "")


def test_what_python_reads_at_its_start_is_refused() -> None:
    ended = run([*warm.dpaudit(), "schema"], env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert ended.returncode == 99
    assert ended.stderr.startswith("start a new program: ")
