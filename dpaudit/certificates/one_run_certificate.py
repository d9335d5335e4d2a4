"""What came out of an audit of one run: guesses about canaries, and what they show."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.claims import ProfilePoint


@dataclass(frozen=True, slots=True)
class OneRunCertificate:
    """The outcome of one run with many canaries.

    pair: which two inputs are meant, in words.  point: the inequality that was tested.
    canaries, guesses, correct: how many canaries there were, how many of them were guessed to be
        in or out, and how many of these guesses were right.
    alpha: the error probability.  epsilon_lower: lower bound for ε at the δ of the point;
    delta_lower: for δ at its ε; both valid at 1 - alpha.  p_value: of the claim.
    detectable_epsilon: the smallest ε that would have been refuted with probability 0.9, had every
        guess been right with probability e^ε / (1 + e^ε); inf when no ε would.
    """

    pair: str
    point: ProfilePoint
    refuted: bool
    canaries: int
    guesses: int
    correct: int
    alpha: float
    epsilon_lower: float
    delta_lower: float
    p_value: float
    detectable_epsilon: float
    warnings: tuple[str, ...] = ()
