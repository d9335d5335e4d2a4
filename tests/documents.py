"""Runs the commands and programs of a document; CONTRIBUTING.md says how they are written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(
    r"(?:<!-- file: (?P<file>\S+) -->\n+)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# Make would build another environment: what it says that it runs there is run here.
_NOT_HERE = ("make ", "pip ", "git ")
_THERE = ".venv/bin/"
_PROGRESS = re.compile(r"\S+( \(\d+ of \d+\))?: [\d,]+ of [\d,]+ draws, .*(left|/s, .*)$")

# Whatever the load of the machine, an audit without a stated budget has the largest number of
# draws, one without a stated `stop` a confirmation, and the trace of a violation enough time.
_STEADY = """
from dpaudit.auditing import pace; pace.clock, pace.SLOW_DRAW = lambda: 0.0, float("inf")
from dpaudit.tracing import forked_trace; forked_trace.TRACE_SECONDS = 60.0
"""
# `main` starts the program again, with a hash seed.
_DPAUDIT = f"""#!{{python}}
import os
from dpaudit.cli.main import main
if __name__ == "__main__":
    if "PYTHONHASHSEED" in os.environ: exec({_STEADY!r})
    main()
"""


@dataclass(frozen=True, slots=True)
class Block:
    kind: str
    file: str | None
    text: str


def blocks(document: Path) -> Iterator[Block]:
    for found in _FENCE.finditer(document.read_text(encoding="utf-8")):
        yield Block(found["kind"], found["file"], found["text"])


def follow(document: Path, folder: Path, installed: Path | None = None) -> None:
    """Do what a document says, in a folder.

    installed: the folder of the programs of another environment, in which dpaudit is installed.
        Without it, audits of this environment do not depend on the load of the machine.
    """
    programs = [Path(sys.executable).parent if installed is None else installed]
    python = [str(programs[0] / "python"), "-c"]
    if installed is None:
        steady = folder / "steady"
        steady.mkdir()
        (steady / "dpaudit").write_text(_DPAUDIT.format(python=sys.executable))
        (steady / "dpaudit").chmod(0o700)
        programs.insert(0, steady)
    path = os.pathsep.join((*map(str, programs), os.environ["PATH"]))
    source = "" if installed else str(ROOT)
    environment = {**os.environ, "PATH": path, "PYTHONPATH": source, "COLUMNS": "80"}
    # A plugin that no document is about takes a fifth of the start of pytest.
    environment["PYTEST_ADDOPTS"] = "-p no:hypothesispytest"
    for name in ("configs", "mechanisms"):
        shutil.copytree(ROOT / name, folder / name)
    for block in blocks(document):
        if block.file is not None:
            file = folder / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.kind == "python":
            text = block.text if installed else f"{_STEADY}\n{block.text}"
            ran = _run([*python, text], folder, environment)
            assert ran.returncode == 0, f"{block.text}\n{ran.stderr}"
        elif block.kind == "console":
            _check_console(block.text, folder, environment)


def _check_console(text: str, folder: Path, environment: dict[str, str]) -> None:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        if command.startswith("make ") and shown.startswith(_THERE):
            command, _, shown = shown.removeprefix(_THERE).partition("\n")
        if command.startswith(_NOT_HERE):
            continue
        result = _run(["bash", "-c", command], folder, environment)
        _compare(command, shown, result.stdout + result.stderr)


def _run(
    words: list[str], folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
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
    """Leave out times, versions, the ends of lines, and the progress that slow machines show."""
    lines = [line.rstrip() for line in text.strip().splitlines()]
    kept = [line for line in lines if not re.match(r"\s+(time|versions)\s", line)]
    kept = [line for line in kept if not _PROGRESS.match(line)]
    return "\n".join(kept)
