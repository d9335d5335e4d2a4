"""Draws with an executor that the caller has made: MPI's, Ray's, or any other."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from typing import Any

from dpaudit.errors import MechanismError
from dpaudit.sampling.chunks import Chunk
from dpaudit.sampling.executors import Setup
from dpaudit.sampling.executors.ordered import Pool
from dpaudit.sampling.executors.worker import Done, Recipe, draw


class GivenPool(Pool):
    """Draws with nothing but the executor's `submit`; it is left open. A task takes along all that
    a worker needs, so that workers need no preparation."""

    def __init__(self, setup: Setup, executor: Executor) -> None:
        super().__init__(setup.workers)
        self._recipe, self._executor = Recipe.of(setup.make), executor

    def submit(self, chunks: Sequence[Chunk[Any]], /) -> Future[Done]:
        return self._executor.submit(draw, self._recipe, chunks)

    def result(self, task: Future[Done], /) -> Done:
        try:
            return task.result()
        except (BrokenExecutor, CancelledError) as error:
            how = " ".join(str(error).split()) or type(error).__name__
            raise MechanismError(
                f"the executor lost its workers or their draws ({how}); use an executor that "
                "replaces dead workers, such as processes or dask"
            ) from None
