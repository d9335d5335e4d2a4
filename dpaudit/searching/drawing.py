"""Draws from strategies of Hypothesis, the same ones for a seed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dpaudit.errors import DatasetError
from dpaudit.searching.space import strategies
from dpaudit.searching.waiting import within

# So many inputs are drawn at a time; later rounds go on where Hypothesis has grown to.
ROUND = 50


def drawn(strategy: Any, seed: int, words: str, *, is_own: bool = False) -> Iterator[Any]:
    """Yield what a strategy gives, without end, repeats too.

    words: the space in messages.  is_own: a user's code runs, which may never end.
    Raises DatasetError when the strategy fails or gives nothing.
    """
    strategies()
    number = 0
    while True:
        values = _round(strategy, _mixed(seed, number), words, is_own)
        if not values:
            raise DatasetError(
                f"{words} gives no inputs; loosen what its filters ask for", code="space-invalid"
            )
        yield from values
        number += 1


@contextmanager
def same_for_a_seed() -> Iterator[None]:
    """Keep Hypothesis from drawing the constants of whatever modules are loaded, with which the
    values of a seed would be others in a session of tests than in a terminal."""
    try:
        from hypothesis.internal.conjecture import providers
        from hypothesis.internal.constants_ast import Constants

        constants, cache = providers._get_local_constants, providers.CONSTANTS_CACHE.cache
        providers._get_local_constants = Constants
    except (ImportError, AttributeError):  # older versions draw none; newer ones may move them
        yield
        return
    cache.clear()
    try:
        yield
    finally:
        providers._get_local_constants = constants
        cache.clear()


def _round(strategy: Any, seed: int, words: str, is_own: bool) -> list[Any]:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis.errors import HypothesisException

    values: list[Any] = []

    @seeded(seed)
    @settings(
        database=None,
        deadline=None,
        derandomize=True,
        max_examples=ROUND,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def keep(value: Any) -> None:
        values.append(value)

    said = f"{words} (seed {seed})"

    def run() -> None:
        try:
            with same_for_a_seed():
                keep()
        except HypothesisException as error:
            if not values:
                raise DatasetError(
                    f"{said} gives no inputs: {error}", code="space-invalid"
                ) from error

    if is_own:
        within(run, said, lambda: len(values))
    else:
        run()
    return values


def _mixed(seed: int, number: int) -> int:
    """Return a seed of a round, which shares nothing with that of another."""
    digest = hashlib.blake2b(f"{seed} {number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")
