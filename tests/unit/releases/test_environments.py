"""Releases as users write them, and environments; tests/libraries installs real packages."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from dpaudit.releases import environments
from dpaudit.releases.environments import Environments, NotInstallable, releases
from tests.raising import code

KNOWN = ["0.14.2", "0.14.1", "0.9.0", "0.14.0", "0.10.0", "1.0"]


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A package index with one package, and the commands that were run."""
    asked: list[list[str]] = []

    def run(words: Any) -> subprocess.CompletedProcess[str]:
        asked.append(list(words))
        if "index" in words:
            is_known = words[-1] == "mine"
            text = f"mine (1.0)\nAvailable versions: {', '.join(KNOWN)}\n" if is_known else ""
            return subprocess.CompletedProcess(
                words, not is_known, text, "WARNING: slow\nERROR: none\n"
            )
        if "venv" in words:
            Path(words[-1]).mkdir(parents=True)
        fails = any(str(one).endswith("==0.9.0") for one in words)
        return subprocess.CompletedProcess(words, int(fails), "", "no\n wheel" if fails else "")

    monkeypatch.setattr(environments, "_run", run)
    return asked


def test_a_range_is_looked_up(index: list[list[str]]) -> None:
    assert releases("mine", "0.10..0.14.1") == ["0.10.0", "0.14.0", "0.14.1"]
    assert releases("mine", "0.14.1 .. latest") == ["0.14.1", "0.14.2", "1.0"]


@pytest.mark.parametrize(
    ("package", "asked", "expected"),
    [
        ("mine", "", "option-invalid"),
        ("mine", "0.1,--index-url", "option-invalid"),
        ("mine", "2..3", "option-invalid"),
        ("--mine", "1", "option-invalid"),
        ("other", "1..2", "releases-unknown"),
    ],
)
def test_other_texts_are_refused(
    index: list[list[str]], package: str, asked: str, expected: str
) -> None:
    assert code(releases, package, asked) == expected


@pytest.mark.parametrize("has_uv", [True, False])
def test_an_environment_is_made_once(
    index: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_uv: bool
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: "uv" if has_uv else None)
    made = Environments(tmp_path, "mine", ("beside==2",))
    place = tmp_path / "mine-1.0"
    assert made.interpreter("1.0") == str(place / "bin" / "python")
    assert [one[0] == "uv" for one in index] == [has_uv, has_uv]
    assert index[1][-2:] == ["mine==1.0", "beside==2"]


def test_an_environment_is_kept_until_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []

    def run(words: Any) -> subprocess.CompletedProcess[str]:
        calls.append(words)
        (tmp_path / "mine-1.0").mkdir(exist_ok=True)
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(environments, "_run", run)
    made = Environments(tmp_path, "mine")
    for _ in range(2):
        made.interpreter("1.0")
    assert len(calls) == 2
    Environments(tmp_path, "mine", ("beside",)).interpreter("1.0")
    assert len(calls) == 4
    Environments(tmp_path, "mine", ("beside",), python="other").interpreter("1.0")
    assert len(calls) == 6
    made.remove("1.0")
    assert not (tmp_path / "mine-1.0").exists()


def test_a_release_that_does_not_install_leaves_nothing(
    index: list[list[str]], tmp_path: Path
) -> None:
    made = Environments(tmp_path, "mine")
    with pytest.raises(NotInstallable) as caught:
        made.interpreter("0.9.0")
    assert str(caught.value) == "no wheel"
    assert list(tmp_path.glob("mine-*")) == []
