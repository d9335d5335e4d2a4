"""What came out of an exact audit of one pair: computed from stated laws, without a draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dpaudit.claims import ProfilePoint


@dataclass(frozen=True, slots=True)
class ExactEvent:
    """An event and its exact probabilities.

    Attributes
    ----------
    words : str
        The event.
    guess : {'d1', 'd2'}
        The input that it is evidence for.
    probability_d1, probability_d2 : float
        P(E) and Q(E).
    """

    words: str
    guess: Literal["d1", "d2"]
    probability_d1: float
    probability_d2: float


@dataclass(frozen=True, slots=True)
class ExactCertificate:
    """The exact parameters of one pair, by the mechanism's own probability mass function.

    Attributes
    ----------
    pair : str
        The pair in words.
    point : ProfilePoint
        The inequality of the claim that comes nearest to being violated, or is violated most.
    refuted : bool
        Whether the claim fails on this pair, by more than rounding (`stats.exact.TOLERANCE`).
    epsilon : float
        The smallest ε that holds for the pair at δ = 0; inf when none does.
    epsilon_lower, delta_lower : float
        The smallest ε at the δ of the point, and the smallest δ at its ε: lower bounds that are
        attained.
    probabilistic_delta : float
        The smallest δ of probabilistic DP at the ε of the point.
    event : ExactEvent or None
        An event that decides; None when the laws are equal.
    law : tuple of tuples
        Every outcome in words, its probability for d1 and its probability for d2.
    warnings, adjacency, notes : tuple of str, str or None, tuple of str
        As in `Certificate`.

    Notes
    -----
    It says what holds for this pair if the code draws from the law that it states, and nothing else
    (docs/method.md §10).
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
