"""Results made by hand, and an engine that hands them out: the command line without draws."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.certificate import Certificate, EventCount, FixedTest
from dpaudit.certificates.evidence import Block, DrawLimits, Evidence, FrozenRule
from dpaudit.certificates.result import AuditResult, Failed, Progress, Sampled
from dpaudit.claims import PureDP
from dpaudit.draws import Tally
from dpaudit.stats.betting import Beliefs
from tests.specs import replace

BELOW = EventCount("output ≤ 0.13", "d1", 412, 55, 498, 502, (0.78719, 0.86211), (0.08204, 0.14208))
ABOVE = EventCount("output > 0.87", "d2", 60, 400, 498, 502, (0.0911, 0.1572), (0.7512, 0.8431))
FIXED = FixedTest(
    stage="confirmation",
    method="game",
    alpha=0.008,
    draws=1_000,
    correct=812,
    wrong=115,
    two_guesses=True,
    events=(BELOW, ABOVE),
    epsilon_lower=1.21349,
    delta_lower=0.2149,
    p_value=3.12e-120,
    detectable_epsilon=0.81001,
    rule=FrozenRule("main", 1.0, "one-dimensional thresholds", (-1, 1)),
)
EVIDENCE = Evidence(
    point=PureDP(0.5).point(),
    alpha=0.01,
    confidence=0.99,
    budget=1_000_000,
    limits=DrawLimits(),
    stage="confirmation",
    method="game",
    rules=(FIXED.rule,),
    rounds=(Beliefs(np.array([[0.25, 0.75]]), np.array([[-1, 1]])),),
    blocks=(
        Block("learning", None, Tally(np.array([[20, 30], [30, 20]]))),
        Block("learning", 0, Tally(np.array([[30, 52], [55, 28]]))),
        Block("confirmation", None, Tally(np.array([[86, 447], [412, 55]]))),
    ),
    refuted_after=265,
)
CERTIFICATE = Certificate(
    pair="d1 = 0, d2 = 1",
    evidence=EVIDENCE,
    point=PureDP(0.5).point(),
    refuted=True,
    draws=1_265,
    alpha=0.01,
    alpha_betting=0.002,
    wealth=812.39,
    epsilon_betting=0.71,
    epsilon_lower=1.21349,
    delta_lower=0.2149,
    p_value=3.9e-120,
    fixed=FIXED,
)
VIOLATION = AuditResult(
    name="wrong-density",
    claim=PureDP(0.5),
    target="mechanisms.laplace:wrong_density",
    confidence=0.99,
    seed=0,
    ending=Sampled((CERTIFICATE,)),
    seconds=0.31,
    versions={"dpaudit": "1.0.0", "numpy": "2.3", "scipy": "1.16", "python": "3.12"},
)
CLEARED = replace(
    CERTIFICATE,
    refuted=False,
    draws=1_000_000,
    evidence=replace(
        EVIDENCE,
        stage="certification",
        blocks=(
            *EVIDENCE.blocks[:2],
            Block("certification", 0, Tally(np.array([[86_000, 447_000], [411_735, 55_000]]))),
        ),
        refuted_after=None,
    ),
    wealth=1.2,
    epsilon_betting=0.97,
    epsilon_lower=0.98399,
    delta_lower=0.0,
    p_value=0.5412,
    ignored=("low-order bits of floats (--floating-point)", "elapsed times (--timing)"),
    fixed=replace(
        FIXED,
        stage="certification",
        draws=875_000,
        epsilon_lower=0.98399,
        delta_lower=0.0,
        p_value=0.433,
        two_guesses=False,
        correct=312_000,
        wrong=115_000,
        detectable_epsilon=1.0134,
        events=(
            replace(
                BELOW, count_d1=312_000, count_d2=115_000, draws_d1=437_123, draws_d2=437_877,
                interval_d1=(0.7119, 0.7155), interval_d2=(0.2609, 0.2644),
            ),
        ),
    ),
)  # fmt: skip
PASS = replace(
    VIOLATION,
    name="laplace",
    claim=PureDP(1.0),
    ending=Sampled((CLEARED,)),
    target="mechanisms.laplace:laplace",
    seconds=1.84,
)
ERROR = replace(
    VIOLATION,
    name="broken",
    ending=Failed("the mechanism raises ValueError on every draw"),
)


def answer(spec: AuditSpec, on_progress: Callable[[Progress], None] | None = None) -> AuditResult:
    """Return a violation for names with `wrong`, an error for `broken`, else a pass."""
    made = VIOLATION if "wrong" in spec.name else ERROR if "broken" in spec.name else PASS
    return replace(
        made, name=spec.name, claim=spec.claim, seed=spec.sampling.seed,
        expect=spec.requirements.expect, confidence=spec.statistics.confidence,
        command=spec.origin.command,
    )  # fmt: skip


def engine(run_audit: Any) -> types.ModuleType:
    """Return a module in the place of the engine. `check` never ends an audit."""
    module = types.ModuleType("dpaudit.auditing.engine")

    def answering(spec: AuditSpec, on_progress: Any = None, check: Any = None) -> AuditResult:
        result: AuditResult = run_audit(spec, on_progress)
        return result

    module.run_audit = answering  # type: ignore[attr-defined]  # modules take any attribute
    return module


def install(run_audit: Any = answer) -> None:
    """Put an engine in place for the whole process: for programs started by a test."""
    sys.modules["dpaudit.auditing.engine"] = engine(run_audit)
