"""Random streams: one root seed, and for every chunk of draws its own children."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.sampling.generators import RandomSource, reseed, reseed_globals


@dataclass(frozen=True, slots=True)
class ChunkStreams:
    """The streams of one chunk: for the coins, for the mechanism's `rng`, for the global
    generators, and for those that the mechanism carries. No two are alike."""

    coins: np.random.Generator
    mechanism: np.random.Generator
    globals_: np.random.SeedSequence
    carried: np.random.SeedSequence


def chunk_streams(seed: int, key: Sequence[int]) -> ChunkStreams:
    """Return the streams of the chunk `key` (any integers ≥ 0 that no other chunk has)."""
    coins, mechanism, globals_, carried = (
        np.random.SeedSequence(seed, spawn_key=(*key, purpose)) for purpose in range(4)
    )
    return ChunkStreams(
        np.random.default_rng(coins), np.random.default_rng(mechanism), globals_, carried
    )


def prepare(streams: ChunkStreams, carried: Sequence[RandomSource]) -> None:
    """Seed every generator that a mechanism could draw from, other than the one it is handed."""
    reseed_globals(streams.globals_)
    if carried:
        reseed(carried, streams.carried)
