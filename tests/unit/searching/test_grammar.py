"""Spaces as users write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpaudit.errors import TargetError
from dpaudit.searching.spaces import EXAMPLES, parse_space
from dpaudit.searching.spaces.labels import Categories, Texts, UserNames
from dpaudit.searching.spaces.number_spaces import Booleans, Integers, Numbers
from dpaudit.searching.spaces.record_spaces import Lists, OrMissing, Records
from tests.raising import code, refusal

LINES = [
    *EXAMPLES.values(),
    "number in [-inf, 1e-05]",
    "integer in [-inf, 5]",
    "list of 1 to 30 number or missing",
    'category [a, "1", "true", "a b,c", "é☃", ""]',
    "category [1, 2.5]",
    "vector of 3 integer in [0, 9]",
    "list of 0 to 4 vector of 3 boolean",
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
        ("integer in [-3, inf]", Integers(-3)),
        ("list of number", Lists(Numbers())),
        ("list of 5 text", Lists(Texts(), 5, 5)),
        ("vector of 5 text", Lists(Texts(), 5, 5)),
        ("list of text or missing", Lists(OrMissing(Texts()))),
        ("category [New York, 'a, b']", Categories(("New York", "a, b"))),
        ("table {a: user, 'b c': boolean}", Lists(Records({"a": UserNames(), "b c": Booleans()}))),
        ({"table": {"a": "integer in [0, 9]"}, "rows": 3}, "table of 3 {a: integer in [0, 9]}"),
        ({"table": {"a": "integer or missing"}}, "table {a: integer or missing}"),
        ({"table": {"a": "text"}, "rows": [0, 5]}, "table of 0 to 5 {a: text}"),
    ],
)  # fmt: skip
def test_what_a_line_and_a_mapping_mean(written: Any, space: Any) -> None:
    assert parse_space(written) == (parse_space(space) if isinstance(space, str) else space)


REFUSED: list[Any] = [
    *("number in [1, 0]", "number in [nan, 1]", "number in [inf, inf]", "number in [a, 1]"),
    *("integer in [3, 1]", "integer in [0, 1.5]", "number [0, 1]", "category []"),
    *("category [a, a]", "category [a, 1]", "category [a, null]", "category [nan]"),
    *("category [a b", "list of 5 to 2 text", "list", "list of", "list of 0 to 100000 text"),
    *("lst of number", "list of nmber", "vector of number", "table", "table {}"),
    *("table {a: text, a: text}", "table {a text}", "table {a: text", "text text"),
    *("number or mising", "'text", "", "(" * 500, 3, None, {}, {"tabel": {}}, {"table": ["a"]}),
    *({"table": {"a": {"integer": [0, 9]}}}, {"table": {"a": "text"}, "row": [1, 2]}),
    *({"table": {"a": "text"}, "rows": one} for one in ("5", [1, 2.5], -1)),
]


def test_what_is_not_understood_is_refused() -> None:
    assert {code(parse_space, written) for written in REFUSED} == {"space-invalid"}
    assert "Did you mean 'list'?" in str(refusal(parse_space, "lst of number"))


def test_a_generator_is_named_by_its_import_path(tmp_path: Path) -> None:
    (tmp_path / "inputs.py").write_text("def generate(rng):\n    return [1]\n\nnumber = 3\n")
    space = parse_space("import:inputs.py:generate", tmp_path)
    assert parse_space(space.words()) == space
    with pytest.raises(TargetError, match="Did you mean 'generate'"):
        parse_space("import:inputs.py:genrate", tmp_path)
    assert code(parse_space, "import:inputs.py:number", tmp_path) == "space-invalid"


def test_a_mapping_names_a_generator_in_a_folder_with_a_space(tmp_path: Path) -> None:
    folder = tmp_path / "my inputs"
    folder.mkdir()
    (folder / "inputs.py").write_text("def generate(rng):\n    return 1\n")
    space = parse_space({"table": {"a": "import:inputs.py:generate"}, "rows": 3}, folder)
    assert space.usual() == [{"a": 1}] * 3
