"""Define classes of options and commands that differ from click's. An option refuses two different
values; a command remembers the words of its command line; `--help` is short, and `--help-all` is
complete."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, get_args

import click
from click.core import ParameterSource

from dpaudit.auditing.option_parsing import Section
from dpaudit.auditing.options import DrawnSeed, owned
from dpaudit.hash_seed import USUAL as USUAL_HASH_SEED
from dpaudit.hash_seed import VARIABLE
from dpaudit.wording import did_you_mean

USUAL = "Usual options"
SECTIONS = (USUAL, *get_args(Section))
# Key in click's context for the words of the command line.
_WORDS = "dpaudit.words"
# Key in click's context for whether the user asked for the complete help.
_COMPLETE = "dpaudit.complete_help"
# Width of an option's text in the short help, in columns. With its flag, the option fits in one
# line of 80 columns.
_LINE = 52
# A command with at most this number of options lists all of them in its short help.
_MAX_LISTED = 8
# Options that say where results go, how they are shown, or which audits run, and those of `dpaudit
# plan`. They do not change an audit, so a command line that repeats it omits them.
_NOT_REPEATED = (
    *(option.name for option in owned("run")),
    *("excess", "rare", "power", "trial"),
)


class _FloatType(click.types.FloatParamType):
    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            usual = "0.99" if param is not None and param.name == "confidence" else "0.5"
            self.fail(f"{value!r} is no number; give one such as {usual}", param, ctx)


NUMBER = _FloatType()


class Choice(click.Choice[str]):
    """An option type that accepts the words in a list. For another word, the error suggests the
    nearest word in the list."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return the error message for a wrong value. It suggests the nearest word if one is
        similar."""
        reason = super().get_invalid_choice_message(value, ctx)
        return f"{reason}{did_you_mean(str(value), self.choices)}"


class SingleOption(click.Option):
    """An option that accepts one value. If the user repeats it, all values must be equal. Options
    without a value, and options with several values, behave as in click. `section` is the heading
    under which the help lists the option."""

    def __init__(self, *names: Any, section: str = SECTIONS[-1], **extra: Any) -> None:
        super().__init__(*names, **extra)
        self.section = section

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Make click's parser keep the values of all repetitions, and not only the last one."""
        if self.multiple or self.count or self.is_flag:
            super().add_to_parser(parser, ctx)
        else:
            parser.add_option(
                obj=self, opts=self.opts, dest=self.name, action="append", nargs=self.nargs
            )

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """Return (value, source of the value). Raises UsageError for two different values."""
        values = opts.get(self.name or "")
        self._refuse_options(ctx, values)
        if not isinstance(values, list) or self.multiple:
            return super().consume_value(ctx, opts)
        for value in values:
            if value != values[0]:
                name = self.opts[0]
                raise click.UsageError(
                    f"{name} is given twice, as {values[0]} and {value}; give one of them", ctx
                )
        return super().consume_value(ctx, {**opts, self.name or "": values[0]})

    def _refuse_options(self, ctx: click.Context, values: Any) -> None:
        """Raise UsageError if a value is the name of an option, as in `--samples --seed 1`."""
        options = (param for param in ctx.command.params if isinstance(param, click.Option))
        known = {name for param in options for name in param.opts}
        for value in values if isinstance(values, list | tuple) else ():
            if str(value).partition("=")[0] in known:
                name, kind = self.opts[0], self.metavar or self.type.name.upper()
                raise click.UsageError(
                    f"{name} needs a value ({kind}), and {value} follows it; write {name} {kind}",
                    ctx,
                )


option = partial(click.option, cls=SingleOption)


class AuditCommand(click.Command):
    """A command that remembers the words of its command line, so that they can be printed again.
    `--help` lists the usual options (all if there are few), one line each. `--help-all` lists all
    options in sections, with their complete texts."""

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
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        sections = {
            title: [
                option for option in options if getattr(option, "section", SECTIONS[-1]) == title
            ]
            for title in SECTIONS
        }
        if not ctx.meta.get(_COMPLETE):
            sections = {USUAL: sections[USUAL]}
        if len(self.params) <= _MAX_LISTED:
            sections = {"Options": options}
        for title, section_options in sections.items():
            records = [
                record for option in section_options if (record := option.get_help_record(ctx))
            ]
            if not ctx.meta.get(_COMPLETE):
                records = [(names, _in_a_line(text)) for names, text in records]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if not ctx.meta.get(_COMPLETE):
            options = (
                option for option in self.get_params(ctx) if isinstance(option, click.Option)
            )
            count = sum(not option.hidden for option in options)
            formatter.write_paragraph()
            formatter.write_text(f"{ctx.command_path} --help-all explains all {count} options.")


def _show_complete_help(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[_COMPLETE] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def _in_a_line(text: str) -> str:
    """Return the first sentence of a help text, and the default value if both fit on one line."""
    first, _, details = text.partition(". ")
    first = f"{first.removesuffix('.')}."
    default = details.partition("Default: ")[2].partition(". ")[0].partition(", ")[0]
    with_default = f"{first} Default: {default.removesuffix('.')}."
    return with_default if default and len(with_default) <= _LINE else first


def repeating(ctx: click.Context, targets: Sequence[str], seed: int, name: str = "") -> str:
    """Return a command line that repeats the audit of `targets`: the line that the user typed,
    without options that do not change the audit, and with the seed if it was drawn at random. With
    `name`, it repeats only the audit of this name."""
    words = [str(ctx.info_name), *targets, *(["-k", name] if name else []), *_flags(ctx, seed)]
    return command_line(words)


def command_line(words: Iterable[str]) -> str:
    """Return the command line `dpaudit WORDS`. It begins with PYTHONHASHSEED=… if the hash seed of
    this process is not the one that dpaudit sets by default."""
    from dpaudit.outcomes.set_order import hash_seed  # imports NumPy

    seed = hash_seed()
    variable = [] if seed in (None, USUAL_HASH_SEED) else [f"{VARIABLE}={seed}"]
    # In zsh, a word such as =NAME without quotes is the path of a program.
    quoted = (f"'{word}'" if word[:1] == "=" else word for word in map(shlex.quote, words))
    return " ".join([*variable, "dpaudit", *quoted])


def _flags(ctx: click.Context, seed: int) -> Iterator[str]:
    """Yield the words of all options that can change the audit, as the user typed them."""
    opts, _, order = ctx.command.make_parser(ctx).parse_args(list(ctx.meta[_WORDS]))
    is_drawn = isinstance(seed, DrawnSeed) or isinstance(ctx.params.get("seed"), DrawnSeed)
    left_out = {*_NOT_REPEATED, *(["seed"] if is_drawn else [])}
    for param in dict.fromkeys(order):
        if not isinstance(param, click.Option) or param.name in left_out:
            continue
        flag, values = param.opts[-1], opts[param.name]
        if param.is_flag:
            yield flag
            continue
        for value in values if param.multiple else values[:1]:
            yield from (flag, value)
    if is_drawn:
        yield from ("--seed", str(seed))
