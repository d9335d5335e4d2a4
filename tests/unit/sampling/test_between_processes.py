"""Comparison of processes: no difference for independent draws, a difference for others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.draws import Tally
from dpaudit.sampling.independence import between_processes

GUESSES = np.array([-1, -1, 0, 1, 1])
LEVELS = len(GUESSES)
# Error probability of a comparison. The e-value must exceed twice its inverse, since each of two
# looks has half of it.
LEVEL = 5e-4


def tally(rng: np.random.Generator, size: int, law: NDArray[np.float64]) -> Tally:
    """Return draws of both inputs, each from one distribution over the levels: (2, levels)."""
    d1 = int(rng.binomial(size, 0.5))
    counts = [rng.multinomial(n, p) for n, p in zip((d1, size - d1), law, strict=True)]
    return Tally(np.array(counts).T)


def laws(rng: np.random.Generator) -> NDArray[np.float64]:
    return rng.dirichlet(np.ones(LEVELS), size=2)


def said(seed: int, *, shift: float = 0.0, first: int = 1_000, each: int = 60) -> str:
    """Return the message for a first process and eight new ones with shifted distributions."""
    rng = np.random.default_rng(seed)
    law = laws(rng)

    def of_one_process() -> NDArray[np.float64]:
        tilted = law * np.exp(shift * rng.normal(size=(2, 1)) * np.linspace(-1, 1, LEVELS))
        return tilted / tilted.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]  # NumPy's

    others = [tally(rng, each, of_one_process()) for _ in range(8)]
    return between_processes(tally(rng, first, of_one_process()), others, GUESSES, LEVEL)[1]


def test_one_process_with_another_distribution_is_enough() -> None:
    first = Tally(np.array([[0, 500], [0, 0], [0, 0], [0, 0], [500, 0]]))
    same = Tally(np.array([[0, 4], [0, 0], [0, 0], [0, 0], [4, 0]]))
    other = Tally(np.array([[4, 4], [0, 0], [0, 0], [0, 0], [0, 0]]))
    assert between_processes(first, [same] * 8, GUESSES, LEVEL)[1] == ""
    evidence, words = between_processes(first, [*[same] * 7, other], GUESSES, LEVEL)
    assert evidence >= -math.log(LEVEL)
    assert "outputs for d1 differ from process to process" in words
    assert "never came up in 500 draws here" in words


def test_no_new_process_is_no_difference() -> None:
    first = Tally(np.array([[3, 500], [0, 0], [0, 0], [0, 0], [500, 0]]))
    assert between_processes(first, [], GUESSES, LEVEL) == (0.0, "")


def test_a_shift_of_every_process_is_found() -> None:
    assert all(said(seed, shift=2.0, each=250) for seed in range(20))


@pytest.mark.parametrize(
    ("here", "there", "said_of"),
    [
        (1.0, (0.0, 0.0), ("100 % of 400 draws", "never in draws of new")),
        (0.0, (1.0, 0.5), ("never came up in 400 draws", "50 % to 100 % of draws of new")),
    ],
)
def test_the_frequency_of_the_event_is_named_for_both(
    here: float, there: tuple[float, float], said_of: tuple[str, str]
) -> None:
    def of(share: float) -> Tally:
        inside = round(400 * share)
        return Tally(np.array([[inside, 200], [400 - inside, 200]]))

    # The first level is the only event: the other one is evidence for neither input.
    words = between_processes(of(here), [*map(of, there)] * 4, np.array([1, 0]), LEVEL)[1]
    assert [one for one in said_of if one not in words] == []
