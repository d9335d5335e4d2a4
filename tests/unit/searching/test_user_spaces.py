"""Spaces and relations from a user's own code."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import pytest

from dpaudit.searching import drawing, timeouts
from dpaudit.searching.proposals import Proposal, proposals
from tests.neighbouring import relation
from tests.raising import refusal

SOURCE = """
import time
import hypothesis.strategies as st

def rows(rng): return [{"id": int(one), "x": float(one)} for one in rng.integers(0, 4, 5)]
def raises(rng): raise KeyError("boom")
def never(rng): time.sleep(600)
def mixed(rng): return [1, "a"]
def wait(value): time.sleep(600)

lists = st.lists(st.integers(0, 3), max_size=4)
none = st.integers().filter(lambda one: False)
endless = st.integers().map(wait)

def longer(d1, d2): return len(d1) > len(d2)
def one_more(d1, d2): return abs(len(d1) - len(d2)) == 1
def number(d1, d2): return 1
def broken(d1, d2): return d1.rows
def none_related(d1, d2): return False
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "own.py"
    path.write_text(SOURCE)
    return f"import:{path}"


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis takes a millisecond for each draw; several short rounds are still drawn."""
    monkeypatch.setattr(drawing, "INPUTS_PER_RUN", 20)


def _some(space: str, adjacency: str, number: int = 60) -> list[Proposal]:
    return list(islice(proposals(relation(space, adjacency), seed=3), number))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace", "hamming:2", "user:id"])
def test_neighbours_are_made_of_what_a_generator_gives(file: str, adjacency: str) -> None:
    for one in _some(f"{file}:rows", adjacency):
        assert all(row.keys() == {"id", "x"} for row in [*one.d1, *one.d2])
        changed = abs(len(one.d1) - len(one.d2))
        assert changed > 0 if adjacency in ("add-remove", "user:id") else changed == 0


def test_strategies_of_hypothesis_are_spaces(file: str) -> None:
    found = _some(f"{file}:lists", "add-remove")
    assert found == _some(f"{file}:lists", "add-remove")
    assert all(set(one.d1 + one.d2) <= {0, 1, 2, 3} for one in found)
    assert len({len(one.d1) for one in found}) > 2


@pytest.mark.parametrize(
    ("name", "code", "named"),
    [
        ("raises", "generator-failed", r"raises \(seed 0\) .*KeyError: 'boom'"),
        ("never", "generator-failed", r"never \(seed 0\) .* 0.3 s"),
        ("mixed", "generator-failed", r"\(number and text\)"),
        ("none", "space-invalid", r"none \(seed \d+\)"),
        ("endless", "generator-failed", r"endless \(seed \d+\) .* 0.3 s"),
    ],
)
def test_a_generator_that_fails_is_named_with_its_seed(
    file: str, name: str, code: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The others end, and get minutes for it on a busy machine.
    monkeypatch.setattr(timeouts, "CALL_SECONDS", 0.3 if "0.3 s" in named else 300.0)
    error = refusal(_some, f"{file}:{name}", "replace", 1)
    assert error.code == code
    assert re.search(named, str(error))


def test_a_relation_of_ones_own_chooses_the_pairs(file: str) -> None:
    found = _some("list of number in [0, 1]", f"{file}:one_more")
    assert all(abs(len(one.d1) - len(one.d2)) == 1 for one in found)
    assert {one.origin for one in found} == {"edge", "lattice"} or len(found) == 60


@pytest.mark.parametrize(
    ("name", "code", "named"),
    [
        ("longer", "adjacency-failed", r"relation\(d1, d2\) is \w+ and relation\(d2, d1\) \w+"),
        ("number", "adjacency-failed", "1, not a bool"),
        ("broken", "adjacency-failed", "d1 = .*AttributeError"),
        ("none_related", "space-without-neighbours", "list of 0 to 2 boolean"),
    ],
)
def test_relations_that_are_none_are_refused(
    file: str, name: str, code: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "none_related":  # random pairs are drawn in vain until there are too many
        monkeypatch.setattr("dpaudit.searching.proposals._MAX_VAIN_DRAWS", 50)
    error = refusal(_some, "list of 0 to 2 boolean", f"{file}:{name}")
    assert error.code == code
    assert re.search(named, str(error))
