"""`dpaudit report --rerun`: results that are computed again from new draws."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from dpaudit import PureDP, audit
from dpaudit.auditing.safeguards.redrawing import redrawing_remarks
from dpaudit.certificates.certificate import Redrawn
from dpaudit.cli.report import _differences
from dpaudit.errors import DpauditError
from dpaudit.wording import ONE_PROCESS
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
    document = json.loads(path.read_text("utf-8"))
    document["audits"][0]["seed"] = 4
    document["audits"][0]["command"] = document["audits"][0]["command"].replace("3", "4")
    path.write_text(forged(document), "utf-8")
    assert dpaudit("report", path).exit_code == 0
    result = dpaudit("report", "--rerun", path)
    assert result.exit_code == 3
    assert "ending.certificates[0]" in result.stderr


@pytest.fixture
def refuted_run(dpaudit: Any, tmp_path: Path, traces: None) -> str:
    """Return the result file of a refuted claim, with a trace, a warning and a group."""
    mechanism, path = tmp_path / "mine.py", tmp_path / "results.json"
    mechanism.write_text(
        "def count(x, rng):\n    return x + rng.laplace(scale=0.5)\n\n\n"
        "def related(d1, d2):\n    return True\n"
    )
    relation = ("--adjacency", f"import:{mechanism}:related", "--group", "2")
    claim = ("--d1", "0", "--d2", "1", "--epsilon", "0.5", *relation)
    draws = ("--samples", "1000", "--seed", "3", "--json", path)
    assert dpaudit("run", f"{mechanism}:count", *claim, *draws).exit_code == 1
    assert dpaudit("report", path, "--rerun").exit_code == 0
    return path.read_text("utf-8")


def test_a_rerun_may_have_other_times_processes_and_fewer_draws_of_new_processes(
    dpaudit: Any, refuted_run: str, tmp_path: Path
) -> None:
    redrawn, document = Redrawn(8, 8 * 198, ""), json.loads(refuted_run)
    (audit,) = document["audits"]
    (certificate,) = audit["ending"]["certificates"]
    audit.update(seconds=9.0, workers=7, notes=[f"{ONE_PROCESS}: no memory"])
    certificate["redrawn"] = asdict(redrawn)
    certificate["notes"] += redrawing_remarks(redrawn)[1]
    assert redrawing_remarks(redrawn)[1]
    path = tmp_path / "slower.json"
    path.write_text(forged(document), "utf-8")
    assert dpaudit("report", path, "--rerun").exit_code == 0


@pytest.mark.parametrize("command", [None, "echo approved", "dpaudit run 'mine.py"])
def test_a_command_that_makes_no_audit_cannot_be_repeated(
    dpaudit: Any, kept_run: str, tmp_path: Path, command: str | None
) -> None:
    document = json.loads(kept_run)
    document["audits"][0]["command"] = command
    path = tmp_path / "changed.json"
    path.write_text(forged(document), "utf-8")
    result = dpaudit("report", "--rerun", path)
    assert (result.exit_code, result.code) == (2, "rerun-impossible")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value that has no parts."""
    if not isinstance(value, list | dict) or not value:
        yield path
        return
    for key, part in enumerate(value) if isinstance(value, list) else value.items():
        yield from leaves(part, (*path, key))


def others(value: Any) -> list[Any]:
    """Return values that may stand in place of one."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1]
    if isinstance(value, str):
        return [f"{value}.", "pass", "d1", "d2"]
    redrawn = {"processes": 8, "draws": 80, "note": ""}
    return ["x", 1, 0.5, ["x"], {"x": 1}, {"x": "1"}, {"x": [1, 1]}, True, redrawn]


def test_no_value_can_be_edited_but_times_and_numbers_of_processes(refuted_run: str) -> None:
    (honest,) = from_json(refuted_run)
    paths: dict[Any, Any] = {}
    for path in leaves(json.loads(refuted_run)["audits"][0]):
        paths.setdefault(tuple(part for part in path if isinstance(part, str)), path)
    passing = set()
    for names, path in paths.items():
        value = reduce(getitem, path, json.loads(refuted_run)["audits"][0])
        for other in others(value):
            document = json.loads(refuted_run)
            reduce(getitem, path[:-1], document["audits"][0])[path[-1]] = other
            try:
                (edited,) = from_json(forged(document))
            except DpauditError:
                continue
            if other != value and not list(_differences(edited, honest)):
                passing.add(names)
    assert len(paths) > 100
    free = {("seconds",), ("workers",), ("resumed",), ("pace",)}
    assert passing == {*free, ("ending", "certificates", "redrawn")}


def test_keys_of_inputs_with_names_of_fields_are_compared_too(
    dpaudit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def size(x, rng):\n    return len(x) + rng.laplace()\n")
    inputs = ("--d1", '{"notes": "3 s", "file": "a"}', "--d2", '{"notes": "3 s"}')
    draws = ("--epsilon", "1", "--samples", "1000", "--json", "r.json")
    assert dpaudit("run", "mine.py:size", *inputs, *draws).exit_code == 0
    assert dpaudit("report", "--rerun", "r.json").exit_code == 0
    for key, value in (("notes", "4 s"), ("file", str(tmp_path / "a"))):
        document = json.loads(Path("r.json").read_text("utf-8"))
        document["audits"][0]["request"]["settings"]["d1"][key] = value
        Path("changed.json").write_text(forged(document), "utf-8")
        result = dpaudit("report", "--rerun", "changed.json")
        assert result.exit_code == 3
        assert f"request.settings.d1.{key}: " in result.stderr


def test_audits_of_several_files_with_one_name_are_repeated(
    dpaudit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, traces: None
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def lap(d, rng):\n    return d + rng.laplace(scale=0.5)\n")
    for file in ("a.yaml", "b.yaml"):
        Path(file).write_text(
            "version: 1\ndefaults: {mechanism: 'mine.py:lap', d1: 0, d2: 1, samples: 2000}\n"
            "audits: [{name: x, claim: {epsilon: 1}}, {name: y, claim: {epsilon: 3}}]\n"
        )
    assert dpaudit("run", "a.yaml", "b.yaml", "--json", "r.json").exit_code == 1
    assert dpaudit("report", "r.json", "--rerun").exit_code == 0
    document = json.loads(Path("r.json").read_text("utf-8"))
    assert document["audits"][2]["trace"] is not None
    document["audits"][2]["trace"] = None
    Path("r.json").write_text(forged(document), "utf-8")
    result = dpaudit("report", "r.json", "--rerun")
    assert result.exit_code == 3
    assert "b.yaml: x: trace: " in result.stderr


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
