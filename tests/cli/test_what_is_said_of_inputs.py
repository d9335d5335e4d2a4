"""What a report says of the inputs: their adjacency, and exceptions as evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpaudit.errors import DatasetError
from dpaudit.searching.spaces import parse_space
from dpaudit.searching.spaces.labels import Categories

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

def keyed(x, rng):
    return {"a": 1}[x] + rng.laplace()

def total(rows, rng):
    return sum(rows) + rng.laplace()

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


def test_the_advice_about_groups_can_be_taken(dpaudit: Any) -> None:
    more = ("--group", "2", "--adjacency", "add-remove")
    assert "adjacency add-remove" in shown(dpaudit, *pair("[1, 2]", "[1, 3]", *more))
    result = dpaudit("run", *pair("[1, 2]", "[1, 3]", "--adjacency", "add-remove"))
    assert (result.exit_code, result.code) == (2, "pair-not-neighbours")
    assert "--group 2 (claim: {group: 2})" in result.stderr
    result = dpaudit("run", *pair("[1, 2]", "[3, 4]", *more))
    assert (result.exit_code, result.code) == (2, "pair-not-neighbours")
    assert " at most 2 rows " in result.stderr


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


@pytest.mark.parametrize(
    ("inputs", "more"),
    [
        (("1", "null"), ()),
        (("1", "[2]"), ("--isolate",)),
        (("text", "1"), ("--delta", "0.5", "--stop", "never")),
    ],
)
def test_an_input_of_another_type_that_always_raises_is_an_error(
    dpaudit: Any, folder: Path, inputs: tuple[str, str], more: tuple[str, ...]
) -> None:
    d1, d2 = inputs
    words = ("m.py:day", "--d1", d1, "--d2", d2, "--epsilon", "1", *more, "--json", "r.json")
    text = shown(dpaudit, *words, code=3)
    arm = "d2" if d1 == "1" else "d1"
    assert f"{arm} always raises TypeError" in text
    assert "--on-error outcome" in text
    if not more:
        outcome = shown(dpaudit, *words, "--on-error", "outcome", code=1)
        assert f"warning {arm} always raises" in outcome
        (audit,) = json.loads((folder / "r.json").read_text())["audits"]
        assert set(audit["ending"]["certificates"][0]["failures"]) == {"TypeError"}


def test_an_exception_for_data_of_one_type_is_a_leak(dpaudit: Any) -> None:
    for function, inputs in (("keyed", ("a", "b")), ("total", ("[null, 1]", "[1]"))):
        words = (f"m.py:{function}", "--d1", inputs[0], "--d2", inputs[1], "--epsilon", "1")
        assert "always raises" in shown(dpaudit, *words, code=1)
    for d1, code in (("[a, b]", 3), ("[[1]]", 3), ("[true]", 0)):
        words = ("m.py:total", "--d1", d1, "--d2", "[1]", "--epsilon", "3")
        shown(dpaudit, *words, code=code)


def test_the_types_of_a_file_are_checked_as_well(dpaudit: Any, folder: Path) -> None:
    audit = "mechanism: m.py:day, d1: null, d2: 1, claim: {epsilon: 1}"
    (folder / "a.yaml").write_text(
        f"version: 1\naudits:\n- {{name: a, {audit}}}\n"
        f"- {{name: b, {audit}, on_error: outcome, expect: violation}}\n"
        f"- {{name: c, {audit}, on_error: auto, expect: violation}}\n"
    )
    for name, code in (("=a", 3), ("=b", 0), ("=c", 3)):
        assert dpaudit("run", "a.yaml", "-k", name, "--samples", "1000").exit_code == code


def test_the_record_that_always_raises_is_shown(dpaudit: Any, folder: Path) -> None:
    """Of a long input its beginning shows nothing."""
    (folder / "strict.py").write_text(
        "def total(rows, rng):\n"
        "    if max(rows) > 100:\n"
        "        raise ValueError('too large')\n"
        "    return sum(rows) + rng.laplace()\n"
    )
    long = list(range(60))
    words = ("--d1", json.dumps([*long, 512]), "--d2", json.dumps([*long, 7]))
    text = shown(dpaudit, "strict.py:total", *words, "--epsilon", "1", code=1)
    warning = text.partition("d1 always raises")[2]
    assert "number 61" in warning
    assert "512" in warning


@pytest.mark.parametrize("command", ["run", "trace", "plan", "init"])
@pytest.mark.parametrize(
    ("option", "text", "form"),
    [
        *(("--d1", "None", "null"), ("--d2", "[1 2]", "1 2 is text"), ("--d1", "nan", ".nan")),
        *(("--d2", "(1, 2)", "{tuple: [1, 2]}"), ("--d1", "1e999", "Infinity")),
        *(("--param", "scale=None", "null"), ("--init", "[nan]", ".nan")),
    ],
)
def test_what_became_text_is_refused_wherever_values_are_given(
    dpaudit: Any, folder: Path, command: str, option: str, text: str, form: str
) -> None:
    given = {"--d1": "0", "--d2": "1", "--epsilon": "1", option: text}
    words = [word for pair in given.items() for word in pair]
    result = dpaudit(command, "m.py:count", *words)
    assert result.exit_code == 2
    assert option in result.stderr
    assert form in result.stderr
    assert not list(folder.glob("*.yaml"))


def test_categories_are_read_as_yaml_reads_them() -> None:
    space = parse_space("category [True, FALSE]")
    assert isinstance(space, Categories)
    assert space.values == (True, False)
    for text in ("None", "~", "nan", "1e999", "(1, 2)"):
        with pytest.raises(DatasetError):
            parse_space(f"category [{text}, a]")


def test_a_category_larger_than_any_float_is_refused(dpaudit: Any) -> None:
    words = ("--adjacency", "replace", "--epsilon", "1")
    result = dpaudit("search", "m.py:count", "--space", "category [1e999, 1]", *words)
    assert result.exit_code == 2
    assert "1e999" in result.stderr


def test_inputs_of_two_types_are_said_in_the_report(dpaudit: Any, folder: Path) -> None:
    words = "d1 is text, 'hello', and d2 is a list of numbers, [1, 2]"
    asked = pair("hello", "[1, 2]")
    assert f"warning {words}" in shown(dpaudit, *asked, "--json", "r.json", code=1)
    (audit,) = json.loads((folder / "r.json").read_text())["audits"]
    (warning,) = audit["ending"]["certificates"][0]["warnings"]
    assert warning.startswith(words)
    for command in ("trace", "plan"):
        assert f"warning: {words}" in dpaudit(command, *asked).stderr
