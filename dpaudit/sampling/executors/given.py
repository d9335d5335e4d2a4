"""Draws with an executor that the caller has made: MPI's, Ray's, or any other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpaudit.errors import MechanismError
from dpaudit.sampling.chunks import Chunk
from dpaudit.sampling.executors import Draws, Setup
from dpaudit.sampling.executors.ordered import AHEAD, in_order
from dpaudit.sampling.executors.worker import Done, Recipe, draw


@contextmanager
def with_executor(setup: Setup, executor: Executor) -> Iterator[Draws]:
    """Draw with nothing but the executor's `submit`; it is left open.

    A task takes along all that a worker needs, so that workers need no preparation.
    """
    recipe = Recipe.of(setup.make)

    def submit(chunks: Sequence[Chunk[Any]]) -> _Task:
        return _Task(executor.submit(draw, recipe, chunks))

    yield partial(in_order, submit, lambda: AHEAD * setup.workers)


@dataclass(frozen=True, slots=True)
class _Task:
    future: Future[Done]

    def result(self) -> Done:
        try:
            return self.future.result()
        except (BrokenExecutor, CancelledError) as error:
            how = " ".join(str(error).split()) or type(error).__name__
            raise MechanismError(
                f"the executor lost its workers or their draws ({how}); use an executor that "
                "replaces dead workers, such as processes or dask"
            ) from None

    def cancel(self) -> object:
        return self.future.cancel()
