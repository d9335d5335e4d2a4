"""`[tool.dpaudit]` in pyproject.toml, and `dpaudit run` without arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpaudit.config.project import SETTINGS
from tests.documents import ROOT

MECHANISM = "def noisy(x, size, rng): return x + rng.laplace(size=size)\n"
BATCH = """version: 1
defaults: {mechanism: "m.py:noisy", d1: 0, d2: 1, claim: {epsilon: 2}}
audits:
  - {name: first}
  - {name: second, samples: 3_000, confidence: 0.9, seed: 3}
"""
TARGET = ("m.py:noisy", "--d1", "0", "--d2", "1", "--epsilon", "2")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.py").write_text(MECHANISM)
    (tmp_path / "audits.yaml").write_text(BATCH)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def project(text: str, folder: str = ".") -> None:
    Path(folder, "pyproject.toml").write_text(f"[tool.dpaudit]\n{text}\n")


def requested(file: str = "r.json") -> list[tuple[int, float, int]]:
    """Return draws, confidence and seed of the audits in a file of results."""
    audits = json.loads(Path(file).read_text("utf-8"))["audits"]
    return [
        (one["ending"]["certificates"][0]["evidence"]["budget"], one["confidence"], one["seed"])
        for one in audits
    ]


def test_flags_come_before_files_and_files_before_the_project(dpaudit: Any) -> None:
    project("samples = 2_000\nconfidence = 0.95\nseed = 7")
    assert dpaudit("run", "--json", "r.json").exit_code == 0
    assert requested() == [(2_000, 0.95, 7), (3_000, 0.9, 3)]
    assert dpaudit("run", "--json", "r.json", "--samples", "4000", "--seed", "9").exit_code == 0
    assert requested() == [(4_000, 0.95, 9), (4_000, 0.9, 9)]
    assert dpaudit("run", *TARGET, "--json", "r.json").exit_code == 0
    assert requested() == [(2_000, 0.95, 7)]
    assert dpaudit("run", *TARGET, "--json", "r.json", "--confidence", "0.8").exit_code == 0
    assert requested() == [(2_000, 0.8, 7)]
    Path("pyproject.toml").unlink()
    assert dpaudit("run", *TARGET, "--json", "r.json", "--samples", "2000").exit_code == 0
    assert requested() == [(2_000, 0.99, 0)]


def test_strict_and_what_is_required_hold_for_the_project(dpaudit: Any) -> None:
    Path("m.py").write_text("def noisy(x): return 7\n")
    project("samples = 2_000\nstrict = true")
    assert dpaudit("run", *TARGET).exit_code == 1
    project("samples = 2_000\nrequire_rare = 1e-4")
    assert dpaudit("run", *TARGET).exit_code == 4
    assert dpaudit("run", *TARGET, "--allow-underpowered").exit_code == 0


def test_mistakes_name_the_file_and_the_key(dpaudit: Any, refused: Any) -> None:
    mistakes = {
        "sampels = 5": ("key-unknown", "Did you mean 'samples'?"),
        "samples = 'many'": ("option-invalid", "samples='many'"),
        "samples = 5": ("option-invalid", "samples=5"),
        "confidence = 0.001": ("option-invalid", "confidence=0.001"),
        "strict = 1": ("option-invalid", "strict=1"),
        "seed = -1": ("option-invalid", "seed=-1"),
        "audits = []": ("option-invalid", "audits=[]"),
        "audits = 'none.yaml'": ("file-not-found", "none.yaml"),
        "=": ("file-malformed", ""),
    }
    for text, (code, named) in mistakes.items():
        project(text)
        assert refused("run")[0] == code, text
        for ran in (dpaudit("run"), dpaudit("check")):
            assert (ran.exit_code, ran.stdout) == (2, "")
            assert f"{Path.cwd() / 'pyproject.toml'}: " in ran.stderr
            assert named in ran.stderr


def test_the_nearest_table_above_counts(dpaudit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("inner/deep").mkdir(parents=True)
    project("samples = 2_000\naudits = ['audits.yaml']")
    Path("inner/pyproject.toml").write_text("[project]\nname = 'dpaudit-of-another'\n")
    monkeypatch.chdir("inner/deep")
    assert dpaudit("run", "--json", "r.json", "-k", "first").exit_code == 0
    assert requested() == [(2_000, 0.99, 0)]
    project("samples = 2_500", "..")
    assert dpaudit("run", "../../audits.yaml", "--json", "r.json", "-k", "first").exit_code == 0
    assert requested() == [(2_500, 0.99, 0)]


def test_run_without_arguments(dpaudit: Any) -> None:
    project("samples = 2_000")
    result = dpaudit("run", "-q")
    assert result.exit_code == 0
    assert [line.split()[3] for line in result.stdout.splitlines()[:2]] == ["first", "second"]
    assert dpaudit("check").stdout == "audits.yaml: 2 audits\n"
    Path("audits.yaml").rename("other.yaml")
    for command in ("run", "check"):
        none = dpaudit(command)
        assert (none.exit_code, none.stdout) == (2, "")
        assert "there is no audits.yaml here" in none.stderr
    project("samples = 2_000\naudits = 'other.yaml'")
    assert dpaudit("run", "-q", "-k", "=first").exit_code == 0


def test_a_rerun_shows_that_the_project_has_changed_what_a_command_means(dpaudit: Any) -> None:
    project("samples = 2_000\nconfidence = 0.9")
    dpaudit("run", "--json", "r.json")
    assert dpaudit("report", "r.json", "--rerun", "-q").exit_code == 0
    project("samples = 2_000\nconfidence = 0.8")
    result = dpaudit("report", "r.json", "--rerun", "-q")
    assert result.exit_code == 3
    assert ": confidence: recorded 0.9, repeated 0.8" in result.stderr


def test_the_defaults_of_the_pages_are_those_of_the_code() -> None:
    page = (ROOT / "docs/configuration.md").read_text("utf-8")
    table = page.partition("## Defaults of a project")[2].partition("\n## ")[0]
    assert [key for key in SETTINGS if f"`{key}`" not in table] == []
