"""How a seed reaches the draws of a chunk: streams of its own, and seeds for every other generator
that a mechanism could draw from, which are restored afterwards."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import torch_use

# Or a generator of torch, which is never imported for this.
RandomSource = np.random.Generator | np.random.RandomState | random.Random


def is_generator(value: Any) -> bool:
    return isinstance(value, (RandomSource, *torch_use.generator_types()))


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
        elif isinstance(generator, random.Random):
            generator.seed(_integer(child.generate_state(8)))
        else:
            torch_use.seed(generator, _integer(child.generate_state(8)))


def reseed_globals(seeds: np.random.SeedSequence) -> None:
    """Re-seed the global generators of `random`, `numpy.random` and, where it is loaded, torch, no
    two alike."""
    words = seeds.generate_state(24)
    random.seed(_integer(words[:8]))
    np.random.seed(words[8:16])
    torch_use.seed_globally(_integer(words[16:]))


@contextmanager
def preserved(generators: Sequence[RandomSource] = ()) -> Iterator[None]:
    """Restore the global generators, and those given, to their present state afterwards."""
    with ExitStack() as stack:
        stack.callback(random.setstate, random.getstate())
        stack.callback(np.random.set_state, np.random.get_state())
        stack.callback(torch_use.global_restorer())
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
    if isinstance(generator, random.Random):
        return partial(generator.setstate, generator.getstate())
    return partial(generator.set_state, generator.get_state())


def _integer(words: NDArray[np.unsignedinteger]) -> int:
    return int.from_bytes(words.tobytes(), "little")
