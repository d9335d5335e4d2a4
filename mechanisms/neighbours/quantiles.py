"""Medians: by the exponential mechanism, and with noise on top."""

from __future__ import annotations

import numpy as np

from mechanisms.neighbours.values import FloatArray, Records, clipped, noisy

_HIGH = 10.0
_TICK = 0.25


def _median(
    dataset: Records, tick: float, epsilon: float, size: int, rng: np.random.Generator
) -> FloatArray:
    """Return `size` draws of density e^{-ε|#{x < y} - n/2|} at y between 0 and 10 (Smith 2011).

    A record more moves #{x < y} - n/2 by ½, so this is ε-DP; pieces between neighbouring records
    are at least `tick` long. Rounded to 1/1024, since low-order bits would show where pieces begin.
    """
    edges = np.array([0.0, *sorted(clipped(value, 0.0, _HIGH) for value in dataset), _HIGH])
    lengths = np.maximum(np.diff(edges), tick)
    utility = -np.abs(np.arange(len(lengths)) - (len(lengths) - 1) / 2)
    # However many ties there are, a piece that has a length keeps a weight above 0.
    utility -= utility[lengths > 0].max()
    weights = lengths * np.exp(np.minimum(epsilon * utility, 0.0))
    # One uniform number picks the piece, and what is left of it the place in the piece.
    heights = np.concatenate([[0.0], np.cumsum(weights)])
    spot = np.minimum(rng.random(size) * heights[-1], np.nextafter(heights[-1], 0.0))
    piece = np.searchsorted(heights, spot, side="right") - 1
    inside = (spot - heights[piece]) / weights[piece]
    drawn = np.minimum(edges[piece] + inside * lengths[piece], _HIGH)
    rounded: FloatArray = np.rint(drawn * 1024) / 1024
    return rounded


def ties_have_a_length(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: pieces between two equal values get a length of ¼, so as not to be empty.

    Adjacency: add-remove. [5] gives any y in [0, 10] with density 1/10. [5, 5] has a piece [5, 5¼]
    that should be empty, with weight ¼, beside 2 · 5/e: there, where the last piece begins as
    well, the density is (1 + 1/e)/(10/e + ¼), and the true ε is ln 3.4814 = 1.2475 at ε = 1.
    Harmless: values that are ¼ apart, and from the bounds.
    """
    return _median(dataset, _TICK, epsilon, size, rng)


def ties_are_empty(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: a piece between equal values has no length, and no probability.

    Adjacency: add-remove.
    """
    return _median(dataset, 0.0, epsilon, size, rng)


def _middle(dataset: Records) -> float:
    """Return the median of the values clipped to [0, 1]; of an even number, the mean of two."""
    values = sorted(clipped(value, 0.0, 1.0) for value in dataset)
    half = len(values) // 2
    if not values:
        return 0.5
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def even_for_all(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: the median with noise for ½, its sensitivity where n is even.

    Adjacency: replace; n is public. With an odd n the median of [0] and [1] moves by 1, that of
    [0, 0, 1] and [0, 1, 1] too, and the true ε is 2ε. Harmless: n is even.
    """
    return noisy(_middle(dataset), 0.5 / epsilon, size, rng)


def odd_or_even(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: the median with noise for ½ where n is even, for 1 where it is odd.

    Adjacency: replace; n is public. Replacing one moves the two in the middle, a ≤ b, to no more
    than b and the next one, c: the mean by (c - a)/2, which is at most ½.
    """
    sensitivity = 1.0 if len(dataset) % 2 else 0.5
    return noisy(_middle(dataset), sensitivity / epsilon, size, rng)
