"""k-anonymity and the Gaussian mechanism; and that all configurations of these seeds are right."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate

from dpaudit.auditing.spec import AuditSpec
from dpaudit.claims import ProbabilisticDP, gaussian_delta
from dpaudit.config.yaml_files import load_config
from dpaudit.import_path import resolve
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.targets.target import ImportedTarget
from mechanisms import poll, survey
from mechanisms.encryption import fresh_key, unpadded
from mechanisms.gaussian import gaussian, variance_for_deviation
from mechanisms.k_anonymity import RECORDS, k_anonymous
from mechanisms.truth import Truth, delta_of, image, pdp_delta_of, truth_of

ROOT = Path(__file__).parents[3]
CONFIGS = sorted((ROOT / "configs" / "seeds").glob("00[01]-*.yaml"))


def test_the_table_of_the_text() -> None:
    assert k_anonymous(RECORDS, size=2) == 2 * [
        (
            ("42*", "3*", "Common flu"),
            ("42*", "3*", "Healthy"),
            ("1742", "7*", "Ottis"),
            ("1742", "7*", "Ottis"),
        )
    ]


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("records", [5, 12])
def test_the_release_is_k_anonymous_and_loses_nobody(k: int, records: int) -> None:
    rng = np.random.default_rng(records)
    rows = [(str(rng.integers(1000, 9999)), int(rng.integers(20, 80)), "?") for _ in range(records)]
    release = k_anonymous(rows, k, size=1)[0]
    assert len(release) == records
    assert min(Counter(row[:2] for row in release).values()) >= k
    for (zip_code, age, _), row in zip(rows, release, strict=True):
        assert zip_code.startswith(row[0].rstrip("*"))
        assert str(age).startswith(row[1].rstrip("*"))


def test_a_deterministic_release_has_no_epsilon() -> None:
    truth = truth_of(k_anonymous)
    ill, well = RECORDS, [*RECORDS[:3], ("1742", 76, "Healthy")]
    for k in (1, 2, 4):
        assert truth.epsilon(ill, well, k=k) == math.inf
        assert truth.profile(ill, well, 20.0, k=k) == 1
    # What the mask hides, it hides altogether.
    assert truth.epsilon(ill, [*RECORDS[:3], ("1742", 79, "Ottis")]) == 0


GAUSSIANS = [
    (gaussian, {}, 1.0),
    (gaussian, {"mu": 0.5, "sensitivity": 2.0}, 0.25),
    (variance_for_deviation, {}, 4.0),
    (variance_for_deviation, {"mu": 3.0, "sensitivity": 2.0}, 2.25),
]


@pytest.mark.parametrize(("specimen", "params", "mu"), GAUSSIANS)
def test_gaussian_truths_fit_together(specimen: Any, params: dict[str, float], mu: float) -> None:
    """mu: of inputs at distance 1."""
    truth = truth_of(specimen)
    assert truth.mu(0, 1, **params) == pytest.approx(mu, rel=1e-14)
    assert truth.epsilon(0, 1, **params) == math.inf
    for at in (0.0, 0.5, 2.0):
        assert truth.profile(0, 1, at, **params) == pytest.approx(
            gaussian_delta(mu, at), rel=1e-9, abs=1e-12
        )

        def excess(x: float, at: float = at) -> float:
            one, other = truth.density(x, 1, **params), truth.density(x, 0, **params)
            return max(0.0, one - math.exp(at) * other)

        edge = at / mu**2 + 0.5
        area, _ = integrate.quad(excess, edge, edge + 20 / mu, points=(max(1.0, edge),), limit=500)
        assert truth.profile(0, 1, at, **params) == pytest.approx(area, abs=1e-9)
    assert truth.mu(1, 1, **params) == truth.epsilon(1, 1) == truth.profile(1, 1, 0.0) == 0


@pytest.mark.parametrize(("specimen", "params", "mu"), GAUSSIANS)
def test_gaussian_draws_have_the_stated_deviation(
    specimen: Any, params: dict[str, float], mu: float
) -> None:
    drawn = specimen(3.0, size=200_000, rng=np.random.default_rng(1), **params)
    assert drawn.mean() == pytest.approx(3, abs=6 / mu / math.sqrt(200_000))
    assert drawn.std() == pytest.approx(1 / mu, rel=6 / math.sqrt(400_000))


def test_a_stated_law_is_there_for_exact_audits() -> None:
    assert survey.survey.pmf("Yes", heads=0.0) == {"Yes": 0.5, "No": 0.5}  # type: ignore[attr-defined]
    assert math.fsum(poll.repeated_poll.pmf(1).values()) == 1  # type: ignore[attr-defined]
    assert not hasattr(gaussian, "pmf")


def specs() -> list[AuditSpec]:
    return [spec for config in CONFIGS for spec in load_config(config)]


def exact_delta(truth: Truth, spec: AuditSpec, pair: NeighbouringPair) -> float:
    """Return the δ of a pair at the claimed ε: of the definition that is claimed, and of what
    post-processing leaves."""
    assert isinstance(spec.target, ImportedTarget)
    params, epsilon = spec.target.params, spec.claim.point().epsilon
    is_probabilistic = isinstance(spec.claim, ProbabilisticDP)
    if not is_probabilistic and spec.target.post_process is None:
        return truth.profile(pair.d1, pair.d2, epsilon, **params)
    p, q = truth.pmf(pair.d1, **params), truth.pmf(pair.d2, **params)
    if spec.target.post_process is not None:
        after = resolve(spec.target.post_process)
        p, q = image(p, after), image(q, after)
    return (pdp_delta_of if is_probabilistic else delta_of)(p, q, epsilon)


@pytest.mark.parametrize("spec", specs(), ids=lambda spec: spec.name)
def test_expectations_agree_with_the_exact_truth(spec: AuditSpec) -> None:
    """What should pass keeps its claim, barely or not; what should not breaks it on some pair."""
    assert isinstance(spec.target, ImportedTarget)
    specimen, point = resolve(spec.target.path), spec.claim.point()
    if specimen in (fresh_key, unpadded):
        # No law is stated: AES is taken for what it is thought to be.
        assert (spec.requirements.expect == "pass") == (specimen is fresh_key)
        return
    deltas = [exact_delta(truth_of(specimen), spec, pair) for pair in spec.pairs]
    if spec.requirements.expect == "pass":
        assert max(deltas) <= point.delta + 1e-12
    else:
        assert max(deltas) > point.delta + 1e-3
    assert spec.statistics.confidence == 0.9999
