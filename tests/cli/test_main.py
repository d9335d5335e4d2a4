"""The program as a process: help, version, interruption, pipes, colours, what it imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from dpaudit.cli.commands import cli
from dpaudit.cli.messages import in_ascii

ROOT = Path(__file__).parents[2]
TARGET = ["run", "m:laplace", "--d1", "0", "--d2", "1", "--epsilon", "1"]

# A program whose engine is answered by hand, or sleeps until it is interrupted.
ANSWERING = "from tests.cli.made_results import install; install()"


def _command(setup: str, *words: str) -> list[str]:
    return [sys.executable, "-c", f"{setup}\nfrom dpaudit.cli.main import main; main()", *words]


def _run(setup: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = _command(setup, *words)
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("words", [["--help"], ["-h"]])
def test_help_names_every_command_and_exit_code(dpaudit: Any, words: list[str]) -> None:
    result = dpaudit(*words)
    assert result.exit_code == 0
    for word in ("run", "report", "list", "schema", "Exit codes:", "130 interrupted"):
        assert word in result.stdout


def test_help_has_a_line_for_each_option_and_names_the_complete_help(dpaudit: Any) -> None:
    for name in (
        "run",
        "search",
        "parity",
        "trace",
        "plan",
        "bound",
        "sensitivity",
        "init",
        "report",
    ):
        lines = dpaudit(name, "--help").stdout.splitlines()
        start = next(number for number, line in enumerate(lines) if line.lower()[-8:] == "options:")
        shown = lines[start + 1 : lines.index("", start)]
        assert all(line.startswith("  -") and len(line) <= 80 for line in shown), name
        assert len(shown) <= 10, name
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        every = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
        assert lines[-1] == f"dpaudit {name} --help-all explains all {len(every) + 1} options."
        complete = dpaudit(name, "--help-all")
        assert complete.exit_code == 0
        assert all(one.opts[-1] in complete.stdout for one in every), name


def test_version(dpaudit: Any) -> None:
    result = dpaudit("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("dpaudit ")


def test_mistyped_commands(refused: Any) -> None:
    assert "Did you mean 'run'?" in refused("rum")[1]


def test_a_reader_that_has_gone_is_no_violation() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = _command(ANSWERING, *TARGET)
    result = subprocess.run(command, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, timeout=60)
    os.close(writing)
    assert (result.returncode, result.stderr) == (141, b"")


def test_what_has_no_form_in_ascii_is_a_question_mark() -> None:
    said = in_ascii("ε ≥ 1 … δ ≤ 10⁻⁹, Σ½ μ² “é” – Ａ 漢 \ud800\N{NO-BREAK SPACE}λ")
    assert said == 'eps >= 1 ... delta <= 10^-9, Sigma1/2 mu^2 "e" - A ? ? lambda'


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("variables", "on_a_terminal", "in_a_pipe"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
        ({"FORCE_COLOR": "0"}, True, True),  # any text, as force-color.org has it
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_colours_by_variables(
    variables: dict[str, str], on_a_terminal: bool, in_a_pipe: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for color, is_coloured in ((True, on_a_terminal), (False, in_a_pipe)):
        ended = CliRunner().invoke(cli, TARGET, prog_name="dpaudit", color=color)
        assert ("\x1b[" in ended.stdout) is is_coloured
        assert "\x1b[" not in ended.stderr


HEAVY = ("scipy.stats", "statsmodels", "pydantic", "pandas", "rich", "yaml", "sklearn", "xml.etree")


def _in_the_end(shows: str) -> str:
    """Return what has a program show something in its end, however it comes to it."""
    return (
        f"import atexit, os, sys; ends = os._exit; show = lambda: {shows}\n"
        "os._exit = lambda code: (show(), ends(code))\natexit.register(show)"
    )


@pytest.mark.parametrize("words", [["--help"], TARGET])
def test_the_plain_path_imports_nothing_heavy(words: list[str]) -> None:
    shows = f"print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    said = _run(f"{ANSWERING}\n{_in_the_end(shows)}", *words).stderr
    assert set(said.splitlines()) == {"[]"}


def test_help_does_not_import_numpy() -> None:
    setup = _in_the_end("print('numpy' in sys.modules, flush=True)")
    assert _run(setup, "--help").stdout.endswith("False\n")
