"""What traces say of small mechanisms: the line, the cost, the kind of fault; and their silence."""

from __future__ import annotations

import inspect
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit import ApproximateDP, GaussianDP, PureDP, Trace, UsageError
from dpaudit.targets.target import CallableTarget, ComposedTarget, ImportedTarget
from dpaudit.tracing.findings.detectors import FOR_PAIR
from dpaudit.tracing.mechanism_trace import trace_pair
from tests.raising import code

Rng = np.random.Generator
ONE = PureDP(1.0)


def kinds(trace: Trace) -> list[str]:
    return [cause.kind for cause in trace.causes]


def line_of(function: Callable[..., Any], piece: str) -> int:
    lines, start = inspect.getsourcelines(function)
    (number,) = (number for number, line in enumerate(lines, start) if piece in line)
    return number


def halved(x: float, rng: Rng) -> float:
    return x + rng.laplace(scale=0.5)


def test_too_little_noise_is_named_with_the_scale_that_would_do() -> None:
    trace = dpaudit.trace(halved, 0, 1, ONE)
    (cause,) = trace.causes
    assert cause.kind == "too-little-noise"
    assert cause.line.line == line_of(halved, "rng.laplace")
    assert cause.line.code == "rng.laplace(scale=0.5)"
    assert cause.remedy == f"a scale of 1 {FOR_PAIR}"
    (site,) = trace.sites
    assert (site.cost, site.shift, site.scales, site.released) == (2.0, 1.0, (0.5, 0.5), True)
    assert site.operands == ("0", "1")
    trace = dpaudit.trace(halved, 0, 1, PureDP(2.0))
    assert (trace.findings, trace.understood, trace.exceeds) == ((), True, False)


@pytest.mark.parametrize("has_coin", [False, True])
def test_a_difference_that_known_noise_does_not_explain_is_no_pass(has_coin: bool) -> None:
    def cubed(x: float, rng: Rng) -> tuple[float, float, bool]:
        noise = rng.laplace()
        return 1 + noise, x + noise**3, has_coin and rng.random() < 0.5

    trace = dpaudit.trace(cubed, 0, 1, ONE)
    (finding,) = trace.findings
    assert (finding.kind, finding.is_cause) == ("no-noise", False)
    assert not trace.understood


def test_without_a_claim_costs_are_listed_and_what_no_claim_allows_is_a_cause() -> None:
    assert not dpaudit.trace(halved, 0, 1).findings
    assert kinds(dpaudit.trace(lambda x, rng: (x, rng.laplace()), 0, 1)) == ["no-noise"]


@pytest.mark.parametrize(("sigma", "is_enough"), [(3.73, False), (3.74, True)])
def test_normal_noise_is_held_against_the_profile(sigma: float, is_enough: bool) -> None:
    def noisy(x: float, rng: Rng) -> float:
        return x + rng.normal(scale=sigma)

    claim = ApproximateDP(1.0, 1e-5)
    assert bool(dpaudit.trace(noisy, 0, 1, claim).causes) is not is_enough
    assert not dpaudit.trace(noisy, 0, 1, GaussianDP(1 / 3.7)).causes
    assert dpaudit.trace(noisy, 0, 1, PureDP(5.0)).causes


FORMS: list[Callable[..., Any]] = [
    lambda x, rng: x + rng.laplace(scale=0.5),
    lambda x, rng: rng.laplace(x, 0.5),
    lambda x, rng: x + 0.5 * rng.laplace(),
    lambda x, rng: np.add(x, rng.laplace() / 2),
    lambda x, rng: sum([x, rng.laplace(scale=0.5)]),
    lambda x, rng: x + rng.laplace(scale=0.5, size=(2, 2)).ravel().tolist()[3],
    lambda x, rng: [x + noise for noise in rng.laplace(scale=0.5, size=1)],
    lambda x, rng: pd.Series([x]) + rng.laplace(scale=0.5, size=1),
    lambda x, rng: x + 0.5 * (rng.exponential() - rng.exponential()),
    lambda x, rng: x + np.random.laplace(scale=0.5),
    lambda x, rng: round(max(0.0, x + rng.laplace(scale=0.5)), 2),
    lambda x, rng: {"answer": [f"{x + rng.laplace(scale=0.5):.3f}"]},
]


@pytest.mark.parametrize("form", FORMS)
def test_noise_is_seen_in_whatever_form_it_is_added(form: Callable[..., Any]) -> None:
    trace = dpaudit.trace(form, 0, 1, ONE)
    assert kinds(trace) == ["too-little-noise"]
    assert trace.sites[0].cost == pytest.approx(2.0, rel=1e-9)


