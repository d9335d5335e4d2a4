"""A mechanism that now and then reveals its input: a variant that must be refuted.

Processes that draw import this module, which needs nothing but NumPy and the implementation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

_LIMIT = np.iinfo(np.int64).min


def failing(
    mechanism: str, larger_than: int, probability: float, params: dict[str, Any]
) -> Callable[[Sequence[float], int, np.random.Generator], list[float]]:
    """Return a mechanism that, for some inputs, now and then reveals that it got one of them.

    Parameters
    ----------
    mechanism : str
        The implementation as "module:function".
    larger_than : int
        Number of entries of the largest input for which it is the implementation itself.
    probability : float
        Probability of the output that reveals a larger input, -2⁶³ or NaN.
    params : dict
        Keyword arguments of the implementation.

    Returns
    -------
    callable
        A function of an input, a number of outputs, and a generator.
    """
    module, _, name = mechanism.partition(":")
    function = getattr(import_module(module), name)
    revealing = _LIMIT if name == "count" else math.nan

    def draws(entries: Sequence[float], size: int, rng: np.random.Generator) -> list[float]:
        outputs: list[float] = function(entries, size, **params)
        if len(entries) > larger_than:
            for place in np.flatnonzero(rng.random(size) < probability):
                outputs[place] = revealing
        return outputs

    return draws
