"""One root error. `exit_code` is what the command line returns for it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable


class Name(str):
    """An option's name in a message: a keyword, until somebody knows that it was a flag."""

    __slots__ = ()


class Given(Name):
    """An option with a value in a message, as Python writes it, until somebody knows that it was a
    flag or a key of a file. typed: as these write it."""

    __slots__ = ("typed",)
    typed: str

    def __new__(cls, keyword: str, typed: str) -> Given:
        made = super().__new__(cls, keyword)
        made.typed = typed
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # as __new__ has them
        return str(self), self.typed


class DpauditError(Exception):
    """Root of every error that dpaudit raises on purpose; says nothing about privacy.

    Parameters
    ----------
    *parts : str
        The parts of the message; those that name an option are `Name`s.

    Attributes
    ----------
    exit_code : int
        What the command line returns for it: 3.
    parts : tuple of str
        As given.
    """

    exit_code = 3

    def __init__(self, *parts: str) -> None:
        super().__init__("".join(parts))
        self.parts = parts

    def spelled(self, spell: Callable[[Name], str]) -> tuple[str, ...]:
        """Return the parts of the message, with the names of options as `spell` has them.

        Parameters
        ----------
        spell : callable
            From the name of an option to what stands for it.

        Returns
        -------
        tuple of str
            The parts, in order.
        """
        return tuple(_spelled(part, spell) for part in self.parts)


def _spelled(part: str, spell: Callable[[Name], str]) -> str:
    if isinstance(part, Given):
        return part.typed
    return spell(part) if isinstance(part, Name) else part


class UsageError(DpauditError):
    """The request cannot be carried out as written; the message names the remedy.

    Attributes
    ----------
    exit_code : int
        What the command line returns for it: 2.
    """

    exit_code = 2


class ClaimError(UsageError, ValueError):
    """A privacy claim with impossible parameters."""


class DatasetError(UsageError):
    """A dataset that cannot be read, or a pair that is not a pair."""


class TargetError(UsageError):
    """A mechanism that cannot be found, built or called as asked."""


class ConfigurationError(UsageError):
    """A configuration file that is not valid; the message names file, line and key."""


class JournalError(UsageError):
    """A journal that cannot be written, or not be continued as asked; the message says why."""


class MechanismError(DpauditError):
    """The mechanism behaved in a way that makes an audit meaningless: not a verdict.

    Attributes
    ----------
    exit_code : int
        What the command line returns for it: 3.
    """


class AttackError(MechanismError):
    """A user's own attack failed: not a verdict either."""


# How alike two names must be, from 0 to 1, for one to be a slip of the other; what only shares its
# length or its ending with another is not.
_NEAR = 0.66
# Of a name with fewer letters nobody can tell what it is a slip of.
_LETTERS = 3


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return `" Did you mean 'x'?"` for the nearest known name, or `""`."""
    return _guess(nearest(wrong, known))


def did_you_mean_file(wrong: str, names: Iterable[str]) -> str:
    """Return the same for the name of a file; names: of what is there of that kind."""
    return _guess(_nearest_file(wrong, list(names)))


def nearest(wrong: str, known: Iterable[str]) -> str | None:
    """Return the known name that a wrong one is in another case, begins, or nearly is."""
    names = list(known)
    near = _alike(wrong, names)
    if not near and len(wrong.lstrip("-.")) >= _LETTERS:
        near = difflib.get_close_matches(wrong, names, n=1, cutoff=_NEAR)
    return near[0] if near else None


def _nearest_file(wrong: str, names: list[str]) -> str | None:
    """Return the file whose name is near without its ending too, which all of a kind share."""
    stem, ending = _parts(wrong)
    near = _alike(wrong, names)
    if near:
        return near[0]
    parts = map(_parts, names)
    of_kind = {one: one + other for one, other in parts if _is_near(other.lower(), ending.lower())}
    close = [stem] if stem in of_kind else []
    if not close and len(stem) >= _LETTERS - 1:
        close = difflib.get_close_matches(stem, of_kind, n=1, cutoff=_NEAR)
    return of_kind[close[0]] if close else None


def _parts(name: str) -> tuple[str, str]:
    stem, dot, ending = name.rpartition(".")
    return (stem, dot + ending) if stem else (name, "")


def _alike(wrong: str, names: list[str]) -> list[str]:
    """Return the names that are a wrong one in another case, else those that begin with it."""
    near = [one for one in names if one.lower() == wrong.lower()]
    if not near and len(wrong) >= _LETTERS:
        near = sorted((one for one in names if one.startswith(wrong)), key=len)
    return near


def _is_near(one: str, other: str) -> bool:
    return difflib.SequenceMatcher(None, one, other).ratio() >= _NEAR


def _guess(near: str | None) -> str:
    return f" Did you mean {near!r}?" if near is not None else ""
