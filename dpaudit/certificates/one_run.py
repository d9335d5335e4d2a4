"""Define the certificate of one training run with many canaries, and a summary of the canaries'
scores. A canary is a record that the toss of a fair coin includes in the run or leaves out. An
attacker guesses, from the output of the run, which canaries were included (docs/method.md §12)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dpaudit.claims import ProfilePoint

GuessMethod = Literal["point", "tradeoff", "independent"]
Sides = Literal["both", "in"]


@dataclass(frozen=True, slots=True)
class Rate:
    """The true-positive rate at a given false-positive rate.

    Attributes
    ----------
    false_positives : float
        The false-positive rate, in (0, 1).
    above : int
        Number of included canaries above the threshold that this share of the other canaries
        exceeds.
    fewest, most : int
        Numbers of included canaries above two other thresholds, between which the threshold with
        this false-positive rate lies with probability at least 1 - alpha / 2, where alpha is 1
        minus the confidence of the audit.
    lower, upper : float
        Interval of the true-positive rate, at the confidence of the audit: Clopper-Pearson bounds
        from `fewest` and `most`, each at alpha / 4. It is valid only if the scores of the canaries
        are independent.
    """

    false_positives: float
    above: int
    fewest: int
    most: int
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class CanaryScores:
    """The scores of all canaries of a run, in summary. No bound follows from them.

    Attributes
    ----------
    digest : str
        SHA-256 of the coins, as `Canaries.digest` gives it.
    included, excluded : int
        Number of canaries that were in and out.
    sides : {'both', 'in'}
        Whether half of the guesses say "in" and half "out", or all "in".
    chosen_on : int
        Number of canaries on which the number of guesses was chosen; the certificate contains only
        the others. 0 if the number was given.
    auroc : float
        Share of pairs of an included and another canary in which the included one has the larger
        score; equal scores count half.
    rates : tuple of Rate
        True-positive rates at false-positive rates of 0.1, 1 and 10 %.
    roc : tuple of pairs of float
        False-positive and true-positive rate, ascending.
    edges : tuple of float
        Ends of the bins of the histogram.
    histogram : tuple of pairs of int
        Number of included and of other canaries by bin.
    """

    digest: str
    included: int
    excluded: int
    sides: Sides
    chosen_on: int
    auroc: float
    rates: tuple[Rate, ...]
    roc: tuple[tuple[float, float], ...] = field(repr=False)
    edges: tuple[float, ...] = field(repr=False)
    histogram: tuple[tuple[int, int], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class OneRunCertificate:
    """The result of one run with many canaries: records that fair coins include or leave out.

    Attributes
    ----------
    pair : str
        The two inputs in words.
    point : ProfilePoint
        The point of the claim that was tested.
    refuted : bool
        Whether the claim was refuted.
    canaries, guesses, correct : int
        Number of canaries, of guesses whether a canary was included, and of right guesses.
    alpha : float
        Error probability.
    epsilon_lower, delta_lower : float
        Lower bounds for ε at the δ of the point, and for δ at the ε of the point; each valid with
        probability at least 1 - alpha.
    p_value : float
        p-value of the claim.
    detectable_epsilon : float
        Smallest ε that would have been refuted with probability 0.9, if every guess were right with
        probability e^ε / (1 + e^ε); inf if there is none.
    warnings : tuple of str
        Reasons to doubt the result.
    method : {'point', 'tradeoff', 'independent'}
        Test of the claim: at one point (ε, δ), by (12.1) of docs/method.md; by its whole trade-off
        function, by (12.2); or with independent canaries, an assumption without which the result is
        invalid. The number of canaries, the number of guesses and the claim decide between the
        first two.
    mu_lower : float or None
        Lower bound for μ of Gaussian DP, valid with probability at least 1 - alpha; it does not
        depend on the claim. None for claims with only one point, and in files of older versions.
    scores : CanaryScores or None
        The scores from which the guesses were made; None if the guesses were given.

    Notes
    -----
    Sources: Steinke, Nasr & Jagielski 2023, and Mahloujifar, Melis & Chaudhuri 2024, with the
    bounds of docs/method.md §12.
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
    method: GuessMethod = "point"
    mu_lower: float | None = None
    scores: CanaryScores | None = None

    @property
    def fixes_guesses(self) -> bool:
        """Whether the result is valid only if the number of guesses was fixed before anyone saw the
        scores."""
        return self.method != "independent" and (self.method == "tradeoff" or self.point.delta > 0)
