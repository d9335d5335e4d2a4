"""Texts in messages and reports: numbers with nouns, "did you mean", `pip install`, safe output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

# Note in reports: the outputs differed between two runs with the same seed, although no call of the
# mechanism changed a variable.
UNSEEDED = (
    "the mechanism draws randomness that no seed controls, from the operating system or a native "
    "library: another run will differ"
)
# The remedy if torch is loaded, whose kernels may sum in an order that varies.
KERNELS = (
    "if kernels of torch are the cause, torch.use_deterministic_algorithms(True) lets the seed "
    "repeat the audit"
)
# Prefix of the names in `sys.modules` of modules that were run from files. Messages show the path
# of the file instead.
FILE_PREFIX = "dpaudit_file_"

# Pattern of the characters that `visible` escapes: control characters, marks that change the text
# direction, surrogates. It is not compiled here but on first use by `re`, which saves time.
_STEERING = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
    "\ufffe\uffff]"
)
# Pattern of commands of GitHub Actions: `::error::` at the start of a line, `##[error]` anywhere.
_COMMAND = r"(?m)((?:^|\r)[^\S\n]*):(?=:)|#(?=#\[)"


def counted(number: int, noun: str) -> str:
    """Return a number followed by its noun, with an `s` (or `es`) unless the number is 1.

    >>> counted(1, "draw"), counted(2000, "draw"), counted(2, "guess")
    ('1 draw', '2,000 draws', '2 guesses')
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('s') else 's'}"


def visible(text: str) -> str:
    """Return a text that neither a terminal nor a CI service interprets as commands.

    Control characters (except tabs and line ends), marks that change the text direction, surrogates
    and commands of GitHub Actions are replaced by escapes. The result is valid in XML.

    >>> visible("red: \\x1b[31m")
    'red: \\\\x1b[31m'
    """
    return inert(re.sub(_STEERING, lambda match: ascii(match[0])[1:-1], text))


def inert(text: str) -> str:
    """Return a text in which commands of GitHub Actions are replaced by escapes.

    >>> inert("a::b"), inert(" ::error::c")
    ('a::b', ' \\\\x3a:error::c')
    """
    return re.sub(
        _COMMAND, lambda match: rf"{match[1]}\x3a" if match[0][-1] == ":" else r"\x23", text
    )


def in_a_line(text: str) -> str:
    """Return a text with its lines joined by spaces."""
    return " ".join(text.splitlines())


def on_one_line(text: str) -> str:
    """Return a text with a single space for each run of white space.

    >>> on_one_line(" no  such\\n\\tfile ")
    'no such file'
    """
    return " ".join(text.split())


def shortened(text: str, width: int = 60) -> str:
    """Return a text in one line, cut to at most `width` characters."""
    line = on_one_line(text)
    return line if len(line) <= width else f"{line[: width - 1]}…"


def shown(value: object, width: int = 60) -> str:
    """Return the `repr` of a value in one line, cut to at most `width` characters."""
    return shortened(repr(value), width)


# Minimum similarity (0 to 1, by difflib) of a misspelt name and the name that is suggested. Two
# names that only have the same length or the same ending have a smaller similarity.
_SIMILAR = 0.66
# Minimum number of letters of a wrong name for a suggestion by similarity.
_LETTERS = 3
# Maximum number of known names for which all names are listed in addition to a suggestion.
_FEW_NAMES = 12


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return `" Did you mean 'x'?"` with the known name x nearest to a wrong name.

    Return `""` if no known name is near.
    """
    return _guess(nearest(wrong, known))


def did_you_mean_or_known(wrong: str, known: Sequence[str]) -> str:
    """Return a sentence with the known name nearest to a wrong name, and a list of known names.

    The list is left out if a name is near and more than `_FEW_NAMES` names are known.
    """
    meant = did_you_mean(wrong, known)
    return meant if meant and len(known) > _FEW_NAMES else f"{meant} Known: {', '.join(known)}"


def did_you_mean_file(wrong: str, names: Iterable[str]) -> str:
    """Return `" Did you mean 'x'?"` with the file name x nearest to a wrong file name, or `""`.

    names: names of existing files. Stems and endings of the names are also compared separately.
    """
    known = list(names)
    near = _alike(wrong, known)
    if near:
        return _guess(near[0])
    # Imported here, since most runs do not need difflib.
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
    """Return the end of an error message if a number is not a valid confidence, else None.

    A confidence lies in [0.5, 1). A number below 0.5 is probably meant as the probability of a
    false alarm, so the message suggests 1 minus the number.

    example: a valid confidence, as text.
    """
    if 0.5 <= value < 1:
        return None
    from decimal import Decimal  # here, since most runs need no Decimal

    other = float(1 - Decimal(str(float(value)))) if 0 < value < 0.5 else 1.0
    meant = f"; did you mean {other}?" if other < 1 else ""
    return f"must be a number from 0.5 to below 1, such as {example}{meant}"


def nearest(wrong: str, known: Iterable[str]) -> str | None:
    """Return the known name that is nearest to a wrong name, or None if no name is near.

    In this order: a name that differs only in case; the shortest name that begins with the wrong
    name; a similar name (difflib); and, for a wrong name of two letters, the only name that has one
    letter more.
    """
    names = list(known)
    near = _alike(wrong, names)
    letters = len(wrong.lstrip("-."))
    if not near and letters >= _LETTERS:
        import difflib

        near = difflib.get_close_matches(wrong, names, n=1, cutoff=_SIMILAR)
    if not near and letters == _LETTERS - 1 and wrong.isalpha():
        # Names from which the wrong name results by removing one letter other than the first.
        near = [
            name
            for name in names
            if wrong in {name[:place] + name[place + 1 :] for place in range(1, len(name))}
        ]
        near = near if len(near) == 1 else []
    return near[0] if near else None


def _parts(name: str) -> tuple[str, str]:
    stem, dot, ending = name.rpartition(".")
    return (stem, dot + ending) if stem else (name, "")


def _alike(wrong: str, names: list[str]) -> list[str]:
    """Return the names that differ from `wrong` only in case.

    If there are none, return the names that begin with `wrong`, the shortest first.
    """
    near = [name for name in names if name.lower() == wrong.lower()]
    if not near and len(wrong) >= _LETTERS:
        near = sorted((name for name in names if name.startswith(wrong)), key=len)
    return near


def _guess(near: str | None) -> str:
    return f" Did you mean {near!r}?" if near is not None else ""


Extra = Literal["figures", "html", "dask", "parquet", "learned", "search"]

# Packages that each extra of pyproject.toml installs, without versions. Messages name the packages,
# since pip cannot install an extra of dpaudit if the package index does not have dpaudit.
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
