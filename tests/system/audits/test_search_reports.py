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
from dpaudit.certificates.result import Leader
from dpaudit.cli.commands import cli
from dpaudit.config.building import build_spec
from dpaudit.import_path import resolve
from dpaudit.reports import searched
from dpaudit.reports.html.page import view_of
from dpaudit.reports.json import document, entry, read_document
from dpaudit.reports.layout import Row
from dpaudit.reports.text import render, render_line
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


def test_of_long_inputs_an_estimate_says_how_they_differ(found: AuditResult) -> None:
    assert found.searched is not None
    for one in found.searched.leaders:
        is_long = max(len(one.d1), len(one.d2)) > 16
        assert is_long == ("lacks number" in one.apart)
    assert any(one.apart for one in found.searched.leaders)
    leader = replace(found.searched.leaders[0], apart="d1 has 9 records; d2 lacks number 3: 0.5")
    shown = replace(found, searched=replace(found.searched, leaders=(leader,)))
    assert f"{leader.estimate:.2g}  {leader.apart}" in render(shown)
    verbose = " ".join(render(shown, verbose=1).split())
    assert f"d2 = {leader.d2} ({leader.why}" in verbose
    assert f"; {leader.apart})" in verbose


def test_rows_of_estimates_differ_and_say_which_pair_is_audited(found: AuditResult) -> None:
    assert found.searched is not None
    cut, lists = "[1.0, 1.0, 1.0, 1.0, ", "[0.2, 0.4, 0.6, 0.8, 0.1, "
    leader = replace(found.searched.leaders[0], audited=False, inside=True, draws=1_600)
    alike = tuple(
        replace(leader, d1=f"{cut}{n}.0, 9.0]", d2=f"{cut}{n}.5, 9.0]", apart="") for n in range(3)
    )
    apart = tuple(
        replace(leader, d1=f"{lists}{n}.0]", d2=f"{lists}0.9]", apart="6 records; number 6 is 0.0")
        for n in range(3)
    )
    cut_in_results = tuple(
        replace(one, d1="[1.0, …", d2="[0.0, …", why="ab"[:n]) for n, one in enumerate(alike)
    )
    for some in (alike, apart, cut_in_results):
        rows = _estimates(found, some)
        assert len(set(rows)) == len(rows) == 3
    same = tuple(
        replace(alike[0], audited=n == 0, draws=1_600 // (1 + n), estimate=0.5 + n)
        for n in range(3)
    )
    rows = _estimates(found, same)
    assert ["(audited)" in one for one in rows] == [True, False, False]
    assert ["from 533 draws" in one for one in rows] == [False, False, True]


def _estimates(found: AuditResult, leaders: tuple[Leader, ...]) -> list[str]:
    assert found.searched is not None
    given = replace(found, searched=replace(found.searched, leaders=leaders))
    items = [one.text for one in searched.rows(given, 0) if isinstance(one, Row)]
    return [one.partition("  ")[2] for one in items if one.startswith("ε ≈")]


def test_an_estimate_of_a_short_pair_is_one_line(found: AuditResult) -> None:
    assert found.searched is not None
    long = "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]"
    leader = replace(found.searched.leaders[0], d1=long, d2=long[::-1], apart="", inside=True)
    for draws in (10, 1_000):
        first = replace(leader, draws=1_000, audited=True)
        shown = replace(found.searched, leaders=(first, replace(leader, d1=long[1:], draws=draws)))
        items = searched.rows(replace(found, searched=shown), 0)
        lines = [one.lines() for one in items if isinstance(one, Row) and one.text[0] == "ε"]
        assert [len(one) for one in lines] == [1, 1]


def test_every_pair_outside_is_a_row(found: AuditResult) -> None:
    assert found.searched is not None
    leaders = [replace(found.searched.leaders[0], d2=f"[{each}]") for each in ("nan", "7.0")]
    given = replace(found.searched, beyond=leaders[0], more_beyond=(leaders[1],))
    noted = replace(found, searched=given)
    text = " ".join(render(noted).split())
    assert all(f"d2 = {one.d2}" in text for one in leaders)
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
    words = searched.unsettled_command(shown)
    assert words is not None
    assert "--d1 '[0.25]' --d2 '[0.25, 1.0]' --epsilon 1.0" in words
    assert words in render(shown)
    none = replace(result, searched=replace(given, unsettled=(), unsettled_upper=0.0))
    assert searched.unsettled_command(none) is None
    in_bytes = replace(given, unsettled=(([b"'bytes:"], ["bytes:00", "'NaN"]),))
    noted = replace(result, searched=in_bytes)
    assert searched.unsettled_command(noted) is None
    (again,) = read_document(document([entry(noted)], 1)).results
    assert again.searched is not None
    ((d1, d2),) = again.searched.unsettled
    assert (list(d1), list(d2)) == ([b"'bytes:"], ["bytes:00", "'NaN"])


def test_an_input_outside_the_space_is_named_as_such(found: AuditResult) -> None:
    assert found.searched is not None
    assert found.searched.outside[-1]
    assert "outside     the space " in render(found)


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
    written = searched.snippet(found)
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
    written = searched.command(replace(audit, searched=odd))
    assert written is not None
    program, *words = shlex.split(written)
    assert program == "dpaudit"
    again = _run(*words)
    assert again.exit_code == 1, again.output
    assert "VIOLATION  odd" in again.stdout


def _run(*words: str) -> Result:
    return CliRunner().invoke(cli, words, prog_name="dpaudit")


def test_a_page_shows_what_reproduces_it(found: AuditResult) -> None:
    assert searched.snippet(found) in view_of(found).witness


def test_no_witness_without_a_violation(found: AuditResult) -> None:
    given = replace(found, searched=None)
    assert searched.command(given) is None
    assert searched.snippet(given) is None
    assert searched.rows(given, 1) == []


def test_damaged_settings_make_no_command(found: AuditResult) -> None:
    damages: tuple[Any, ...] = (7, None, {"claim": 3}, [])
    for settings in damages:
        damaged = replace(found, request={"settings": settings, "folder": None})
        assert searched.command(damaged) is None
        assert searched.snippet(damaged) is not None


def test_the_function_of_the_package_is_no_module() -> None:
    resolve("dpaudit.searching.search:NeighbourSearch")
    assert callable(dpaudit.search)


def test_a_leak_outside_that_does_not_count_is_a_row(found: AuditResult) -> None:
    assert found.searched is not None
    (*_, last) = (one for one in found.searched.leaders if not one.inside)
    noted = replace(found, searched=replace(found.searched, beyond=last))
    text = " ".join(render(noted).split())
    assert f"outside d1 = {last.d1}, d2 = {last.d2} ({last.why}) seems to leak" in text
    (again,) = read_document(document([entry(noted)], 1)).results
    assert again.searched is not None
    assert again.searched.beyond == last
    assert any(name == "outside" for name, _ in view_of(noted).rows)


def test_the_headline_says_that_only_inputs_outside_the_space_leak(found: AuditResult) -> None:
    assert "total: refuted at 99 % outside the space: " in render_line(found)
