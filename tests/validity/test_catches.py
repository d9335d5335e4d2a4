"""What the outcome's kind, length, keys or time give away is caught, and said in plain words.

Leaks in outcomes of other shapes are in test_outcomes.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.reports import text

Rng = np.random.Generator
Records = list[str]
WITH, WITHOUT = ["Ada", "Ben", "Cy"], ["Ada", "Ben"]


def raises_for_one(records: Records, rng: Rng) -> float:
    """A limit on the input that only the one more record exceeds, now and then."""
    if len(records) > 2 and rng.random() < 0.05:
        raise OverflowError(f"{len(records)} records")
    return float(len(records) + rng.laplace())


def raises_for_all(records: Records, rng: Rng) -> float:
    if rng.random() < 0.05:
        raise OverflowError("too many")
    return float(len(records) + rng.laplace())


def length_gives_away(records: Records, rng: Rng) -> list[float]:
    """Noisy values, one for each record."""
    return [float(one) for one in rng.laplace(size=len(records))]


def length_is_noisy(records: Records, rng: Rng) -> list[float]:
    """As many values as a noisy count says: geometric noise on both sides, ε = 1."""
    noise = int(rng.geometric(1 - np.exp(-1)) - rng.geometric(1 - np.exp(-1)))
    return [1.0] * (60 + len(records) + noise)


def key_gives_away(records: Records, rng: Rng) -> dict[str, float]:
    return {name: float(1 + rng.laplace()) for name in records}


def keys_are_fixed(records: Records, rng: Rng) -> dict[str, float]:
    return {name: float((name in records) + rng.laplace()) for name in ("Ada", "Ben", "Cy")}


def takes_longer(records: Records, rng: Rng) -> float:
    end = time.perf_counter_ns() + 150_000 * (len(records) - 1) ** 2
    while time.perf_counter_ns() < end:
        pass
    return float(len(records) + rng.laplace())


def takes_as_long(records: Records, rng: Rng) -> float:
    end = time.perf_counter_ns() + 20_000
    while time.perf_counter_ns() < end:
        pass
    return float(len(records) + rng.laplace())


def audited(mechanism: Callable[..., Any], **options: Any) -> AuditResult:
    given = {"samples": 20_000, "seed": 4, **options}
    return dpaudit.audit(mechanism, WITH, WITHOUT, dpaudit.PureDP(1.0), **given)


@pytest.mark.parametrize(
    ("mechanism", "explained", "options"),
    [
        (raises_for_one, "OverflowError is raised", {"stop": "never"}),
        (length_gives_away, "length of output ≥ 3", {}),
        (key_gives_away, 'output["Cy"] is present', {}),
        (takes_longer, "elapsed time", {"timing": True, "samples": 2_000}),
    ],
)
def test_it_is_caught_and_explained(
    mechanism: Callable[..., Any], explained: str, options: dict[str, Any]
) -> None:
    result = audited(mechanism, **options)
    assert result.verdict is Verdict.VIOLATION
    assert result.epsilon_lower > 1
    events = [event.words for event in result.certificates[0].fixed.events]
    assert any(explained in event for event in events), events
    assert explained in " ".join(text.render(result).split())


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (raises_for_all, {}),
        (length_is_noisy, {}),
        (keys_are_fixed, {}),
        (takes_as_long, {"timing": True, "samples": 4_000}),
    ],
)
def test_what_says_no_more_than_the_claim_allows_stays_unrefuted(
    mechanism: Callable[..., Any], options: dict[str, Any]
) -> None:
    assert audited(mechanism, **options).verdict is Verdict.NO_VIOLATION_FOUND


def test_exceptions_are_counted_for_either_input() -> None:
    result = audited(raises_for_one, stop="never")
    d1, d2 = result.certificates[0].failures["OverflowError"]
    assert 350 < d1 < 650
    assert d2 == 0
