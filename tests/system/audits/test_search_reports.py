"""What reports say of a search, and what reproduces its witness."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import dpaudit
from dpaudit import AuditResult, PureDP
from dpaudit.auditing.engine import run_audit
from dpaudit.cli.commands import cli
from dpaudit.config.building import build_spec
from dpaudit.reports import inputs_report
from dpaudit.reports.json import document, entry, read_document
from dpaudit.reports.text import render
from tests.specs import replace

NASTY = 'it\'s <b>&\n"quoted" ${x} é'
SPACE = "list of number in [0, 1]"


@pytest.fixture(scope="module")
def found() -> AuditResult:
    def total(rows: list[float], size: int, rng: np.random.Generator) -> Any:
        return sum(rows) + rng.laplace(size=size)

    return dpaudit.search(
        total,
        PureDP(1.0),
        space=SPACE,
        adjacency="add-remove",
        outside=True,
        samples=6_000,
        seed=2,
    )


def test_the_report_says_that_estimates_certify_nothing(found: AuditResult) -> None:
    text = render(found)
    assert "which certify nothing" in text
    assert "not certified" in text
    assert all(len(line) <= 80 for line in text.splitlines() if "repro" not in line)


def test_a_result_file_gives_every_pair_outside_back(found: AuditResult) -> None:
    assert found.searched is not None
    leaders = [replace(found.searched.leaders[0], d2=f"[{each}]") for each in ("nan", "7.0")]
    given = replace(found.searched, beyond=leaders[0], more_beyond=(leaders[1],))
    noted = replace(found, searched=given)
    (again,) = read_document(document([entry(noted)], 1)).results
    assert again.searched is not None
    assert again.searched.more_beyond == (leaders[1],)


def test_a_pass_names_the_unsettled_pair_with_its_command() -> None:
    settings = {
        "mechanism": "mechanisms.neighbours.passing:many_never_pass",
        "search": SPACE,
        "adjacency": "add-remove",
        "claim": {"epsilon": 1.0},
        "samples": 6_000,
        "confidence": 0.9999,
    }
    result = run_audit(build_spec(settings))
    assert result.searched is not None
    pair = [0.25], [0.25, 1.0]
    given = replace(result.searched, unsettled=(pair,), unsettled_upper=1.25)
    shown = replace(result, searched=given)
    assert "ε may be up to 1.2" in render(shown)
    words = inputs_report.unsettled_command(shown)
    assert words is not None
    assert "--d1 '[0.25]' --d2 '[0.25, 1.0]' --epsilon 1.0" in words
    assert words in render(shown)
    none = replace(result, searched=replace(given, unsettled=(), unsettled_upper=0.0))
    assert inputs_report.unsettled_command(none) is None


def test_a_result_file_gives_the_search_back(found: AuditResult) -> None:
    (again,) = read_document(document([entry(found)], 1)).results
    assert again.searched is not None
    assert found.searched is not None
    assert again.searched.leaders == found.searched.leaders
    d1, d2 = again.searched.found[-1]
    assert [*map(repr, d1), *map(repr, d2)] == [
        repr(value) for one in found.searched.found[-1] for value in one
    ]
    assert render(again) == render(found)


def test_python_reproduces_it(found: AuditResult) -> None:
    written = inputs_report.snippet(found)
    assert written is not None
    scope: dict[str, Any] = {"total": lambda rows, size, rng: sum(rows) + rng.laplace(size=size)}
    exec(written, scope)
    assert scope["result"].verdict is dpaudit.Verdict.VIOLATION


def test_the_command_line_reproduces_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With values that a shell, JSON and YAML all take for something else."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.py").write_text(
        "import numpy as np\n\n\n"
        "def odd(rows, size, rng, weight):\n"
        "    return len(rows) * weight['a'] + rng.laplace(size=size)\n"
    )
    result = _run(
        *("search", "odd.py:odd", "--space", "list of text", "--adjacency", "add-remove"),
        *("--epsilon", "1", "--samples", "2000", "--param", 'weight={"a": 3}', "--json", "r.json"),
    )
    assert result.exit_code == 1, result.output
    (audit,) = read_document((tmp_path / "r.json").read_text(encoding="utf-8")).results
    assert audit.searched is not None
    odd = replace(audit.searched, found=(([NASTY, math.nan], [NASTY]),) * len(audit.by_pair))
    written = inputs_report.command(replace(audit, searched=odd))
    assert written is not None
    program, *words = shlex.split(written)
    assert program == "dpaudit"
    again = _run(*words)
    assert again.exit_code == 1, again.output
    assert "VIOLATION  odd" in again.stdout


def _run(*words: str) -> Result:
    return CliRunner().invoke(cli, words, prog_name="dpaudit")
