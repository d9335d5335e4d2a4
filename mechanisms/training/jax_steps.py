"""Steps of jax-privacy on a linear model, for configs/real/jax.yaml; needs JAX and jax-privacy.

A record is (features, target). Adjacency: a record is added or removed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jax_privacy
from jax_privacy import batch_selection, noise_addition

from dpaudit.training import jax_mechanism

_FEATURES = 4
_SIGMA = 2.0


def _loss(weights: Any, inputs: Any, targets: Any) -> Any:
    """Return the mean squared error of a linear model."""
    return jnp.mean((inputs @ weights - targets[:, 0]) ** 2)


def _privatizer(key: Any) -> Any:
    return noise_addition.gaussian_privatizer(stddev=_SIGMA, prng_key=key)


def _mean_clipped(weights: Any, inputs: Any, targets: Any) -> Any:
    """Return the gradient of the mean loss, clipped to norm 1, times the number of records."""
    gradient = jax.grad(_loss)(weights, inputs, targets)
    norm = jnp.linalg.norm(gradient)
    return gradient / jnp.maximum(norm, 1.0) * len(inputs)


_clipped = jax_privacy.clipped_grad(_loss, l2_clip_norm=1.0, batch_argnums=(1, 2))
_steps = partial(jax_mechanism, make_privatizer=_privatizer, params=jnp.zeros(_FEATURES))

# Correct: 1/σ-Gaussian DP for a step, and √k/σ-Gaussian DP for k steps.
one_step = _steps(_clipped)
three_steps = _steps(_clipped, steps=3)
poisson_step = _steps(
    _clipped, batches=batch_selection.CyclicPoissonSampling(sampling_prob=0.5, iterations=1)
)
# Broken: clips the mean gradient of the batch instead of the gradient of each record.
batch_clipped = _steps(_mean_clipped)
