from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.attacks.additive import additive
from dpaudit.attacks.objective import Objective, rank_key
from dpaudit.attacks.prefixes import BANDED, banded
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import Candidate
from dpaudit.outcomes import from_raw

AIM = Objective(ProfilePoint(1.0, 0.0), 1_000_000)


def answers(kind: str, size: int, seed: int = 1) -> SelectionDraws:
    """Draw noisy answers of a sparse vector to ten queries, all 0 or all 1, up to the first one
    above the threshold (Lyu et al. 2017, Alg. 3, which releases the answer that was compared)."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    noisy = np.where(is_d1, 0.0, 1.0)[:, None] + rng.laplace(0.0, 4.0, (size, 10))
    above = noisy >= rng.laplace(0.0, 2.0, (size, 1))
    is_after: NDArray[np.bool_] = np.cumsum(above, axis=1) > above
    if kind == "lists":
        lengths = (~is_after).sum(axis=1)
        rows = [[float(x) if up else None for x, up in zip(*row, strict=True)]
                for row in zip(noisy.tolist(), above.tolist(), strict=True)]  # fmt: skip
        raw: Any = [row[:length] for row, length in zip(rows, lengths, strict=True)]
    elif kind == "numbers":
        raw = noisy
    elif kind == "integers":
        raw = np.where(above & ~is_after, np.rint(10 * noisy), -1000.0)
    elif kind == "counts":
        raw = np.rint(10 * noisy)
    else:
        raw = np.where(above & ~is_after, noisy, np.where(is_after, -2000.0, -1000.0))
    return SelectionDraws(from_raw(raw), is_d1)


def best(found: Sequence[Candidate]) -> Candidate:
    return max(found, key=lambda one: rank_key(one, AIM))


@pytest.mark.parametrize("kind", ["codes", "integers", "lists"])
def test_where_a_number_stands_and_how_large_it_is_tell_together(kind: str) -> None:
    draws = answers(kind, 40_000)
    found = best(banded(draws))
    assert found.attack.startswith(BANDED)
    # Beside integers a single column tells more.
    least = 1.7 if kind == "integers" else 2.0
    assert rank_key(found, AIM)[0] > least * rank_key(best(additive(draws)), AIM)[0]


@pytest.mark.parametrize("kind", ["codes", "integers", "lists"])
def test_its_levels_are_those_of_each_output_by_itself(kind: str) -> None:
    draws, later = answers(kind, 20_000), answers(kind, 300, seed=2)
    for one in banded(draws):
        level = pickle.loads(pickle.dumps(one.level_map()))
        together: NDArray[np.intp] = level(later.outcomes)
        assert together.max() < level.levels
        assert level.tally(later.outcomes).tolist() == np.bincount(
            together, minlength=level.levels
        ).tolist()  # fmt: skip
        alone = [int(level(later.outcomes.take(slice(row, row + 1)))[0]) for row in range(50)]
        assert alone == together[:50].tolist()
        assert level.words(np.arange(level.levels) == together[0])


@pytest.mark.parametrize("kind", ["numbers", "counts"])
def test_without_numbers_beside_few_values_there_is_nothing_to_say(kind: str) -> None:
    assert banded(answers(kind, 5_000)) == []
