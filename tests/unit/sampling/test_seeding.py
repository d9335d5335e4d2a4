from __future__ import annotations

import random

import numpy as np

from dpaudit.sampling.generators import chunk_streams, preserved, reseed, reseed_globals


def test_reseeding_is_deterministic_and_different_for_each() -> None:
    generators = (
        np.random.default_rng(1),
        np.random.Generator(np.random.Philox(1)),
        np.random.RandomState(1),
        random.Random(1),
        random.Random(1),
    )

    def draws(seed: int) -> list[float]:
        reseed(generators, np.random.SeedSequence(seed))
        return [one.random() for one in generators]

    first = draws(5)
    assert draws(5) == first
    assert draws(6) != first
    assert len(set(first)) == len(generators)


def test_reseeding_forgets_a_cached_normal() -> None:
    generators = (np.random.RandomState(1), random.Random(1))

    def draws(waste: int) -> list[float]:
        for _ in range(waste):
            generators[0].normal()
            generators[1].gauss(0, 1)
        reseed(generators, np.random.SeedSequence(5))
        return [generators[0].normal(), generators[1].gauss(0, 1)]

    assert draws(0) == draws(1)


def test_globals_are_reseeded_and_restored() -> None:
    random.seed(1)
    np.random.seed(1)
    expected = (random.random(), np.random.random())
    random.seed(1)
    np.random.seed(1)
    with preserved():
        reseed_globals(np.random.SeedSequence(3))
        first = (random.random(), np.random.random())
        reseed_globals(np.random.SeedSequence(3))
        assert (random.random(), np.random.random()) == first
    assert (random.random(), np.random.random()) == expected


def test_the_draws_of_a_chunk_follow_from_seed_and_key_alone() -> None:
    carried = np.random.default_rng()

    def draws(seed: int, key: tuple[int, ...]) -> list[float]:
        streams = chunk_streams(seed, key, [carried])
        everything = (streams.coins, streams.mechanism, carried, random, np.random)
        return [one.random() for one in everything]

    with preserved():
        first = draws(5, (0, 1))
        assert draws(5, (0, 1)) == first
        assert len({*first, *draws(5, (0, 2)), *draws(6, (0, 1))}) == 3 * len(first)
