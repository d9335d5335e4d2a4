"""Define the certificate of one training run with many canaries, and a summary of their scores.

An attacker guesses, from the output of the run, which canaries were included (docs/method.md §12).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dpaudit.claims import ProfilePoint

GuessMethod = Literal["point", "tradeoff", "independent"]
Sides = Literal["both", "in"]


@dataclass(frozen=True, slots=True)
class Rate:
    """The true-positive rate of an attack by scores at a given false-positive rate.

    The attack guesses that a canary was included if its score is above a threshold.

    Attributes
    ----------
    false_positives : float
        The false-positive rate, in (0, 1).
    above : int
        Number of included canaries whose score is above the estimated threshold. Of the n canaries
        that were left out, `false_positives` · n, rounded down, are above it (fewer if scores are
        equal).
    fewest, most : int
        Number of included canaries whose score is above the largest plausible threshold, and above
        the smallest. The threshold whose true false-positive rate is `false_positives` lies between
        the two with probability at least 1 - alpha / 2, where alpha = 1 - confidence of the audit.
    lower, upper : float
        Confidence interval for the true-positive rate, valid only if the scores of the canaries are
        independent: Clopper-Pearson bounds from `fewest` and from `most`, each at alpha / 4.
    """

    false_positives: float
    above: int
    fewest: int
    most: int
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class CanaryScores:
    """A summary of the scores of all canaries of a run. No bound follows from it.

    Attributes
    ----------
    digest : str
        SHA-256 of the coins (which canaries were included), as in `Canaries.digest`.
    included, excluded : int
        Number of canaries that the run included, and number that it left out.
    sides : {'both', 'in'}
        'both': half of the guesses say that a canary was included, half that it was not. 'in': all
        say that it was included.
    auroc : float
        Area under the ROC curve: the share of all pairs (included canary, other canary) in which
        the included canary has the larger score. A pair with equal scores counts half.
    rates : tuple of Rate
        True-positive rates at false-positive rates of 0.1, 1 and 10 %.
    roc : tuple of pairs of float
        Points of the ROC curve: (false-positive rate, true-positive rate), in ascending order.
    edges : tuple of float
        Ends of the bins of the histogram of scores.
    histogram : tuple of pairs of int
        For each bin, the number of included canaries and the number of other canaries.
    """

    digest: str
    included: int
    excluded: int
    sides: Sides
    auroc: float
    rates: tuple[Rate, ...]
    roc: tuple[tuple[float, float], ...] = field(repr=False)
    edges: tuple[float, ...] = field(repr=False)
    histogram: tuple[tuple[int, int], ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class GuessTest:
    """A test of the claim by one number of guesses, which was fixed before the run.

    Attributes
    ----------
    guesses, correct : int
        Number of guesses whether a canary was included, and number of right guesses.
    share : float
        Share of the certificate's `alpha` at which the claim is tested, in (0, 1]. All shares add
        up to 1.
    method : {'point', 'tradeoff', 'independent'}
        How the claim is tested. 'point': at one point (ε, δ), with (12.1) of docs/method.md.
        'tradeoff': with the claim's whole trade-off function, with (12.2). 'independent': with the
        assumption that canaries are independent, without which the result is invalid; the number of
        wrong guesses is then fixed before the run, in place of the number of guesses.
    p_value : float
        p-value of the claim by this test alone.
    """

    guesses: int
    correct: int
    share: float
    method: GuessMethod
    p_value: float


@dataclass(frozen=True, slots=True)
class OneRunCertificate:
    """The result of one training run with many canaries.

    A canary is a record that the toss of a fair coin includes in the run or leaves out.

    Attributes
    ----------
    pair : str
        Description of the two inputs.
    point : ProfilePoint
        The point (ε, δ) of the claim that was tested.
    refuted : bool
        Whether the claim was refuted.
    canaries : int
        Number of canaries.
    tests : tuple of GuessTest
        One test for each number of guesses: one if the number was given, and two otherwise.
    alpha : float
        Error probability.
    epsilon_lower, delta_lower : float
        Lower bound for ε at the δ of the point, and lower bound for δ at the ε of the point; each
        valid with probability at least 1 - alpha.
    p_value : float
        p-value of the claim: the smallest p-value of a test divided by its share, at most 1.
    detectable_epsilon : float
        If the true ε were at least this number and each guess were right with probability
        e^ε / (1 + e^ε), the claim would have been refuted with probability 0.9; may be inf.
    warnings : tuple of str
        Reasons to doubt the result.
    mu_lower : float or None
        Lower bound for μ of Gaussian DP, valid with probability at least 1 - alpha, whatever the
        claim is. None if the claim has only one point (ε, δ).
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
    tests: tuple[GuessTest, ...]
    alpha: float
    epsilon_lower: float
    delta_lower: float
    p_value: float
    detectable_epsilon: float
    warnings: tuple[str, ...] = ()
    mu_lower: float | None = None
    scores: CanaryScores | None = None

    def __post_init__(self) -> None:
        if not self.tests or any(not 0 < test.share <= 1 for test in self.tests):
            raise ValueError(f"no tests with shares in (0, 1]: {self.tests}")

    @property
    def leading(self) -> GuessTest:
        """The test with the smallest p-value divided by its share, which decides the p-value of the
        claim."""
        return min(self.tests, key=lambda test: test.p_value / test.share)

    @property
    def is_independent(self) -> bool:
        """Whether the result assumes that the canaries are independent."""
        return self.leading.method == "independent"

    @property
    def fixes_guesses(self) -> bool:
        """Whether the result is valid only if the number of guesses was fixed before the run."""
        return self.leading.method == "tradeoff" or (
            self.leading.method == "point" and self.point.delta > 0
        )
