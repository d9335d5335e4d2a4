"""Make a mechanism of training with JAX and jax-privacy, from records to trained weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from dpaudit.errors import TargetError, TrainingError
from dpaudit.training.torch_steps import check_loss, without_gpu
from dpaudit.training.training_data import as_arrays


def jax_mechanism(
    gradient: Callable[..., Any],
    make_privatizer: Callable[[Any], Any],
    params: Any,
    *,
    steps: int = 1,
    learning_rate: float = 1.0,
    optimizer: Any = None,
    batches: Any = None,
    arrays: Callable[[Any], tuple[Any, ...]] = as_arrays,
    claim: Any = None,
) -> Callable[..., Any]:
    """Return a mechanism that trains with JAX and returns all trained weights in one vector.

    Parameters
    ----------
    gradient : callable
        Function (params, inputs, targets) that returns the sum of clipped gradients, such as
        `jax_privacy.clipped_grad(loss, l2_clip_norm=1.0, batch_argnums=(1, 2))`. JAX compiles it
        once for each number of records.
    make_privatizer : callable
        Function that takes a random key and returns the transformation that adds noise, such as
        `lambda key: noise_addition.gaussian_privatizer(stddev=2.0, prng_key=key)`.
    params : Any
        The initial weights, a tree of arrays. Every call begins with them.
    steps : int, default 1
        Number of steps.
    learning_rate : float, default 1.0
        Step size of SGD.
    optimizer : optax.GradientTransformation, optional
        The optimizer. Default: SGD.
    batches : BatchSelectionStrategy, optional
        A strategy of `jax_privacy.batch_selection`, such as `CyclicPoissonSampling`, with at least
        `steps` iterations. Default: all records in each step.
    arrays : callable, optional
        Function that turns a dataset into the arguments of `gradient` after params: arrays with one
        row for each record. By default, records are pairs (features, target).
    claim : Any, optional
        The plan of jax-privacy, or the event of dp-accounting, that states the claim if the audit
        has `--claim-from library`.

    Returns
    -------
    callable
        Function (records, rng) that returns the weights, a JAX array with one dimension.

    Raises
    ------
    TargetError
        If steps is less than 1, if `gradient` or `make_privatizer` is not callable, or if
        `make_privatizer` does not return a transformation.
    TrainingError
        If `make_privatizer` ignores its key.

    Notes
    -----
    Each call makes its key from 64 bits of `rng`, so that equal seeds of an audit give equal draws.
    The mechanism raises TrainingError if a device is missing, or if a weight becomes NaN.

    Examples
    --------
    A step on all records::

        gradient = jax_privacy.clipped_grad(loss, l2_clip_norm=1.0, batch_argnums=(1, 2))
        one_step = jax_mechanism(
            gradient, lambda key: gaussian_privatizer(stddev=2.0, prng_key=key), jnp.zeros(4)
        )
    """
    if steps < 1:
        raise TargetError(f"steps is {steps}; give at least 1", code="option-invalid")
    _check_function("gradient", gradient, "(params, inputs, targets)")
    _check_function("make_privatizer", make_privatizer, "(key)")
    import jax  # after the checks, which need no JAX

    compiled = jax.jit(lambda *arguments: gradient(*arguments))
    _check_key(make_privatizer, params)

    def trained(records: Any, rng: np.random.Generator) -> Any:
        columns = tuple(map(np.asarray, arrays(records)))
        chosen = _indices(len(columns[0]), steps, batches, rng)
        # 64 random bits are the whole key of JAX's default random generator.
        key = jax.random.wrap_key_data(rng.integers(2**32, size=2, dtype=np.uint32))
        privatizer = make_privatizer(key)
        noise, weights = privatizer.init(params), params
        state = None if optimizer is None else optimizer.init(params)
        for indices in chosen:
            total = jax.tree.map(np.zeros_like, params)
            if len(indices):
                total = compiled(weights, *(array[indices] for array in columns))
            updates, noise = privatizer.update(total, noise)
            if optimizer is None:
                updates = jax.tree.map(lambda update: -learning_rate * update, updates)
            else:
                updates, state = optimizer.update(updates, state, weights)
            weights = jax.tree.map(lambda weight, update: weight + update, weights, updates)
        return jax.numpy.concatenate([weight.reshape(-1) for weight in jax.tree.leaves(weights)])

    def mechanism(records: Any, rng: np.random.Generator) -> Any:
        try:
            released = trained(records, rng)
        except RuntimeError as error:
            raise without_gpu(error) or error from None
        if np.isnan(np.asarray(released)).any():
            check_loss(math.nan, steps)
        return released

    # A trace may report lines in two places: the file of the user's gradient, and the module of
    # jax-privacy that makes noise.
    mechanism.traced_as = gradient, ("jax_privacy.noise_addition",)  # type: ignore[attr-defined]
    if claim is not None:
        mechanism.claim_source = claim  # type: ignore[attr-defined]  # functions take any attribute
    return mechanism


def _indices(records: int, steps: int, batches: Any, rng: np.random.Generator) -> list[Any]:
    """Return, for each step, the indices of the records that it uses."""
    if batches is None:
        return [np.arange(records)] * steps
    chosen = list(islice(batches.batch_iterator(records, rng), steps))
    if len(chosen) < steps:
        raise TargetError(
            f"the batch selection gives {len(chosen):,} batches for {steps:,} steps; give it "
            f"iterations={steps}",
            code="option-invalid",
        )
    return chosen


def _check_function(name: str, function: Any, parameters: str) -> None:
    if not callable(function):
        raise TargetError(
            f"{name} is of type {type(function).__name__}; give a function of {parameters}",
            code="option-invalid",
        )


def _check_key(make_privatizer: Callable[[Any], Any], params: Any) -> None:
    """Raise TrainingError if `make_privatizer` makes the same noise for two different keys."""
    import jax

    zeros = jax.tree.map(np.zeros_like, params)
    samples = []
    for seed in (1, 2):
        privatizer = make_privatizer(jax.random.key(seed))
        if not (hasattr(privatizer, "init") and hasattr(privatizer, "update")):
            raise TargetError(
                f"make_privatizer returns an object of type {type(privatizer).__name__} without "
                "init and update; return a transformation, such as "
                "noise_addition.gaussian_privatizer(stddev=2.0, prng_key=key)",
                code="option-invalid",
            )
        noise, _ = privatizer.update(zeros, privatizer.init(params))
        samples.append(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(noise)]))
    if np.array_equal(samples[0], samples[1]):
        raise TrainingError(
            "make_privatizer gives the same noise for two keys; pass its key on as prng_key, and "
            "check that stddev is not 0",
            code="training-seed-constant",
        )
