"""Lines of at most 80 columns: labelled rows and hanging paragraphs."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from dpaudit.reports.numbers import GLUE
from dpaudit.wording import visible

WIDTH = 80
LABEL = 14
# Indentation of lines, and of the further lines of a row.
_MARGIN, BELOW = "  ", " " * LABEL


class Row(NamedTuple):
    """A row of a report: a label and a text of any length.

    An empty label continues the row above. The label None makes an indented paragraph.
    """

    label: str | None
    text: str

    def lines(self) -> list[str]:
        """Return the row as lines of text, its further lines below the first text."""
        if self.label is None:
            return wrap(self.text, _MARGIN, _MARGIN)
        return wrap(self.text, f"{_MARGIN}{f'{self.label} ':<{LABEL - len(_MARGIN)}}", BELOW)


# A row, or a line that is laid out already, such as a line of a table.
Item = Row | str


def row(label: str, text: str) -> list[Item]:
    """Return a list with one labelled row."""
    return [Row(label, text)]


def paragraph(text: str) -> list[Item]:
    """Return a list with one indented paragraph."""
    return [Row(None, text)]


def laid_out(items: Iterable[Item]) -> list[str]:
    """Return rows as lines of text."""
    return [line for one in items for line in (one.lines() if isinstance(one, Row) else [one])]


def wrap(text: str, first: str = "", further: str = "") -> list[str]:
    """Return indented lines of text, with control characters escaped; long words are broken."""
    return textwrap.wrap(
        # No-break spaces keep a relation such as `ε ≥ 1` on one line.
        re.sub(r"\b([εδp]) ([≥=<]) ", rf"\1{GLUE}\2{GLUE}", " ".join(visible(text).splitlines())),
        WIDTH,
        initial_indent=first,
        subsequent_indent=further,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def glued(text: str) -> str:
    """Return text with no-break spaces, so that it stays on one line."""
    return text.replace(" ", GLUE)


def pasted(command: str) -> str:
    """Return a command in one line, to be pasted."""
    return command.replace("\n", "\\n")


def width_of(text: str) -> int:
    """Return the width of a text in columns of a terminal: 2 for wide (such as Chinese) characters,
    0 for combining characters."""
    return sum(
        2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
        if not unicodedata.combining(character)
    )


def padded(text: str, width: int) -> str:
    """Return a text padded with spaces to a width in columns."""
    return text + " " * (width - width_of(text))


def table(
    cells: Sequence[Sequence[str]], left: Collection[int] = (), margin: str = _MARGIN
) -> list[str]:
    """Return lines of cells, two spaces apart, aligned to the right.

    left: columns to align to the left instead.
    """
    widths = [max(map(width_of, column)) for column in zip(*cells, strict=True)]
    lines = []
    for line in cells:
        aligned = [
            padded(text, width) if place in left else " " * (width - width_of(text)) + text
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append(margin + "  ".join(aligned).rstrip())
    return lines
