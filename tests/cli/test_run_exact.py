"""`--exact`, `--range` and `compose` on the command line, with real audits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

RESPONSE = [
    "run", "mechanisms.randomized_response:randomized_response", "--d1", "0", "--d2", "1",
]  # fmt: skip
PDP = ["run", "mechanisms.pdp:counterexample", "--d1", "0", "--d2", "1"]


@pytest.mark.parametrize(
    ("flags", "code", "verdict"),
    [
        (["--epsilon", "1"], 1, "VIOLATION"),
        (["--epsilon", "1.1"], 0, "NO VIOLATION FOUND"),
        (["--epsilon", "1", "--expect", "violation"], 0, "VIOLATION"),
    ],
)
def test_exit_codes(dpaudit: Any, flags: list[str], code: int, verdict: str) -> None:
    result = dpaudit(*RESPONSE, *flags, "--exact")
    assert result.exit_code == code
    assert result.stdout.startswith(f"{verdict}  randomized_response: exact: ")


def test_a_mechanism_without_a_pmf_is_one_line(dpaudit: Any) -> None:
    words = ["run", "mechanisms.laplace:laplace", "--d1", "0", "--d2", "1", "--epsilon", "1"]
    result = dpaudit(*words, "--exact")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "has no pmf" in result.stderr


def test_the_report_shows_it_again(dpaudit: Any, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    claim = ["--definition", "probabilistic", "--epsilon", "1", "--delta", "0.1"]
    words = [*PDP, *claim, "--post-process", "mechanisms.pdp:merge", "--exact"]
    first = dpaudit(*words, "--json", file)
    assert first.exit_code == 1
    again = dpaudit("report", file)
    assert again.exit_code == 0
    assert again.stdout.startswith(first.stdout.rstrip())
    law = json.loads(file.read_text())["audits"][0]["ending"]["certificates"][0]["law"]
    assert [row[0] for row in law] == ["4", "2", "3"]


def test_a_range_gives_an_interval(dpaudit: Any, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    words = [*RESPONSE, "--epsilon", "1.2", "--samples", "20_000", "--json", file]
    result = dpaudit(*words, "--range", "[0, 1]")
    assert result.exit_code == 0, result.output
    assert " is between 1.0" in result.stdout
    assert dpaudit("report", file).exit_code == 0
    interval = json.loads(file.read_text())["audits"][0]["ending"]["certificates"][0]["interval"]
    assert interval["lower"] < 1.0986 < interval["upper"]


def test_compositions_run_and_are_exact(dpaudit: Any, tmp_path: Path) -> None:
    path = tmp_path / "audits.yaml"
    entry = "mechanisms.randomized_response:randomized_response"
    path.write_text(
        "version: 1\n"
        f"defaults: {{d1: 0, d2: 1, compose: ['{entry}', '{entry}'], samples: 20_000}}\n"
        "audits:\n"
        "  - {name: together, claim: {epsilon: 2.19723}}\n"
        "  - {name: as one, claim: {epsilon: 1.1}, expect: violation}\n"
    )
    for extra in ([], ["--exact"]):
        result = dpaudit("run", str(path), "--quiet", *extra)
        assert result.exit_code == 0, result.output
        first, second, *_ = result.stdout.splitlines()
        assert first.startswith("NO VIOLATION FOUND  together  ε ")
        assert second.startswith("VIOLATION           as one    ε ")
