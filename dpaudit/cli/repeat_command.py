"""The command line that repeats an audit: as it was typed, without what the audit does not need."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

import click

from dpaudit.auditing.options import owned
from dpaudit.auditing.spec import DrawnSeed
from dpaudit.cli.options import SECTIONS
from dpaudit.hash_seed import USUAL, VARIABLE
from dpaudit.outcomes.set_order import hash_seed

_WORDS = "dpaudit.words"
# Where results go, how they are shown, and which audits are left out.
_BESIDE = tuple(one.name for one in owned("run"))


class RepeatableCommand(click.Command):
    """A command that remembers the words it was given, and whose help has its options in sections,
    the usual ones first."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_WORDS] = list(args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        for title in SECTIONS:
            own = [one for one in options if getattr(one, "section", SECTIONS[-1]) == title]
            records = list(filter(None, (one.get_help_record(ctx) for one in own)))
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def repeating(ctx: click.Context, targets: Sequence[str], seed: int, name: str = "") -> str:
    """Return the command line for some of the targets that were typed. seed: of the audit, given
    where it was drawn. name: for -k."""
    words = [str(ctx.info_name), *targets, *_flags(ctx, seed), *(["-k", name] if name else [])]
    return command_line(words)


def command_line(words: Iterable[str]) -> str:
    """Return the command line of `dpaudit` with these words, and with the hash seed of this process
    unless it is the one that dpaudit sets."""
    seed = hash_seed()
    variable = [] if seed in (None, USUAL) else [f"{VARIABLE}={seed}"]
    return shlex.join([*variable, "dpaudit", *words])


def _flags(ctx: click.Context, seed: int) -> Iterable[str]:
    """Yield the flags that decide what an audit is, as they were typed."""
    given, _, order = ctx.command.make_parser(ctx).parse_args(list(ctx.meta[_WORDS]))
    drawn = isinstance(seed, DrawnSeed) or isinstance(ctx.params.get("seed"), DrawnSeed)
    left_out = {*_BESIDE, *(["seed"] if drawn else [])}
    for param in dict.fromkeys(order):
        if not isinstance(param, click.Option) or param.name in left_out:
            continue
        flag, values = param.opts[-1], given[param.name]
        if param.is_flag:
            yield flag
            continue
        for one in values if param.multiple else values[:1]:
            yield from (flag, one)
    if drawn:
        yield from ("--seed", str(seed))
