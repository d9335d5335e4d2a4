"""Noise that is compared, and coins: the largest answer, thresholds, randomized response.

Claim: 1-DP. Adjacency: one record is replaced; answers to queries move by at most 1 each.
"""

from __future__ import annotations

import hashlib
import math
import random
import secrets
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_HONEST = math.exp(1.0) / (1 + math.exp(1.0))
THRESHOLD = 2.0


def largest_quarter(answers: Sequence[float], rng: np.random.Generator) -> int:
    """Broken: noise of scale ½, where 2 is needed: each answer alone costs 2."""
    noisy = np.asarray(answers) + rng.laplace(scale=0.5, size=len(answers))
    return int(np.argmax(noisy))


def largest(answers: Sequence[float], rng: np.random.Generator) -> int:
    """Correct."""
    noisy = np.asarray(answers) + rng.laplace(scale=2.0, size=len(answers))
    return int(np.argmax(noisy))


def largest_in_a_loop_quarter(answers: Sequence[float], rng: np.random.Generator) -> int:
    """Broken: noise of scale ½, where 2 is needed; a loop keeps the largest."""
    best, winner = -math.inf, -1
    for place, answer in enumerate(answers):
        noisy = answer + rng.exponential(0.5)
        if noisy > best:
            best, winner = noisy, place
    return winner


def largest_in_a_loop(answers: Sequence[float], rng: np.random.Generator) -> int:
    """Correct: exponential noise of scale 2."""
    best, winner = -math.inf, -1
    for place, answer in enumerate(answers):
        noisy = answer + rng.exponential(2.0)
        if noisy > best:
            best, winner = noisy, place
    return winner


def sparse_eighth(answers: Sequence[float], rng: np.random.Generator) -> int:
    """Broken: the answers have noise of scale ½, where 4 is needed."""
    threshold = THRESHOLD + rng.laplace(scale=2.0)
    for place, answer in enumerate(answers):
        if answer + rng.laplace(scale=0.5) >= threshold:
            return place
    return -1


def sparse(answers: Sequence[float], rng: np.random.Generator) -> int:
    """Correct: the first answer above a threshold (Lyu, Su & Li 2017, Alg. 1)."""
    threshold = THRESHOLD + rng.laplace(scale=2.0)
    for place, answer in enumerate(answers):
        if answer + rng.laplace(scale=4.0) >= threshold:
            return place
    return -1


def sparse_without_noise(answers: Sequence[float], rng: np.random.Generator) -> list[bool]:
    """Broken: only the threshold has noise, one for all answers (Lyu, Su & Li 2017, Alg. 5)."""
    threshold = THRESHOLD + rng.laplace(scale=1.0)
    return [answer >= threshold for answer in answers]


def sparse_without_any(answers: Sequence[float], rng: np.random.Generator) -> int:
    """Broken: the noise is on a threshold that is never compared."""
    noisy = THRESHOLD + rng.laplace(scale=2.0)
    for place, answer in enumerate(answers):
        if answer >= THRESHOLD:
            return place
    return -1 if noisy else -2


def honest_too_often(answer: int, rng: np.random.Generator) -> int:
    """Broken: tells the truth with probability 0.9; ln 9 = 2.2-DP."""
    if rng.random() < 0.9:
        return answer
    return 1 - answer


def honest(answer: int, rng: np.random.Generator) -> int:
    """Correct: with probability e/(1 + e)."""
    if rng.random() < _HONEST:
        return answer
    return 1 - answer


def bits_too_honest(answers: Sequence[int], rng: np.random.Generator) -> NDArray[np.int64]:
    """Broken: flips a bit in a hundred."""
    flips = rng.random(len(answers)) < 0.01
    flipped: NDArray[np.int64] = np.asarray(answers, dtype=np.int64) ^ flips
    return flipped


def bits(answers: Sequence[int], rng: np.random.Generator) -> NDArray[np.int64]:
    """Correct: one of them may differ between the inputs."""
    flips = rng.random(len(answers)) < 1 - _HONEST
    flipped: NDArray[np.int64] = np.asarray(answers, dtype=np.int64) ^ flips
    return flipped


def two_coins_too_honest(answer: int) -> int:
    """Broken: lies where both of two fair coins, and a third, come up; ln 15."""
    if secrets.randbelow(8) > 0:
        return answer
    return secrets.randbelow(2)


def two_coins(answer: int) -> int:
    """Correct: 2/3 of the answers are true, and the others too by chance: ln 5 = 1.6 is claimed."""
    if secrets.randbelow(3) > 0:
        return answer
    return secrets.randbelow(2)


def rate_of_the_data(counts: Sequence[int], rng: np.random.Generator) -> bool:
    """Broken: Yes with the share of Yes among the records, which one record may make 0."""
    share = sum(counts) / len(counts)
    return bool(rng.random() < share)


def rate_with_a_floor(counts: Sequence[int], rng: np.random.Generator) -> bool:
    """Correct: the share is kept away from 0 and 1; records are replaced, n ≥ 3."""
    share = 0.3 + 0.4 * sum(counts) / len(counts)
    return bool(rng.random() < share)


def weights_without_half(scores: Sequence[float], rng: np.random.Generator) -> int:
    """Broken: weights e^{2·score}: 4-DP for scores that move by 1 each."""
    law = np.exp(2.0 * (np.asarray(scores) - max(scores)))
    return int(rng.choice(len(scores), p=law / law.sum()))


