"""One root error. `exit_code` is what the command line returns for it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable


class Name(str):
    """An option's name in a message: a keyword, until somebody knows that it was a flag."""

    __slots__ = ()


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
        return tuple(spell(part) if isinstance(part, Name) else part for part in self.parts)


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


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return `" Did you mean 'x'?"` for the nearest known name, or `""`."""
    near = nearest(wrong, known)
    return f" Did you mean {near!r}?" if near is not None else ""


def nearest(wrong: str, known: Iterable[str]) -> str | None:
    """Return the known name that a wrong one is in another case, begins, or nearly is."""
    names = list(known)
    near = [one for one in names if one.lower() == wrong.lower()]
    if len(wrong) > 2:
        near = near or sorted((one for one in names if one.startswith(wrong)), key=len)
    near = near or difflib.get_close_matches(wrong, names, n=1, cutoff=_NEAR)
    return near[0] if near else None
