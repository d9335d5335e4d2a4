"""Power of every feature that no simplification of the learner may lose.

Each test audits a mechanism whose leak only the feature shows, or whose bound only the feature can
certify, with a fixed seed, and compares the certified number with the truth. Where an option turns
the feature on, the same audit without it certifies nothing, so the test measures the feature.
`benchmarks.ablation` runs these tests after every removal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpaudit
from dpaudit import Verdict
from dpaudit.attacks import learning, scorers
from dpaudit.attacks.agreements import NAME as AGREEMENT
from dpaudit.attacks.agreements import agreements
from dpaudit.attacks.blocks import kinds
from dpaudit.attacks.weighted_sums import mean_differences
from dpaudit.auditing import engine
from dpaudit.auditing.engine import run_audit
from dpaudit.claims import compose, group
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.targets.target import CallableTarget, ComposedTarget
from mechanisms.floating_point import textbook_laplace
from tests.specs import audit_of

Rng = np.random.Generator
Batch = NDArray[np.float64]

LN3 = math.log(3)


@pytest.fixture(autouse=True)
def no_diagnosis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what follows a violation: no bound depends on it, and it takes most of the time."""
    monkeypatch.setattr(engine, "_traced", lambda spec, result: result)
    monkeypatch.setattr("dpaudit.sampling.executors.new_processes.PROCESSES", 0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Replace the clock of the timing attack by a number of nanoseconds that a mechanism moves."""
    now = [0]
    monkeypatch.setattr("time.perf_counter_ns", lambda: now[0])
    return now


def lower(mechanism: Any, claim: dpaudit.PrivacyClaim, **options: Any) -> float:
    """Return the certified ε of the inputs 0 and 1, after the whole budget."""
    given = {"samples": 20_000, "stop": "never", **options}
    result = dpaudit.audit(mechanism, 0, 1, claim, **given)
    assert result.error is None
    return result.epsilon_lower


def shifted(x: float, size: int, rng: Rng) -> Batch:
    """Normal noise: 1-Gaussian DP, (2, 1)-Rényi DP, ½-zCDP."""
    return x + rng.normal(size=size)


def response(x: int, size: int, rng: Rng) -> NDArray[np.int64]:
    """Randomised response at ε = ln 3: right with probability ¾."""
    return np.where(rng.random(size) < 0.75, x, 1 - x)


def single(x: int, rng: Rng) -> int:
    return int(response(x, 1, rng)[0])


# Attacks -------------------------------------------------------------------------------------


def test_low_order_bits_show_what_the_reals_hide() -> None:
    """The textbook sampler has an infinite ε (Mironov 2012)."""

    def naive(x: float, size: int, rng: Rng) -> Batch:
        return textbook_laplace(float(x), size=size, rng=rng)

    claim = dpaudit.PureDP(1.0)
    assert lower(naive, claim, floating_point=True) > 5.0
    assert lower(naive, claim) < 1.0


def test_the_time_of_a_call_is_part_of_its_output(clock: list[int]) -> None:
    def slow(x: int, rng: Rng) -> float:
        clock[0] += 40_000 if rng.random() < (0.75 if x else 0.25) else 20_000
        return 0.0

    claim = dpaudit.PureDP(1.0)
    assert lower(slow, claim, timing=True, samples=4_000) > 0.8 * LN3
    assert lower(slow, claim, samples=4_000) == 0.0


def test_trees_find_the_interplay_of_two_columns() -> None:
    """The signs of the two columns agree with probability ¾ on one input, ¼ on the other; each by
    itself is noise, and so is every sum."""
    pytest.importorskip("sklearn")

    def signs(x: int, size: int, rng: Rng) -> Batch:
        outputs = rng.normal(size=(size, 3))
        agrees = response(x, size, rng) == 1
        outputs[:, 1] = np.abs(outputs[:, 1]) * np.sign(outputs[:, 0]) * np.where(agrees, 1, -1)
        return outputs

    assert lower(signs, dpaudit.PureDP(1.0)) > 0.85 * LN3


def clusters(x: int, rng: Rng) -> list[float]:
    """Return labels of seven records, the last of which has the label of the others or another;
    which of the two labels the others have is random."""
    label = int(rng.integers(2))
    noise = rng.laplace(size=3).tolist()
    return [*noise[:2], *[label] * 6, label ^ x, noise[2]]


def test_two_equal_entries_tell_although_each_alone_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 3,000 draws, refuted in 10 of 10 seeds, and in 3 without the attack."""
    claim = dpaudit.PureDP(1.0)
    audits = [dpaudit.audit(clusters, 0, 1, claim, samples=3_000, seed=seed) for seed in range(10)]
    assert [audit.verdict for audit in audits] == [Verdict.VIOLATION] * 10
    assert {audit.certificates[0].fixed.rule.attack for audit in audits} == {AGREEMENT}
    without = tuple(scorer for scorer in scorers.SCORERS if scorer is not agreements)
    monkeypatch.setattr(scorers, "SCORERS", without)
    audits = [dpaudit.audit(clusters, 0, 1, claim, samples=3_000, seed=seed) for seed in range(10)]
    assert sum(audit.verdict is Verdict.VIOLATION for audit in audits) < 9


def test_agreements_of_many_entries_are_added_up() -> None:
    """Of twenty records in three clusters with random names, each has the name of its cluster or,
    with probability ½, a random name; the input is the cluster of the last record."""

    def named(x: int, size: int, rng: Rng) -> NDArray[np.int64]:
        of_record = np.repeat([[0, 1, 2, 0, 1]], 4, axis=1).repeat(size, axis=0)
        of_record[:, -1] = x
        is_random = rng.random((size, 20)) < 0.5
        names = rng.permuted(np.tile(np.arange(3), (size, 1)), axis=1)
        of_record = np.take_along_axis(names, of_record, 1)
        return np.where(is_random, rng.integers(3, size=(size, 20)), of_record)

    assert lower(named, dpaudit.PureDP(1.0), samples=10_000) > 0.95


def test_a_score_does_not_hide_a_plain_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of four numbers is the input itself with probability ¼. If no rule gives way to a
    plainer one, the main rule is a score, "≥ 5.56", in 8 of 8 seeds."""

    def passes(x: float, size: int, rng: Rng) -> Batch:
        outputs = rng.laplace(scale=2.0, size=(size, 4))
        outputs[:, 0] += x
        outputs[rng.random(size) < 0.25, 0] = x
        return outputs

    def events(seed: int) -> list[str]:
        claim = dpaudit.PureDP(1.0)
        result = dpaudit.audit(passes, 0.1, 0.9, claim, samples=100_000, stop="never", seed=seed)
        main = result.certificates[0].rules[0]
        return [event.words for event in main.events]

    assert [events(seed) for seed in range(4)] == [["output[0] is 0.1", "output[0] is 0.9"]] * 4
    monkeypatch.setattr(learning, "plainest", lambda winner, *_: winner)
    assert sum("score" in events(seed)[0] for seed in range(4)) > 2


def test_an_attack_of_a_user_is_tried_and_used() -> None:
    """Whether the bits of all columns together are even says which input it was."""

    def parity(x: int, size: int, rng: Rng) -> NDArray[np.int64]:
        outputs = rng.integers(1 << 20, size=(size, 3))
        right = np.bitwise_count(outputs).sum(axis=1) % 2 == response(x, size, rng)
        outputs[:, 0] ^= 1 - right
        return outputs

    def fit(selection: Any) -> Callable[[Any], Batch]:
        def score(outcomes: Any) -> Batch:
            columns = outcomes.named([f"output[{place}]" for place in range(3)])
            bits = [np.bitwise_count(column.numbers.astype(np.int64)) for column in columns]
            return -np.asarray(np.sum(bits, axis=0) % 2, dtype=np.float64)

        return score

    claim = dpaudit.PureDP(1.0)
    assert lower(parity, claim, attacks=[fit]) > 0.85 * LN3
    assert lower(parity, claim) < 0.3


def walk(x: float, size: int, rng: Rng) -> Batch:
    """Sums of the first 1, …, 6 answers, each of which the input moves by 0.3."""
    return np.cumsum(rng.laplace(size=(size, 6)) + 0.3 * x, axis=1)


def mixed(x: int, size: int, rng: Rng) -> list[Any]:
    """A walk in two draws of three; else None, or one of two texts, which tell by their share."""
    is_walk, is_text = rng.random(size) < 2 / 3, rng.random(size) < (0.6 if x else 0.4)
    texts = np.where(rng.random(size) < 0.5, "high", "low").tolist()
    others = [text if chosen else None for text, chosen in zip(texts, is_text, strict=True)]
    rows = zip(is_walk, walk(x, size, rng).tolist(), others, strict=True)
    return [numbers if chosen else other for chosen, numbers, other in rows]


def with_gaps(x: int, size: int, rng: Rng) -> list[Any]:
    """A walk; in one draw of a hundred None."""
    gaps = rng.random(size) < 0.01
    rows = zip(gaps, walk(x, size, rng).tolist(), strict=True)
    return [None if gap else numbers for gap, numbers in rows]


def shifted_evenly(x: int, size: int, rng: Rng) -> Batch:
    """Normal noise of 600 columns, 2-Gaussian DP together: a shift of 0.08 in each."""
    return rng.normal(2 * x / math.sqrt(600), size=(size, 600))


@pytest.mark.parametrize(
    ("mechanism", "samples", "scorer", "least"),
    [
        (mixed, 20_000, kinds, 1.1),
        (with_gaps, 20_000, kinds, 1.2),
        (shifted_evenly, 4_000, mean_differences, 2.5),
    ],
    ids=["mixed types", "gaps", "600 columns"],
)
def test_only_one_scorer_shows_the_bound(
    mechanism: Any, samples: int, scorer: Any, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certified ε is 1.33, 1.43 and 3.04, and 0.60, 0.60 and 0 without the scorer."""
    claim = dpaudit.PureDP(0.3)
    assert lower(mechanism, claim, samples=samples) > least
    remaining = tuple(other for other in scorers.SCORERS if other is not scorer)
    monkeypatch.setattr(scorers, "SCORERS", remaining)
    assert lower(mechanism, claim, samples=samples) < 0.75 * least


def test_repeated_runs_are_learned_from_together() -> None:
    """Each run tells by its parity, a little: eight values a parity are too many to learn for each
    of twenty runs apart (2.2), and few enough for all of them together (3.0 of 6.5)."""

    def once(x: int, size: int, rng: Rng) -> NDArray[np.int64]:
        right = rng.random(size) < 0.58
        return 2 * rng.integers(8, size=size) + np.where(right, x, 1 - x)

    claim = dpaudit.PureDP(0.1)
    result = dpaudit.audit(once, 0, 1, claim, repeat=20, samples=10_000, stop="never")
    assert result.claim == dpaudit.PureDP(2.0)
    assert result.verdict is Verdict.VIOLATION
    assert result.epsilon_lower > 2.6


def test_an_exception_is_an_output() -> None:
    def raises(x: int, rng: Rng) -> int:
        if rng.random() < (0.3 if x else 0.1):
            raise ValueError("no answer")
        return 0

    assert lower(raises, dpaudit.PureDP(0.5)) > 0.8 * LN3


def test_recorded_draws_are_audited_without_the_mechanism() -> None:
    d1, d2 = (response(x, 20_000, np.random.default_rng(x)) for x in (0, 1))
    result = dpaudit.bound(d1, d2, dpaudit.PureDP(1.0))
    assert result.verdict is Verdict.VIOLATION
    assert 0.95 * LN3 < result.epsilon_lower <= LN3


def test_ten_million_draws_show_a_leak_of_four_in_a_million() -> None:
    """The 100,000 draws that are kept show it once in three audits: learning goes on from counts
    of draws that are not kept."""

    def rare(x: int, size: int, rng: Rng) -> NDArray[np.int32]:
        outputs = rng.integers(2, size=size, dtype=np.int32)
        outputs[: rng.binomial(size, 4e-6)] = 7 + x
        return outputs

    assert lower(rare, dpaudit.PureDP(1.0), samples=10_000_000) > 1.2


# Definitions ---------------------------------------------------------------------------------


def revealing(x: int, size: int, rng: Rng) -> NDArray[np.int64]:
    """Reveals the input with probability 0.05, else ln 3: tight at (ln 3, 0.05)."""
    return np.where(rng.random(size) < 0.05, 2 + x, response(x, size, rng))


def test_delta_is_set_aside_and_not_more() -> None:
    found = lower(revealing, dpaudit.ApproximateDP(0.9, 0.05), samples=100_000)
    assert 0.94 * LN3 < found <= LN3


def test_probabilistic_dp_is_refuted_by_single_outputs() -> None:
    """Half of the outputs violate ε = 0.9 by a little: their mass counts, and not their excess."""
    claim = dpaudit.ProbabilisticDP(0.9, 0.3)
    result = dpaudit.audit(response, 0, 1, claim, samples=50_000)
    assert result.verdict is Verdict.VIOLATION
    assert result.certificates[0].fixed.method == "probabilistic"
    approximate = dpaudit.ApproximateDP(0.9, 0.3)
    found = dpaudit.audit(response, 0, 1, approximate, samples=50_000)
    assert found.verdict is Verdict.NO_VIOLATION_FOUND


def test_computational_dp_looks_through_its_adversary() -> None:
    claims = [dpaudit.ComputationalDP(0.5, 0.01, one) for one in (answers, silent)]
    found = [dpaudit.audit(shifted, 0, 1, claim, samples=20_000).verdict for claim in claims]
    assert found == [Verdict.VIOLATION, Verdict.NO_VIOLATION_FOUND]


def answers(output: float) -> int | None:
    return 1 if output < 0 else 2 if output > 1 else None


def silent(output: float) -> int | None:
    return None


def tradeoff(alpha: float) -> float:
    """Return the smallest error of the second kind that (½, 0.2)-DP allows."""
    odds = math.exp(0.5)
    return max(0.0, 0.8 - odds * alpha, (0.8 - alpha) / odds)


def test_the_mean_of_gaussian_dp_is_nearly_reached() -> None:
    claim = dpaudit.GaussianDP(0.8)
    result = dpaudit.audit(shifted, 0, 1, claim, samples=100_000, stop="never")
    own = claim.own_lower(result.point.epsilon, result.delta_lower)
    assert result.verdict is Verdict.VIOLATION
    assert own is not None
    assert 0.93 < own[1] <= 1.0


@pytest.mark.parametrize("claim", [dpaudit.RenyiDP(2, 0.8), dpaudit.ZeroConcentratedDP(0.43)])
def test_divergences_are_refuted_where_no_event_does(claim: dpaudit.PrivacyClaim) -> None:
    """D_a of this noise is a / 2: 1 for a = 2, and ρ = ½."""
    result = dpaudit.audit(shifted, 0, 1, claim, samples=100_000, stop="never")
    (certificate,) = result.certificates
    assert result.verdict is Verdict.VIOLATION
    assert certificate.fixed.p_value > certificate.fixed.alpha
    assert certificate.divergence is not None
    assert certificate.divergence.lower > 0.85 * certificate.divergence.witness.order / 2


def test_total_variation_is_nearly_reached() -> None:
    """Of this noise it is 2 Φ(½) - 1 = 0.383, all of it between the two means."""
    claim = dpaudit.TotalVariation(0.3)
    result = dpaudit.audit(shifted, 0, 1, claim, samples=50_000, stop="never")
    assert result.verdict is Verdict.VIOLATION
    assert 0.355 < result.delta_lower < 0.383


def test_f_dp_is_refuted_where_alone_the_curve_is_crossed() -> None:
    """The curve of (½, 0.2)-DP: this noise has δ(½) = 0.24, and is below the curve at ε = 0 and at
    ε ≥ 0.7."""
    result = dpaudit.audit(shifted, 0, 1, dpaudit.FunctionalDP(tradeoff), samples=100_000)
    assert result.verdict is Verdict.VIOLATION
    assert 0.2 < result.point.epsilon < 0.7


def test_several_mechanisms_are_audited_as_one() -> None:
    """Two answers at ln 3 lose 2 ln 3: less than that is refuted, by both answers together."""
    claim = compose([dpaudit.PureDP(0.8 * LN3)] * 2)
    target = ComposedTarget(parts=(CallableTarget(function=response),) * 2)
    pair = NeighbouringPair(0, 1, None, "0 and 1")
    result = run_audit(
        audit_of(
            name="two",
            target=target,
            pairs=(pair,),
            claim=claim,
            samples=20_000,
            stop="never",
        )
    )
    assert claim == dpaudit.PureDP(1.6 * LN3)
    assert result.verdict is Verdict.VIOLATION
    assert result.epsilon_lower > 0.9 * 2 * LN3


def test_a_claim_holds_for_groups_as_far_as_it_follows() -> None:
    """Answers of three records at (ln 3, δ) each: an input with three others loses 3 ln 3."""

    def answered(records: tuple[int, ...], size: int, rng: Rng) -> NDArray[np.int64]:
        return np.column_stack([response(one, size, rng) for one in records])

    found = []
    for share in (0.8, 1.01):
        claim = group(dpaudit.PureDP(share * LN3), 3)
        inputs = (0, 0, 0), (1, 1, 1)
        result = dpaudit.audit(answered, *inputs, claim, samples=50_000, stop="never")
        found.append((result.verdict, result.epsilon_lower > 0.85 * 3 * LN3))
    assert found == [(Verdict.VIOLATION, True), (Verdict.NO_VIOLATION_FOUND, True)]


# Other bounds --------------------------------------------------------------------------------


def test_exact_laws_leave_no_error() -> None:
    mechanism = "mechanisms.randomized_response:randomized_response"
    result = dpaudit.audit(mechanism, 0, 1, dpaudit.PureDP(1.0), exact=True)
    assert result.verdict is Verdict.VIOLATION
    assert result.epsilon_lower == pytest.approx(LN3, abs=1e-9)


def test_a_declared_range_gives_an_interval() -> None:
    claim = dpaudit.PureDP(1.2)
    result = dpaudit.audit(response, 0, 1, claim, range=[0, 1], samples=40_000)
    interval = result.certificates[0].interval
    assert interval is not None
    assert LN3 - 0.1 < interval.lower < LN3 < interval.upper < LN3 + 0.1
