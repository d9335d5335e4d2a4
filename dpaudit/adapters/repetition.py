"""Several independent runs of a mechanism on one input, released as one output."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.adapters.composition import together
from dpaudit.adapters.mechanism import Wrapping
from dpaudit.outcomes import Raised

Outputs = list[Any] | NDArray[Any]


@dataclass(frozen=True, slots=True)
class Repetition(Wrapping):
    """The outputs of `times` runs on one input, as a tuple with an entry for each.

    An exception of any of them, the first in order, is the outcome of all. A mechanism that draws
    by the batch is asked for all runs of all outputs at once.
    """

    times: int

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        return self.released(self.mechanism.sample(dataset, size * self.times, rng))

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> Outputs:
        return self.released(self.mechanism.sample_each(self.inputs(datasets), rng))

    def inputs(self, datasets: Iterable[Any]) -> list[Any]:
        """Return every dataset as often as there are runs."""
        return [dataset for dataset in datasets for _ in range(self.times)]

    def released(self, outputs: Outputs) -> Outputs:
        """Return the outputs of all runs, those on one input together."""
        if isinstance(outputs, np.ndarray):
            if outputs.dtype.names is None and not outputs.dtype.hasobject:
                return outputs.reshape(-1, self.times, *outputs.shape[1:])
            # Records, which as plain values would be tuples without names.
            outputs = list(outputs)
        runs: list[Any] = list(zip(*[iter(outputs)] * self.times, strict=True))
        return list(map(together, runs)) if Raised in set(map(type, outputs)) else runs
