"""Classes of options and commands for click. An option has a single value; a command keeps the
words of its command line; `--help` is short, and `--help-all` is complete."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any, get_args

import click
from click.core import ParameterSource

from dpaudit.auditing.options import Section, owned
from dpaudit.auditing.spec import DrawnSeed
from dpaudit.hash_seed import USUAL as USUAL_HASH_SEED
from dpaudit.hash_seed import VARIABLE
from dpaudit.wording import did_you_mean

USUAL = "Usual options"
SECTIONS = (USUAL, *get_args(Section))
# Keys of click's context: the words of the command line, and whether the complete help is shown.
_WORDS, _COMPLETE = "dpaudit.words", "dpaudit.complete_help"
# Columns for a text in the short help, so that an option takes one line of 80 columns.
_LINE = 52
# Largest number of options of a command whose short help lists all of them.
_FEW = 8
# Options that the command line for repeating an audit leaves out. They decide where results go, how
# results are shown, and which audits are left out.
_NOT_REPEATED = tuple(one.name for one in owned("run"))


class _Number(click.types.FloatParamType):
    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            usual = "0.99" if param is not None and param.name == "confidence" else "0.5"
            meant = _percentage(str(value)) or f"one such as {usual}"
            self.fail(f"{value!r} is no number; give {meant}", param, ctx)


def _percentage(text: str) -> str | None:
    """Return, in words, the number that a percentage stands for: `0.99, which is 99 %` for `99%`.
    Return None for a text that is no percentage."""
    if text.endswith("%"):
        share = text.removesuffix("%").strip()
        with suppress(ArithmeticError):
            number = float(Decimal(share) / 100)
            if math.isfinite(number):
                return f"{number:g}, which is {share} %"
    return None


NUMBER = _Number()


class Choice(click.Choice[str]):
    """A type of options whose value is one of a few words. The error for any other word suggests
    the nearest valid word."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return the reason why a value is refused."""
        reason = super().get_invalid_choice_message(value, ctx)
        return f"{reason}{did_you_mean(str(value), self.choices)}"


class SingleOption(click.Option):
    """An option that may be repeated only with the same value. Flags, and options that take
    several values, are as in click.

    section: heading in the help.
    """

    def __init__(self, *names: Any, section: str = SECTIONS[-1], **extra: Any) -> None:
        super().__init__(*names, **extra)
        self.section = section

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Have the parser keep every value that is given."""
        if self.multiple or self.count or self.is_flag:
            super().add_to_parser(parser, ctx)
        else:
            parser.add_option(
                obj=self, opts=self.opts, dest=self.name, action="append", nargs=self.nargs
            )

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """Return the value and its source. Raises UsageError for two values that differ."""
        given = opts.get(self.name or "")
        self._refuse_options(ctx, given)
        if not isinstance(given, list) or self.multiple:
            return super().consume_value(ctx, opts)
        for other in given:
            if other != given[0]:
                name = self.opts[0]
                raise click.UsageError(
                    f"{name} is given twice, as {given[0]} and {other}; give one of them", ctx
                )
        return super().consume_value(ctx, {**opts, self.name or "": given[0]})

    def _refuse_options(self, ctx: click.Context, given: Any) -> None:
        """Raise UsageError if the value is the name of another option."""
        options = (one for one in ctx.command.params if isinstance(one, click.Option))
        known = {name for one in options for name in one.opts}
        for value in given if isinstance(given, list | tuple) else ():
            if str(value).partition("=")[0] in known:
                name, kind = self.opts[0], self.metavar or self.type.name.upper()
                raise click.UsageError(
                    f"{name} needs a value ({kind}), and {value} follows it; write {name} {kind}",
                    ctx,
                )


option = partial(click.option, cls=SingleOption)


class AuditCommand(click.Command):
    """A command that remembers the words it was given, so that its line can be repeated.

    `--help` lists the usual options, one line each; `--help-all` lists all options, in sections,
    with their complete texts. A command with few options lists all of them in both.
    """

    def __init__(self, *args: Any, **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.params.append(
            SingleOption(
                ["--help-all"], is_flag=True, is_eager=True, expose_value=False,
                callback=_show_complete_help, help="Show all options and exit.",
            )
        )  # fmt: skip

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_WORDS] = list(args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        sections = {
            title: [one for one in options if getattr(one, "section", SECTIONS[-1]) == title]
            for title in SECTIONS
        }
        if not ctx.meta.get(_COMPLETE):
            sections = {USUAL: sections[USUAL]}
        if len(self.params) <= _FEW:
            sections = {"Options": options}
        for title, some in sections.items():
            records = [record for one in some if (record := one.get_help_record(ctx))]
            if not ctx.meta.get(_COMPLETE):
                records = [(names, _in_a_line(text)) for names, text in records]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if not ctx.meta.get(_COMPLETE):
            options = (one for one in self.get_params(ctx) if isinstance(one, click.Option))
            count = sum(not one.hidden for one in options)
            formatter.write_paragraph()
            formatter.write_text(f"{ctx.command_path} --help-all explains all {count} options.")


def _show_complete_help(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[_COMPLETE] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def _in_a_line(text: str) -> str:
    """Return the first sentence of a help text, with the default if the text states one and both
    fit in one line."""
    first, _, rest = text.partition(". ")
    first = f"{first.removesuffix('.')}."
    default = rest.partition("Default: ")[2].partition(". ")[0].partition(", ")[0]
    with_default = f"{first} Default: {default.removesuffix('.')}."
    return with_default if default and len(with_default) <= _LINE else first


def repeating(ctx: click.Context, targets: Sequence[str], seed: int, name: str = "") -> str:
    """Return the command line that repeats an audit of `targets`: as it was typed, without options
    that do not change the audit.

    seed: seed of the audit, which is added if it was drawn at random.  name: value of -k.
    """
    words = [str(ctx.info_name), *targets, *_flags(ctx, seed), *(["-k", name] if name else [])]
    return command_line(words)


def command_line(words: Iterable[str]) -> str:
    """Return the command line of `dpaudit` with these words, and with the hash seed of this process
    unless it is the one that dpaudit sets."""
    from dpaudit.outcomes.set_order import hash_seed  # imports NumPy

    seed = hash_seed()
    variable = [] if seed in (None, USUAL_HASH_SEED) else [f"{VARIABLE}={seed}"]
    return shlex.join([*variable, "dpaudit", *words])


def _flags(ctx: click.Context, seed: int) -> Iterator[str]:
    """Yield the flags of the command line that determine an audit, with their values, as typed."""
    given, _, order = ctx.command.make_parser(ctx).parse_args(list(ctx.meta[_WORDS]))
    drawn = isinstance(seed, DrawnSeed) or isinstance(ctx.params.get("seed"), DrawnSeed)
    left_out = {*_NOT_REPEATED, *(["seed"] if drawn else [])}
    for param in dict.fromkeys(order):
        if not isinstance(param, click.Option) or param.name in left_out:
            continue
        flag, values = param.opts[-1], given[param.name]
        if param.is_flag:
            yield flag
            continue
        for value in values if param.multiple else values[:1]:
            yield from (flag, value)
    if drawn:
        yield from ("--seed", str(seed))