def test_noise_that_values_share_shows_only_their_difference() -> None:
    def shared(pair: Sequence[float], rng: Rng) -> tuple[float, float]:
        noise = rng.laplace()
        return pair[0] + noise, pair[1] + noise

    assert kinds(dpaudit.trace(shared, [0, 0], [0, 1], ONE)) == ["noise-used-twice"]
    assert not dpaudit.trace(shared, [0, 0], [1, 1], ONE).findings


def test_branches_that_noise_covers_are_no_finding() -> None:
    def clipped(data: Sequence[float], rng: Rng) -> float:
        total = 0.0
        for value in data:
            if value > 1:
                value = 1.0
            total += value
        if not data:
            total = 0.0
        return total + rng.laplace()

    assert not dpaudit.trace(clipped, [0.5, 7.0], [0.5], ONE).findings
    assert not dpaudit.trace(clipped, [7.0], [], ONE).findings


def test_inputs_that_both_raise_are_no_finding() -> None:
    def raises(data: Sequence[float], rng: Rng) -> float:
        raise RuntimeError("never")

    trace = dpaudit.trace(raises, [1], [], ONE)
    assert not trace.findings
    assert any("RuntimeError: never" in note for note in trace.notes)


@pytest.mark.parametrize(
    ("law", "delta", "bound", "count"),
    [
        ("laplace", 1e-3, 20.0, 0),
        ("normal", 1e-3, 1.0, 1),  # noise beyond the bound is frequent
        ("logistic", 1e-100, 20.0, 1),
        ("laplace", 1e-3, math.inf, 0),
    ],
)
def test_noise_is_compared_with_a_bound_that_it_rarely_exceeds(
    law: str, delta: float, bound: float, count: int
) -> None:
    def bounded(data: Sequence[float], rng: Rng) -> Any:
        noise = max(-bound, min(bound, getattr(rng, law)()))
        return 0.1 * len(data) + noise

    claim = ApproximateDP(1.0, delta)
    assert len(dpaudit.trace(bounded, [1, 1], [1], claim).causes) == count


def test_a_constant_of_the_output_is_no_noised_value() -> None:
    def binned(data: Sequence[int], rng: Rng, *, releases: bool) -> Any:
        first = len(data) + rng.geometric(0.6)
        second = first - rng.geometric(0.6)
        return list(range(20)), second, first if releases else None

    for releases in (False, True):
        target = CallableTarget(function=binned, params={"releases": releases})
        trace = trace_pair(target, [1, 1], [1], ONE)
        assert [cause.cost for cause in trace.causes] == [math.inf] * releases


def test_a_noised_value_may_be_used_as_often_as_one_likes() -> None:
    def often(x: float, rng: Rng) -> tuple[float, ...]:
        noisy = x + rng.laplace()
        return noisy, 2 * noisy + 1, noisy - 3, float(noisy > 0), round(noisy)

    assert not dpaudit.trace(often, 0, 1, ONE).findings


def test_a_scale_that_depends_on_noised_values_is_none_of_the_data() -> None:
    def adaptive(data: Sequence[float], rng: Rng) -> tuple[float, float]:
        count = len(data) + rng.laplace(scale=2.0)
        return count, len(data) + rng.laplace(scale=2.0 + abs(count))

    assert not dpaudit.trace(adaptive, [1.0, 2.0], [1.0], ONE).causes


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_noise_hides_nothing_that_is_not_finite(value: float) -> None:
    def clipped(data: Sequence[float], rng: Rng) -> float:
        return sum(min(max(row, 0.0), value) for row in data) + rng.laplace()

    (cause,) = dpaudit.trace(clipped, [0.5, math.inf], [0.5], ONE).causes
    assert cause.kind == "no-noise"


def test_of_two_calls_in_a_line_each_has_its_own_noise() -> None:
    def two_calls(data: Sequence[float], rng: Rng) -> list[float]:
        return [len(data) + rng.laplace(scale=2), sum(data) + rng.laplace(scale=3)]

    trace = dpaudit.trace(two_calls, [0.0, 5.0, 10.0], [0.0, 5.0], ONE)
    assert [cause.line.code for cause in trace.causes] == ["rng.laplace(scale=3)"]
    sites = {site.line.code: (site.scales, site.shift, site.operands) for site in trace.sites}
    assert sites == {
        "rng.laplace(scale=2)": ((2.0, 2.0), 1.0, ("3", "2")),
        "rng.laplace(scale=3)": ((3.0, 3.0), 10.0, ("15", "5")),
    }


