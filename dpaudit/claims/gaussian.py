"""μ-Gaussian differential privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, Self

from dpaudit.claims.base import Instead, Parameter, PrivacyClaim, ProfilePoint, checked_positive
from dpaudit.claims.solving import largest_parameter

_LARGEST_MU = 10.0
_SIGMA = Instead(
    "sigma",
    "In place of μ: Gaussian noise with this σ, at sensitivity 1.",
    "mu = 1/sigma",
    lambda sigma: 1 / checked_positive("sigma", sigma),
)


@dataclass(frozen=True, slots=True)
class GaussianDP(PrivacyClaim):
    """μ-Gaussian differential privacy: P and Q are as hard to tell apart as N(0, 1) and N(μ, 1).

    Parameters
    ----------
    mu : float
        μ, in (0, 10]; for Gaussian noise, the sensitivity over the standard deviation.

    Raises
    ------
    ClaimError
        For any other value.

    Notes
    -----
    P and Q are the laws of the output on d1 and d2. The claim: δ(ε) ≤ Φ(-ε/μ + μ/2) -
    e^ε Φ(-ε/μ - μ/2) for every ε. An audit tests one point of this curve, which it fixes before it
    draws what certifies (docs/method.md §6). Source: Dong, Roth & Su 2022.

    Examples
    --------
    >>> from dpaudit import GaussianDP
    >>> round(GaussianDP(1.0).profile(1.0), 4)
    0.1269
    """

    key: ClassVar[str] = "gaussian"
    title: ClassVar[str] = "Gaussian differential privacy"
    formula: ClassVar[str] = "δ(ε) ≤ Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2)"

    mu: Annotated[
        float,
        Parameter("The μ of a Gaussian claim.", is_telling=True, has_curve=True, instead=_SIGMA),
    ]

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", checked_positive("mu", self.mu, _LARGEST_MU))

    def profile(self, epsilon: float) -> float:
        return gaussian_delta(self.mu, epsilon)

    def points(self) -> tuple[ProfilePoint, ...]:
        """Return the point where a slightly larger μ shows best, then some all along the curve."""
        return _gaussian_points(self.mu)

    def describe(self) -> str:
        return f"{self.mu:.12g}-Gaussian DP"

    def own_lower(self, epsilon: float, delta_lower: float) -> tuple[str, float]:
        """Return the largest μ, rounded down, whose profile stays below the bound."""
        most = 4 * _LARGEST_MU
        return "μ", largest_parameter(lambda mu: gaussian_delta(mu, epsilon), delta_lower, most)

    def for_group(self, size: int) -> GaussianDP:
        """Return kμ-GDP (Dong, Roth & Su 2022, Thm. 2.9)."""
        return GaussianDP(size * self.mu)

    def composed(self, claims: Sequence[Self]) -> GaussianDP:
        """Return the root of the sum of all μ² (Dong, Roth & Su 2022, Cor. 3.3)."""
        return GaussianDP(math.hypot(*(one.mu for one in claims)))

    def note_for_integers(self) -> str:
        """Return that discrete Gaussian noise satisfies another claim (Canonne, Kamath & Steinke
        2020, Thm. 4)."""
        rho = f"{self.mu**2 / 2:.6g}"
        return (
            "all outputs are integers; a discrete Gaussian with σ = 1/μ is not exactly μ-GDP. It "
            f"satisfies ρ-zCDP with ρ = μ²/2: claim --rho {rho} (claim: {{rho: {rho}}})"
        )

    def own_tradeoff(self, alpha: float) -> float:
        """Return G_μ(α) = Φ(Φ⁻¹(1 - α) - μ)."""
        from scipy.special import ndtr, ndtri

        return float(ndtr(ndtri(1 - alpha) - self.mu))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the privacy profile δ(ε) of N(0, 1) against N(μ, 1).

    Parameters
    ----------
    mu, epsilon : float
        μ, above 0; ε, in nats, at least 0.

    Returns
    -------
    float
        δ(ε) in [0, 1], rounded up.

    Notes
    -----
    Source: Balle & Wang 2018; docs/method.md §6.

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 4)
    0.1269
    """
    ahead, behind = _normal_tail(epsilon / mu - mu / 2), _normal_tail(epsilon / mu + mu / 2)
    # Rounded up by more than the two terms, which nearly cancel, can be wrong by.
    other = math.exp(epsilon) * behind if behind else 0.0
    return min(1.0, max(0.0, ahead - other) + 1e-13 * ahead)


def _normal_tail(x: float) -> float:
    """Return Pr[N(0, 1) > x]."""
    return 0.5 * math.erfc(x / math.sqrt(2))


@lru_cache(maxsize=256)
def _gaussian_points(mu: float) -> tuple[ProfilePoint, ...]:
    """Return the point at which μ · 1.1 stands out most, in standard errors of a draw, and others
    from ε = 0 to where N(μ, 1) exceeds 3 with its log-ratio."""
    larger = 1.1 * mu

    def evidence(epsilon: float) -> float:
        ahead = _normal_tail(epsilon / larger - larger / 2)
        behind = _normal_tail(epsilon / larger + larger / 2)
        ratio = math.exp(epsilon)
        excess = ahead - ratio * behind - gaussian_delta(mu, epsilon)
        return excess / math.sqrt(ahead + ratio**2 * behind)

    last = mu * (4 + mu)
    best = max((last * step / 400 for step in range(401)), key=evidence)
    others = [mu * (t + mu / 2) for t in (-mu / 2, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)]
    every = [best, *(one for one in others if one >= 0)]
    return tuple(ProfilePoint(one, gaussian_delta(mu, one)) for one in every)
