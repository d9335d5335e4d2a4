"""`dpaudit run --journal`: killed or interrupted at any moment, continued to the same result."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
TARGET = ("run", "mechanisms.laplace:laplace", "--d1", "0", "--d2", "1", "--epsilon", "1")
SHORT = (*TARGET, "--samples", "5000", "-q")
# A program that is killed as soon as its journal has a size.
KILLED = """
import os, signal, sys
from dpaudit.auditing.journal import JournalFile
append, size = JournalFile.append, int(sys.argv.pop(1))
def killed(file, record):
    append(file, record)
    if file.path.stat().st_size >= size:
        os.kill(os.getpid(), signal.SIGKILL)
JournalFile.append = killed
from dpaudit.cli.main import main
main()
"""


@pytest.fixture(autouse=True)
def _in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def audits_in(file: Path) -> list[dict[str, Any]]:
    """Return the results in a file, without how long they took, how often they were resumed, and
    what the command line was."""
    audits = json.loads(file.read_text())["audits"]
    told = ("seconds", "resumed", "warnings", "command")
    return [{key: value for key, value in one.items() if key not in told} for one in audits]


def test_a_journal_is_begun_refused_and_continued(dpaudit: Any, tmp_path: Path) -> None:
    plain, first, second = (tmp_path / f"{name}.json" for name in ("plain", "first", "second"))
    keeping = ("--journal", tmp_path / "kept")
    assert dpaudit(*SHORT, "--json", plain).exit_code == 0
    assert dpaudit(*SHORT, *keeping, "--json", first).exit_code == 0
    refused = dpaudit(*SHORT, *keeping)
    assert (refused.exit_code, refused.code) == (2, "journal-exists")
    assert "laplace.journal " in refused.stderr
    assert "--resume" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert dpaudit(*SHORT, *keeping, "--resume", "--json", second).exit_code == 0
    assert audits_in(plain) == audits_in(first) == audits_in(second)


def test_a_batch_has_a_file_for_each_audit(dpaudit: Any, tmp_path: Path) -> None:
    config, files = tmp_path / "audits.yaml", [tmp_path / "one.json", tmp_path / "two.json"]
    config.write_text(
        "version: 1\n"
        "defaults: {mechanism: 'mechanisms.laplace:laplace', d1: 0, d2: 1, samples: 2000}\n"
        "audits:\n"
        "  - {name: one, claim: {epsilon: 1}}\n"
        "  - {name: A/b, claim: {epsilon: 1}}\n"
        "  - {name: stated, exact: true, mechanism: 'mechanisms.randomized_response:"
        "randomized_response', claim: {epsilon: 5}}\n"
    )
    keeping = ("--journal", tmp_path / "kept", "-q")
    first = dpaudit("run", config, *keeping, "-k", "one")
    assert first.exit_code == 0
    assert dpaudit("run", config, *keeping).exit_code == 2
    for file in files:
        assert dpaudit("run", config, *keeping, "--resume", "--json", file).exit_code == 0
    assert audits_in(files[0]) == audits_in(files[1])
    names = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert len(names) == 2
    assert names[1] == "one.journal"
    assert names[0].startswith("a-b-")


def test_a_run_killed_three_times_has_the_result_of_an_undisturbed_one(
    dpaudit: Any, tmp_path: Path
) -> None:
    plain, file = tmp_path / "plain.json", tmp_path / "result.json"
    # With `auto` others join where the machine is slow, and the result says how many drew.
    long = (*TARGET, "--samples", "8000", "-q", "--workers", "1")
    assert dpaudit(*long, "--journal", tmp_path / "uncut", "--json", plain).exit_code == 0
    whole = (tmp_path / "uncut" / "laplace.journal").stat().st_size
    keeping = ("--journal", tmp_path, "--resume", "--json", file)
    for share in (0.0, 0.3, 0.7):
        size = max(1, int(share * whole))
        words = [sys.executable, "-c", KILLED, size, *long, *keeping]
        ended = subprocess.run(list(map(str, words)), cwd=ROOT, capture_output=True, timeout=120)
        assert ended.returncode == -signal.SIGKILL
        assert size <= (tmp_path / "laplace.journal").stat().st_size < whole
    assert dpaudit(*long, *keeping).exit_code == 0
    assert audits_in(file) == audits_in(plain)


def test_an_emptied_journal_gives_a_warning(dpaudit: Any, tmp_path: Path) -> None:
    keeping = (*SHORT, "--journal", tmp_path, "--resume", "--json", tmp_path / "r.json")
    journal = tmp_path / "laplace.journal"
    for _ in range(2):
        assert f"the journal {journal}" not in dpaudit(*keeping).stdout
    journal.write_bytes(journal.read_bytes()[:50])
    for _ in range(2):  # nor is it forgotten
        result = dpaudit(*keeping)
        assert result.exit_code == 0
        (audit,) = json.loads((tmp_path / "r.json").read_text())["audits"]
        assert any(f"the journal {journal} " in text for text in audit["warnings"])
