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


def count_of_the_winner(votes: Any, rng: Any) -> Any:
    noisy = [vote + rng.laplace(scale=2) for vote in votes]
    winner = int(np.argmax(noisy))
    return winner, votes[winner]


def in_arrays(votes: Any, rng: Any) -> Any:
    votes = np.asarray(votes)
    winner = np.argmax(votes + rng.gumbel(scale=4, size=len(votes)))
    return {"winner": winner, "count": votes[winner]}


def noised_again(votes: Any, rng: Any) -> Any:
    winner = int(np.argmax([vote + rng.laplace(scale=4) for vote in votes]))
    return winner, votes[winner] + rng.laplace(scale=2)


def honest_by_a_normal(bit: int, rng: Any) -> Any:
    return bit if rng.normal() < 0.61 else 1 - bit


@pytest.mark.parametrize(
    ("function", "pair"),
    [(count_of_the_winner, VOTES[::-1]), (in_arrays, VOTES)],
)
def test_the_plain_count_of_a_winner_is_a_cause(function: Any, pair: Any) -> None:
    trace = traced(function, pair)
    (cause,) = trace.causes
    lines, start = inspect.getsourcelines(function)
    assert (cause.kind, cause.line.line) == ("no-noise", start + len(lines) - 1)
    assert cause.cost == np.inf
    assert trace.total is None


@pytest.mark.parametrize(
    "function",
    [
        lambda votes, rng: int(np.argmax([vote + rng.laplace(scale=2) for vote in votes])),
        lambda votes, rng: max(vote + rng.laplace(scale=2) for vote in votes),
        noised_again,
    ],
)
def test_a_winner_without_its_count_is_none(function: Callable[..., Any]) -> None:
    trace = traced(function, RARE)
    assert "no-noise" not in {finding.kind for finding in trace.findings}
    assert trace.understood


def test_what_a_claim_allows_is_no_cause() -> None:
    trace = traced(honest_by_a_normal, (1, 0))
    assert (trace.causes, trace.total) == ((), None)
    # Of so large an ε, no number of runs says that the other input never has it.
    trace = traced(count_of_the_winner, claim=PureDP(5.0))
    assert not trace.causes
    assert not trace.understood


def raises_by_chance(rows: Any, rng: Any) -> Any:
    noisy = len(rows) + rng.laplace(scale=1)
    if noisy < 1.5 and len(rows) == 1:
        raise ValueError("few")
    return noisy


@pytest.mark.parametrize("pair", [([1], [1, 2]), ([1, 2], [1])])
def test_an_exception_by_chance_of_one_input_alone_is_a_cause(pair: Any) -> None:
    (cause,) = traced(raises_by_chance, pair).causes
    assert cause.kind == "exception"
    assert cause.words.startswith(f"ValueError is raised for d{1 + pair[0].count(2)} alone, in")


SWAPPED = [3, 2], [2, 3]


def test_two_values_that_leak_together_are_found() -> None:
    (cause,) = traced(count_of_the_winner, SWAPPED).causes
    assert (cause.kind, cause.cost) == ("no-noise", math.inf)
    trace = trace_pair(CallableTarget(function=count_of_the_winner), *SWAPPED, None)
    assert (trace.findings[0].kind, trace.findings[0].is_cause) == ("no-noise", False)
    assert (trace.understood, trace.total) == (False, None)


@pytest.mark.parametrize(
    ("often", "runs", "total"),
    [(1, 1_500, "ε = 1"), (2, 1_500, None), (100, 1_500, None), (0, 50, "ε = 1"), (0, 49, None)],
)
def test_two_values_that_may_leak_are_a_finding_and_leave_no_total(
    often: int, runs: int, total: str | None
) -> None:
    pairs = couple(subject_of(CallableTarget(function=count_of_the_winner)), *SWAPPED, 2)
    rare = [value._replace(often=often, runs=runs) for value in pairs.selected]
    case = judge(pairs._replace(selected=tuple(rare)), PureDP(4.0))
    assert rare
    assert case.total == total
    kinds = [(finding.kind, finding.is_cause) for finding in case.found]
    assert kinds == ([("no-noise", False)] if total is None else [])
    assert {finding.cost for finding in case.found} <= {math.inf if often >= 100 else None}


def laplace_vector(votes: Any, rng: Any) -> Any:
    return list(np.array(votes) + rng.laplace(scale=4, size=2))


