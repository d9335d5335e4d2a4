"""What a report says of the inputs: their adjacency, and exceptions as evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

MECHANISMS = """
import random

def count(rows, rng):
    return len(rows) + rng.laplace()

def number(x, rng):
    return float(x) + rng.laplace()

def sometimes(x, rng):
    if rng.random() < (0.2 if x else 0.6):
        raise ValueError("budget\\nspent")
    return 0

def day(x, rng):
    return x + rng.laplace()

def law(x):
    return random.random() < 0.5

law.pmf = lambda x: {True: 0.5, False: 0.5}
"""
REPLACED = "note replacing one record "


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.py").write_text(MECHANISMS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(dpaudit: Any, *words: str, code: int = 0) -> str:
    result = dpaudit("run", *words, "--samples", "2000")
    assert result.exit_code == code, result.output
    return " ".join(result.stdout.split())


def pair(d1: str, d2: str, *more: str, epsilon: str = "1") -> tuple[str, ...]:
    return ("m.py:count", "--d1", d1, "--d2", d2, "--epsilon", epsilon, *more)


def test_the_adjacency_is_always_shown(dpaudit: Any, folder: Path) -> None:
    assert "adjacency not stated event" in shown(dpaudit, *pair("[1, 2]", "[1]"))
    stated = ("--adjacency", "add-remove", "--json", "r.json")
    assert "adjacency add-remove event" in shown(dpaudit, *pair("[1, 2]", "[1]", *stated))
    (audit,) = json.loads((folder / "r.json").read_text())["audits"]
    assert audit["ending"]["certificates"][0]["adjacency"] == "add-remove"
    assert "adjacency add-remove\n" in dpaudit("report", "r.json").stdout
    exact = ("m.py:law", "--d1", "0", "--d2", "1", "--epsilon", "1", "--exact")
    assert "adjacency not stated" in shown(dpaudit, *exact)


def test_a_replaced_record_is_pointed_out_and_only_then(dpaudit: Any, folder: Path) -> None:
    replaced = ("[1, 2]", "[1, 3]")
    text = shown(dpaudit, *pair(*replaced, "--json", "r.json"))
    assert REPLACED in text
    assert "adjacency replace" in text
    (audit,) = json.loads((folder / "r.json").read_text())["audits"]
    assert len(audit["ending"]["certificates"][0]["notes"]) == 1
    for more in (("--adjacency", "replace"), ("--group", "2")):
        assert "note" not in shown(dpaudit, *pair(*replaced, *more))
    for other in (("[1, 2]", "[1]"), ("[1, 2]", "[3, 4]")):
        assert "note" not in shown(dpaudit, *pair(*other))
    number = ("m.py:number", "--d1", "0", "--d2", "1", "--epsilon", "1")
    assert "note" not in shown(dpaudit, *number)


def test_several_records_more_are_a_warning(dpaudit: Any, folder: Path) -> None:
    several = ("[1, 2, 3, 4]", "[1]")
    text = shown(dpaudit, *pair(*several, "-q", "--json", "r.json", epsilon="3"))
    assert "d1 has 3 records more " in text
    (audit,) = json.loads((folder / "r.json").read_text())["audits"]
    (found,) = audit["ending"]["certificates"]
    assert (len(found["warnings"]), found["notes"]) == (1, [])
    assert "3 records more" in shown(dpaudit, *pair(*several, "--strict", epsilon="3"), code=1)
    for more in (("--group", "3"), ("--adjacency", "add-remove", "--group", "3")):
        shown(dpaudit, *pair(*several, "--strict", *more))


@pytest.mark.usefixtures("traces")
def test_the_first_exception_of_a_kind_is_shown(dpaudit: Any, folder: Path) -> None:
    words = ("m.py:sometimes", "--d1", "0", "--d2", "1", "--epsilon", "0.1", "--json", "r.json")
    text = shown(dpaudit, *words, code=1)
    assert "draws of d2 the first: budget spent (m.py:12) cause" in text
    assert "is meant" not in text
    (audit,) = json.loads((folder / "r.json").read_text())["audits"]
    said = {"ValueError": {"message": "budget\nspent", "where": "m.py:12"}}
    assert audit["ending"]["certificates"][0]["first_failures"] == said
    assert "the first: budget spent (m.py:12)" in dpaudit("report", "r.json").stdout


def test_the_types_of_a_file_are_checked_as_well(dpaudit: Any, folder: Path) -> None:
    audit = "mechanism: m.py:day, d1: null, d2: 1, claim: {epsilon: 1}"
    (folder / "a.yaml").write_text(
        f"version: 1\naudits:\n- {{name: a, {audit}}}\n"
        f"- {{name: b, {audit}, on_error: outcome, expect: violation}}\n"
        f"- {{name: c, {audit}, on_error: auto, expect: violation}}\n"
    )
    for name, code in (("=a", 3), ("=b", 0), ("=c", 3)):
        assert dpaudit("run", "a.yaml", "-k", name, "--samples", "1000").exit_code == code
