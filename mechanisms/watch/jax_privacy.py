"""Steps of jax-privacy with the loss of their event, for `make watch`; needs JAX and jax-privacy.

A record is (features, target). Adjacency: a record is added or removed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import dp_accounting
import jax.numpy as jnp
import jax_privacy
from jax_privacy import batch_selection, noise_addition

from dpaudit.training import jax_mechanism

_FEATURES = 4
_SIGMA = 1.0


def _loss(weights: Any, inputs: Any, targets: Any) -> Any:
    """Return the mean squared error of a linear model."""
    return jnp.mean((inputs @ weights - targets[:, 0]) ** 2)


def _privatizer(key: Any) -> Any:
    return noise_addition.gaussian_privatizer(stddev=_SIGMA, prng_key=key)


_clipped = jax_privacy.clipped_grad(_loss, l2_clip_norm=1.0, batch_argnums=(1, 2))
_steps = partial(jax_mechanism, _clipped, _privatizer, jnp.zeros(_FEATURES))
_event = dp_accounting.GaussianDpEvent(_SIGMA)

one_step = _steps(claim=_event)
three_steps = _steps(steps=3, claim=dp_accounting.SelfComposedDpEvent(_event, 3))
poisson_step = _steps(
    batches=batch_selection.CyclicPoissonSampling(sampling_prob=0.5, iterations=1),
    claim=dp_accounting.PoissonSampledDpEvent(0.5, _event),
)
