"""What is said of calls that do not return."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.adapters.loading import load_mechanism
from dpaudit.adapters.timing import sample_timed
from dpaudit.processes import watching
from dpaudit.processes.watching import Watch
from dpaudit.targets.target import CallableTarget, CommandTarget
from tests.isolated import isolated, rng

TOLD = "has not returned for"


class Heard(logging.Handler):
    """Lets a call return once something is said of it."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.event = threading.Event()
        self.then: Callable[[], object] = self.event.set

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        self.then()


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Heard]:
    monkeypatch.setattr(watching, "PATIENCE", 0.05)
    monkeypatch.setattr(watching, "LOOK", 0.01)
    handler = Heard()
    logging.getLogger("dpaudit").addHandler(handler)
    yield handler
    logging.getLogger("dpaudit").removeHandler(handler)


def test_a_standstill_lasts_from_the_last_change_of_the_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Clock:
        now = 100.0

        def monotonic(self) -> float:
            return self.now

    class Told(Watch):
        def stands_still(self, name: str, seconds: float, more: float) -> None:
            lasted.append(seconds)

    lasted: list[float] = []
    clock, counter = Clock(), [0]
    monkeypatch.setattr(watching, "time", clock)
    waiting = Told().waiting("slow", counter)
    # At last slow, but it returns: no call has taken long.
    for clock.now, counter[0] in (
        (109.0, 0),
        (110.0, 1),
        (119.5, 1),
        *((110.0 + 9 * n, n) for n in range(2, 9)),
    ):
        waiting.left()
    assert lasted == [9, 0, 9.5, *[0] * 7]


def test_a_watch_tells_once_and_only_what_lasts(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch()
    watch.stands_still("slow", 9.9, 0.0)
    watch.stands_still("a batch", 30.0, 25.0)
    assert not caplog.messages
    watch.stands_still("hangs", 10.0, 0.0)
    watch.stands_still("hangs", 11.0, 0.0)
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("a call of hangs has not returned for 10 s")
    assert "--isolate --timeout 10s" in caplog.messages[0]


def test_batches_may_take_as_long_as_their_size_lets_expect() -> None:
    watch = Watch()
    assert watch.waiting("one")._more == 0
    assert watch.waiting("many", size=500)._more == 500


@pytest.mark.parametrize("timed", [False, True])
def test_a_call_of_this_process_that_does_not_return(heard: Heard, timed: bool) -> None:
    def hangs(dataset: int) -> int:
        assert dataset < 3 or heard.event.wait(60)
        return dataset

    mechanism = load_mechanism(CallableTarget(function=hangs))
    if timed:
        outputs: Any = sample_timed(mechanism, range(5), rng())[0]
    else:
        outputs = mechanism.sample_each(range(5), rng())
    assert outputs == [0, 1, 2, 3, 4]
    assert len(heard.said) == 1
    assert "hangs" in heard.said[0]


def test_a_batch_that_does_not_return(heard: Heard) -> None:
    def hangs(dataset: int, size: int) -> Any:
        assert heard.event.wait(60)
        return np.zeros(size)

    assert len(load_mechanism(CallableTarget(function=hangs)).sample(0, 1, rng())) == 1
    assert TOLD in heard.said[0]


def test_a_call_of_another_process_that_does_not_return(heard: Heard, tmp_path: Path) -> None:
    file = tmp_path / "go on"
    heard.then = file.touch
    with isolated("waits_for", params={"file": str(file)}) as mechanism:
        assert list(mechanism.sample_each([1, 2, 3], rng())) == [1, 2, 3]
    assert len(heard.said) == 1
    assert "waits_for has not returned" in heard.said[0]
    assert "add --timeout 10s" in heard.said[0]


def test_a_program_that_does_not_answer(heard: Heard, tmp_path: Path) -> None:
    file, program = tmp_path / "go on", tmp_path / "program.py"
    heard.then = file.touch
    program.write_text(
        "import os, sys, time\n"
        "print('{\"dpaudit\": 1}', flush=True)\n"
        "for line in sys.stdin:\n"
        f"    while not os.path.exists({str(file)!r}):\n"
        "        time.sleep(0.01)\n"
        "    print(0, flush=True)\n"
    )
    mechanism = load_mechanism(CommandTarget(words=(sys.executable, str(program))))
    assert mechanism.sample_each([1, 2, 3], rng()) == [0, 0, 0]
    mechanism.close()
    assert len(heard.said) == 1
    assert "program.py has not returned" in heard.said[0]


def test_calls_are_watched_no_longer_than_they_last() -> None:
    seen: list[int] = []
    mechanism = load_mechanism(CallableTarget(function=lambda x: seen.append(len(watching._now))))
    mechanism.sample(0, 10, rng())
    assert seen == [1] * 10
    assert not watching._now
