"""Completion by a shell: what it offers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dpaudit.claims import DEFINITIONS
from dpaudit.cli.commands import COMMANDS
from dpaudit.inputs.adjacency import ADJACENCY_KINDS
from dpaudit.reports.formats import FORMATS
from tests.programs import DPAUDIT

# A line without a completion.
NOTHING = [""]


def asked(shell: str, line: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    words = line.split(" ")
    given = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), **more}
    if shell.startswith("fish"):
        given["COMP_CWORD"] = words[-1]
    environment = {**os.environ, **given, "_DPAUDIT_COMPLETE": shell}
    return subprocess.run([DPAUDIT], env=environment, capture_output=True, text=True)


def offered(line: str) -> list[str]:
    done = asked("bash_complete", line)
    assert (done.returncode, done.stderr) == (0, "")
    return [one.partition(",")[2] for one in done.stdout.splitlines()]


def test_commands_choices_formats_and_relations() -> None:
    assert offered("dpaudit ") == list(COMMANDS)
    assert offered("dpaudit run x --definition ") == list(DEFINITIONS)
    assert offered("dpaudit run x --report ") == list(FORMATS)
    assert offered("dpaudit run x --report ju") == ["junit"]
    assert [one.partition(":")[0] for one in offered("dpaudit run --adjacency ")] == list(
        ADJACENCY_KINDS
    )
    assert offered("dpaudit run x --require-p") == ["--require-power"]
    assert offered("dpaudit run x --require-r") == ["--require-rare"]
    assert offered("dpaudit plan x --rar") == ["--rare"]


MINE = """
raise SystemExit("nothing imports this")
def noisy_count(rows): ...
class Noisy:
    def method(self): ...
noisy_sum = lambda rows: 0
number = 3
try:
    def noisy_mean(rows): ...
except ValueError:
    pass
"""
BATCH = """version: 1
defaults: {mechanism: "nowhere:f", d1: 0, d2: 1, claim: {epsilon: 1}}
audits:
  - {name: count}
  - {name: Counts of all}
  - {matrix: {e: [1, 2]}, claim: {epsilon: "${e}"}, name: "sum-${e}"}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "audits.yaml").write_text(BATCH)
    (tmp_path / "wrong.yaml").write_text("version: 1\naudits: 3\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", ["run", "search"])
@pytest.mark.usefixtures("folder")
def test_functions_of_a_file_without_an_import(command: str) -> None:
    assert offered(f"dpaudit {command} mine.py:") == [
        f"mine.py:{name}" for name in ("noisy_count", "Noisy", "noisy_sum", "noisy_mean")
    ]


def test_names_of_audits(folder: Path) -> None:
    assert offered("dpaudit run -k ") == ["count", "'Counts of all'", "sum-1", "sum-2"]
    assert offered("dpaudit run audits.yaml -k COUNT") == ["count", "'Counts of all'"]
    assert offered("dpaudit run audits.yaml -k =sum") == ["=sum-1", "=sum-2"]
    for none in ("wrong.yaml", "absent.yaml"):
        assert offered(f"dpaudit run {none} -k ") == NOTHING
    (folder / "audits.yaml").rename("other.yaml")
    assert offered("dpaudit run -k ") == NOTHING
    (folder / "pyproject.toml").write_text("[tool.dpaudit]\naudits = 'other.yaml'\n")
    assert offered("dpaudit run -k s") == ["sum-1", "sum-2"]
    (folder / "pyproject.toml").write_text("[tool.dpaudit]\naudit = 'other.yaml'\n")
    assert offered("dpaudit run -k s") == NOTHING


@pytest.mark.usefixtures("folder")
def test_bash_divides_words_at_colons() -> None:
    replies = {
        "run mine.py :": "noisy_count Noisy noisy_sum noisy_mean",
        "run mine.py : noisy_m": "noisy_mean",
        "run mine.py : noisy_count --expec": "--expect",
        "run mine.py : noisy_count --expect v": "violation",
        "run -k s": "sum-1 sum-2",
        "run x --report = ju": "junit",
    }
    asks = "".join(
        f"COMP_WORDS=(dpaudit {words}) COMP_CWORD={len(words.split())} COMPREPLY=()\n"
        '_dpaudit_completion dpaudit\necho "${COMPREPLY[@]}"\n'
        for words in replies
    )
    script = f"""
export PATH={Path(DPAUDIT).parent}:$PATH
eval "$(_DPAUDIT_COMPLETE=bash_source dpaudit)"
{asks}"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines() == list(replies.values())