def test_a_seed_that_is_drawn_is_no_constant_one() -> None:
    def seeded(x: float, rng: Rng) -> float:
        return x + np.random.default_rng(rng.integers(2**32)).laplace()

    assert not dpaudit.trace(seeded, 0, 1, ONE).causes


def test_the_sum_of_all_sites_is_a_note_and_names_the_costliest() -> None:
    def winner(answers: Sequence[float], rng: Rng) -> int:
        return int(np.argmax(np.asarray(answers) + rng.laplace(scale=2.0, size=len(answers))))

    trace = dpaudit.trace(winner, [1, 2, 3], [2, 1, 2], ONE)
    assert not trace.causes
    assert trace.exceeds
    (note,) = trace.findings
    assert note.kind == "sum"
    assert trace.likely is not None
    assert trace.likely.line.line == line_of(winner, "rng.laplace")


def test_a_vector_that_is_released_costs_what_its_entries_cost() -> None:
    def counts(data: Sequence[int], rng: Rng) -> Any:
        return np.bincount(data, minlength=3) + rng.laplace(size=3)

    assert kinds(dpaudit.trace(counts, [0, 1], [0, 2], ONE)) == ["too-little-noise"]
    assert not dpaudit.trace(counts, [0, 1], [0], ONE).causes
    assert not dpaudit.trace(counts, [0, 1], [0, 2], PureDP(2.0)).causes


def test_what_one_input_alone_draws_is_the_likely_cause_where_none_is_certain() -> None:
    def leaking(bit: int, rng: Rng) -> float:
        answer = bit if rng.random() < 0.75 else 1 - bit
        if bit == 1 and rng.random() < 1e-4:
            return float(rng.normal())
        return float(answer)

    trace = dpaudit.trace(leaking, 1, 0, dpaudit.ApproximateDP(1.1, 1e-5))
    assert not trace.causes
    assert trace.likely is not None
    assert trace.likely.line.line == leaking.__code__.co_firstlineno + 2
    # The other line is in the table. Its cost is unknown, since two lines draw coins.
    assert [site.cost for site in trace.sites] == [None]


def test_whole_numbers_hide_no_fractions() -> None:
    def discrete(x: float, rng: Rng) -> float:
        return x + (rng.geometric(0.5) - rng.geometric(0.5))

    assert not dpaudit.trace(discrete, 0, 1, ONE).causes
    (cause,) = dpaudit.trace(discrete, 0.0, 0.5, ONE).causes
    assert (cause.kind, cause.cost) == ("too-little-noise", math.inf)


def test_the_mechanism_gets_batches_generators_and_parameters_as_in_an_audit() -> None:
    def batch(*, data: float, scale: float, n: int, source: Rng) -> Any:
        return data + source.laplace(scale=scale, size=n)

    trace = dpaudit.trace(
        batch, 0, 1, ONE, params={"scale": 0.5}, batch_arg="n", data_arg="data", rng_arg="source"
    )
    assert trace.sites[0].cost == 2.0
    assert kinds(dpaudit.trace(halved, 0, 1, ONE, post_process=round)) == ["too-little-noise"]


def test_noise_of_modules_closures_attributes_and_defaults() -> None:
    source, python = np.random.default_rng(3), random.Random(3)
    before = source.bit_generator.state, python.getstate()

    class Mechanism:
        def __init__(self) -> None:
            self.rng = np.random.RandomState(5)

        def __call__(self, x: float, default: Rng = source) -> tuple[float, ...]:
            return (
                x + self.rng.laplace(scale=4.0),
                x + source.laplace(scale=4.0),
                x + default.laplace(scale=4.0),
                x + python.gauss(0, 1),
            )

    mechanism = Mechanism()
    generator = mechanism.rng
    trace = dpaudit.trace(mechanism, 0, 1, ONE)
    assert [site.law for site in trace.sites].count("laplace") == 3
    assert kinds(trace) == ["too-little-noise"]  # normal noise, for a pure ε
    assert mechanism.rng is generator
    assert (source.bit_generator.state, python.getstate()) == before


