"""The errors that dpaudit raises on purpose, with one root class."""

from __future__ import annotations

from collections.abc import Callable


class Name(str):
    """The name of an option in a message, as a Python keyword; the command line shows its flag."""

    __slots__ = ()


class Given(Name):
    """An option with a value in a message, as Python writes it. typed: as a command line and a file
    write it."""

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
        The parts of the message; each that names an option is a `Name`.
    code : str, optional
        Kind of the error: a few words of lower-case letters, joined by hyphens. docs/errors.md
        lists all kinds. Default: the kind of the class.

    Attributes
    ----------
    exit_code : int
        Exit code of the command line: 3.
    parts : tuple of str
        The parts of the message, as given.
    code : str
        Kind of the error. It stays the same when the wording of the message changes.
    """

    exit_code = 3
    code = "failure"

    def __init__(self, *parts: str, code: str | None = None) -> None:
        super().__init__("".join(parts))
        self.parts = parts
        if code is not None:
            self.code = code

    def spelled(self, spell: Callable[[Name], str]) -> tuple[str, ...]:
        """Return the parts of the message, with the names of options spelled by `spell`.

        Parameters
        ----------
        spell : callable
            Maps the name of an option to its spelling.

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


# Kinds of other exceptions, the first that fits: of the machine, then mistakes in dpaudit.
CODES_OF_OTHERS: tuple[tuple[type[BaseException], str], ...] = (
    (MemoryError, "out-of-memory"),
    (OSError, "system"),
    (ImportError, "incomplete-installation"),
    (RecursionError, "nested-too-deeply"),
    (BaseException, "internal"),
)


def code_of(error: BaseException) -> str:
    """Return the kind of any exception that ends an audit or a command.

    Parameters
    ----------
    error : BaseException
        An error of dpaudit, which has its own code, or any other exception.

    Returns
    -------
    str
        The code, as docs/errors.md lists it.
    """
    if isinstance(error, DpauditError):
        return error.code
    return next(code for kind, code in CODES_OF_OTHERS if isinstance(error, kind))


class UsageError(DpauditError):
    """The request cannot be carried out as written; the message names the remedy.

    Attributes
    ----------
    exit_code : int
        Exit code of the command line: 2.
    """

    exit_code = 2
    code = "usage"


class ClaimError(UsageError, ValueError):
    """A privacy claim with impossible parameters."""

    code = "claim"


class DatasetError(UsageError):
    """A dataset that cannot be read, or two inputs that are no pair."""

    code = "dataset"


class TargetError(UsageError):
    """A mechanism that cannot be found, built or called as asked."""

    code = "target"


class ConfigurationError(UsageError):
    """A configuration file that is not valid; the message names file, line and key."""

    code = "configuration"


class JournalError(UsageError):
    """A journal that cannot be written, or cannot be continued as asked."""

    code = "journal"


class MechanismError(DpauditError):
    """The mechanism behaved in a way that makes an audit meaningless: not a verdict.

    Attributes
    ----------
    exit_code : int
        Exit code of the command line: 3.
    """

    code = "mechanism"


class AttackError(MechanismError):
    """An attack of the user failed: not a verdict either."""

    code = "attack"
