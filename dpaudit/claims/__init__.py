"""Privacy definitions, such as pure DP or zCDP, and claims: a definition with its parameters.

Every claim has a privacy profile: the largest δ(ε) = sup_E P(E) - e^ε Q(E) that the claim allows. P
and Q are the laws of the output on the two inputs, and E is any event (docs/method.md §6). An audit
refutes a claim by refuting one point (ε, δ(ε)) of the profile. So the package dpaudit.stats deals
with points, and needs to know no definitions.
"""

from dpaudit.claims.base import PrivacyClaim as PrivacyClaim
from dpaudit.claims.base import ProfilePoint as ProfilePoint
from dpaudit.claims.definitions import *  # noqa: F403  # registered definitions are public here
from dpaudit.claims.implied import chain as chain
from dpaudit.claims.implied import compose as compose
from dpaudit.claims.implied import group as group
from dpaudit.claims.implied import posterior_bounds as posterior_bounds
from dpaudit.claims.implied import relax as relax
from dpaudit.claims.registry import DEFINITIONS as DEFINITIONS
from dpaudit.claims.registry import conflict_message as conflict_message
from dpaudit.claims.registry import implied_definition as implied_definition
from dpaudit.claims.registry import make_claim as make_claim
from dpaudit.claims.registry import missing_parameters as missing_parameters
from dpaudit.claims.registry import parameters as parameters
from dpaudit.claims.registry import required_parameters as required_parameters
from dpaudit.claims.tradeoff import gaussian_delta as gaussian_delta
