"""`dpaudit bisect`: requests that are refused before anything is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

PAIR = ("--d1", "0", "--d2", "1", "--epsilon", "1")
MINE = ("--package", "mine")
WHERE = (*MINE, "--versions", "1.0,1.1", "--found-in", "1.0")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((*PAIR,), "option-missing"),
        ((*WHERE,), "option-missing"),
        ((*PAIR, *WHERE, "--report", "pdf"), "option-invalid"),
        ((*PAIR, *MINE, "--versions", "1.0", "--found-in", "newest"), "option-invalid"),
        ((*PAIR, *MINE, "--versions", "1.x", "--found-in", "1.0"), "option-invalid"),
    ],
)
def test_requests_are_refused(refused: Any, words: tuple[str, ...], expected: str) -> None:
    code, _ = refused("bisect", "math:sqrt", *words)
    assert code == expected


def test_no_report_replaces_the_mechanism(
    refused: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.py").write_text("def f(x):\n    return x\n")
    monkeypatch.chdir(tmp_path)
    assert refused("bisect", "m.py:f", *PAIR, *WHERE, "--json", "m.py")[0] == "cannot-write"


def test_a_file_that_does_not_exist_is_an_error_before_environments_are_made(refused: Any) -> None:
    code, line = refused("bisect", "no_such.py:f", *PAIR, *WHERE)
    assert code == "module-not-found"
    assert "'no_such.py'" in line
