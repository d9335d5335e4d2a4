"""What is released without noise: a value, a way through the program, an exception; and noise that
is no noise.

Records are finite numbers, or 0, 1 and 2 where they are counted. Adjacency: a record is added or
removed, unless a docstring says more. Claim: 1-DP.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np


def with_the_count(data: Sequence[float], rng: np.random.Generator) -> tuple[float, int]:
    """Broken: the number of records goes with the noisy sum."""
    total = sum(min(max(one, 0.0), 1.0) for one in data)
    noisy = total + rng.laplace(scale=1.0)
    return noisy, len(data)


def with_a_noisy_count(data: Sequence[float], rng: np.random.Generator) -> tuple[float, float]:
    """Correct: both have noise, for half the budget each."""
    total = sum(min(max(one, 0.0), 1.0) for one in data)
    noisy = total + rng.laplace(scale=2.0)
    return noisy, len(data) + rng.laplace(scale=2.0)


def noise_on_a_copy(data: Sequence[int], rng: np.random.Generator) -> list[float]:
    """Broken: adds the noise to a copy, and returns the counts."""
    counts = np.bincount(data, minlength=3).astype(float)
    noisy = counts.copy()
    noisy += rng.laplace(size=3)
    return list(counts)


def noise_on_counts(data: Sequence[int], rng: np.random.Generator) -> list[float]:
    """Correct."""
    counts = np.bincount(data, minlength=3).astype(float)
    counts += rng.laplace(size=3)
    return list(counts)


def noise_beside_the_count(data: Sequence[float], rng: np.random.Generator) -> tuple[float, float]:
    """Broken: the noise goes with the noisy count, and their difference is the count."""
    noise = rng.laplace(scale=1.0)
    return noise, len(data) + noise


def other_noise_beside_the_count(
    data: Sequence[float], rng: np.random.Generator
) -> tuple[float, float]:
    """Correct: the noise that goes with the noisy count is in no other number."""
    return rng.laplace(scale=1.0), len(data) + rng.laplace(scale=1.0)


def noise_forgotten(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: draws noise, and returns the sum without it."""
    total = sum(min(max(one, 0.0), 1.0) for one in data)
    rng.laplace(scale=1.0)
    return total


