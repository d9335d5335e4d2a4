"""`dpaudit report`: recheck, then show what the run showed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.auditing.recheck import recheck
from dpaudit.cli.report import _UNSEEN
from dpaudit.reports.json import document, entry
from dpaudit.reports.text import render, render_row
from tests.cli.made_results import ERROR, PASS, VIOLATION
from tests.forging import forged
from tests.result_files import from_json, to_json


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "results.json"
    path.write_text(to_json([VIOLATION, PASS, ERROR]), "utf-8")
    return path


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def rechecked(install_recheck: Any) -> list[Any]:
    """Agree with everything; return the list that the results are put into."""
    seen: list[Any] = []

    def recheck(result: Any) -> list[str]:
        seen.append(result)
        return []

    install_recheck(recheck)
    return seen


def test_it_shows_what_the_run_showed(dpaudit: Any, rechecked: Any, file: Path) -> None:
    result = dpaudit("report", file)
    assert result.exit_code == 0
    assert rechecked == [VIOLATION, PASS, ERROR]
    for one in (VIOLATION, ERROR):
        assert render(one) in result.stdout
    assert render_row(PASS, 13) in result.stdout
    assert render(PASS, verbose=1) in dpaudit("report", file, "-v").stdout
    assert "Rechecked: wealth, " in words(result.stdout)
    assert _UNSEEN in words(result.stdout)


@pytest.mark.parametrize("flags", [(), ("--rerun",)])
def test_a_run_that_did_not_end_is_not_green(
    dpaudit: Any, rechecked: Any, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    file = tmp_path / "partial.json"
    file.write_text(document([entry(ERROR)], 2), "utf-8")
    result = dpaudit("report", file, *flags)
    assert result.exit_code == 3
    assert f"error: {file}: 1 of 2 audits: " in result.stderr
    assert from_json(file.read_text("utf-8")) == [ERROR]


@pytest.mark.parametrize("planned", [0, True])
def test_fewer_planned_than_there_are_is_damage(
    dpaudit: Any, rechecked: Any, tmp_path: Path, planned: Any
) -> None:
    file = tmp_path / "partial.json"
    written = json.loads(document([entry(ERROR)], 2))
    file.write_text(forged({**written, "planned": planned}))
    result = dpaudit("report", file)
    assert result.exit_code == 2
    assert f"planned={planned!r}" in result.stderr


def test_a_group_has_its_claim_and_that_of_one_record(
    dpaudit: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.py").write_text("def laplace(x, rng): return x + rng.laplace()\n")
    for place, name in enumerate(("d.npy", "e.npy")):
        np.save(name, np.random.default_rng(place).laplace(size=1_000))
    run = ("run", "m.py:laplace", "--d1", "0", "--d2", "2", "--samples", "1000")
    for asked in (("bound", "d.npy", "e.npy"), (*run, "--repeat", "3"), run):
        ran = dpaudit(*asked, "--epsilon", "1", "--group", "2", "--json", "r.json")
        reported = dpaudit("report", "r.json")
        assert reported.exit_code == 0
        for result in (ran, reported):
            assert "1-DP for one record, 2-DP for 2" in words(result.stdout)
    document = json.loads((tmp_path / "r.json").read_text("utf-8"))
    document["audits"][0]["grouped"]["size"] = 3
    (changed,) = from_json(forged(document))
    assert any("all records" in one for one in recheck(changed))


@pytest.mark.parametrize(("to", "files"), [("json:out.json", 3), ("markdown", 1)])
def test_of_numbers_that_disagree_no_report_is_written(
    dpaudit: Any,
    install_recheck: Any,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    to: str,
    files: int,
) -> None:
    monkeypatch.chdir(file.parent)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file.parent / "summary.md"))
    install_recheck(lambda result: ["p_value is 0.5, recomputed 0.6"] * (result == PASS))
    result = dpaudit("report", file, "--report", to)
    assert result.exit_code == 3
    assert {one.name for one in file.parent.iterdir()} == {file.name}
    assert "###" not in result.stdout
    assert result.stderr.splitlines()[-1].startswith("error: --report: nothing ")
    install_recheck(lambda result: [])
    assert dpaudit("report", file, "--report", to).exit_code == 0
    assert len(list(file.parent.iterdir())) == files


def test_a_number_that_does_not_follow_exits_3(dpaudit: Any, rechecked: Any, file: Path) -> None:
    document = json.loads(file.read_text("utf-8"))
    document["audits"][0]["epsilon_lower"] = 5.0
    file.write_text(forged(document))
    result = dpaudit("report", file)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.code == "results-contradictory"
    assert "1.21349" in result.stderr
    assert result.stderr.startswith(f"error: {file}: ")


def test_files_that_are_not_ours_exit_2(refused: Any, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    texts = {
        "": "file-empty",
        "[]": "not-results",
        '{"version": 1, "audits": [': "results-damaged",
        '{"version": 99, "audits": []}': "results-version",
        forged({"version": 1, "audits": [{}]}): "results-damaged",
        to_json([]): "results-damaged",
    }
    for text, code in texts.items():
        path.write_text(text)
        assert refused("report", path)[0] == code, text
    path.write_bytes(b"\xff\xfe")
    assert refused("report", path)[0] == "file-malformed"


def test_beliefs_that_cannot_be_rechecked_are_damage_not_a_bug(
    dpaudit: Any, install_recheck: Any, file: Path
) -> None:
    def recheck(result: Any) -> list[str]:
        raise KeyError("posteriors")

    install_recheck(recheck)
    result = dpaudit("report", file)
    assert (result.exit_code, result.code) == (2, "results-damaged")
    assert "KeyError: 'posteriors'" in result.stderr
    assert "Traceback" in dpaudit("report", file, "--debug").stderr


def test_an_audit_that_was_changed_or_taken_out_exits_3(
    dpaudit: Any, rechecked: Any, file: Path
) -> None:
    document = json.loads(file.read_text("utf-8"))
    document["audits"][1]["seconds"] += 1
    file.write_text(json.dumps(document))
    result = dpaudit("report", file)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.code == "results-contradictory"
    del document["audits"][1]
    file.write_text(json.dumps(document))
    result = dpaudit("report", file)
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.code == "results-contradictory"
    del document["count"]
    file.write_text(json.dumps(document))
    assert dpaudit("report", file).code == "results-contradictory"


RUN = ("mechanisms.laplace:laplace", "--d1", "0", "--d2", "1", "--epsilon", "1")


def test_a_name_that_the_request_has_too_is_rechecked(
    dpaudit: Any, kept_run: str, tmp_path: Path
) -> None:
    document = json.loads(kept_run)
    document["audits"][0]["name"] = "another"
    path = tmp_path / "changed.json"
    path.write_text(forged(document), "utf-8")
    assert dpaudit("report", path).exit_code == 3
    del document["audits"][0]["request"]["settings"]["name"]
    path.write_text(forged(document), "utf-8")
    assert dpaudit("report", path).exit_code == 3


@pytest.fixture
def kept_run(dpaudit: Any, tmp_path: Path) -> str:
    """Return the result file of a group whose relation cannot be checked, which is a warning."""
    mechanism, path = tmp_path / "mine.py", tmp_path / "results.json"
    mechanism.write_text(
        "def count(x, rng):\n    return x + rng.laplace()\n\n\n"
        "def related(d1, d2):\n    return True\n"
    )
    relation = ("--adjacency", f"import:{mechanism}:related", "--group", "2")
    run = (f"{mechanism}:count", *RUN[1:], *relation, "--samples", "1000", "--seed", "3")
    assert dpaudit("run", *run, "--json", path).exit_code == 0
    assert dpaudit("report", path, "--rerun").exit_code == 0
    return path.read_text("utf-8")


def test_records_that_are_not_of_one_kind_are_damaged(refused: Any, file: Path) -> None:
    text = file.read_text()
    changes: list[tuple[dict[str, Any], str]] = [
        ({"ending": {"kind": "exact", "certificates": [{}]}}, "audits[0].ending.certificates[0]"),
        ({"ending": {"kind": "guessed"}}, "audits[0].ending.kind"),
        ({"ending": {"kind": "sampled", "certificates": []}}, "certificates"),
        ({"claim": {"definition": {}}}, "definition"),
    ]
    for changed, named in changes:
        document = json.loads(text)
        document["audits"][0].update(changed)
        file.write_text(forged(document))
        code, line = refused("report", str(file))
        assert code == "results-damaged"
        assert named in line
