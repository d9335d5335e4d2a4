"""Texts for a terminal: messages broken into lines, texts in ASCII, and the output of mechanisms
without repeated lines.

The process that watches dpaudit imports this module, so it imports little.
"""

from __future__ import annotations

import re
import sys
import unicodedata

from dpaudit.wording import inert

_COLUMNS = 80
# Stands for a space that must not be a line break. No message has this character, since `visible`
# shows it as an escape.
_GLUE = "\0"
# A word of a shell, without the punctuation of the sentence around it.
_WORD = r"""(?:(?<=[ =])'[^']*'|(?<=[ =])"[^"]*"|[^\s'";,.?)]|[;,.?)](?=[^\s'"]))+"""
_FLAG = rf"(?<![\w-])--?[a-zA-Z][\w-]*(?:[ =]{_WORD})?"
# An argument of a command. Plain words do not match, since they may belong to the sentence.
_ARGUMENT = rf"(?:{_FLAG}|(?=['\"]|\S*[A-Z\d.:/=…\[{{]\S){_WORD})"
# Texts to copy: a command, a flag with its value, a key of a file with its values.
_PASTED = (
    r"\bpip install(?: [\w.-]*\w)+"
    rf"|\b(?:dpaudit|pip|pytest|chmod) [\w+-]+(?: [a-z]+(?= |$))?(?: {_ARGUMENT})*|{_FLAG}"
    r"|\w+: \{[^{}]*\}"
)


def folded(text: str) -> str:
    """Return a message in lines of at most 80 columns if standard error is a terminal. Lines break
    at spaces, but not inside a text to copy."""
    if not _is_terminal():
        return text
    import textwrap  # only terminals need it

    lines: list[str] = []
    for line in text.split("\n"):
        glued = re.sub(_PASTED, lambda found: found[0].replace(" ", _GLUE), line)
        lines += textwrap.wrap(
            glued,
            _COLUMNS,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return "\n".join(lines).replace(_GLUE, " ")


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
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
    """Return a text in ASCII, with a question mark for each character without such a form.

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


# Largest number of different lines shown, and of bytes of a line.
_SHOWN = 20
_WIDTH = 500


class Chatter:
    """Takes the output of a mechanism in pieces and returns the lines to show, each once."""

    def __init__(self) -> None:
        self._begun = b""
        self._counts: dict[bytes, int] = {}
        self._others = 0

    def heard(self, data: bytes) -> bytes:
        """Take a piece of the output and return the complete lines that are new."""
        *lines, begun = (self._begun + data).split(b"\n")
        self._begun = begun[: _WIDTH + 1]
        return b"".join(filter(None, map(self._counted, lines)))

    def summary(self) -> bytes:
        """Return the last line, if it lacks its end, and the counts of repeated lines."""
        last = self._counted(self._begun) if self._begun else b""
        self._begun = b""
        if self._others:
            total = self._others + sum(self._counts.values())
            left_out = f"of which {len(self._counts)} different lines are shown"
            return last + f"the mechanism printed {total:,} lines, {left_out}\n".encode()
        repeated = [
            b"the mechanism printed %s times: %s\n" % (f"{count:,}".encode(), line)
            for line, count in self._counts.items()
            if count > 1
        ]
        return last + b"".join(repeated)

    def _counted(self, line: bytes) -> bytes:
        """Count a line. Return it with its line break if it is to be shown, else b""."""
        line = inert(line.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        line = line if len(line) <= _WIDTH else line[:_WIDTH] + "…".encode()
        if line in self._counts:
            self._counts[line] += 1
        elif len(self._counts) < _SHOWN:
            self._counts[line] = 1
            return line + b"\n"
        else:
            self._others += 1
        return b""
