"""Texts of messages: numbers with nouns, near names, packages to install, safe output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

# Note on an audit that equal seeds do not repeat, although no call changes a variable.
UNSEEDED = (
    "the mechanism draws randomness that no seed controls, from the operating system or a native "
    "library: another run will differ"
)
# Prefix of the names of modules that were run from files; no message shows such a name.
FILE_PREFIX = "dpaudit_file_"

# Characters to escape. Compiled on first use, since most runs have none to escape.
_STEERING = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
    "\ufffe\uffff]"
)
# Commands of GitHub Actions: `::error::` at the start of a line, `##[error]` anywhere.
_COMMAND = r"(?m)((?:^|\r)[^\S\n]*):(?=:)|#(?=#\[)"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1.

    >>> counted(1, "draw"), counted(2000, "draw"), counted(2, "guess")
    ('1 draw', '2,000 draws', '2 guesses')
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('s') else 's'}"


def visible(text: str) -> str:
    """Return a text with escapes for characters and commands that a terminal or CI would act on.

    Escaped are control characters (except tabs and line ends), changes of direction, surrogates and
    commands of GitHub Actions. The result is valid in XML.

    >>> visible("red: \\x1b[31m")
    'red: \\\\x1b[31m'
    """
    return inert(re.sub(_STEERING, lambda match: ascii(match[0])[1:-1], text))


def inert(text: str) -> str:
    """Return a text with escapes for commands of GitHub Actions.

    >>> inert("a::b"), inert(" ::error::c")
    ('a::b', ' \\\\x3a:error::c')
    """
    return re.sub(
        _COMMAND, lambda match: rf"{match[1]}\x3a" if match[0][-1] == ":" else r"\x23", text
    )


def in_a_line(text: str) -> str:
    """Return the lines of a text as one line, joined by spaces."""
    return " ".join(text.splitlines())


def on_one_line(text: str) -> str:
    """Return a text with a single space for each run of white space.

    >>> on_one_line(" no  such\\n\\tfile ")
    'no such file'
    """
    return " ".join(text.split())


def shortened(text: str, width: int = 60) -> str:
    """Return a text on one line, cut to `width` characters."""
    line = on_one_line(text)
    return line if len(line) <= width else f"{line[: width - 1]}…"


def shown(value: object, width: int = 60) -> str:
    """Return the `repr` of a value on one line, cut to `width` characters."""
    return shortened(repr(value), width)


# Similarity (0 to 1, difflib) from which a name may be a misspelling of another. Names that only
# share a length or an ending are less similar.
_SIMILAR = 0.66
# Shorter names are too short for a guess.
_LETTERS = 3
# Up to this many known names are listed next to the guess.
_FEW_NAMES = 12


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return `" Did you mean 'x'?"` for the nearest known name, or `""`."""
    return _guess(nearest(wrong, known))


def did_you_mean_or_known(wrong: str, known: Sequence[str]) -> str:
    """Return the nearest known name, and the list of all names if it is short or no name is
    near."""
    meant = did_you_mean(wrong, known)
    return meant if meant and len(known) > _FEW_NAMES else f"{meant} Known: {', '.join(known)}"


def did_you_mean_file(wrong: str, names: Iterable[str]) -> str:
    """Return `did_you_mean` for a file name.

    names: the files of that kind in the folder, which are also compared without their endings.
    """
    known = list(names)
    near = _alike(wrong, known)
    if near:
        return _guess(near[0])
    # Imported here, since most runs do not need it.
    import difflib

    stem, ending = _parts(wrong)
    of_kind = {
        name: name + suffix
        for name, suffix in map(_parts, known)
        if difflib.SequenceMatcher(None, suffix.lower(), ending.lower()).ratio() >= _SIMILAR
    }
    close = [stem] if stem in of_kind else []
    if not close and len(stem) >= _LETTERS - 1:
        close = difflib.get_close_matches(stem, of_kind, n=1, cutoff=_SIMILAR)
    return _guess(of_kind[close[0]] if close else None)


def why_no_confidence(value: float, example: str) -> str | None:
    """Return why a number is not a valid confidence; None if it is valid.

    A number below 0.5 is probably meant as the probability of a false alarm.
    """
    if 0.5 <= value < 1:
        return None
    from decimal import Decimal  # most runs need none

    other = float(1 - Decimal(str(float(value)))) if 0 < value < 0.5 else 1.0
    meant = f"; did you mean {other}?" if other < 1 else ""
    return f"must be a number from 0.5 to below 1, such as {example}{meant}"


def nearest(wrong: str, known: Iterable[str]) -> str | None:
    """Return the known name that equals a wrong name but for case, begins with it, or is
    similar."""
    names = list(known)
    near = _alike(wrong, names)
    letters = len(wrong.lstrip("-."))
    if not near and letters >= _LETTERS:
        import difflib

        near = difflib.get_close_matches(wrong, names, n=1, cutoff=_SIMILAR)
    if not near and letters == _LETTERS - 1 and wrong.isalpha():
        near = [name for name in names if _lacks_a_letter(wrong, name)]
        near = near if len(near) == 1 else []
    return near[0] if near else None


def _lacks_a_letter(wrong: str, name: str) -> bool:
    """Return whether a word is a name without one letter, other than the first."""
    return any(wrong == name[:place] + name[place + 1 :] for place in range(1, len(name)))


def _parts(name: str) -> tuple[str, str]:
    stem, dot, ending = name.rpartition(".")
    return (stem, dot + ending) if stem else (name, "")


def _alike(wrong: str, names: list[str]) -> list[str]:
    """Return the names equal to a wrong name but for case, else the names that begin with it."""
    near = [name for name in names if name.lower() == wrong.lower()]
    if not near and len(wrong) >= _LETTERS:
        near = sorted((name for name in names if name.startswith(wrong)), key=len)
    return near


def _guess(near: str | None) -> str:
    return f" Did you mean {near!r}?" if near is not None else ""


Extra = Literal["figures", "html", "dask", "parquet", "learned", "search"]

# Packages of each extra in pyproject.toml, without versions. Messages name the packages, since a
# package index may not have dpaudit itself.
EXTRAS: Mapping[Extra, tuple[str, ...]] = {
    "figures": ("matplotlib",),
    "html": ("jinja2", "matplotlib"),
    "dask": ("distributed",),
    "parquet": ("pyarrow",),
    "learned": ("scikit-learn",),
    "search": ("hypothesis",),
}


def install_command(extra: Extra) -> str:
    """Return the command that installs the packages of an extra.

    >>> install_command("html")
    'pip install jinja2 matplotlib'
    """
    return f"pip install {' '.join(EXTRAS[extra])}"
