"""`dpaudit run --journal`: killed or interrupted at any moment, continued to the same result."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from dpaudit.auditing.journal import JournalFile
from dpaudit.auditing.spec import AuditSpec

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


def test_another_scikit_learn_gives_a_warning(
    dpaudit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*SHORT[:-1], "--journal", tmp_path, "--resume")
    assert "warning" not in dpaudit(*words).stdout
    there = metadata.version
    monkeypatch.setattr(
        metadata, "version", lambda name: "9.9" if name == "scikit-learn" else there(name)
    )
    shown = " ".join(dpaudit(*words).stdout.split())
    change = f"(scikit-learn {there('scikit-learn')}, then 9.9)"
    assert change in shown


def test_a_run_cannot_continue_with_more_samples(dpaudit: Any, tmp_path: Path) -> None:
    assert dpaudit(*SHORT, "--journal", tmp_path).exit_code == 0
    more = (*TARGET, "--samples", "6000", "-q")
    result = dpaudit(*more, "--journal", tmp_path, "--resume")
    assert result.exit_code == 2
    assert "samples was 5,000, is 6,000 (" in result.stderr


def test_resume_alone_is_refused(dpaudit: Any) -> None:
    result = dpaudit(*SHORT, "--resume")
    assert result.exit_code == 2
    assert "give --journal DIR as well" in result.stderr


def test_a_random_seed_is_kept(dpaudit: Any, tmp_path: Path) -> None:
    files = [tmp_path / "first.json", tmp_path / "second.json"]
    # A claim that no seed refutes.
    asked = (*TARGET[:-1], "3", *SHORT[len(TARGET) :], "--seed", "random")
    words = (*asked, "--journal", tmp_path / "kept", "--resume", "--json")
    for file in files:
        assert dpaudit(*words, file).exit_code == 0
    (first,), (second,) = map(audits_in, files)
    assert first["seed"] == second["seed"]
    assert first == second


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


def test_the_flags_reach_the_audit(dpaudit: Any, asked: list[AuditSpec], tmp_path: Path) -> None:
    assert dpaudit(*SHORT, "--journal", tmp_path / "kept", "--resume").exit_code == 0
    (spec,) = asked
    assert spec.journaling.journal == str(tmp_path / "kept")
    assert spec.journaling.resume


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


@pytest.mark.parametrize("left", [0, 50])
def test_an_emptied_journal_gives_a_warning(dpaudit: Any, tmp_path: Path, left: int) -> None:
    keeping = (*SHORT, "--journal", tmp_path, "--resume", "--json", tmp_path / "r.json")
    journal = tmp_path / "laplace.journal"
    for _ in range(2):
        assert f"the journal {journal}" not in dpaudit(*keeping).stdout
    journal.write_bytes(journal.read_bytes()[:left])
    for _ in range(2):  # nor is it forgotten
        result = dpaudit(*keeping)
        assert result.exit_code == 0
        assert f"the journal {journal} " in result.stdout
        (audit,) = json.loads((tmp_path / "r.json").read_text())["audits"]
        assert any(f"the journal {journal} " in text for text in audit["warnings"])


@pytest.mark.parametrize("folder", ["", "there"])
def test_a_file_is_refused_as_a_folder(
    dpaudit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").touch()
    result = dpaudit(*SHORT, "--journal", folder)
    assert (result.exit_code, result.code) == (2, "option-invalid")
    assert repr(folder) in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_ctrl_c_just_after_a_write_shows_the_command_that_continues(
    dpaudit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record is repeated."""
    plain, file = tmp_path / "plain.json", tmp_path / "result.json"
    append = JournalFile.append

    def interrupted(file: JournalFile, record: Any) -> None:
        append(file, record)
        if file.path.stat().st_size > 20_000:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(JournalFile, "append", interrupted)
        given = [*SHORT, "--journal", str(tmp_path / "a folder"), "--json", str(file)]
        patch.setattr(sys, "argv", ["dpaudit", *given])
        result = dpaudit(*given)
    assert result.exit_code == 130
    lines = result.stderr.splitlines()
    (line,) = [line for line in lines if line.startswith("continue with: ")]
    words = shlex.split(line.removeprefix("continue with: "))
    assert words[0] == "dpaudit"
    assert words[-1] == "--resume"
    assert dpaudit(*words[1:]).exit_code == 0
    assert dpaudit(*SHORT, "--json", plain).exit_code == 0
    assert audits_in(file) == audits_in(plain)
