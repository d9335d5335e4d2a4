"""Exact privacy parameters of two given laws.

A law is a mapping from outcomes to probabilities; outcomes of probability 0 may be left out. Every
result is the larger of the two directions. Floats represent e^ε · q only approximately, so that
numbers equal up to a relative error of 10⁻⁹ (`TOLERANCE`) count as equal: a claim that is attained
exactly is never reported as violated, and a violation by less than the tolerance is not reported.
Probabilities should have a relative error below the tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

Guess = Literal["d1", "d2"]
Law = Mapping[Any, float]
Atom = tuple[Any, float, float]

TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Event:
    """A set of outcomes. guess: the law under which it is more likely. ahead, behind: its
    probability under that law, and under the other law."""

    guess: Guess
    outcomes: tuple[Any, ...]
    ahead: float
    behind: float


@dataclass(frozen=True, slots=True)
class Extreme:
    """The smallest ε that holds at some δ, and an event for which no smaller ε holds."""

    epsilon: float
    event: Event


def epsilon(p: Law, q: Law, delta: float = 0.0) -> Extreme:
    """Return the smallest ε ≥ 0 with P(E) ≤ e^ε Q(E) + δ, and the reverse, for every E; may be inf.

    >>> epsilon({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}).epsilon == math.log(3)
    True
    """
    forwards, backwards = _extreme(_atoms(p, q), "d1", delta), _extreme(_atoms(q, p), "d2", delta)
    return forwards if forwards.epsilon >= backwards.epsilon else backwards


def delta(p: Law, q: Law, epsilon: float) -> float:
    """Return δ(ε), the largest P(E) - e^ε Q(E) over events and directions; 0 for a tie.

    >>> delta({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}, 0.0)
    0.5
    """
    factor = math.exp(min(epsilon, 700.0))
    return max(
        math.fsum(ahead - factor * behind for _, ahead, behind in _beyond(atoms, epsilon))
        for atoms in (_atoms(p, q), _atoms(q, p))
    )


def violating(p: Law, q: Law, epsilon: float) -> Event:
    """Return {s : P(s) > e^ε Q(s)}, of the direction in which its probability `ahead` is larger.

    That probability is the smallest δ of (ε, δ)-probabilistic DP.

    >>> violating({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}, 1.0).ahead
    0.75
    """
    forwards = _event("d1", _beyond(_atoms(p, q), epsilon))
    backwards = _event("d2", _beyond(_atoms(q, p), epsilon))
    return forwards if forwards.ahead >= backwards.ahead else backwards


def exceeds_point(p: Law, q: Law, epsilon: float, claimed: float) -> bool:
    """Return whether δ(ε) is above the claimed δ.

    Evaluated at ε plus the tolerance: if P(E) and e^ε Q(E) nearly cancel, rounding decides the
    difference.
    """
    return exceeds(delta(p, q, epsilon + TOLERANCE), claimed)


def exceeds(value: float, claimed: float) -> bool:
    """Return whether a probability is above the claimed one, by more than the tolerance."""
    return value > claimed * (1 + TOLERANCE)


def _atoms(p: Law, q: Law) -> list[Atom]:
    """Return the outcomes with P(s) > 0, and both probabilities."""
    return [(key, ahead, q.get(key, 0.0)) for key, ahead in p.items() if ahead > 0]


def _log_ratio(atom: Atom) -> float:
    _, ahead, behind = atom
    return math.log(ahead) - math.log(behind) if behind > 0 else math.inf


def _beyond(atoms: Iterable[Atom], epsilon: float) -> list[Atom]:
    return [atom for atom in atoms if _log_ratio(atom) > epsilon + TOLERANCE]


def _event(guess: Guess, atoms: Sequence[Atom]) -> Event:
    ahead, behind = (math.fsum(atom[side] for atom in atoms) for side in (1, 2))
    return Event(guess, tuple(key for key, _, _ in atoms), ahead, behind)


def _extreme(atoms: list[Atom], guess: Guess, delta: float) -> Extreme:
    """Return the largest log((P(E) - δ) / Q(E)); E is a set of outcomes with the largest P/Q."""
    ordered = sorted(atoms, key=_log_ratio, reverse=True)
    ahead = accumulate(atom[1] for atom in ordered)
    behind = accumulate(atom[2] for atom in ordered)
    values = [_log_excess(*sums, delta) for sums in zip(ahead, behind, strict=True)]
    best = max(values, default=0.0)
    # Of equally good sets the largest, so that outcomes of equal ratio are in or out together.
    last = max((i for i, value in enumerate(values) if value >= best - TOLERANCE), default=0)
    return Extreme(max(0.0, best), _event(guess, ordered[: last + 1]))


def _log_excess(ahead: float, behind: float, delta: float) -> float:
    excess = ahead - delta
    if excess <= TOLERANCE * ahead:
        return -math.inf
    return math.log(excess / behind) if behind > 0 else math.inf
