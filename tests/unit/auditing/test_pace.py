"""The number of draws of an audit without a stated one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.auditing import pace
from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.underpowered import least_to_refute, too_few
from dpaudit.errors import JournalError
from dpaudit.inputs.adjacency import parse_adjacency
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.searching.pair_search import neighbour_search
from dpaudit.targets.target import CallableTarget
from tests.specs import audit_of

SECONDS = [0.0]
COST = 0.001


@pytest.fixture(autouse=True)
def counted_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that only the mechanisms below advance."""
    SECONDS[0] = 0.0
    monkeypatch.setattr(pace, "clock", lambda: SECONDS[0])


def slow(x: float, rng: np.random.Generator) -> float:
    SECONDS[0] += COST
    return float(x + rng.laplace())


def spec_of(count: int = 1, epsilon: float = 1.0, **more: Any) -> AuditSpec:
    options = {
        "name": "audit",
        "target": CallableTarget(function=slow),
        "pairs": tuple(NeighbouringPair(0.0, 1.0, None, f"{n}") for n in range(count)),
        "claim": dpaudit.PureDP(epsilon),
        "no_trace": True,
        **more,
    }
    return audit_of(**options)


def chosen(rate: float, **more: Any) -> int:
    return pace.with_chosen_samples(spec_of(**more), rate).sampling.samples


@pytest.mark.parametrize(
    ("rate", "samples"),
    [(1_000, 20_000), (1_700, 50_000), (3_334, 100_000), (33_334, 1_000_000), (1e9, 1_000_000)],
)
def test_the_number_is_rounded_down_and_limited(rate: float, samples: int) -> None:
    assert chosen(rate) == samples
    assert chosen(3 * rate, count=3) == min(samples, 1_000_000)


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 6.0])
def test_a_claim_gets_the_draws_that_it_needs(epsilon: float) -> None:
    samples, spec = chosen(0.01, epsilon=epsilon), spec_of(epsilon=epsilon)
    least = least_to_refute(spec.tested, spec.alpha)
    assert 5 * least <= samples <= max(100, 12.5 * least)
    assert too_few(spec.tested, spec.alpha, least) is None
    assert too_few(spec.tested, spec.alpha, least - 1) is not None


def test_a_mechanism_of_a_millisecond() -> None:
    result = dpaudit.audit(slow, 0, 1, dpaudit.PureDP(1.0))
    assert result.certificates[0].evidence.budget == 20_000
    assert result.pace.startswith("20,000 draws, ")
    assert "1,000 draws/s" in result.pace
    assert "20,000 draws, for" in result.report()


@pytest.mark.parametrize("budget", [{"samples": 3_000}, {"time": 0.2}])
def test_a_stated_budget_decides(budget: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(pace, "rate_of", refuse)
    result = dpaudit.audit(slow, 0, 1, dpaudit.PureDP(1.0), **budget)
    assert result.pace == ""


def test_draws_that_choose_the_number_are_used_for_nothing_else() -> None:
    by_speed = dpaudit.audit(slow, 0, 1, dpaudit.PureDP(1.0))
    stated = dpaudit.audit(slow, 0, 1, dpaudit.PureDP(1.0), samples=20_000)
    assert by_speed.certificates == stated.certificates


def test_a_journal_keeps_the_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_audit(spec_of(journal=tmp_path))
    monkeypatch.setattr(pace, "clock", lambda: 0.0)
    again = run_audit(spec_of(journal=tmp_path, resume=True))
    assert again.certificates == first.certificates
    with pytest.raises(JournalError) as caught:
        run_audit(spec_of(journal=tmp_path, resume=True, samples=1_000_000))
    assert caught.value.code == "journal-of-another-audit"


def test_a_search_chooses_before_it_searches(tmp_path: Path) -> None:
    search = neighbour_search("number in [0, 1]", parse_adjacency("l1:1"), inside=True)
    journal: dict[str, Any] = {"journal": tmp_path, "search": search, "pairs": (), "epsilon": 1.5}
    by_speed = run_audit(spec_of(**journal))
    stated = run_audit(spec_of(search=search, pairs=(), epsilon=1.5, samples=20_000))
    assert by_speed.certificates == stated.certificates
    assert by_speed.searched == stated.searched
    resumed = run_audit(spec_of(**journal, resume=True))
    assert resumed.certificates == stated.certificates
