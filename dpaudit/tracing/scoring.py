"""How far a coupled pair of runs is apart: a number for a search to climb on, without draws."""

from __future__ import annotations

import math
from typing import Any

from dpaudit.targets.target import (
    AnyTarget,
    ComposedTarget,
    RepeatedTarget,
    runs_in_another_process,
)
from dpaudit.tracing.costs import Piece, coin_cost
from dpaudit.tracing.runs.comparing import compare
from dpaudit.tracing.runs.differences import Comparison
from dpaudit.tracing.runs.events import TooLong
from dpaudit.tracing.runs.running import run
from dpaudit.tracing.trace import subject_of

# What noise that is released costs at most here, so that costs can be told apart beyond; and what
# counts for an output that differs, or a run that takes another way or raises.
_MOST, _DIFFERENT = 1e6, 100.0


class Scorer:
    """Scores pairs of inputs by one coupled pair of runs each. Raises UsageError for a target that
    cannot be traced."""

    def __init__(self, target: AnyTarget) -> None:
        if isinstance(target, RepeatedTarget):
            target = target.target
        self._subject = subject_of(target)

    def __call__(self, d1: Any, d2: Any) -> float:
        """Return the sum of what all noise of a pair hides, in its scales, and more where the
        outputs differ nevertheless; at least 0, and 0 for runs that are too long to follow."""
        try:
            first = run(self._subject, d1, 0, has_lines=False)
            second = run(self._subject, d2, 0, reference=first, has_lines=False)
        except TooLong:
            return 0.0
        return score(compare(first, second, {}))


def can_score(target: AnyTarget) -> bool:
    """Return whether a target can be traced in this process."""
    if isinstance(target, RepeatedTarget):
        target = target.target
    return not (runs_in_another_process(target) or isinstance(target, ComposedTarget))


def score(comparison: Comparison) -> float:
    """Return the score of a comparison of two runs."""
    costs: dict[int, float] = {}
    for one in comparison.hidden:
        pieces = zip(one.pieces, one.shifts, *one.scales, one.released, strict=True)
        for number, shift, first, second, released in pieces:
            value = Piece(one.law, (first, second), shift, released, one.cost).value
            costs[number] = max(costs.get(number, 0.0), min(value or 0.0, _MOST))
    total = math.fsum(costs.values())
    for choice in comparison.chosen:
        if len(choice.probabilities[0]) == len(choice.probabilities[1]):
            total += min(coin_cost(*choice.probabilities), _MOST)
    errors = [one is None for one in comparison.errors]
    is_uneven = bool(comparison.uneven or comparison.twice)
    is_bare = bool(comparison.differing) and not comparison.chosen
    return total + _DIFFERENT * ((errors[0] != errors[1]) + is_uneven + is_bare)
