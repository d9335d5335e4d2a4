"""The commands and programs in README and docs, run; CONTRIBUTING.md says how they are written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import warm

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
# The first commands of a new user are those of the installed package, and pytest is; of the others,
# a warm process forks the programs.
STARTED = [ROOT / "README.md", ROOT / "docs/pytest.md"]
_FENCE = re.compile(
    r"(?:<!-- file: (?P<file>\S+) -->\n+)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# Make would build another environment: what it says that it runs there is run here.
_NOT_HERE = ("make ", "pip ", "git ")
_THERE = ".venv/bin/"


@dataclass(frozen=True, slots=True)
class Block:
    kind: str
    file: str | None
    text: str


def blocks(document: Path) -> Iterator[Block]:
    for found in _FENCE.finditer(document.read_text(encoding="utf-8")):
        yield Block(found["kind"], found["file"], found["text"])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_blocks_do_what_they_show(document: Path, tmp_path: Path) -> None:
    programs = Path(sys.executable).parent if document in STARTED else warm.folder()
    for name in ("configs", "mechanisms"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for block in blocks(document):
        if block.file is not None:
            file = tmp_path / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.kind == "python":
            python = [sys.executable] if document in STARTED else warm.python()
            ran = _run([*python, "-c", block.text], tmp_path, programs)
            assert ran.returncode == 0, f"{block.text}\n{ran.stderr}"
        elif block.kind == "console":
            _check_console(block.text, tmp_path, programs)


def test_readme_has_blocks() -> None:
    kinds = [block.kind for block in blocks(ROOT / "README.md")]
    assert "console" in kinds
    assert "python" in kinds


def _check_console(text: str, folder: Path, programs: Path) -> None:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        if command.startswith("make ") and shown.startswith(_THERE):
            command, _, shown = shown.removeprefix(_THERE).partition("\n")
        if command.startswith(_NOT_HERE):
            continue
        result = _run(["bash", "-c", command], folder, programs)
        _compare(command, shown, result.stdout + result.stderr)


def _run(words: list[str], folder: Path, programs: Path) -> subprocess.CompletedProcess[str]:
    first = (str(programs), str(Path(sys.executable).parent))
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((*first, os.environ["PATH"])),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "80",
    }
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def _compare(command: str, shown: str, printed: str) -> None:
    wanted, got = _normalised(shown), _normalised(printed)
    pattern = ".*".join(map(re.escape, re.split(r"^\.\.\.$", wanted, flags=re.MULTILINE)))
    assert re.fullmatch(pattern, got, re.DOTALL), (
        f"$ {command}\n\nshown:\n{shown}\nprinted:\n{printed}"
    )


def _normalised(text: str) -> str:
    """Leave out times, versions and the ends of lines."""
    lines = [line.rstrip() for line in text.strip().splitlines()]
    kept = [line for line in lines if not re.match(r"\s+(time|versions)\s", line)]
    return "\n".join(kept)
