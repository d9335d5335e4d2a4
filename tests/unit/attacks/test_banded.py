from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.attacks.additive import additive
from dpaudit.attacks.objective import Objective, rank_key
from dpaudit.attacks.prefixes import BANDED, _standing_alone, banded
from dpaudit.attacks.sequences import Prefixes
from dpaudit.attacks.single_outputs import AtomLevels
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import Candidate
from dpaudit.levels.scores import ScoreLevels
from dpaudit.outcomes import from_raw
from dpaudit.outcomes.known import Bands

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


def test_few_numbers_stand_each_for_itself() -> None:
    draws = answers("integers", 5_000)
    few = from_raw(np.stack([np.where(one.numbers > -1000.0, one.numbers % 5, one.numbers)
                             for one in draws.outcomes.columns], axis=1))  # fmt: skip
    assert banded(draws)
    assert banded(SelectionDraws(few, draws.is_d1)) == []


@pytest.mark.parametrize(
    ("numbers", "alone"),
    [
        ([-1.0] * 50 + list(range(50)), [-1.0]),
        ([-1.0] * 30 + [-2.0] * 30 + list(range(40)), [-2.0, -1.0]),
        (list(range(50)) * 2, []),
        ([0.0] * 46 + [1.0, -1.0] * 17 + [2.0, -2.0] * 6, []),
        ([-1.0, -2.0, -3.0, -4.0] * 20 + list(range(20)), []),
        ([-1.0] * 100, [-1.0]),
        ([-1.0] * 4 + list(range(1_000)), []),
        ([-1.0] * 5 + list(range(995)), [-1.0]),
        ([-1.0] * 4 + list(range(96)), [-1.0]),
        ([-1.0] * 3 + list(range(97)), []),
        ([-1.0, -2.0, -3.0] * 20 + list(range(20)), [-3.0, -2.0, -1.0]),
        ([], []),
    ],
)
def test_a_value_stands_alone_where_no_other_is_nearly_as_frequent(
    numbers: list[float], alone: list[float]
) -> None:
    found = _standing_alone(np.array(numbers, dtype=np.float64), len(numbers))
    assert found.tolist() == alone


@pytest.mark.parametrize("shares", [[0.75, 0.16, 0.03, 0.03, 0.03], [0.78, 0.12, 0.03, 0.04, 0.03]])
def test_codes_beside_the_answers_stay_what_they_are(shares: list[float]) -> None:
    draws = answers("codes", 40_000)
    codes = np.random.default_rng(5).choice(5, draws.size, p=shares).astype(np.float64)
    columns = [one.numbers for one in draws.outcomes.columns]
    beside = SelectionDraws(from_raw(np.stack([*columns, codes], axis=1)), draws.is_d1)
    level = best(banded(beside)).level_map()
    assert isinstance(level, ScoreLevels)
    assert isinstance(level.score, Prefixes)
    in_bands = [step.symbols.name for step in level.score.steps if step.symbols.bands is not None]
    assert in_bands == [f"output[{place}]" for place in range(10)]
    promised = rank_key(best(banded(beside)), AIM)[0]
    assert promised > 0.9 * rank_key(best(banded(draws)), AIM)[0]


def bands_of(order: Candidate) -> Bands:
    """Return the bands of an order of sequences of bands."""
    level = order.level_map()
    assert isinstance(level, AtomLevels)
    assert level.known.bands is not None
    return level.known.bands


def test_numbers_far_from_0_have_bands_of_their_own() -> None:
    draws = answers("integers", 5_000)
    far = np.stack([np.where(one.numbers > -1000.0, one.numbers + 1e12, one.numbers)
                    for one in draws.outcomes.columns], axis=1)  # fmt: skip
    (first, *_), (second, *_) = (banded(SelectionDraws(one, draws.is_d1))
                                 for one in (draws.outcomes, from_raw(far)))  # fmt: skip
    edges = [bands_of(one).edges for one in (first, second)]
    assert len(edges[0]) == len(edges[1]) == 4
    assert np.subtract(edges[1], edges[0]) == pytest.approx(1e12, abs=1.0)


def test_few_draws_are_not_looked_at() -> None:
    assert banded(answers("codes", 500)) == []


def test_a_report_says_of_a_band_what_it_is() -> None:
    (first, *_) = banded(answers("codes", 5_000))
    bands = bands_of(first)
    words = bands.labels
    assert words[0] == f"number < {bands.edges[0]!r}"
    assert all(float(f"{edge:.4g}") == edge for edge in bands.edges)
    assert len(set(words)) == len(bands.edges) + 1
