"""A terminal that is closed while a command prints."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

from dpaudit.reports.json import read_document
from tests.programs import DPAUDIT

ROOT = Path(__file__).parents[3]
AUDITS = 100  # long enough for the terminal to be closed before their end
# Makes the terminal that is its input that of its session, as a shell's is.
_OWNING = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def closed_after(sign: bytes, *words: str) -> int:
    """Run a command in a terminal that is closed once it has shown something; return its code."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", _OWNING, DPAUDIT, *words]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    shown = b""
    while sign not in shown:
        shown += os.read(ours, 4_096)
    os.close(ours)
    return process.wait(timeout=60)


def test_what_was_finished_is_saved(tmp_path: Path) -> None:
    line = (
        "  - {{name: a{0}, mechanism: 'mechanisms.laplace:laplace', d1: 0, d2: 1, "
        "claim: {{epsilon: 1}}, samples: 100_000}}\n"
    )
    audits = tmp_path / "audits.yaml"
    audits.write_text("version: 1\naudits:\n" + "".join(map(line.format, range(AUDITS))))
    results = tmp_path / "results.json"
    # The row of a finished audit; the line of progress also names the one that runs.
    assert closed_after("a1   ε".encode(), "run", str(audits), "--json", str(results)) == 129
    found, planned, _ = read_document(results.read_text("utf-8"))
    assert 2 <= len(found) < planned == AUDITS
    assert json.loads(results.read_text("utf-8"))["planned"] == AUDITS
