"""Agreements of two entries: which pairs are used, and the words of events."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from dpaudit.attacks.agreements import MAX_ENTRIES, MAX_PAIRS, NAME, SUM, agreements
from dpaudit.draws import SelectionDraws
from dpaudit.outcomes import from_raw

DRAWS = 2_000
RNG = np.random.default_rng(0)
IS_D1 = RNG.random(DRAWS) < 0.5


def learned(outputs: Any) -> dict[str, list[Any]]:
    """Return the candidates by attack."""
    orders = agreements(SelectionDraws(from_raw(outputs), IS_D1))
    return {name: [one for one in orders if one.attack == name] for name in (NAME, SUM)}


def labels(columns: int) -> np.ndarray[Any, Any]:
    """Return fair bits; the last one equals the first on d1, and differs from it on d2."""
    bits = np.random.default_rng(1).integers(2, size=(DRAWS, columns))
    bits[:, -1] = bits[:, 0] ^ ~IS_D1
    return bits


@pytest.mark.parametrize("names", [(-3, 10**15), (None, "a"), (True, 7)])
def test_labels_and_integers_are_compared(names: tuple[Any, Any]) -> None:
    outputs = [[names[bit] for bit in row] for row in labels(4).tolist()]
    (order,) = learned(outputs)[NAME]
    assert order.counts.tolist() == [[0, (~IS_D1).sum()], [IS_D1.sum(), 0], [0, 0]]
    level = pickle.loads(pickle.dumps(order.level_map()))
    assert level(
        from_raw([[*outputs[0][:3], outputs[0][0]], [0.5, 0, 0, 0.5], [0.5, 0, 0, 0.25]])
    ).tolist() == [1, 1, 0]


def test_equal_zeros_agree_whatever_their_signs() -> None:
    outputs = np.where(labels(3) == 0, 0.0, 1.0) * np.where(RNG.random((DRAWS, 3)) < 0.5, -1, 1)
    outputs[outputs != 0] = 1.0
    (order,) = learned(outputs)[NAME]
    assert order.counts[0, 0] == order.counts[1, 1] == 0


def test_what_the_entries_show_by_themselves_is_no_agreement() -> None:
    """The first entry is 1 on d1, and the second nearly always."""
    outputs = np.stack([IS_D1, RNG.random(DRAWS) < 0.9, RNG.random(DRAWS) < 0.5], axis=1)
    assert learned(outputs.astype(int)) == {NAME: [], SUM: []}


def test_equal_laws_have_no_agreements() -> None:
    orders = [learned(RNG.integers(3, size=(DRAWS, 12)))[NAME] for _ in range(50)]
    # Each of 50 comes up with probability 0.001: more than two do in one of 50,000 tests.
    assert sum(map(bool, orders)) <= 2


def test_the_number_of_entries_and_of_pairs_is_bounded() -> None:
    assert learned(labels(MAX_ENTRIES))[NAME]
    assert not learned(labels(MAX_ENTRIES + 1))[NAME]
    assert learned(np.hstack([labels(4), RNG.normal(size=(DRAWS, 100))]))[NAME]
    copies = np.repeat(labels(2), 20, axis=1)
    assert [len(found) for found in learned(copies).values()] == [2, 1]
    (order,) = learned(copies)[SUM]
    score = pickle.loads(pickle.dumps(order.level_map())).score
    assert len(score.pairs) == MAX_PAIRS
    assert len({name for name, _ in score.columns}) <= MAX_PAIRS


def test_other_numbers_are_not_compared() -> None:
    outputs = labels(2) + 0.5
    assert learned(outputs) == {NAME: [], SUM: []}
