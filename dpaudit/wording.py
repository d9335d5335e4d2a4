"""Write texts of messages and reports: numbers with nouns, "did you mean", `pip install` commands,
and text without control characters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

# Largest and smallest width of reports and messages, in columns of a terminal.
MAX_WIDTH, MIN_WIDTH = 80, 40
_width = MAX_WIDTH

# Note in reports: two runs with the same seed gave different outputs, although no call of the
# mechanism changed a variable.
UNSEEDED = (
    "the mechanism draws randomness that no seed controls, from the operating system or a native "
    "library: another run will differ"
)
# Begins a warning, of which the way follows.
WORKER_DIED = "a worker process died"
# Begins a note, of which the reason follows.
ONE_PROCESS = "only one process drew, though more would have been faster"
# Remedy for different outputs with the same seed if torch is imported: its kernels may add numbers
# in a varying order.
KERNELS = (
    "if kernels of torch are the cause, torch.use_deterministic_algorithms(True) lets the seed "
    "repeat the audit"
)
# Modules that were run from a file have names in `sys.modules` that begin with this prefix.
# Messages show the path of the file instead.
FILE_PREFIX = "dpaudit_file_"

# Matches the characters that `visible` escapes: control characters, marks that change the text
# direction, surrogates. The module `re` compiles it on first use, which makes imports faster.
_STEERING = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
    "\ufffe\uffff]"
)
# Matches commands of GitHub Actions: `::error::` at the beginning of a line, `##[error]` anywhere.
_COMMAND = r"(?m)((?:^|\r)[^\S\n]*):(?=:)|#(?=#\[)"


def report_width() -> int:
    """Return the width of reports in columns: 80, or less for a narrow terminal."""
    return _width


@contextmanager
def of_width(columns: int) -> Iterator[None]:
    """Within the `with` block, reports fit in `columns` columns, but in no less than 40."""
    global _width
    previous, _width = _width, max(MIN_WIDTH, min(columns, MAX_WIDTH))
    try:
        yield
    finally:
        _width = previous


def counted(number: int, noun: str) -> str:
    """Return a number followed by its noun, with an `s` (or `es`) unless the number is 1.

    >>> counted(1, "draw"), counted(2000, "draw"), counted(2, "guess")
    ('1 draw', '2,000 draws', '2 guesses')
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('s') else 's'}"


def visible(text: str) -> str:
    r"""Return `text` with escapes in place of everything that a terminal or a CI service would
    interpret as a command.

    These are control characters (except tabs and line ends), marks that change the text direction,
    surrogates, and commands of GitHub Actions. The result is valid in XML.

    >>> visible("red: \x1b[31m")
    'red: \\x1b[31m'
    """
    return inert(re.sub(_STEERING, lambda match: ascii(match[0])[1:-1], text))


def inert(text: str) -> str:
    r"""Return `text` with an escape wherever GitHub Actions would read a command, such as
    `::error::`.

    >>> inert("a::b"), inert(" ::error::c")
    ('a::b', ' \\x3a:error::c')
    """
    return re.sub(
        _COMMAND, lambda match: rf"{match[1]}\x3a" if match[0][-1] == ":" else r"\x23", text
    )


def in_a_line(text: str) -> str:
    """Return `text` with its lines joined by spaces."""
    return " ".join(text.splitlines())


def on_one_line(text: str) -> str:
    r"""Return `text` with each run of white space, including line ends, replaced by a single space.

    >>> on_one_line(" no  such\n\tfile ")
    'no such file'
    """
    return " ".join(text.split())


def shortened(text: str, width: int = 60) -> str:
    """Return `text` as one line of at most `width` characters. A longer text is cut."""
    line = on_one_line(text)
    return line if len(line) <= width else f"{line[: width - 1]}…"


def shown(value: object, width: int = 60) -> str:
    """Return the `repr` of a value as one line, cut after `width` characters."""
    return shortened(repr(value), width)


# Smallest similarity (0 to 1, by difflib) between a wrong name and the name that a message
# suggests. Names that share only their length or their ending are less similar.
_SIMILAR = 0.66
# Smallest number of letters of a wrong name for which a message suggests a similar name.
_LETTERS = 3
# A message about a wrong name lists all known names. If the message suggests a similar name, the
# list is left out when more than this number of names are known.
_FEW_NAMES = 12


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return `" Did you mean 'x'?"` for the known name most similar to a wrong name, or `""`."""
    return _guess(nearest(wrong, known))


def did_you_mean_or_known(wrong: str, known: Sequence[str]) -> str:
    """Return a sentence that names the known name most similar to a wrong name and lists all known
    names. The list is left out if there is a similar name and more than `_FEW_NAMES` names are
    known."""
    meant = did_you_mean(wrong, known)
    return meant if meant and len(known) > _FEW_NAMES else f"{meant} Known: {', '.join(known)}"


def did_you_mean_file(wrong: str, names: Iterable[str], folder: str = "") -> str:
    """Return `" Did you mean 'x'?"`, or `""`. x is the file of `names` with the most similar name
    and a similar ending, in the folder `folder`, as the user wrote it."""
    # Imported inside the function, since most runs do not need difflib.
    import difflib

    stem, ending = _parts(wrong)
    stems: dict[str, str] = {}
    for name in names:
        its_stem, its_ending = _parts(name)
        alike = difflib.SequenceMatcher(None, its_ending.lower(), ending.lower()).ratio()
        if not ending or alike >= _SIMILAR:
            stems.setdefault(its_stem, name)
    near = stem if stem in stems else nearest(stem, stems)
    if near is None:
        return ""
    return _guess(f"{folder}/{stems[near]}" if folder not in ("", ".") else stems[near])


def nearest(wrong: str, known: Iterable[str]) -> str | None:
    """Return the known name nearest to a wrong name, or None. The first of these that exists is
    nearest: a name that differs only in case, the shortest name that begins with the wrong name, a
    similar name (difflib)."""
    names = list(known)
    near = [name for name in names if name.lower() == wrong.lower()]
    if not near and len(wrong.lstrip("-.")) >= _LETTERS:
        near = sorted((name for name in names if name.startswith(wrong)), key=len)
        if not near:
            import difflib

            near = difflib.get_close_matches(wrong, names, n=1, cutoff=_SIMILAR)
    # A name without `no` at its beginning means the opposite.
    is_opposite = bool(near) and wrong.lower().startswith("no") and not near[0].startswith("no")
    return near[0] if near and not is_opposite else None


def _parts(name: str) -> tuple[str, str]:
    stem, dot, ending = name.rpartition(".")
    return (stem, dot + ending) if stem else (name, "")


def _guess(near: str | None) -> str:
    return f" Did you mean {near!r}?" if near is not None else ""


Extra = Literal["figures", "html", "dask", "parquet", "learned", "notebook", "search"]

# Maps each extra in pyproject.toml to the packages that it installs, without versions. Messages
# name the packages, since pip cannot install an extra if the package index does not have dpaudit.
EXTRAS: Mapping[Extra, tuple[str, ...]] = {
    "figures": ("matplotlib",),
    "html": ("jinja2", "matplotlib"),
    "dask": ("distributed",),
    "parquet": ("pyarrow",),
    "notebook": ("matplotlib", "pandas"),
    "learned": ("scikit-learn",),
    "search": ("hypothesis",),
}


def install_command(extra: Extra) -> str:
    """Return the pip command that installs the packages of an extra of dpaudit.

    >>> install_command("html")
    'pip install jinja2 matplotlib'
    """
    return f"pip install {' '.join(EXTRAS[extra])}"
