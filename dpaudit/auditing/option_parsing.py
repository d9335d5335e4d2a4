"""The declaration of an option, and the one decoder of its values.

An option is a field with a type, a default and a `Help`: `Annotated[int, Meta(ge=1), Help(...)]`.
`Option.read` decodes a value from YAML, JSON, a flag or Python.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from functools import partial
from numbers import Integral, Real
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Meta

from dpaudit.errors import Name, UsageError
from dpaudit.wording import did_you_mean, shown

# Part of a configuration file to which an option belongs: a mechanism, its inputs, an audit, its
# claim, or the whole file. An option of "run" is a flag without a key in files.
Owner = Literal["mechanism", "inputs", "audit", "claim", "file", "run"]
Section = Literal["What to audit", "Claim", "Budget", "Processes", "Attacks", "Output"]

# Pattern of a reference such as `${epsilon}` to an entry of the option `matrix`. References are
# replaced by values before options are read.
REFERENCE = r"\$\{([^}]*)\}"
Reference = Annotated[str, Meta(pattern=f"^{REFERENCE}$")]
Words = Annotated[str, Meta(min_length=1)]
# Numbers have at most this number of digits before the point.
_DIGITS = 400
# Largest whole number that a message shows digit by digit.
_MAX_SHOWN = 10**15
# Maps the unit of a duration to its length in seconds, and that of a size to its bytes.
_TIMES = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SIZES = {"": 1.0, "B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_SIZES |= {"KIB": 2.0**10, "MIB": 2.0**20, "GIB": 2.0**30, "TIB": 2.0**40}


@dataclass(frozen=True, slots=True)
class Help:
    """Texts about an option: for the help, the page of options and messages.

    text: help text of one or two sentences.
    section: heading in the help and in docs/options.md.
    must: how the message "must be ..." ends; "": with the first sentence of the text.
    unless: the default in words, if it is not a fixed value; "required" if there is none.
    flag: command-line flag; None: no flag; "": made from the name.
    short: short form of the flag.
    metavar: placeholder for the value; "": follows from the type.
    usual: whether the short help lists the option.
    more: page of the documentation about the option, relative to docs/.
    file: type of the value in a configuration file; None: as elsewhere.
    read: function that decodes a value; it raises ValueError for a wrong one. None: the type
        decides.
    """

    text: str
    _: KW_ONLY
    section: Section
    must: str = ""
    unless: str = ""
    flag: str | None = ""
    short: str = ""
    metavar: str = ""
    usual: bool = False
    more: str = ""
    file: Any = None
    read: Callable[[Any], Any] | None = None


# A `Help` of each section.
about_audit = partial(Help, section="What to audit")
about_claim = partial(Help, section="Claim")
about_budget = partial(Help, section="Budget")
about_processes = partial(Help, section="Processes")
about_attacks = partial(Help, section="Attacks")
about_output = partial(Help, section="Output")


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """One option of an audit: name, type, default, help and owner."""

    name: str
    type: Any
    default: Any
    help: Help
    of: Owner

    @property
    def flag(self) -> str | None:
        """The command-line flag; None if the option has none."""
        flag = f"--{self.name.replace('_', '-')}"
        return flag if self.help.flag == "" else self.help.flag

    @property
    def choices(self) -> tuple[str, ...]:
        """All allowed values, if the option has a fixed list."""
        kinds = [kind for kind in _members(self.type) if get_origin(kind) is Literal]
        is_choice = kinds and not self.is_number
        return get_args(kinds[0]) if is_choice else ()

    @property
    def is_number(self) -> bool:
        """Whether a value is a number, or a word that stands for one."""
        return any(kind in (int, float) for kind in map(_plain, _members(self.type)))

    @property
    def in_files(self) -> Any:
        """The type of a value in a configuration file."""
        return self.help.file or (int | float | Reference if self.is_number else self.type)

    @property
    def must(self) -> str:
        """The text that follows "must be" in a message about a wrong value."""
        if self.help.must:
            return self.help.must
        first = self.help.text.partition(". ")[0].removesuffix(".")
        sentence = f"{first[:1].lower()}{first[1:]}"
        words = "true or false" if self.type is bool else " or ".join(self.choices)
        return f"{words}: {sentence}" if words else sentence

    @property
    def default_words(self) -> str:
        """The default as the help shows it, such as `1,000,000`; "" if there is none."""
        if self.help.unless or self.default in (None, ()) or isinstance(self.default, bool):
            return self.help.unless
        return f"{self.default:,}" if isinstance(self.default, int) else str(self.default)

    def read(self, value: Any) -> Any:
        """Return the decoded value, such as 30.0 for the time `30s`. Raises UsageError."""
        if self.help.unless != "required":
            if value is None and self.default in (None, ()):
                return self.default
            if type(value) is type(self.default) and value == self.default:
                return value
        plain = value
        if self.is_number and self.help.read is None:
            plain = plain_number(value, is_whole=self._is_whole)
        try:
            if self.help.read is not None:
                return self.help.read(value)
            converted = msgspec.convert(plain, self.type)
            # DefaultSamples and DrawnSeed are integers that stay what they are.
            return plain if isinstance(plain, int) else converted
        except (msgspec.ValidationError, ValueError):
            is_read = isinstance(value, str) or self._is_whole
            raise self.refused(plain if is_read else value) from None

    @property
    def _is_whole(self) -> bool:
        return self.is_number and float not in map(_plain, _members(self.type))

    def refused(self, value: Any) -> UsageError:
        """Return the error for a value that is not allowed."""
        known = ", ".join(self.choices)
        if known:
            why = f"is not known; known: {known}.{did_you_mean(str(value), self.choices)}"
            return refused(self.name, value, why)
        return refused(self.name, value, f"must be {self.must}")


def declared(declaration: Any, of: Owner, hints: Mapping[str, Any]) -> list[Option]:
    """Return the options that a class declares by its fields. `hints` are its annotations, as from
    `get_type_hints`."""
    options, defaults = [], getattr(declaration, "__dataclass_fields__", {})
    for name, hint in hints.items():
        helps = [part for part in getattr(hint, "__metadata__", ()) if isinstance(part, Help)]
        if helps:
            limits = [part for part in hint.__metadata__ if isinstance(part, Meta)]
            kind = Annotated[hint.__origin__, limits[0]] if limits else hint.__origin__
            default = defaults[name].default if defaults else getattr(declaration, name, None)
            options.append(Option(name.rstrip("_"), kind, default, helps[0], of))
    return options


def refused(name: str, value: Any, why: str) -> UsageError:
    """Return the error for a wrong value of an option, such as `samples=7 is too few`; `why` is the
    part after the value."""
    is_long = isinstance(value, Integral) and abs(int(value)) > _MAX_SHOWN
    written = f"{Decimal(int(value)):.3g}" if is_long else shown(value)
    return UsageError(Name(name), f"={written} {why}", code="option-invalid")


def _members(kind: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type itself."""
    bare = kind.__origin__ if hasattr(kind, "__metadata__") else kind
    return get_args(bare) if get_origin(bare) in (Union, UnionType) else (kind,)


