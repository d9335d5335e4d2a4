"""Random streams: one root seed, and for every chunk of draws its own children."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.sampling.generators import RandomSource, reseed, reseed_globals


@dataclass(frozen=True, slots=True)
class ChunkStreams:
    """The streams of one chunk: for the coins, and for the mechanism's `rng`."""

    coins: np.random.Generator
    mechanism: np.random.Generator


def chunk_streams(seed: int, key: Sequence[int], carried: Sequence[RandomSource]) -> ChunkStreams:
    """Return the streams of the chunk `key` (any integers ≥ 0 that no other chunk has), with every
    generator seeded that a mechanism could draw from besides: the global ones, and those that it
    carries. No two are alike.
    """
    coins, mechanism, for_globals, for_carried = (
        np.random.SeedSequence(seed, spawn_key=(*key, purpose)) for purpose in range(4)
    )
    reseed_globals(for_globals)
    reseed(carried, for_carried)
    return ChunkStreams(np.random.default_rng(coins), np.random.default_rng(mechanism))
