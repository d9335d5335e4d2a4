"""Completion by new programs and by a real shell."""

from __future__ import annotations

import json
import subprocess
import sys

import click
import pytest
from click.shell_completion import BashComplete

from dpaudit.cli.commands import cli
from tests.cli.test_completion import asked

WITHOUT = """
import json, os, sys
os.environ["_DPAUDIT_COMPLETE"] = "bash_complete"
from dpaudit.cli.completing import begin
assert begin()
from click.shell_completion import BashComplete
from dpaudit.cli.commands import cli
found = [
    [one.value for one in BashComplete(cli, {}, "dpaudit", "_").get_completions(path, "--")]
    for path in json.loads(sys.argv[1])
]
print(json.dumps(found))
"""


def test_every_command_offers_all_its_options_without_what_computes() -> None:
    """The stand-ins change nothing of what is declared."""
    commands = paths(cli, [])
    complete = BashComplete(cli, {}, "dpaudit", "_")
    real = [[one.value for one in complete.get_completions(path, "--")] for path in commands]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, json.dumps(commands)], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert json.loads(done.stdout) == real


def paths(group: click.Group, before: list[str]) -> list[list[str]]:
    found = []
    for name in group.list_commands(click.Context(group)):
        one = group.get_command(click.Context(group), name)
        here = [*before, name]
        found += paths(one, here) if isinstance(one, click.Group) else [here]
    return found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts(shell: str) -> None:
    done = asked(f"{shell}_source")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"_DPAUDIT_COMPLETE={shell}_complete" in done.stdout
    done = asked(f"{shell}_complete", "dpaudit run x --report ju")
    assert (done.returncode, done.stderr) == (0, "")
    assert "junit" in done.stdout
