"""What is shown while an audit runs."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import Progress
from dpaudit.claims import PureDP
from dpaudit.cli.progress import make_display, status
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.targets.target import CallableTarget
from tests.specs import audit_of, replace

SPEC = audit_of(
    name="laplace",
    target=CallableTarget(function=float),
    pairs=(NeighbouringPair(0, 1),),
    claim=PureDP(1.0),
)
MOMENT = Progress("laplace", "d1 = 0, d2 = 1", 450_000, 1_000_000, 1.234e6, 37.4, 0.4129, 3.2)
TARGET = ("run", "m:laplace", "--d1", "0", "--d2", "1", "--epsilon", "1")


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time that stands still; the last entry is now."""
    times = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: times[-1])
    return times


def test_a_moment_in_words() -> None:
    assert status(MOMENT, SPEC) == (
        "450,000 of 1,000,000 draws, 1.2 M/s, evidence 37, refuted at 500, ε ≥ 0.412, 3 s left"
    )


def test_a_budget_that_is_not_planned_yet_is_left_out() -> None:
    unplanned = replace(MOMENT, draws=100, budget=0, rate=14.0, remaining=64.0)
    text = status(unplanned, replace(SPEC, time=5.0))
    assert text == "100 draws, 14/s, evidence 37, refuted at 500, ε ≥ 0.412, 1 min 4 s left"


def test_several_pairs_share_the_error_probability() -> None:
    spec = replace(SPEC, pairs=SPEC.pairs * 2)
    assert "evidence 37, refuted at 1,000" in status(MOMENT, spec)


def test_logs_get_one_line_after_five_seconds(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    display = make_display(SPEC, "laplace (2 of 5)", quiet=False)
    for second in range(13):
        clock.append(float(second))
        display.update(MOMENT)
    display.close()
    lines = stream.getvalue().splitlines()
    assert lines == [f"laplace (2 of 5): {status(MOMENT, SPEC)}"]


def test_a_terminal_gets_a_live_picture_that_fits(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    title = "a-name-that-is-much-too-long-for-a-line" * 2
    display = make_display(SPEC, f"{title} (2 of 5)", quiet=False)
    display.update(MOMENT)
    assert stream.getvalue() == ""  # most audits are over before rich would be there
    clock.append(1.0)
    display.update(MOMENT)
    clock.append(2.0)
    display.update(MOMENT)
    display.close()
    assert "ε ≥ 0.412" in stream.getvalue()
    assert "evidence 37, refuted at 500" in stream.getvalue()


def test_the_display_ends_before_an_error_is_shown(
    dpaudit: Any, install_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[bool] = []

    class Display:
        def update(self, progress: Progress) -> None:
            raise AssertionError("not reached")

        def close(self) -> None:
            closed.append(True)

    def run_audit(spec: AuditSpec, on_progress: Any) -> Any:
        raise KeyError("level")

    monkeypatch.setattr("dpaudit.cli.batch.make_display", lambda *_, **__: Display())
    install_engine(run_audit)
    assert dpaudit(*TARGET).exit_code == 3
    assert closed == [True]
