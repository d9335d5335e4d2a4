from __future__ import annotations

from typing import Any

import pytest

from dpaudit.inputs.adjacency import Adjacency, Users, parse_adjacency
from tests.raising import code


@pytest.mark.parametrize(
    ("value", "adjacency"),
    [
        (None, None),
        ("add-remove", Adjacency("add-remove")),
        ("l1:2", Adjacency("l1", 2.0)),
        ({"linf": 0.5}, Adjacency("linf", 0.5)),
        ("coordinate:0.5", Adjacency("coordinate", 0.5)),
        ("hamming:2", Adjacency("hamming", 2.0)),
        ("user:id", Adjacency("user", users=Users("id"))),
        ("user: id, group=city, groups=2", Adjacency("user", users=Users("id", 2, None, "city"))),
        ({"user": "id", "per_group": 3}, Adjacency("user", users=Users("id", per_group=3))),
        ("import:my.module:relation", Adjacency("import", path="my.module:relation")),
    ],
)
def test_parse_adjacency(value: Any, adjacency: Adjacency | None) -> None:
    assert parse_adjacency(value) == adjacency


REFUSED: list[Any] = [
    *("replaces", "l1", "l1:x", "l1:0", "l1:inf", "replace:2", "coordinate", "hamming:1.5"),
    *("hamming:0", "hammings:1", "user", "user:id,groups=2", "user:id,per_group=many"),
    *("user:id,per_group=0", "user:id,grops=2", "import", 3, {"l1": True}, {"l1": 1, "l2": 1}),
    {"user": "id", "groups": True, "group": "city"},
]


def test_what_is_no_relation_is_refused() -> None:
    codes = {code(parse_adjacency, value) for value in REFUSED}
    assert codes == {"adjacency-invalid"}


@pytest.mark.parametrize(
    "written", ["hamming:2", "user:id,group=city,groups=2,per_group=1", "import:my.module:relation"]
)
def test_a_relation_is_read_back_from_its_words(written: str) -> None:
    relation = parse_adjacency(written)
    assert relation is not None
    assert relation.describe() == written
