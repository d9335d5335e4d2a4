"""The definitions that can be claimed: a line here registers one, everywhere.

The order is the one in which they are listed; of several that parameters fit equally well, the
first is taken.
"""

# ruff: noqa: I001  # an order of its own
from dpaudit.claims.pure import PureDP as PureDP
from dpaudit.claims.approximate import ApproximateDP as ApproximateDP
from dpaudit.claims.probabilistic import ProbabilisticDP as ProbabilisticDP
from dpaudit.claims.computational import ComputationalDP as ComputationalDP
from dpaudit.claims.total_variation import TotalVariation as TotalVariation
from dpaudit.claims.f_dp import FunctionalDP as FunctionalDP
from dpaudit.claims.gaussian import GaussianDP as GaussianDP
from dpaudit.claims.renyi import RenyiDP as RenyiDP
from dpaudit.claims.renyi import ZeroConcentratedDP as ZeroConcentratedDP
from dpaudit.claims.approximate_zcdp import ApproximateZCDP as ApproximateZCDP
