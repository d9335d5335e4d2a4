"""Define groups of commands. A command is imported when it is first used. An error in a command
becomes one line of text and an exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import Any

import click

from dpaudit.cli import exit_codes
from dpaudit.cli.messages import columns_of, standard_error, tell
from dpaudit.cli.streams import OutputError, abandon_output
from dpaudit.errors import DpauditError, UsageError, code_of
from dpaudit.wording import did_you_mean, nearest, on_one_line

DEBUG = "dpaudit.debug"


@contextmanager
def undisturbed() -> Iterator[None]:
    """Within the `with` block, turn off garbage collection. Imports and large files make objects
    that stay, and collections would take a tenth of the time to start a run."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


debug_option = click.option(
    "--debug",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, value: context.meta.__setitem__(DEBUG, value),
    help="Show the code and the traceback of every error.",
)


class SuggestingGroup(click.Group):
    """A group of commands. For an unknown command, the error suggests the most similar command."""

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
        known = self.list_commands(ctx)
        meant = did_you_mean(name, known)
        listed = f"there is no command {name!r}.{meant} Known: {', '.join(known)}"
        raise click.UsageError(listed, ctx)


class RootGroup(SuggestingGroup):
    """The group of all commands of dpaudit. It turns every error into one line and an exit code.
    `lazy` maps the name of a command to (`module:attribute`, one line of help)."""

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.lazy = lazy

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for word in args:
            try:
                word.encode()
            except UnicodeEncodeError:
                encoding = sys.getfilesystemencoding()
                raise UsageError(
                    f"the argument {os.fsencode(word)!r} is not text in {encoding}, the encoding "
                    "of this terminal; for other bytes give a file, @file, or import:module:name",
                    code="arguments-wrong",
                ) from None
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return None
        path, summary = self.lazy[cmd_name]
        module, _, attribute = path.partition(":")
        with undisturbed():
            command: click.Command = getattr(import_module(module), attribute)
        command.short_help = summary
        return command

    def get_help(self, ctx: click.Context) -> str:
        columns = min(columns_of(sys.stdout), ctx.max_content_width or 80)
        ctx.terminal_width = max(columns - 2, 50)
        return super().get_help(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self.lazy.items()])

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        code = guarded(partial(super().main, *args, standalone_mode=False, **extra))
        if standalone_mode:
            sys.exit(code)
        return code

    def invoke(self, ctx: click.Context) -> Any:
        # Handle errors here, while click's context still exists, since only the context says
        # whether the user gave --debug.
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            name = ctx.invoked_subcommand
            command = None if name is None else self.get_command(ctx, name)
            # click's parser leaves the context of its errors empty, but the message needs the name
            # of the command.
            if error.ctx is None and command is not None:
                error.ctx = click.Context(command, info_name=name, parent=ctx)
            raise
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:  # click would exit with code 1
            abandon_output()
            return exit_codes.BROKEN_PIPE
        except Exception as error:  # noqa: BLE001  # every error becomes one line
            if ctx.meta.get(DEBUG):
                print_traceback(error)
            return _failed(error, debug=bool(ctx.meta.get(DEBUG)))


def guarded(command: Callable[[], Any]) -> int:
    """Call `command` and return its exit code. If it raises an error, print the error and return
    the exit code of the error."""
    try:
        code = command()
        with suppress(ValueError):  # the mechanism may have closed standard output
            sys.stdout.flush()
        return code if isinstance(code, int) else exit_codes.NOTHING_FOUND
    except click.ClickException as error:
        _show(error)
        return error.exit_code
    except click.Abort as error:
        code = getattr(error.__cause__, "code", exit_codes.INTERRUPTED)
        tell("interrupted" if code == exit_codes.INTERRUPTED else "terminated")
        return int(code)
    except BrokenPipeError:
        abandon_output()
        return exit_codes.BROKEN_PIPE
    except Exception as error:  # noqa: BLE001  # errors before a command starts
        return _failed(error)


