"""Which rows of a recording are learned from, and which certify."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from dpaudit.stats.thinning import coin_flips

Rows = NDArray[np.intp]


class Split(ABC):
    """Rows in a random order, by the seed and their inputs alone, never by what is in them: from
    the first on they are learned from, and the rest certifies.

    size: rows to share out.
    """

    size: int
    _taken = 0

    @abstractmethod
    def learn_from(self, rows: int) -> Rows:
        """Return so many rows more to learn from."""

    @abstractmethod
    def left(self) -> int:
        """Return how many rows the game would have."""

    @abstractmethod
    def rest(self) -> tuple[Rows, Rows]:
        """Return the rows that the game may use, and those that the pair of bounds may; once."""


class TossedSplit(Split):
    """Of rows whose inputs were tossed for."""

    def __init__(self, is_d1: NDArray[np.bool_], rng: np.random.Generator) -> None:
        self.size = len(is_d1)
        self._order = rng.permutation(self.size)

    def learn_from(self, rows: int) -> Rows:
        start, self._taken = self._taken, self._taken + rows
        return np.asarray(self._order[start : self._taken])

    def left(self) -> int:
        return self.size - self._taken

    def rest(self) -> tuple[Rows, Rows]:
        rows = self._order[self._taken :]
        return rows, rows


class FixedSplit(Split):
    """Of fixed numbers of rows of each input: as many of each are learned from, as the predictions
    of learning take it, and the game has as many as fair coins would have picked."""

    def __init__(self, is_d1: NDArray[np.bool_], rng: np.random.Generator) -> None:
        arms = [np.flatnonzero(is_d1 == arm) for arm in (True, False)]
        self._d1, self._d2 = (rng.permutation(rows) for rows in arms)
        self.size = 2 * min(len(self._d1), len(self._d2))
        self._rng = rng

    def learn_from(self, rows: int) -> Rows:
        # At least one of each: else whoever asks for a single row would ask for ever.
        start, self._taken = self._taken, self._taken + max(1, rows // 2)
        some = slice(start, self._taken)
        return self._rng.permutation(np.concatenate([self._d1[some], self._d2[some]]))

    def left(self) -> int:
        return coin_flips(len(self._d1) - self._taken, len(self._d2) - self._taken)

    def rest(self) -> tuple[Rows, Rows]:
        d1, d2 = self._d1[self._taken :], self._d2[self._taken :]
        coins = self.left()
        heads = self._heads(coins, len(d1), len(d2))
        return np.concatenate([d1[:heads], d2[: coins - heads]]), np.concatenate([d1, d2])

    def _heads(self, coins: int, first: int, second: int) -> int:
        """Toss fair coins until they ask for no more draws than there are."""
        while True:
            heads = int(self._rng.binomial(coins, 0.5))
            if heads <= first and coins - heads <= second:
                return heads
