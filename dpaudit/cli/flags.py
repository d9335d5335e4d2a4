"""Make the command-line flags from the table of options. Values are read as in a YAML file."""

from __future__ import annotations

import itertools
import re
import secrets
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import click
from click.core import ParameterSource

from dpaudit.auditing import options as table
from dpaudit.auditing.options import OPTIONS, Kind, Option, owned
from dpaudit.auditing.spec import AuditSpec, DrawnSeed
from dpaudit.claims import (
    conflict_message,
    implied_definition,
    missing_parameters,
    required_parameters,
)
from dpaudit.cli.completing import COMPLETERS
from dpaudit.cli.group import debug_option
from dpaudit.cli.messages import folded
from dpaudit.cli.options import NUMBER, USUAL, Choice, option
from dpaudit.config.targets import parse_duration
from dpaudit.errors import UsageError
from dpaudit.import_path import split
from dpaudit.inputs.datasets import FILE, parse_dataset
from dpaudit.inputs.decoding import check_read
from dpaudit.inputs.pairs import NeighbouringPair, several_more, unlike_inputs
from dpaudit.inputs.values import IMPORT
from dpaudit.wording import visible

Command = Callable[..., Any]

_DIGITS = 100
# Largest number of characters of an input that a message shows as an example.
_MAX_EXAMPLE = 60
# Largest number of characters of a list of choices in the first column of the help.
_MAX_CHOICE = 60
# Key in the `meta` dict of click's context. Its value is the list of warnings about flags that may
# have been misread.
_MISREAD = "dpaudit.misread"
_CLAIM = tuple(one.name for one in owned("claim"))


def _value(_: click.Context, param: click.Parameter, text: str | None) -> Any:
    """Return the value of a flag, read as JSON or YAML, or None if the flag was not given."""
    return None if text is None else _parsed(text, param)


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
        values[name] = _parsed(value, param, f"--param {name}")
    return values


