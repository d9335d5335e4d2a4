"""Spaces and relations of a user's own."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from dpaudit.errors import DatasetError
from dpaudit.searching import drawing, timeouts
from dpaudit.searching.proposals import Proposal, proposals
from tests.neighbouring import relation

SOURCE = """
import time

import hypothesis.strategies as st


def rows(rng):
    return [{"id": int(one), "x": float(one)} for one in rng.integers(0, 4, 5)]


def array(rng):
    return rng.normal(size=(3, 2))


def raises(rng):
    raise KeyError("boom")


def never(rng):
    while True:  # in a thread that nobody ends, so that it had better sleep
        time.sleep(60)


def nothing(rng):
    return object()


def mixed(rng):
    return [1, "a"]


def uneven(rng):
    return [{"a": 1}, {"b": 1}]


def wait(value):
    time.sleep(60)


lists = st.lists(st.integers(0, 3), max_size=4)
none = st.integers().filter(lambda one: False)
failing = st.integers().map(lambda one: 1 // 0)
endless = st.integers().map(wait)


def longer(d1, d2):
    return len(d1) > len(d2)


def one_more(d1, d2):
    return abs(len(d1) - len(d2)) == 1


def number(d1, d2):
    return 1


def broken(d1, d2):
    return d1.rows


def nobody(d1, d2):
    return False
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "own.py"
    path.write_text(SOURCE)
    return f"import:{path}"


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis takes a millisecond for each draw; some rounds are drawn all the same."""
    monkeypatch.setattr(drawing, "ROUND", 20)


def _some(space: str, adjacency: str, number: int = 60) -> list[Proposal]:
    return list(islice(proposals(relation(space, adjacency), seed=3), number))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace", "hamming:2", "user:id"])
def test_neighbours_are_made_of_what_a_generator_gives(file: str, adjacency: str) -> None:
    for one in _some(f"{file}:rows", adjacency):
        assert all(row.keys() == {"id", "x"} for row in [*one.d1, *one.d2])
        changed = abs(len(one.d1) - len(one.d2))
        assert changed > 0 if adjacency in ("add-remove", "user:id") else changed == 0


def test_arrays_become_lists(file: str) -> None:
    found = _some(f"{file}:array", "l1:1", 20)
    assert all(isinstance(one.d1[0], list) for one in found)


def test_strategies_of_hypothesis_are_spaces(file: str) -> None:
    found = _some(f"{file}:lists", "add-remove")
    assert found == _some(f"{file}:lists", "add-remove")
    assert all(set(one.d1 + one.d2) <= {0, 1, 2, 3} for one in found)
    assert len({len(one.d1) for one in found}) > 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("raises", r"raises \(seed 0\) failed: KeyError: 'boom'"),
        ("never", r"never \(seed 0\) did not end in 0.3 s"),
        ("nothing", r"nothing \(seed 0\) returned <object .*, which is no dataset; return a"),
        ("mixed", r"records are of several types \(number and text\); return records of one type"),
        ("uneven", r"rows have several columns: a and b"),
        ("none", r"none \(seed \d+\) gives no inputs"),
        ("failing", r"failing \(seed \d+\) failed: ZeroDivisionError"),
        ("endless", r"endless \(seed \d+\) did not end in 0.3 s"),
    ],
)
def test_a_generator_that_fails_is_named_with_its_seed(
    file: str, name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "did not end" in message:  # whatever else ends may take its time
        monkeypatch.setattr(timeouts, "SECONDS", 0.3)
    with pytest.raises(DatasetError, match=message):
        _some(f"{file}:{name}", "replace", 1)


def test_a_relation_of_ones_own_chooses_the_pairs(file: str) -> None:
    found = _some("list of number in [0, 1]", f"{file}:one_more")
    assert all(abs(len(one.d1) - len(one.d2)) == 1 for one in found)
    assert {one.origin for one in found} == {"edge", "lattice"} or len(found) == 60


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("longer", r"is not symmetric: relation\(d1, d2\) is \w+ and relation\(d2, d1\) \w+ for"),
        ("number", "returned 1, not a bool"),
        ("broken", "failed for d1 = .*AttributeError"),
        ("nobody", "none of the pairs that were tried are neighbours"),
    ],
)
def test_relations_that_are_none_are_refused(
    file: str, name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "nobody":  # draws in vain, one as the other, until there are too many
        monkeypatch.setattr("dpaudit.searching.proposals._VAIN", 50)
    with pytest.raises(DatasetError, match=message):
        _some("list of 0 to 2 boolean", f"{file}:{name}")
