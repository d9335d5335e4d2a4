"""Mechanisms whose outputs Python calls equal and a recipient sees as different.

A process that draws from them imports NumPy alone, not pytest and dpaudit as for a test module.
"""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np

Rng = np.random.Generator


def sign_of_zero(x: int, size: int, rng: Rng) -> Any:
    return np.where(rng.random(size) < 0.8, -0.0 if x else 0.0, 1.0)


def type_of_number(x: int, rng: Rng) -> float:
    return (3 if x else 3.0) if rng.random() < 0.8 else 4


def order_of_keys(x: int, rng: Rng) -> dict[int, float]:
    # Of integers, whose hashes are the same in every process.
    keys = (1, 2, 3, 4, 5)[:: -1 if x else 1]
    return dict.fromkeys(keys, 1.0) if rng.random() < 0.8 else {1: 2.0}


def list_or_tuple(x: int, rng: Rng) -> Any:
    return ([1] if x else (1,)) if rng.random() < 0.8 else [2]


def digits(x: int, rng: Rng) -> decimal.Decimal:
    return decimal.Decimal("2.5" if x else "2.50") if rng.random() < 0.8 else decimal.Decimal(1)


def dtype_of_array(x: int, rng: Rng) -> Any:
    kind = np.float32 if x else np.float64
    return np.array([0.5, 1.0], dtype=kind) if rng.random() < 0.8 else np.zeros(2)


def nested(x: int, rng: Rng) -> dict[str, Any]:
    noise = [float(one) for one in rng.normal(size=3)]
    return {"noise": noise, "count": 7 if x and rng.random() < 0.8 else 7.0}


def promoted(x: int, size: int, rng: Rng) -> Any:
    """Return answers by randomised response, and rarely a fraction, which makes floats of all."""
    keeps = rng.random(size) < 1 / (1 + math.exp(-1))
    answers = np.where(keeps, x, 1 - x)
    if rng.random() < 0.5:
        answers = answers.astype(float)
        answers[0] = 0.5
    return answers


def plus_one(answer: float) -> float:
    return answer + 1
