"""What mechanisms print: not among the results, and not as often as they draw."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import dpaudit
from dpaudit.claims import PureDP
from dpaudit.cli.chatter import Chatter
from tests.programs import DPAUDIT

PRINTS = """
import ctypes, logging, os, sys, warnings

logging.basicConfig(level=logging.INFO)

def floods(x, rng):
    ctypes.PyDLL(None).printf(b"%s\\n", b"." * 10_000)
    return x + rng.laplace()

def prints(x, rng):
    print("a word")
    return x + rng.laplace()

def writes(x, rng):
    os.write(1, b"a word\\n")
    return x + rng.laplace()

def closes(x, rng):
    sys.stdout.close()
    return x + rng.laplace()

def removes(x, rng):
    sys.stdout = sys.stderr = None
    return x + rng.laplace()

def warns(x, rng):
    output = x + rng.laplace()
    warnings.warn(f"beware of {output}")
    return output

def logs(x, rng):
    logging.info("a word")
    logging.getLogger("mine").warning("a warning")
    return x + rng.laplace()

def complains(x, rng):
    print("a word", file=sys.stderr)
    return x + rng.laplace()

def errs(x, rng):
    os.write(2, b"a word\\n")
    return x + rng.laplace()

print("imported")
"""
INPUTS = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "2000")


def run(folder: Path, function: str, *more: str) -> subprocess.CompletedProcess[str]:
    (folder / "m.py").write_text(PRINTS)
    words = [DPAUDIT, "run", f"m.py:{function}", *INPUTS, *more]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(("function", "workers"), [("prints", "1"), ("writes", "2")])
def test_what_a_mechanism_prints_is_no_result(tmp_path: Path, function: str, workers: str) -> None:
    program = run(tmp_path, function, "--json", "-", "--quiet", "--workers", workers)
    assert program.returncode == 0
    assert json.loads(program.stdout)["audits"][0]["verdict"] == "NO VIOLATION FOUND"
    lines = program.stderr.splitlines()
    assert lines.count("a word") == 1
    assert lines.count("imported") == 1
    assert sum(line.startswith("the mechanism printed 2,") for line in lines) == 1


def test_native_code_that_holds_the_interpreter_lock_may_print(tmp_path: Path) -> None:
    program = run(tmp_path, "floods", "--quiet")
    assert program.stdout.startswith("NO VIOLATION FOUND")
    (line,) = [line for line in program.stderr.splitlines() if line.startswith(".")]
    assert line == "." * 500 + "…"


def test_warnings_that_differ_do_not_flood_a_log(tmp_path: Path) -> None:
    program = run(tmp_path, "warns", "--quiet", "--workers", "2")
    assert program.stdout.startswith("NO VIOLATION FOUND")
    assert len(program.stdout.splitlines()) == 1
    lines = program.stderr.splitlines()
    assert len(lines) == 21
    assert sum("UserWarning: beware of " in line for line in lines) in (18, 19)
    assert " 20 different lines " in lines[-1]


@pytest.mark.parametrize(
    ("function", "how", "messages"),
    [
        ("logs", ("--workers", "1"), 2),
        ("complains", ("--workers", "2"), 1),
        ("errs", ("--workers", "2"), 1),
        ("logs", ("--isolate",), 0),  # only the last words of a process that ends are kept
    ],
)
def test_log_messages_are_shown_once(
    tmp_path: Path, function: str, how: tuple[str, ...], messages: int
) -> None:
    program = run(tmp_path, function, "--quiet", *how)
    assert program.stdout.startswith("NO VIOLATION FOUND")
    lines = program.stderr.splitlines()
    assert sum("a w" in line for line in lines) == 2 * messages
    assert sum(line.startswith("the mechanism printed 2,") for line in lines) == messages


@pytest.mark.parametrize("function", ["closes", "removes"])
def test_a_mechanism_may_close_its_standard_output(tmp_path: Path, function: str) -> None:
    assert run(tmp_path, function).stdout.startswith("NO VIOLATION FOUND")


def test_from_python_nothing_is_redirected(capfd: pytest.CaptureFixture[str]) -> None:
    def prints(x: float) -> float:
        print("a word")  # noqa: T201  # what is tested
        return x

    dpaudit.audit(prints, 0, 0, claim=PureDP(1), samples=1000)
    assert capfd.readouterr().out.count("a word") > 1000


def test_lines_are_shown_once_and_counted() -> None:
    chatter = Chatter()
    assert chatter.heard(b"one\ntw") == b"one\n"
    assert chatter.heard(b"o\none\n") == b"two\n"
    assert chatter.heard(b"one\nlast") == b""
    assert chatter.summary() == b"last\nthe mechanism printed 3 times: one\n"
    assert Chatter().summary() == b""


def test_many_lines_are_only_counted() -> None:
    chatter = Chatter()
    lines = [b"%d\n" % number for number in range(1500)]
    assert b"".join(map(chatter.heard, lines)) == b"".join(lines[:20])
    assert b" 1,500 lines, of which 20 " in chatter.summary()


def test_a_line_without_end_is_cut_and_not_kept() -> None:
    chatter = Chatter()
    for _ in range(1000):
        assert chatter.heard(b"." * 1000) == b""
    shown = chatter.heard(b"\n")
    assert shown == b"." * 500 + "…\n".encode()


def test_no_line_is_a_command_of_github() -> None:
    chatter = Chatter()
    printed = b"  ::error::a\nb::c\r ::error::d\n##[error]\xff\n"
    shown = b"  \\x3a:error::a\nb::c\r \\x3a:error::d\n\\x23#[error]\xff\n"
    assert chatter.heard(printed) == shown
