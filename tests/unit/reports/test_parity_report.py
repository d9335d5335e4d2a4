"""Comparisons of two mechanisms in reports: A stands in place of d1, and B of d2."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.reports.bounds_report import may_miss
from dpaudit.reports.parity_report import named, named_html


def narrow(x: int, size: int, rng: np.random.Generator) -> Any:
    return x + rng.laplace(size=size)


def wide(x: int, size: int, rng: np.random.Generator) -> Any:
    return x + rng.laplace(scale=2.0, size=size)


@pytest.fixture(scope="module")
def refuted() -> dpaudit.AuditResult:
    return dpaudit.parity(narrow, wide, [0], samples=3_000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 draws of d1, 3 of d2", "2 draws of A, 3 of B"),
        ("for both inputs", "for A and B"),
        ("--d1 '[0]' --d2", "--d1 '[0]' --d2"),
        ("output is 'd1'", "output is 'd1'"),
    ],
)
def test_names_of_inputs_are_replaced(
    text: str, expected: str, refuted: dpaudit.AuditResult
) -> None:
    assert named(refuted, text) == expected
    assert named(replace(refuted, target="narrow"), text) == text


def test_the_headline_has_both_shares_and_the_distance(refuted: dpaudit.AuditResult) -> None:
    text = " ".join(refuted.report().split())
    shares = r"in ([\d.]+) % of draws of A and ([\d.]+) % of B"
    headline = re.search(rf"{shares}; total variation at least (0\.\d+)", text)
    assert headline is not None
    share_a, share_b, distance = map(float, headline.groups())
    assert 0 < distance <= abs(share_a - share_b) / 100
    assert distance == pytest.approx(refuted.delta_lower, rel=0.01)


def test_bets_alone_certify_more_than_tau() -> None:
    result = dpaudit.parity(narrow, wide, [0], samples=3_000, stop="bets", tau=0.01)
    assert result.delta_lower <= 0.01
    assert "total variation more than 0.01" in " ".join(result.report().split())


def test_a_pass_states_the_distance_that_it_may_miss() -> None:
    result = dpaudit.parity(wide, wide, [0], samples=2_000, tau=0.1)
    assert re.fullmatch(r"δ < 0\.[12]\d+", may_miss(result))


def test_a_plot_and_a_fragment_name_a_and_b(refuted: dpaudit.AuditResult) -> None:
    labels = refuted.plot().get_legend_handles_labels()[1]
    assert labels[:2] == ["A", "B"]
    assert named_html(refuted, '<b class="d1">d1</b>') == '<b class="d1">A</b>'
    body = refuted._repr_html_().partition("</style>")[2]
    assert not re.search(r">[^<]*\bd[12]\b", body)
