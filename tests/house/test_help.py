"""The help of every command fits into a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from dpaudit.cli.commands import cli

WIDTH = 80


def commands(group: click.Group, *names: str) -> Iterator[tuple[str, ...]]:
    """Yield the names of all commands below a group, with the group itself."""
    yield names
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)
        else:
            yield (*names, name)


@pytest.mark.parametrize("flag", ["--help", "--help-all"])
def test_no_line_of_help_is_wider_than_the_terminal(flag: str) -> None:
    every, wide, shown = list(commands(cli)), [], 0
    assert ("run",) in every
    assert ("list", "definitions") in every
    for names in every:
        result = CliRunner().invoke(
            cli, [*names, flag], prog_name="dpaudit", terminal_width=WIDTH, standalone_mode=False
        )
        assert result.exception is None, names
        shown += 1
        wide += [(names, line) for line in result.stdout.splitlines() if len(line) > WIDTH]
    assert wide == []
    assert shown == len(every)
