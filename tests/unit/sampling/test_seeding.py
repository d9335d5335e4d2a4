"""Generators of a mechanism are found, seeded for each chunk, and restored."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np

from dpaudit.sampling.seeding import (
    carried_generators,
    chunk_streams,
    preserved,
    reseed,
    reseed_globals,
)
from tests.faulty import NoSeed

SHARED = np.random.default_rng(1)
LEGACY = np.random.RandomState(1)


def _inner(x: Any) -> float:
    return float(x + SHARED.normal())


def through_another_function(x: float) -> float:
    return max(_inner(one) for one in (x, x))


def through_a_nested_function(x: float) -> float:
    def nested() -> float:
        return x + float(LEGACY.normal())

    return nested()


def global_functions(x: float) -> float:
    return x + random.gauss(0, 1) + np.random.normal()


class Slotted:
    __slots__ = ("generator", "unset")

    def __init__(self) -> None:
        self.generator = random.Random(1)


class Noise:
    def __init__(self) -> None:
        self.parts: Any = [{"deep": (np.random.default_rng(2),)}, Slotted()]
        self.me = self

    def draw(self, x: float) -> float:
        return self._noise(x)

    def _noise(self, x: float) -> float:
        return x + float(SHARED.normal())


def test_module_globals_also_by_way_of_other_functions() -> None:
    assert carried_generators(through_another_function) == (SHARED,)
    assert carried_generators(through_a_nested_function) == (LEGACY,)


def test_attributes_slots_and_other_methods_of_the_bound_object() -> None:
    noise = Noise()
    found = carried_generators(noise.draw)
    assert noise.parts[0]["deep"][0] in found
    assert noise.parts[1].generator in found
    assert SHARED in found
    assert len(found) == 3


def test_closures_defaults_and_partial() -> None:
    own = np.random.default_rng(3)

    def with_default(x: float, rng: Any = own) -> float:
        return x + float(rng.normal())

    assert carried_generators(lambda x: x + own.normal()) == (own,)
    assert carried_generators(with_default) == (own,)
    assert carried_generators(partial(print, own)) == (own,)
    assert carried_generators(partial(_inner, x=own)) == (own, SHARED)
    assert carried_generators(own.normal) == (own,)


class Proxy:
    """Answers every attribute with another proxy, as functions of llvmlite do."""

    __slots__ = ("generator",)

    @property
    def __dict__(self) -> Any:  # type: ignore[override]  # an attribute that is no dict
        return Proxy()


def test_an_object_whose_attributes_are_no_mapping_has_its_slots() -> None:
    proxy = Proxy()
    proxy.generator = own = np.random.default_rng(3)  # type: ignore[attr-defined]  # a slot
    assert carried_generators(lambda x: (x, proxy)) == (own,)


def test_the_global_generators_and_the_operating_system_are_left_out() -> None:
    system = random.SystemRandom()
    assert carried_generators(global_functions) == ()
    assert carried_generators(random.gauss) == ()
    assert carried_generators(np.random.laplace) == ()
    assert carried_generators(lambda x: x + system.random()) == ()


def test_every_generator_once_and_library_code_not_searched() -> None:
    assert carried_generators(_inner, _inner, SHARED.normal) == (SHARED,)
    assert carried_generators(print) == ()


class NoSeedBits(np.random.PCG64):
    """A BitGenerator of a hardware source: it takes no seed."""

    def __init__(self) -> None:
        super().__init__()


class NoStateBits(np.random.PCG64):
    @property  # type: ignore[misc]  # it could be set
    def state(self) -> Any:
        raise NotImplementedError("no state")


UNSEEDED: list[Any] = [
    NoSeed(),
    np.random.Generator(NoSeedBits()),
    np.random.Generator(NoStateBits()),
    np.random.RandomState(np.random.PCG64(1)),
    random.SystemRandom(),
]


def test_sources_that_take_no_seed_are_left_out() -> None:
    for source in UNSEEDED:
        assert carried_generators(partial(abs, source)) == ()
        # A generator next to it is found.
        assert carried_generators(partial(max, source, SHARED)) == (SHARED,)


def test_a_generator_behind_a_source_without_a_seed_is_found() -> None:
    own = random.Random(1)

    class Front(NoSeed):
        inner = own

    assert carried_generators(Front().random) == (own,)


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
