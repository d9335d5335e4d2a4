"""What messages say of numbers and places, in the same words everywhere."""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# A note on an audit whose outputs equal seeds do not repeat, though no call has changed a variable.
UNSEEDED = (
    "the mechanism draws randomness that no seed controls, from the operating system or a native "
    "library: another run will differ"
)
# Of the names of modules that are files, run by their paths: no message shows them.
FILE_PREFIX = "dpaudit_file_"
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

# Not compiled yet: most runs that take a moment show nothing that it is for.
_STEERING = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
    "\ufffe\uffff]"
)
# `::error::` begins a line, after blanks; `##[error]` may stand anywhere in one.
_COMMAND = r"(?m)((?:^|\r)[^\S\n]*):(?=:)|#(?=#\[)"


def what_is_there(path: Path) -> str:
    """Return what a path leads to that is no regular file, such as `"a folder"`; else `""`."""
    try:
        return kind_of(path.stat().st_mode)
    except (OSError, ValueError):  # not there, or a link to what is not; or no path at all
        is_link = path.is_symlink()
    return f"a symbolic link to {str(path.readlink())!r}, which is not there" if is_link else ""


def kind_of(mode: int) -> str:
    """Return what is no regular file, by the mode that the system says; else `""`."""
    return next((name for is_one, name in _KINDS if is_one(mode)), "")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural but for one.

    >>> counted(1, "draw"), counted(2000, "draw"), counted(2, "guess")
    ('1 draw', '2,000 draws', '2 guesses')
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('s') else 's'}"


def visible(text: str) -> str:
    """Return a text with escapes for what steers a terminal or a CI system, or is shown otherwise
    than it is written: control characters but for tabs and the ends of lines, changes of direction,
    halves of characters, commands of GitHub Actions. XML has a form for all that is left.

    >>> visible("red: \\x1b[31m")
    'red: \\\\x1b[31m'
    """
    return inert(re.sub(_STEERING, lambda found: ascii(found[0])[1:-1], text))


def inert(text: str) -> str:
    """Return a text no line of which is a command of GitHub Actions.

    >>> inert("a::b"), inert(" ::error::c")
    ('a::b', ' \\\\x3a:error::c')
    """
    return re.sub(
        _COMMAND, lambda found: rf"{found[1]}\x3a" if found[0][-1] == ":" else r"\x23", text
    )


def in_a_line(text: str) -> str:
    """Return a text whose lines are one, with spaces between them."""
    return " ".join(text.splitlines())


def shortened(text: str, width: int = 60) -> str:
    """Return a text on one line, cut to so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def shown(value: object, width: int = 60) -> str:
    """Return a value as Python writes it, on one line, cut to so many characters."""
    return shortened(repr(value), width)
