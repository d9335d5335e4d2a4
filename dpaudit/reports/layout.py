"""Arrange a report in lines of at most `wording.report_width` columns: rows with a label, and
paragraphs."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from dpaudit.reports.numbers import GLUE
from dpaudit.wording import report_width, visible

LABEL = 14
# Indentation of the first line of a row.
_MARGIN = "  "
# Indentation of the further lines of a row.
BELOW = " " * LABEL


class Row(NamedTuple):
    """A row of a report, of any length. A row with the label "" continues the row above. A row with
    the label None is an indented paragraph."""

    label: str | None
    text: str

    def lines(self) -> list[str]:
        """Return the row as lines with a hanging indent."""
        if self.label is None:
            return wrap(self.text, _MARGIN, _MARGIN)
        return wrap(self.text, f"{_MARGIN}{f'{self.label} ':<{LABEL - len(_MARGIN)}}", BELOW)


# A part of a text report: a row, which is still to be wrapped into lines, or a text that is printed
# unchanged as one line, such as a line of a table.
Item = Row | str


def row(label: str, text: str) -> list[Item]:
    """Return a list that contains one row with this label and text."""
    return [Row(label, text)]


def paragraph(text: str) -> list[Item]:
    """Return a list that contains one indented paragraph."""
    return [Row(None, text)]


def laid_out(items: Iterable[Item]) -> list[str]:
    """Return the rows as lines of text."""
    return [line for item in items for line in (item.lines() if isinstance(item, Row) else [item])]


def wrap(text: str, first: str = "", further: str = "") -> list[str]:
    """Return `text` as lines of the width of reports, indented by `first` and `further`, with
    control characters escaped and long words broken: paths after a slash."""
    room = report_width() - max(len(first), len(further))
    # No-break spaces keep a relation such as `ε ≥ 1` on one line.
    line = re.sub(r"\b([εδp]) ([≥=<]) ", rf"\1{GLUE}\2{GLUE}", " ".join(visible(text).splitlines()))
    return textwrap.wrap(
        re.sub(r"\S+", lambda word: _breakable(word[0], room), line),
        report_width(),
        initial_indent=first,
        subsequent_indent=further,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def _breakable(path: str, width: int) -> str:
    """Return a path with a space after each slash at which it must be broken to fit in a line."""
    if len(path) <= width:
        return path
    lines = [""]
    for part in re.split(r"(?<=/)", path):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return " ".join(lines)


def glued(text: str) -> str:
    """Return `text` with no-break spaces in place of spaces, so that it stays on one line."""
    return text.replace(" ", GLUE)


def pasted(command: str) -> str:
    """Return a command as a single line that the user can copy."""
    return command.replace("\n", "\\n")


def width_of(text: str) -> int:
    """Return the width of `text` in columns of a terminal. A wide character, such as a Chinese one,
    takes 2 columns, and a combining character none."""
    return sum(
        2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
        if not unicodedata.combining(character)
    )


def padded(text: str, width: int) -> str:
    """Return `text` with spaces appended until it is `width` columns wide."""
    return text + " " * (width - width_of(text))


def table(
    cells: Sequence[Sequence[str]], left: Collection[int] = (), margin: str = _MARGIN
) -> list[str]:
    """Return the lines of a table, each after `margin`. Cells are two spaces apart. They are
    aligned to the right, except in the columns whose indices are in `left`."""
    widths = [max(map(width_of, column)) for column in zip(*cells, strict=True)]
    lines = []
    for line in cells:
        aligned = [
            padded(text, width) if index in left else " " * (width - width_of(text)) + text
            for index, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append(margin + "  ".join(aligned).rstrip())
    return lines
