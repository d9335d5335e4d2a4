"""Make the command-line flags from the table of options. The value of a flag is read as in a YAML
file."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
from click.core import ParameterSource

from dpaudit.auditing.option_parsing import Option, plain_number
from dpaudit.auditing.options import OPTIONS, DrawnSeed, owned
from dpaudit.auditing.spec import AuditSpec
from dpaudit.claims import (
    conflict_message,
    implied_definition,
    missing_parameters,
)
from dpaudit.cli.click_classes import USUAL, Choice, option
from dpaudit.cli.completing import COMPLETERS
from dpaudit.cli.group import debug_option
from dpaudit.cli.messages import tell
from dpaudit.errors import UsageError
from dpaudit.import_path import split
from dpaudit.inputs.datasets import parse_dataset
from dpaudit.inputs.decoding import check_read
from dpaudit.inputs.pairs import NeighbouringPair, several_more, unlike_inputs

Command = Callable[..., Any]

# Largest number of characters of a list of choices in the first column of the help.
_MAX_CHOICE = 60
# Key in the `meta` dict of click's context. Its value is the list of warnings about flags that may
# have been misread.
_MISREAD = "dpaudit.misread"
_CLAIM = tuple(option.name for option in owned("claim"))


def _value(_: click.Context, param: click.Parameter, text: str | None) -> Any:
    """Return the value of a flag, read as JSON or YAML, or None if the flag was not given."""
    return None if text is None else parsed(text, param)


def _named_values(
    _: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> dict[str, Any]:
    """Return a dict {name: value} from texts `name=value`, with each value read as JSON or YAML."""
    values: dict[str, Any] = {}
    texts_of: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(
                f"--param {text!r} must be name=value, e.g. --param epsilon=0.5",
                code="option-invalid",
            )
        if texts_of.setdefault(name, value) != value:
            raise UsageError(
                f"--param {name} is given more than once, as {texts_of[name]} and {value}; "
                "give one of them",
                code="options-conflict",
            )
        values[name] = parsed(value, param, f"--param {name}")
    return values


def whole_number(_: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Return a whole number that was written as 1000000, 1_000_000, 1,000,000 or 1e6. Return None
    if the flag was not given. Raises UsageError for any other text."""
    number = None if text is None else plain_number(text, is_whole=True)
    if text is None or isinstance(number, int):
        return number
    raise UsageError(
        f"{param.opts[0]} {text!r} must be a whole number, e.g. 1_000_000 or 1e6",
        code="option-invalid",
    )


def _read(_: click.Context, param: click.Parameter, text: str | None) -> Any:
    """Return the value of a number; return the text of a duration or size, after a check."""
    if text is None:
        return None
    option = OPTIONS[str(param.name)]
    value = option.read(text)
    return value if option.help.read is None else text


