"""Whether two inputs are equal, and digests, which tell whether one has changed."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any

import numpy as np

from dpaudit.inputs.records import comparable, is_scalar
from dpaudit.outcomes.frames import content


def are_equal(d1: Any, d2: Any) -> bool:
    if isinstance(d1, np.ndarray) and isinstance(d2, np.ndarray):
        floats = d1.dtype.kind in "fc" and d2.dtype.kind in "fc"
        if not np.array_equal(d1, d2, equal_nan=floats):
            return False
        # −0.0 is equal to 0.0, but mechanisms may tell them apart.
        return not floats or bool(np.all((np.signbit(d1.real) == np.signbit(d2.real)) | (d1 != 0)))
    if isinstance(d1, list | tuple | dict) and type(d1) is type(d2):
        return comparable(d1) == comparable(d2)
    if is_scalar(d1) and is_scalar(d2):
        return bool(comparable(d1) == comparable(d2))
    digest = fingerprint(d1)
    return type(d1) is type(d2) and digest is not None and digest == fingerprint(d2)


def fingerprint(dataset: Any) -> str | None:
    """Return a digest that changes when a mechanism changes its input; None when there is none.

    NumPy arrays: type, shape and bytes; pandas objects: the hash of every row; others: the pickle.
    """
    with suppress(Exception):  # whatever cannot be pickled or hashed has no digest
        digest = hashlib.blake2b(digest_size=16)
        for part in _digestible(dataset):
            digest.update(part)
        return digest.hexdigest()
    return None


def _digestible(dataset: Any) -> list[bytes]:
    if isinstance(dataset, np.ndarray) and dataset.dtype != object:
        return [
            repr((dataset.dtype, dataset.shape)).encode(),
            np.ascontiguousarray(dataset).tobytes(),
        ]
    return [content(dataset)]
