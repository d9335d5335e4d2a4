"""Audits whose processes are killed at random moments, until they come to an end: is the result
that of an undisturbed audit?

python -m benchmarks.fault_drill [--runs 200] [--seed 0] [--first RUN]

Every run is an audit with a journal. At random moments the auditing process gets a SIGKILL, and the
audit is resumed by another one, or a worker process gets it, and the audit has to go on by itself,
or to give up with an error that says why, and then to be resumed. Processes of isolated mechanisms
are left alone: one that dies is an outcome. Linux only: processes are found under /proc.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dpaudit
from benchmarks.throughput import laplace as single
from dpaudit import ApproximateDP, PureDP
from dpaudit.reports.json import document, entry
from mechanisms.laplace import laplace as batch

_BATCH = {"mechanism": batch, "claim": PureDP(1.0), "samples": 10_000_000}
_SINGLE = {"mechanism": single, "claim": PureDP(1.0), "samples": 200_000}
# Name -> arguments of an audit, and how many of ten runs are of this kind.
AUDITS: dict[str, tuple[dict[str, Any], int]] = {
    "batch": (_BATCH, 2),
    "refuted": (_BATCH | {"claim": PureDP(0.97)}, 1),
    "approximate": (_SINGLE | {"claim": ApproximateDP(0.9, 0.05)}, 1),
    "isolated": (_SINGLE | {"isolate": True}, 1),
    "two workers": (_BATCH | {"workers": 2, "samples": 30_000_000}, 3),
    "isolated, two workers": (_SINGLE | {"isolate": True, "workers": 2}, 2),
}
# Seconds that whatever an auditing process has started may outlive it.
_ORPHANED = 10.0
_WORKER = b"multiprocessing.spawn"
_FAILED = 3


@dataclass(frozen=True, slots=True)
class Drill:
    """What became of a run: the processes killed, by kind, and what was wrong."""

    killed: Counter[str]
    wrong: str | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="begin with the run of this number")
    given = parser.parse_args()
    kinds = [name for name, (_, share) in AUDITS.items() for _ in range(share)]
    with tempfile.TemporaryDirectory() as folder:
        whole = {name: undisturbed(AUDITS[name][0], Path(folder)) for name in AUDITS}
        drills: list[Drill] = []
        for number in range(given.first, given.first + given.runs):
            name = kinds[number % len(kinds)]
            chance = random.Random(f"{given.seed} {number}")
            place = Path(folder) / str(number)
            drills.append(drill(AUDITS[name][0], *whole[name], chance, place))
            if drills[-1].wrong is not None:
                print(f"run {number} ({name}): {drills[-1].wrong}", flush=True)
    _report(drills)


def _report(drills: list[Drill]) -> None:
    killed = sum((one.killed for one in drills), Counter[str]())
    right = sum(one.wrong is None for one in drills)
    words = ", ".join(f"{count} {kind}" for kind, count in sorted(killed.items()))
    print(f"{right} of {len(drills)} results as undisturbed; {words}")


def undisturbed(settings: Mapping[str, Any], folder: Path) -> tuple[str, float]:
    """Return the result of an audit without a journal, and the seconds that it took."""
    file = folder / "whole.json"
    start = time.perf_counter()
    audit = begin(settings, file)
    if os.waitpid(audit, 0)[1] != 0:
        raise RuntimeError("an undisturbed audit failed")
    return file.read_text(), time.perf_counter() - start


def drill(
    settings: Mapping[str, Any],
    expected: str,
    seconds: float,
    chance: random.Random,
    folder: Path,
) -> Drill:
    """Run an audit again and again, killing now and then, until it has ended."""
    killed: Counter[str] = Counter()
    folder.mkdir()
    file = folder / "result.json"
    while True:
        audit = begin(settings, file, journal=folder, resume=True)
        code, family = disturb(audit, seconds, chance, killed)
        if orphans := outliving(family):
            return Drill(killed, f"{len(orphans)} processes outlived the auditor")
        if code == 0:
            return Drill(killed, None if file.read_text() == expected else "another result")
        if code == _FAILED and "killed" in file.read_text():
            killed["errors that said so"] += 1
        elif code != -signal.SIGKILL:
            return Drill(killed, f"exit code {code}")


def begin(settings: Mapping[str, Any], file: Path, **more: Any) -> int:
    """Start an auditing process, which writes its result without the time that it took."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        result = dpaudit.audit(d1=0, d2=1, **settings, **more)
        # How often it was killed is told, too, and no difference.
        told = replace(result, seconds=0.0, resumed=0, warnings=())
        file.write_text(document([entry(told)], planned=1))
        code = 0 if result.error is None else _FAILED
    finally:
        os._exit(code)


def disturb(
    audit: int, seconds: float, chance: random.Random, killed: Counter[str]
) -> tuple[int, set[int]]:
    """Kill at random moments until the auditing process has ended; return its exit code and all
    processes that it started."""
    family: set[int] = set()
    while True:
        moment = time.perf_counter() + chance.uniform(0, 2 * seconds)
        while time.perf_counter() < moment:
            family |= descendants(audit)
            if (code := ended(audit)) is not None:
                return code, family
            time.sleep(0.02)
        workers = sorted(filter(_is_worker, descendants(audit)))
        if workers and chance.random() < 0.8:
            with suppress(ProcessLookupError):
                os.kill(chance.choice(workers), signal.SIGKILL)
                killed["workers killed"] += 1
        else:
            os.kill(audit, signal.SIGKILL)
            killed["auditors killed"] += 1


def ended(process: int) -> int | None:
    """Return the exit code of a child that has ended."""
    found, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def descendants(process: int) -> set[int]:
    """Return the processes that a process has started, and those that these have."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and (status := _status(int(folder.name))):
            children.setdefault(int(status[1]), []).append(int(folder.name))
    found: set[int] = set()
    left = [process]
    while left:
        born = children.get(left.pop(), [])
        found.update(born)
        left += born
    return found


def outliving(family: set[int]) -> set[int]:
    """Return those that have not ended after a while."""
    deadline = time.perf_counter() + _ORPHANED
    while (family := set(filter(_lives, family))) and time.perf_counter() < deadline:
        time.sleep(0.05)
    return family


def _is_worker(process: int) -> bool:
    with suppress(OSError):
        return _WORKER in Path(f"/proc/{process}/cmdline").read_bytes()
    return False


def _lives(process: int) -> bool:
    status = _status(process)
    return bool(status) and status[0] != "Z"


def _status(process: int) -> list[str]:
    """Return state, parent and so on; nothing for a process that is no more."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return []


if __name__ == "__main__":
    main()
