"""Runs that bets alone end refute true claims no more often than nominal; twins do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle

import numpy as np
import pytest

from benchmarks.false_alarms import EARLY_BETS, Case

NOMINAL, SEED = 0.1, 20_261
VALID = [case for case in EARLY_BETS if case.valid]
TWINS = [case for case in EARLY_BETS if not case.valid]
IsAbove = Callable[[Iterable[bool], int, float], bool]


def alarms(cases: Sequence[Case]) -> Iterator[bool]:
    """Yield whether a run refutes, the cases in turn. A run takes a fifth of a second."""
    rng = np.random.default_rng(SEED)
    return (case.run(NOMINAL, rng) for case in cycle(cases))


def test_runs_on_true_claims_do_not_exceed_their_level(is_above: IsAbove) -> None:
    assert not is_above(alarms(VALID), 10 * len(VALID), NOMINAL)


@pytest.mark.parametrize("twin", TWINS, ids=lambda case: case.name)
def test_bets_on_draws_that_were_learned_from_are_caught(twin: Case, is_above: IsAbove) -> None:
    assert is_above(alarms([twin]), 40, NOMINAL)