def _seed(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Return the seed. `--seed random` draws one seed, which all audits of a batch share."""
    if text == "random":
        seed = DrawnSeed(secrets.randbelow(2**32))
        if not ctx.params.get("resume"):  # a resumed run uses the seed of its journal
            repeats = "" if ctx.params.get("evidence") else f"; --seed {seed} repeats this run"
            tell(f"--seed random drew {seed}{repeats}")
        return seed
    return None if text is None else _read(ctx, param, text)


# Maps options to arguments for click.option, if they do not follow from the type.
_LIST = {"callback": lambda *arguments: list(arguments[-1]), "multiple": True}
_READERS: Mapping[str, dict[str, Any]] = {
    "d1": {"callback": _value},
    "d2": {"callback": _value},
    "init": {"callback": _value},
    "range": {"callback": _value},
    "attacks": _LIST,
    "report": _LIST,
    "params": {"callback": _named_values, "multiple": True},
    "seed": {"callback": _seed},
    "verbose": {"count": True},
}


def _reader(option: Option) -> dict[str, Any]:
    """Return the arguments with which click.option reads the value of an option."""
    if option.name in _READERS:
        return {**_READERS[option.name], "metavar": option.help.metavar or None}
    if option.type is bool:
        return {"is_flag": True}
    if option.choices:
        is_long = len("|".join(option.choices)) > _MAX_CHOICE
        return {"type": Choice(option.choices), **({"metavar": "NAME"} if is_long else {})}
    if option.is_number:
        return {"callback": _read, "metavar": option.help.metavar or "NUMBER"}
    return {"metavar": option.help.metavar} if option.help.metavar else {}


def some_flags(
    *wanted: str, usual: Collection[str] = (), **other_help: str
) -> Callable[[Command], Command]:
    """Return a decorator that adds options of the table of options to a command.

    wanted: names of the options.
    usual: those that the short help of this command also shows.
    other_help: further options, each with a help text that replaces the one in the table.
    """

    def decorate(command: Command) -> Command:
        for name in reversed([*wanted, *other_help]):
            more = {"section": USUAL} if name in usual else {}
            command = _flag_of(OPTIONS[name], other_help.get(name), **more)(command)
        return command

    return decorate


def ignored_flags(*known: str) -> Callable[[Command], Command]:
    """Return a decorator that adds all options of `dpaudit run`, except for the `known` ones, to a
    command. They are hidden and have no effect. So the user can turn a `dpaudit run …` line into
    another command by changing one word."""
    entries = [entry for entry in OPTIONS.values() if entry.flag and entry.name not in known]

    def decorate(command: Command) -> Command:
        for entry in entries:
            if entry.of in ("audit", "file") or entry.name == "adjacency":
                command = _flag_of(entry, None, hidden=True, expose_value=False)(command)
        return command

    return decorate


space_flag = option(
    "--space",
    metavar="SPACE",
    section=USUAL,
    help="The set of possible inputs, as in the example. For tables: 'table {age: integer in "
    "[0, 120], city: category [a, b]}'.",
)


def outside_flags(section: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the options --inside and --outside to a section of the help.
    They say whether a search also tries inputs outside the given space."""
    inside = option(
        "--inside",
        is_flag=True,
        section=section,
        help="Try no inputs outside the space. Without --inside, dpaudit tries a few, such as "
        "values beyond the bounds and NaN, and notes the result.",
    )
    outside = option(
        "--outside",
        is_flag=True,
        section=section,
        help="Let inputs outside the space count, too.",
    )
    return lambda command: inside(outside(command))


def _flag_of(entry: Option, other_help: str | None, **more: Any) -> Callable[[Command], Command]:
    if entry.name == "debug":
        return debug_option
    extra = _reader(entry)
    default = (
        f" Default: {entry.default_words}." if entry.default_words not in ("", "required") else ""
    )
    names = [name for name in (entry.help.short, entry.flag, entry.name) if name]
    # click must read these before --seed, whose reader needs their values.
    extra |= {"is_eager": entry.name in ("resume", "evidence")}
    extra |= {"shell_complete": COMPLETERS.get(entry.name)}
    extra |= {"section": USUAL if entry.help.usual else entry.help.section, **more}
    return option(*names, help=other_help or f"{entry.help.text}{default}", **extra)


def given_settings(ctx: click.Context, flags: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the flags that the user gave, by their keys in a YAML file. A flag that
    was not given is absent, so that the value in a file, or else the default, applies."""
    explicit = {
        name: value
        for name, value in flags.items()
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        and name in OPTIONS
        and OPTIONS[name].of not in ("file", "run")
    }
    settings = {name: value for name, value in explicit.items() if name not in _CLAIM}
    for name in ("init", "samples"):
        if name in settings:  # commands without an audit read them nowhere else
            OPTIONS[name].read(settings[name])
    claim = {name: explicit[name] for name in _CLAIM if name in explicit}
    return {**settings, "claim": claim} if claim else settings


def check_target(target: str | None, instead: str) -> None:
    """Raise UsageError if a target is a file of audits, or is not an import path. `instead` ends
    the message about a file of audits, and says what to give instead."""
    if target is not None and target.endswith((".yaml", ".yml")):
        raise UsageError(f"{target!r} is a file of audits{instead}", code="wrong-kind-of-file")
    if target is not None:
        split(target)


def check_given(values: Mapping[str, Any], example: str) -> None:
    """Raise UsageError if the value of a flag is None. The message shows `example`, a complete
    command."""
    absent = [f"--{name}" for name, value in values.items() if value is None]
    if absent:
        verb = "is" if len(absent) == 1 else "are"
        raise UsageError(f"{', '.join(absent)} {verb} missing; {example}", code="option-missing")


def check_complete(
    settings: dict[str, Any], needed: Sequence[str], what: str, example: str
) -> None:
    """Raise UsageError if one of the flags `needed` is missing, or if the claim lacks a parameter.

    what: what the user wants, as a noun, such as "an audit of one mechanism".
    example: complete command that the message shows.
    """
    claim = settings.get("claim", {})
    if "definition" not in claim and (clash := conflict_message(claim)):
        raise UsageError(*clash, code="options-conflict")
    definition = claim.get("definition") or implied_definition(claim)
    incomplete = [] if "from" in claim else missing_parameters(claim, definition)
    absent = [name for name in needed if name not in settings] + incomplete
    check_given(dict.fromkeys(absent), f"{what} looks like {example}")


def parsed(text: str, param: click.Parameter, name: str = "") -> Any:
    """Return a value of JSON or YAML. Warn if the user may have meant another value."""
    name = name or param.opts[0]
    with _about(name):
        value = parse_dataset(text)
        for doubt in check_read(text, value, is_dataset=param.name in ("d1", "d2")):
            warning = f"{name}: {doubt}"
            _warn(warning)
            click.get_current_context().meta.setdefault(_MISREAD, []).append(warning)
    return value


def refuse_misread(ctx: click.Context, specs: Iterable[AuditSpec]) -> None:
    """Raise UsageError if a warning was given while the flags were read, and an audit is strict."""
    warnings = ctx.meta.get(_MISREAD, ())
    if warnings and any(spec.requirements.strict for spec in specs):
        raise UsageError(
            f"{warnings[0]} (strict: this warning fails the run)", code="strict-warning"
        )


def warn_of_inputs(pairs: Iterable[NeighbouringPair], group: int) -> None:
    """Print a warning for each pair whose inputs look wrong. They do if their types differ or, in a
    claim for one record (`group` is 1), if one input has several records more than the other."""
    warnings = ((*unlike_inputs(pair.d1, pair.d2), *several_more(pair, group)) for pair in pairs)
    for warning in dict.fromkeys(itertools.chain.from_iterable(warnings)):
        _warn(warning)


def _warn(text: str) -> None:
    tell(f"warning: {text}")


@contextmanager
def _about(name: str) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{name}: {error}", code=error.code) from error
