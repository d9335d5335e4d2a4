"""However the program ends: exit code 0 or 1 is a verdict, and what was finished is not lost."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dpaudit.cli.commands import cli
from tests.programs import DPAUDIT

MECHANISMS = """
import atexit, ctypes, os, signal, sys, threading, time

def laplace(x, rng):
    return x + rng.laplace()

def leaves(x):
    os._exit(0)

def leaves_in_spite(x):
    try:
        os._exit(0)
    except BaseException:
        return 0.0

def exits_in_c(x):
    ctypes.CDLL(None).exit(x)

def aborts(x):
    os.abort()

def crashes(x):
    ctypes.string_at(0)

def leaves_at_the_end(x, rng):
    if rng.random() < 0.01:
        atexit.register(os._exit, 7)
    return x + rng.laplace()

def raises_interrupt(x):
    raise KeyboardInterrupt("mine")

def starts_threads(x, rng):
    if "mine" not in [thread.name for thread in threading.enumerate()]:
        threading.Thread(target=time.sleep, args=(600,), name="mine").start()
    return x + rng.laplace()

class Odd(BaseException):
    pass

def raises_odd(x):
    raise Odd("of its own")

def presses_ctrl_c(x):
    os.kill(os.getpid(), signal.SIGINT)

def hangs_up(x, rng):
    os.kill(os.getpid(), signal.SIGHUP)
    return x + rng.laplace()

def takes_ctrl_c(x):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.kill(os.getpid(), signal.SIGINT)

