"""Define the functions that audit recorded data: `bound` takes recorded outputs, `bound_guesses`
the numbers of guesses about the canaries of one training run, and `bound_canaries` the scores of
canaries. Users import them from `dpaudit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from numbers import Integral
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.option_parsing import refused
from dpaudit.auditing.options import DEFAULTS, BoundMethod, verify
from dpaudit.certificates.canary_certificate import Sides
from dpaudit.certificates.result import AuditResult
from dpaudit.claims import PrivacyClaim
from dpaudit.claims.registry import ClaimNumbers, stated_claim
from dpaudit.errors import UsageError
from dpaudit.inputs.canaries import Canaries


def bound(
    outcomes_d1: Sequence[Any] | NDArray[Any],
    outcomes_d2: Sequence[Any] | NDArray[Any],
    claim: PrivacyClaim | None = None,
    *,
    coin_flipped: bool = False,
    scores: bool = False,
    confidence: float = DEFAULTS["confidence"],
    seed: int = DEFAULTS["seed"],
    bound: BoundMethod | None = None,
    name: str = "recorded outputs",
    **numbers: Unpack[ClaimNumbers],
) -> AuditResult:
    """Look for statistical proof of a leak in recorded outputs, such as outputs of training runs.

    Parameters
    ----------
    outcomes_d1, outcomes_d2 : sequence or ndarray
        Independent outputs for d1 and for d2, two neighbouring inputs. Each entry of a sequence, or
        row of an array, is an output. Outputs must be in the order in which they were made, since a
        test of independence uses this order. At least 100 outputs in all, and at least 25 for each
        input.
    claim : PrivacyClaim, optional
        The claim to test.
    coin_flipped : bool, default False
        Whether the toss of a fair coin chose the input of each draw, so that the number of draws of
        each input is random. If False, these numbers count as fixed beforehand, and a bound for
        fixed numbers is used.
    scores : bool, default False
        Whether the outputs are scores that an attack gave. If True, the only events that are tried
        are "score above a threshold" and "score below a threshold".
    confidence : float, default 0.99
        1 minus the probability of a false alarm, in [0.5, 1).
    seed : int, default 0
        Seed of the random split into draws to learn from and draws to test.
    bound : {'game', 'clopper-pearson'}, optional
        Method that turns counts into a bound. 'game': a test of how often a rule guesses the input
        of a draw right and wrong. 'clopper-pearson': a separate confidence bound for the
        probability of the event under each input. Default: 'game', unless `coin_flipped` is False
        and one input has more than twice as many draws as the other; then the method with the
        larger predicted bound.
    name : str, default 'recorded outputs'
        Name of the audit in reports.

    Returns
    -------
    AuditResult
        As in `audit`, with one certificate.

    Other Parameters
    ----------------
    **numbers
        Parameters of the claim in place of `claim`, such as `epsilon=1.0, delta=1e-5`.

    Raises
    ------
    UsageError
        For too few draws, outcomes of an unknown type, and impossible settings.

    Notes
    -----
    If the outputs are independent and the claim holds, the verdict is VIOLATION with probability at
    most 1 - confidence (docs/method.md §12).

    Examples
    --------
    >>> import dpaudit
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> d1, d2 = rng.laplace(0, 1, 1_000), rng.laplace(1, 1, 1_000)
    >>> dpaudit.bound(d1, d2, epsilon=0.25).verdict
    <Verdict.VIOLATION: 'VIOLATION'>
    """
    from dpaudit.auditing.recorded_outputs import RecordedAudit, audit_recorded, separate_samples

    claim = stated_claim(claim, numbers)
    verify(name=name)
    for key, switch in (("coin_flipped", coin_flipped), ("scores", scores)):
        if not isinstance(switch, bool):
            raise refused(key, switch, "must be true or false")
    for key, rows in (("outcomes_d1", outcomes_d1), ("outcomes_d2", outcomes_d2)):
        if not _are_rows(rows):
            raise refused(key, rows, "must be a list or an array, with an entry for each draw")
    outcomes, is_d1, positions = separate_samples(outcomes_d1, outcomes_d2, "d1, d2")
    audit = RecordedAudit(
        name=name,
        source=name,
        pair="d1, d2",
        outcomes=outcomes,
        is_d1=is_d1,
        positions=positions,
        claim=claim,
        coin_flipped=coin_flipped,
        scores_only=scores,
        bound=bound,
        confidence=confidence,
        seed=seed,
    )
    return audit_recorded(audit)


def bound_guesses(
    canaries: int,
    guesses: int,
    correct: int,
    claim: PrivacyClaim | None = None,
    *,
    confidence: float = DEFAULTS["confidence"],
    name: str = "guesses",
    **numbers: Unpack[ClaimNumbers],
) -> AuditResult:
    """Look for statistical proof of a leak in a single run with many canaries.

    Parameters
    ----------
    canaries : int
        Number of canaries, at least 1. A canary is a record that the toss of a fair coin included
        in the input of the run or left out.
    guesses : int
        Number of guesses. A guess says, from the output of the run, whether a canary was included.
        If the claim has δ > 0 or is a curve, this number must be fixed before the run.
    correct : int
        Number of right guesses.
    claim : PrivacyClaim, optional
        The claim to test, about inputs that differ in one canary.
    confidence : float, default 0.99
        1 minus the probability of a false alarm, in [0.5, 1).
    name : str, default 'guesses'
        Name of the audit in reports.

    Returns
    -------
    AuditResult
        As in `audit`, with one `OneRunCertificate` in `by_pair`.

    Other Parameters
    ----------------
    **numbers
        Parameters of the claim in place of `claim`, such as `epsilon=1.0, delta=1e-5`.

    Raises
    ------
    UsageError
        For impossible counts, and for claims that guesses cannot refute.

    Notes
    -----
    If the mechanism satisfies the claim, the verdict is VIOLATION with probability at most
    1 - confidence (docs/method.md §12). Source: Steinke, Nasr & Jagielski 2023.

    Examples
    --------
    >>> import dpaudit
    >>> result = dpaudit.bound_guesses(1000, 100, 75, epsilon=0.5, delta=1e-4)
    >>> result.verdict, round(result.epsilon_lower, 3)
    (<Verdict.VIOLATION: 'VIOLATION'>, 0.53)
    """
    from dpaudit.auditing.single_run import audit_guesses
    from dpaudit.stats.one_run import Guesses

    claim = stated_claim(claim, numbers)
    verify(name=name)
    for key, count in (("canaries", canaries), ("guesses", guesses), ("correct", correct)):
        if not isinstance(count, Integral) or isinstance(count, bool):
            raise refused(key, count, "must be a whole number")
    try:
        counts = Guesses(canaries, guesses, correct)
    except ValueError as error:
        why = f"{error}; give canaries ≥ guesses ≥ correct ≥ 0"
        raise UsageError(why, code="option-invalid") from None
    return audit_guesses([counts], claim, confidence=confidence, name=name)


def bound_canaries(
    canaries: Canaries | Sequence[Any] | NDArray[Any],
    scores: Sequence[float] | NDArray[Any],
    claim: PrivacyClaim | None = None,
    *,
    guesses: int | None = None,
    sides: Sides | None = None,
    independent_canaries: bool = False,
    confidence: float = DEFAULTS["confidence"],
    seed: int = DEFAULTS["seed"],
    name: str = "canaries",
    **numbers: Unpack[ClaimNumbers],
) -> AuditResult:
    """Look for statistical proof of a leak in a single run, from the scores of its canaries.

    Parameters
    ----------
    canaries : Canaries, or sequence of bool
        Whether the run included each canary, as fair coins decided.
    scores : sequence of float
        A score for each canary, computed from the output of the run without knowledge of the coins.
        A larger score means that the canary was more likely included.
    claim : PrivacyClaim, optional
        The claim to test, about inputs that differ in one canary.
    guesses : int, optional
        Number of guesses, which are about the canaries with the most extreme scores. Fix it before
        the run. Default: two numbers, a tenth of the canaries and all of them, whose p-values
        count with 0.8 and 0.2 of the error probability.
    sides : {'both', 'in'}, optional
        'both': half of the guesses say that a canary was included, and half that it was not. 'in':
        all guesses say that a canary was included; needs `guesses`. Default: 'both'.
    independent_canaries : bool, default False
        Whether to assume that what the run reveals about one canary is independent of what it
        reveals about the others. The bound is then larger, and invalid without this assumption.
        Excludes `guesses` and `sides`: two numbers of wrong guesses are fixed, 2 % of the canaries
        and none.
    confidence : float, default 0.99
        1 minus the probability of a false alarm, in [0.5, 1).
    seed : int, default 0
        Seed of the random order of equal scores.
    name : str, default 'canaries'
        Name of the audit in reports.

    Returns
    -------
    AuditResult
        As in `audit`, with one `OneRunCertificate` in `by_pair`.

    Other Parameters
    ----------------
    **numbers
        Parameters of the claim in place of `claim`, such as `epsilon=1.0, delta=1e-5`.

    Raises
    ------
    UsageError
        For coins and scores that do not fit together, and for claims that guesses cannot refute.

    Notes
    -----
    If the mechanism satisfies the claim, the verdict is VIOLATION with probability at most
    1 - confidence (docs/method.md §12), however the canaries depend on each other, if `guesses` and
    `sides` were fixed before the run, or left out. With `independent_canaries`, only if they are
    independent. Sources: Steinke, Nasr & Jagielski 2023; Mahloujifar, Melis & Chaudhuri 2024.

    Examples
    --------
    >>> import dpaudit
    >>> import numpy as np
    >>> canaries = dpaudit.Canaries(5_000, seed=1)
    >>> scores = canaries.included + np.random.default_rng(2).normal(size=5_000)
    >>> result = dpaudit.bound_canaries(canaries, scores, mu=0.3, guesses=500)
    >>> result.verdict, round(result.by_pair[0].mu_lower, 2)
    (<Verdict.VIOLATION: 'VIOLATION'>, 0.67)
    """
    from dpaudit.auditing.canary_scores import audit_scores, checked_coins, checked_scores

    claim = stated_claim(claim, numbers)
    verify(name=name, confidence=confidence, seed=seed)
    if guesses is not None and (isinstance(guesses, bool) or not isinstance(guesses, Integral)):
        raise refused("guesses", guesses, "must be a whole number")
    if sides not in (None, "both", "in"):
        raise refused("sides", sides, "must be 'both' or 'in'")
    if not isinstance(independent_canaries, bool):
        raise refused("independent_canaries", independent_canaries, "must be true or false")
    coins = canaries.included if isinstance(canaries, Canaries) else canaries
    return audit_scores(
        checked_coins(coins),
        checked_scores(scores),
        claim,
        guesses=None if guesses is None else int(guesses),
        sides=sides,
        independent=independent_canaries,
        confidence=confidence,
        seed=seed,
        name=name,
    )


def _are_rows(outcomes: Any) -> bool:
    """Return whether a value can be a sequence of outputs. A text, a mapping or a set cannot."""
    if isinstance(outcomes, str | bytes | Mapping | Set) or not hasattr(outcomes, "__len__"):
        return False
    return np.ndim(outcomes) > 0 if isinstance(outcomes, np.ndarray) else True
