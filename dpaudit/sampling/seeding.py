"""How a seed reaches the draws of a chunk: streams of its own, and seeds for every other generator
that a mechanism could draw from, which are restored afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

RandomSource = np.random.Generator | np.random.RandomState | random.Random


@dataclass(frozen=True, slots=True)
class ChunkStreams:
    """The streams of one chunk: for the coins, and for the mechanism's `rng`."""

    coins: np.random.Generator
    mechanism: np.random.Generator


def chunk_streams(seed: int, key: Sequence[int], carried: Sequence[RandomSource]) -> ChunkStreams:
    """Return the streams of a chunk, with every generator seeded that a mechanism could draw from
    besides: the global ones, and those that it carries. No two are alike."""
    coins, mechanism, for_globals = (
        np.random.SeedSequence(seed, spawn_key=(*key, purpose)) for purpose in range(3)
    )
    reseed_globals(for_globals)
    if carried:
        reseed(carried, np.random.SeedSequence(seed, spawn_key=(*key, 3)))
    return ChunkStreams(np.random.default_rng(coins), np.random.default_rng(mechanism))


def reseed(generators: Sequence[RandomSource], seeds: np.random.SeedSequence) -> None:
    """Re-seed each generator in place, from a child of `seeds` of its own."""
    for generator, child in zip(generators, seeds.spawn(len(generators)), strict=True):
        if isinstance(generator, np.random.Generator):
            bits = generator.bit_generator
            bits.state = type(bits)(child).state
        elif isinstance(generator, np.random.RandomState):
            generator.seed(child.generate_state(8))
        else:
            generator.seed(_integer(child.generate_state(8)))


def reseed_globals(seeds: np.random.SeedSequence) -> None:
    """Re-seed the global generators of `random` and `numpy.random`, not alike."""
    words = seeds.generate_state(16)
    random.seed(_integer(words[:8]))
    np.random.seed(words[8:])


@contextmanager
def preserved(generators: Sequence[RandomSource] = ()) -> Iterator[None]:
    """Restore both global generators, and those given, to their present state afterwards."""
    with ExitStack() as stack:
        stack.callback(random.setstate, random.getstate())
        stack.callback(np.random.set_state, np.random.get_state())
        for generator in generators:
            stack.callback(restorer(generator))
        yield


def restorer(generator: RandomSource) -> Callable[[], None]:
    """Return what brings a generator back to its present state."""
    if isinstance(generator, np.random.Generator):
        bits = generator.bit_generator
        return partial(setattr, bits, "state", bits.state)
    if isinstance(generator, np.random.RandomState):
        return partial(generator.set_state, generator.get_state(legacy=False))
    return partial(generator.setstate, generator.getstate())


def _integer(words: NDArray[np.unsignedinteger]) -> int:
    return int.from_bytes(words.tobytes(), "little")
