"""Spaces as users write them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dpaudit.errors import DatasetError, TargetError
from dpaudit.searching.grammar import parse_space
from dpaudit.searching.spaces.categories import Categories
from dpaudit.searching.spaces.lists import Lists
from dpaudit.searching.spaces.missing import OrMissing
from dpaudit.searching.spaces.numbers import Booleans, Integers, Numbers
from dpaudit.searching.spaces.records import Records, Users
from dpaudit.searching.spaces.registry import EXAMPLES
from dpaudit.searching.spaces.texts import Texts

LINES = [
    *EXAMPLES.values(),
    "number",
    "integer",
    "number in [-inf, 1e-05]",
    "number in [0, inf]",
    "integer in [-inf, 5]",
    f"integer in [0, {10**400}]",
    "list of 1 to 30 number or missing",
    "(list of text) or missing",
    'category [a, "1", "true", "a b,c", "é☃", ""]',
    "category [1, 2.5]",
    "category [false, true]",
    "vector of 3 integer in [0, 9]",
    "list of 0 to 4 vector of 3 boolean",
    "list of record {a: text} or missing",
    'table of 1 to 30 {"my age": integer in [0, 120] or missing, who: user}',
    "table {id: user, city: category [a, b]} or missing",
]


@pytest.mark.parametrize("line", LINES)
def test_a_space_is_read_back_from_its_words(line: str) -> None:
    space = parse_space(line)
    assert parse_space(space.words()) == space
    assert parse_space(f" {line.replace(' ', '  ')} ").words() == space.words() or '"' in line


@pytest.mark.parametrize(
    ("written", "space"),
    [
        ("number in [0, 1]", Numbers(0, 1)),
        ("number in [0,1]", Numbers(0, 1)),
        ("integer in [-3, inf]", Integers(-3, None)),
        ("list of number", Lists(Numbers())),
        ("list of 5 text", Lists(Texts(), 5, 5)),
        ("vector of 5 text", Lists(Texts(), 5, 5)),
        ("list of text or missing", Lists(OrMissing(Texts()))),
        ("category [New York, 'a, b']", Categories(("New York", "a, b"))),
        ("table {a: user, 'b c': boolean}", Lists(Records({"a": Users(), "b c": Booleans()}))),
        ({"table": {"a": {"integer": [0, 9]}}, "rows": 3}, "table of 3 {a: integer in [0, 9]}"),
        ({"table": {"a": "integer"}, "missing": True}, "table {a: integer} or missing"),
        ({"list": "number", "length": [0, 5]}, "list of 0 to 5 number"),
        ({"list": {"list": "boolean"}}, "list of list of boolean"),
        ({"vector": {"number": None}, "length": 5}, "vector of 5 number"),
        ({"category": ["a", "b"], "missing": True}, "category [a, b] or missing"),
        ({"integer": [0, float("inf")]}, "integer in [0, inf]"),
        ({"record": {"a": "text"}}, "record {a: text}"),
    ],
)  # fmt: skip
def test_what_a_line_and_a_mapping_mean(written: Any, space: Any) -> None:
    assert parse_space(written) == (parse_space(space) if isinstance(space, str) else space)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("number in [1, 0]", "lower bound is above its upper one; write number in [0, 1]"),
        ("integer in [3, 1]", "write integer in [1, 3]"),
        ("number in [nan, 1]", "a bound of number is NaN"),
        ("number in [inf, inf]", "no finite value"),
        ("number in [a, 1]", "'a' after 'number in [' is not understood; expected a number"),
        ("integer in [0, 1.5]", "'1.5' after 'integer in [0,' is not understood"),
        ("integer in [nan, 1]", "NaN|must be integers"),
        ("number [0, 1]", "expected 'in', as in 'number in [0, 1]'"),
        ("category []", r"category [] has no values; write category [a, b]"),
        ("category [a, a]", "names a value twice"),
        ("category [a, 1]", "mixes numbers and texts"),
        ("category [a, null]", "or missing"),
        ("category [nan]", "is no category"),
        ("category [a b", "it ends after 'category [a b'"),
        ("list of 5 to 2 text", "no list has 5 to 2 records; write list of 2 to 5"),
        ("list", "'of'"),
        ("list of", "is missing"),
        ("list of 0 to 100000 text", "too long to search; write at most 1000"),
        ("lst of number", "Did you mean 'list'?"),
        ("list of nmber", "Did you mean 'number'?"),
        ("vector of number", "expected a length"),
        ("table", "columns, as in"),
        ("table {}", "no columns"),
        ("table {a: text, a: text}", "twice"),
        ("table {a text}", "expected ':'"),
        ("table {a: text", "is missing"),
        ("text text", "expected the end"),
        ("number or mising", "Did you mean 'missing'?"),
        ("'text", "a quote is not closed"),
        ("", "it is empty"),
        ("(" * 500, "nested too deeply"),
        (3, "is no space"),
        (None, "is no space"),
        ({}, "names no space"),
        ({"tabel": {}}, "Did you mean 'table'?"),
        ({"table": {"a": "text"}, "row": [1, 2]}, "Did you mean 'rows'?"),
        ({"table": ["a"]}, "columns are names"),
        ({"list": "text", "length": "5"}, "bounds are two numbers"),
        ({"list": "text", "length": [1, 2.5]}, "2.5 records is not possible"),
        ({"list": "text", "length": -1}, "-1 records is not possible"),
        ({"vector": "text"}, "a fixed length"),
        ({"number": [0]}, "bounds are two numbers"),
        ({"number": [0, 10**400]}, "larger than any float; write inf"),
        ({"number": ["a", 1]}, "a bound of number is 'a'"),
        ({"number": [False, True]}, "a bound of number is False"),
        ({"integer": [0, 1.5]}, "must be integers"),
        ({"category": "a"}, "categories are a list"),
        ({"category": [["a"]]}, "neither a text nor a number"),
        ({"list": "text", "missing": 1}, "neither true nor false"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_named(written: Any, message: str) -> None:
    with pytest.raises(DatasetError) as raised:
        parse_space(written)
    said = str(raised.value)
    assert said.startswith("space=")
    assert any(part in said for part in message.split("|")), said
    assert "\n" not in said


def test_a_generator_is_named_by_its_import_path(tmp_path: Path) -> None:
    (tmp_path / "inputs.py").write_text("def generate(rng):\n    return [1]\n\nnumber = 3\n")
    space = parse_space("import:inputs.py:generate", tmp_path)
    assert parse_space(space.words()) == space
    with pytest.raises(TargetError, match="Did you mean 'generate'"):
        parse_space("import:inputs.py:genrate", tmp_path)
    with pytest.raises(DatasetError, match=re.escape("is 3; name a function generate(rng)")):
        parse_space("import:inputs.py:number", tmp_path)
