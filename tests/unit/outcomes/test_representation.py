"""How equal outputs are represented: types, signs of zero, orders of keys, digits."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from dpaudit.auditing.journal import from_json, to_json
from dpaudit.outcomes import Column, Outcomes, Raised, concatenate, from_raw, timed
from dpaudit.outcomes.representation import SIGN
from dpaudit.outcomes.set_order import as_in_a_set
from dpaudit.processes.child_script import encode
from dpaudit.processes.exchange import parsed

NOON = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)
LATER = NOON.astimezone(datetime.timezone(datetime.timedelta(hours=2)))
# Two outputs that are equal, the column that differs, and its two entries.
VARYING: dict[str, tuple[Any, Any, str, tuple[str, str]]] = {
    "zeros": (0.0, -0.0, f"{SIGN}output", ("0.0", "-0.0")),
    "int and float": (1, 1.0, "type of output", ("int", "float")),
    "texts": ("a", np.str_("a"), "type of output", ("str", "numpy.str_")),
    "list and array": ([1.0], np.array([1.0]), "type of output", ("list", "array of float64")),
    "sets": ({1.0}, frozenset({1.0}), "type of output", ("set", "frozenset")),
    "inside": ({"a": [1.0, 2]}, {"a": [1.0, 2.0]}, 'type of output["a"][1]', ("int", "float")),
    "digits": (Decimal("1.0"), Decimal("1.00"), "exponent of output", ("-1", "-2")),
    "offsets": (NOON, LATER, "UTC offset of output", ("0:00:00", "2:00:00")),
    "complex": (
        complex(0.0, 1.0),
        complex(-0.0, 1.0),
        f"{SIGN}real part of output",
        ("0.0", "-0.0"),
    ),
}
# Outputs that differ otherwise, and are all represented in the one way that their values have.
AS_EVER: dict[str, list[Any]] = {
    "floats": [0.5, 0.0, 1.0],
    "only -0.0": [-0.0, 1.0],
    "numbers and others": [1, None, "a", Raised("ValueError", "")],
    "arrays": [np.zeros(2), np.ones(3)],
    "dicts with several keys": [{"a": 1, "b": 2}, {"a": 3, "c": 4}, {}],
}


def entries(column: Column) -> tuple[str, ...]:
    return tuple(column.word(row) for row in range(len(column.numbers)))


def names(outcomes: Outcomes) -> list[str]:
    return [column.name for column in outcomes.representations]


@pytest.mark.parametrize("name", VARYING)
def test_equal_outputs_differ_in_a_column_and_in_their_keys(name: str) -> None:
    first, second, column, expected = VARYING[name]
    table = from_raw([first, second])
    assert table.plain().keys()[0] == table.plain().keys()[1]
    assert table.keys()[0] != table.keys()[1]
    assert names(table) == [column]
    assert entries(table.column(column)) == expected


@pytest.mark.parametrize("name", VARYING)
def test_tables_are_put_together_whatever_varies_in_them(name: str) -> None:
    first, second, column, expected = VARYING[name]
    table = from_raw([first, second, first])
    parts = [from_raw([first]), from_raw([second, first])]
    for joined in (
        concatenate(parts),
        concatenate([from_json(to_json(part), Outcomes) for part in parts]),
        from_json(to_json(concatenate(parts)), Outcomes),
        concatenate([timed(part, np.ones(part.size, dtype=np.int64)) for part in parts]),
        concatenate([*parts, from_raw([None])]).take(slice(3)),
        concatenate([from_raw([second]), *parts]).take(np.array([1, 2, 3])).trimmed(),
    ):
        assert joined.keys().tolist() == table.keys().tolist()
        assert names(joined) == [column]
        assert entries(joined.column(column)) == (*expected, expected[0])
        assert joined.plain().keys().tolist() == table.plain().keys().tolist()


@pytest.mark.parametrize("name", VARYING)
def test_representations_survive_the_exchange_with_another_process(name: str) -> None:
    first, second, column, expected = VARYING[name]
    sent = [parsed(json.dumps(encode(value)).encode()) for value in (first, second)]
    received = from_raw(sent)
    assert names(received) == [column]
    assert entries(received.column(column)) == expected
    assert received.keys().tolist() == from_raw([first, second]).keys().tolist()


@pytest.mark.parametrize("name", AS_EVER)
def test_nothing_is_added_where_nothing_varies(name: str) -> None:
    raw = AS_EVER[name]
    table = from_raw(raw)
    joined = concatenate([from_raw([value]) for value in raw])
    assert names(table) == names(joined) == []
    assert joined.words(range(len(raw))) == table.words(range(len(raw)))
    assert joined.keys().tolist() == table.keys().tolist()


def test_a_sign_of_zero_is_kept_in_a_batch() -> None:
    table = from_raw(np.array([[0.0, 1.0], [-0.0, 1.0], [-0.0, 0.0]]))
    assert names(table) == [f"{SIGN}output[0]"]
    assert len(set(table.keys().tolist())) == 3
    # and seen by who asks for all but these columns
    beside = table.keys_beside(frozenset({"output[0]", "output[1]"}))
    assert (beside[0] != beside[1], beside[1] == beside[2]) == (True, True)


def in_new_process(code: str, seed: int | str, *flags: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    words = [sys.executable, *flags, "-c", code]
    return subprocess.check_output(words, env=environment, text=True).strip()


_ORDERS = """
from dpaudit.outcomes import from_raw
sets = [tuple(set(keys)) for keys in ("ab", "ba")]
for raw in (sets, ["ab", "ba"]):
    print(len(from_raw([dict.fromkeys(keys, 1.0) for keys in raw]).representations))
