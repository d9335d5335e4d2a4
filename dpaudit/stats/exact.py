"""Exact privacy parameters of a mechanism whose output probabilities are given.

P and Q are mappings from outcomes to probabilities; outcomes of probability 0 may be left out. A
result holds in both directions.

Floats represent e^ε · q only approximately. So numbers that differ by a relative error of at most
10⁻⁹ (`TOLERANCE`) count as equal. A claim that is attained exactly is therefore never reported as
violated, and a violation smaller than this error is not reported.
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
    mass: probability of the set under the input `guess`.
    other_mass: probability of the set under the other input.
    """

    guess: Guess
    outcomes: tuple[Any, ...]
    mass: float
    other_mass: float


@dataclass(frozen=True, slots=True)
class Extreme:
    """The smallest ε that two laws satisfy at a given δ, and an event that attains this ε."""

    epsilon: float
    event: Event


def epsilon(p: Law, q: Law, delta: float = 0.0) -> Extreme:
    """Return the smallest ε ≥ 0 that P and Q satisfy at δ, and an event that attains it. The ε is
    inf if no finite ε is satisfied.

    >>> epsilon({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}).epsilon == math.log(3)
    True
    """
    forwards, backwards = _extreme(_atoms(p, q), "d1", delta), _extreme(_atoms(q, p), "d2", delta)
    return forwards if forwards.epsilon >= backwards.epsilon else backwards


def delta(p: Law, q: Law, epsilon: float) -> float:
    """Return δ(ε), the largest value of P(E) - e^ε Q(E) and Q(E) - e^ε P(E) over all events E.
    Outcomes with P(s) and e^ε Q(s) equal up to `TOLERANCE` add nothing, so rounding errors do not
    make the result positive for laws that satisfy ε-DP exactly.

    >>> delta({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}, 0.0)
    0.5
    """
    factor = math.exp(min(epsilon, 700.0))
    return max(
        math.fsum(mass - factor * other_mass for _, mass, other_mass in _beyond(atoms, epsilon))
        for atoms in (_atoms(p, q), _atoms(q, p))
    )


def violating(p: Law, q: Law, epsilon: float) -> Event:
    """Return the event V of the outcomes that violate ε-DP, in the worse direction: {s : P(s) > e^ε
    Q(s)}, with its probability under P, or {s : Q(s) > e^ε P(s)}, with that under Q, whichever has
    the larger probability. This `mass` is the smallest δ for which (ε, δ)-probabilistic DP holds.

    >>> violating({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}, 1.0).mass
    0.75
    """
    forwards = _event("d1", _beyond(_atoms(p, q), epsilon))
    backwards = _event("d2", _beyond(_atoms(q, p), epsilon))
    return forwards if forwards.mass >= backwards.mass else backwards


def exceeds_point(p: Law, q: Law, epsilon: float, claimed: float) -> bool:
    """Return whether δ(ε) of P and Q is above the claimed δ by more than the tolerance.

    δ(ε) is computed at ε + TOLERANCE. Otherwise the rounding of P(E) - e^ε Q(E) would decide the
    result if the two terms are nearly equal.
    """
    return exceeds(delta(p, q, epsilon + TOLERANCE), claimed)


def exceeds(value: float, claimed: float) -> bool:
    """Return whether a probability exceeds the claimed probability by more than rounding errors: by
    more than the relative error `TOLERANCE`."""
    return value > claimed * (1 + TOLERANCE)


def _atoms(p: Law, q: Law) -> list[Atom]:
    """Return the triples (s, P(s), Q(s)) of all outcomes s with P(s) > 0."""
    return [(key, mass, q.get(key, 0.0)) for key, mass in p.items() if mass > 0]


def _log_ratio(atom: Atom) -> float:
    _, mass, other_mass = atom
    return math.log(mass) - math.log(other_mass) if other_mass > 0 else math.inf


def _beyond(atoms: Iterable[Atom], epsilon: float) -> list[Atom]:
    return [atom for atom in atoms if _log_ratio(atom) > epsilon + TOLERANCE]


def _event(guess: Guess, atoms: Sequence[Atom]) -> Event:
    mass, other_mass = (math.fsum(atom[side] for atom in atoms) for side in (1, 2))
    return Event(guess, tuple(key for key, _, _ in atoms), mass, other_mass)


def _extreme(atoms: list[Atom], guess: Guess, delta: float) -> Extreme:
    """Return max log((P(E) - δ) / Q(E)) over events E, at least 0, and an E that attains it."""
    # The best event is always a set of the outcomes with the largest P(s)/Q(s).
    ordered = sorted(atoms, key=_log_ratio, reverse=True)
    mass = accumulate(atom[1] for atom in ordered)
    other_mass = accumulate(atom[2] for atom in ordered)
    values = [_log_excess(*sums, delta) for sums in zip(mass, other_mass, strict=True)]
    best = max(values, default=0.0)
    # Of several sets with the best value, the largest one is taken, so that outcomes of equal
    # P(s)/Q(s) are all in the set.
    last = max((i for i, value in enumerate(values) if value >= best - TOLERANCE), default=0)
    return Extreme(max(0.0, best), _event(guess, ordered[: last + 1]))


def _log_excess(mass: float, other_mass: float, delta: float) -> float:
    excess = mass - delta
    if excess <= TOLERANCE * mass:
        return -math.inf
    return math.log(excess / other_mass) if other_mass > 0 else math.inf
