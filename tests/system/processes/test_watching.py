"""Warnings about calls that do not return."""

from __future__ import annotations

import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import watching
from dpaudit.adapters.calls import Mechanism
from dpaudit.adapters.loading import load_mechanism, timed_calls
from dpaudit.import_path import file_module
from dpaudit.inputs.datasets import load_dataset
from dpaudit.inputs.values import Reference
from dpaudit.outcomes import from_raw, reading
from dpaudit.targets.target import (
    CallableTarget,
    CommandTarget,
    ComposedTarget,
    ImportedTarget,
    IsolatedTarget,
    RepeatedTarget,
)
from dpaudit.watching import Watch
from tests.isolated import rng, target

TOLD = "not returned for"


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


def test_calls_that_are_ended_in_any_case(caplog: pytest.LogCaptureFixture) -> None:
    Watch.of_process(60.0).warn_if_idle("slow", 10.0, 0.0)
    (said,) = caplog.messages
    assert re.match(r"a call of slow .* 10 s; after 60 s .* timeout$", said)


def test_batches_may_take_as_long_as_their_size_lets_expect() -> None:
    watch = Watch()
    assert watch.waiting("one")._extra == 0
    assert watch.waiting("many", size=500)._extra == 500


@pytest.mark.parametrize("timed", [False, True])
def test_a_call_of_this_process_that_does_not_return(heard: Heard, timed: bool) -> None:
    def hangs(dataset: int) -> int:
        assert dataset < 3 or heard.event.wait(60)
        return dataset

    mechanism = load_mechanism(CallableTarget(function=hangs))
    if timed:
        outputs: Any = timed_calls(mechanism)(list(range(5)), rng())[0]
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
        "import os, sys, time\n"
        "print('{\"dpaudit\": 1}', flush=True)\n"
        "for line in sys.stdin:\n"
        f"    while not os.path.exists({str(file)!r}):\n"
        "        time.sleep(0.01)\n"
        "    print(0, flush=True)\n"
    )
    mechanism = loaded(CommandTarget(words=(sys.executable, str(program))))
    assert mechanism.sample_each([1, 2, 3], rng()) == [0, 0, 0]
    mechanism.close()
    assert len(heard.said) == 1
    assert "program.py has not returned" in heard.said[0]


WAITS = """
import os, time
def wait(*_):
    while not os.path.exists({file!r}):
        time.sleep(0.01)
    return 7
def draw(x):
    return x
def factory():
    wait()
    return draw
class Slow:
    def __init__(self):
        wait()
    def __call__(self, x):
        return x
{more}
"""


@pytest.fixture
def waits(heard: Heard, tmp_path: Path) -> Callable[..., str]:
    """Write a module whose functions wait until there is a warning."""

    def write(more: str = "") -> str:
        file = tmp_path / f"m{len(list(tmp_path.iterdir()))}.py"
        file.write_text(WAITS.format(file=str(tmp_path / "go on"), more=more))
        return str(file)

    heard.then = (tmp_path / "go on").touch
    return write


def _elsewhere(path: str, **more: Any) -> Any:
    return IsolatedTarget(target=ImportedTarget(path=path, **more))


STEPS: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "an import": (
        "wait()",
        lambda path: load_mechanism(ImportedTarget(path=f"{path}:draw")),
        "importing {}",
    ),
    "a list of mechanisms": ("wait()", lambda path: file_module(path), "importing {}"),
    "a constructor": (
        "",
        lambda path: load_mechanism(ImportedTarget(path=f"{path}:Slow")),
        "making {}:Slow",
    ),
    "a factory": (
        "",
        lambda path: load_mechanism(ImportedTarget(path=f"{path}:factory", factory=True)),
        "making {}:factory",
    ),
    "a dataset": (
        "",
        lambda path: load_dataset(f"import:{path}:wait"),
        "the call of import:{}:wait",
    ),
    "a process": (
        "wait()",
        lambda path: load_mechanism(_elsewhere(f"{path}:draw")).close(),
        "setting up {}:draw",
    ),
    "a dataset in a process": (
        "",
        lambda path: _drawn(_elsewhere(f"{path}:draw"), Reference(f"{path}:wait", called=True)),
        "handing a dataset ",
    ),
}


