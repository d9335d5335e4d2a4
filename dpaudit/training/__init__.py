"""Turn a step of private training, several steps or a whole run into a mechanism for an audit.

`step_mechanism` makes a mechanism of a model of torch that Opacus trains, `run_mechanism` of your
own set-up with Opacus, and `jax_mechanism` of gradients and noise of jax-privacy. `canary_pair`
makes two neighbouring datasets that differ in a record with a gradient of its own. docs/guides/
training.md shows them. Importing this package imports neither torch nor JAX.
"""

from __future__ import annotations

from dpaudit.training.datasets import canary_pair
from dpaudit.training.jax_steps import jax_mechanism
from dpaudit.training.torch_steps import run_mechanism, step_mechanism

__all__ = ["canary_pair", "jax_mechanism", "run_mechanism", "step_mechanism"]
