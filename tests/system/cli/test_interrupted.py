"""Ctrl-C, SIGTERM, and an auditor that is killed: nothing is left that runs or is lost."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from psutil import STATUS_ZOMBIE, NoSuchProcess, Process

from tests.programs import DPAUDIT

HANGS = """
import os, subprocess, time
def hangs(x, size):
    if size > 100 and "DPAUDIT_WORKER" in os.environ:  # in a process of its own
        subprocess.Popen(["sleep", "600"])
    with open(os.environ["STARTED"], "a") as file:
        file.write("#" if size > 100 else "!")
    if size > 100:
        time.sleep(600)
    return [0.0] * size
"""
ISOLATED = ("--isolate", "--timeout", "10m")


@contextmanager
def auditing(folder: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], list[Process]]]:
    """Start an audit that hangs, wait until it does, and yield what ends as it does, and all its
    processes, the auditor first."""
    (folder / "mine.py").write_text(HANGS)
    started = folder / "started"
    inputs = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "1_000_000", "-q", *more)
    # A hash seed of the shell would stand in front of the command to continue.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    with subprocess.Popen(
        [DPAUDIT, "run", "mine.py:hangs", *inputs],
        cwd=folder,
        env=environment | {"STARTED": str(started)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        family: list[Process] = []
        try:
            wait_until(lambda: started.exists() or process.poll() is not None)
            assert process.poll() is None, process.communicate()
            hanging = 2 if "--workers" in more else 1
            wait_until(lambda: started.read_text().count("#") == hanging)
            time.sleep(0.5)  # for the draws of earlier calls to count
            family.append(Process(process.pid))
            family += family[0].children(recursive=True)
            yield process, family
        finally:
            process.kill()  # where the audit has not begun, too
            for one in filter(runs, family):
                one.kill()


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def runs(process: Process) -> bool:
    try:
        return process.is_running() and process.status() != STATUS_ZOMBIE
    except NoSuchProcess:
        return False


@pytest.mark.parametrize(
    "more",
    [
        (),
        ISOLATED,
        ("--workers", "2", *ISOLATED),
        ("--executor", "dask", "--workers", "2"),
    ],
)
def test_ctrl_c_ends_a_hanging_draw_and_all_processes(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    with auditing(tmp_path, *more) as (process, family):
        os.killpg(family[0].pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "interrupted" in said
        assert "Traceback" not in said
        wait_until(lambda: not any(map(runs, family)))


def test_files_of_an_earlier_run_are_not_left_in_the_place_of_this_one(tmp_path: Path) -> None:
    for name in ("r.json", "r.xml"):
        (tmp_path / name).write_text("an earlier run")
    to = ("--json", "r.json", "--report", "junit:r.xml")
    with auditing(tmp_path, *to) as (process, family):
        os.killpg(family[0].pid, signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    saved = json.loads((tmp_path / "r.json").read_text())
    (audit,) = saved["audits"]
    assert (audit["verdict"], audit["ending"]["kind"]) == ("NO VIOLATION FOUND", "interrupted")
    (certificate,) = audit["ending"]["certificates"]
    blocks = certificate["evidence"]["blocks"]
    drawn = sum(sum(map(sum, block["tally"]["counts"])) for block in blocks)
    assert 0 < audit["draws"] == drawn
    made = f"interrupted after {audit['draws']:,} of 1,000,000 draws"
    assert made in (tmp_path / "r.xml").read_text()
    for words, code in ((["report", "r.json"], 3), (["compare", "r.json", "r.json"], 2)):
        shown = subprocess.run([DPAUDIT, *words], cwd=tmp_path, capture_output=True)
        assert shown.returncode == code


@pytest.mark.parametrize(
    ("workers", "is_for_all"),
    [
        ((), False),  # where there is one process, all are this one
        (("--workers", "2", *ISOLATED), True),
    ],
)
def test_sigterm_ends_as_ctrl_c_does(
    tmp_path: Path, workers: tuple[str, ...], is_for_all: bool
) -> None:
    with auditing(tmp_path, *workers, "--journal", "kept") as (process, family):
        (os.killpg if is_for_all else os.kill)(family[0].pid, signal.SIGTERM)
        out, said = process.communicate(timeout=60)
        wait_until(lambda: not any(map(runs, family)))
    assert process.returncode == 143
    assert re.fullmatch(
        r"NO VIOLATION FOUND .* interrupted after [\d,]+ of 1,000,000 draws.*\n", out
    )
    lines = [line for line in said.splitlines() if line]
    assert lines[0] == "0 of 1 audit finished"
    assert lines[1].startswith("continue with: dpaudit run mine.py:hangs --d1 0 --d2 1 ")
    assert lines[1].endswith(" --journal kept --resume")
    assert lines[2:] == ["terminated"]


SHOWS = """
import os, signal
calls = 0
def shows(x):
    global calls
    calls += 1
    if calls == 3_000:
        os.kill(os.getpid(), signal.SIGTERM)
    return float(x)
