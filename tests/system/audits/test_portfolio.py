"""The exact tests of a portfolio: shares, p-values and bounds of each rule, by other arithmetic."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import pytest
from scipy.stats import beta, binom

import dpaudit
from dpaudit import AuditResult, PureDP
from dpaudit.auditing.recheck import recheck
from dpaudit.certificates.certificate import Certificate, FixedTest
from dpaudit.certificates.certify import certify
from dpaudit.certificates.evidence import (
    BETTING_SHARE,
    CERTIFICATION_SHARE,
    CONFIRMATION_SHARE,
    Block,
    Evidence,
    FrozenRule,
    Recording,
)
from dpaudit.claims import ProfilePoint
from dpaudit.draws import Tally
from dpaudit.levels.portfolio import OTHER_SHARE, RARE_SHARE
from tests.forging import with_certificates
from tests.specs import replace

PURE = PureDP(1.0)
SHARES = (1 - RARE_SHARE - OTHER_SHARE, RARE_SHARE, OTHER_SHARE)


def noisy(dataset: int, size: int, rng: np.random.Generator) -> Any:
    """Normal noise; rarely, a value of the input's own."""
    found = rng.normal(size=size) + 0.3 * dataset
    return np.where(rng.random(size) < 5e-3, 50.0 + dataset, found)


def constant(dataset: int, size: int, rng: np.random.Generator) -> Any:
    return np.where((rng.random(size) < 5e-3) & (dataset == 1), 1.0, 0.0)


def audited(mechanism: Any = noisy, stop: Any = "never", claim: Any = PURE) -> AuditResult:
    return _audited(mechanism, stop, claim)


@functools.cache
def _audited(mechanism: Any, stop: Any, claim: Any) -> AuditResult:
    return dpaudit.audit(mechanism, 1, 0, claim, samples=20_000, seed=0, stop=stop)


def only(result: AuditResult) -> Certificate:
    (one,) = result.certificates
    return one


def counted(one: Certificate, test: FixedTest) -> tuple[int, int]:
    """Return the right and wrong guesses of a rule on the draws of the exact test."""
    right = wrong = 0
    for block in one.evidence.blocks:
        if block.stage == test.stage:
            for guess, (d1, d2) in zip(test.rule.guesses, block.tally.counts.tolist(), strict=True):
                right += d1 * (guess == 1) + d2 * (guess == -1)
                wrong += d2 * (guess == 1) + d1 * (guess == -1)
    return right, wrong


def p_of(right: int, wrong: int, epsilon: float) -> float:
    return float(binom.sf(right - 1, right + wrong, 1 / (1 + math.exp(-epsilon))))


def bound_of(right: int, wrong: int, alpha: float) -> float:
    """Return the lower bound for ε at δ = 0: the log-odds of Clopper and Pearson's for a share."""
    share = float(beta.ppf(alpha, right, wrong + 1)) if right else 0.0
    return max(0.0, math.log(share / (1 - share))) if share else 0.0


def test_the_shares_of_three_rules_are_those_of_the_method() -> None:
    assert pytest.approx((0.9, 0.08, 0.02)) == SHARES
    one = only(audited())
    assert [test.rule.kind for test in one.rules] == ["main", "rare", "other"]
    assert [test.rule.share for test in one.rules] == pytest.approx(SHARES)
    assert math.fsum(test.rule.share for test in one.rules) == pytest.approx(1.0)
    assert [test.alpha for test in one.rules] == pytest.approx(
        [share * CERTIFICATION_SHARE * 0.01 for share in SHARES]
    )
    whole = one.alpha_betting + math.fsum(test.alpha for test in one.rules)
    assert whole == pytest.approx(0.01 * (1 - CONFIRMATION_SHARE))


def test_a_share_that_no_rule_takes_is_the_main_rules() -> None:
    rules = only(dpaudit.audit(constant, 0, 0, PureDP(1.0), samples=2_000)).rules
    assert [(test.rule.kind, test.rule.share) for test in rules] == [("main", 1.0)]


