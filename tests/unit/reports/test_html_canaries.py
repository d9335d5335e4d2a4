"""The figures of canaries draw the numbers of the certificate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import GaussianDP, PrivacyClaim, PureDP
from dpaudit.certificates.one_run import OneRunCertificate
from dpaudit.reports.html.pictures import left_out, pictures
from dpaudit.reports.html.region import score_pictures

CANARIES = dpaudit.Canaries(1_000, seed=8)
NOISE = np.random.default_rng(9).normal(size=1_000)


def audited(claim: PrivacyClaim, leak: float = 2.0) -> dpaudit.AuditResult:
    return dpaudit.bound_canaries(CANARIES, leak * CANARIES.included + NOISE, claim)


def certificate(result: dpaudit.AuditResult) -> OneRunCertificate:
    one: Any = result.by_pair[0]
    return one  # type: ignore[no-any-return]


@pytest.mark.parametrize("claim", [GaussianDP(0.5), PureDP(0.5)])
@pytest.mark.parametrize("leak", [0.0, 2.0])
def test_scores_have_two_figures_in_addition_to_the_profile(
    claim: PrivacyClaim, leak: float
) -> None:
    result = audited(claim, leak)
    assert [one.name for one in pictures(result)] == ["roc", "profile", "scores"]
    assert not left_out(result)
    roc, histogram = score_pictures(result, certificate(result))
    certified = [key for key in roc.keys if key.kind == "bound"]
    assert bool(certified) == (leak > 0)
    counts = [int(row[2].replace(",", "")) for row in histogram.rows]
    assert sum(counts) == CANARIES.included.sum()
    assert len(roc.rows) == 3


def test_counts_of_guesses_have_no_figure_of_scores() -> None:
    result = dpaudit.bound_guesses(1_000, 100, 90, PureDP(0.5))
    assert [one.name for one in pictures(result)] == ["profile"]
