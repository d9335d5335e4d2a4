"""A mechanism that now and then reveals its input: a variant that must be refuted.

Processes that draw import this module, which needs nothing but NumPy and the implementation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LIMIT = np.iinfo(np.int64).min


def failing(
    mechanism: str, larger_than: int, probability: float, params: dict[str, Any]
) -> Callable[[Sequence[float], int, np.random.Generator], NDArray[Any]]:
    """Return a mechanism that, for some inputs, now and then reveals that it got one of them.

    Parameters
    ----------
    mechanism : str
        The implementation as "module:function".
    larger_than : int
        Number of entries of the largest input for which it is the implementation itself.
    probability : float
        Probability of the output that reveals a larger input: -2⁶³ where outputs are integers,
        otherwise NaN. An output of several numbers has NaN for all of them.
    params : dict
        Keyword arguments of the implementation.

    Returns
    -------
    callable
        A function of an input, a number of outputs, and a generator, which returns an array.
    """
    module, _, name = mechanism.partition(":")
    function = getattr(import_module(module), name)

    def draws(entries: Sequence[float], size: int, rng: np.random.Generator) -> NDArray[Any]:
        outputs = np.array(function(entries, size, **params))
        if len(entries) > larger_than:
            # An output of the same type, as the type alone would tell the inputs apart.
            is_whole = np.issubdtype(outputs.dtype, np.integer)
            outputs[rng.random(size) < probability] = _LIMIT if is_whole else math.nan
        return outputs

    return draws
