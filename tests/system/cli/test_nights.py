"""Nights in a git repository: commits, the workflow of `init --nightly`, and two branches."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dpaudit.nights import record

MINE = """
def count(rows, size, rng):
    return len(rows) + rng.laplace(scale=2, size=size)
"""
DPAUDIT = (sys.executable, "-m", "dpaudit")
INPUTS = ("--d1", "[1, 2]", "--d2", "[1]", "--epsilon", "1")
NIGHT = (*DPAUDIT, "run", "audits.yaml", "-q", "--evidence", "evidence.json")


def sh(*words: str) -> str:
    program = subprocess.run(words, capture_output=True, text=True, check=False)
    assert program.returncode == 0, (words, program.stdout, program.stderr)
    return program.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a mechanism and what `init --nightly` writes, and a remote."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "someone")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "someone@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "mine.py").write_text(MINE)
    init = ("init", "mine.py:count", *INPUTS, "--samples", "2000", "--nightly", "--no-run")
    sh(*DPAUDIT, *init)
    sh("git", "init", "--quiet", "--initial-branch", "main")
    sh("git", "add", ".")
    sh("git", "commit", "--quiet", "--message", "Begin")
    sh("git", "clone", "--quiet", "--bare", ".", str(tmp_path / "remote"))
    sh("git", "remote", "add", "origin", str(tmp_path / "remote"))
    sh("git", "fetch", "--quiet")
    sh("git", "branch", "--quiet", "--set-upstream-to", "origin/main")
    return work


def test_two_branches_add_nights_and_merge(repository: Path) -> None:
    sh(*NIGHT)
    workflow = yaml.safe_load((repository / ".github/workflows/privacy-nightly.yml").read_text())
    steps = workflow["jobs"]["audit"]["steps"]
    (script,) = (step["run"] for step in steps if "git push" in str(step))
    sh("sh", "-e", "-c", script)
    begun = sh("git", "rev-parse", "HEAD~1")
    assert sh("git", "rev-parse", "HEAD") == sh("git", "rev-parse", "origin/main")
    sh("git", "switch", "--quiet", "--create", "other")
    for branch in ("main", "other"):
        sh("git", "switch", "--quiet", branch)
        sh(*NIGHT)
        sh("git", "commit", "--quiet", "--all", "--message", "Add a night")
    sh("git", "merge", "--quiet", "--no-edit", "main")
    nights = record.read(repository / "evidence.json")
    assert len({night.seed for night in nights}) == 3
    digest = f"sha256:{hashlib.sha256(MINE.encode()).hexdigest()[:12]}"
    assert nights[0].code == f"{digest} at commit {begun[:12]}"
    assert {night.code.split()[0] for night in nights} == {digest}
    sh(*NIGHT, "--isolate")
    assert record.read(repository / "evidence.json")[-1].code.startswith(f"{digest} at commit ")
    (repository / "mine.py").write_text(MINE + "# changed\n")
    sh(*NIGHT)
    assert digest not in record.read(repository / "evidence.json")[-1].code
