"""Leaks that are rare: outputs that one input alone gives, under any claim, and next to noise that
attains the claim."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import (
    ApproximateDP,
    AuditResult,
    Certificate,
    FunctionalDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    TotalVariation,
    Verdict,
)
from dpaudit.attacks import rules
from dpaudit.auditing.recheck import recheck
from tests.result_files import from_json, to_json

PURE = PureDP(1.0)


def gaussian(dataset: int, *, size: int, rng: np.random.Generator) -> Any:
    return dataset + rng.normal(scale=2.4224, size=size)


@pytest.mark.parametrize("seed", [8, 10, 19])
def test_what_the_law_foretells_is_not_given_up_for_a_few_lucky_outputs(seed: int) -> None:
    """A standard deviation of 2.42 has ε = 1.61 at δ = 1e-5; some 10 outputs in the tail of 100,000
    seem to say more, and are luck."""
    claim = ApproximateDP(1.0, 1e-5)
    found = dpaudit.audit(gaussian, 3, 2, claim, samples=1_000_000, seed=seed)
    assert found.verdict is Verdict.VIOLATION


def other_end(dataset: int, *, size: int, rng: np.random.Generator) -> Any:
    """Normal noise that meets the claim; rarely, of the larger input a small number."""
    found = dataset + rng.normal(scale=3.7307, size=size)
    return np.where((rng.random(size) < 3e-4) & (dataset == 1), -20.0, found)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_value_that_is_seen_some_times_is_followed(seed: int) -> None:
    """15 of the 100,000 draws that are kept have it: too many for what is rare, too few for a cell
    of its own."""
    claim = ApproximateDP(1.0, 1e-5)
    found = dpaudit.audit(other_end, 0, 1, claim, samples=2_000_000, seed=seed)
    assert found.verdict is Verdict.VIOLATION


def one_sided(rows: list[str], size: int, rng: np.random.Generator, p: float = 1e-3) -> Any:
    """Only d1 can give 1e9."""
    found = len(rows) + rng.laplace(size=size)
    return np.where(rng.random(size) < p, 1e9, found) if "Eve" in rows else found


def both_sides(dataset: int, size: int, rng: np.random.Generator, p: float = 1e-3) -> Any:
    """Both inputs give a rare value, but different ones."""
    found = dataset + rng.laplace(size=size)
    return np.where(rng.random(size) < p, 1e9 + dataset, found)


def among_columns(dataset: int, size: int, rng: np.random.Generator, p: float = 1e-3) -> Any:
    """The same in one of eight columns of noise."""
    found = rng.laplace(size=(size, 8))
    found[:, 0] += dataset
    found[rng.random(size) < p, 5] = 50.0 + dataset
    return found


# Each with its inputs and the events of its rare rule; the noise of all attains ε = 1.
LEAKS: dict[str, tuple[Any, Any, Any, list[str]]] = {
    "one sided": (one_sided, ["Bob", "Eve"], ["Bob"], ["output is 1000000000"]),
    "both sides": (both_sides, 0, 1, ["output is 1000000000", "output is 1000000001"]),
    "among columns": (among_columns, 0, 1, ["output[5] is 50", "output[5] is 51"]),
}


def leaking(name: str, seed: int, claim: Any = PURE, **more: Any) -> AuditResult:
    mechanism, d1, d2, _ = LEAKS[name]
    return dpaudit.audit(mechanism, d1, d2, claim, samples=100_000, seed=seed, **more)


def only(result: AuditResult) -> Certificate:
    (one,) = result.certificates
    return one


@pytest.mark.parametrize("name", LEAKS)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_rare_leak_beside_noise_that_attains_a_pure_claim_is_refuted(
    name: str, seed: int
) -> None:
    result = leaking(name, seed)
    one = only(result)
    assert result.verdict is Verdict.VIOLATION
    assert one.fixed.rule.kind == "rare"
    assert one.fixed.rule.attack == "rare outputs"
    assert one.fixed.refutes
    assert [event.words for event in one.fixed.events] == LEAKS[name][3]
    assert one.fixed.wrong == 0
    assert [test.refutes for test in one.rules if test.rule.kind == "main"] in ([], [False])
    assert recheck(result) == []
    assert recheck(from_json(to_json([result]))[0]) == []


@pytest.mark.parametrize("name", LEAKS)
def test_most_are_missed_without_the_rare_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "rare_rule", lambda *_: None)
    found = [leaking(name, seed).verdict for seed in (1, 2)]
    assert found == [Verdict.NO_VIOLATION_FOUND] * 2


@pytest.mark.parametrize("name", LEAKS)
def test_the_noise_alone_is_not_refuted(name: str) -> None:
    mechanism, d1, d2, _ = LEAKS[name]
    clean = partial(mechanism, p=0.0)
    result = dpaudit.audit(clean, d1, d2, PURE, samples=100_000, seed=1)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert recheck(result) == []
    # It could have been: of one input alone, and of this probability.
    assert only(result).detectable_rare == pytest.approx(1e-3, rel=0.3)


def test_workers_and_a_journal_that_is_cut_short_change_no_portfolio(tmp_path: Path) -> None:
    name = "tests.validity.test_rare_leaks:among_columns"

    def audited(**more: Any) -> AuditResult:
        return dpaudit.audit(name, 0, 1, PURE, samples=100_000, seed=1, **more)

    alone = audited()
    assert [test.rule.kind for test in only(alone).rules] == ["main", "rare", "other"]
    assert only(alone).fixed.rule.kind == "rare"
    assert audited(workers=2).certificates == alone.certificates
    path = tmp_path / "kept"
    assert audited(journal=path).certificates == alone.certificates
    (file,) = path.iterdir()
    whole = file.read_bytes()
    for share in (0.2, 0.6, 0.95):
        file.write_bytes(whole[: int(share * len(whole))])
        again = audited(journal=path, resume=True)
        assert only(again).rules == only(alone).rules
        assert only(again).evidence.blocks == only(alone).evidence.blocks
        assert only(again).p_value == only(alone).p_value


def shares_of(result: AuditResult) -> dict[str, float]:
    """Return the part of the pair's error probability that each rule has."""
    one = only(result)
    return {test.rule.kind: test.alpha / one.alpha for test in one.rules}