def _failed(error: Exception, *, debug: bool = False) -> int:
    """Print an error and return its exit code."""
    tell(error_line(error, debug=debug))
    if isinstance(error, OutputError):
        abandon_output()
    return exit_code(error)


def exit_code(error: Exception) -> int:
    if (isinstance(error, FileNotFoundError) and _is_nowhere()) or _is_forbidden(error):
        return exit_codes.USAGE
    return int(getattr(error, "exit_code", exit_codes.FAILURE))


def error_line(error: Exception, *, debug: bool) -> str:
    """Return an error as one line. With `debug`, the line has the code: `error[file-twice]: …`."""
    head, colon, text = describe_error(error).partition(":")
    return f"{head}[{code_of(error)}]{colon}{text}" if debug else f"{head}{colon}{text}"


def describe_error(error: Exception) -> str:
    """Return an error as one line. The line shows whether it is a mistake of the user, a failure of
    the operating system, or a bug of dpaudit."""
    if isinstance(error, DpauditError):
        from dpaudit.auditing.options import flag_of

        # Options in the message are written as flags (--epsilon), or as keys (epsilon) if the error
        # is about a configuration file.
        return f"error: {on_one_line(''.join(error.spelled(flag_of)))}"
    text = on_one_line(str(error))
    if isinstance(error, FileNotFoundError) and _is_nowhere():
        return "error: the working directory does not exist any more; change to one that exists"
    if isinstance(error, PermissionError) and _is_forbidden(error):
        closed = _closed(os.fsdecode(error.filename))
        remedy = "change its permissions, or name what you may read"
        return f"error: {closed} cannot be read: {error.strerror}; {remedy}"
    if isinstance(error, OSError) and error.strerror:
        what = f"{str(error.filename)!r}: " if error.filename else ""
        return f"error: {what}{error.strerror} (--debug shows where)"
    if isinstance(error, MemoryError):
        return "error: out of memory; give dpaudit more, or audit smaller inputs and outputs"
    if isinstance(error, RecursionError):
        return "error: something is nested too deeply; make it flatter (--debug shows where)"
    if isinstance(error, ImportError):
        reason = text.rpartition("Original error was: ")[2]
        return f"error: {reason} (not enough memory, or an incomplete installation?)"
    kind = type(error).__name__
    return f"internal error: {kind}: {text} (this is a bug in dpaudit; --debug shows the traceback)"


def _is_forbidden(error: Exception) -> bool:
    """Return whether an error says that a file or folder may not be read."""
    return isinstance(error, PermissionError) and isinstance(error.filename, str | bytes)


def _closed(name: str) -> str:
    """Describe the first folder on a path that the user may not enter; without one, the path."""
    from pathlib import Path

    path = Path(name)
    for folder in reversed(path.parents):
        if not os.access(folder, os.X_OK):
            is_here = folder == Path()
            return f"the working directory {os.getcwd()!r}" if is_here else f"the folder '{folder}'"
    return repr(str(path))


def _is_nowhere() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def print_traceback(error: BaseException) -> None:
    """Print the traceback of an error to standard error, for --debug."""
    import traceback

    click.echo("".join(traceback.format_exception(error)), file=standard_error(), nl=False)


def _show(error: click.ClickException) -> None:
    """Print an error of click on one line that ends with the command for help."""
    if not isinstance(error, click.UsageError):
        error.show()
        return
    message = on_one_line(error.format_message())
    if isinstance(error, click.NoSuchOption):
        # Find the option most similar to the unknown one. The names are compared without their
        # leading dashes, which would make all names look similar.
        command = error.ctx.command if error.ctx else None
        options = [name for param in command.params for name in param.opts] if command else []
        known = {name.lstrip("-"): name for name in options}
        near = nearest(error.option_name.lstrip("-"), known)
        message = f"there is no option {error.option_name!r}."
        if near is not None:
            message += f" Did you mean {known[near]!r}?"
    path = error.ctx.command_path if error.ctx else "dpaudit"
    line = f"error: {message[:1].lower()}{message[1:]} (see '{path} --help')"
    tell(line)
