"""Messages and reports on a terminal: at most 80 columns, and what may be pasted in one piece."""

from __future__ import annotations

import fcntl
import io
import itertools
import os
import pty
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.cli.messages import folded
from tests.programs import DPAUDIT

LONG = (
    "error: the file runs/laplace.journal cannot be overwritten; repeat it with --resume (Python: "
    "resume=True), or choose some other place"
)
COMMANDS = [
    "dpaudit run mine.py:noisy_count --d1 '[1, 2, 3]' --d2 '[1, 2]' --epsilon 1",
    "dpaudit run --command './mechanism --fast' --d1 0 --d2 1 --adjacency add-remove --epsilon 1",
    'dpaudit search mine.py:f --space "list of number in [0, 1], at most 3" --epsilon 1',
    "dpaudit list my/file.yaml",
    "dpaudit report results.json",
    "pip install 'dpaudit[html]'",
    "pip install jinja2 matplotlib",
    """--init '{"a": 1, "b": 2}'""",
    "--batch-arg none",
    "init: {a: 1, b: 2}",
]


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def on_terminal(text: str) -> str:
    """Return a message as a terminal shows it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", Terminal())
        patch.delenv("COLUMNS", raising=False)
        return folded(text)


def test_a_message_has_lines_of_80_columns() -> None:
    assert on_terminal(LONG).split("\n") == [
        "error: the file runs/laplace.journal cannot be overwritten; repeat it with",
        "  --resume (Python: resume=True), or choose some other place",
    ]
    assert on_terminal("error: short") == "error: short"


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_elsewhere_a_message_is_one_line(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    assert folded(LONG) == LONG


def test_what_may_be_pasted_is_in_one_piece() -> None:
    """Wherever the line would have to be broken."""
    around = ("as in: {}", "as in: {}; see the docs", "({}), or", "'{}'?")
    for command, words, before in itertools.product(COMMANDS, around, range(0, 80, 7)):
        start = f"{'word ' * (before // 5)}{'x' * (before % 5)}"
        lines = on_terminal(f"error: {start} {words.format(command)} {LONG}").split("\n")
        assert any(command in line for line in lines)
        assert all(len(line) <= 80 or command in line for line in lines)


@given(st.lists(st.text("ab-.'\"=;:,{[ /X1", min_size=1, max_size=90), max_size=9))
def test_nothing_is_lost(parts: list[str]) -> None:
    text = " ".join(" dpaudit run ".join(parts).split())
    assert on_terminal(text).replace("\n  ", " ") == text


@pytest.mark.parametrize(("columns", "longest"), [("200", 80), ("60", 60), ("20", 40), ("0", 80)])
def test_a_message_fits_in_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: str, longest: int
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", columns)
    lengths = [len(line) for line in folded("word " * 100).split("\n")]
    assert longest - 6 < max(lengths) <= longest


def _shown(words: list[str], folder: Path, columns: int) -> list[str]:
    """Return what a command prints on a terminal of `columns` columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen(
        [DPAUDIT, *words], cwd=folder, env=environment, stdout=theirs, stderr=subprocess.DEVNULL
    ) as process:
        os.close(theirs)
        pieces = list[bytes]()
        with suppress(OSError):  # raised at the end
            while piece := os.read(ours, 4_096):
                pieces.append(piece)
        os.close(ours)
    assert process.returncode == 0
    return b"".join(pieces).decode().splitlines()


def test_a_report_fits_in_a_narrow_terminal_and_its_file_does_not_change(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("def noisy(x, rng): return x + rng.laplace()")
    inputs = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "2000", "--no-trace")
    words = ["run", "m.py:noisy", *inputs, "--report", "text:r.txt"]
    lengths = {}
    for columns in (50, 120):
        lines = _shown(words, tmp_path, columns)
        last = lines[lines.index(next(line for line in lines if line.startswith("  repeat "))) :]
        lengths[columns] = max(map(len, last[1:]))
        text = (tmp_path / "r.txt").read_text()
        assert 70 < max(map(len, text.split("  repeat ")[1].splitlines()[1:])) <= 80
    assert lengths[50] <= 50
    assert 70 < lengths[120] <= 80
