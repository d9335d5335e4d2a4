"""What came out of an exact audit of one pair: computed from stated laws, without a draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dpaudit.claims import ProfilePoint


@dataclass(frozen=True, slots=True)
class ExactEvent:
    """An event and its exact probabilities. guess: the input that it is evidence for."""

    words: str
    guess: Literal["d1", "d2"]
    probability_d1: float
    probability_d2: float


@dataclass(frozen=True, slots=True)
class ExactCertificate:
    """The exact parameters of one pair, by the mechanism's own probability mass function.

    Says what holds for this pair if the code draws from the law that it states, and nothing else.

    pair: the pair in words.
    point: the inequality of the claim that comes nearest to being violated, or is violated most.
    refuted: whether the claim fails on this pair, by more than rounding (`stats.exact.TOLERANCE`).
    epsilon: the smallest ε that holds for the pair at δ = 0; inf when none does.
    epsilon_lower: the smallest one at the δ of the point.  delta_lower: the smallest δ at the ε of
        the point.  (By these names since they are lower bounds too, which happen to be attained.)
    probabilistic_delta: the smallest δ of probabilistic DP at the ε of the point.
    event: one that decides; None when the laws are equal.
    adjacency, notes: as in `Certificate`.
    law: every outcome in words, its probability for d1 and its probability for d2.
    """

    pair: str
    point: ProfilePoint
    refuted: bool
    epsilon: float
    epsilon_lower: float
    delta_lower: float
    probabilistic_delta: float
    event: ExactEvent | None
    law: tuple[tuple[str, float, float], ...] = field(repr=False)
    warnings: tuple[str, ...] = ()
    adjacency: str | None = None
    notes: tuple[str, ...] = ()