@pytest.mark.parametrize("mechanism", [noisy, constant])
def test_every_rule_has_its_counts_p_value_and_bound_at_its_own_share(mechanism: Any) -> None:
    one = only(audited(mechanism))
    p_values, bounds = [1.0], [0.0]
    for test in one.rules:
        right, wrong = counted(one, test)
        assert (test.correct, test.wrong) == (right, wrong)
        assert test.draws == sum(
            block.draws for block in one.evidence.blocks if block.stage == test.stage
        )
        p_values.append(p_of(right, wrong, 1.0) / (test.rule.share * CERTIFICATION_SHARE))
        bounds.append(bound_of(right, wrong, test.alpha))
        assert test.p_value == pytest.approx(p_of(right, wrong, 1.0), rel=1e-6)
        assert test.epsilon_lower == pytest.approx(bounds[-1], abs=1e-6)
        assert test.refutes is (test.p_value <= test.alpha)
    betting = 1 / (max(1.0, one.wealth) * BETTING_SHARE)
    assert one.p_value == pytest.approx(min(*p_values, betting), rel=1e-6)
    assert one.epsilon_lower == pytest.approx(max(*bounds, one.epsilon_betting), abs=1e-6)


def test_the_rule_with_the_best_bound_is_shown() -> None:
    one = only(audited())
    assert one.fixed.rule.kind == "rare"
    assert one.fixed.epsilon_lower == max(test.epsilon_lower for test in one.rules)
    assert one.fixed.rule.attack == "rare outputs"
    assert [event.words for event in one.fixed.events] == ["output is 51", "output is 50"]
    assert [test.rule.kind for test in one.others] == ["main", "other"]


def test_a_confirmation_tests_one_rule_with_all_of_its_share() -> None:
    result = audited(stop="auto")
    one = only(result)
    assert one.fixed.stage == "confirmation"
    (test,) = one.rules
    assert test.rule.share == 1.0
    assert test.alpha == pytest.approx(CONFIRMATION_SHARE * 0.01)
    assert test.epsilon_lower == pytest.approx(bound_of(*counted(one, test), test.alpha), abs=1e-6)
    assert one.detectable_rare is None
    assert recheck(result) == []


def with_test(one: Certificate, kind: str, **changes: Any) -> Certificate:
    """Return a certificate with the numbers of one of its tests changed."""
    fixed, *others = (
        replace(test, **changes) if test.rule.kind == kind else test
        for test in (one.fixed, *one.others)
    )
    return replace(one, fixed=fixed, others=tuple(others))


def with_rule(one: Certificate, name: str, **changes: Any) -> Certificate:
    """Return a certificate whose numbers follow from evidence with one rule changed."""
    rules = (replace(rule, **changes) if rule.kind == name else rule for rule in one.evidence.rules)
    return certify(replace(one.evidence, rules=tuple(rules)))


def without(one: Certificate, *kinds: str) -> Certificate:
    rules = tuple(rule for rule in one.evidence.rules if rule.kind not in kinds)
    return certify(replace(one.evidence, rules=rules))


def other_guesses(one: Certificate, kind: str) -> tuple[int, ...]:
    (own,) = (test for test in one.rules if test.rule.kind == kind)
    return (*(-guess for guess in own.rule.guesses[:-1]), own.rule.guesses[-1])


Change = Callable[[Certificate], Certificate]
CHANGES: dict[str, Change] = {
    "less of the share": lambda one: with_rule(one, "other", share=0.01),
    "guesses of the main rule": lambda one: with_test(
        one, "main", rule=replace(one.evidence.rules[0], guesses=other_guesses(one, "main"))
    ),
    "counts of the main rule": lambda one: with_test(one, "main", correct=20_000),
    "alpha of the third rule": lambda one: with_test(one, "other", alpha=0.01),
    "the rare rule left out": lambda one: without(one, "rare"),
    "another rule shown": lambda one: replace(
        one, fixed=one.others[0], others=(one.fixed, one.others[1])
    ),
    "detectable rare output": lambda one: replace(one, detectable_rare=1e-6),
}


def test_a_portfolio_without_a_change_is_believed() -> None:
    """Else the changes below would show nothing."""
    assert recheck(with_certificates(audited(), only(audited()))) == []


@pytest.mark.parametrize("name", CHANGES)
def test_a_portfolio_that_was_tampered_with_is_noticed(name: str) -> None:
    result = audited()
    changed = CHANGES[name](only(result))
    assert recheck(with_certificates(result, changed)) != []


