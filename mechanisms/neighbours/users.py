"""Counts of users, of whom each may have many records.

Adjacency: all records of one user (column `who`) more or less.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mechanisms.neighbours.values import FloatArray, Table, is_missing, noisy

_CITIES = ("Oslo", "Rome")
_SPELLED = ("oslo", "rome")


def _user(row: Mapping[str, Any]) -> Any:
    """Return who a record belongs to; all whose name is neither a text nor a number are one user.

    Users who are taken for one move no count by more than one of them does.
    """
    who = row.get("who")
    return who if isinstance(who, str) or not is_missing(who) else None


def _users(dataset: Table, city: str) -> int:
    """Return how many users have a record of the city."""
    return len({_user(row) for row in dataset if row.get("city") == city})


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


def _city(row: Mapping[str, Any]) -> str:
    """Return the city as it is spelled; what is no text is no city."""
    city = row.get("city")
    return city if isinstance(city, str) else ""


def _spelled(city: str) -> str:
    return city.strip().lower()


def spelled_after_counting(
    dataset: Table, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: counts a user once for each city, and only then finds that Rome and ROME are one.

    A user who spells Rome in three ways moves its count by 3, where noise is for one user in two
    cities: the true ε is 1.5ε. Harmless: a user who spells a city in one way, or one city in two.
    """
    once = {(_user(row), _city(row)) for row in dataset}
    cities = [_spelled(city) for _, city in once]
    return noisy([cities.count(one) for one in _SPELLED], len(_SPELLED) / epsilon, size, rng)


def spelled_before_counting(
    dataset: Table, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: however a city is spelled, a user counts once for it."""
    once = {(_user(row), _spelled(_city(row))) for row in dataset}
    cities = [city for _, city in once]
    return noisy([cities.count(one) for one in _SPELLED], len(_SPELLED) / epsilon, size, rng)