def test_nothing_is_changed_afterwards_whatever_happens() -> None:
    import secrets
    import sys

    def state() -> list[Any]:
        modules = (np.random, random, secrets, sys.modules[__name__])
        names = [{name: id(value) for name, value in vars(m).items()} for m in modules]
        classes = [dict(vars(kind)) for kind in (random.Random, random.SystemRandom)]
        return [*names, *classes, random.getstate(), repr(np.random.get_state())]

    def raises(x: float, rng: Rng) -> float:
        random.gauss(0, 1)
        np.random.laplace()
        if x:
            raise KeyError(x)
        return rng.laplace()

    def interrupts(x: float) -> float:
        raise KeyboardInterrupt

    before, tracer = state(), sys.gettrace()
    dpaudit.trace(raises, 0, 1, ONE)
    with pytest.raises(KeyboardInterrupt):
        dpaudit.trace(interrupts, 0, 1, ONE)
    assert state() == before
    assert sys.gettrace() is tracer


def test_no_noise_at_all_and_noise_of_a_law_without_a_formula_are_no_pass() -> None:
    assert not dpaudit.trace(lambda x: 3, 0, 1, ONE).understood
    trace = dpaudit.trace(lambda x: x + random.triangular(-1.0, 1.0), 0, 1, ONE)
    assert [name for _, name in trace.not_understood] == ["random.triangular"]
    assert (trace.causes, trace.understood) == ((), False)


def test_what_the_clock_ends_is_said() -> None:
    target = ImportedTarget(path="mechanisms.laplace:laplace")
    trace = trace_pair(target, 0, 1, ONE, seconds=0.0)
    assert any(note.startswith("not all runs ") for note in trace.notes)
    complete = trace_pair(target, 0, 1, ONE)
    assert complete.understood
    assert not replace(complete, notes=trace.notes).understood


def test_what_cannot_be_traced_is_refused() -> None:
    assert code(dpaudit.trace, ["./program"], 0, 1, ONE) == "trace-impossible"
    part = ImportedTarget(path="mechanisms.laplace:laplace")
    assert code(trace_pair, ComposedTarget(parts=(part, part)), 0, 1, ONE) == "trace-impossible"
    assert code(dpaudit.trace, lambda rows: 0, [1], PureDP(1.0)) == "arguments-wrong"
    with pytest.raises(UsageError, match="noises"):
        dpaudit.trace(halved, 0, 1, ONE, noises=0)


def partition(rows: list[str], extra: float, rng: Any) -> dict[str, float]:
    counts = {}
    for key, count in Counter(rows).items():
        noisy = count + rng.laplace(scale=1.0)
        if noisy > 1 - math.log(2e-6) - extra:
            counts[key] = noisy
    return counts


@pytest.mark.parametrize(
    ("more", "less", "extra"),
    [
        (["a"] * 5 + ["b"], ["a"] * 5, 3),
        (["b"] + ["a"] * 30, ["a"] * 30, 0),
    ],
)
def test_keys_that_one_input_alone_has_do_not_shift_the_others(
    more: list[str], less: list[str], extra: float
) -> None:
    target = CallableTarget(function=partition, params={"extra": extra})
    for pair in ((more, less), (less, more)):
        trace = trace_pair(target, *pair, ApproximateDP(1.0, 1e-6), seeds=1)
        assert len(trace.causes) == bool(extra)
        assert [site.shift for site in trace.sites] == [0.0]


def other_noise_for_none(rows: list[float], rng: Any) -> float:
    return float(sum(rows) + rng.laplace(scale=200)) if rows else float(rng.uniform(0, 100))


def test_noise_of_one_input_alone_hides_nothing_that_the_other_one_has() -> None:
    trace = trace_pair(CallableTarget(function=other_noise_for_none), [50.0], [], PureDP(1.0))
    assert [finding.kind for finding in trace.findings] == ["drawn-for-one-input"]
    assert not trace.causes
    assert not trace.understood


def choice_and_counts(rows: list[float], rng: Rng) -> tuple[float, float, int]:
    total = sum(rows) + rng.laplace(scale=0.5)
    thrice = 3 * sum(rows) + rng.laplace(scale=0.5)
    return total, thrice, int(rng.choice(2, p=[1.0, 0.0] if rows[0] > 1 else [0.5, 0.5]))


def test_what_no_noise_hides_comes_first_then_what_costs_most() -> None:
    trace = dpaudit.trace(choice_and_counts, [1, 1], [2, 1], ONE)
    assert [(cause.kind, cause.cost) for cause in trace.causes] == [
        ("data-dependent-choice", math.inf),
        ("too-little-noise", 6.0),
        ("too-little-noise", 2.0),
    ]
