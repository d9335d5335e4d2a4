"""Warnings about calls that do not return."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dpaudit import watching
from dpaudit.adapters.calls import Mechanism
from dpaudit.adapters.loading import load_mechanism
from dpaudit.targets.target import (
    CallableTarget,
    CommandTarget,
    ImportedTarget,
    RepeatedTarget,
)
from dpaudit.watching import Watch
from tests.isolated import rng, target


class Heard(logging.Handler):
    """Lets a call return after the first warning."""

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
    monkeypatch.setattr(watching, "WARNING_SECONDS", 0.3)
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.02)
    handler = Heard()
    logging.getLogger("dpaudit").addHandler(handler)
    yield handler
    logging.getLogger("dpaudit").removeHandler(handler)


def loaded(target: Any) -> Mechanism:
    """Return a mechanism, whose process may start slowly on a busy machine, without a warning."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(watching, "WARNING_SECONDS", 60.0)
        return load_mechanism(target)


def test_a_standstill_lasts_from_the_last_change_of_the_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Clock:
        now = 100.0

        def monotonic(self) -> float:
            return self.now

    class Told(Watch):
        def warn_if_idle(self, name: str, seconds: float, extra: float) -> bool:
            lasted.append(seconds)
            return False

    lasted: list[float] = []
    clock, counter = Clock(), [0]
    monkeypatch.setattr(watching, "time", clock)
    waiting = Told().waiting("slow", counter)
    # Slow in the end, but it returns: no call has taken long.
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
    watch.warn_if_idle("slow", 9.9, 0.0)
    watch.warn_if_idle("a batch", 30.0, 25.0)
    assert not caplog.messages
    watch.warn_if_idle("hangs", 10.0, 0.0)
    watch.warn_if_idle("hangs", 11.0, 0.0)
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("a call of hangs ")
    assert " 10 s" in caplog.messages[0]
    assert "--isolate --timeout 10s" in caplog.messages[0]


def test_a_call_of_this_process_that_does_not_return(heard: Heard) -> None:
    def hangs(dataset: int) -> int:
        assert dataset < 3 or heard.event.wait(60)
        return dataset

    mechanism = load_mechanism(CallableTarget(function=hangs))
    assert mechanism.sample_each(range(5), rng()) == [0, 1, 2, 3, 4]
    assert len(heard.said) == 1
    assert "hangs" in heard.said[0]


def test_a_call_of_another_process_that_does_not_return(heard: Heard, tmp_path: Path) -> None:
    file = tmp_path / "go on"
    heard.then = file.touch
    mechanism = loaded(target("waits_for", params={"file": str(file)}))
    assert list(mechanism.sample_each([1, 2, 3], rng())) == [1, 2, 3]
    mechanism.close()
    assert len(heard.said) == 1
    assert "waits_for has not returned" in heard.said[0]
    assert "add --timeout 10s" in heard.said[0]


def test_a_program_that_does_not_answer(heard: Heard, tmp_path: Path) -> None:
    file, program = tmp_path / "go on", tmp_path / "program.py"
    heard.then = file.touch
    program.write_text(
        "import os, sys, time\nend = time.monotonic() + 60\n"
        "print('{\"dpaudit\": 1}', flush=True)\n"
        "for line in sys.stdin:\n"
        f"    while not os.path.exists({str(file)!r}) and time.monotonic() < end:\n"
        "        time.sleep(0.01)\n"
        "    print(0, flush=True)\n"
    )
    mechanism = loaded(CommandTarget(words=(sys.executable, str(program))))
    assert mechanism.sample_each([1, 2, 3], rng()) == [0, 0, 0]
    mechanism.close()
    assert len(heard.said) == 1
    assert "program.py has not returned" in heard.said[0]


def test_an_import_that_lasts(heard: Heard, tmp_path: Path) -> None:
    file, module = tmp_path / "go on", tmp_path / "m.py"
    heard.then = file.touch
    module.write_text(
        "import os, time\nend = time.monotonic() + 60\n"
        f"while not os.path.exists({str(file)!r}) and time.monotonic() < end: time.sleep(0.01)\n"
        "def draw(x): return x\n"
    )
    load_mechanism(ImportedTarget(path=f"{module}:draw"))
    assert len(heard.said) == 1
    assert heard.said[0].startswith(f"importing {module}")


def test_outputs_of_few_runs_that_come(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call takes 10 ms by a clock of its own, whatever the load of the machine."""
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=time.sleep)
    monkeypatch.setattr(watching, "time", clock)

    def call(x: int) -> None:
        now[0] += 0.01
        time.sleep(0.01)

    target = CallableTarget(function=call)
    mechanism = load_mechanism(RepeatedTarget(target=target, times=2))
    mechanism.sample_each([1] * 50, rng())
    assert not heard.said
