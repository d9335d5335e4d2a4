"""Clients of pure-LDP whose constructors need hash functions, for `make watch`.

Each factory returns a function of a value, which is what the client's `privatise` takes. The
servers of pure-LDP make the hash functions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

VALUES = 4
_STRINGS = ("00", "01", "10", "11")
Report = Callable[[Any], Any]


def _oracles() -> Any:
    return import_module("pure_ldp.frequency_oracles")


def local_hashing(epsilon: float = 1.0, use_olh: bool = False) -> Report:
    """Return `LHClient` with the values that its report supports, by the hash of the server."""
    client = _oracles().LHClient(epsilon, VALUES, use_olh=use_olh)
    xxhash = import_module("xxhash")

    def report(value: int) -> list[bool]:
        bucket, seed = client.privatise(value)
        hashes = (xxhash.xxh32(str(index), seed=seed).intdigest() for index in range(VALUES))
        return [hashed % client.g == bucket for hashed in hashes]

    return report


def hadamard_response(epsilon: float = 1.0) -> Report:
    """Return `HadamardResponseClient`."""
    server = _oracles().HadamardResponseServer(epsilon, VALUES)
    client = _oracles().HadamardResponseClient(epsilon, VALUES, server.get_hash_funcs())
    return client.privatise  # type: ignore[no-any-return]  # a method of the library


def hadamard_mechanism(epsilon: float = 1.0, t: int = 2) -> Report:
    """Return `HadamardMechClient`, whose report is a list or a zip."""
    client = _oracles().HadamardMechClient(epsilon, VALUES, t)
    return lambda value: list(client.privatise(value))


def rappor(f: float = 0.5, hashes: int = 2, epsilon: float | None = None) -> Report:
    """Return `RAPPORClient` with 8 bits and 2 cohorts.

    The hash functions are public, and the same in every process: each value has bits of its own. A
    server would draw them at random when it is made.

    f: its noise. epsilon: sets f by `convert_eps_to_f`.
    """
    oracle = _oracles().RAPPORClient
    if epsilon is not None:
        f = oracle(f, 8, []).convert_eps_to_f(epsilon)
    functions = [partial(_bit, place=place, hashes=hashes) for place in range(hashes)]
    client = oracle(f, 8, [functions, functions], num_of_cohorts=2)
    return client.privatise  # type: ignore[no-any-return]  # a method of the library


def _bit(text: str, *, place: int, hashes: int) -> int:
    return (int(text) * hashes + place) % 8


def count_mean_sketch(epsilon: float = 1.0, is_hadamard: bool = False) -> Report:
    """Return `CMSClient` with 2 hash functions to 4 buckets."""
    server = _oracles().CMSServer(epsilon, 2, 4, is_hadamard=is_hadamard)
    client = _oracles().CMSClient(epsilon, server.hash_funcs, 4, is_hadamard=is_hadamard)
    return client.privatise  # type: ignore[no-any-return]  # a method of the library


def count_sketch(epsilon: float = 1.0) -> Report:
    """Return `PCSClient` with 2 hash functions to 4 buckets."""
    server = _oracles().PCSServer(epsilon, 2, 4)
    client = _oracles().PCSClient(epsilon, 2, 4, server.get_hash_funcs())
    return client.privatise  # type: ignore[no-any-return]  # a method of the library


def sketch_response(epsilon: float = 1.0) -> Report:
    """Return `SketchResponseClient` with 2 hash functions to 4 buckets, and local hashing."""
    hashes = import_module("pure_ldp.core").generate_hash_funcs(2, 4)
    client = _oracles().SketchResponseClient(epsilon, 4, hashes, lh_k=2)
    return client.privatise  # type: ignore[no-any-return]  # a method of the library


def heavy_hitters(kind: str, epsilon: float = 1.0) -> Report:
    """Return a client for strings of two bits, which reports with `CMSClient`.

    kind: "PEMClient", "SFPClient" or "TreeHistClient".
    """
    server = _oracles().CMSServer(epsilon, 2, 4)
    oracle = _oracles().CMSClient(epsilon, server.hash_funcs, 4)
    start = {"start_length": 0} if kind == "PEMClient" else {}
    client = getattr(import_module("pure_ldp.heavy_hitters"), kind)(
        epsilon=epsilon,
        max_string_length=2,
        fragment_length=1,
        alphabet=["0", "1"],
        fo_client=oracle,
        **start,
    )
    return lambda value: client.privatise(_STRINGS[value - 1])
