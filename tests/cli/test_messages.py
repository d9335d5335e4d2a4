"""Messages on a terminal: at most 80 columns, and what may be pasted in one piece."""

from __future__ import annotations

import io
import itertools
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.cli.messages import folded

LONG = (
    "error: the file runs/laplace.journal cannot be overwritten; repeat it with --resume (Python: "
    "resume=True), or choose some other place"
)


COMMANDS = [
    "dpaudit run mine.py:noisy_count --d1 '[1, 2, 3]' --d2 '[1, 2]' --epsilon 1",
    'dpaudit search mine.py:f --space "list of number in [0, 1], at most 3" --epsilon 1',
    "pip install jinja2 matplotlib",
    """--init '{"a": 1, "b": 2}'""",
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


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_elsewhere_a_message_is_one_line(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO | None
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    assert folded(LONG) == LONG


def test_what_may_be_pasted_is_in_one_piece_wherever_the_line_has_to_be_broken() -> None:
    around = ("as in: {}; see the docs", "({}), or", "'{}'?")
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
