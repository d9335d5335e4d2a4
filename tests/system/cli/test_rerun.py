"""`dpaudit report --rerun`: results that are computed again from new draws."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpaudit import PureDP, audit
from dpaudit.auditing import engine
from dpaudit.certificates.result import AuditResult
from dpaudit.composed import replace
from tests.cli.test_report import RUN, words
from tests.cli.test_report import kept_run as kept_run
from tests.forging import forged
from tests.result_files import from_json, to_json


def test_a_rerun_gives_the_same_draws(dpaudit: Any, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    assert dpaudit("run", *RUN, "--samples", "5000", "--seed", "3", "--json", path).exit_code == 0
    result = dpaudit("report", "--rerun", path)
    assert result.exit_code == 0
    assert " Repeated with " in words(result.stdout)


def test_a_rerun_shows_a_record_of_other_draws(dpaudit: Any, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    dpaudit("run", *RUN, "--samples", "5000", "--seed", "3", "--json", path)
    (honest,) = from_json(path.read_text("utf-8"))
    path.write_text(to_json([replace(honest, seed=4)]), "utf-8")
    assert dpaudit("report", path).exit_code == 0
    result = dpaudit("report", "--rerun", path)
    assert result.exit_code == 3
    assert "blocks: recorded" in result.stderr


Change = Callable[[dict[str, Any]], object]


def changed_certificate(**fields: Any) -> Change:
    return lambda audit: audit["certificates"][0].update(fields)


CHANGES: list[tuple[Change, str]] = [
    (changed_certificate(pair="0 and 1"), "pair"),
    (changed_certificate(adjacency="replace"), "adjacency"),
    (changed_certificate(warnings=[]), "warnings"),
    (changed_certificate(notes=["checked twice"]), "notes"),
    (lambda audit: audit.update(warnings=["approved"]), "warnings"),
    (lambda audit: audit.update(name="another"), "name"),
    (lambda audit: audit.update(expect="pass"), "expect"),
    (lambda audit: audit.update(grouped=None), "grouped"),
    (lambda audit: audit["versions"].update(numpy="1.0"), "versions"),
]


def test_a_rerun_compares_all_that_a_run_repeats(
    dpaudit: Any, kept_run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (saved,) = json.loads(kept_run)["audits"]
    assert saved["certificates"][0]["warnings"]
    drawn, run_audit = list[AuditResult](), engine.run_audit

    def run_once(*given: Any) -> AuditResult:
        drawn.extend([] if drawn else [run_audit(*given)])
        return drawn[0]

    monkeypatch.setattr(engine, "run_audit", run_once)
    path = tmp_path / "changed.json"
    for change, field in CHANGES:
        document = json.loads(kept_run)
        change(document["audits"][0])
        path.write_text(forged(document), "utf-8")
        result = dpaudit("report", "--rerun", path)
        assert result.exit_code == 3
        assert f"{field}: " in result.stderr


def test_batches_with_folders_and_lists_are_run_again(dpaudit: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def count(rows, rng):\n    assert isinstance(rows, list)\n"
        "    return len(rows) + rng.laplace()\n"
    )
    (tmp_path / "audits.yaml").write_text(
        "version: 1\naudits:\n  - {name: a, mechanism: mine.py:count, d1: [1, 2], d2: [1],\n"
        "     claim: {epsilon: 1}, samples: 2000, seed: '${s}', matrix: {s: [1, 2]}}\n"
    )
    path = tmp_path / "results.json"
    ran = dpaudit("run", tmp_path / "audits.yaml", "--json", path)
    assert ran.exit_code == 0, ran.stderr
    assert dpaudit("report", "--rerun", path).exit_code == 0


def test_draws_that_the_clock_planned_are_not_run_again(dpaudit: Any, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    dpaudit("run", *RUN, "--time", "0.2s", "--json", path)
    result = dpaudit("report", "--rerun", path)
    assert (result.exit_code, result.code) == (2, "rerun-impossible")
    assert "the clock" in result.stderr


def test_results_made_from_python_are_not_run_again(dpaudit: Any, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    made = audit(lambda x, rng: x + rng.laplace(), 0, 1, PureDP(1.0), samples=200)
    path.write_text(to_json([made]), "utf-8")
    result = dpaudit("report", "--rerun", path)
    assert (result.exit_code, result.code) == (2, "rerun-impossible")
    assert "the request" in result.stderr


def test_a_rerun_from_another_folder_finds_the_same(
    dpaudit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file in which an exception is raised is named relative to the folder."""
    mechanism, kept = tmp_path / "mine.py", tmp_path / "results.json"
    mechanism.write_text(
        "def lap(d, rng):\n"
        "    x = d + rng.laplace()\n"
        "    if x > 3:\n"
        "        raise ValueError('too large')\n"
        "    return x\n"
    )
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    flags = ("--d1", "0", "--d2", "1", "--epsilon", "0.5", "--samples", "5000", "--json", str(kept))
    dpaudit("run", f"{mechanism}:lap", *flags)
    monkeypatch.chdir(tmp_path)
    assert dpaudit("report", str(kept), "--rerun").exit_code == 0
