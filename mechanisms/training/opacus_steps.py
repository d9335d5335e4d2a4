"""Steps of Opacus on a linear model with 20 weights, for configs/real/opacus.yaml; needs torch.

A dataset is a list of numbers; the number is the value of all 20 features of a record, and its
target is 1. Adjacency: a record is added or removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from dpaudit.training import step_mechanism

_FEATURES = 20


def _arrays(dataset: Sequence[float]) -> tuple[Any, Any]:
    rows = [[float(number)] * _FEATURES for number in dataset]
    return torch.tensor(rows), torch.ones(len(rows), 1)


def _model() -> Any:
    made = torch.nn.Linear(_FEATURES, 1, bias=False)
    torch.nn.init.zeros_(made.weight)
    return made


_steps = partial(
    step_mechanism, _model, torch.nn.functional.mse_loss, max_grad_norm=1.0, arrays=_arrays
)
# Broken: Opacus divides the noisy sum by the number of records, which the weights then reveal
# (github.com/meta-pytorch/opacus, issues 571 and 819).
one_step = _steps(noise_multiplier=5.0, accountant="rdp")
# Correct: it divides by a public number.
one_step_pinned = _steps(noise_multiplier=5.0, expected_batch_size=3)
three_steps_pinned = _steps(noise_multiplier=5.0, expected_batch_size=3, steps=3)
# Correct for μ = 1, and broken for the claim of σ = 5.
one_step_weak = _steps(noise_multiplier=1.0, expected_batch_size=3)
