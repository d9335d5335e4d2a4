"""How near an audit comes to an oracle where much that tells nothing hides what tells a little.

python -m benchmarks.mixtures [--only NAME]... [--draws 4000000] [--seeds 5] [--processes 2]

Efficiency is that of benchmarks/efficiency.py. Few outcomes tell anything here, or many a little,
and only a budget of millions of draws shows which.
"""

from __future__ import annotations

import argparse
import math
from functools import partial

import numpy as np

from benchmarks import known_laws as laws
from benchmarks import log_ratios as ratios
from benchmarks.efficiency import chosen, shares
from benchmarks.oracle import FloatArray, RatioLaw
from benchmarks.specimens import Specimen
from benchmarks.two_sparse_vectors import (
    two_sparse_vectors,
    two_sparse_vectors_law,
    two_sparse_vectors_ratio,
)
from mechanisms.local import kary_randomized_response
from mechanisms.truth import truth_of

DRAWS = 4_000_000
# Probabilities of the two outcomes that tell; the rest is shared by others in these proportions.
BEST, NEXT = (0.0168, 0.0140), (0.0599, 0.0523)
SILENT = np.arange(9.0, 0.0, -1.0)
# One outcome has most of the mass and tells nothing; all others tell as much.
COMMON, LEAK, EACH = 0.9, 0.1, 5
VALUES, EPSILON = 1_000, 0.5
# Half of the answers are larger by one on either input.
HALF = 17
QUERIES = ((1.0,) * HALF + (0.0,) * HALF, (0.0,) * HALF + (1.0,) * HALF)
# Of two sparse vectors side by side: the answers that their peers are audited on.
ANSWERS = (1.0,) * 10, (2.0,) * 5 + (0.0,) * 5


def specimens() -> tuple[Specimen, ...]:
    """Return all of them, claimed at the ε that they have, if it is known."""
    k = range(VALUES)
    pmf = truth_of(kary_randomized_response).pmf
    p, q = (pmf(one, possible_outputs=k, epsilon=EPSILON) for one in (0, 1))
    return (
        _table("two of 11 outcomes tell", _two_that_tell()),
        _table("a tenth of the mass tells", _tenth()),
        Specimen(
            f"k-RR, k = {VALUES}, ε = {EPSILON:g}",
            partial(kary_randomized_response, possible_outputs=k, epsilon=EPSILON),
            0,
            1,
            partial(RatioLaw.of_pmfs, p, q),
            partial(ratios.table_ratio, p, q),
        ),
        _sparse_vector(1),
        _sparse_vector(3),
        Specimen(
            "two sparse vectors side by side",
            partial(two_sparse_vectors, epsilon=0.1, stops_after=2),
            *ANSWERS,
            partial(two_sparse_vectors_law, *ANSWERS, 0.1, 2),
            partial(two_sparse_vectors_ratio, *ANSWERS, 0.1, 2),
            claimed=0.2,
        ),
    )


def _sparse_vector(above: int) -> Specimen:
    return Specimen(
        f"sparse vector, {2 * HALF} columns, {above} above",
        partial(laws.sparse_vector, epsilon=1.0, stops_after=above),
        *QUERIES,
        partial(laws.sparse_vector_law, *QUERIES, 1.0, above),
        partial(ratios.sparse_vector_ratio, *QUERIES, 1.0, above),
    )


def _two_that_tell() -> FloatArray:
    """Return (outcomes, 2) probabilities: what is left tells next to nothing."""
    telling = np.array([BEST, NEXT])
    rest = SILENT[:, None] / SILENT.sum() * (1 - telling.sum(axis=0))
    return np.concatenate([telling, rest])


def _tenth() -> FloatArray:
    """Return (outcomes, 2) probabilities: half of the others are likelier on either input."""
    share = 1 / (1 + np.exp(-LEAK))
    pair = (1 - COMMON) / EACH * np.array([[share, 1 - share], [1 - share, share]])
    return np.concatenate([[[COMMON, COMMON]], *([pair] * EACH)])


def _table(name: str, masses: FloatArray) -> Specimen:
    """Return the specimen of a table of probabilities, (outcomes, 2), of either input."""
    p, q = (dict(enumerate(one)) for one in masses.T.tolist())
    law, ratio = partial(RatioLaw.of_pmfs, p, q), partial(ratios.table_ratio, p, q)
    return Specimen(name, partial(_drawn, masses=masses), 0, 1, law, ratio)


def _drawn(dataset: int, masses: FloatArray, *, size: int, rng: np.random.Generator) -> FloatArray:
    upto = np.cumsum(masses[:, dataset])
    return np.searchsorted(upto[:-1], rng.random(size), side="right").astype(np.float64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    some = chosen(given.only, specimens())
    for text in shares(some, given.draws, given.seeds, math.inf, given.processes):
        print(text, flush=True)


if __name__ == "__main__":
    main()
