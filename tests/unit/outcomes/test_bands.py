from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from dpaudit.outcomes import Outcomes, from_raw
from dpaudit.outcomes.known import Bands

BANDS = Bands(frozenset({"output[0]", "output[1]"}), (-1.0,), (0.5, 2.25, 1e6))


def banded(raw: Any) -> Outcomes:
    return BANDS(from_raw(raw))


def test_numbers_are_bands_and_what_stands_for_itself_stays() -> None:
    found = banded(
        np.array([[-1.0, 0.4, 9.0], [0.5, 2.2, 8.0], [2.25, 1e7, 7.0], [3.0, -2.0, 6.0]])
    )
    assert found.words(range(4)) == [
        "(-1, number < 0.5, 9)",
        "(number 0.5 to 2.25, number 0.5 to 2.25, 8)",
        "(number 2.25 to 1000000, number ≥ 1000000, 7)",
        "(number 2.25 to 1000000, number < 0.5, 6)",
    ]


def test_labels_and_shapes_stay() -> None:
    raw = [[None, 0.1], [-1, 0.2, 7.0], "none", [3.0, float("inf")], [True], [np.nan, -1.0]]
    assert banded(raw).words(range(6)) == [
        "(None, number < 0.5)",
        "(-1, number < 0.5, 7)",
        "'none'",
        "(number 2.25 to 1000000, number ≥ 1000000)",
        "(True)",
        "(NaN, -1)",
    ]


def test_an_output_has_one_key_whatever_stands_beside_it() -> None:
    rng = np.random.default_rng(4)
    raw = [[-1.0 if rng.random() < 0.5 else rng.normal(), rng.normal()] for _ in range(50)]
    alone = [banded([one]).keys()[0] for one in raw]
    mixed = banded([*raw, "another shape"])
    assert type(mixed) is not type(banded(raw))
    assert banded(raw).keys().tolist() == alone == mixed.keys()[:-1].tolist()
    again = pickle.loads(pickle.dumps(BANDS))
    assert again(from_raw(raw)).keys().tolist() == alone
