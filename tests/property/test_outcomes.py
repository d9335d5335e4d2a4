"""What an outcome is does not depend on the table that it stands in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.attacks.additive import additive
from dpaudit.attacks.single_columns import one_dimensional, single_columns
from dpaudit.attacks.single_outputs import atoms
from dpaudit.draws import SelectionDraws
from dpaudit.outcomes import KIND, Outcomes, Raised, concatenate, from_raw

SCALARS = st.one_of(
    st.integers(-2, 2),
    st.sampled_from([0.5, float("nan"), float("inf"), 2**53 + 1, "a", "b", b"a", True, None]),
)
KEYS = st.sampled_from(["a", "b", 0, 1, True, (1, "a")])
SHAPES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(KEYS, inner, max_size=3),
        st.sets(KEYS, max_size=3),
        st.just(np.zeros((2, 2))),
    ),
    max_leaves=6,
)
OUTCOMES = st.lists(st.one_of(SHAPES, st.just(Raised("E", ""))), min_size=1, max_size=12)


def entries(outcomes: Outcomes, name: str) -> list[str]:
    """Return a column in words."""
    column = outcomes.column(name)
    return [column.word(row) for row in range(outcomes.size)]


@given(OUTCOMES, st.data())
def test_chunks_agree_with_the_whole(raw: list[Any], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(raw)))
    whole, parts = from_raw(raw), [from_raw(raw[:cut]), from_raw(raw[cut:])]
    joined = concatenate(parts)
    taken = np.array(data.draw(st.permutations(range(len(raw)))), dtype=np.intp)
    assert joined.keys().tolist() == whole.keys().tolist()
    assert whole.take(taken).keys().tolist() == whole.keys()[taken].tolist()
    for name in [*(column.name for column in whole.columns), KIND + "output", "length of output"]:
        apart = [entry for part in parts if part.size for entry in entries(part, name)]
        assert apart == entries(joined, name) == entries(whole, name)
        assert entries(whole.take(taken), name) == [apart[i] for i in taken]


@settings(max_examples=20)
@given(OUTCOMES)
def test_an_outcome_has_the_same_entries_alone_as_among_others(raw: list[Any]) -> None:
    together = from_raw(raw)
    names = dict.fromkeys(
        name
        for table in (together, *(from_raw([one]) for one in raw))
        for column in table.columns
        for name in (column.name, f"{KIND}{column.name}", f"length of {column.name}")
    )
    for row, one in enumerate(raw):
        alone, among = from_raw([one]), together.take(slice(row, row + 1))
        assert among.keys().tolist() == alone.keys().tolist()
        for name in names:
            found, expected = among.column(name), alone.column(name)
            assert found.word(0) == expected.word(0)
            assert found.keys().tolist() == expected.keys().tolist()
            assert found.numbers.tolist() == pytest.approx(expected.numbers.tolist(), nan_ok=True)


def canonical(value: Any) -> Any:
    """Return what two outcomes have in common just when they are the same."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return ("list", tuple(map(canonical, value)))
    if isinstance(value, dict):
        both = ((canonical(key), canonical(part)) for key, part in value.items())
        return ("dict", frozenset(both))
    if isinstance(value, set):
        return ("set", frozenset(map(canonical, value)))
    if isinstance(value, Raised):
        return ("raised", value.kind)
    if isinstance(value, float) and value != value:
        return "not a number"
    return ("number" if type(value) in (int, float) else type(value).__name__, value)


@given(OUTCOMES, OUTCOMES)
def test_keys_are_equal_just_when_outcomes_are(first: list[Any], second: list[Any]) -> None:
    raw = [*first, *second]
    keys = [*from_raw(first).keys().tolist(), *from_raw(second).keys().tolist()]
    expected = [canonical(one) for one in raw]
    same = len(set(keys))
    assert len(set(zip(keys, expected, strict=True))) == same == len(set(expected))


@settings(max_examples=20)
@given(st.lists(SHAPES, min_size=20, max_size=60), OUTCOMES)
def test_the_level_of_an_outcome_depends_on_nothing_else(raw: list[Any], later: list[Any]) -> None:
    is_d1 = np.arange(len(raw)) % 2 == 0
    selection = SelectionDraws(from_raw(raw), is_d1)
    for attack in (one_dimensional, single_columns, additive, atoms):
        for candidate in attack(selection):
            level = candidate.level_map()
            together = level(from_raw(later)).tolist()
            assert together == [int(level(from_raw([one]))[0]) for one in later]
            assert max(together) < level.levels
