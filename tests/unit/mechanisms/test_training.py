"""Truth and claims of the training mechanisms, by hand, by integration and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate

from benchmarks.traces import claim_of, names, planted_lines
from dpaudit.import_path import resolve
from dpaudit.targets.target import ImportedTarget
from dpaudit.tracing.mechanism_trace import trace_pair
from mechanisms.causes.planted import Cause
from mechanisms.training.model import gaussian_delta, sampled_delta, two_scales_delta
from mechanisms.training.planted import DELTA, NAMED, RARELY_SAMPLED, SAMPLED, TRAINING, WEAK, WHOLE
from mechanisms.truth import truth_of

# Probability that the test below fails although the stated laws are right, by six standard errors.
FAILURE_PROBABILITY = 1e-7
# Draws for each input; fewer where the stated δ is large.
DRAWS, FEW_DRAWS = 4_000, 500

each = pytest.mark.parametrize("one", TRAINING, ids=lambda one: one.name)


def profile(path: str, one: Cause, at: float) -> float:
    """Return the stated δ of the pair at ε = `at`."""
    truth = truth_of(resolve(path))
    if truth.definition == "gaussian":
        return gaussian_delta(truth.mu(one.d1, one.d2, **one.params), at)
    return truth.profile(one.d1, one.d2, at, **one.params)


@each
def test_only_the_bug_breaks_the_claim(one: Cause) -> None:
    assert one.correct is not None
    assert profile(one.broken, one, one.epsilon) > 0.02
    if one.broken != one.correct:
        assert profile(one.correct, one, one.epsilon) <= DELTA


# μ of each pair by hand, for σ = 2 and B = 8. The canary's gradient has norm 8; the others sum to
# (-1, 1, -1, 0), and the clipped canary adds (0, 0, 0, -1). In `batch_clipped`, the sums become
# (-1, 1, -1, -8)/8, which has norm 1.023, and (-1, 1, -1)/8, which has norm 0.217.
_OTHERS = np.array([-1, 1, -1, 0.0])
_WITH = np.array([-1, 1, -1, -8.0])
BY_HAND = {
    "step": 0.5,
    "without_clipping": 4.0,
    "batch_clipped": 4 * float(np.linalg.norm(_WITH / math.sqrt(67) - _OTHERS / 8)),
    "mean_noise_on_sum": 4.0,
    "sum_noise_on_mean": 1 / 16,
    "noise_by_microbatches": math.sqrt(8),
    "microbatches_together": 0.5,
    "copies_clipped": 3.0,
    "copies_averaged": 0.5,
    # The sum gets -16 times the means of y·x, which are (1, -1, 1, 8)/4 and (1, -1, 1, 0)/3.
    "start_from_data": float(np.linalg.norm([16 / 12, -16 / 12, 16 / 12, -1 - 32])) / 2,
    "steps_on_all": math.sqrt(8),
}


@pytest.mark.parametrize(("name", "mu"), BY_HAND.items())
def test_mu_is_that_by_hand(name: str, mu: float) -> None:
    pair = NAMED[0]
    truth = truth_of(resolve(f"mechanisms.training.steps:{name}"))
    assert truth.mu(pair.d1, pair.d2) == pytest.approx(mu, rel=1e-12)
    assert truth.mu(pair.d2, pair.d1) == pytest.approx(mu, rel=1e-12)


@pytest.mark.parametrize("path", sorted({one.broken for one in TRAINING}))
def test_draws_have_the_stated_delta(path: str) -> None:
    """The best event of a linear score has no larger δ than stated, and nearly as large a one."""
    one = next(one for one in TRAINING if one.broken == path)
    mechanism, rng = resolve(path), np.random.default_rng(1)
    stated = profile(path, one, 0.0)
    size = DRAWS if stated < 0.6 else FEW_DRAWS
    drawn = [
        np.array([mechanism(data, **one.params, rng=rng) for _ in range(size)])
        for data in (one.d1, one.d2)
    ]
    apart = drawn[0].mean(axis=0) - drawn[1].mean(axis=0)
    scores = [draws @ apart for draws in drawn]
    cuts = np.quantile(np.concatenate(scores), np.linspace(0.01, 0.99, 99))
    shares = [(score[:, None] > cuts).mean(axis=0) for score in scores]
    found = max(float(np.max(np.abs(shares[0] - shares[1]))), 0.0)
    error = 6 * math.sqrt(0.5 / size)
    # Scales differ in one mechanism, which shows in the length of the vector, and not in its mean.
    lowest = 0.3 if path.endswith("batch_size") else 0.9
    assert lowest * stated - error <= found <= stated + error


def normal(x: float, mu: float = 0.0, s: float = 1.0) -> float:
    return math.exp(-0.5 * ((x - mu) / s) ** 2) / (s * math.sqrt(2 * math.pi))


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.5])
@pytest.mark.parametrize(("mu", "rate"), [(0.5, 0.3), (1.0, 0.02), (2.0, 0.9)])
def test_delta_with_sampling_is_that_of_integration(mu: float, rate: float, epsilon: float) -> None:
    def mixed(x: float) -> float:
        return (1 - rate) * normal(x) + rate * normal(x, mu)

    factor = math.exp(epsilon)
    deltas = [
        integrate.quad(lambda x: max(mixed(x) - factor * normal(x), 0.0), -12, 14, limit=400)[0],
        integrate.quad(lambda x: max(normal(x) - factor * mixed(x), 0.0), -12, 14, limit=400)[0],
    ]
    assert sampled_delta(mu, epsilon, rate) == pytest.approx(max(deltas), abs=1e-7)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.5])
@pytest.mark.parametrize(("shift", "s", "t"), [(0.0, 1.0, 1.5), (1.0, 1.0, 0.5), (2.0, 2.0, 3.0)])
def test_delta_of_two_scales_is_that_of_integration(
    shift: float, s: float, t: float, epsilon: float
) -> None:
    factor, (low, high) = math.exp(epsilon), (-30.0, 30.0)
    one = integrate.quad(
        lambda x: max(normal(x, 0, s) - factor * normal(x, shift, t), 0.0), low, high, limit=800
    )
    two = integrate.quad(
        lambda x: max(normal(x, shift, t) - factor * normal(x, 0, s), 0.0), low, high, limit=800
    )
    found = two_scales_delta(np.array([0.0]), s, np.array([shift]), t, epsilon)
    assert found == pytest.approx(max(one[0], two[0]), abs=1e-6)


def test_the_accountant_is_exact_to_six_digits() -> None:
    claims = (WHOLE, WEAK, SAMPLED, RARELY_SAMPLED)
    for (whole, weak, sampled, rare), holds in (
        (claims, True),
        ([one - 2e-5 for one in claims], False),
    ):
        assert (gaussian_delta(0.5, whole) <= DELTA) is holds
        assert (gaussian_delta(0.2, weak) <= DELTA) is holds
        assert (sampled_delta(1.0, sampled, 0.1) <= DELTA) is holds
        assert (sampled_delta(1.25, rare, 0.01) <= DELTA) is holds


@pytest.mark.parametrize("one", NAMED, ids=lambda one: one.name)
def test_the_line_is_named(one: Cause) -> None:
    assert planted_lines(one)
    target = ImportedTarget(path=one.broken, params=one.params)
    trace = trace_pair(target, one.d1, one.d2, claim_of(one), seeds=2)
    assert names(one, trace.causes)
    assert one.correct is not None
    target = ImportedTarget(path=one.correct, params=one.params)
    correct = trace_pair(target, one.d1, one.d2, claim_of(one), seeds=2)
    assert not correct.causes
