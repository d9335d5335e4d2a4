"""Options that a command line may give once: a second value is refused, not silently the last."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, get_args

import click
from click.core import ParameterSource

from dpaudit.auditing.options import Section

USUAL = "Usual options"
_SECTIONS = (USUAL, *get_args(Section))


class SectionedCommand(click.Command):
    """A command whose help has its options in sections, the usual ones first."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, each in its section; what has none is about output."""
        for title in _SECTIONS:
            records = [
                record
                for one in self.get_params(ctx)
                if isinstance(one, click.Option)
                and getattr(one, "section", _SECTIONS[-1]) == title
                and (record := one.get_help_record(ctx)) is not None
            ]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class SingleOption(click.Option):
    """An option that says one thing, however often it says it. Flags, and those that repeat, are
    what they are everywhere. section: of the help."""

    def __init__(self, *names: Any, section: str = _SECTIONS[-1], **extra: Any) -> None:
        super().__init__(*names, **extra)
        self.section = section

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser keep every value that is given."""
        if self.multiple or self.count or self.is_flag:
            super().add_to_parser(parser, ctx)
        else:
            parser.add_option(
                obj=self, opts=self.opts, dest=self.name, action="append", nargs=self.nargs
            )

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """Return the value. Raises UsageError for two that differ."""
        given = opts.get(self.name or "")
        if not isinstance(given, list) or self.multiple:
            return super().consume_value(ctx, opts)
        for other in given:
            if other != given[0]:
                name = self.opts[0]
                raise click.UsageError(
                    f"{name} is given twice, as {given[0]} and {other}; give one of them", ctx
                )
        return super().consume_value(ctx, {**opts, self.name or "": given[0]})


option = partial(click.option, cls=SingleOption)