def whole_number(_: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Return a whole number that was written as 1000000, 1_000_000, 1,000,000 or 1e6, or None if
    the flag was not given. Raises UsageError for any other text."""
    if text is None:
        return None
    try:
        number = Decimal(text.replace(",", ""))  # Decimal accepts underscores, and is exact
        if number.adjusted() >= _DIGITS:  # int(number) would write out all digits
            raise UsageError(
                f"{param.opts[0]} {text!r} is too large; give at most {_DIGITS} digits",
                code="option-invalid",
            )
        if number == number.to_integral_value():
            return int(number)
    except ArithmeticError:  # the text is not a finite number
        pass
    raise UsageError(
        f"{param.opts[0]} {text!r} must be a whole number, e.g. 1_000_000 or 1e6",
        code="option-invalid",
    )


def _processes(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> int | float | str | None:
    """Return the number of processes as an int. Return any other text, such as `auto`,
    unchanged."""
    try:
        return whole_number(ctx, param, text)
    except UsageError:
        return text  # the check of the option refuses any text but auto


def _duration(_: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """Return the text of a duration, such as `10min`, unchanged after a check. Raises UsageError
    for a text that is not a duration."""
    if text is not None:
        name = str(param.name)
        OPTIONS[name].verify(parse_duration(text, name))
    return text


def _seed(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Return the seed, or None if the flag was not given. For `--seed random`, draw a seed once, so
    that all audits of a batch share it."""
    if text == "random":
        drawn = DrawnSeed(secrets.randbelow(2**32))
        if not ctx.params.get("resume"):  # a resumed run uses the seed of its journal
            click.echo(f"--seed random drew {drawn}; --seed {drawn} repeats this run", err=True)
        return drawn
    if text is not None and not text.isdecimal():
        raise UsageError(
            f"--seed {text!r} must be a whole number, at least 0, or random", code="option-invalid"
        )
    return None if text is None else int(text)


# Maps each kind of option to the arguments for click.option. An option of any other kind takes a
# word from a list, or any text.
_READERS: Mapping[Kind, dict[str, Any]] = {
    table.SWITCH: {"is_flag": True},
    table.COUNT: {"count": True},
    table.NUMBER: {"type": NUMBER},
    table.WHOLE: {"callback": whole_number},
    table.PROCESSES: {"callback": _processes},
    table.SEED: {"callback": _seed},
    table.DURATION: {"callback": _duration},
    table.DATASET: {"callback": _value},
    table.ARGUMENTS: {"callback": _value},
    table.OUTPUTS: {"callback": _value},
    table.NAMED: {"callback": _named_values, "multiple": True},
    table.PATHS: {"callback": lambda *given: list(given[-1]), "multiple": True},
}
_USUAL_CLAIM = "--epsilon 1"
# Values of parameters in the examples of error messages, as in `--epsilon 1 --delta 1e-5`. Any
# other parameter has its name in capitals as value, as in `--mu MU`.
_EXAMPLES = {"epsilon": "1", "delta": "1e-5"}


def some_flags(
    *wanted: str, usual: Collection[str] = (), **other_help: str
) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command.

    wanted: names of options in the table of options.
    usual: names of the options that the short help of this command shows, in addition to those that
        the table marks for the short help of every command.
    other_help: further options, each with a help text that replaces the one in the table. Maps the
        name of the option to the text.
    """

    def decorate(command: Command) -> Command:
        for name in reversed([*wanted, *other_help]):
            more = {"section": USUAL} if name in usual else {}
            command = _flag_of(OPTIONS[name], other_help.get(name), **more)(command)
        return command

    return decorate


def ignored_flags(*known: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of `dpaudit run` as hidden options without effect.

    The user can then turn a `dpaudit run …` line into another command by changing one word.

    known: names of the options that the command already has.
    """
    every = [one for one in OPTIONS.values() if one.flag and one.name not in known]

    def decorate(command: Command) -> Command:
        for one in every:
            if one.of in ("audit", "file") or one.name == "adjacency":
                command = _flag_of(one, None, hidden=True, expose_value=False)(command)
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
    """Return a decorator that adds the options --inside and --outside, which say whether a search
    also tries inputs outside the given space of inputs.

    section: heading of these options in the help.
    """
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


def _flag_of(one: Option, other_help: str | None, **more: Any) -> Callable[[Command], Command]:
    if one.name == "debug":
        return debug_option
    extra = dict(_READERS.get(one.kind, {}))
    if one.kind.choices:
        extra["type"] = Choice(one.kind.choices)
        if len("|".join(one.kind.choices)) > _MAX_CHOICE:
            extra["metavar"] = "NAME"
    elif one.metavar or one.kind.metavar:
        extra["metavar"] = one.metavar or one.kind.metavar
    default = f" Default: {one.default_words}." if one.default_words not in ("", "required") else ""
    names = [name for name in (one.short, one.flag, one.name) if name]
    # click must read --resume before --seed, since the reader of --seed needs the value of
    # --resume.
    extra |= {"shell_complete": COMPLETERS.get(one.name), "is_eager": one.name == "resume"}
    extra |= {"section": USUAL if one.usual else one.section, **more}
    return option(*names, help=other_help or f"{one.help}{default}", **extra)


def given_settings(ctx: click.Context, flags: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the flags that the user gave, under the keys that an audit has in a YAML
    file. Flags that were not given are absent; the values of a file, or else the defaults, then
    apply."""
    explicit = {
        name: value
        for name, value in flags.items()
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        and name in OPTIONS
        and OPTIONS[name].of not in ("file", "run")
    }
    settings = {name: value for name, value in explicit.items() if name not in _CLAIM}
    for name, value in settings.items():
        # Checked here, since later checks name a file, and `init` and `sensitivity` have none.
        if OPTIONS[name].kind in (table.NUMBER, table.ARGUMENTS):
            OPTIONS[name].verify(value)
    claim = {name: explicit[name] for name in _CLAIM if name in explicit}
    return {**settings, "claim": claim} if claim else settings


def check_target(target: str | None, instead: str) -> None:
    """Raise UsageError if a target is a file of audits, or no import path.

    instead: end of the message about a file of audits, which names the right input.
    """
    if target is not None and target.endswith((".yaml", ".yml")):
        raise UsageError(f"{target!r} is a file of audits{instead}", code="wrong-kind-of-file")
    if target is not None:
        split(target)


def check_given(given: Mapping[str, Any], example: str) -> None:
    """Raise UsageError if a value is None.

    given: values of flags, by their names.
    example: end of the message, which shows a complete command.
    """
    absent = [f"--{name}" for name, value in given.items() if value is None]
    if absent:
        verb = "is" if len(absent) == 1 else "are"
        raise UsageError(f"{', '.join(absent)} {verb} missing; {example}", code="option-missing")


def check_complete(
    settings: dict[str, Any], needed: Sequence[str], what: str, example: str
) -> None:
    """Raise UsageError if one of the flags `needed`, or a parameter of the claim, is missing.

    what: the wanted action as a noun, such as "an audit of one mechanism".
    example: complete command that the message shows.
    """
    claim = settings.get("claim", {})
    if "definition" not in claim and (clash := conflict_message(claim)):
        raise UsageError(*clash, code="options-conflict")
    definition = claim.get("definition") or implied_definition(claim)
    incomplete = [] if "from" in claim else missing_parameters(claim, definition)
    absent = [name for name in needed if name not in settings] + incomplete
    if claim and incomplete:
        example = example.replace(_USUAL_CLAIM, _completed(claim, definition))
    for name in needed:
        if name in settings:  # the value that was given need not be repeated
            example = _with_value(example, name, "…")
    given = [name for name in ("d1", "d2") if name in settings]
    if len(given) == 1 and given[0] in needed:
        (other,) = {"d1", "d2"}.difference(given)
        text = _neighbour_text(settings[given[0]], settings.get("adjacency")) or other.upper()
        example = _with_value(example, other, text)
    check_given(dict.fromkeys(absent), f"{what} looks like {example}")


def _with_value(example: str, name: str, text: str) -> str:
    """Return a command with `text` in place of the value of a flag."""
    return re.sub(rf"(?<=--{name}) ('[^']*'|\S+)", lambda _: f" {text}", example)


def _neighbour_text(dataset: Any, adjacency: Any) -> str:
    """Return an example of a neighbour of a dataset, of the same shape, as written in a shell.
    Return "" if there is no short example.

    dataset: the value of the flag --d1 or --d2.
    adjacency: the value of the flag --adjacency; None if it was not given.
    """
    if adjacency not in (None, "add-remove", "replace"):
        return ""
    from dpaudit.cli.init_files import in_yaml  # only for this message

    neighbour = _neighbour(dataset, same_size=adjacency == "replace")
    text = in_yaml(neighbour)  # compared as text, since .nan is not equal to itself
    is_example = text != in_yaml(dataset) and len(shlex.quote(text)) <= _MAX_EXAMPLE
    return shlex.quote(text) if is_example else ""


def _neighbour(value: Any, *, same_size: bool) -> Any:
    """Return a dataset with one record less or, if `same_size`, with another last record. Return
    the dataset itself if it has no records."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        is_reference = value.startswith((FILE, IMPORT))
        return value if is_reference else "b" if value == "a" else "a"
    if isinstance(value, list):
        if same_size:
            return [*value[:-1], *(_neighbour(one, same_size=True) for one in value[-1:])]
        return value[:-1] if len(value) > 1 else [*value, *(value or [0])]
    if isinstance(value, dict) and value:
        last = [*value][-1]
        are_columns = all(isinstance(column, list) for column in value.values())
        return {
            key: _neighbour(part, same_size=same_size or key == "tuple")
            if are_columns or key == last
            else part
            for key, part in value.items()
        }
    return value


def _completed(claim: dict[str, Any], definition: str) -> str:
    """Return the flags of a claim as one text, such as `--epsilon 1 --delta DELTA`: the given
    values, and a name in capitals for each missing value."""
    flags = [f"--definition {definition}"] if "definition" in claim else []
    for name in required_parameters(definition):
        value = claim.get(name, _EXAMPLES.get(name, name.upper()))
        flags.append(f"--{name} {value:g}" if isinstance(value, float) else f"--{name} {value}")
    return " ".join(flags)


def _parsed(text: str, param: click.Parameter, name: str = "") -> Any:
    """Return the value of `text`, read as JSON or YAML. Warn if the user may have meant another
    value.

    name: name of the option for messages; "" stands for the name of the flag.
    """
    name = name or param.opts[0]
    with _about(name):
        value = parse_dataset(text)
        for doubt in check_read(text, value, is_dataset=param.name in ("d1", "d2")):
            warning = f"{name}: {doubt}"
            _warn(warning)
            click.get_current_context().meta.setdefault(_MISREAD, []).append(warning)
    return value


def refuse_misread(ctx: click.Context, specs: Iterable[AuditSpec]) -> None:
    """Raise UsageError if an audit has the setting `strict` and a warning was given while the flags
    were read."""
    warnings = ctx.meta.get(_MISREAD, ())
    if warnings and any(spec.requirements.strict for spec in specs):
        raise UsageError(
            f"{warnings[0]} (strict: this warning fails the run)", code="strict-warning"
        )


def warn_of_inputs(pairs: Iterable[NeighbouringPair], group: int) -> None:
    """Print a warning for each pair whose inputs look wrong, such as inputs of different types.

    Used by commands whose result does not contain warnings.

    group: number of records in which the inputs of a pair may differ, according to the claim.
    """
    warnings = ((*unlike_inputs(one.d1, one.d2), *several_more(one, group)) for one in pairs)
    for warning in dict.fromkeys(itertools.chain.from_iterable(warnings)):
        _warn(warning)


def _warn(text: str) -> None:
    click.echo(folded(visible(f"warning: {text}")), err=True)


@contextmanager
def _about(name: str) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{name}: {error}", code=error.code) from error
