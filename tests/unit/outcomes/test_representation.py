"""How equal outputs are represented: types, signs of zero, orders of keys, digits."""

from __future__ import annotations

import collections
import datetime
import json
import os
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.auditing.journal import from_json, to_json
from dpaudit.outcomes import Column, Outcomes, Raised, concatenate, from_raw, timed
from dpaudit.outcomes.representation import SIGN
from dpaudit.outcomes.set_order import as_in_a_set
from dpaudit.processes.exchange import parsed
from dpaudit.processes.worker import encode

NOON = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)
LATER = NOON.astimezone(datetime.timezone(datetime.timedelta(hours=2)))
# Two outputs that are equal, the column that differs, and its two entries.
VARYING: dict[str, tuple[Any, Any, str, tuple[str, str]]] = {
    "zeros": (0.0, -0.0, f"{SIGN}output", ("0.0", "-0.0")),
    "int and float": (1, 1.0, "type of output", ("int", "float")),
    "NumPy's floats": (
        np.float64(0.5),
        np.float32(0.5),
        "type of output",
        ("numpy.float64", "numpy.float32"),
    ),
    "texts": ("a", np.str_("a"), "type of output", ("str", "numpy.str_")),
    "list and tuple": ([1.0], (1.0,), "type of output", ("list", "tuple")),
    "list and array": (
        [1.0],
        np.array([1.0]),
        "type of output",
        ("list", "array of float64"),
    ),
    "sets": ({1.0}, frozenset({1.0}), "type of output", ("set", "frozenset")),
    "dicts": (
        {"a": 1.0},
        collections.OrderedDict(a=1.0),
        "type of output",
        ("dict", "OrderedDict"),
    ),
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
    "lists of several lengths": [[1, 2], [3], []],
    "arrays": [np.zeros(2), np.ones(3)],
    "dicts with several keys": [{"a": 1, "b": 2}, {"a": 3, "c": 4}, {}],
    "series": [pd.Series([1, 2]), pd.Series([3, 4])],
}


def entries(column: Column) -> tuple[str, ...]:
    return tuple(column.word(row) for row in range(len(column.numbers)))


def names(outcomes: Outcomes) -> list[str]:
    return [one.name for one in outcomes.representations]


@pytest.mark.parametrize("name", VARYING)
def test_equal_outputs_differ_in_a_column_and_in_their_keys(name: str) -> None:
    one, other, column, expected = VARYING[name]
    whole = from_raw([one, other])
    assert whole.plain().keys()[0] == whole.plain().keys()[1]
    assert whole.keys()[0] != whole.keys()[1]
    has_words = name not in ("offsets", "complex")
    assert (whole.word(0) != whole.word(1)) == has_words
    assert names(whole) == [column]
    assert entries(whole.column(column)) == expected


@pytest.mark.parametrize("name", VARYING)
def test_tables_are_put_together_whatever_varies_in_them(name: str) -> None:
    one, other, column, expected = VARYING[name]
    whole = from_raw([one, other, one])
    parts = [from_raw([one]), from_raw([other, one])]
    for joined in (
        concatenate(parts),
        concatenate([from_json(to_json(part), Outcomes) for part in parts]),
        from_json(to_json(concatenate(parts)), Outcomes),
        concatenate([timed(part, np.ones(part.size, dtype=np.int64)) for part in parts]),
        concatenate([*parts, from_raw([None])]).take(slice(3)),
        concatenate([from_raw([other]), *parts]).take(np.array([1, 2, 3])).trimmed(),
    ):
        assert joined.keys().tolist() == whole.keys().tolist()
        assert names(joined) == [column]
        assert entries(joined.column(column)) == (*expected, expected[0])
        assert joined.plain().keys().tolist() == whole.plain().keys().tolist()


@pytest.mark.parametrize("name", VARYING)
def test_representations_survive_the_exchange_with_another_process(name: str) -> None:
    one, other, column, expected = VARYING[name]
    sent = [parsed(json.dumps(encode(value)).encode()) for value in (one, other)]
    received = from_raw(sent)
    assert names(received) == [column]
    assert entries(received.column(column)) == expected
    assert received.keys().tolist() == from_raw([one, other]).keys().tolist()


@pytest.mark.parametrize("name", AS_EVER)
def test_nothing_is_added_where_nothing_varies(name: str) -> None:
    raw = AS_EVER[name]
    whole = from_raw(raw)
    for outcomes in (whole, concatenate([from_raw([one]) for one in raw])):
        assert names(outcomes) == []
        assert not any(one.name.startswith(("type of", "sign of")) for one in outcomes.columns)
        assert outcomes.words(range(len(raw))) == whole.words(range(len(raw)))
        assert outcomes.keys().tolist() == whole.keys().tolist()


def test_a_sign_of_zero_is_kept_in_a_batch() -> None:
    whole = from_raw(np.array([[0.0, 1.0], [-0.0, 1.0], [-0.0, 0.0]]))
    assert names(whole) == [f"{SIGN}output[0]"]
    assert len(set(whole.keys().tolist())) == 3
    # and seen by who asks for all but these columns
    beside = whole.keys_beside(frozenset({"output[0]", "output[1]"}))
    assert (beside[0] != beside[1], beside[1] == beside[2]) == (True, True)


def in_new_process(code: str, seed: int | str, *flags: str) -> str:
    found = subprocess.run(
        [sys.executable, *flags, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.strip()


_ORDERS = """
from dpaudit.outcomes import from_raw
built = [tuple(set(order)) for order in (("a", "b"), ("b", "a"))]
given = [{key: 1.0 for key in order} for order in built]
print(len(from_raw(given).representations), len(set(built)))
print(len(from_raw([{"a": 1.0, "b": 1.0}, {"b": 1.0, "a": 1.0}]).representations))
"""


# With 24, the order of the set of both texts depends on which of them comes first.
@pytest.mark.parametrize(("seed", "orders"), [(1, 1), (24, 2)])
def test_all_orders_of_a_set_count_as_one_with_any_hash_seed(seed: int, orders: int) -> None:
    of_sets, built, literal = map(int, in_new_process(_ORDERS, seed).split())
    assert (of_sets, built) == (0, orders)
    assert literal == (built == 1)


_LARGE = """
import random
from dpaudit.outcomes.set_order import as_in_a_set
rng = random.Random(1)
words = ["".join(rng.choices("abcdef", k=5)) for _ in range(400)]
found = []
for _ in range(300):
    keys = rng.sample(words, rng.randint(2, 12))
    for order in (keys, keys[::-1], sorted(keys)):
        own = set(order)
        found += [as_in_a_set(tuple(one)) for one in (own, set(own), frozenset(own))]
        if len(keys) > 2:  # more slots than the elements need
            others = set(range(1_000, 1_000 + 2 * len(keys)))
            found.append(as_in_a_set(tuple((own | others) - others)))
print(found.count(False))
"""


def test_the_order_of_a_set_of_many_keys_is_known() -> None:
    assert in_new_process(_LARGE, 1) == "0"


def test_orders_that_no_set_has_are_named() -> None:
    # The hashes of integers do not depend on the process.
    keys = tuple(range(6))
    assert (as_in_a_set(keys), as_in_a_set(keys[::-1])) == (True, False)
    orders = [dict.fromkeys(keys, 1.0), dict.fromkeys(keys[::-1], 1.0)]
    whole = from_raw(orders)
    assert names(whole) == ["order of keys of output"]
    assert whole.keys()[0] == whole.keys()[1]  # equal in every process


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
        ("random", "random", (), "None 0 0 0 0 0 1"),
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
