"""Lines of at most 80 columns: labelled rows and hanging paragraphs."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Collection, Sequence

from dpaudit.reports.numbers import GLUE
from dpaudit.wording import visible

WIDTH = 80
LABEL = 14
# What stands before lines, and before those below the texts of rows.
_MARGIN, BELOW = "  ", " " * LABEL


class Line(str):
    """The first line of a row or of a paragraph. label, text: what it was made of, unbroken; a
    paragraph has no label, and a row with an empty one goes on with the one above."""

    __slots__ = ("label", "text")

    label: str | None
    text: str


def row(label: str, text: str) -> list[str]:
    """Return `  label   text`, its further lines below the text."""
    lines = wrap(text, f"{_MARGIN}{f'{label} ':<{LABEL - len(_MARGIN)}}", BELOW)
    return _remembering(lines, label, text)


def paragraph(text: str) -> list[str]:
    """Return an indented paragraph."""
    return _remembering(wrap(text, _MARGIN, _MARGIN), None, text)


def remembered(lines: Sequence[str]) -> list[Line]:
    """Return what rows and paragraphs were made of; those of tables are left out."""
    return [one for one in lines if isinstance(one, Line)]


def wrap(text: str, first: str = "", further: str = "") -> list[str]:
    """Return lines of text behind an indentation; a word longer than a line is broken.
    What steers a terminal is written out here, since that takes room."""
    return textwrap.wrap(
        # `ε ≥ 1` and its like stay on one line.
        re.sub(r"\b([εδp]) ([≥=<]) ", rf"\1{GLUE}\2{GLUE}", " ".join(visible(text).splitlines())),
        WIDTH,
        initial_indent=first,
        subsequent_indent=further,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def glued(text: str) -> str:
    """Return text that no line break divides."""
    return text.replace(" ", GLUE)


def pasted(command: str) -> str:
    """Return a command in one line, not broken, since it is there to be pasted."""
    return command.replace("\n", "\\n")


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes: two for each wide character, such as a
    Chinese one, and none for one that is put onto the one before."""
    return sum(
        2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
        if not unicodedata.combining(character)
    )


def padded(text: str, width: int) -> str:
    """Return a text with spaces up to so many columns."""
    return text + " " * (width - width_of(text))


def table(
    cells: Sequence[Sequence[str]], left: Collection[int] = (), margin: str = _MARGIN
) -> list[str]:
    """Return rows of cells, two spaces apart; columns are aligned to the right, those of `left` to
    the left."""
    widths = [max(map(width_of, column)) for column in zip(*cells, strict=True)]
    lines = []
    for line in cells:
        aligned = [
            padded(text, width) if place in left else " " * (width - width_of(text)) + text
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append(margin + "  ".join(aligned).rstrip())
    return lines


def _remembering(lines: list[str], label: str | None, text: str) -> list[str]:
    first = Line(lines[0])
    first.label, first.text = label, text
    return [first, *lines[1:]]
