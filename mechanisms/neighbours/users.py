"""Counts of users, of whom each may have many records.

Adjacency: all records of one user (column `who`) more or less.
"""

from __future__ import annotations

import numpy as np

from mechanisms.neighbours.values import FloatArray, Table, noisy

_CITIES = ("Oslo", "Rome")
_SPELLED = ("oslo", "rome")


def _users(dataset: Table, city: str) -> int:
    """Return how many users have a record of the city; a user that is missing is one user, too."""
    return len({repr(row.get("who")) for row in dataset if row.get("city") == city})


def noise_for_one_city(
    dataset: Table, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: how many users were in each of two cities, with noise for a user of one city.

    A user who was in both moves both counts by 1: the true ε is 2ε. Harmless: a user with many
    records of one city.
    """
    return noisy([_users(dataset, city) for city in _CITIES], 1 / epsilon, size, rng)


def noise_for_every_city(
    dataset: Table, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: how many users were in each of two cities, with noise for a user of both."""
    return noisy([_users(dataset, city) for city in _CITIES], len(_CITIES) / epsilon, size, rng)


def _spelled(value: object) -> str:
    return str(value).strip().lower()


def spelled_after_counting(
    dataset: Table, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: counts a user once for each city, and only then finds that Rome and ROME are one.

    A user who spells Rome in three ways moves its count by 3, where noise is for one user in two
    cities: the true ε is 1.5ε. Harmless: a user who spells a city in one way, or one city in two.
    """
    once = {(repr(row.get("who")), str(row.get("city"))) for row in dataset}
    cities = [_spelled(city) for _, city in once]
    return noisy([cities.count(one) for one in _SPELLED], len(_SPELLED) / epsilon, size, rng)


def spelled_before_counting(
    dataset: Table, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: however a city is spelled, a user counts once for it."""
    once = {(repr(row.get("who")), _spelled(row.get("city"))) for row in dataset}
    cities = [city for _, city in once]
    return noisy([cities.count(one) for one in _SPELLED], len(_SPELLED) / epsilon, size, rng)
