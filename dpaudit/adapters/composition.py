"""Several mechanisms, or runs of one, released on the same input as one output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.adapters.calls import Batches, Function, plain, processed
from dpaudit.adapters.mechanism import Mechanism, Outputs, Wrapping
from dpaudit.outcomes import Raised
from dpaudit.watching import Watch

# Integers up to here are floats without loss, so that they may stand beside floats.
_LARGEST_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Composition:
    """The outputs of `components` on one input, as a tuple with an entry for each.

    All draw from the generator handed over, one component after the other, so that their noise is
    independent. Components that all draw by the batch stay fast: arrays of numbers are put side by
    side, a column (of vectors: as many as they are long) for each.
    """

    name: str
    components: tuple[Mechanism, ...]
    post_process: Function | None = None
    watch: Watch = field(default_factory=Watch.untimed, repr=False, compare=False)

    @property
    def interleaved(self) -> bool:
        return not all(isinstance(one, Batches) for one in self.components)

    @property
    def types_by_draw(self) -> bool:
        return self.interleaved

    @property
    def text_orders(self) -> bool:
        return all(one.text_orders for one in self.components)

    @property
    def parts(self) -> tuple[Any, ...]:
        return (*(part for one in self.components for part in one.parts), self.post_process)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        drawn = [one.sample(dataset, size, rng) for one in self.components]
        table = _side_by_side(drawn) if self.post_process is None else None
        return self.released(drawn) if table is None else table

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> list[Any]:
        inputs = list(datasets)
        return self.released([one.sample_each(inputs, rng) for one in self.components])

    def close(self) -> None:
        for one in self.components:
            one.close()

    def released(self, drawn: Sequence[Outputs]) -> list[Any]:
        """Return the outputs of all components, those of one draw together."""
        return processed(self.post_process, _rows(list(map(plain, drawn))), self.watch)


@dataclass(frozen=True, slots=True)
class Repetition(Wrapping):
    """The outputs of `times` runs on one input, as a tuple with an entry for each. A mechanism that
    draws by the batch is asked for all runs of all outputs at once."""

    times: int
    watch: Watch = field(default_factory=Watch, repr=False, compare=False)

    @property
    def types_by_draw(self) -> bool:
        return self.interleaved

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        # What draws by the batch may take longer for more outputs.
        with self.watch.runs(self.name, self.times, size):
            return self.released(self.mechanism.sample(dataset, size * self.times, rng))

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> Outputs:
        inputs = self.inputs(datasets)
        with self.watch.runs(self.name, self.times):
            return self.released(self.mechanism.sample_each(inputs, rng))

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
        return _rows([outputs[run :: self.times] for run in range(self.times)])


def _rows(columns: Sequence[Iterable[Any]]) -> list[Any]:
    """Return `together` of the entries of each row."""
    rows: list[Any] = list(zip(*columns, strict=True))
    fails = any(Raised in set(map(type, column)) for column in columns)
    return list(map(together, rows)) if fails else rows


def together(entries: tuple[Any, ...]) -> Any:
    """Return the outcome of several on one input: the first exception, else all as a tuple."""
    return next((entry for entry in entries if isinstance(entry, Raised)), entries)


def _side_by_side(drawn: Sequence[Outputs]) -> NDArray[Any] | None:
    """Return arrays of numbers as columns of one; None where that would change a value."""
    arrays = [one for one in drawn if isinstance(one, np.ndarray) and one.ndim in (1, 2)]
    if len(arrays) < len(drawn):
        return None
    if len({one.dtype for one in arrays}) > 1 and not all(map(_fits_float, arrays)):
        return None
    return np.column_stack(arrays) if all(one.dtype.kind in "iufbU" for one in arrays) else None


def _fits_float(array: NDArray[Any]) -> bool:
    if array.dtype.kind == "f":
        return array.dtype.itemsize <= 8
    if array.dtype.kind not in "iu":
        return False
    return array.size == 0 or max(int(array.max()), -int(array.min())) <= _LARGEST_EXACT
