"""The sparse vector technique: which of a list of answers is the first above a threshold of 5?

Adjacency: `linf:1`, every answer moves by at most 1. Answers are clipped to [0, 10], which moves no
two of them further apart. Outputs are the index of the first one above, or how many there are when
none is. The correct one is Algorithm 1 of Lyu, Su and Li (2017) for one answer above; the broken
ones are like its Algorithms 3 to 6.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mechanisms.neighbours.values import FloatArray, Records, clipped

IndexArray = NDArray[np.int64]
THRESHOLD = 5.0
_HIGH = 10.0


def _answers(dataset: Records) -> FloatArray:
    return np.array([clipped(value, 0.0, _HIGH) for value in dataset])


def _first(above: NDArray[np.bool_]) -> IndexArray:
    """Return the place of the first True of each row, the length of the row where there is none."""
    size, length = above.shape
    found = np.full(size, length)
    for place in reversed(range(length)):
        found[above[:, place]] = place
    return found


def _scales(epsilon: float) -> tuple[float, float]:
    """Return the scales for the threshold, for a quarter of ε, and for the answers.

    An answer above costs 2 in the noisy answer, as it and the threshold move.
    """
    return 4 / epsilon, 8 / (3 * epsilon)


def first_above(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> IndexArray:
    """Correct: noise on the threshold and on each answer; stops at the first one above."""
    answers = _answers(dataset)
    of_threshold, of_answers = _scales(epsilon)
    noise = rng.laplace(0.0, of_answers, (size, len(answers)))
    return _first(answers + noise >= THRESHOLD + rng.laplace(0.0, of_threshold, (size, 1)))


def threshold_without_noise(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> IndexArray:
    """Broken: all of ε is for the answers, noise of scale 2/ε, and none for the threshold.

    Each answer that is not above costs up to ε/2 then. That none of five is above has probability
    (½)⁵ for answers of 5, and (½ e^{-ε/2})⁵ for answers of 6: the true ε is 2.5ε. Harmless: one
    answer moves, or two.
    """
    answers = _answers(dataset)
    return _first(answers + rng.laplace(0.0, 2 / epsilon, (size, len(answers))) >= THRESHOLD)


def noise_not_refreshed(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> IndexArray:
    """Broken: noise is drawn once for all answers.

    The first above is then larger than all before it. The second answer of [4, 5, 4] can be that,
    of [4, 4, 4] never: the true ε is ∞. Harmless: answers that fall from first to last, or that all
    move alike.
    """
    answers = _answers(dataset)
    of_threshold, of_answers = _scales(epsilon)
    noise = rng.laplace(0.0, of_answers, (size, 1))
    return _first(answers + noise >= THRESHOLD + rng.laplace(0.0, of_threshold, (size, 1)))


def budget_ignored(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Broken: goes on after the first above, with noise for one; an output says which are above.

    Every answer costs up to 3ε/8. Of eight answers, four rise from 5 to 6 and four fall from 6 to
    5; the true ε is the largest log-ratio of the 256 outputs, each an integral over the noise of
    the threshold (`planted.py`). Harmless: one answer moves, or all move alike.
    """
    answers = _answers(dataset)
    of_threshold, of_answers = _scales(epsilon)
    noise = rng.laplace(0.0, of_answers, (size, len(answers)))
    above: NDArray[np.bool_] = answers + noise >= THRESHOLD + rng.laplace(
        0.0, of_threshold, (size, 1)
    )
    return above
