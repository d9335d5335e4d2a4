"""Texts that are not YAML: the line and column of the mistake, and the numbers of the remedy."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from dpaudit.inputs.yaml_errors import explain

AUDIT = "version: 1\naudits:\n  - name: a\n    mechanism: m:f\n    claim:\n      epsilon: 1\n"
# Text, place of the mistake (line:column), and numbers of the message: first the indentation of the
# line, then each right indentation with a line that has it, the nearest first.
INDENTED: list[tuple[str, str, list[int]]] = [
    (AUDIT + "     d1: 0\n", "7:6", [5, 4, 5, 6, 6]),
    (AUDIT + "   d1: 0\n", "7:4", [3, 4, 5, 0, 2]),
    (AUDIT + "  d1: 0\n", "7:3", [2, 0, 2, 4, 5]),
    (AUDIT + "        delta: 0\n", "7:9", [8, 6, 6]),
    (AUDIT + " - name: b\n", "7:2", [1, 2, 3]),
    (AUDIT + "   - name: b\n", "7:4", [3, 2, 3]),
    (AUDIT.replace("    mechanism", "      mechanism"), "4:7", [6, 4, 3]),
    (AUDIT + "    d1: 'a: b'\n  # key: value\n\n     d2: 1\n", "10:6", [5, 4, 7]),
    ("version: 1\n  audits: []\n", "2:3", [2, 0, 1]),
    ("a:\n- b: 1\n  c: 2\n d: 3\n", "4:2", [1, 0, 1, 2, 3]),
    ("  a: 1\nb: 2\n", "2:1", [0, 2, 1]),
    (AUDIT + "   d2: ${b}\n", "7:4", [3, 4, 5, 0, 2]),
    ("a: 1\n  b: ${c}\n", "2:3", [2, 0, 1]),
    ("a: |\n  text: x\n b: 2\n", "3:2", [1, 0, 1]),
    ("a:\n  - b: !!str >-  # c\n\n      d: x\n     c: 2\n", "5:6", [5, 4, 2]),
    ("- |2+\n   text: x\n  - d: 1\n- e: 1\n f: 2\n", "5:2", [1, 2, 4]),
    ("a: b |\nc:\n  d: 1\n e: 2\n", "4:2", [1, 0, 2, 2, 3]),
]  # fmt: skip
# Text, place, and a word of the message.
OTHERS = [
    (AUDIT + "\td1: 0\n", "7:1", "tab"),
    (AUDIT + "    d1: [1, 2\n    d2: 1\n", "8:7", "line 7"),
    (AUDIT + "    d1: {a: 1\n    d2: 1\n", "8:7", "{"),
    (AUDIT + "    d1: 'a\n    d2: 1\n", "7:9", "quote"),
    (AUDIT + "    d1: a: b\n", "7:10", "quotes"),
    (AUDIT + "    d1: 'a' b\n", "7:13", "quotes"),
    (AUDIT + "    d1: [1]]\n", "7:12", "quotes"),
    (AUDIT + "    d1: *\n", "7:9", '"*"'),
    (AUDIT + "    d1: *b\n", "7:9", '"*b"'),
    ("a: &x 1\nb: *y\n", "2:4", "&y"),
    ("a: &x &y 1\n", "1:7", "one anchor (&name)"),
    ("a: [&x !!str &y 1]\n", "1:14", "one anchor (&name)"),
    ("a: !!str !!int 1\n", "1:10", "one tag (!name)"),
    ("b: &x 1\na: &y *x\n", "2:7", "alias (*name)"),
    ("a: 'x' &y 1\n", "1:8", "quotes"),
    (AUDIT + "    d1: @b.csv\n", "7:9", '"@b.csv"'),
    (AUDIT + "    d1: - 1\n", "7:9", "dash"),
    (AUDIT + "    d1 0\n    d2: 1\n", "7:5", "key: value"),
    (AUDIT + "    d1: \x01\n", "7:9", "U+0001"),
    (AUDIT + "    d1:  |a\n", "7:11", "|"),
    (AUDIT + "    d1: [|a]\n", "7:10", '"|a"'),
    ("version: 1\naudits:\n  name: a\n  - d1: 0\n", "4:3", "dash"),
    ("- b\na: 1\n", "2:1", "dashes"),
    ("version\naudits: []\n", "2:1", "key: value"),
    ("a: {b: ${c}}\n", "1:8", '"${c}"'),
    ('a: [\n  "${b}", ${c},\n]\n', "2:11", '"${c}"'),
    ("a: {b: 1\nc: ${d}\n", "2:2", "line 1"),
]


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def loader(request: pytest.FixtureRequest) -> Any:
    return getattr(yaml, request.param)


def explained(text: str, loader: Any) -> tuple[str, str]:
    with pytest.raises(yaml.YAMLError) as error:
        yaml.compose(text, loader)
    found = explain(error.value, text)
    return f"{found.line}:{found.column}", found.why


def test_a_wrong_indentation_is_named_with_the_right_ones(loader: Any) -> None:
    found = [(text, *explained(text, loader)) for text, _, _ in INDENTED]
    numbers = [[int(number) for number in re.findall(r"\d+", why)] for _, _, why in found]
    assert [one[:2] for one in found] == [one[:2] for one in INDENTED]
    assert numbers == [one[2] for one in INDENTED]


def test_the_place_to_repair_is_named(loader: Any) -> None:
    found = [(text, *explained(text, loader)) for text, _, _ in OTHERS]
    assert [one[:2] for one in found] == [one[:2] for one in OTHERS]
    pairs = zip(found, OTHERS, strict=True)
    assert [why for (_, _, why), (_, _, word) in pairs if word not in why] == []


def test_no_message_has_words_of_the_parser(loader: Any) -> None:
    texts = [text for text, _, _ in (*INDENTED, *OTHERS)]
    words = ("block", "scalar", "flow", "token", "mapping", "expected", "context", "indicator")
    found = [explained(text, loader)[1] for text in texts]
    assert [why for why in found if any(word in why for word in words)] == []