def leaky(dataset: int, size: int, rng: np.random.Generator, *, p: float, shift: float) -> Any:
    """Laplace noise; rarely, of d1 = 1 alone, another output."""
    found = shift * dataset + rng.laplace(size=size)
    return np.where((rng.random(size) < p) & (dataset == 1), 1e9, found)


# An f of total variation: all of it is at one point.
VARIATION = FunctionalDP([[0, 0.9999], [0.9999, 0], [1, 0]])


@pytest.mark.parametrize(("claim", "shift"), [
    (ApproximateDP(1.0, 1e-4), 1.0), (TotalVariation(1e-4), 0.0), (VARIATION, 0.0),
])  # fmt: skip
def test_a_rare_leak_is_refuted_under_claims_with_delta(claim: Any, shift: float) -> None:
    mechanism = partial(leaky, p=1e-3, shift=shift)
    result = dpaudit.audit(mechanism, 1, 0, claim, samples=100_000, seed=1, stop="never")
    assert result.verdict is Verdict.VIOLATION
    (rare,) = (test for test in only(result).rules if test.rule.kind == "rare")
    assert rare.refutes
    assert rare.two_guesses is False
    assert [event.words for event in rare.events] == ["output is 1000000000"]
    assert shares_of(result)["rare"] == pytest.approx(0.75 * 0.08)
    assert math.fsum(shares_of(result).values()) == pytest.approx(0.75)
    assert recheck(result) == []
    clean = partial(leaky, p=0.0, shift=shift)
    found = dpaudit.audit(clean, 1, 0, claim, samples=100_000, seed=1)
    assert found.verdict is Verdict.NO_VIOLATION_FOUND