def has_children(x, rng):
    if rng.random() < 0.005:  # each copies the memory of the program
        child = os.fork()
        if child == 0:
            (os._exit, sys.exit, ctypes.CDLL(None).exit)[os.getpid() % 3](7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        with open("children", "a") as file:
            file.write("!")
    return x + rng.laplace()
"""
LIMIT = 1_500_000_000
INPUTS = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "2000", "--quiet")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.py").write_text(MECHANISMS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def dpaudit(*words: str, setup: str = "", **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a program."""
    code = f"{setup}\nfrom dpaudit.cli.main import main; main()"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.run([sys.executable, "-c", code, *words], text=True, timeout=120, **pipes)


def inside(*words: str) -> Result:
    """Run a command in this process, for errors that end no process."""
    return CliRunner().invoke(cli, words, prog_name="dpaudit")


def audit(function: str, *words: str, **more: Any) -> Any:
    return dpaudit("run", f"m.py:{function}", *INPUTS, *words, **more)


def batch(folder: Path, *functions: str) -> str:
    lines = [f"  - {{name: {one}, mechanism: 'm.py:{one}'}}" for one in functions]
    head = "version: 1\ndefaults: {d1: 0, d2: 1, claim: {epsilon: 1}, samples: 2000}\naudits:\n"
    (folder / "batch.yaml").write_text(head + "\n".join(lines))
    return "batch.yaml"


def names(text: str) -> list[str]:
    return [one["name"] for one in json.loads(text)["audits"]]


@pytest.mark.parametrize("function", ["leaves_in_spite", "exits_in_c"])
def test_a_mechanism_that_ends_the_process_gets_no_verdict(function: str) -> None:
    ended = audit(function)
    message = ended.stdout + ended.stderr
    assert ended.returncode == 3
    assert len(message.splitlines()) == 1
    assert function in message
    assert ("exit in native code" if function == "exits_in_c" else "os._exit(0)") in message
    assert "isolate: true (--isolate)" in message


@pytest.mark.parametrize(
    ("function", "number"), [("crashes", signal.SIGSEGV), ("aborts", signal.SIGABRT)]
)
def test_a_crash_ends_the_program_by_its_signal(folder: Path, function: str, number: int) -> None:
    file = batch(folder, "laplace", "has_children", function, "leaves")
    ended = dpaudit("run", file, "--json", "r.json")
    assert ended.returncode == -number
    assert f" in {function}\n" in ended.stderr  # the frame that faulthandler prints
    assert names((folder / "r.json").read_text()) == ["laplace", "has_children"]
    reported = inside("report", "r.json")
    assert reported.exit_code == 3
    assert reported.stderr.startswith("error: r.json: 2 of 4 audits: ")


@pytest.mark.parametrize(
    ("function", "what", "workers"),
    [
        ("raises_interrupt", "KeyboardInterrupt: mine (this was ", "1"),
        ("raises_odd", "Odd: of its own, which", "2"),
    ],
)
def test_what_ends_a_program_does_not_end_the_others(
    folder: Path, function: str, what: str, workers: str
) -> None:
    file = batch(folder, function, "laplace")
    ended = dpaudit("run", file, "--quiet", "--workers", workers)
    assert (ended.returncode, ended.stderr) == (3, "")
    first, second = (line.split() for line in ended.stdout.splitlines()[:2])
    assert first == ["ERROR", function]
    assert second[:4] == ["NO", "VIOLATION", "FOUND", "laplace"]
    said = " ".join(ended.stdout.split())
    assert f"{function}: ERROR " in said
    assert f" raised {what}" in said
    assert ("not Ctrl-C" in said) is (function == "raises_interrupt")
    assert "isolate: true (--isolate)" in said


@pytest.mark.parametrize("function", ["presses_ctrl_c", "takes_ctrl_c"])
def test_ctrl_c_in_a_mechanism_is_still_ctrl_c(folder: Path, function: str) -> None:
    ended = dpaudit("run", batch(folder, function, "laplace"), "--quiet")
    assert (ended.returncode, ended.stdout) == (130, "")
    assert "0 of 2 audits finished" in ended.stderr


def test_workers_that_end_are_no_verdict_either() -> None:
    ended = audit("aborts", "--workers", "2")
    assert ended.returncode == 3
    assert ended.stdout.startswith("ERROR  aborts: a worker process ")
    assert "--isolate" in ended.stdout


def test_a_batch_survives_os_exit(folder: Path) -> None:
    file = batch(folder, "laplace", "leaves", "has_children")
    ended = dpaudit("run", file, "--json", "results.json")
    assert ended.returncode == 3
    text = Path("results.json").read_text()
    assert names(text) == ["laplace", "leaves", "has_children"]
    verdicts = [one["verdict"] for one in json.loads(text)["audits"]]
    assert verdicts == ["NO VIOLATION FOUND", "ERROR", "NO VIOLATION FOUND"]


def test_a_mechanism_may_not_change_the_exit_code_of_its_verdict() -> None:
    ended = audit("leaves_at_the_end")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_threads_of_a_mechanism_do_not_keep_the_program(folder: Path) -> None:
    ended = audit("starts_threads", "--json", "results.json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("NO VIOLATION FOUND")
    assert names((folder / "results.json").read_text()) == ["starts_threads"]


def _closed(*numbers: int) -> Callable[[], None]:
    def close() -> None:
        for number in numbers:
            os.close(number)

    return close


# A limit holds for whatever is written after it: it need not come before Python starts.
NOTHING_MAY_GROW = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"


COMMANDS = [("run", "m.py:laplace", *INPUTS), ("list", "definitions")]


def test_a_closed_standard_output() -> None:
    ended = dpaudit(*COMMANDS[0], preexec_fn=_closed(1))
    assert ended.returncode == 2
    assert re.fullmatch(r"error: .* standard output: .* > /dev/null\n", ended.stderr)


def test_nothing_is_open() -> None:
    assert audit("laplace", preexec_fn=_closed(0, 1, 2)).returncode == 2
    ended = dpaudit("report", "-", preexec_fn=_closed(0))
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: standard input ")


def test_ctrl_c_while_the_program_starts() -> None:
    setup = (
        "import os, signal, sys\nclass Interrupts:\n    def find_spec(self, name, *more):\n"
        "        if name == 'numpy': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts())"
    )
    ended = audit("laplace", setup=setup)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


def test_a_working_directory_that_is_gone(folder: Path) -> None:
    gone = folder / "gone"
    gone.mkdir()
    ended = audit("laplace", setup=f"import os; os.rmdir({str(gone)!r})", cwd=gone)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1
    assert "internal" not in ended.stderr


def test_a_hang_up_ends_the_program_unless_it_was_ignored_before() -> None:
    setup = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"  # as nohup does
    assert audit("hangs_up").returncode == 129
    assert audit("hangs_up", setup=setup).returncode == 0


@pytest.mark.parametrize("words", COMMANDS, ids=["run", "list"])
def test_a_full_standard_output(words: tuple[str, ...], folder: Path) -> None:
    with (folder / "full").open("w") as file:
        ended = dpaudit(*words, stdout=file, setup=NOTHING_MAY_GROW)
    assert ended.returncode == 3
    assert re.fullmatch(r"error: .* standard output: File too large\n", ended.stderr)


@pytest.mark.parametrize(("function", "code"), [("laplace", 0), ("nothing", 2)])
def test_standard_error_decides_nothing(function: str, code: int) -> None:
    with open("full", "w") as full:  # noqa: PTH123
        ended = audit(function, stderr=full, setup=NOTHING_MAY_GROW)
    assert ended.returncode == code


def _deep(opening: str, closing: str = "", inside: str = "1") -> str:
    return opening * 3000 + inside + closing * 3000


# Commands, each with the file that it names.
DEEP: list[tuple[tuple[str, ...], str]] = [
    (("run", "m.py:laplace", "--d1", _deep("[", "]"), "--d2", "1"), "--d1"),
    (("run", "m.py:laplace", "--d1", "@deep.json", "--d2", "1"), "@deep.json"),
    (("run", "m.py:laplace", "--d1", "@map.yaml", "--d2", "1"), "@map.yaml"),
    (("run", "deep.yaml"), "deep.yaml:1"),
    (("report", "deep.json"), "deep.json"),
    (("bound", "deep.jsonl", "other.jsonl"), "deep.jsonl: line 1"),
]


def test_what_is_nested_too_deeply(folder: Path) -> None:
    for file in ("deep.json", "deep.jsonl", "other.jsonl", "deep.yaml"):
        (folder / file).write_text(_deep("[", "]"))
    # So deep that the reader of YAML would end the process.
    (folder / "map.yaml").write_text("{a: " * 300_000)
    for words, named in DEEP:
        claim = () if words[0] == "report" else ("--epsilon", "1")
        ended = inside(*words, *claim)
        assert (ended.exit_code, ended.stdout) == (2, "")
        assert "nested" in ended.stderr
        assert named in ended.stderr
        assert len(ended.stderr.splitlines()) == 1


READS = {
    "a result": ("report", "in.json"),
    "audits": ("run", "in.yaml"),
    "a dataset": ("run", "m.py:laplace", "--d1", "@in.json", *INPUTS[2:]),
    "draws": ("bound", "in.csv", "m.csv", "--epsilon", "1"),
    "a journal": ("run", "m.py:laplace", *INPUTS, "--journal", "in.json"),
}


@pytest.mark.parametrize(
    ("name", "kind"), [(name, ("device", "pipe")[n % 2]) for n, name in enumerate(READS)]
)
def test_what_is_no_file_is_not_waited_for(folder: Path, name: str, kind: str) -> None:
    for suffix in ("json", "yaml", "csv"):
        if kind == "pipe":
            os.mkfifo(folder / f"in.{suffix}")
        else:
            (folder / f"in.{suffix}").symlink_to("/dev/zero")
    ended = inside(*READS[name])
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert len(ended.stderr.splitlines()) == 1
    assert kind in ended.stderr or name == "a journal"


def _fed(script: str) -> subprocess.CompletedProcess[str]:
    """Run `dpaudit report`, with what a shell feeds it."""
    words = ["bash", "-c", script.replace("REPORT", f"{shlex.quote(DPAUDIT)} report --quiet")]
    return subprocess.run(words, text=True, capture_output=True, timeout=120)


def test_pipes_that_end_are_read() -> None:
    audit("laplace", "--json", "r.json")
    feeds = ("REPORT <(sleep 0.2; cat r.json)", "REPORT - < r.json")
    named = "mkfifo p; cat r.json > p & REPORT p"
    for feed in (*feeds, "cat r.json | REPORT /dev/stdin", named):
        ended = _fed(feed)
        assert (ended.returncode, ended.stderr) == (0, ""), feed
        assert ended.stdout.startswith("NO VIOLATION FOUND")


def test_a_pipe_that_does_not_end() -> None:
    ended = _fed("yes | REPORT -")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "268,435,456 bytes" in ended.stderr


def test_a_file_that_memory_does_not_hold(folder: Path) -> None:
    with (folder / "large.yaml").open("wb") as file:
        file.truncate(2 * LIMIT)  # zeros that take no room on the disk
    limits = (LIMIT, LIMIT)
    ended = dpaudit(
        "run", "large.yaml", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limits)
    )
    assert ended.returncode in (2, 3)
    assert ended.stdout == ""
    assert "out of memory" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
