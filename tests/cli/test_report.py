"""`dpaudit report`: recheck, then show what the run showed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpaudit.errors import UsageError
from dpaudit.reports.json import to_json
from dpaudit.reports.text import render
from tests.cli.made_results import ERROR, PASS, VIOLATION


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "results.json"
    path.write_text(to_json([VIOLATION, PASS, ERROR]), "utf-8")
    return path


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
    for one in rechecked:
        assert render(one) in result.stdout
    assert "Rechecked: wealth, bounds and p-values follow" in result.stdout


def test_quiet_and_verbose(dpaudit: Any, rechecked: Any, file: Path) -> None:
    assert len(dpaudit("report", file, "-q").stdout.splitlines()) == 3
    assert "found by" in dpaudit("report", file, "-v").stdout


def test_a_disagreement_exits_3(dpaudit: Any, install_recheck: Any, file: Path) -> None:
    install_recheck(lambda result: ["p_value is 0.5, recomputed 0.6"] * (result == PASS))
    result = dpaudit("report", file)
    assert result.exit_code == 3
    assert f"error: {file}: laplace: p_value is 0.5, recomputed 0.6" in result.stderr
    assert "Rechecked" not in result.stdout


def test_a_number_that_does_not_follow_exits_3(dpaudit: Any, rechecked: Any, file: Path) -> None:
    document = json.loads(file.read_text("utf-8"))
    document["audits"][0]["epsilon_lower"] = 5.0
    file.write_text(json.dumps(document))
    result = dpaudit("report", file)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "epsilon_lower is 5.0, but its certificates give 1.21349" in result.stderr
    assert result.stderr.startswith(f"error: {file}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a JSON document"),
        ("{", "not a JSON document"),
        ("[]", "not a result of dpaudit run --json"),
        ('{"version": 2, "audits": []}', "written by a newer dpaudit"),
        ('{"version": 1, "audits": [{}]}', "audits[0]"),
    ],
)
def test_files_that_are_not_ours_exit_2(
    dpaudit: Any, tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    result = dpaudit("report", path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_missing_file_and_the_nearest_one(dpaudit: Any, tmp_path: Path) -> None:
    (tmp_path / "result.json").touch()
    result = dpaudit("report", tmp_path / "results.json")
    assert result.exit_code == 2
    assert "results.json'. Did you mean 'result.json'?" in result.stderr


def test_unreadable_files_exit_2(dpaudit: Any, tmp_path: Path) -> None:
    assert "there is no file" in dpaudit("report", tmp_path / "missing.json").stderr
    assert dpaudit("report", tmp_path).exit_code == 2
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    result = dpaudit("report", tmp_path / "binary.json")
    assert result.exit_code == 2
    assert "cannot be read" in result.stderr


def test_beliefs_that_cannot_be_rechecked_are_damage_not_a_bug(
    dpaudit: Any, install_recheck: Any, file: Path
) -> None:
    def recheck(result: Any) -> list[str]:
        raise KeyError("posteriors")

    install_recheck(recheck)
    result = dpaudit("report", file)
    assert result.exit_code == 2
    assert "cannot be rechecked, so the file is damaged: KeyError: 'posteriors'" in result.stderr
    assert "Traceback" in dpaudit("report", file, "--debug").stderr


def test_errors_of_the_recheck_itself_pass_through(
    dpaudit: Any, install_recheck: Any, file: Path
) -> None:
    def recheck(result: Any) -> list[str]:
        raise UsageError("rounds[0] has no stakes")

    install_recheck(recheck)
    assert dpaudit("report", file).stderr == "error: rounds[0] has no stakes\n"


def test_a_result_of_one_audit_has_no_summary(dpaudit: Any, rechecked: Any, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(to_json([replace(PASS, name="only")]), "utf-8")
    assert "1 audit" not in dpaudit("report", path).stdout
