"""The planted lines are named, their correct counterparts have no cause, and costs are exact."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.traces import claim_of, correct_of, names, planted_lines
from dpaudit.claims import PrivacyClaim, PureDP
from dpaudit.searching.proposals import catalogue
from dpaudit.targets.target import ImportedTarget
from dpaudit.tracing.findings.detectors import KINDS
from dpaudit.tracing.mechanism_trace import trace_pair
from dpaudit.tracing.runs import one_sided
from mechanisms.causes.planted import CAUSES, SHOWN, Cause
from mechanisms.neighbours.planted import PLANTED, Planted
from tests.neighbouring import relation

# Coins, many combinations of which lead to one output; three dice, each of which is right in nearly
# all runs: the trace names the first line of them.
NOT_UNDERSTOOD = {"opendp-0-14-1", "dice-too-honest"}
CORRECT = [one for one in CAUSES if one.correct is not None]


@pytest.fixture(autouse=True)
def _has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_sided, "_COUNTING_SECONDS", 300.0)
    monkeypatch.setattr(one_sided, "_BRANCH_SECONDS", 60.0)


def test_there_are_enough() -> None:
    assert len(CORRECT) >= 60
    assert len({one.name for one in CAUSES}) == len(CAUSES)
    assert len(NOT_UNDERSTOOD) <= 0.1 * len(CAUSES)


@pytest.mark.parametrize("one", CAUSES, ids=lambda one: one.name)
def test_the_line_is_named(one: Cause) -> None:
    assert planted_lines(one)
    target = ImportedTarget(path=one.broken, params=one.params)
    found = trace_pair(target, one.d1, one.d2, claim_of(one), seeds=2, primitives=one.primitives)
    likely = () if found.likely is None else (found.likely,)
    assert names(one, (*found.causes, *likely)) is (one.name not in NOT_UNDERSTOOD)


@pytest.mark.parametrize("kind", SHOWN)
def test_each_kind_of_finding_has_a_mechanism_that_shows_it(kind: str) -> None:
    one = next(each for each in CAUSES if each.name == SHOWN[kind])
    target = ImportedTarget(path=one.broken, params=one.params)
    found = trace_pair(target, one.d1, one.d2, claim_of(one), seeds=2, primitives=one.primitives)
    assert kind in {each.kind for each in found.findings}


def test_no_kind_is_without_a_mechanism() -> None:
    assert SHOWN.keys() == KINDS.keys()


@pytest.mark.parametrize("one", CORRECT, ids=lambda one: one.name)
def test_the_correct_counterparts_have_no_cause(one: Cause) -> None:
    for path in correct_of(one):
        target = ImportedTarget(path=path, params=one.params)
        claim = claim_of(one)
        found = trace_pair(target, one.d1, one.d2, claim, seeds=2, primitives=one.primitives)
        assert not found.causes


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [("three_rare_dice", 9.0), ("rare_dice_after_coins", 17.0), ("answer_unless_two_coins", 6.0)],
)
def test_choices_that_are_the_same_in_all_runs_still_hide_the_answer(
    name: str, epsilon: float
) -> None:
    target = ImportedTarget(path=f"mechanisms.causes.modules:{name}")
    assert not trace_pair(target, 0, 1, PureDP(epsilon), seeds=2).causes


@pytest.mark.parametrize("one", PLANTED, ids=lambda one: one.name)
def test_the_correct_counterpart_has_no_cause_on_edge_cases(one: Planted) -> None:
    claim: PrivacyClaim = claim_of(
        Cause(
            name=one.name, broken=one.broken, correct=one.correct, d1=one.d1, d2=one.d2, lines=(),
            epsilon=one.epsilon, delta=one.delta,
        )
    )  # fmt: skip
    pairs = catalogue(relation(one.space, one.adjacency))
    target = ImportedTarget(path=one.correct, params=one.params)
    for pair, _ in zip(pairs, range(3), strict=False):
        assert not trace_pair(target, pair.d1, pair.d2, claim, seeds=1).causes


ADDITIVE = [
    one
    for one in PLANTED
    if one.delta == 0
    and math.isfinite(one.truth)
    and one.name
    not in {
        "ties-have-a-length",
        "noise-for-one-direction",
        "threshold-without-noise",
        "noise-not-refreshed",
        "budget-ignored",
    }
]


@pytest.mark.parametrize("one", ADDITIVE, ids=lambda one: one.name)
def test_costs_of_additive_mechanisms_are_their_exact_epsilon(one: Planted) -> None:
    target = ImportedTarget(path=one.broken, params=one.params)
    found = trace_pair(target, one.d1, one.d2, PureDP(one.epsilon), seeds=1)
    assert math.fsum(site.total or 0.0 for site in found.sites) == pytest.approx(
        one.truth, rel=1e-9
    )


def test_additive_mechanisms_are_many() -> None:
    assert len(ADDITIVE) >= 12
    assert np.median([one.truth for one in ADDITIVE]) > 1
