from __future__ import annotations

from typing import Any

import pytest

from dpaudit.errors import DatasetError
from dpaudit.inputs.adjacency import Adjacency, Users, parse_adjacency


@pytest.mark.parametrize(
    ("value", "adjacency"),
    [
        (None, None),
        ("add-remove", Adjacency("add-remove")),
        ("replace", Adjacency("replace")),
        ("l1:2", Adjacency("l1", 2.0)),
        ({"linf": 0.5}, Adjacency("linf", 0.5)),
        (Adjacency("l2"), Adjacency("l2")),
        ("coordinate:0.5", Adjacency("coordinate", 0.5)),
        ("hamming:2", Adjacency("hamming", 2.0)),
        ({"hamming": 2}, Adjacency("hamming", 2.0)),
        ("user:id", Adjacency("user", users=Users("id"))),
        ("user: id, group=city, groups=2", Adjacency("user", users=Users("id", 2, None, "city"))),
        ({"user": "id", "per_group": 3}, Adjacency("user", users=Users("id", per_group=3))),
        ("import:my.module:relation", Adjacency("import", path="my.module:relation")),
    ],
)
def test_parse_adjacency(value: Any, adjacency: Adjacency | None) -> None:
    assert parse_adjacency(value) == adjacency


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("replaces", "Did you mean 'replace'?"),
        ("l1", "write l1:1"),
        ("l1:x", "must be a number"),
        ("l1:0", "must be finite and above 0"),
        ("l1:inf", "must be finite and above 0"),
        ({"l1": True}, "must be a number"),
        ("replace:2", "takes no distance"),
        ({"l1": 1, "l2": 1}, "is not known"),
        (3, "is not known"),
        ("coordinate", "write coordinate:1"),
        ("hamming:1.5", "must be a number of records"),
        ("hamming:0", "must be finite and above 0"),
        ("hammings:1", "Did you mean 'hamming'?"),
        ("user", "write user:COLUMN"),
        ("user:id,groups=2", "add group: COLUMN"),
        ("user:id,per_group=many", "per_group='many' must be an integer above 0"),
        ("user:id,per_group=0", "must be an integer above 0"),
        ("user:id,grops=2", "Did you mean 'groups'?"),
        ({"user": "id", "groups": True, "group": "city"}, "must be an integer above 0"),
        ("import", "write import:my.module:relation"),
    ],
)
def test_bad_adjacency(value: Any, words: str) -> None:
    with pytest.raises(DatasetError, match="adjacency") as caught:
        parse_adjacency(value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "written",
    [
        "coordinate:0.5",
        "hamming:2",
        "user:id",
        "user:id,group=city,groups=2,per_group=1",
        "import:my.module:relation",
    ],
)
def test_a_relation_is_read_back_from_its_words(written: str) -> None:
    relation = parse_adjacency(written)
    assert relation is not None
    assert relation.describe() == written
