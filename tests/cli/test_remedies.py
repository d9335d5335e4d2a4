"""Requests that are nearly right: keys in another place, values given twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

MECHANISM = """
def laplace(x, rng):
    return x + rng.laplace()
"""
ASKED = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", "2000")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.py").write_text(MECHANISM)
    (tmp_path / "people.csv").write_text("1\n2\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_number_of_draws_may_be_said_in_another_way_than_in_the_file(
    dpaudit: Any, folder: Path, asked: Any
) -> None:
    audit = "{mechanism: 'm.py:laplace', d1: 0, d2: 1, claim: {epsilon: 1}"
    for more, flags, samples, time in (
        ("samples: 5000", ("--time", "2s"), 1_000_000, 2.0),
        ("time: 1s", ("--samples", "5000"), 5000, None),
    ):
        (folder / "b.yaml").write_text(f"version: 1\naudits:\n  - {audit}, {more}}}\n")
        assert dpaudit("run", "b.yaml", *flags).exit_code == 0
        assert (asked[-1].sampling.samples, asked[-1].sampling.time) == (samples, time)
    (folder / "b.yaml").write_text(
        f"version: 1\ndefaults: {{samples: 5000}}\naudits:\n  - {audit}, time: 1s}}\n"
    )
    assert dpaudit("run", "b.yaml").exit_code == 0
    (folder / "b.yaml").write_text(f"version: 1\naudits:\n  - {audit}, time: 1s, samples: 5000}}\n")
    result = dpaudit("run", "b.yaml")
    assert result.exit_code == 2
    assert result.code == "options-conflict"
    assert result.stderr.startswith("error: b.yaml:3: ")


def test_a_text_that_is_also_a_file_can_still_be_meant(dpaudit: Any, asked: Any) -> None:
    words = ("m.py:laplace", "--d1", '"people.csv"', "--d2", "1", "--epsilon", "1")
    assert dpaudit("run", *words).exit_code == 0
    assert asked[0].pairs[0].d1 == "people.csv"
    more = ("--param", "where=people.csv")  # no dataset, and @ has no meaning there
    assert dpaudit("run", *words, *more).exit_code == 0
    assert asked[1].target.params == {"where": "people.csv"}


def test_a_flag_with_two_values(refused: Any, asked: Any) -> None:
    words = ("run", "m.py:laplace", *ASKED)
    for flags, named in (
        (("--epsilon", "2"), "as 1 and 2"),
        (("--d1", "3"), "as 0 and 3"),
        (("-k", "a", "-k", "b"), "as a and b"),
    ):
        assert (named in refused(*words, *flags)[1], asked) == (True, [])
    assert refused(*words, "--param", "a=1", "--param", "a=2")[0] == "options-conflict"


def test_keys_in_another_place(refused: Any, folder: Path) -> None:
    misplaced = {
        "epsilon: 1": "claim: {epsilon: 1}",
        "json: r.json": "--json",
        "claim: {epsilon: 1, confidence: 0.9}": "'confidence'",
    }
    for key, named in misplaced.items():
        for own, shared, line in ((f", {key}", "", 4), ("", f", {key}", 2)):
            (folder / "a.yaml").write_text(
                f"version: 1\ndefaults: {{d1: 0, d2: 1{shared}}}\n"
                f"audits:\n  - {{mechanism: 'm.py:laplace'{own}}}\n"
            )
            code, message = refused("run", "a.yaml")
            assert code == "key-misplaced"
            assert message.startswith(f"error: a.yaml:{line}: ")
            assert named in message


DUPLICATE = '{"rows": [1], "rows": [2]}'


def test_a_key_that_is_given_twice(refused: Any, folder: Path) -> None:
    (folder / "rows.json").write_text(DUPLICATE)
    (folder / "draws.jsonl").write_text('{"a": 1, "a": 2}\n')
    (folder / "result.json").write_text('{"version": 8, "version": 8, "audits": []}')
    start = ("run", "m.py:laplace", "--d2", "1", "--epsilon", "1", "--d1")
    for words, named in (
        ((*start, "@rows.json"), "'rows'"),
        ((*start, "{rows: 1, rows: 2}"), "'rows'"),
        (("bound", "draws.jsonl", "m.jsonl", "--epsilon", "1"), "the key 'a'"),
    ):
        code, line = refused(*words)
        assert code == "key-twice"
        assert named in line
    assert refused("report", "result.json")[0] == "results-damaged"
