"""The gallery: what can be held against it without its environments, which `make gallery` builds.

The draws of its libraries are not made here. What they gave is in configs/gallery/results.json, and
docs/gallery.md has it executed by test_documents.py.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import gallery
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import AuditResult
from dpaudit.config.yaml_files import load_config
from dpaudit.targets.target import IsolatedTarget
from tests.result_files import from_json

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "configs" / "gallery"
FILES = sorted(FOLDER.glob("*.yaml"))
PINNED = sorted(FOLDER.glob("*.txt"))
DOCUMENT = gallery.DOCUMENT.read_text(encoding="utf-8")


@pytest.fixture
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with this Python in place of each environment's."""
    for pinned in PINNED:
        python = tmp_path / ".gallery" / pinned.stem / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
    (tmp_path / "mechanisms").symlink_to(ROOT / "mechanisms")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def specs() -> list[AuditSpec]:
    return [spec for file in FILES for spec in load_config(file)]


def recorded() -> list[AuditResult]:
    return from_json(gallery.RECORDED.read_text(encoding="utf-8"))


def environment(spec: AuditSpec) -> str:
    assert isinstance(spec.target, IsolatedTarget)
    assert spec.target.python is not None
    return Path(spec.target.python).parts[1]


@pytest.mark.usefixtures("environments")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_has_a_catch_and_a_neighbour_that_is_none(file: Path) -> None:
    loaded = load_config(file)
    assert {spec.requirements.expect for spec in loaded} == {"violation", "pass"}
    assert {spec.statistics.confidence for spec in loaded} == {0.9999}


@pytest.mark.usefixtures("environments")
def test_every_environment_is_pinned_and_used() -> None:
    assert {environment(spec) for spec in specs()} == {file.stem for file in PINNED}


@pytest.mark.parametrize("file", PINNED, ids=lambda file: file.stem)
def test_a_list_pins_what_its_name_says_and_all_else(file: Path) -> None:
    packages = file.read_text(encoding="utf-8").split()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", package) for package in packages)
    name, _, version = file.stem.rpartition("-")
    assert f"{name}=={version}" in packages


def test_make_builds_every_environment() -> None:
    command = ["make", "--dry-run", "--always-make", "gallery"]
    plan = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for pinned in PINNED:
        assert f"--requirement configs/gallery/{pinned.name}" in plan
    assert "dpaudit run configs/gallery/*.yaml" in plan


@pytest.mark.usefixtures("environments")
def test_the_record_is_of_these_audits_and_met_all_expectations() -> None:
    audits = {spec.name: spec for spec in specs()}
    assert [result.name for result in recorded()] == list(audits)
    for result in recorded():
        spec = audits[result.name]
        assert result.claim == spec.tested
        assert result.target == spec.target.describe()
        assert result.confidence == spec.statistics.confidence
        assert result.expect == spec.requirements.expect
        assert result.meets_expectation
        assert result.certificates[0].evidence.budget == spec.sampling.samples


def test_the_document_shows_the_record() -> None:
    assert gallery.table_of(DOCUMENT) == gallery.table(recorded())
    count = len(PINNED)
    assert {6: "six"}[count] in DOCUMENT


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_document_cites_the_threads_that_the_files_cite(file: Path) -> None:
    threads = re.findall(r"([\w-]+/[\w-]+)#(\d+)", file.read_text(encoding="utf-8"))
    assert threads
    for repository, number in threads:
        assert f"https://github.com/{repository}/issues/{number}" in DOCUMENT