IMPOSSIBLE: dict[str, Change] = {
    "all of the share for the rule that refutes": lambda one: with_rule(one, "rare", share=1.0),
    "more of the share": lambda one: with_rule(one, "other", share=0.05),
    "two of a kind": lambda one: with_rule(one, "other", kind="rare"),
    "the main rule left out": lambda one: without(one, "main"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_no_evidence_has_shares_above_one_or_rules_of_one_kind(name: str) -> None:
    with pytest.raises(ValueError, match=r"rule|share|levels"):
        IMPOSSIBLE[name](only(audited()))


def test_a_confirmation_has_one_rule() -> None:
    evidence = only(audited(stop="auto")).evidence
    (rule,) = evidence.rules
    second = replace(rule, kind="other" if rule.kind == "rare" else "rare", share=0.5)
    with pytest.raises(ValueError, match="confirmation"):
        replace(evidence, rules=(replace(rule, share=0.5), second))


def evidence_of(
    tally: Sequence[tuple[int, int]],
    rules: Sequence[tuple[Literal["main", "rare", "other"], float, Sequence[int]]],
    point: ProfilePoint,
    method: Literal["game", "clopper-pearson"] = "game",
) -> Evidence:
    """Return evidence of recorded draws, on which nothing is bet."""
    d1, d2 = np.sum(tally, axis=0).tolist()
    return Evidence(
        point=point,
        alpha=0.05,
        confidence=0.95,
        budget=d1 + d2,
        recording=Recording(d1, d2, coin_flipped=True),
        blocks=(Block("recorded", None, Tally(np.array(tally))),),
        stage="recorded",
        method=method,
        rules=tuple(
            FrozenRule(kind, share, kind, tuple(guesses), ("E", "F"))
            for kind, share, guesses in rules
        ),
    )


@pytest.mark.parametrize("seed", range(10))
def test_random_portfolios_follow_from_their_tallies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tally = [(int(d1), int(d2)) for d1, d2 in rng.poisson([[300, 180], [40, 3], [2, 30], [9, 9]])]
    kinds: tuple[Literal["main", "rare", "other"], ...] = ("main", "rare", "other")
    rules = [
        (kind, share, [int(one) for one in rng.integers(-1, 2, size=4)])
        for kind, share in zip(kinds, SHARES, strict=True)
    ]
    epsilon = float(rng.choice([0.0, 0.3, 1.0]))
    found = certify(evidence_of(tally, rules, ProfilePoint(epsilon, 0.0)))
    p_values, bounds = [1.0], [0.0]
    for _, share, guesses in rules:
        right = sum(
            d1 * (g == 1) + d2 * (g == -1) for g, (d1, d2) in zip(guesses, tally, strict=True)
        )
        wrong = sum(
            d2 * (g == 1) + d1 * (g == -1) for g, (d1, d2) in zip(guesses, tally, strict=True)
        )
        p_values.append(p_of(right, wrong, epsilon) / share)
        bounds.append(bound_of(right, wrong, share * 0.05))
    assert found.p_value == pytest.approx(min(p_values), rel=1e-6)
    assert found.epsilon_lower == pytest.approx(max(bounds), abs=1e-6)
    assert found.refuted is (min(p_values) <= 0.05)
    assert len(found.others) == 2


def test_a_pair_of_bounds_is_split_among_rules_as_well() -> None:
    """One event each: a bound for either input, at half of the share of the rule."""
    tally = [(300, 180), (60, 3)]
    arms = [sum(one) for one in zip(*tally, strict=True)]
    rules: Any = [("main", 1 - RARE_SHARE, [1, 0]), ("rare", RARE_SHARE, [0, 1])]
    evidence = evidence_of(tally, rules, ProfilePoint(0.5, 0.0), "clopper-pearson")
    evidence = replace(evidence, rules=tuple(replace(r, words=("E", None)) for r in evidence.rules))
    found = certify(evidence)
    assert [one.method for one in (found.fixed, *found.others)] == ["clopper-pearson"] * 2
    for test, (own, other) in zip((found.fixed, *found.others), reversed(tally), strict=True):
        alpha = test.rule.share * 0.05 / 2
        low = float(beta.ppf(alpha, own, arms[0] - own + 1))
        high = float(beta.isf(alpha, other + 1, arms[1] - other))
        assert test.epsilon_lower == pytest.approx(max(0.0, math.log(low / high)), abs=1e-6)
