"""Objects of libraries, the claim that dpaudit reads from each, and the library's own number.

Run in the environment of a library with the name of one of the functions below. Prints JSON: name
of the object -> [claim as dpaudit reads it, the same claim from the library's own call].
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from dpaudit.library_claims import Question, ask

# Name, object, question, and the claim by the library's own calls.
Case = tuple[str, Any, Question, dict[str, Any]]
NUMBERS = Question((0, 1))
FLOATS = Question((0.0, 1.0))
RECORDS = Question(([1.0, 2.0], [1.0]))
AT = Question(None, delta=1e-5)


def by(source: Any) -> Any:
    """Return a mechanism that names the object that makes its claim."""
    return SimpleNamespace(claim_source=source)


def diffprivlib() -> Iterator[Case]:
    from diffprivlib import BudgetAccountant, mechanisms, models, tools

    laplace = mechanisms.Laplace(epsilon=0.7, sensitivity=1.0)
    yield "Laplace.randomise", laplace.randomise, FLOATS, {"epsilon": laplace.epsilon}
    gaussian = mechanisms.GaussianAnalytic(epsilon=0.9, delta=1e-6, sensitivity=1.0)
    both = {"epsilon": gaussian.epsilon, "delta": gaussian.delta}
    yield "GaussianAnalytic", gaussian, FLOATS, both
    yield (
        "tools.mean",
        tools.mean,
        Question(([1.0], [2.0]), params={"epsilon": 0.3}),
        {"epsilon": 0.3},
    )
    bayes = models.GaussianNB(epsilon=2.5)
    yield "GaussianNB.fit", bayes.fit, Question(None), {"epsilon": bayes.epsilon}
    accountant = BudgetAccountant()
    tools.mean([0.5], epsilon=0.25, bounds=(0, 1), accountant=accountant)
    yield "BudgetAccountant", by(accountant), Question(None), {"epsilon": accountant.total()[0]}


def jax_privacy() -> Iterator[Case]:
    import dp_accounting
    from dp_accounting import pld, rdp
    from jax_privacy.experimental.execution_plan import BandMFExecutionPlanConfig

    event = dp_accounting.PoissonSampledDpEvent(0.5, dp_accounting.GaussianDpEvent(1.0))
    exact = pld.PLDAccountant().compose(event, 3)
    one = {"epsilon": exact.get_epsilon(1e-5), "delta": 1e-5}
    yield "PLDAccountant", by(exact), AT, one
    renyi = rdp.RdpAccountant().compose(event, 3)
    yield "RdpAccountant", by(renyi), AT, {"epsilon": renyi.get_epsilon(1e-5), "delta": 1e-5}
    yield "DpEvent", by(dp_accounting.SelfComposedDpEvent(event, 3)), AT, one
    curve = [[exact.get_epsilon(delta), delta] for delta in (1e-5, 0.3, 0.1, 0.03, 0.01, 1e-3)]
    curve += [[exact.get_epsilon(delta), delta] for delta in (1e-4, 1e-6)]
    yield "PLD curve", by(exact), Question(None), {"guarantees": curve}
    config = BandMFExecutionPlanConfig.default(
        num_bands=1, iterations=3, epsilon=None, delta=None, noise_multiplier=1.0, sampling_prob=0.5
    )
    plan = pld.PLDAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
    planned = {"epsilon": plan.compose(config.plan.dp_event).get_epsilon(1e-5), "delta": 1e-5}
    yield "DPExecutionPlan", by(config.plan), AT, planned
    yield "its configuration", by(config), AT, planned


def opacus() -> Iterator[Case]:
    from opacus import PrivacyEngine
    from opacus.accountants import GaussianAccountant

    for name in ("rdp", "prv"):
        engine = PrivacyEngine(accountant=name)
        for _ in range(3):
            engine.accountant.step(noise_multiplier=1.0, sample_rate=0.5)
        claim = {"epsilon": float(engine.get_epsilon(1e-5)), "delta": 1e-5}
        yield f"PrivacyEngine {name}", by(engine), AT, claim
    accountant = GaussianAccountant()
    accountant.step(noise_multiplier=2.0, sample_rate=0.1)
    one = {"epsilon": float(accountant.get_epsilon(1e-5)), "delta": 1e-5}
    yield "GaussianAccountant", by(lambda: accountant), AT, one


def autodp() -> Iterator[Case]:
    from autodp.mechanism_zoo import GaussianMechanism, LaplaceMechanism

    gaussian = GaussianMechanism(sigma=1.0)
    at = {"epsilon": float(gaussian.get_approxDP(1e-5)), "delta": 1e-5}
    yield "GaussianMechanism", by(gaussian), AT, at
    laplace = LaplaceMechanism(b=2.0)
    deltas = (0.0, 1e-5, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6)
    curve = [[float(laplace.get_approxDP(delta)), delta] for delta in deltas]
    # At δ = 0.3, the ε of this mechanism is 0.
    curve.insert(2, [float(laplace.get_approxDP(0.3)), 0.3])
    yield "LaplaceMechanism", by(laplace), Question(None), {"guarantees": curve}


def pipeline_dp() -> Iterator[Case]:
    import pipeline_dp as library

    naive = library.NaiveBudgetAccountant(total_epsilon=1.5, total_delta=1e-6)
    both = {"epsilon": naive.total_epsilon, "delta": naive.total_delta}
    yield "NaiveBudgetAccountant", by(naive), Question(None), both
    engine = library.DPEngine(naive, library.LocalBackend())
    yield "DPEngine", by(engine), Question(None), both


def tmlt() -> Iterator[Case]:
    from tmlt.core.domains.numpy_domains import NumpyFloatDomain
    from tmlt.core.measurements import noise_mechanisms as noise

    geometric = noise.AddGeometricNoise(alpha=3)
    third = geometric.privacy_function(1).to_float(round_up=True)
    yield "AddGeometricNoise", geometric, NUMBERS, {"epsilon": third}
    gaussian = noise.AddDiscreteGaussianNoise(sigma_squared=2)
    yield "AddDiscreteGaussianNoise", gaussian, Question((0, 3)), {"rho": 2.25}
    laplace = noise.AddLaplaceNoise(NumpyFloatDomain(), scale=2)
    half = laplace.privacy_function(1).to_float(round_up=True)
    yield "AddLaplaceNoise", laplace, FLOATS, {"epsilon": half}


if __name__ == "__main__":
    cases = globals()[sys.argv[1]]()
    found = {name: [ask(thing, question)["claim"], own] for name, thing, question, own in cases}
    sys.stdout.write(json.dumps(found))