def _plain(kind: Any) -> Any:
    return kind.__origin__ if hasattr(kind, "__metadata__") else kind


def plain_number(value: Any, *, is_whole: bool) -> Any:
    """Return a number, or the text of a number, as int if `is_whole`, else as float. Return any
    other value unchanged."""
    if isinstance(value, bool) or (isinstance(value, int) and is_whole):
        return value
    try:
        if not is_whole:
            return float(value)
        exact = Decimal(value.replace(",", "") if isinstance(value, str) else str(value))
        is_short = exact.is_finite() and exact.adjusted() < _DIGITS
        return int(exact) if is_short and exact == exact.to_integral_value() else value
    except (ArithmeticError, ValueError, TypeError):
        return value


def duration(value: Any) -> float:
    """Return a duration in seconds. value: text such as `30s`, `2m`, `1h` or `500ms`, or a number
    of seconds. Raises ValueError."""
    seconds = _with_unit(value, _TIMES)
    if not 0 < seconds < float("inf"):
        raise ValueError
    return seconds


def size(value: Any) -> int:
    """Return a size in bytes. value: text such as `512MB` or `1.5gib`, or a number of bytes. Raises
    ValueError."""
    return int(_with_unit(value, _SIZES))


def _with_unit(value: Any, units: Mapping[str, float]) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-zA-Z]*)\s*", str(value))
    factors = (
        [units[unit] for unit in (match[2], match[2].upper()) if unit in units] if match else []
    )
    if match is None or not factors:
        raise ValueError
    return float(match[1]) * factors[0]


def listed(value: Any) -> tuple[Any, ...]:
    """Return the entries of a collection. Raises ValueError for any other value; a text is not a
    collection here."""
    if not isinstance(value, Collection) or isinstance(value, str | bytes | Mapping):
        raise ValueError
    return tuple(value)


def path(value: Any) -> Any:
    """Return a path of a file or folder. Raises ValueError for any other object."""
    if not isinstance(value, str | os.PathLike) or value == "":
        raise ValueError
    return value


def anything(value: Any) -> Any:
    """Return the value unchanged: the code that uses the option checks it."""
    return value
