"""Flags of `dpaudit run` that are keys of an audit: read once, in the words of a YAML file."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import click
from click.core import ParameterSource

from dpaudit.auditing.spec import MINIMUM_SAMPLES, AuditSpec, DrawnSeed
from dpaudit.claims import DEFINITIONS, implied_definition, required
from dpaudit.cli.options import option
from dpaudit.errors import DatasetError, UsageError
from dpaudit.inputs.datasets import FORMS, check_no_file, parse_dataset

Command = Callable[..., Any]

_DIGITS = 100
_CLOSING = {"[": "]", "{": "}"}
_CLAIM = (
    "epsilon",
    "delta",
    "mu",
    "sigma",
    "rho",
    "order",
    "tradeoff",
    "adversary",
    "group",
    "definition",
)


def _value(_: click.Context, param: click.Parameter, text: str | None) -> Any:
    """Read a value in JSON or YAML."""
    return None if text is None else _parsed(text, param)


def _input(ctx: click.Context, param: click.Parameter, text: str | None) -> Any:
    """Read a dataset: a value, or a reference to one."""
    if text is not None:
        with _about(param):
            check_no_file(text)
    return _value(ctx, param, text)


def _named_values(
    _: click.Context, param: click.Parameter, texts: tuple[str, ...]
) -> dict[str, Any]:
    """Read every `name=value`, the value in JSON or YAML."""
    values: dict[str, Any] = {}
    texts_of: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--param {text!r} must be name=value, e.g. --param epsilon=0.5")
        if texts_of.setdefault(name, value) != value:
            raise UsageError(
                f"--param {name} is given more than once, as {texts_of[name]} and {value}; "
                "give one of them"
            )
        values[name] = _parsed(value, param)
    return values


def _listed(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> list[str]:
    """Return the values of a repeatable flag as a file has them."""
    return list(texts)


def _whole_number(_: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Read a whole number as people write it: 1000000, 1_000_000, 1,000,000 or 1e6."""
    if text is None:
        return None
    try:
        number = Decimal(text.replace(",", ""))  # takes underscores, and is exact
        if number.adjusted() >= _DIGITS:  # else all of them would be written out
            raise UsageError(f"{_flag(param)} {text!r} is too large; give at most {_DIGITS} digits")
        if number == number.to_integral_value():
            return int(number)
    except ArithmeticError:  # not a number, or not a finite one
        pass
    raise UsageError(f"{_flag(param)} {text!r} must be a whole number, e.g. 1_000_000 or 1e6")


