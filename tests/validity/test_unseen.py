"""How far an audit reaches: what no draw to learn from had, and the δ that it can hide."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.auditing.recheck import recheck
from dpaudit.certificates.certificate import Unseen
from dpaudit.reports.json import document, entry
from mechanisms import randomized_response
from tests.forging import with_certificates
from tests.specs import replace

CLAIM = dpaudit.ApproximateDP(1.0, 0.01)
RARELY = 2e-5


def seldom_new(dataset: int, *, size: int, rng: np.random.Generator) -> Any:
    """A bit; hardly ever, a number that is never the same."""
    bits = rng.integers(2, size=size).astype(float)
    is_new = rng.random(size) < RARELY
    bits[is_new] = 2 + rng.random(int(is_new.sum()))
    return bits


def unseen(result: dpaudit.AuditResult) -> Unseen:
    found = result.certificates[0].unseen
    assert found is not None
    return found


def test_what_is_new_is_counted_and_bounded() -> None:
    result = dpaudit.audit(seldom_new, 0, 1, CLAIM, samples=400_000)
    found = unseen(result)
    assert 0 < found.count_d1 + found.count_d2 < 30
    assert RARELY < found.delta < 10 * RARELY


def test_where_nothing_is_new_the_bound_is_that_of_no_occurrence() -> None:
    mechanism = randomized_response.randomized_response
    claim = dpaudit.PureDP(1.2)
    result = dpaudit.audit(mechanism, 0, 1, claim, samples=20_000, confidence=0.95)
    found, draws = unseen(result), result.certificates[0].fixed.draws
    assert (found.count_d1, found.count_d2) == (0, 0)
    # As 1 - (α/2)^(1/n) is with about half of the draws of each input.
    assert found.delta == pytest.approx(-np.log(0.025) / (draws / 2), rel=0.05)


def test_what_was_only_counted_while_learning_was_seen() -> None:
    """A second bit that is rare, but comes up while draws are counted to learn from."""

    def pairs(dataset: int, *, size: int, rng: np.random.Generator) -> Any:
        return (rng.random(size) < 5e-5).astype(float)

    result = dpaudit.audit(pairs, 0, 1, CLAIM, samples=2_000_000, stop="never")
    assert result.certificates[0].evidence.counted > 0
    assert (unseen(result).count_d1, unseen(result).count_d2) == (0, 0)


def test_a_refuted_claim_asks_for_none() -> None:
    result = dpaudit.audit(seldom_new, 0, 0, dpaudit.PureDP(1.0), samples=2_000)
    assert result.certificates[0].unseen is not None
    sure = dpaudit.audit(lambda one, *, size, rng: np.full(size, one), 0, 1, CLAIM, samples=2_000)
    assert sure.verdict is dpaudit.Verdict.VIOLATION
    assert sure.certificates[0].unseen is None


@pytest.mark.parametrize("of_one", [False, True])
def test_recorded_outputs(of_one: bool) -> None:
    rng = np.random.default_rng(0)
    d1, d2 = rng.integers(5, size=(2, 4_000)).astype(float)
    if of_one:
        d1[rng.choice(4_000, 200, replace=False)] = 100 + rng.random(200)
    found = unseen(dpaudit.bound(d1, d2, CLAIM))
    assert found.count_d2 == 0
    assert (found.count_d1 > 0) is of_one


def test_a_file_says_so_and_a_forged_one_is_noticed() -> None:
    result = dpaudit.audit(seldom_new, 0, 1, CLAIM, samples=20_000)
    (one,) = result.certificates
    (audit,) = json.loads(document([entry(result)], 1))["audits"]
    assert audit["ending"]["certificates"][0]["unseen"]["delta"] == unseen(result).delta
    assert recheck(result) == []
    lower = replace(unseen(result), delta=1e-9)
    (finding,) = recheck(with_certificates(result, replace(one, unseen=lower)))
    assert "unseen.delta" in finding


def test_of_numbers_that_hardly_repeat_it_says_what_counts_as_new() -> None:
    def number(dataset: int, *, size: int, rng: np.random.Generator) -> Any:
        return rng.normal(size=size)

    result = dpaudit.audit(number, 0, 1, CLAIM, samples=20_000)
    assert unseen(result).ranges
    assert not unseen(dpaudit.audit(seldom_new, 0, 1, CLAIM, samples=20_000)).ranges
