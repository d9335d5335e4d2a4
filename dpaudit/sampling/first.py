"""The first calls of a mechanism, one by one, before many are made."""

from __future__ import annotations

import time

import numpy as np

from dpaudit.adapters.mechanism import Mechanism
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.outcomes.reading.lengths import checked_length


def first_calls(
    mechanism: Mechanism, pair: NeighbouringPair, rng: np.random.Generator
) -> tuple[int, float]:
    """Return the length of the longest output, and the seconds that a call for one takes.

    Raises MechanismError for an output that is too long for many of its like.
    """
    both = (pair.d1, pair.d2)
    longest = max(checked_length(mechanism.sample(one, 1, rng)[0]) for one in both)
    # Timed anew: what is called first may have to import something.
    start = time.perf_counter()
    for one in both:
        mechanism.sample(one, 1, rng)
    return longest, (time.perf_counter() - start) / len(both)
