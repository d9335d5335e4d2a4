"""Workers that are forks of a process which has imported what they import.

Each behaves like a spawned worker, with its own environment, working directory and global
generators. Only the hash seed is shared by all forks of one process. A fork starts in a fifth of
the time, and does not import pytest and dpaudit again.
"""

from __future__ import annotations

import os
from contextlib import chdir
from multiprocessing import forkserver
from multiprocessing.popen_forkserver import Popen
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.sampling.executors import processes

ROOT = Path(__file__).parents[1]
# No module of the tests: the state of a mechanism's module starts empty in every worker.
PRELOADED = (
    *("tests.forked", "numpy", "scipy.special", "pytest", "hypothesis", "concurrent.futures"),
    *("dpaudit.auditing.engine", "dpaudit.auditing.recheck", "dpaudit.attacks.trees"),
    *("dpaudit.attacks.scorers", "dpaudit.tracing.trace"),
)


class Forked(processes._Process):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._environment = dict(os.environ)

    @staticmethod
    def _Popen(process: Any) -> Any:  # as multiprocessing calls it
        start()
        return Popen(process)

    def run(self) -> None:
        os.environ.clear()
        os.environ.update(self._environment)
        np.random.seed()  # from the system, as `random` does by itself
        super().run()


def start() -> None:
    """Start the process that is forked, if none runs."""
    forkserver.set_forkserver_preload(list(PRELOADED))
    with chdir(ROOT):  # from where it imports
        forkserver.ensure_running()


def end() -> None:
    """End it, so that its processor time counts as this process's."""
    forkserver._forkserver._stop()  # type: ignore[attr-defined]  # for tests, as it says
