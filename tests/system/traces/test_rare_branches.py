"""Branches that a coin rarely takes, such as an output for debugging."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit.certificates.traced import Trace
from dpaudit.claims import ApproximateDP, PrivacyClaim, PureDP
from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.mechanism_trace import subject_of, trace_pair
from dpaudit.tracing.runs import coupling, one_sided
from dpaudit.tracing.runs.coupling import couple

pytestmark = pytest.mark.usefixtures("shared_runs")
PAIR = [1, 2], [1]
CLAIM = ApproximateDP(1.0, 1e-4)


@pytest.fixture(autouse=True)
def _has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_sided, "_COUNTING_SECONDS", 300.0)
    monkeypatch.setattr(one_sided, "_BRANCH_SECONDS", 60.0)


def traced(function: Any, claim: PrivacyClaim | None = CLAIM, pair: Any = PAIR) -> Trace:
    d1, d2 = pair
    return trace_pair(CallableTarget(function=function), d1, d2, claim)


def line_with(function: Any, words: str) -> int:
    lines, start = inspect.getsourcelines(function)
    (number,) = (number for number, line in enumerate(lines, start) if words in line)
    return number


def plain(rows: Any, rng: Any) -> Any:
    if rng.random() < 1e-3:
        return float(len(rows))
    return len(rows) + rng.laplace()


def a_dict(rows: Any, rng: Any) -> Any:
    noisy = len(rows) + rng.laplace()
    if not rng.random() >= 1e-3:
        return {"debug": list(rows)}
    return noisy


def the_other_way(rows: Any, rng: Any) -> Any:
    noisy = len(rows) + rng.laplace()
    if rng.random() < 0.999:
        return noisy
    return str(rows)


def in_a_batch(rows: Any, size: int, rng: Any) -> Any:
    noisy = len(rows) + rng.laplace(size=size)
    noisy[rng.random(size) < 1e-3] = len(rows)
    return noisy


def beside_a_part(rows: Any, rng: Any) -> Any:
    shown = len(rows) if rng.random() < 1e-3 else None
    return len(rows) + rng.laplace(), shown


def of_d2_alone(rows: Any, rng: Any) -> Any:
    if len(rows) == 1 and rng.random() < 1e-3:
        return "leak"
    return len(rows) + rng.laplace()


def raises_for_d2(rows: Any, rng: Any) -> Any:
    noisy = len(rows) + rng.laplace()
    if len(rows) == 1 and rng.random() < 1e-3:
        raise ValueError("too few")
    return noisy


@pytest.mark.parametrize(
    ("function", "words", "kind"),
    [
        (plain, "float(len(rows))", "no-noise"),
        (a_dict, '"debug"', "no-noise"),
        (the_other_way, "str(rows)", "no-noise"),
        (in_a_batch, "return noisy", "no-noise"),
        (beside_a_part, "len(rows) + rng", "no-noise"),
        (of_d2_alone, '"leak"', "no-noise"),
        (raises_for_d2, "raise ", "exception"),
    ],
)
def test_what_one_input_alone_has_there_is_found(
    function: Callable[..., Any], words: str, kind: str
) -> None:
    trace = traced(function)
    (finding,) = (finding for finding in trace.findings if finding.kind == kind)
    assert not finding.is_cause
    assert finding.line.line == line_with(function, words)
    assert not trace.understood
    assert trace.total is None
    if kind == "no-noise":
        assert trace.likely is finding
        assert "with probability 0.001" in finding.words


def nothing_there(rows: Any, rng: Any) -> Any:
    noisy = len(rows) + rng.laplace()
    return None if rng.random() < 1e-3 else noisy


def raises_for_both(rows: Any, rng: Any) -> Any:
    noisy = len(rows) + rng.laplace()
    if rng.random() < 1e-3:
        raise ValueError("by chance")
    return noisy


def answers_there(rows: Any, rng: Any) -> Any:
    noisy = len(rows) + rng.laplace()
    if rng.random() < 1e-3:
        return (len(rows) == 2) ^ (rng.random() < 0.4)
    return noisy


def compared_twice(rows: Any, rng: Any) -> Any:
    """One of both adds noise, always."""
    number, noisy = rng.random(), float(len(rows))
    if number < 0.99:
        noisy += rng.laplace()
    if number >= 0.99:
        noisy += rng.laplace(scale=2)
    return noisy


def never_reached(rows: Any, rng: Any) -> Any:
    number = rng.random()
    if number < 0.01:
        return len(rows) + rng.laplace(scale=2)
    if number < 0.001:
        return float(len(rows))
    return len(rows) + rng.laplace()


def noised_by_what_is_not_seen(rows: Any, rng: Any) -> Any:
    if rng.random() < 0.002:
        return f"a{(len(rows) + rng.permutation(9)[0]) % 9}"
    return len(rows) + rng.laplace()


def picks_there(rows: Any, rng: Any) -> Any:
    """The exponential mechanism, by its distribution function: ε = 3."""
    weights = np.exp(1.5 * np.array([-abs(len(rows) - k) for k in range(4)]))
    if rng.random() < 0.002:
        return f"a{np.searchsorted(np.cumsum(weights / weights.sum()), rng.random())}"
    return len(rows) + rng.laplace()


@pytest.mark.parametrize(
    "function",
    [
        *(nothing_there, raises_for_both, answers_there, compared_twice, never_reached),
        *(noised_by_what_is_not_seen, picks_there),
    ],
)
def test_where_noise_hides_it_or_nothing_differs_nothing_is_found(function: Any) -> None:
    for claim in (CLAIM, PureDP(1.0), None):
        kinds = {finding.kind for finding in traced(function, claim).findings}
        assert not kinds & {"no-noise", "exception", "control-flow"}


def test_what_delta_allows_is_no_finding() -> None:
    assert not traced(plain, ApproximateDP(1.0, 0.002)).findings
    assert traced(plain, ApproximateDP(1.0, 0.0009)).findings
    assert traced(plain, PureDP(1.0)).findings
    assert traced(plain, None).findings


def in_a_loop(rows: Any, rng: Any) -> Any:
    for _ in range(100):
        if rng.random() < 1e-4:
            return float(len(rows))
    return len(rows) + rng.laplace()


def test_the_chance_is_that_of_all_coins_of_a_line() -> None:
    (finding,) = (f for f in traced(in_a_loop).findings if f.kind == "no-noise")
    assert "with probability 0.00995" in finding.words
    assert not traced(in_a_loop, ApproximateDP(1.0, 0.01)).findings


def has_the_same_by_chance(rows: Any, rng: Any) -> Any:
    """d2 has half of the time what d1 has on the rare way, and there alone."""
    if rng.random() < 1e-3:
        return len(rows) == 2
    return bool(rng.random() < 0.5) if len(rows) == 1 else len(rows) + rng.laplace()


def test_what_the_other_input_has_elsewhere_is_no_finding() -> None:
    for finding in traced(has_the_same_by_chance).findings:
        assert "output is True for d1" not in finding.words


def test_it_is_sent_from_another_process() -> None:
    target = CallableTarget(function=plain)
    runs = couple(subject_of(target), *PAIR, 3)
    assert len(runs.rare) == 1
    assert coupling.read(coupling.written(runs)).rare == runs.rare