"""


def test_a_refuted_claim_keeps_the_exit_code_of_the_signal(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SHOWS)
    words = ("mine.py:shows", "--d1", "0", "--d2", "1", "--epsilon", "1", "--workers", "1")
    more = ("--stop", "never", "--samples", "100000", "--json", "r.json", "--quiet")
    ended = subprocess.run(
        [DPAUDIT, "run", *words, *more], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == 143
    assert ended.stdout.startswith("VIOLATION")
    (audit,) = json.loads((tmp_path / "r.json").read_text())["audits"]
    ending = audit["ending"]
    assert (audit["verdict"], ending["kind"], ending["pairs"]) == ("VIOLATION", "interrupted", 1)
    assert audit["trace"] is None
    assert audit["epsilon_lower"] > 1
    assert "0 of 1 audit finished" in ended.stderr
    for flags, code in (((), 3), (("--rerun",), 2)):
        report = [DPAUDIT, "report", "r.json", "-q", *flags]
        assert subprocess.run(report, cwd=tmp_path, capture_output=True).returncode == code


BATCH = """
version: 1
defaults: {d1: 0, d2: 1, claim: {epsilon: 1}, samples: 1000}
audits:
  - {name: first, mechanism: 'mine.py:quick'}
  - {name: second, mechanism: 'mine.py:stubborn'}
"""
STUBBORN = """
import sys, time
calls = 0
def quick(x):
    return 0.0
def stubborn(x):
    global calls
    calls += 1
    try:
        print("started", flush=True)
        # The signal comes here, and ends it: never between two calls, which would catch nothing.
        time.sleep(60 if calls == 1 else 0)
    except:
        pass
    return 0.0
"""


# The signal decides only the message and the exit code.
@pytest.mark.parametrize(
    ("to", "number", "code", "word"),
    [
        ("results.json", signal.SIGTERM, 143, "terminated"),
        ("-", signal.SIGINT, 130, "interrupted"),
    ],
)
def test_what_is_finished_is_saved_whatever_the_mechanism_catches(
    tmp_path: Path, to: str, number: int, code: int, word: str
) -> None:
    (tmp_path / "mine.py").write_text(STUBBORN)
    (tmp_path / "batch.yaml").write_text(BATCH)
    with subprocess.Popen(
        [sys.executable, "-m", "dpaudit", "run", "batch.yaml", "--json", to],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        while process.stderr.readline() != "started\n":
            assert process.poll() is None
        process.send_signal(number)
        out, said = process.communicate(timeout=60)
    assert process.returncode == code
    finished, counted, *_, last = said.splitlines()[-4:]
    assert (finished, last) == ("1 of 2 audits finished", word)
    assert counted.startswith("the mechanism printed ")
    text = out if to == "-" else (tmp_path / to).read_text()
    assert [one["name"] for one in json.loads(text)["audits"]] == ["first"]


def test_workers_end_when_the_auditor_is_killed(tmp_path: Path) -> None:
    with auditing(tmp_path, "--workers", "2", *ISOLATED) as (process, family):
        assert len(family) > 6  # two workers, a process of each that draws, and one it started
        family[0].kill()
        process.wait()
        wait_until(lambda: not any(map(runs, family)))
        # The process that removes semaphores has nothing to say either.
        assert process.communicate(timeout=60) == ("", "")
