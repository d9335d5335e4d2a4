"""What came out of an audit of one run: guesses about canaries, and what they show."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit.claims import ProfilePoint


@dataclass(frozen=True, slots=True)
class OneRunCertificate:
    """The outcome of one run with many canaries.

    Attributes
    ----------
    pair : str
        Which two inputs are meant, in words.
    point : ProfilePoint
        The inequality that was tested.
    refuted : bool
        Whether the claim was refuted.
    canaries, guesses, correct : int
        How many canaries there were, how many of them were guessed to be in or out, and how many of
        these guesses were right.
    alpha : float
        The error probability.
    epsilon_lower, delta_lower : float
        Lower bounds for ε at the δ of the point and for δ at its ε, each valid at 1 - alpha.
    p_value : float
        Of the claim.
    detectable_epsilon : float
        The smallest ε that would have been refuted with probability 0.9, had every guess been right
        with probability e^ε / (1 + e^ε); inf when no ε would.
    warnings : tuple of str
        Reasons for doubt.

    Notes
    -----
    Source: Steinke, Nasr & Jagielski 2023, with the bound of docs/method.md §12.
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