def _seed(ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
    """Read a seed; draw one for `random`, here and not later, so that a batch shares it."""
    if text == "random":
        drawn = DrawnSeed(secrets.randbelow(2**32))
        if not ctx.params.get("resume"):  # a journal has one already
            click.echo(f"--seed random drew {drawn}; --seed {drawn} repeats this run", err=True)
        return drawn
    if text is not None and not text.isdecimal():
        raise UsageError(f"--seed {text!r} must be a whole number, at least 0, or random")
    return None if text is None else int(text)


def _field_default(name: str) -> str:
    """Return the default of an AuditSpec, so that the help can never say another one."""
    default = AuditSpec.__dataclass_fields__[name].default
    return f"{default:,}" if isinstance(default, int) else str(default)


# (flag, what click needs to know); in the order of the help.
_FLAGS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (
        ("--d1",),
        {
            "callback": _input,
            "metavar": "VALUE",
            "help": "One input: any JSON or YAML value, {tuple: [0, 1]}, @file (.json, .yaml, "
            ".csv, .npy), or import:module:name.",
        },
    ),
    (
        ("--d2",),
        {"callback": _input, "metavar": "VALUE", "help": "Its neighbour, in the same way."},
    ),
    (("--epsilon",), {"type": float, "help": "The ε of the claim."}),
    (("--delta",), {"type": float, "help": "The δ of the claim."}),
    (("--mu",), {"type": float, "help": "The μ of a Gaussian claim."}),
    (("--sigma",), {"type": float, "help": "In place of μ: noise of this σ, sensitivity 1."}),
    (("--rho",), {"type": float, "help": "The ρ of a zCDP claim."}),
    (("--order",), {"type": float, "help": "The order of a Rényi claim."}),
    (
        ("--tradeoff",),
        {"metavar": "PATH", "help": "The f of an f-DP claim: the import path of a function."},
    ),
    (
        ("--adversary",),
        {
            "metavar": "PATH",
            "help": "For a computational claim: a function from an output to 1, 2 or None.",
        },
    ),
    (
        ("--group",),
        {"type": int, "help": "The claim is for one record, the inputs differ in so many."},
    ),
    (
        ("--definition",),
        {
            "type": click.Choice(list(DEFINITIONS)),
            "help": "What is claimed. Default: what the parameters belong to, such as gaussian for "
            "--mu; approximate with a --delta above 0, else pure.",
        },
    ),
    (
        ("--param", "params"),
        {
            "callback": _named_values,
            "metavar": "NAME=VALUE",
            "multiple": True,
            "help": "An argument of every call. Repeatable.",
        },
    ),
    (
        ("--init",),
        {
            "callback": _value,
            "metavar": "VALUE",
            "help": "Constructor arguments, a list or a mapping: '[1.0, 1.0]'.",
        },
    ),
    (("--call",), {"metavar": "METHOD", "help": "The method that draws."}),
    (("--factory",), {"is_flag": True, "help": "Calling the target returns what draws."}),
    (
        ("--batch-arg",),
        {
            "metavar": "NAME",
            "help": "The parameter that takes the number of outputs wanted; none: "
            "one call for each. Default: size, where there is one.",
        },
    ),
    (
        ("--data-arg",),
        {"metavar": "NAME", "help": "The parameter that takes the dataset. Default: the first."},
    ),
    (
        ("--rng-arg",),
        {
            "metavar": "NAME",
            "help": "The parameter that takes a numpy.random.Generator; none: it gets none. "
            "Default: rng, where there is one.",
        },
    ),
    (
        ("--post-process",),
        {"metavar": "PATH", "help": "The import path of a function, applied to every output."},
    ),
    (
        ("--command",),
        {
            "metavar": "COMMAND",
            "help": "In place of a target: a program that draws, in quotes with its arguments; "
            "docs/protocol.md says what it reads and writes.",
        },
    ),
    (
        ("--python",),
        {"metavar": "PATH", "help": "Run the target under this Python; dpaudit need not be there."},
    ),
    (
        ("--isolate",),
        {
            "is_flag": True,
            "help": "Draw in a process of its own: a crash is an outcome, and limits can be set.",
        },
    ),
    (
        ("--timeout",),
        {"metavar": "DURATION", "help": "500ms, 5s: of one draw; a longer one is an outcome."},
    ),
    (
        ("--memory-limit",),
        {"metavar": "SIZE", "help": "512MB, 2GiB: of the process that draws."},
    ),
    (
        ("--as", "as"),
        {
            "type": click.Choice(FORMS),
            "help": "Hand the datasets over as NumPy arrays, or as data frames of a library.",
        },
    ),
    (
        ("--adjacency",),
        {
            "metavar": "RELATION",
            "help": "add-remove, replace, or a distance such as l1:1; checked where it can be.",
        },
    ),
    (
        ("--samples",),
        {
            "callback": _whole_number,
            "metavar": "NUMBER",
            "help": "Draws for each pair of inputs, both together, at least "
            f"{MINIMUM_SAMPLES:,}. Default: {_field_default('samples')}.",
        },
    ),
    (
        ("--time",),
        {"metavar": "DURATION", "help": "30s, 2m, 1h: draw as long as this, not beside --samples."},
    ),
    (
        ("--confidence",),
        {
            "type": float,
            "help": "1 minus the chance of a false alarm. Default: "
            f"{_field_default('confidence')}.",
        },
    ),
    (
        ("--seed",),
        {
            "callback": _seed,
            "metavar": "NUMBER|random",
            "help": "Root of all randomness, or random: one is drawn and shown. "
            f"Default: {_field_default('seed')}.",
        },
    ),
    (
        ("--workers",),
        {
            "callback": _whole_number,
            "metavar": "NUMBER",
            "help": f"Processes that draw. Default: {_field_default('workers')}.",
        },
    ),
    (
        ("--executor",),
        {
            "metavar": "NAME",
            "help": "Who they are: serial, processes, dask or dask://host:8786 (docs/scale.md). "
            "Default: serial with one worker, else processes.",
        },
    ),
    (
        ("--bound",),
        {
            "type": click.Choice(["game", "clopper-pearson"]),
            "help": f"How counts become a bound. Default: {_field_default('bound')}.",
        },
    ),
    (
        ("--on-error",),
        {
            "type": click.Choice(["outcome", "fail"]),
            "help": "What an exception of the mechanism "
            f"is. Default: {_field_default('on_error')}.",
        },
    ),
    (
        ("--expect",),
        {"type": click.Choice(["violation", "pass"]), "help": "The verdict that exits 0."},
    ),
    (
        ("--range",),
        {
            "callback": _value,
            "metavar": "VALUES",
            "help": "All outputs that there are, exceptions by name: '[0, 1, TypeError]'. Gives "
            "an interval for ε, not only a lower bound.",
        },
    ),
    (
        ("--exact",),
        {
            "is_flag": True,
            "help": "Draw nothing: compute from the mechanism's own pmf(dataset, **params), a "
            "mapping from outcomes to probabilities.",
        },
    ),
    (
        ("--repeat",),
        {
            "callback": _whole_number,
            "metavar": "NUMBER",
            "help": "So many independent runs on one input are one output; the claim is for one.",
        },
    ),
    (
        ("--floating-point",),
        {"is_flag": True, "help": "Look at the low-order bits and decimals of floats, too."},
    ),
    (
        ("--timing",),
        {"is_flag": True, "help": "Look at how long every call takes, too."},
    ),
    (
        ("--attack", "attacks"),
        {
            "callback": _listed,
            "metavar": "PATH",
            "multiple": True,
            "help": "A further attack: an import path, or the name of an installed one. "
            "Repeatable; docs/attacks.md says what it must do.",
        },
    ),
    (
        ("--distinguisher",),
        {
            "metavar": "PATH",
            "help": "A function from an output to a score: only its scores are looked at.",
        },
    ),
    (("--full",), {"is_flag": True, "help": "Go on after a refutation, to tighten the bound."}),
    (
        ("--allow-underpowered",),
        {
            "is_flag": True,
            "help": "Exit 0, not 4, for an audit that could not have refuted its claim, whatever "
            "the mechanism does (too few draws for so large an ε, equal inputs).",
        },
    ),
)


