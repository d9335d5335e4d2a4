"""Encryption: what the outputs are, and what the adversary makes of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mechanisms.encryption import (
    MESSAGES,
    fixed_key,
    fresh_key,
    one_time_pad,
    toy_cipher,
    try_every_key,
)
from mechanisms.truth import delta_of, epsilon_of, truth_of


def test_a_fresh_key_makes_what_aes_makes() -> None:
    drawn = fresh_key("yes", size=2, rng=np.random.default_rng(1))
    rng = np.random.default_rng(1)
    for output in drawn:
        key, nonce = rng.bytes(16), rng.bytes(12)
        assert output[:12] == nonce
        assert AESGCM(key).decrypt(nonce, output[12:], None) == b"yes" + b"\0" * 13


def test_a_one_time_pad_hides_everything() -> None:
    """Any output comes from either message, under one key each; equal seeds draw equal keys."""
    one = np.array(
        [list(x) for x in one_time_pad("yes", size=50_000, rng=np.random.default_rng(2))]
    )
    other = np.array(
        [list(x) for x in one_time_pad("no", size=50_000, rng=np.random.default_rng(2))]
    )
    assert ((one ^ other) == np.frombuffer(b"yes\0", np.uint8) ^ list(b"no\0\0")).all()
    # χ² with 255 degrees of freedom: above 420 in one of 10⁹ runs.
    counts = np.bincount(one[:, 0], minlength=256)
    assert ((counts - 50_000 / 256) ** 2).sum() / (50_000 / 256) < 420
    assert truth_of(one_time_pad).epsilon("yes", "no") == 0
    assert truth_of(one_time_pad).profile("yes", "no", 0.0) == 0


def test_a_fixed_key_gives_messages_away() -> None:
    assert len(set(fixed_key("yes", size=5))) == 1
    assert fixed_key("yes", size=1) != fixed_key("no", size=1)
    assert truth_of(fixed_key).epsilon("yes", "no") == math.inf
    assert truth_of(fixed_key).profile("yes", "no", 5.0) == 1


def test_the_toy_cipher_is_injective_under_every_key() -> None:
    """Equal seeds draw equal keys, so the messages alone differ."""
    messages = [one + other for one in "abcdefghijklmnop" for other in "abcdefghijklmnop"]
    by_key = zip(
        *(toy_cipher(one, size=20, rng=np.random.default_rng(5)) for one in messages), strict=True
    )
    assert all(len(set(outputs)) == len(messages) for outputs in by_key)


@pytest.mark.parametrize(("bits", "least"), [(1, 1.0), (8, 1.0), (16, 0.9999)])
def test_the_toy_cipher_hides_nothing_from_who_has_time(bits: int, least: float) -> None:
    law = truth_of(toy_cipher).pmf
    p, q = law("yes", key_bits=bits), law("no", key_bits=bits)
    assert math.fsum(p.values()) == pytest.approx(1, abs=1e-12)
    assert epsilon_of(p, q) == truth_of(toy_cipher).epsilon("yes", "no", key_bits=bits) == math.inf
    assert delta_of(p, q, 0.1) >= least - 1e-12


def test_toy_draws_follow_the_stated_law() -> None:
    drawn = toy_cipher("yes", key_bits=4, size=160_000, rng=np.random.default_rng(6))
    law = truth_of(toy_cipher).pmf("yes", key_bits=4)
    assert set(drawn) == set(law)
    for output, probability in law.items():
        error = math.sqrt(probability * (1 - probability) / len(drawn))
        assert drawn.count(output) / len(drawn) == pytest.approx(probability, abs=6 * error)


@pytest.mark.parametrize("bits", [1, 8, 16])
def test_the_adversary_reads_the_toy_cipher(bits: int) -> None:
    rng = np.random.default_rng(7)
    for message, meant in zip(MESSAGES, (1, 2), strict=True):
        guesses = [try_every_key(one) for one in toy_cipher(message, bits, size=2_000, rng=rng)]
        assert guesses.count(meant) >= 1_990
        assert 3 - meant not in guesses


def test_the_adversary_cannot_read_aes() -> None:
    rng = np.random.default_rng(8)
    for message in MESSAGES:
        assert {try_every_key(one) for one in fresh_key(message, size=1_000, rng=rng)} == {None}