def test_under_a_renyi_claim_the_portfolio_has_half_and_the_witness_the_other() -> None:
    mechanism = partial(both_sides, p=0.05)
    result = dpaudit.audit(
        mechanism, 1, 0, RenyiDP(20.0, 1.0), samples=100_000, seed=1, stop="never"
    )
    one = only(result)
    assert result.verdict is Verdict.VIOLATION
    assert len(one.rules) > 1
    assert math.fsum(test.rule.share for test in one.rules) == pytest.approx(1.0)
    assert math.fsum(shares_of(result).values()) == pytest.approx(0.75 / 2)
    # The main rule is predicted to refute the claim, so that no rule of another kind has a share.
    assert shares_of(result) == pytest.approx({"main": 0.92 * 0.75 / 2, "rare": 0.08 * 0.75 / 2})
    assert one.divergence is not None
    assert one.divergence.alpha / one.alpha == pytest.approx(0.75 / 2)
    assert len(one.divergence.witness.values) == len(one.fixed.rule.guesses)
    assert recheck(result) == []


@pytest.mark.parametrize("seed", [0, 5, 6])
def test_a_leak_that_is_one_output_has_a_renyi_divergence(seed: int) -> None:
    """P(E) = 0.02 and Q(E) = 0: D₂ is infinite, and at least 0.8 by 100,000 draws."""
    mechanism = partial(leaky, p=0.02, shift=0.0)
    claim = RenyiDP(2.0, 0.1)
    result = dpaudit.audit(mechanism, 1, 0, claim, samples=100_000, seed=seed, stop="never")
    divergence = only(result).divergence
    assert divergence is not None
    assert divergence.lower > 0.8


# The f of (1, 1e-4): the same claim as ApproximateDP(1.0, 1e-4).
SAME = FunctionalDP([
    [0, 0.9999], [0.9999 / (1 + math.e), 0.9999 / (1 + math.e)], [0.9999, 0], [1, 0],
])  # fmt: skip


@pytest.mark.parametrize(("claim", "shift", "p"), [
    (SAME, 1.0, 1e-3), (GaussianDP(1.0), 0.0, 1e-2),
])  # fmt: skip
def test_a_rare_leak_is_refuted_under_a_curve(claim: Any, shift: float, p: float) -> None:
    mechanism = partial(leaky, p=p, shift=shift)
    found = [
        dpaudit.audit(mechanism, 1, 0, claim, samples=100_000, seed=seed).verdict for seed in (1, 2)
    ]
    assert Verdict.VIOLATION in found


@pytest.mark.parametrize("tossed", [False, True])
def test_recorded_draws_with_a_rare_leak_refute_a_pure_claim(tossed: bool) -> None:
    rng = np.random.default_rng(1)
    of_d1 = int(rng.binomial(100_000, 0.5)) if tossed else 50_000
    d1, d2 = (both_sides(one, size, rng) for one, size in ((0, of_d1), (1, 100_000 - of_d1)))
    result = dpaudit.bound(d1, d2, PURE, coin_flipped=tossed)
    one = only(result)
    assert result.verdict is Verdict.VIOLATION
    assert one.fixed.rule.kind == "rare"
    assert [event.words for event in one.fixed.events] == LEAKS["both sides"][3]
    assert one.wealth == 1.0
    assert recheck(result) == []
    assert recheck(from_json(to_json([result]))[0]) == []


def test_recorded_draws_without_a_leak_do_not() -> None:
    rng = np.random.default_rng(1)
    d1, d2 = (both_sides(one, 50_000, rng, p=0.0) for one in (0, 1))
    result = dpaudit.bound(d1, d2, PURE)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert recheck(result) == []


def texts(dataset: int, size: int, rng: np.random.Generator) -> list[str]:
    return [f"{n}" for n in rng.integers(2**62, size=size).tolist()]


def numbers(dataset: int, size: int, rng: np.random.Generator) -> Any:
    """Rare values of both inputs, 100,000 of them, next to a constant."""
    rare = rng.integers(1, 100_001, size=size)
    return np.where(rng.random(size) < 0.015, rare, 0)


def vectors(dataset: int, size: int, rng: np.random.Generator) -> Any:
    return rng.integers(2**40, size=(size, 4))


@pytest.mark.parametrize("mechanism", [texts, numbers, vectors])
def test_outputs_that_are_all_rare_or_new_are_not_refuted(mechanism: Any) -> None:
    result = dpaudit.audit(mechanism, 0, 1, PureDP(0.1), samples=30_000, seed=1, stop="never")
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    one = only(result)
    assert one.p_value > 0.01
    assert recheck(result) == []