def audit_flags(command: Command) -> Command:
    """Give a command every flag that is a key of an audit."""
    return some_flags(*(names[0] for names, _ in _FLAGS))(command)


def some_flags(*wanted: str) -> Callable[[Command], Command]:
    """Return what gives a command those flags of an audit that are named, `--epsilon` and such."""
    chosen = [(names, extra) for names, extra in _FLAGS if names[0] in wanted]

    def decorate(command: Command) -> Command:
        for names, extra in reversed(chosen):
            command = option(*names, **extra)(command)
        return command

    return decorate


def given_settings(ctx: click.Context, flags: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of an audit that flags were given for, as in a YAML file.

    What was not given is not there, so that a file's own values, or the defaults, hold.
    """
    explicit = {
        name: value
        for name, value in flags.items()
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    settings = {name: value for name, value in explicit.items() if name not in _CLAIM}
    claim = {name: explicit[name] for name in _CLAIM if name in explicit}
    return {**settings, "claim": claim} if claim else settings


def missing_parameters(claim: dict[str, Any]) -> list[str]:
    """Return the flags that a claim cannot do without and that were not given."""
    wanted = required(claim.get("definition") or implied_definition(claim))
    if "sigma" in claim:  # noise of this standard deviation stands for a μ
        wanted = [name for name in wanted if name != "mu"]
    return [f"--{name}" for name in wanted if name not in claim]


def _parsed(text: str, param: click.Parameter) -> Any:
    with _about(param):
        try:
            return parse_dataset(text)
        except DatasetError as error:
            if text[:1] in _CLOSING and text[-1] != _CLOSING[text[:1]]:
                raise DatasetError(f"{error}; put quotes around a value with spaces") from error
            raise


@contextmanager
def _about(param: click.Parameter) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{_flag(param)}: {error}") from error


def _flag(param: click.Parameter) -> str:
    return param.opts[0]
