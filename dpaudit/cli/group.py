"""Groups of commands: loaded when they are used, errors in one line, exit codes that mean it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import click

from dpaudit.cli import exit_codes
from dpaudit.errors import DpauditError, did_you_mean

DEBUG = "dpaudit.debug"

debug_option = click.option(
    "--debug",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, value: context.meta.__setitem__(DEBUG, value),
    help="Show the traceback of every error.",
)


class SuggestingGroup(click.Group):
    """A group that knows what a mistyped command was meant to be, and says which one is missing."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            known = ", ".join(self.list_commands(ctx))
            raise click.UsageError(f"a command is missing: {known}", ctx)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        raise click.UsageError(self._unknown(ctx, name), ctx)

    def _unknown(self, ctx: click.Context, name: str) -> str:
        known = self.list_commands(ctx)
        if ":" in name or name.endswith((".yaml", ".yml")):
            return f"there is no command {name!r}. Did you mean '{ctx.command_path} run {name}'?"
        return f"there is no command {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}"


class RootGroup(SuggestingGroup):
    """The group at the top: turns every error into one line and an exit code.

    lazy: name -> (`module:attribute` of the command, its help in one line), so that `--help` and
    one command do not pay for importing the others.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return None
        module, _, attribute = self.lazy[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self.lazy.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        code = _guarded(
            partial(super().main, args, prog_name, complete_var, standalone_mode=False, **extra)
        )
        if standalone_mode:
            sys.exit(code)
        return code

    def invoke(self, ctx: click.Context) -> Any:
        # Here, inside the context, since only it knows whether --debug was given.
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise _Failure(ctx, error) from error
            return _abandon_output()
        except Exception as error:
            raise _Failure(ctx, error) from error


class _Failure(Exception):
    """An error on its way out of the program; its cause is the error itself."""

    def __init__(self, ctx: click.Context, error: Exception) -> None:
        super().__init__(describe_error(error))
        self.code = getattr(error, "exit_code", exit_codes.FAILURE)
        self.debug = ctx.meta.get(DEBUG, False)


def _guarded(command: Callable[[], Any]) -> int:
    """Run a command; return its exit code, having shown what went wrong."""
    try:
        code = command()
        sys.stdout.flush()
        return code if isinstance(code, int) else exit_codes.NOTHING_FOUND
    except _Failure as failure:
        if failure.debug:
            print_traceback(failure.__cause__)
        click.echo(str(failure), err=True)
        return int(failure.code)
    except click.ClickException as error:
        _show(error)
        return error.exit_code
    except click.Abort:
        click.echo("interrupted", err=True)
        return exit_codes.INTERRUPTED
    except BrokenPipeError:
        return _abandon_output()


def describe_error(error: Exception) -> str:
    """Return an error in one line: of the user's, or a bug of the program."""
    text = " ".join(str(error).split())
    if isinstance(error, DpauditError):
        return f"error: {text}"
    kind = type(error).__name__
    return f"internal error: {kind}: {text} (this is a bug in dpaudit; --debug shows the traceback)"


def print_traceback(error: BaseException | None) -> None:
    """Print the traceback of an error, as --debug asks for."""
    import traceback

    if error is not None:
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)


def _show(error: click.ClickException) -> None:
    """Show an error; for a mistake on the command line, one line that says where to read on."""
    if not isinstance(error, click.UsageError):
        error.show()
        return
    message = " ".join(error.format_message().split())
    path = error.ctx.command_path if error.ctx else "dpaudit"
    click.echo(f"error: {message[:1].lower()}{message[1:]} (see '{path} --help')", err=True)


def _abandon_output() -> int:
    # Python would otherwise complain while it flushes on the way out.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exit_codes.BROKEN_PIPE
