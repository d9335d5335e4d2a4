"""Privacy definitions, each seen as its privacy profile.

A definition is the curve δ(ε) = sup_E P(E) - e^ε Q(E) that it allows (docs/method.md §6). It is
refuted by refuting one point of that curve, so a claim hands the statistics nothing but points.
"""

from dpaudit.claims.approximate import ApproximateDP
from dpaudit.claims.base import PrivacyClaim, ProfilePoint
from dpaudit.claims.computational import ComputationalDP
from dpaudit.claims.f_dp import FunctionalDP
from dpaudit.claims.gaussian import GaussianDP, gaussian_delta
from dpaudit.claims.implied import chain, compose, group, posterior_bounds, relax
from dpaudit.claims.probabilistic import ProbabilisticDP
from dpaudit.claims.pure import PureDP
from dpaudit.claims.registry import DEFINITIONS, implied_definition, make_claim, required
from dpaudit.claims.renyi import RenyiDP, ZeroConcentratedDP
from dpaudit.claims.total_variation import TotalVariation

__all__ = [
    "DEFINITIONS",
    "ApproximateDP",
    "ComputationalDP",
    "FunctionalDP",
    "GaussianDP",
    "PrivacyClaim",
    "ProbabilisticDP",
    "ProfilePoint",
    "PureDP",
    "RenyiDP",
    "TotalVariation",
    "ZeroConcentratedDP",
    "chain",
    "compose",
    "gaussian_delta",
    "group",
    "implied_definition",
    "make_claim",
    "posterior_bounds",
    "relax",
    "required",
]
