"""What noise selects, but does not hide: the plain count of the winner of a noisy maximum."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.certificates.traced import Trace
from dpaudit.claims import ApproximateDP, PrivacyClaim, PureDP
from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.findings.detectors import judge
from dpaudit.tracing.mechanism_trace import subject_of, trace_pair
from dpaudit.tracing.runs import one_sided
from dpaudit.tracing.runs.coupling import couple
from dpaudit.tracing.runs.one_sided import FreeRuns, Selected
from dpaudit.tracing.runs.running import Coupler

pytestmark = pytest.mark.usefixtures("shared_runs")
VOTES = [3, 2, 1], [2, 2, 1]
# The first wins in one run of twenty.
RARE = [5, 9, 9, 7], [4, 9, 9, 7]


@pytest.fixture(autouse=True)
def _has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_sided, "_COUNTING_SECONDS", 300.0)
    monkeypatch.setattr(one_sided, "_BRANCH_SECONDS", 60.0)


def traced(function: Any, pair: Any = VOTES, claim: PrivacyClaim | None = None) -> Trace:
    d1, d2 = pair
    return trace_pair(CallableTarget(function=function), d1, d2, claim or PureDP(1.0))


def last_line(function: Any) -> int:
    lines, start = inspect.getsourcelines(function)
    return start + len(lines) - 1


def count_of_the_winner(votes: Any, rng: Any) -> Any:
    noisy = [one + rng.laplace(scale=2) for one in votes]
    winner = int(np.argmax(noisy))
    return winner, votes[winner]


def plain_number(votes: Any, rng: Any) -> Any:
    noisy = [one + rng.laplace(scale=2) for one in votes]
    return float(votes[int(np.argmax(noisy))])


def in_arrays(votes: Any, rng: Any) -> Any:
    votes = np.asarray(votes)
    winner = np.argmax(votes + rng.gumbel(scale=4, size=len(votes)))
    return {"winner": winner, "count": votes[winner]}


def winner_alone(votes: Any, rng: Any) -> Any:
    return int(np.argmax([one + rng.laplace(scale=2) for one in votes]))


def noised_again(votes: Any, rng: Any) -> Any:
    winner = int(np.argmax([one + rng.laplace(scale=4) for one in votes]))
    return winner, votes[winner] + rng.laplace(scale=2)


def label_of_the_winner(votes: Any, rng: Any) -> Any:
    return "abcd"[int(np.argmax([one + rng.laplace(scale=2) for one in votes]))]


def largest(votes: Any, rng: Any) -> Any:
    return max(one + rng.laplace(scale=2) for one in votes)


def rounded(votes: Any, rng: Any) -> Any:
    return [round(float(one + rng.laplace(scale=2))) for one in votes]


def honest_by_a_normal(bit: int, rng: Any) -> Any:
    return bit if rng.normal() < 0.61 else 1 - bit


@pytest.mark.parametrize(
    ("function", "pair"),
    [(count_of_the_winner, VOTES), (plain_number, VOTES[::-1]), (in_arrays, VOTES)],
)
def test_the_plain_count_of_a_winner_is_a_cause(function: Any, pair: Any) -> None:
    found = traced(function, pair)
    (cause,) = found.causes
    assert (cause.kind, cause.line.line) == ("no-noise", last_line(function))
    assert "noise selects it" in cause.words
    assert cause.cost == np.inf
    assert found.total is None


@pytest.mark.parametrize(
    ("function", "pair"),
    [
        *((winner_alone, RARE), (noised_again, VOTES), (noised_again, RARE)),
        *((label_of_the_winner, VOTES), (rounded, VOTES), (largest, RARE)),
    ],
)
def test_a_winner_without_its_count_is_none(function: Callable[..., Any], pair: Any) -> None:
    found = traced(function, pair)
    assert not [one for one in found.findings if one.kind == "no-noise"]
    assert found.understood


def test_what_a_claim_allows_is_no_cause() -> None:
    assert traced(honest_by_a_normal, (1, 0)).causes == ()
    # Of so large an ε, no number of runs says that the other input never has it.
    found = traced(count_of_the_winner, claim=PureDP(5.0))
    assert not found.causes
    assert not found.understood


def test_noise_that_hides_nothing_that_differs_has_no_total() -> None:
    assert traced(honest_by_a_normal, (1, 0)).total is None


def raises_by_chance(rows: Any, rng: Any) -> Any:
    noisy = len(rows) + rng.laplace(scale=1)
    if noisy < 1.5 and len(rows) == 1:
        raise ValueError("few")
    return noisy


def raises_by_noise(rows: Any, rng: Any) -> Any:
    noisy = len(rows) + rng.laplace(scale=1)
    if noisy < 1.5:
        raise ValueError("few")
    return noisy


def test_an_exception_by_chance_of_one_input_alone_is_a_cause() -> None:
    for pair in (([1], [1, 2]), ([1, 2], [1])):
        found = traced(raises_by_chance, pair)
        (cause,) = found.causes
        lines, start = inspect.getsourcelines(raises_by_chance)
        (at,) = (number for number, line in enumerate(lines, start) if "raise " in line)
        assert (cause.kind, cause.line.line) == ("exception", at)
        assert cause.words.startswith(f"ValueError is raised for d{1 + pair[0].count(2)} alone, in")
    assert not traced(raises_by_noise, pair).findings


SWAPPED = [3, 2], [2, 3]


def with_names(votes: Any, rng: Any) -> Any:
    winner, count = count_of_the_winner(votes, rng)
    return {"winner and more": winner, "count and more": count}


@pytest.mark.parametrize("function", [count_of_the_winner, with_names])
def test_two_values_that_leak_together_are_found(function: Any) -> None:
    (cause,) = traced(function, SWAPPED).causes
    assert (cause.kind, cause.cost) == ("no-noise", math.inf)
    without = trace_pair(CallableTarget(function=function), *SWAPPED, None)
    assert [(one.kind, one.is_cause) for one in without.findings][:1] == [("no-noise", False)]
    assert (without.understood, without.total) == (False, None)


@pytest.mark.parametrize(
    ("often", "runs", "total"),
    [(1, 1_500, "ε = 1"), (2, 1_500, None), (100, 1_500, None), (0, 50, "ε = 1"), (0, 49, None)],
)
def test_two_values_that_may_leak_are_a_finding_and_leave_no_total(
    often: int, runs: int, total: str | None
) -> None:
    made = couple(subject_of(CallableTarget(function=count_of_the_winner)), *SWAPPED, 2)
    rare = [one._replace(often=often, runs=runs) for one in made.selected]
    case = judge(made._replace(selected=tuple(rare)), PureDP(4.0))
    assert rare
    assert case.total == total
    kinds = [(one.kind, one.is_cause) for one in case.found]
    assert kinds == ([("no-noise", False)] if total is None else [])
    assert {one.cost for one in case.found} <= {math.inf if often >= 100 else None}


def laplace_vector(votes: Any, rng: Any) -> Any:
    return list(np.array(votes) + rng.laplace(scale=4, size=2))


def normal_vector(votes: Any, rng: Any) -> Any:
    return list(np.array(votes) + rng.normal(scale=20, size=2))


def wide_integers(votes: Any, rng: Any) -> Any:
    return [int(one + rng.geometric(0.02) - rng.geometric(0.02)) for one in votes]


def wide_rounded(votes: Any, rng: Any) -> Any:
    return [round(float(one + rng.laplace(scale=50))) for one in votes]


@pytest.mark.parametrize("seconds", [0.0, 300.0])
def test_two_values_that_were_counted_in_few_runs_are_no_pass(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    # A slow mechanism has no time for more runs.
    monkeypatch.setattr(one_sided, "_COUNTING_SECONDS", seconds)
    found = traced(count_of_the_winner, SWAPPED, PureDP(4.0))
    assert [(one.kind, one.is_cause) for one in found.findings] == [("no-noise", False)]
    assert not found.understood
    assert found.total is None
    claim = ApproximateDP(1.0, 1e-5)
    for function in (laplace_vector, normal_vector, wide_integers, wide_rounded):
        found = traced(function, SWAPPED, claim)
        assert (found.findings, found.understood) == ((), True)
        assert found.total is not None


def by_two_uniform_numbers(votes: Any, rng: Any) -> Any:
    size = 9 * math.sqrt(-2 * math.log(rng.random()))
    return votes[0] + rng.laplace(scale=2), votes[1] + size * math.cos(6.283 * rng.random())


def test_noise_of_an_unknown_form_next_to_noise_of_a_known_cost_is_no_pass() -> None:
    found = traced(by_two_uniform_numbers, ([3, 2], [2, 3]))
    assert not found.causes
    assert not found.understood
    assert "no-noise" in {one.kind for one in found.findings}


def test_values_share_the_error_probability_and_are_counted_in_later_runs() -> None:
    subject = subject_of(CallableTarget(function=count_of_the_winner))
    pairs, runs = couple(subject, *SWAPPED, 2).coupled, FreeRuns(Coupler(subject, SWAPPED))
    found = one_sided.selected(pairs, runs)
    assert {one.part for one in found} == {("output[0]", "output[1]")}
    assert {one.runs for one in found} == {len(runs.both()[0]) - one_sided._FIRST_RUNS}
    assert {one.tried for one in found} == {4}
    assert math.isclose(found[0].level * 4 * 30, 1e-5)


def counted(often: int, runs: int) -> Selected:
    return Selected(("output",), 0, "1", "0", often, runs, None, None)


def test_counting_stops_when_the_counts_refute_the_claim() -> None:
    subject = subject_of(CallableTarget(function=count_of_the_winner))
    (whole, *_), (early, *_) = (
        couple(subject._replace(claim=claim), *VOTES, 2).selected for claim in ((), [(0.1, 0.0)])
    )
    assert early.runs < whole.runs
    assert stats.beta.ppf(1e-5, early.often, early.runs - early.often + 1) > math.exp(0.1) * (
        1 - 1e-5 ** (1 / early.runs)
    )


def test_counts_that_end_counting_refute_the_claim_by_exact_bounds() -> None:
    for runs in (50, 150, 500, 1_500):
        often, most = np.arange(1, runs + 1, 7), 1 - one_sided._CHECK_ALPHA ** (1 / runs)
        least = np.asarray(stats.beta.ppf(one_sided._CHECK_ALPHA, often, runs - often + 1))
        for epsilon, delta in ((0.0, 0.0), (1.0, 0.0), (1.0, 0.01), (3.0, 1e-6)):
            point = (epsilon, delta)
            ends = [one_sided._refutes(counted(one, runs), point) for one in often.tolist()]
            assert np.all(least[ends] > math.exp(epsilon) * most + delta)
    assert one_sided._refutes(counted(100, 200), (1.0, 0.0))
    assert not one_sided._refutes(counted(100, 200), (2.0, 0.0))
    assert not one_sided._refutes(counted(0, 200), (0.0, 0.0))


def false_ends(ends: Callable[[int], bool], runs: int, chance: float, epsilon: float) -> float:
    """Return the probability that counts of a mechanism at the claim end counting: one input gives
    a value with this chance, the other one with e^-ε times this chance, and never in the runs."""
    often = [number for number in range(runs + 1) if ends(number)]
    never = (1 - chance * math.exp(-epsilon)) ** runs
    return float(np.sum(stats.binom.pmf(often, runs, chance))) * never


def test_counts_of_a_mechanism_at_the_claim_rarely_end_counting() -> None:
    for chance in (0.005, 0.05, 0.3, 0.9):
        for runs, epsilon in ((50, 0.5), (200, 1.0), (1_500, 3.0)):

            def ends(often: int, runs: int = runs, epsilon: float = epsilon) -> bool:
                return one_sided._refutes(counted(often, runs), (epsilon, 0.0))

            assert false_ends(ends, runs, chance, epsilon) <= 2 * one_sided._CHECK_ALPHA
    # Shares without bounds refute the claim as soon as one input gives the value.
    assert false_ends(bool, 200, 0.005, 1.0) > 0.1


def by_a_coin(votes: Any, rng: Any) -> Any:
    if rng.random() < 0.5:
        return float(sum(votes))
    return sum(votes) + rng.laplace()


def by_an_integer(votes: Any, rng: Any) -> Any:
    if rng.integers(2):
        return sum(votes) + rng.laplace()
    return float(sum(votes))


def noised_both_ways(votes: Any, rng: Any) -> Any:
    if rng.random() < 0.5:
        return sum(votes) + rng.laplace(scale=2)
    return sum(votes) + rng.laplace()


@pytest.mark.parametrize("function", [by_a_coin, by_an_integer])
def test_a_coin_that_opens_a_way_without_noise_is_a_cause(function: Any) -> None:
    found = traced(function)
    (cause,) = found.causes
    assert cause.kind == "no-noise"
    assert "output is 6 for d1" in cause.words
    assert cause.line.line == inspect.getsourcelines(function)[1] + (
        2 if function is by_a_coin else 3
    )
    assert found.total is None


def test_a_coin_that_opens_two_noised_ways_is_none() -> None:
    assert not traced(noised_both_ways).causes


def test_where_runs_do_not_refute_the_claim_it_is_a_finding_all_the_same() -> None:
    for claim in (PureDP(3.0), None):
        found = trace_pair(CallableTarget(function=by_a_coin), *VOTES, claim)
        (finding,) = found.findings
        assert not finding.is_cause
        assert "output is 6 for d1" in finding.words
        assert not found.understood
