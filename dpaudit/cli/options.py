"""Options that a command line may give once: a second value is refused, not silently the last."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any, get_args

import click
from click.core import ParameterSource

from dpaudit.auditing.options import Section
from dpaudit.wording import did_you_mean

USUAL = "Usual options"
SECTIONS = (USUAL, *get_args(Section))


class _Number(click.types.FloatParamType):
    """A number, with what to give in the place of what is none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number of a text."""
        try:
            return float(value)
        except (TypeError, ValueError):
            usual = "0.99" if param is not None and param.name == "confidence" else "0.5"
            meant = _meant(str(value)) or f"one such as {usual}"
            self.fail(f"{value!r} is no number; give {meant}", param, ctx)


def _meant(text: str) -> str | None:
    """Return the number that is meant by so many percent: of `99%`, 0.99."""
    if text.endswith("%"):
        share = text.removesuffix("%").strip()
        with suppress(ArithmeticError):
            number = float(Decimal(share) / 100)
            if math.isfinite(number):
                return f"{number:g}, which is {share} %"
    return None


NUMBER = _Number()


class Choice(click.Choice[str]):
    """One of a few words, with the one that was meant in the place of what is none."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return why a value is refused."""
        said = super().get_invalid_choice_message(value, ctx)
        return f"{said}{did_you_mean(str(value), self.choices)}"


class SingleOption(click.Option):
    """An option that says one thing, however often it says it. Flags, and those that repeat, are
    what they are everywhere. section: of the help."""

    def __init__(self, *names: Any, section: str = SECTIONS[-1], **extra: Any) -> None:
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
        """Raise UsageError where another option stands in the place of a value."""
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
