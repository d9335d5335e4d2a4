"""Whole audits: draws spent, early stops, records, and rechecks."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import ApproximateDP, AuditResult, ProbabilisticDP, PureDP, Verdict
from dpaudit.attacks import learning as selection
from dpaudit.auditing import pair_audit as rounds
from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.recheck import recheck
from dpaudit.auditing.schedule import (
    Plan,
    limits_for,
)
from dpaudit.certificates.certificate import Certificate
from dpaudit.draws import Tally
from dpaudit.errors import UsageError
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.targets.target import CallableTarget
from mechanisms.pdp import counterexample
from tests.forging import with_certificates
from tests.result_files import from_json, to_json
from tests.sent import batch, from_global, single
from tests.specs import audit_of, replace

SAMPLES = 6_000


def k(dataset: int, size: int, rng: np.random.Generator) -> Any:
    return counterexample(dataset, epsilon=1.0, delta=0.1, size=size, rng=rng)


def audit(
    claim: dpaudit.PrivacyClaim, function: Callable[..., Any] = batch, **more: Any
) -> AuditResult:
    budget = {} if "time" in more else {"samples": SAMPLES}
    return dpaudit.audit(function, 0, 1, claim, **{**budget, **more})


def only(result: AuditResult) -> Certificate:
    (certificate,) = result.certificates
    return certificate


def test_a_refutation_stops_early_and_is_confirmed_on_fresh_draws() -> None:
    result = audit(PureDP(0.4), samples=100_000)
    one = only(result)
    assert result.verdict is Verdict.VIOLATION
    assert one.evidence.refuted_after is not None
    assert one.fixed.stage == "confirmation"
    assert one.fixed.draws == max(1_000, one.evidence.refuted_after)
    assert one.draws == one.evidence.refuted_after + one.fixed.draws < 100_000
    assert 0.4 < one.epsilon_lower < 1.0
    assert one.wealth >= 1 / one.alpha_betting
    assert result.p_value < 0.01


def test_full_spends_the_budget_and_bounds_better() -> None:
    stopped, full = (audit(PureDP(0.4), samples=50_000, stop=stop) for stop in ("auto", "never"))
    assert only(full).draws == 50_000
    assert only(full).fixed.stage == "certification"
    early, late = only(stopped).evidence.refuted_after, only(full).evidence.refuted_after
    assert early is not None
    assert late is not None
    # It learns later, by a sixteenth of the draws that are kept and a block; and looks within a
    # block matter only where a run may stop at one.
    assert early <= late < early + 6_250 // 8
    assert stopped.epsilon_lower < full.epsilon_lower < 1.0


def test_a_correct_claim_gets_all_its_draws_and_a_detectable_leak() -> None:
    result = audit(PureDP(1.0), samples=40_000)
    one = only(result)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert one.draws == one.evidence.budget == 40_000
    assert one.evidence.refuted_after is None
    assert 1.0 < one.fixed.detectable_epsilon < 1.3
    assert one.fixed.draws == 40_000 - 5_000


@pytest.mark.parametrize("claimed", [0.1, 1.0])
def test_the_smallest_budget_is_kept(claimed: float) -> None:
    one = only(audit(PureDP(claimed), samples=100))
    assert (one.draws, one.fixed.draws) == (100, 75)
    assert one.fixed.stage == "certification"


def test_too_little_room_to_confirm_means_going_on() -> None:
    certain = partial(audit, PureDP(0.1), lambda x: x)
    stopped, going_on = (only(certain(samples=samples)) for samples in (500, 120))
    assert stopped.evidence.refuted_after is not None
    assert stopped.draws == 2 * stopped.evidence.refuted_after < 300
    # Refuted after as many draws or fewer, with less than a hundred left.
    assert going_on.evidence.refuted_after is not None
    assert (going_on.draws, going_on.fixed.stage) == (120, "certification")


CASES: dict[str, dict[str, Any]] = {
    "pass": {"claim": PureDP(1.0)},
    "violation": {"claim": PureDP(0.4)},
    "full": {"claim": PureDP(0.4), "stop": "never"},
    "approximate": {"claim": ApproximateDP(1.0, 0.02)},
    "pair of intervals, violated": {"claim": PureDP(0.4), "bound": "clopper-pearson"},
    "probabilistic, violated": {"claim": ProbabilisticDP(1.0, 0.01), "function": k},
    "probabilistic, continuous": {"claim": ProbabilisticDP(1.0, 0.1)},
    "nothing to tell": {"claim": PureDP(0.0), "function": lambda x: "always"},
}


@pytest.mark.parametrize("name", CASES)
def test_a_result_can_be_rechecked_from_its_file(name: str) -> None:
    result = audit(**CASES[name])
    (read,) = from_json(to_json([result]))
    assert read == result
    assert recheck(read) == []
    assert result.trace is None
    refuted = "violated" in name or name in ("violation", "full")
    assert result.verdict is (Verdict.VIOLATION if refuted else Verdict.NO_VIOLATION_FOUND)
    one = only(result)
    assert sum(block.draws for block in one.evidence.blocks) == one.draws <= one.evidence.budget
    assert one.epsilon_lower == max(one.epsilon_betting, one.fixed.epsilon_lower)
    assert one.refuted == (result.p_value <= 0.01)


@functools.cache
def violation() -> AuditResult:
    return audit(PureDP(0.4))


def tampered(change: Callable[[Certificate], Certificate]) -> list[str]:
    result = violation()
    assert recheck(result) == []
    return recheck(with_certificates(result, change(only(result))))


def _another_tally(one: Certificate) -> Certificate:
    last = one.evidence.blocks[-1]
    counts = last.tally.counts[:, ::-1].copy()
    return replace(one, blocks=(*one.evidence.blocks[:-1], replace(last, tally=Tally(counts))))


def _another_belief(one: Certificate) -> Certificate:
    first = one.evidence.rounds[0]
    first = replace(
        first,
        posteriors=np.full_like(first.posteriors, 0.5),
        rules=np.zeros_like(first.rules),
    )
    return replace(one, rounds=(first, *one.evidence.rounds[1:]))


CHANGES: dict[str, tuple[Callable[[Certificate], Certificate], str]] = {
    "tally": (_another_tally, "p_value"),
    "belief": (_another_belief, "wealth"),
    "p-value": (lambda one: replace(one, p_value=1e-30), "p_value"),
    "bound": (lambda one: replace(one, epsilon_lower=3.0), "epsilon_lower"),
    "share": (lambda one: replace(one, alpha_betting=0.5), "alpha_betting"),
    "guesses": (
        lambda one: replace(
            one, fixed=replace(one.fixed, guesses=(1,) * len(one.fixed.rule.guesses))
        ),
        "fixed.",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_result_fails_its_recheck(name: str) -> None:
    change, named = CHANGES[name]
    assert any(named in finding for finding in tampered(change))


def test_several_pairs_share_the_error_probability() -> None:
    pairs = (NeighbouringPair(0, 0.1, label="near"), NeighbouringPair(0, 1, label="far"))
    target = CallableTarget(function=batch)
    spec = audit_of(name="two", target=target, pairs=pairs, claim=PureDP(0.5), samples=5_000)
    result = run_audit(spec)
    assert [one.pair for one in result.certificates] == ["near", "far"]
    assert [one.refuted for one in result.certificates] == [False, True]
    assert {one.alpha for one in result.certificates} == {spec.alpha}
    assert spec.alpha == pytest.approx(0.005)
    assert result.decisive is result.certificates[1]
    assert result.p_value == pytest.approx(2 * result.certificates[1].p_value)
    assert recheck(result) == []


def test_equal_seeds_give_equal_results_and_others_do_not() -> None:
    one, same, other = (audit(PureDP(1.0), seed=seed, samples=500) for seed in (7, 7, 8))
    assert one.certificates == same.certificates
    assert one.certificates != other.certificates


# A violation is drawn afresh by four new workers, whatever is called.
@pytest.mark.parametrize(("function", "claimed"), [(single, 1.0), (batch, 1.0), (from_global, 0.4)])
def test_workers_do_not_change_the_result(function: Callable[..., Any], claimed: float) -> None:
    one, two = (
        audit(PureDP(claimed), function, samples=1_000, workers=workers) for workers in (1, 2)
    )
    assert one.certificates == two.certificates
    assert one.verdict is two.verdict


def test_generators_of_the_caller_are_restored() -> None:
    rng = np.random.default_rng(3)
    before = rng.bit_generator.state
    random.seed(1)
    np.random.seed(1)
    state, legacy = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]  # a tuple

    result = audit(PureDP(1.0), lambda x: x + rng.laplace() + random.random() + np.random.rand())

    assert only(result).reproducible
    assert rng.bit_generator.state == before
    assert random.getstate() == state
    assert np.random.get_state()[1].tolist() == legacy  # type: ignore[index]  # a tuple


def test_an_exception_on_one_side_is_the_event() -> None:
    def fails(x: int, rng: np.random.Generator) -> float:
        if x and rng.random() < 0.2:
            raise ZeroDivisionError
        return float(rng.normal())

    result = audit(PureDP(0.5), fails)
    assert result.verdict is Verdict.VIOLATION
    (event,) = only(result).fixed.events
    assert (event.words, event.guess) == ("ZeroDivisionError is raised", "d2")
    d1, d2 = only(result).failures["ZeroDivisionError"]
    assert d1 == 0 < d2 < only(result).draws / 2


@pytest.mark.parametrize(
    ("kind", "d1", "d2", "is_typed"),
    [
        (TypeError, None, 1, True),
        (TypeError, {"a": 1}, [1], True),
        (TypeError, ["a"], [1], True),
        (TypeError, [None], [1], False),
        (KeyError, None, 1, False),
    ],
)
def test_an_input_of_another_type_that_always_raises_is_an_error(
    kind: type[Exception], d1: Any, d2: Any, is_typed: bool
) -> None:
    def fails(x: Any) -> float:
        if repr(x) == repr(d1):
            raise kind("not this one")
        return random.random()

    for first, second in ((d1, d2), (d2, d1)):
        result = dpaudit.audit(fails, first, second, PureDP(1.0), samples=100)
        assert result.verdict is (Verdict.ERROR if is_typed else Verdict.VIOLATION)
    if is_typed:
        asked = dpaudit.audit(fails, d1, d2, PureDP(1.0), samples=100, on_error="outcome")
        assert asked.verdict is Verdict.VIOLATION


def test_an_input_that_does_not_always_raise_is_audited() -> None:
    def mostly(x: Any) -> float:
        if x is None and random.random() < 0.8:
            raise TypeError
        return random.random()

    def several(x: Any) -> float:
        if x is None:
            raise random.choice([TypeError, AttributeError])
        return random.random()

    for function in (mostly, several):
        result = dpaudit.audit(function, None, 1, PureDP(1.0), samples=1_000)
        assert result.verdict is Verdict.VIOLATION


def test_nothing_but_exceptions_is_an_error_with_the_message() -> None:
    def fails(x: int) -> float:
        raise ValueError("needs a list")

    result = audit(PureDP(0.5), fails)
    assert result.verdict is Verdict.ERROR
    assert result.error_code == "always-raises"
    assert "ValueError: needs a list" in str(result.error)
    assert result.certificates == ()
    assert recheck(result) == []


def test_continuous_outputs_of_the_probabilistic_definition_give_a_warning() -> None:
    one = only(audit(ProbabilisticDP(1.0, 0.1)))
    assert one.fixed.method == "game"
    assert "single outputs " in one.warnings[0]


def test_bets_on_a_block_are_learned_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    learned_from: list[int] = []
    learn = selection.learn

    def watched(draws: Any, *more: Any, **named: Any) -> Any:
        learned_from.append(draws.size)
        return learn(draws, *more, **named)

    monkeypatch.setattr(rounds, "learn", watched)
    one = only(audit(PureDP(1.0), samples=40_000))
    before = 0
    for block in one.evidence.blocks:
        if block.round is not None:
            assert learned_from[block.round] <= before
        before += block.draws
    assert len(one.evidence.rounds) == len(learned_from)
    certified = [block.round for block in one.evidence.blocks if block.stage == "certification"]
    assert set(certified) == {len(learned_from) - 1}


def test_blocks_are_planned_to_the_last_draw() -> None:
    plan = Plan(100_000, None)
    learning = list(plan.learning_sizes())
    assert learning[:3] == [100, 125, 156]
    assert sum(learning) == plan.freeze_at == 12_500
    certifying = list(plan.certifying_sizes(12_500))
    assert sum(certifying) == 87_500
    assert certifying[0] == 12_500 // 16
    assert sum(plan.confirming_sizes(30_000)) == 30_000
    assert sum(plan.confirming_sizes(70_000)) == 30_000  # what is left
    assert sum(plan.confirming_sizes(100)) == 1_000
    plan = Plan(100_000, None, limits_for(1, single_draws=True))
    assert sum(plan.confirming_sizes(60)) == 100
    assert list(plan.confirming_sizes(150)) == [10] * 15


def test_a_plan_by_the_clock_is_made_once() -> None:
    times = [0.0]
    plan = Plan(1_000, 10.0, clock=lambda: times[-1])

    def passes(seconds: float) -> None:
        times.append(times[-1] + seconds)

    passes(1.0)
    plan.close_buffer_if_due(5_000)
    assert (plan.freeze_at, plan.budget, plan.is_final) == (100_000, 800_000, False)
    passes(0.25)
    plan.close_buffer_if_due(6_000)  # an eighth of the time is over
    assert (plan.freeze_at, plan.is_final) == (6_000, False)
    sizes = plan.timed_sizes(6_000)
    drawn = [next(sizes)]
    passes(1.0)  # whoever draws has started late, which says nothing about how fast draws are
    assert not plan.record_timed(drawn[0])
    for is_enough in (False, False, True):
        passes(0.2)
        drawn.append(next(sizes))
        assert plan.record_timed(drawn[-1]) == is_enough
    rate = sum(drawn[1:]) / (3 * 0.2)
    assert drawn[0] == int(0.05 * 10 / 8 * 6_000 / 1.25)
    plan.plan_by_clock(6_000)
    assert plan.budget == pytest.approx(6_000 + rate * (9.0 - 2.85), abs=1)
    assert plan.is_final
    passes(2.0)  # to learn thoroughly
    plan.plan_again(6_000)
    assert plan.budget == pytest.approx(6_000 + rate * (9.0 - 4.85), abs=1)


@pytest.mark.parametrize(
    ("epsilon", "delta", "samples"),
    [(0.0, 0.0, 1_000), (0.0, 0.3, 5_000), (60.0, 0.3, 500), (1e4, 0.0, 500)],
)
def test_extreme_claims(epsilon: float, delta: float, samples: int) -> None:
    result = audit(ApproximateDP(epsilon, delta), samples=samples)
    assert math.isfinite(result.epsilon_lower)
    # The total variation distance of the two laws is 0.39.
    assert result.verdict is (Verdict.NO_VIOLATION_FOUND if epsilon else Verdict.VIOLATION)


def test_more_draws_than_can_be_counted_are_refused() -> None:
    for samples in (10**15 + 1, 10**5000):
        with pytest.raises(UsageError, match=r"10¹⁵$") as error:
            dpaudit.audit("mechanisms.laplace:laplace", 0, 1, PureDP(1.0), samples=samples)
        assert error.value.code == "option-invalid"


def three_numbers(rows: list[int], rng: np.random.Generator, size: int = 3) -> list[float]:
    """Return a number for each of three bins; `size` is no number of outputs here."""
    return [len(rows) + float(rng.laplace()) for _ in range(size)]


@pytest.mark.parametrize(("batch_arg", "is_doubted"), [(None, True), ("size", False)])
def test_a_default_of_what_is_taken_for_the_number_of_outputs_is_doubted(
    batch_arg: str | None, is_doubted: bool
) -> None:
    result = dpaudit.audit(
        three_numbers, [1, 2], [1], PureDP(3.0), samples=1_000, seed=1, batch_arg=batch_arg
    )
    warned = [one for one in only(result).warnings if "size=3 of " in one]
    assert bool(warned) is is_doubted
