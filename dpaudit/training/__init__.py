"""Turn private training (one step, several steps or a whole run) into a mechanism for an audit.

`step_mechanism` makes a mechanism from a torch model that Opacus trains, `run_mechanism` from your
own training code with Opacus, and `jax_mechanism` from gradients and noise of jax-privacy.
`canary_pair` makes two neighbouring datasets that differ in a record whose gradient no other record
shares. docs/guides/training.md has examples. Importing this package imports neither torch nor JAX.
"""

from __future__ import annotations

from dpaudit.training.jax_steps import jax_mechanism
from dpaudit.training.torch_steps import run_mechanism, step_mechanism
from dpaudit.training.training_data import canary_pair

__all__ = ["canary_pair", "jax_mechanism", "run_mechanism", "step_mechanism"]