@pytest.mark.parametrize("what", STEPS)
def test_what_comes_before_the_calls_and_lasts(
    heard: Heard, waits: Callable[..., str], what: str
) -> None:
    more, act, said = STEPS[what]
    path = waits(more)
    act(path)
    assert len(heard.said) == 1
    words = re.escape(said.format(path))
    assert re.fullmatch(rf"{words}.* not ended for \d+ s; .*Ctrl-C", heard.said[0])


def _drawn(target: Any, dataset: Any) -> Any:
    mechanism = loaded(target)
    try:
        return mechanism.sample_each([dataset], rng())
    finally:
        mechanism.close()


def test_a_program_that_starts_slowly(heard: Heard, tmp_path: Path) -> None:
    program = tmp_path / "program"
    then = "echo '{\"dpaudit\": 1}'; cat"
    waiting = f"while ! [ -e '{tmp_path}/go on' ]; do sleep 0.02; done"
    program.write_text(f"#!/bin/sh\n{waiting}\n{then}\n")
    program.chmod(0o700)
    heard.then = (tmp_path / "go on").touch
    load_mechanism(CommandTarget(words=(str(program),))).close()
    assert len(heard.said) == 1
    assert heard.said[0].startswith(f"starting {program}, which ")
    assert "not ended for" in heard.said[0]


def _post_processed(path: str, kind: str) -> Any:
    batch = ImportedTarget(path=f"{path}:batch", post_process=f"{path}:wait")
    parts = (ImportedTarget(path=f"{path}:draw"), ImportedTarget(path=f"{path}:draw"))
    program = Path(path).with_suffix(".sh")
    program.write_text("echo '{\"dpaudit\": 1}'; while read -r line; do echo 1; done")
    return {
        "a batch": batch,
        "a composition": ComposedTarget(parts=parts, post_process=f"{path}:wait"),
        "a program": CommandTarget(words=("sh", str(program)), post_process=f"{path}:wait"),
    }[kind]


@pytest.mark.parametrize("kind", ["a batch", "a composition", "a program"])
def test_post_processing_that_does_not_return(
    heard: Heard, waits: Callable[..., str], kind: str
) -> None:
    path = waits("def batch(x, size):\n    return [x] * size")
    mechanism = loaded(_post_processed(path, kind))
    assert list(mechanism.sample(0, 2, rng())) == [7, 7]
    mechanism.close()
    assert len(heard.said) == 1
    assert "a call of post_process has not returned" in heard.said[0]


@pytest.mark.parametrize("is_isolated", [False, True])
def test_an_output_of_many_runs(heard: Heard, tmp_path: Path, is_isolated: bool) -> None:
    (tmp_path / "m.py").write_text("import time\ndef f(x):\n    time.sleep(0.005)\n    return x")
    single: Any = ImportedTarget(path=f"{tmp_path}/m.py:f")
    single = IsolatedTarget(target=single) if is_isolated else single
    mechanism = loaded(RepeatedTarget(target=single, times=200))
    assert len(mechanism.sample_each([1], rng())) == 1
    mechanism.sample_each([1], rng())
    mechanism.close()
    assert len(heard.said) == 1
    words = f"an output of {tmp_path}/m.py:f, 200 runs "
    assert heard.said[0].startswith(words)


def test_reading_that_lasts(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(list[int]):
        def __len__(self) -> int:
            assert heard.event.wait(60)
            return 1

    monkeypatch.setattr(reading, "_watch", Watch())
    from_raw(Slow([1]))
    from_raw([1])
    assert len(heard.said) == 1
    assert re.match("reading outputs .* not ended for 0 s", heard.said[0])


def test_outputs_of_few_runs_that_come(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "WARNING_SECONDS", 0.3)
    target = CallableTarget(function=lambda x: time.sleep(0.01))
    mechanism = load_mechanism(RepeatedTarget(target=target, times=2))
    mechanism.sample_each([1] * 50, rng())
    assert not heard.said


def test_calls_are_watched_no_longer_than_they_last() -> None:
    seen: list[int] = []
    mechanism = load_mechanism(CallableTarget(function=lambda x: seen.append(len(watching._now))))
    mechanism.sample(0, 10, rng())
    assert seen == [1] * 10
    assert not watching._now