"""


# With 24, the order of the set of both texts depends on which of them comes first.
@pytest.mark.parametrize(("seed", "expected"), [(4, ["0", "1"]), (24, ["0", "0"])])
def test_all_orders_of_a_set_of_two_count_as_one(seed: int, expected: list[str]) -> None:
    assert in_new_process(_ORDERS, seed).split() == expected


_LARGE = """
import random
from dpaudit.outcomes.set_order import as_in_a_set
rng = random.Random(1)
words = ["".join(rng.choices("abcdef", k=5)) for _ in range(400)]
known = []
for _ in range(300):
    keys = rng.sample(words, rng.randint(2, 12))
    for order in (keys, keys[::-1], sorted(keys)):
        elements = set(order)
        known += map(as_in_a_set, map(tuple, (elements, set(elements), frozenset(elements))))
        if len(keys) > 2:  # more slots than the elements need
            others = set(range(1_000, 1_000 + 2 * len(keys)))
            known.append(as_in_a_set(tuple((elements | others) - others)))
print(known.count(False))
"""


def test_the_order_of_a_set_of_many_keys_is_known() -> None:
    assert in_new_process(_LARGE, 1) == "0"


def test_orders_that_no_set_has_are_named() -> None:
    # The hashes of integers do not depend on the process.
    keys = tuple(range(6))
    assert (as_in_a_set(keys), as_in_a_set(keys[::-1])) == (True, False)
    table = from_raw([dict.fromkeys(keys, 1.0), dict.fromkeys(keys[::-1], 1.0)])
    assert names(table) == ["order of keys of output"]
    assert table.keys()[0] == table.keys()[1]  # equal in every process


_KNOWN = """
import datetime, enum, itertools, os
from dpaudit.outcomes.set_order import as_in_a_set, hash_seed
os.environ["PYTHONHASHSEED"] = "%s"
Colour = enum.Enum("Colour", "RED GREEN BLUE")
days = [datetime.date(2020, 1, day) for day in (1, 2, 3)]
def counts(*keys):
    return not all(map(as_in_a_set, itertools.permutations(keys)))
several = [[*"abcde"], list(Colour), days, [(1, "a"), (2, "b"), (3, "c")], [None, 1, 2], [1, 2, 3]]
print(hash_seed(), *(int(counts(*keys)) for keys in several))
"""


@pytest.mark.parametrize(
    ("seed", "later", "flags", "expected"),
    [
        ("0", "0", (), "0 1 1 1 1 0 1"),
        ("random", "0", (), "None 0 0 0 0 0 1"),
        ("5", "5", ("-E",), "None 0 0 0 0 0 1"),
    ],
)
def test_orders_count_where_all_processes_hash_alike(
    seed: str, later: str, flags: tuple[str, ...], expected: str
) -> None:
    assert in_new_process(_KNOWN % later, seed, *flags) == expected


_TEXTS_OF_OTHERS = """
from dpaudit.outcomes import from_raw
texts = [dict.fromkeys(keys, 1.0) for keys in ("abcde", "edcba", "badce", "ecabd")]
numbers = [dict.fromkeys(keys, 1.0) for keys in ((1, 2, 3), (3, 2, 1))]
for raw in (texts, numbers):
    print(*(len(from_raw(raw, text_orders=known).representations) for known in (True, False)))
"""


def test_orders_of_texts_that_another_process_has_hashed_do_not_count() -> None:
    assert in_new_process(_TEXTS_OF_OTHERS, 0).split() == ["1", "0", "1", "1"]
