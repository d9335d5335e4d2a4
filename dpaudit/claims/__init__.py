"""Privacy definitions, such as pure DP or zCDP, and claims: a definition with its parameters.

An audit refutes a claim by refuting one point of its privacy profile (docs/method.md §6). So the
package dpaudit.stats deals with points, and needs to know no definitions.

d1, d2, P, Q
    The two inputs, and the laws of the output on them. A claim holds in both directions.
ε, δ
    `epsilon` is in nats, finite and at least 0; `delta` is in [0, 1).
privacy profile
    The largest δ(ε) = sup_E P(E) - e^ε Q(E) that a claim allows, over all events E.
point
    A pair (ε, δ): the inequality P(E) ≤ e^ε Q(E) + δ for every event E.
D_a(P ‖ Q)
    The Rényi divergence of order a, in nats.
trade-off function
    f(α), the least probability of a miss among tests of d1 against d2 with probability α of a false
    alarm. A false alarm decides for d2 on d1, a miss for d1 on d2.
g
    g(p) = f(1 - p): an event with probability p on one input has at least probability g(p) on the
    other.
key
    Name of a definition on the command line and in files, such as "pure".
substitute
    A number that a user may give instead of a parameter, such as σ instead of μ.
adversary
    A function from an output to a guess of the input: 1, 2 or None.
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