def wide_integers(votes: Any, rng: Any) -> Any:
    return [int(vote + rng.geometric(0.02) - rng.geometric(0.02)) for vote in votes]


@pytest.mark.parametrize("seconds", [0.0, 300.0])
def test_two_values_that_were_counted_in_few_runs_are_no_pass(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    # A slow mechanism has no time for more runs.
    monkeypatch.setattr(one_sided, "_COUNTING_SECONDS", seconds)
    trace = traced(count_of_the_winner, SWAPPED, PureDP(4.0))
    assert [(finding.kind, finding.is_cause) for finding in trace.findings] == [("no-noise", False)]
    assert not trace.understood
    assert trace.total is None
    claim = ApproximateDP(1.0, 1e-5)
    for function in (laplace_vector, wide_integers):
        trace = traced(function, SWAPPED, claim)
        assert (trace.findings, trace.understood) == ((), True)
        assert trace.total is not None


def by_two_uniform_numbers(votes: Any, rng: Any) -> Any:
    size = 9 * math.sqrt(-2 * math.log(rng.random()))
    return votes[0] + rng.laplace(scale=2), votes[1] + size * math.cos(6.283 * rng.random())


def test_noise_of_an_unknown_form_next_to_noise_of_a_known_cost_is_no_pass() -> None:
    trace = traced(by_two_uniform_numbers, ([3, 2], [2, 3]))
    assert not trace.causes
    assert not trace.understood
    assert "no-noise" in {finding.kind for finding in trace.findings}


def test_values_share_the_error_probability_and_are_counted_in_later_runs() -> None:
    subject = subject_of(CallableTarget(function=count_of_the_winner))
    pairs, runs = couple(subject, *SWAPPED, 2).coupled, FreeRuns(Coupler(subject, SWAPPED))
    values = one_sided.selected(pairs, runs)
    assert {value.part for value in values} == {("output[0]", "output[1]")}
    assert {value.runs for value in values} == {len(runs.both()[0]) - one_sided._FIRST_RUNS}
    assert {value.tried for value in values} == {4}
    assert math.isclose(values[0].level * 4 * 30, 1e-5)


def counted(often: int, runs: int) -> Selected:
    return Selected(("output",), 0, "1", "0", often, runs, None, None)


def test_counting_stops_when_the_counts_refute_the_claim() -> None:
    subject = subject_of(CallableTarget(function=count_of_the_winner))
    (complete, *_), (early, *_) = (
        couple(subject._replace(claim=claim), *VOTES, 2).selected for claim in ((), [(0.1, 0.0)])
    )
    assert early.runs < complete.runs
    assert stats.beta.ppf(1e-5, early.often, early.runs - early.often + 1) > math.exp(0.1) * (
        1 - 1e-5 ** (1 / early.runs)
    )


def test_counts_that_end_counting_refute_the_claim_by_exact_bounds() -> None:
    for runs in (50, 150, 500, 1_500):
        often, most = np.arange(1, runs + 1, 7), 1 - one_sided._CHECK_ALPHA ** (1 / runs)
        least = np.asarray(stats.beta.ppf(one_sided._CHECK_ALPHA, often, runs - often + 1))
        for epsilon, delta in ((0.0, 0.0), (1.0, 0.0), (1.0, 0.01), (3.0, 1e-6)):
            point = (epsilon, delta)
            ends = [one_sided._refutes(counted(number, runs), point) for number in often.tolist()]
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


def noised_both_ways(votes: Any, rng: Any) -> Any:
    if rng.random() < 0.5:
        return sum(votes) + rng.laplace(scale=2)
    return sum(votes) + rng.laplace()


def test_a_coin_that_opens_a_way_without_noise_is_a_cause() -> None:
    trace = traced(by_a_coin)
    (cause,) = trace.causes
    assert cause.kind == "no-noise"
    assert cause.line.line == inspect.getsourcelines(by_a_coin)[1] + 2
    assert trace.total is None
    assert not traced(noised_both_ways).causes


def test_where_runs_do_not_refute_the_claim_it_is_a_finding_all_the_same() -> None:
    for claim in (PureDP(3.0), None):
        trace = trace_pair(CallableTarget(function=by_a_coin), *VOTES, claim)
        assert [finding.is_cause for finding in trace.findings] == [False]
        assert not trace.understood
