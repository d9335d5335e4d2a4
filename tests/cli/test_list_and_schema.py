"""`dpaudit list` and `dpaudit schema`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dpaudit.auditing.options import OPTIONS
from dpaudit.claims import DEFINITIONS
from dpaudit.inputs.adjacency import ADJACENCY_KINDS, ARGUMENTS, parse_adjacency
from dpaudit.reports.json import schema as result_schema
from dpaudit.reports.registry import FORMATS


def test_every_definition_is_listed_with_its_formula(dpaudit: Any) -> None:
    result = dpaudit("list", "definitions")
    assert result.exit_code == 0
    for key, definition in DEFINITIONS.items():
        assert f"\n{key} " in f"\n{result.stdout}"
        assert definition.formula in " ".join(result.stdout.split())
    flags = re.search(r"^gaussian .*\((.*)\)$", result.stdout, re.MULTILINE)
    assert flags is not None
    assert flags[1] == "--mu or --sigma"


def test_every_format_is_listed(dpaudit: Any) -> None:
    result = dpaudit("list", "reports")
    assert result.exit_code == 0
    for name, form in FORMATS.items():
        assert re.search(
            rf"^{name} +[A-Z].*\n?.*\n?.*\({re.escape(form.suffix)}\)", result.stdout, re.MULTILINE
        )


def test_what_a_format_is_for_is_said(dpaudit: Any) -> None:
    said = " ".join(dpaudit("list", "reports").stdout.split())
    assert "html Audits as one self-contained HTML file" in said
    assert "registered" not in said


def test_every_adjacency_is_listed(dpaudit: Any) -> None:
    result = dpaudit("list", "adjacencies")
    assert result.exit_code == 0
    listed = [line.split()[0] for line in result.stdout.splitlines() if line[0] != " "]
    assert listed == list(ADJACENCY_KINDS)
    for kind in listed:
        assert parse_adjacency(f"{kind}:{ARGUMENTS[kind]}" if kind in ARGUMENTS else kind)


def test_attacks_that_are_asked_for_name_their_flag(dpaudit: Any) -> None:
    text = " ".join(dpaudit("list", "attacks").stdout.split())
    shown = set(re.findall(r"\((--[\w-]+)\)", text))
    flags = {one.flag for one in OPTIONS.values()}
    assert {"--floating-point", "--timing", "--repeat"} <= shown <= flags


def test_the_audits_of_a_file(dpaudit: Any, config: Any) -> None:
    path = config("first", "second", more=", matrix: {e: [1, 2]}, expect: pass")
    path.write_text(path.read_text().replace("name: first", "name: 'first-${e}'"))
    path.write_text(path.read_text().replace("name: second", "name: 'second-${e}'"))
    shown = dpaudit("list", path)
    assert shown.exit_code == 0, shown.stderr
    assert [line.split()[0] for line in shown.stdout.splitlines()] == [
        *("first-1", "first-2", "second-1", "second-2")
    ]
    assert "1-DP, m:f, expect pass" in shown.stdout
    assert dpaudit("list", "audits", path).stdout == shown.stdout


def test_a_command_goes_before_a_file_of_its_name(
    dpaudit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("attacks", "mine"):
        (tmp_path / name).write_text("version: 2")
    assert "one_dimensional" in dpaudit("list", "attacks").stdout
    result = dpaudit("list", "mine")
    assert result.exit_code == 2
    assert "mine:1: version=2 is not known" in result.stderr
    assert dpaudit("list", "nope.yaml").exit_code == 2


@pytest.mark.parametrize("what", ["definitions", "attacks", "reports", "adjacencies"])
def test_no_line_is_longer_than_a_terminal_is_wide(dpaudit: Any, what: str) -> None:
    lines = dpaudit("list", what).stdout.splitlines()
    assert max(map(len, lines)) <= 80


def test_a_mistyped_list(dpaudit: Any) -> None:
    result = dpaudit("list", "adjacency")
    assert result.exit_code == 2
    assert "Did you mean 'adjacencies'?" in result.stderr


def test_the_schema_is_json(dpaudit: Any) -> None:
    result = dpaudit("schema")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["$schema"].startswith("https://json-schema.org")


def test_the_schema_of_results_is_that_of_their_files(dpaudit: Any) -> None:
    printed = dpaudit("schema", "result")
    assert printed.exit_code == 0
    assert json.loads(printed.stdout) == json.loads(json.dumps(result_schema()))
    assert dpaudit("schema", "config").stdout == dpaudit("schema").stdout
    wrong = dpaudit("schema", "results")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "not one of 'config', 'result'" in wrong.stderr
