"""`dpaudit list` and `dpaudit schema`."""

from __future__ import annotations

import json
import re
from typing import Any

from dpaudit.claims import DEFINITIONS
from dpaudit.inputs.adjacency import ADJACENCY_KINDS, ARGUMENTS, parse_adjacency
from dpaudit.reports.formats import FORMATS
from dpaudit.reports.json import schema as result_schema


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


def test_every_adjacency_is_listed(dpaudit: Any) -> None:
    result = dpaudit("list", "adjacencies")
    assert result.exit_code == 0
    listed = [line.split()[0] for line in result.stdout.splitlines() if line[0] != " "]
    assert listed == list(ADJACENCY_KINDS)
    for kind in listed:
        assert parse_adjacency(f"{kind}:{ARGUMENTS[kind]}" if kind in ARGUMENTS else kind)


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


def test_the_schema_of_results_is_that_of_their_files(dpaudit: Any) -> None:
    printed = dpaudit("schema", "result")
    assert printed.exit_code == 0
    assert json.loads(printed.stdout) == json.loads(json.dumps(result_schema()))
    assert dpaudit("schema", "config").stdout == dpaudit("schema").stdout
    wrong = dpaudit("schema", "results")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "not one of 'config', 'result'" in wrong.stderr
