"""Encryption: computationally differentially private when it is done well, and hardly ever more.

Whoever has all the time in the world tries every key, unless there are as many as messages
(`one_time_pad`). `toy_cipher` has so few that anybody can; AES has not. `try_every_key` is that
adversary: it reads the toy cipher's outputs, and no other's.

Adjacency: replace, one message for any other.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.truth import satisfies

# What an adversary knows beforehand: the answer is one of these.
MESSAGES = ("yes", "no")

_AES_BLOCK, _NONCE, _KEY = 16, 12, 16
_TOY_BLOCK, _TOY_BITS, _TOY_ROUNDS = 4, 16, 8


def _seal(message: bytes, key: bytes, nonce: bytes) -> bytes:
    # Needed for AES only: the other specimens import without it.
    aead: Any = import_module("cryptography.hazmat.primitives.ciphers.aead")
    sealed: bytes = nonce + aead.AESGCM(key).encrypt(nonce, message, None)
    return sealed


def _padded(message: str, block: int) -> bytes:
    """Return the message in full blocks, so that its length tells nothing."""
    raw = message.encode()
    return raw.ljust(-(-max(1, len(raw)) // block) * block, b"\0")


def _fresh(message: bytes, size: int, rng: np.random.Generator) -> list[bytes]:
    return [_seal(message, rng.bytes(_KEY), rng.bytes(_NONCE)) for _ in range(size)]


def _none_unless_equal(d1: str, d2: str) -> float:
    return 0.0 if d1 == d2 else float("inf")


@satisfies("none", epsilon=_none_unless_equal)
def fresh_key(dataset: str, *, size: int, rng: np.random.Generator) -> list[bytes]:
    """Correct: AES-128-GCM of the padded message, with a fresh key and nonce each time.

    Not (ε, δ)-DP for any ε: nearly every output belongs to one message only, since there are 2¹²⁸
    keys for the 2²⁵⁶ outputs of a block. Computationally DP as far as anybody knows.
    """
    return _fresh(_padded(dataset, _AES_BLOCK), size, rng)


@satisfies("none", epsilon=_none_unless_equal)
def unpadded(dataset: str, *, size: int, rng: np.random.Generator) -> list[bytes]:
    """Broken: as `fresh_key`, without padding: the length tells Yes from No; ε = ∞."""
    return _fresh(dataset.encode(), size, rng)


def _nothing(d1: str, d2: str, *_: float) -> float:
    return 0.0


@satisfies("pure", epsilon=_nothing, profile=_nothing)
def one_time_pad(dataset: str, *, size: int, rng: np.random.Generator) -> list[bytes]:
    """Correct: the padded message XOR a fresh key of the same length; ε = 0.

    Every output is as likely for either message, whatever an adversary can compute (Shannon 1949).
    """
    message = np.frombuffer(_padded(dataset, _TOY_BLOCK), dtype=np.uint8)
    keys = rng.integers(0, 256, (size, len(message)), dtype=np.uint8)
    return [bytes(row) for row in message ^ keys]


def _fixed(message: str) -> bytes:
    return _seal(_padded(message, _AES_BLOCK), b"correct horse ba", b"\0" * _NONCE)


def _fixed_pmf(dataset: str) -> dict[bytes, float]:
    return {_fixed(dataset): 1.0}


@satisfies("none", pmf=_fixed_pmf)
def fixed_key(dataset: str, *, size: int) -> list[bytes]:
    """Broken: AES-128-GCM with one key and one nonce, fixed in the program; ε = ∞.

    The key is not needed: equal messages give equal outputs.
    """
    return [_fixed(dataset)] * size


def _toy(message: str, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the block of a message under each key: a Feistel network on two halves of 16 bits."""
    block = int.from_bytes(_padded(message, _TOY_BLOCK))
    if block >= 1 << 8 * _TOY_BLOCK:
        raise ValueError(f"message {message!r} is longer than the {_TOY_BLOCK} bytes of a block")
    left = np.full(len(keys), block >> 16, dtype=np.uint64)
    right = np.full(len(keys), block & 0xFFFF, dtype=np.uint64)
    for number in range(_TOY_ROUNDS):
        left, right = right, left ^ _scrambled(right, keys, number)
    return left << np.uint64(16) | right


def _scrambled(
    half: NDArray[np.uint64], keys: NDArray[np.uint64], number: int
) -> NDArray[np.uint64]:
    mixed = (half + keys * np.uint64(0x9E37) + np.uint64(number)) * np.uint64(0x85EBCA6B)
    return np.asarray((mixed >> np.uint64(13)) & np.uint64(0xFFFF), dtype=np.uint64)


def _as_bytes(blocks: NDArray[np.uint64]) -> list[bytes]:
    raw = blocks.astype(">u4").tobytes()
    return [raw[start : start + _TOY_BLOCK] for start in range(0, len(raw), _TOY_BLOCK)]


def _every_key(bits: int) -> NDArray[np.uint64]:
    if not 1 <= bits <= _TOY_BITS:
        raise ValueError(f"key_bits={bits!r} must lie between 1 and {_TOY_BITS}")
    return np.arange(1 << bits, dtype=np.uint64)


def _toy_pmf(dataset: str, key_bits: int) -> dict[bytes, float]:
    law: dict[bytes, float] = {}
    keys = _every_key(key_bits)
    for output in _as_bytes(_toy(dataset, keys)):
        law[output] = law.get(output, 0.0) + 1 / len(keys)
    return law


@satisfies("none", pmf=_toy_pmf)
def toy_cipher(
    dataset: str, key_bits: int = 8, *, size: int, rng: np.random.Generator
) -> list[bytes]:
    """Broken: a fresh key each time, but of at most 16 bits, so all can be tried; ε = ∞.

    With 8 bits each message has 256 outputs at most, and these repeat soon enough to be learnt.
    """
    keys = rng.choice(_every_key(key_bits), size)
    return _as_bytes(_toy(dataset, keys))


def try_every_key(output: bytes) -> int | None:
    """Return the input that a toy ciphertext belongs to: 1 for Yes, 2 for No, None if it is unsure.

    Sure are those that come from one of the two messages only, under whatever key.
    """
    return _codebook().get(output)


@lru_cache(maxsize=1)
def _codebook() -> dict[bytes, int]:
    first, second = (set(_as_bytes(_toy(one, _every_key(_TOY_BITS)))) for one in MESSAGES)
    return {**dict.fromkeys(first - second, 1), **dict.fromkeys(second - first, 2)}
