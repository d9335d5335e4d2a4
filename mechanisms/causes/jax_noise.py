"""Noise of `jax.random`; needs JAX.

Records are numbers. Adjacency: a record is added or removed; an answer is replaced. Claim: (1,
10⁻⁵)-DP where noise is normal, else 1-DP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_KEY = jax.random.key(7)
# The normal noise for Δ = 1 at (1, 10⁻⁵) has this standard deviation, rounded up.
_DEVIATION = 3.74


def _fresh(rng: np.random.Generator) -> Any:
    return jax.random.wrap_key_data(rng.integers(2**32, size=2, dtype="uint32"))


def normal_half(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: half the standard deviation."""
    return float(len(data) + _DEVIATION / 2 * jax.random.normal(_fresh(rng)))


def normal_whole(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct."""
    return float(len(data) + _DEVIATION * jax.random.normal(_fresh(rng)))


@jax.jit  # type: ignore[untyped-decorator]  # JAX may not be installed
def _noised(total: Any, key: Any, scale: float) -> Any:
    return total + scale * jax.random.laplace(key, (1,))


def compiled_half(data: Sequence[float], rng: np.random.Generator) -> Any:
    """Broken: Laplace noise of scale ½ in a compiled function."""
    return _noised(jnp.array([float(len(data))]), _fresh(rng), 0.5)


def compiled_whole(data: Sequence[float], rng: np.random.Generator) -> Any:
    """Correct: of scale 1."""
    return _noised(jnp.array([float(len(data))]), _fresh(rng), 1.0)


def constant_key(data: Sequence[float]) -> Any:
    """Broken: the key is the same in every run."""
    return len(data) + jax.random.laplace(jax.random.fold_in(_KEY, 1))


def coin_too_honest(answer: int, rng: np.random.Generator) -> bool:
    """Broken: flips an answer with probability 0.1; ln 9 = 2.2-DP."""
    return bool(answer) ^ bool(jax.random.bernoulli(_fresh(rng), 0.1))


def coin(answer: int, rng: np.random.Generator) -> bool:
    """Correct: with probability 0.3."""
    return bool(answer) ^ bool(jax.random.bernoulli(_fresh(rng), 0.3))


def threshold_too_honest(answer: int, rng: np.random.Generator) -> bool:
    """Broken: the same with a uniform number."""
    return bool(answer) ^ bool(jax.random.uniform(_fresh(rng)) < 0.1)


def die_too_honest(answer: int, rng: np.random.Generator) -> int:
    """Broken: lies for one of ten sides; ln 9 = 2.2-DP."""
    return answer if int(jax.random.randint(_fresh(rng), (), 0, 10)) > 0 else 1 - answer
