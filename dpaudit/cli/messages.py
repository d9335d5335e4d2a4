"""Messages on standard error: lines of 80 columns on a terminal, one line each in files and CI."""

from __future__ import annotations

import re
import sys

_WIDTH = 80
# No message holds one: `visible` has shown it as an escape.
_GLUE = "\0"
# A word of a shell, without the punctuation of the sentence around it.
_WORD = r"""(?:(?<=[ =])'[^']*'|(?<=[ =])"[^"]*"|[^\s'";,.?)]|[;,.?)](?=[^\s'"]))+"""
_FLAG = rf"(?<![\w-])--?[a-zA-Z][\w-]*(?:[ =]{_WORD})?"
# What is no plain word, since prose may follow.
_ARGUMENT = rf"(?:{_FLAG}|(?=['\"]|\S*[A-Z\d.:/=…\[{{]\S){_WORD})"
# What may be pasted: a command, a flag with its value, a key of a file with its values.
_PASTED = (
    r"\bpip install(?: [\w.-]*\w)+"
    rf"|\b(?:dpaudit|pip|pytest|chmod) [\w+-]+(?: [a-z]+(?= |$))?(?: {_ARGUMENT})*|{_FLAG}"
    r"|\w+: \{[^{}]*\}"
)


def folded(text: str) -> str:
    """Return a message in lines of at most 80 columns if standard error is a terminal: divided at
    spaces, but not inside what may be pasted."""
    if not _is_terminal():
        return text
    # Nobody else needs it.
    import textwrap

    lines: list[str] = []
    for line in text.split("\n"):
        glued = re.sub(_PASTED, lambda found: found[0].replace(" ", _GLUE), line)
        lines += textwrap.wrap(
            glued,
            _WIDTH,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return "\n".join(lines).replace(_GLUE, " ")


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or the mechanism has closed it
        return False
