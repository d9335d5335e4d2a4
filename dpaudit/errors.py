"""Define the errors that dpaudit raises on purpose. All are subclasses of `DpauditError`.

Each error has an exit code for the command line. It also has a `code`, a short text that identifies
the kind of error, such as "option-invalid" (docs/errors.md). A message that names an option
contains a `Name` or a `Given`, so that the command line can show a flag (--samples) where Python
shows a keyword argument (samples).
"""

from __future__ import annotations

from collections.abc import Callable


class Name(str):
    """The name of an option in a message: a keyword argument, or a flag on the command line."""

    __slots__ = ()


class Given(Name):
    """An option with its value in a message: as `samples=7` in Python, and as the text `typed` on
    the command line and in a YAML file."""

    __slots__ = ("typed",)
    typed: str

    def __new__(cls, keyword: str, typed: str) -> Given:
        name = super().__new__(cls, keyword)
        name.typed = typed
        return name

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # as __new__ has them
        return str(self), self.typed


class StopAudit(KeyboardInterrupt):
    """Raised in the auditing process, such as by a signal handler, to end the running audit. The
    engine catches it, and returns the result of the draws made so far."""


class DpauditError(Exception):
    """Base class of the errors that dpaudit raises on purpose. An error says nothing about privacy.

    Parameters
    ----------
    *parts : str
        The parts of the message; a part that names an option is a `Name`.
    code : str, optional
        Kind of the error, such as "option-invalid": words of lower-case letters, joined by hyphens.
        docs/errors.md lists all kinds. Default: the `code` of the class.

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
        """Return the parts of the message, with the names of options as the user writes them.

        An option with a value, such as `samples=7`, is shown as it is typed on a command line or in
        a YAML file.

        Parameters
        ----------
        spell : callable
            Function that takes the `Name` of an option without a value and returns the text to
            show, such as its flag.

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


# Pairs (class, code) for exceptions that are not a `DpauditError`; the first class that matches
# counts. The first three are problems of the machine, the fourth is data or code that is nested too
# deeply, and the last is a bug in dpaudit.
CODES_OF_OTHERS: tuple[tuple[type[BaseException], str], ...] = (
    (MemoryError, "out-of-memory"),
    (OSError, "system"),
    (ImportError, "incomplete-installation"),
    (RecursionError, "nested-too-deeply"),
    (BaseException, "internal"),
)


def code_of(error: BaseException) -> str:
    """Return the code (kind of error) of an exception that ends an audit or a command.

    Parameters
    ----------
    error : BaseException
        An error of dpaudit or any other exception.

    Returns
    -------
    str
        A code that docs/errors.md lists, such as "out-of-memory".
    """
    if isinstance(error, DpauditError):
        return error.code
    return next(code for kind, code in CODES_OF_OTHERS if isinstance(error, kind))


class UsageError(DpauditError):
    """Raised if the user's request cannot be carried out as written. The message says what to do.

    Attributes
    ----------
    exit_code : int
        Exit code of the command line: 2.
    """

    exit_code = 2
    code = "usage"


class ClaimError(UsageError, ValueError):
    """Raised for a privacy claim with impossible parameters."""

    code = "claim"


class DatasetError(UsageError):
    """Raised for a dataset, a pair of inputs or a space of inputs that cannot be read or used."""

    code = "dataset"


class TargetError(UsageError):
    """Raised for a mechanism that cannot be imported, made, started or called as the user asked."""

    code = "target"


class ConfigurationError(UsageError):
    """Raised for an invalid configuration file. The message names file, line and key."""

    code = "configuration"


class JournalError(UsageError):
    """Raised for a journal that cannot be written or continued. A journal records the draws of an
    audit, so that an interrupted audit can continue."""

    code = "journal"


class MechanismError(DpauditError):
    """Raised if an audit of the mechanism would mean nothing; it then has no verdict.

    For example, the draws of the mechanism repeat, so that they are not independent.

    Attributes
    ----------
    exit_code : int
        Exit code of the command line: 3.
    """

    code = "mechanism"


class TrainingError(MechanismError):
    """Raised if a mechanism of `dpaudit.training` cannot train as asked, or if every call of a
    mechanism needs a GPU that this machine does not have. This is not a verdict.

    This exception ends the audit; other exceptions of a mechanism count as its outputs.

    Attributes
    ----------
    exit_code : int
        Exit code of the command line: 2.
    """

    code = "training"
    exit_code = 2


def needs_device(message: str) -> TrainingError:
    """Return the error to raise if code needs a device, such as a GPU, that this machine does not
    have. `message` is the message of the exception of torch or JAX."""
    reason = message.strip().splitlines()[0].partition(". ")[0][:120]
    return TrainingError(
        f"training needs a device that this machine does not have ({reason}); make the device a "
        "parameter of your code, and audit with the CPU, or run dpaudit on a machine with the "
        "device",
        code="training-needs-device",
    )


class AttackError(MechanismError):
    """Raised if an attack that the user provided fails. This is not a verdict."""

    code = "attack"
