"""Ways that a coin seldom opens, such as an output for debugging."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from dpaudit.certificates.traced import Trace
from dpaudit.claims import ApproximateDP, PrivacyClaim, PureDP
from dpaudit.reports.trace import render
from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.trace import trace_pair

PAIR = [1, 2], [1]
CLAIM = ApproximateDP(1.0, 1e-4)


def traced(function: Any, claim: PrivacyClaim | None = CLAIM, pair: Any = PAIR) -> Trace:
    d1, d2 = pair
    return trace_pair(CallableTarget(function=function), d1, d2, claim)


def line_with(function: Any, words: str) -> int:
    lines, start = inspect.getsourcelines(function)
    (place,) = (place for place, line in enumerate(lines) if words in line)
    return start + place


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


def by_an_integer(rows: Any, rng: Any) -> Any:
    return len(rows) + (0 if rng.integers(50) == 7 else rng.laplace())


def by_a_choice(rows: Any, rng: Any) -> Any:
    kind = rng.choice(["noisy", "plain"], p=[0.98, 0.02])
    return len(rows) + (rng.laplace() if kind == "noisy" else 0)


@pytest.mark.parametrize(
    ("function", "falls"), [(by_an_integer, "is 7"), (by_a_choice, "picks option 2")]
)
def test_how_a_choice_falls_is_said(function: Any, falls: str) -> None:
    (finding,) = (one for one in traced(function).findings if one.kind == "no-noise")
    assert f"` {falls}, with probability 0.02: no noise hides it" in finding.words


@pytest.mark.parametrize(
    ("function", "words", "way"),
    [
        (plain, "float(len(rows))", "output is 2 for d1 and 1 for d2"),
        (a_dict, '"debug"', "output['debug'][1] is 2 for d1 and nothing for d2"),
        (the_other_way, "str(rows)", "output is '[1, 2]' for d1 and '[1]' for d2"),
        (in_a_batch, "return noisy", "output is 2 for d1 and 1 for d2"),
        (beside_a_part, "len(rows) + rng", "output[1] is 2 for d1 and 1 for d2"),
    ],
)
def test_what_one_input_alone_has_there_is_found(
    function: Callable[..., Any], words: str, way: str
) -> None:
    found = traced(function)
    (finding,) = (one for one in found.findings if one.kind == "no-noise")
    assert not finding.is_cause
    assert found.likely is finding
    assert finding.line.line == line_with(function, words)
    assert finding.words.startswith(way + " where `")
    assert "with probability 0.001: no noise hides it" in finding.words
    assert not found.understood
    assert found.total is None
    assert "no pass" in render(found)


def raises_for_d2(rows: Any, rng: Any) -> Any:
    noisy = len(rows) + rng.laplace()
    if rng.random() < 1e-3 and len(rows) == 1:
        raise ValueError("too few")
    return noisy


def tosses_for_d2(rows: Any, rng: Any) -> Any:
    noisy = len(rows) + rng.laplace()
    if len(rows) == 1 and rng.random() < 1e-3:
        raise ValueError("too few")
    return noisy


@pytest.mark.parametrize("function", [raises_for_d2, tosses_for_d2])
@pytest.mark.parametrize("turned", [False, True])
def test_an_exception_of_one_input_is_found(function: Any, turned: bool) -> None:
    found = traced(function, pair=PAIR[::-1] if turned else PAIR)
    (finding,) = (one for one in found.findings if one.kind == "exception")
    which = "d1" if turned else "d2"
    assert finding.words.startswith(f"ValueError is raised for {which} alone where `rng.random()")
    assert finding.line.line == line_with(function, "raise ")
    assert not finding.is_cause


def noised_there(rows: Any, rng: Any) -> Any:
    noisy = len(rows) + rng.laplace()
    return 2 * noisy if rng.random() < 1e-3 else noisy


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


def has_it_elsewhere(rows: Any, rng: Any) -> Any:
    """d2 has what d1 has there half of the time."""
    noisy = rng.random() < 0.5
    if rng.random() < 1e-3:
        return len(rows) == 2
    return noisy


@pytest.mark.parametrize(
    "function", [noised_there, nothing_there, raises_for_both, answers_there, has_it_elsewhere]
)
@pytest.mark.parametrize("claim", [CLAIM, PureDP(1.0), None])
def test_where_noise_hides_it_or_nothing_differs_nothing_is_found(
    function: Any, claim: PrivacyClaim | None
) -> None:
    kinds = {one.kind for one in traced(function, claim).findings}
    assert not kinds & {"no-noise", "exception", "control-flow"}


def test_what_delta_allows_is_no_finding() -> None:
    assert not traced(plain, ApproximateDP(1.0, 0.002)).findings
    assert traced(plain, ApproximateDP(1.0, 0.0009)).findings
    assert traced(plain, PureDP(1.0)).findings
    assert traced(plain, None).findings
