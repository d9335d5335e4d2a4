"""New interpreters that repeat the draws of a refutation: what differs, how long, and their end."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.sampling.chunks import Learning, ToLearn
from dpaudit.sampling.executors import new_processes, pools
from dpaudit.sampling.executors.new_processes import NewProcesses, late
from dpaudit.sampling.executors.pools import Recipe
from dpaudit.sampling.sampler import Sampler
from dpaudit.targets.target import ImportedTarget

# Without NumPy, which each process would import for the mechanism once more.
MECHANISMS = """
import datetime, os, random, time

def seen(x):
    return [hash("salt") % 2**50, time.time(), datetime.datetime.now().timestamp(), os.getpid()]

def normal(x):
    print("drawn")
    return random.gauss(0, 1)

def ends(x):
    os._exit(3)

def hangs_later(x):
    with open(os.path.join(os.path.dirname(__file__), "pids"), "a") as file:
        print(os.getpid(), file=file)
    if float(os.environ["DPAUDIT_CLOCK_SHIFT"]) > 30_000:
        time.sleep(600)
    return random.gauss(0, 1)
"""


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Iterator[NewProcesses]:
    monkeypatch.setattr(new_processes, "DRAWING_SECONDS", 60.0)
    monkeypatch.setattr(new_processes, "SLOW_IMPORT", math.inf)
    with closing(NewProcesses()) as processes:
        yield processes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kept.py"
    path.write_text(MECHANISMS, "utf-8")
    return path


def maker(file: Path, name: str) -> Any:
    target = ImportedTarget(path=f"{file}:{name}")
    return partial(Sampler, target, (NeighbouringPair(0.0, 1.0),), 0)


def recipe(file: Path, name: str) -> Recipe:
    return Recipe.of(maker(file, name))


def chunks(count: int) -> list[ToLearn]:
    return [ToLearn((0, 4, number), 5 + number) for number in range(count)]


def columns(learning: Learning) -> list[list[float]]:
    return [column.numbers.tolist() for column in learning.fresh.release().outcomes.columns]


def first_draws(file: Path, others: NewProcesses, count: int) -> list[list[float]]:
    """Return the entries of the first draw of each process."""
    draws = []
    for learning in others.draw(recipe(file, "seen"), chunks(count)).drawn:
        outcomes = learning.fresh.release().outcomes
        names = [f"output[{place}]" for place in range(4)]
        draws.append([float(column.numbers[0]) for column in outcomes.named(names)])
    return draws


@pytest.mark.parametrize("seed", ["7", "random"])
def test_each_process_has_a_clock_of_its_own_and_every_second_a_hash_seed(
    file: Path, others: NewProcesses, monkeypatch: pytest.MonkeyPatch, seed: str
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", seed)
    # As in a process that began without a stated seed.
    monkeypatch.setattr(new_processes, "hash", lambda _: -1, raising=False)
    assert others.draw(recipe(file, "seen"), chunks(3)).alike == (1, 3)
    first = first_draws(file, others, 3)
    hashes, clocks, dates, processes = zip(*first, strict=True)
    assert hashes[0] == hashes[2]
    assert hashes[0] != hashes[1]
    assert len({*processes, os.getpid()}) == 4
    now = time.time()
    for number, (clock, date) in enumerate(zip(clocks, dates, strict=True), start=1):
        assert clock - now == pytest.approx(number * new_processes._CLOCK_SHIFT, abs=600)
        assert date == pytest.approx(clock, abs=600)
    again = first_draws(file, others, 3)
    assert [draw[3] for draw in again] == [*processes]


def test_they_draw_as_this_process_does_whatever_the_mechanism_prints(
    file: Path, others: NewProcesses
) -> None:
    here = maker(file, "normal")()
    answers = others.draw(recipe(file, "normal"), chunks(2))
    assert [columns(learning) for learning in answers.drawn] == [
        columns(here.draw(chunk)) for chunk in chunks(2)
    ]
    assert (answers.why, answers.failed) == ("", False)


def test_a_process_that_ends_is_told_and_replaced(file: Path, others: NewProcesses) -> None:
    answers = others.draw(recipe(file, "ends"), chunks(1))
    why = "a new process ended before it had drawn"
    assert (answers.drawn, answers.why, answers.failed) == ([], why, True)
    assert len(others.draw(recipe(file, "normal"), chunks(1)).drawn) == 1


def test_an_exception_class_of_the_user_is_not_imported_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: NewProcesses
) -> None:
    source = "class OwnError(Exception): pass\n\ndef fails():\n    raise OwnError('no luck')\n"
    (tmp_path / "own_error.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    sampler = b"cown_error\nfails\n."  # pickled by name, without an import here
    answers = others.draw(Recipe("own", sampler, ("", 0, 0), pools._versions()), chunks(1))
    assert (answers.why, answers.failed) == ("OwnError: no luck", True)
    assert "own_error" not in sys.modules


def is_gone(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def all_gone(pids: Path, processes: int, seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = {int(line) for line in pids.read_text().split()} if pids.exists() else set()
        if len(found) == processes and all(map(is_gone, found)):
            return True
        time.sleep(0.02)
    return False


def test_processes_that_are_late_are_killed(
    file: Path, others: NewProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of them draws at once, the second does not end."""
    monkeypatch.setattr("dpaudit.sampling.executors.new_processes.cores", lambda: 1)
    monkeypatch.setattr(new_processes, "DRAWING_SECONDS", 0.1)
    monkeypatch.setattr(new_processes, "TIMES_OF_FIRST", 3.0)
    answers = others.draw(recipe(file, "hangs_later"), chunks(2))
    assert (len(answers.drawn), answers.why, answers.failed) == (1, late(1), False)
    others.close()
    assert all_gone(file.with_name("pids"), 2)


SCRIPT = """
import sys
sys.path[:0] = {paths}
from tests.system.processes.test_new_processes import Path, chunks, recipe
from dpaudit.sampling.executors.new_processes import NewProcesses
NewProcesses().draw(recipe(Path({file!r}), "hangs_later"), chunks(2))
"""


def test_they_end_with_a_program_that_is_killed(file: Path) -> None:
    paths: Sequence[str] = [str(Path(__file__).parents[3])]
    script = file.with_name("script.py")
    script.write_text(SCRIPT.format(paths=paths, file=str(file)))
    pids = file.with_name("pids")
    with subprocess.Popen([sys.executable, str(script)]) as program:
        deadline = time.monotonic() + 60
        while len(set(pids.read_text().split()) if pids.exists() else ()) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        program.kill()
    assert all_gone(pids, 2)


OF_A_SCRIPT = """
import random
from contextlib import closing
import dpaudit
from dpaudit.sampling.executors.new_processes import NewProcesses, compared_with

print("started")

def leaks(x):
    return x + random.expovariate(4) - random.expovariate(4)

if __name__ == "__main__":
    with closing(NewProcesses()) as processes, compared_with(processes):
        result = dpaudit.audit(leaks, 0, 1, dpaudit.PureDP(1.0), samples=2_000, no_trace=True)
    (certificate,) = result.certificates
    print(certificate.redrawn.processes, certificate.redrawn.note)
"""


def test_a_mechanism_of_a_script_is_drawn_by_processes_that_import_the_script(
    tmp_path: Path,
) -> None:
    script = tmp_path / "script.py"
    script.write_text(OF_A_SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300
    )
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert first == "started"
    assert int(second.split()[0]) >= 2
