"""Exact privacy parameters of a mechanism whose output probabilities are given.

P and Q are the laws of the output on d1 and on d2, each a mapping from outcomes to probabilities;
outcomes of probability 0 may be left out. `dpaudit.auditing.exact_pmf` compares the results with a
claim. A result holds in both directions: P against Q, and Q against P.

Floats represent e^ε · q only approximately. So numbers equal up to a relative error of 10⁻⁹
(`TOLERANCE`) count as equal: a claim that is attained exactly is never reported as violated, and a
violation by less than the tolerance is not reported. The given probabilities should have a relative
error below the tolerance.
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
    """A set of outcomes, and its probability under both laws.

    guess: the input, d1 or d2, under which the set is more likely.
    outcomes: the outcomes in the set.
    ahead: probability of the set under the input `guess`.
    behind: probability of the set under the other input.
    """

    guess: Guess
    outcomes: tuple[Any, ...]
    ahead: float
    behind: float


@dataclass(frozen=True, slots=True)
class Extreme:
    """The smallest ε that two laws satisfy at a given δ, and an event that attains this ε."""

    epsilon: float
    event: Event


def epsilon(p: Law, q: Law, delta: float = 0.0) -> Extreme:
    """Return the smallest ε ≥ 0 that P and Q satisfy at δ, with an event that attains it.

    For every event E, P(E) ≤ e^ε Q(E) + δ and Q(E) ≤ e^ε P(E) + δ. ε may be inf.

    >>> epsilon({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}).epsilon == math.log(3)
    True
    """
    forwards, backwards = _extreme(_atoms(p, q), "d1", delta), _extreme(_atoms(q, p), "d2", delta)
    return forwards if forwards.epsilon >= backwards.epsilon else backwards


def delta(p: Law, q: Law, epsilon: float) -> float:
    """Return δ(ε), the largest value of P(E) - e^ε Q(E) and Q(E) - e^ε P(E) over all events E.
    Outcomes with P(s) = e^ε Q(s), up to the relative error `TOLERANCE`, add exactly 0, so that a
    rounding error adds nothing to δ.

    >>> delta({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}, 0.0)
    0.5
    """
    factor = math.exp(min(epsilon, 700.0))
    return max(
        math.fsum(ahead - factor * behind for _, ahead, behind in _beyond(atoms, epsilon))
        for atoms in (_atoms(p, q), _atoms(q, p))
    )


def violating(p: Law, q: Law, epsilon: float) -> Event:
    """Return the event {s : P(s) > e^ε Q(s)} or the event {s : Q(s) > e^ε P(s)}.

    Choose the first event if its probability under P is at least the probability of the second
    event under Q. The probability of the chosen event (`ahead`) is the smallest δ for which
    (ε, δ)-probabilistic DP holds.

    >>> violating({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}, 1.0).ahead
    0.75
    """
    forwards = _event("d1", _beyond(_atoms(p, q), epsilon))
    backwards = _event("d2", _beyond(_atoms(q, p), epsilon))
    return forwards if forwards.ahead >= backwards.ahead else backwards


def exceeds_point(p: Law, q: Law, epsilon: float, claimed: float) -> bool:
    """Return whether the laws P and Q violate the claim (ε, δ): whether their δ(ε) is above the
    claimed δ by more than the tolerance.

    p, q: the laws of the output on d1 and on d2.
    epsilon, claimed: the claimed ε and the claimed δ.

    δ is computed at ε + TOLERANCE: otherwise, if P(E) and e^ε Q(E) are nearly equal for an event E,
    the rounding of their difference would decide the result.
    """
    return exceeds(delta(p, q, epsilon + TOLERANCE), claimed)


def exceeds(value: float, claimed: float) -> bool:
    """Return whether a probability is above the claimed probability by more than a relative
    tolerance of 1e-9, which allows for rounding errors."""
    return value > claimed * (1 + TOLERANCE)


def _atoms(p: Law, q: Law) -> list[Atom]:
    """Return the triples (s, P(s), Q(s)) of all outcomes s with P(s) > 0."""
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
    """Return max log((P(E) - δ) / Q(E)) over events E, at least 0, and an E that attains it."""
    # The best event is always a set of the outcomes with the largest P(s)/Q(s).
    ordered = sorted(atoms, key=_log_ratio, reverse=True)
    ahead = accumulate(atom[1] for atom in ordered)
    behind = accumulate(atom[2] for atom in ordered)
    values = [_log_excess(*sums, delta) for sums in zip(ahead, behind, strict=True)]
    best = max(values, default=0.0)
    # Of several sets with the best value, the largest one is taken, so that outcomes of equal
    # P(s)/Q(s) are all in the set.
    last = max((i for i, value in enumerate(values) if value >= best - TOLERANCE), default=0)
    return Extreme(max(0.0, best), _event(guess, ordered[: last + 1]))


def _log_excess(ahead: float, behind: float, delta: float) -> float:
    excess = ahead - delta
    if excess <= TOLERANCE * ahead:
        return -math.inf
    return math.log(excess / behind) if behind > 0 else math.inf
