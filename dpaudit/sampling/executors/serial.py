"""Draws in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from dpaudit.sampling.executors import Draws, Setup


@contextmanager
def in_this_process(setup: Setup) -> Iterator[Draws]:
    """Draw one chunk after the other, each only when it is asked for."""
    yield partial(map, setup.sampler.draw)
