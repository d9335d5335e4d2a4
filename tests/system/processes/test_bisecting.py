"""Releases that leak, that do not, and of which nothing can be said; no package is installed.

Each release is this Python, started with an environment variable that the mechanism reads.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpaudit.config.building import build_spec
from dpaudit.releases import bisecting
from dpaudit.releases.bisecting import Bisection, ReleaseResult, bisected
from dpaudit.releases.environments import Environments, NotInstallable
from tests.raising import code, refusal

MECHANISM = """
import os, random

RELEASE = os.environ["RELEASE"]
if RELEASE == "4.0":
    raise ImportError("this release needs a newer Python")


def noisy(x):
    leak = {"2.0": 0.9, "3.0": 0.8}.get(RELEASE, 0.6)
    if RELEASE == "5.0" and random.random() < 0.999:
        return "nothing"
    if RELEASE == "6.0":
        raise ValueError("not in this release")
    return x if random.random() < leak else 1 - x
"""
# A claim that releases 1.0 and 7.0, whose true ε is log(0.6 / 0.4) = 0.405, satisfy.
EPSILON = 0.42
EVERY = ["1.0", "2.0", "3.0", "4.0", "5.0", "6.0", "7.0", "8.0"]


class Started(Environments):
    """Environments that are this Python with RELEASE in its environment."""

    removed: tuple[str, ...] = ()

    def interpreter(self, release: str) -> str:
        if release == "8.0":
            raise NotInstallable("no wheel for this Python")
        file = self.folder / f"python-{release}"
        file.write_text(f'#!/bin/sh\nRELEASE={release} exec {sys.executable} "$@"\n')
        file.chmod(0o755)
        return str(file)

    def remove(self, release: str) -> None:
        (self.folder / f"removed-{release}").touch()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("releases")
    (found / "m.py").write_text(MECHANISM)
    return found


def found(
    folder: Path,
    versions: list[str],
    found_in: str = "2.0",
    *,
    learned_in: str | None = None,
    **more: Any,
) -> Bisection:
    environments = Started(folder, "mine")
    settings = {
        "mechanism": f"{folder / 'm.py'}:noisy",
        "python": environments.interpreter(learned_in or found_in),
        "d1": 0,
        "d2": 1,
        "claim": {"epsilon": EPSILON},
        "samples": 4000,
    }
    return bisected(build_spec(settings), environments, versions, found_in, **more)


@pytest.fixture(scope="module")
def result(folder: Path) -> Bisection:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bisecting, "LEARNED", 1000)
        return found(folder, EVERY)


def test_each_release_gets_one_of_three_answers(result: Bisection) -> None:
    assert {one.release: one.answer for one in result.tested} == {
        "1.0": "not refuted",
        "2.0": "refuted",
        "3.0": "refuted",
        "4.0": "cannot tell",
        "5.0": "cannot tell",
        "6.0": "cannot tell",
        "7.0": "not refuted",
        "8.0": "cannot tell",
    }
    why = {one.release: one.why for one in result.tested if one.why}
    assert list(why) == ["4.0", "5.0", "6.0", "8.0"]
    assert "newer Python" in why["4.0"]
    assert why["5.0"].startswith("under-powered")
    assert "not in this release" in why["6.0"]
    assert "no wheel" in why["8.0"]


def test_a_release_that_is_not_refuted_had_the_power(result: Bisection) -> None:
    by_release = {one.release: one for one in result.tested}
    shown = by_release["2.0"].epsilon_lower
    assert shown is not None
    assert EPSILON < shown < 2.2  # the true ε is log 9
    for release in ("1.0", "7.0"):
        detectable = by_release[release].detectable
        assert detectable is not None
        assert detectable <= shown
    rare = by_release["5.0"].detectable
    assert rare is not None
    assert rare > shown


def test_the_releases_share_one_error_probability(result: Bisection) -> None:
    assert result.level == pytest.approx(0.01 / len(EVERY))
    assert [one.draws for one in result.tested if one.draws] == [4000] * 5
    assert result.summary == "first seen in 2.0, last seen in 3.0, gone in 7.0 or earlier"


def test_environments_can_be_removed_one_at_a_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bisecting, "LEARNED", 500)
    seen: list[ReleaseResult] = []
    found(folder, ["2.0", "8.0"], is_kept=False, on_release=seen.append)
    assert [one.release for one in seen] == ["2.0", "8.0"]
    assert sorted(one.name for one in folder.glob("removed-*")) == ["removed-2.0", "removed-8.0"]


def test_the_event_is_not_tested_elsewhere_if_the_mechanism_raises_where_it_is_looked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bisecting, "LEARNED", 500)
    seen: list[ReleaseResult] = []
    error = refusal(found, folder, ["1.0", "6.0"], "6.0", on_release=seen.append)
    assert (error.code, error.exit_code, seen) == ("always-raises", 3, [])
    assert "not in this release" in str(error)


def test_other_audits_are_refused(folder: Path) -> None:
    environments = Started(folder, "mine")
    plain = {"mechanism": "math:sqrt", "d1": 0, "d2": 1, "claim": {"epsilon": 1}}
    several = {**plain, "pairs": [{"d1": 0, "d2": 1}, {"d1": 1, "d2": 2}]}
    del several["d1"], several["d2"]
    definition = {**plain, "claim": {"definition": "probabilistic", "epsilon": 1, "delta": 0.1}}
    for settings in (several, definition):
        spec = build_spec(settings)
        assert code(bisected, spec, environments, ["1.0"], "1.0") == "options-conflict"


def of(*answers: tuple[str, Any]) -> str:
    tested = tuple(ReleaseResult(release, answer) for release, answer in answers)
    empty = Bisection("p", "1", "t", "d", "c", "e", 0.99, 0.01, 0, ())
    return replace(empty, tested=tested).summary


def test_summaries() -> None:
    bad, good, unknown = "refuted", "not refuted", "cannot tell"
    assert of(("1", good), ("2", unknown)) == "no release is refuted"
    assert of(("1", good), ("2", bad), ("3", good)) == "first seen in 2, last seen in 2, gone in 3"
    earlier = "first seen in 2 (earlier releases: cannot tell), last seen in 2"
    assert of(("1", unknown), ("2", bad)) == earlier
    assert of(("1", bad), ("2", bad)) == "first seen in 1, last seen in 2"
