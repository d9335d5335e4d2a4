"""Print messages on standard error: break them into lines for a terminal, and write texts in
ASCII."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import click

from dpaudit.wording import MAX_WIDTH, MIN_WIDTH, visible

# Standard error while `sys.stderr` belongs to the mechanism; otherwise None.
_stream: TextIO | None = None
# Replaces each space at which a line must not break. No message contains this character, since
# `visible` shows it as an escape sequence.
_GLUE = "\0"
# Matches one word of a shell command, quoted or not. A comma or full stop at its end is not
# matched, since it belongs to the sentence around the command.
_WORD = r"""(?:(?<=[ =])'[^']*'|(?<=[ =])"[^"]*"|[^\s'";,.?)]|[;,.?)](?=[^\s'"]))+"""
_FLAG = rf"(?<![\w-])--?[a-zA-Z][\w-]*(?:[ =]{_WORD})?"
# Matches one argument of a command: a flag, or a word with a quote, capital, digit or sign such as
# `/`. A plain word may belong to the sentence, so it is not matched.
_ARGUMENT = rf"(?:{_FLAG}|(?=['\"]|\S*[A-Z\d.:/=…\[{{]\S){_WORD})"
# Matches texts that a user may copy: a command, a flag with its value, or a YAML key with its
# values in braces.
_PASTED = (
    r"\bpip install(?: [\w.-]*\w)+"
    rf"|\b(?:dpaudit|pip|pytest|chmod) [\w+-]+(?: [a-z]+(?= |$))?(?: {_ARGUMENT})*|{_FLAG}"
    r"|\w+: \{[^{}]*\}"
)


def standard_error() -> TextIO:
    """Return the stream for messages of this program."""
    return _stream or sys.stderr


@contextmanager
def given_away(stderr: TextIO) -> Iterator[None]:
    """Within the `with` block, let the mechanism have `stderr` as its standard error."""
    global _stream
    _stream, sys.stderr = sys.stderr, stderr
    try:
        yield
    finally:
        sys.stderr, _stream = _stream, None


def tell(text: str) -> None:
    """Print a message of this program, with control characters escaped."""
    click.echo(folded(visible(text)), file=standard_error(), err=True)


def folded(text: str) -> str:
    """Return a message with line breaks after at most 80 columns, or those of a narrower terminal,
    but never inside a command or another text that the user may copy; unchanged if standard error
    is not a terminal."""
    if not _is_terminal():
        return text
    limit = max(MIN_WIDTH, min(MAX_WIDTH, columns_of(standard_error())))
    import textwrap  # only terminals need it

    lines: list[str] = []
    for line in text.split("\n"):
        glued = re.sub(_PASTED, lambda match: match[0].replace(" ", _GLUE), line)
        lines += textwrap.wrap(
            glued,
            limit,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return "\n".join(lines).replace(_GLUE, " ")


def columns_of(terminal: TextIO) -> int:
    """Return the width of a terminal in columns; 80 if it is unknown."""
    # shutil computes the same number, but imports three compression modules.
    columns = 0
    with suppress(KeyError, ValueError):
        columns = int(os.environ["COLUMNS"])
    if columns <= 0:
        with suppress(OSError, ValueError):
            columns = os.get_terminal_size(terminal.fileno()).columns
    return columns if columns > 0 else MAX_WIDTH


def _is_terminal() -> bool:
    try:
        return standard_error().isatty()
    except (AttributeError, ValueError):  # standard error is absent, or the mechanism has closed it
        return False


_SIGNS = {
    "ε": "eps",
    "λ": "lambda",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "≈": "~",
    "∞": "inf",
    "√": "sqrt ",
    "·": "*",
    "×": "x",
    "→": "->",
    "⇒": "=>",
    "‖": "||",
    "⁄": "/",
    **dict.fromkeys("−–—", "-"),
    **dict.fromkeys("“”", '"'),
    **dict.fromkeys("‘’", "'"),
}
_GREEK, _RAISED = "GREEK ", "<super>"


def in_ascii(text: str) -> str:
    """Return `text` in ASCII. A question mark replaces each character that has no spelling in
    ASCII.

    >>> in_ascii("ε ≥ 1 … δ ≤ 10⁻⁹, é, 漢")
    'eps >= 1 ... delta <= 10^-9, e, ?'
    """
    parts: list[str] = []
    was_raised = False
    for character in text:
        is_raised = unicodedata.decomposition(character).startswith(_RAISED)
        parts.append("^" if is_raised and not was_raised else "")
        parts += map(_plain, unicodedata.normalize("NFKD", character))
        was_raised = is_raised
    return "".join(parts)


def _plain(character: str) -> str:
    if character.isascii():
        return character
    if unicodedata.combining(character):
        return ""
    name = unicodedata.name(character, "")
    if character in _SIGNS or not name.startswith(_GREEK):
        return _SIGNS.get(character, "?")
    letter = name.partition(" WITH ")[0].rpartition(" ")[2]
    return letter.title() if "CAPITAL" in name else letter.lower()
