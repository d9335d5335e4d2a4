"""What a pass may have missed, as a bound of the claim's own kind."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import dpaudit
from dpaudit.reports.bounds_report import may_miss


def test_a_pass_states_the_distance_that_it_may_miss() -> None:
    def half(x: int, size: int, rng: np.random.Generator) -> Any:
        return rng.integers(2, size=size)

    claims: list[dpaudit.PrivacyClaim] = [dpaudit.TotalVariation(0.1), dpaudit.PureDP(0.0)]
    distance, pure = (may_miss(dpaudit.audit(half, 0, 1, claim, samples=2_000)) for claim in claims)
    assert re.fullmatch(r"δ < 0\.[12]\d+", distance)
    assert pure.startswith("ε < ")
