"""What messages say of numbers and places, in the same words everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

# A note on an audit whose outputs equal seeds do not repeat, though no call has changed a variable.
UNSEEDED = (
    "the mechanism draws randomness that no seed controls, from the operating system or a native "
    "library: another run will differ"
)
# Of the names of modules that are files, run by their paths: no message shows them.
FILE_PREFIX = "dpaudit_file_"

# Not compiled yet: most runs that take a moment show nothing that it is for.
_STEERING = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
    "\ufffe\uffff]"
)
# `::error::` begins a line, after blanks; `##[error]` may stand anywhere in one.
_COMMAND = r"(?m)((?:^|\r)[^\S\n]*):(?=:)|#(?=#\[)"


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


# How alike two names must be, from 0 to 1, for one to be a slip of the other; what only shares its
# length or its ending with another is not.
_NEAR = 0.66
# Of a name with fewer letters nobody can tell what it is a slip of.
_LETTERS = 3
# So many names are listed beside the one that was meant.
_FEW = 12


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return `" Did you mean 'x'?"` for the nearest known name, or `""`."""
    return _guess(nearest(wrong, known))


def did_you_mean_or_known(wrong: str, known: Sequence[str]) -> str:
    """Return the nearest known name, and all of them where there is none or they are few."""
    meant = did_you_mean(wrong, known)
    return meant if meant and len(known) > _FEW else f"{meant} Known: {', '.join(known)}"


def did_you_mean_file(wrong: str, names: Iterable[str]) -> str:
    """Return the same for the name of a file; names: of what is there of that kind. One may also be
    near without its ending, which all of a kind share."""
    known = list(names)
    near = _alike(wrong, known)
    if near:
        return _guess(near[0])
    # Imported here, since most runs have no slip in them.
    import difflib

    stem, ending = _parts(wrong)
    of_kind = {
        one: one + other
        for one, other in map(_parts, known)
        if difflib.SequenceMatcher(None, other.lower(), ending.lower()).ratio() >= _NEAR
    }
    close = [stem] if stem in of_kind else []
    if not close and len(stem) >= _LETTERS - 1:
        close = difflib.get_close_matches(stem, of_kind, n=1, cutoff=_NEAR)
    return _guess(of_kind[close[0]] if close else None)


def why_no_confidence(value: float, example: str) -> str | None:
    """Return why a number is no confidence; None where it is one. Below 0.5 lies what most people
    mean as the probability of a false alarm."""
    if 0.5 <= value < 1:
        return None
    from decimal import Decimal  # most runs need none

    other = float(1 - Decimal(str(float(value)))) if 0 < value < 0.5 else 1.0
    meant = f"; did you mean {other}?" if other < 1 else ""
    return f"must be a number from 0.5 to below 1, such as {example}{meant}"


def nearest(wrong: str, known: Iterable[str]) -> str | None:
    """Return the known name that a wrong one is in another case, begins, or nearly is."""
    names = list(known)
    near = _alike(wrong, names)
    letters = len(wrong.lstrip("-."))
    if not near and letters >= _LETTERS:
        import difflib

        near = difflib.get_close_matches(wrong, names, n=1, cutoff=_NEAR)
    if not near and letters == _LETTERS - 1 and wrong.isalpha():
        near = [one for one in names if _lacks_a_letter(wrong, one)]
        near = near if len(near) == 1 else []
    return near[0] if near else None


def _lacks_a_letter(wrong: str, name: str) -> bool:
    """Return whether a word is a name without one of its letters, but not the first."""
    return any(wrong == name[:place] + name[place + 1 :] for place in range(1, len(name)))


def _parts(name: str) -> tuple[str, str]:
    stem, dot, ending = name.rpartition(".")
    return (stem, dot + ending) if stem else (name, "")


def _alike(wrong: str, names: list[str]) -> list[str]:
    """Return the names that are a wrong one in another case, else those that begin with it."""
    near = [one for one in names if one.lower() == wrong.lower()]
    if not near and len(wrong) >= _LETTERS:
        near = sorted((one for one in names if one.startswith(wrong)), key=len)
    return near


def _guess(near: str | None) -> str:
    return f" Did you mean {near!r}?" if near is not None else ""


Extra = Literal["figures", "html", "dask", "parquet", "learned", "search"]

# As in pyproject.toml, without versions.
EXTRAS: Mapping[Extra, tuple[str, ...]] = {
    "figures": ("matplotlib",),
    "html": ("jinja2", "matplotlib"),
    "dask": ("distributed",),
    "parquet": ("pyarrow",),
    "learned": ("scikit-learn",),
    "search": ("hypothesis",),
}


def install_command(extra: Extra) -> str:
    """Return the command that installs what an extra needs.

    >>> install_command("html")
    'pip install jinja2 matplotlib'
    """
    return f"pip install {' '.join(EXTRAS[extra])}"
