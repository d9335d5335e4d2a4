"""How much text there is. Adjacency: add-remove."""

from __future__ import annotations

from typing import Any

import numpy as np

from mechanisms.neighbours.values import FloatArray, Records, noisy

_LONGEST = 10


def _bytes(value: Any) -> bytes:
    """Return a text as UTF-8, halves of surrogate pairs included; what is no text is empty."""
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else b""


def characters_for_bytes(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: the bytes of all texts, each cut to ten characters; noise for ten.

    A character has up to four bytes: a text more of one "🙂" adds 4, ten of them add 40, and the
    true ε is 4ε. Harmless: any text in ASCII, however long.
    """
    total = sum(
        len(_bytes(value[:_LONGEST] if isinstance(value, str) else value)) for value in dataset
    )
    return noisy(total, _LONGEST / epsilon, size, rng)


def bytes_for_bytes(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: the bytes of all texts, of each at most ten; noise for ten."""
    total = sum(min(len(_bytes(value)), _LONGEST) for value in dataset)
    return noisy(total, _LONGEST / epsilon, size, rng)
