"""A part of the output that differs in every draw, next to parts that repeat, gets a note."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit.draws import SelectionDraws
from dpaudit.outcomes import from_raw
from dpaudit.sampling.independence import never_repeated

MANY = 1_000
RNG = np.random.default_rng(0)


def noted(make: Callable[[int], Any], many: int = MANY) -> list[str]:
    outcomes = from_raw([make(place) for place in range(many)])
    return never_repeated(SelectionDraws(outcomes, np.arange(many) % 2 == 0))


@pytest.mark.parametrize(
    "make", [lambda n: (n * 7919, n % 4), lambda n: {"seed": f"{n:x}", "bit": n % 2}]
)
def test_a_seed_of_a_hash_function_has_a_note(make: Callable[[int], Any]) -> None:
    (note,) = noted(make)
    assert note.startswith(("output[0]", 'output["seed"]', "output['seed']"))
    assert "--post-process" in note
    assert noted(make, 400) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda n: n * 7919,  # no other part
        lambda n: (float(RNG.normal()), n % 4),  # noise
        lambda n: (n // 2, n % 4),  # repeats
        lambda n: (n, n + 1),  # nothing repeats
    ],
)
def test_other_outputs_have_none(make: Callable[[int], Any]) -> None:
    assert noted(make) == []
