"""What draws come from: the interface of every mechanism, whatever is behind it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

# The outputs of some draws, in order.
Outputs = list[Any] | NDArray[Any]


class Mechanism(Protocol):
    """What the sampler draws from.

    name: how messages call it.
    interleaved: one call a draw, so that the arms can take turns: use `sample_each`.
    types_by_draw: whether the types of numbers in a list of outputs are those of each output by
        itself. They are not where outputs were entries of an array: one float makes floats of all.
    text_orders: whether text keys of outputs are hashed with the hash seed of this process, or each
        order comes with whether a set has it, so that orders may count.
    parts: the user's own objects, where generators may hide (`carried_generators`).
    """

    @property
    def name(self) -> str: ...
    @property
    def interleaved(self) -> bool: ...
    @property
    def types_by_draw(self) -> bool: ...
    @property
    def text_orders(self) -> bool: ...
    @property
    def parts(self) -> tuple[Any, ...]: ...

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        """Return `size` outputs for `dataset`, an exception among them as `Raised`."""
        ...

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> Outputs:
        """Return one output for each dataset, in order."""
        ...

    def close(self) -> None:
        """End what was started to draw; another draw starts it again."""
        ...


@dataclass(frozen=True, slots=True)
class Wrapping:
    """What a mechanism that changes the outputs of another one has from that one."""

    mechanism: Mechanism

    @property
    def name(self) -> str:
        return self.mechanism.name

    @property
    def interleaved(self) -> bool:
        return self.mechanism.interleaved

    @property
    def types_by_draw(self) -> bool:
        return self.mechanism.types_by_draw

    @property
    def text_orders(self) -> bool:
        return self.mechanism.text_orders

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.mechanism.parts

    def close(self) -> None:
        self.mechanism.close()
