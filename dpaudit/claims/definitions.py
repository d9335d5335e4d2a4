"""The list of all privacy definitions. To register a definition everywhere, add one import here.

Help texts and documentation list the definitions in this order. If a user names parameters that fit
several definitions equally well, dpaudit takes the first. A parameter that only one definition has,
such as rho, needs `is_telling=True` in its `Parameter`.
"""

# ruff: noqa: I001 # ruff must not sort the imports: their order is the order of the definitions
from dpaudit.claims.point_claims import PureDP as PureDP
from dpaudit.claims.point_claims import ApproximateDP as ApproximateDP
from dpaudit.claims.point_claims import ProbabilisticDP as ProbabilisticDP
from dpaudit.claims.point_claims import ComputationalDP as ComputationalDP
from dpaudit.claims.point_claims import TotalVariation as TotalVariation
from dpaudit.claims.profile import ProfileDP as ProfileDP
from dpaudit.claims.tradeoff import FunctionalDP as FunctionalDP
from dpaudit.claims.tradeoff import GaussianDP as GaussianDP
from dpaudit.claims.renyi import RenyiDP as RenyiDP
from dpaudit.claims.renyi import ZeroConcentratedDP as ZeroConcentratedDP
from dpaudit.claims.renyi import ApproximateZCDP as ApproximateZCDP