def few_are_exact(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: small groups are suppressed by their true size."""
    if len(data) < 3:
        return 0.0
    return len(data) + rng.laplace(scale=1.0)


def few_are_noisy(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct: by their noisy size."""
    noisy = len(data) + rng.laplace(scale=1.0)
    return 0.0 if noisy < 3 else noisy


def noise_if_any(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: an empty input has no noise."""
    count = float(len(data))
    if count > 0:
        count += rng.laplace(scale=1.0)
    return count


def noise_always(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct."""
    count = float(len(data))
    count += rng.laplace(scale=1.0)
    return count


def keys_that_occur(data: Sequence[str], rng: np.random.Generator) -> dict[str, float]:
    """Broken: releases the keys that occur, whoever brought them."""
    counts = Counter(data)
    return {key: count + rng.laplace(scale=1.0) for key, count in sorted(counts.items())}


_KEYS = ("blue", "green", "red")


def keys_of_a_list(data: Sequence[str], rng: np.random.Generator) -> dict[str, float]:
    """Correct: the keys are known beforehand."""
    counts = Counter(data)
    return {key: counts[key] + rng.laplace(scale=1.0) for key in _KEYS}


def raises_for_large(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: refuses a record beyond the bound, and says which; a record may be replaced."""
    for one in data:
        if one > 1:
            raise ValueError(f"{one} is out of bounds")
    return sum(data) + rng.laplace(scale=1.0)


def divides_by_none(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: the mean of no records raises."""
    total = sum(min(max(one, 0.0), 1.0) for one in data)
    mean = total / len(data)
    return mean + rng.laplace(scale=1.0)


def mean_of_at_least_one(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct: the noise is for a mean that moves by up to 1."""
    total = sum(min(max(one, 0.0), 1.0) for one in data)
    mean = total / max(1, len(data))
    return mean + rng.laplace(scale=1.0)


def one_noise_for_two(data: Sequence[int], rng: np.random.Generator) -> tuple[float, float]:
    """Broken: the same noise on two counts, whose difference is exact."""
    noise = rng.laplace(scale=2.0)
    return len(data) + noise, sum(one > 0 for one in data) + noise


def noise_for_each(data: Sequence[int], rng: np.random.Generator) -> tuple[float, float]:
    """Correct."""
    first, second = rng.laplace(scale=2.0, size=2)
    return len(data) + first, sum(one > 0 for one in data) + second


def one_noise_for_all(data: Sequence[int], rng: np.random.Generator) -> list[float]:
    """Broken: one piece of noise on an array of counts."""
    counts = np.bincount(data, minlength=3)
    return list(counts + rng.laplace(scale=1.0))


def seeded(data: Sequence[float]) -> float:
    """Broken: the noise is the same in every run."""
    rng = np.random.default_rng(42)
    return len(data) + rng.laplace(scale=1.0)


def not_seeded(data: Sequence[float]) -> float:
    """Correct."""
    rng = np.random.default_rng()
    return len(data) + rng.laplace(scale=1.0)


def seeded_globally(data: Sequence[float]) -> float:
    """Broken: seeds the global generator in every call."""
    random.seed(1234)
    return len(data) + random.choice((-1, 1)) * random.expovariate(1.0)


def twice_exponential(data: Sequence[float]) -> float:
    """Correct: a sign and an exponential number are Laplace noise."""
    return len(data) + random.choice((-1, 1)) * random.expovariate(1.0)


def count_of_the_winner(votes: Sequence[int], rng: np.random.Generator) -> tuple[int, int]:
    """Broken: noise selects the winner, whose plain count is released; a record is removed."""
    winner = int(np.argmax(np.asarray(votes) + rng.laplace(scale=2.0, size=len(votes))))
    return winner, votes[winner]


def noisy_count_of_the_winner(votes: Sequence[int], rng: np.random.Generator) -> tuple[int, float]:
    """Correct: half of the budget selects, the other half hides the count."""
    winner = int(np.argmax(np.asarray(votes) + rng.laplace(scale=4.0, size=len(votes))))
    return winner, votes[winner] + rng.laplace(scale=2.0)


def raises_for_some_winners(votes: Sequence[int], rng: np.random.Generator) -> int:
    """Broken: raises where the winner has few votes, which depends on the noise and the data."""
    winner = int(np.argmax(np.asarray(votes) + rng.laplace(scale=2.0, size=len(votes))))
    if votes[winner] < 2:
        raise ValueError("too few votes")
    return winner


def winner_of_any_size(votes: Sequence[int], rng: np.random.Generator) -> int:
    """Correct."""
    return int(np.argmax(np.asarray(votes) + rng.laplace(scale=2.0, size=len(votes))))


def shows_the_sum_at_times(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: shows the sum without noise once in a thousand runs, for debugging."""
    total = sum(min(max(one, 0.0), 1.0) for one in data)
    if rng.random() < 0.001:
        return total
    return total + rng.laplace(scale=1.0)


def shows_nothing_at_times(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct: gives no answer once in a thousand runs."""
    total = sum(min(max(one, 0.0), 1.0) for one in data)
    if rng.random() < 0.001:
        return 0.0
    return total + rng.laplace(scale=1.0)


def count_of_swapped_votes(votes: Sequence[int], rng: np.random.Generator) -> tuple[int, int]:
    """Broken: the plain count of a noisy winner. A voter changes from one option to the other, so
    that both inputs have the same counts, in another order.
    """
    winner = int(np.argmax(np.asarray(votes) + rng.laplace(scale=2.0, size=len(votes))))
    return winner, votes[winner]


def says_that_it_clipped(data: Sequence[float], rng: np.random.Generator) -> dict[str, float]:
    """Broken: an entry says whether some record was clipped."""
    answer = {"total": sum(min(max(one, 0.0), 1.0) for one in data) + rng.laplace(scale=1.0)}
    if max(data, default=0.0) > 1.0:
        answer["clipped"] = 1.0
    return answer


def never_says_that_it_clipped(data: Sequence[float], rng: np.random.Generator) -> dict[str, float]:
    """Correct."""
    return {"total": sum(min(max(one, 0.0), 1.0) for one in data) + rng.laplace(scale=1.0)}


def checks_at_times(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: checks the records once in a thousand runs, and raises if one is out of bounds."""
    if rng.random() < 0.001 and max(data, default=0.0) > 1.0:
        raise ValueError("a record is out of bounds")
    return sum(min(max(one, 0.0), 1.0) for one in data) + rng.laplace(scale=1.0)


def untouched_start(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: without a positive record, the start is released as it is; ε = ∞."""
    start = rng.uniform(0.0, 1.0)
    inside = [one for one in data if one > start - 1]
    if not inside:
        return float(start)
    return sum(min(one, 1.0) for one in inside) + rng.laplace(scale=1.0)


def untouched_centers(data: Sequence[float], rng: np.random.Generator) -> list[float]:
    """Broken: the center of an empty group stays where it started; ε = ∞."""
    centers = [float(one) for one in rng.uniform(0.0, 1.0, size=2)]
    for index in range(2):
        own = [one for one in data if (one > 0.5) == bool(index)]
        if not own:
            continue
        centers[index] = min(sum(own), 1.0) + rng.laplace(scale=1.0)
    return centers


def two_branches(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct: both branches add the same noise to the number of records."""
    if len(data) > 1:
        return len(data) + rng.laplace(scale=1.0)
    return float(len(data)) - rng.laplace(scale=1.0)
