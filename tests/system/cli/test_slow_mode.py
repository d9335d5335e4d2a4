"""`--stop`: bets alone end the audit of a slow mechanism, and a rerun does the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpaudit.auditing import pace
from dpaudit.auditing.schedule import SLOW_DRAW

SLOW = """
from time import sleep


def mean(data, rng):
    sleep({seconds})
    return sum(data) / len(data) + rng.laplace(scale=20 / len(data))
"""
ASKED = ("--d1", "[0]", "--d2", "[0, 1]", "--epsilon", "0.1", "--confidence", "0.9")


@pytest.fixture
def saved(dpaudit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the function that audits a mechanism whose draws take some seconds, and returns the
    exit code and the saved audit."""
    monkeypatch.chdir(tmp_path)

    def run(seconds: float, *flags: str) -> tuple[int, dict[str, Any]]:
        Path("slow.py").write_text(SLOW.format(seconds=seconds))
        result = dpaudit(
            "run", "slow.py:mean", *ASKED, "--samples", "3000", *flags, "--json", "r.json", "-q"
        )
        return result.exit_code, json.loads(Path("r.json").read_text())["audits"][0]

    return run


def test_slow_draws_choose_bets_and_the_choice_is_repeated(
    saved: Any, dpaudit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "SLOW_DRAW", SLOW_DRAW)
    exit_code, audit = saved(0.006)
    certificate = audit["ending"]["certificates"][0]
    assert exit_code == 1
    assert certificate["evidence"]["limits"]["ends_by_bets"]
    assert certificate["fixed"]["stage"] == "betting"
    assert audit["request"]["settings"]["stop"] == "bets"
    assert audit["command"].endswith("--stop bets")
    Path("slow.py").write_text(SLOW.format(seconds=0))  # the clock would choose otherwise now
    assert dpaudit("report", "r.json").exit_code == 0
    assert dpaudit("report", "--rerun", "r.json", "-q").exit_code == 0


def test_fast_draws_choose_a_confirmation_and_say_nothing_of_it(
    saved: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "SLOW_DRAW", 60.0)  # on a busy machine, draws are slower
    _, audit = saved(0)
    assert not audit["ending"]["certificates"][0]["evidence"]["limits"]["ends_by_bets"]
    assert "stop" not in audit["request"]["settings"]
    assert "--stop" not in audit["command"]


@pytest.mark.parametrize("asked", ["bets", "confirmed"])
def test_the_option_decides_whatever_a_draw_takes(saved: Any, asked: str) -> None:
    _, audit = saved(0, "--stop", asked)
    assert audit["ending"]["certificates"][0]["evidence"]["limits"]["ends_by_bets"] is (
        asked == "bets"
    )