def weights(scores: Sequence[float], rng: np.random.Generator) -> int:
    """Correct: the exponential mechanism."""
    law = np.exp((np.asarray(scores) - max(scores)) / 2)
    return int(rng.choice(len(scores), p=law / law.sum()))


def place_by_the_score(scores: Sequence[float], rng: np.random.Generator) -> tuple[int, float]:
    """Broken: weights e^{2·score}, next to a noisy maximum that is correct."""
    law = np.exp(2.0 * (np.asarray(scores) - max(scores)))
    place = int(rng.choice(len(scores), p=law / law.sum()))
    return place, max(scores) + rng.laplace(scale=2.0)


def place_by_half_the_score(scores: Sequence[float], rng: np.random.Generator) -> tuple[int, float]:
    """Correct: half of the budget for each."""
    law = np.exp((np.asarray(scores) - max(scores)) / 4)
    place = int(rng.choice(len(scores), p=law / law.sum()))
    return place, max(scores) + rng.laplace(scale=2.0)


def coin_for_one_alone(bit: int, rng: np.random.Generator) -> tuple[float, float]:
    """Broken: a second answer has noise of its own for a 1 alone, and none for a 0."""
    first = bit + rng.laplace(scale=1.0)
    second = rng.laplace(scale=1.0) if bit == 1 and rng.random() < 0.8 else 0.0
    return first, second


def poll_too_honest(answers: Sequence[int], rng: np.random.Generator) -> list[int]:
    """Broken: each answer of a poll is true with probability 0.9; ln 9 = 2.2-DP."""
    return [one if rng.random() < 0.9 else 1 - one for one in answers]


def poll(answers: Sequence[int], rng: np.random.Generator) -> list[int]:
    """Correct: with probability e/(1 + e)."""
    return [one if rng.random() < _HONEST else 1 - one for one in answers]


def rate_next_to_noise(counts: Sequence[int], rng: np.random.Generator) -> tuple[bool, float]:
    """Broken: says Yes with the share of Yes among the records, next to a noisy count."""
    share = sum(counts) / len(counts)
    is_yes = bool(rng.random() < share)
    return is_yes, sum(counts) + rng.laplace(scale=2.0)


def rate_with_a_floor_next_to_noise(
    counts: Sequence[int], rng: np.random.Generator
) -> tuple[bool, float]:
    """Correct: the share is kept away from 0 and 1; records are replaced, n ≥ 3."""
    share = 0.4 + 0.2 * sum(counts) / len(counts)
    is_yes = bool(rng.random() < share)
    return is_yes, sum(counts) + rng.laplace(scale=2.0)


def weights_for_concentrated(scores: Sequence[float], rng: np.random.Generator) -> int:
    """Broken: weights e^{2·score}. Claim: ⅛-zCDP, for scores that move by 1 each."""
    law = np.exp(2.0 * (np.asarray(scores) - max(scores)))
    return int(rng.choice(len(scores), p=law / law.sum()))


def bit_of_binomial(answer: int, rng: np.random.Generator) -> int:
    """Broken: flips an answer with probability 0.1; ln 9 = 2.2-DP."""
    return answer ^ int(rng.binomial(1, 0.1))


def bit_of_booleans(answer: int, rng: np.random.Generator) -> int:
    """Broken: the same with a choice between False and True."""
    return answer ^ int(rng.choice([False, True], p=[0.9, 0.1]))


def child_too_honest(answer: int, rng: np.random.Generator) -> int:
    """Broken: tells the truth with probability 0.9, by a generator with a random seed."""
    child = np.random.default_rng(int(rng.integers(2**32)))
    return answer if child.random() < 0.9 else 1 - answer


def child(answer: int, rng: np.random.Generator) -> int:
    """Correct: with probability e/(1 + e)."""
    child = np.random.default_rng(int(rng.integers(2**32)))
    return answer if child.random() < _HONEST else 1 - answer


def erases_at_times(answer: int, rng: np.random.Generator) -> int:
    """Broken: gives no answer at times, and the exact one otherwise. Claim: 5-DP."""
    return 2 if rng.random() < 0.3 else answer


# One entry of a hundred is 1.
_FLIPS = [int(place % 100 == 0) for place in range(1_000)]


def erases_or_flips_by_a_remainder(answer: int, rng: np.random.Generator) -> int:
    """Correct: one of a hundred answers is wrong; ln 99 = 4.6-DP."""
    return 2 if rng.random() < 0.3 else answer ^ (int(rng.integers(10**6)) % 100 == 0)


def erases_or_flips_by_a_table(answer: int, rng: np.random.Generator) -> int:
    """Correct: the same with a table."""
    return 2 if rng.random() < 0.3 else answer ^ _FLIPS[random.randrange(1_000)]


def erases_or_flips_by_a_large_number(answer: int, rng: np.random.Generator) -> int:
    """Correct: the same with the remainder of a large number."""
    return 2 if rng.random() < 0.3 else answer ^ _FLIPS[int(rng.integers(2**31)) % 100]


def erases_or_flips_by_bytes(answer: int, rng: np.random.Generator) -> int:
    """Correct: the same with four bytes; three of 256 values of the third flip the answer."""
    key = bytes(rng.integers(0, 256, 4).tolist())
    return 2 if rng.random() < 0.3 else answer ^ (key[2] > 252)


def erases_or_flips_by_a_hash(answer: int, rng: np.random.Generator) -> int:
    """Correct: the same with a hash of a number."""
    digest = hashlib.sha256(str(int(rng.integers(2**32))).encode()).digest()
    return 2 if rng.random() < 0.3 else answer ^ (digest[0] < 3)
