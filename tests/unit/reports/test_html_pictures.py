"""Figures: where their marks are, and that there is one for whatever an audit ends in."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.certificates.result import AuditResult, Sampled
from dpaudit.certificates.wealth import Wealth, course
from dpaudit.claims import PrivacyClaim, PureDP, make_claim
from dpaudit.claims.tradeoff import tradeoff
from dpaudit.reports.html.canvas import HEIGHT, WIDTH, Picture
from dpaudit.reports.html.pictures import pictures
from tests.cli.made_results import BELOW, CERTIFICATE, PASS, VIOLATION
from tests.hostile import EXACT, FULL
from tests.specs import replace

CLAIMS = [
    make_claim({"epsilon": 0.0}),
    make_claim({"epsilon": 800.0}),
    make_claim({"epsilon": 1.0, "delta": 1e-300}),
    make_claim({"epsilon": 0.0, "delta": 0.9}),
    make_claim({"rho": 0.5}),
    make_claim({"delta": 0.2}, "total-variation"),
    make_claim({"epsilon": 1.0, "delta": 0.1}, "probabilistic"),
]


def with_claim(result: AuditResult, claim: PrivacyClaim) -> AuditResult:
    """Return a result in which every pair tested this claim."""
    pairs: Any = tuple(replace(one, point=claim.point()) for one in result.by_pair)
    return replace(result, claim=claim, ending=type(result.ending)(pairs))


def of(result: AuditResult, name: str) -> Picture:
    return next(one for one in pictures(result) if one.name == name)


def places(picture: Picture, kind: str) -> list[list[tuple[float, float]]]:
    """Return the corners of every path of a kind."""
    found = re.findall(rf'<g class="{kind}"><path d="M ([^"]*?)(?:z )?"/>', picture.drawing)
    numbers = [[float(one) for one in path.split()] for path in found]
    return [list(zip(path[::2], path[1::2], strict=True)) for path in numbers]


def middle(corners: list[tuple[float, float]]) -> tuple[float, float]:
    xs, ys = zip(*corners, strict=True)
    return (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda one: one.describe())
@pytest.mark.parametrize("result", [PASS, VIOLATION, EXACT], ids=lambda one: one.name)
def test_every_claim_has_figures_inside_of_their_frames(
    result: AuditResult, claim: PrivacyClaim
) -> None:
    for one in pictures(with_claim(result, claim)):
        assert not re.search(r"nan|inf", one.drawing)
        for x, y in re.findall(r'[ML"] ?(-?[\d.]+) (-?[\d.]+)', one.drawing):
            assert -2 <= float(x) <= WIDTH + 2
            assert -2 <= float(y) <= HEIGHT + 2
        assert all(len(row) == len(one.head) for row in one.rows)


def test_an_event_lies_where_its_errors_are() -> None:
    picture = of(VIOLATION, "region")
    (x, y), (left, top) = (middle(places(picture, kind)[0]) for kind in ("mark d1", "mark d2"))
    frame = places(picture, "region")[0]
    (low, high), (bottom, up) = (
        (min(one[axis] for one in frame), max(one[axis] for one in frame)) for axis in (0, 1)
    )
    share = (BELOW.count_d2 / BELOW.draws_d2, 1 - BELOW.count_d1 / BELOW.draws_d1)
    assert (x - low) / (high - low) == pytest.approx(share[0], abs=0.002)
    assert (up - y) / (up - bottom) == pytest.approx(share[1], abs=0.002)
    assert (left - low) / (high - low) == pytest.approx(60 / 498, abs=0.002)
    assert (up - top) / (up - bottom) == pytest.approx(1 - 400 / 502, abs=0.002)
    box = places(picture, "box d1")[0]
    widest = (max(one[0] for one in box) - low) / (high - low)
    assert widest == pytest.approx(BELOW.interval_d2[1], abs=0.002)


def test_an_event_that_refutes_lies_below_the_curve_of_the_claim() -> None:
    for event in CERTIFICATE.fixed.events:
        ahead, behind = event.interval_d1[0], event.interval_d2[1]
        if event.guess == "d2":
            ahead, behind = event.interval_d2[0], event.interval_d1[1]
        assert 1 - ahead < tradeoff(VIOLATION.claim, behind)
    picture = of(VIOLATION, "region")
    curve = places(picture, "claim")[0]
    for corners in (places(picture, "box d1")[0], places(picture, "box d2")[0]):
        right = max(x for x, _ in corners)
        # Downwards, numbers grow.
        highest = min(y for _, y in corners)
        assert highest > next(y for x, y in curve if x >= right)


def test_bounds_are_said_as_the_report_says_them() -> None:
    picture = of(VIOLATION, "profile")
    assert picture.rows == (("ε at δ = 0", "0.5", "1.21"), ("δ at ε = 0.5", "0", "0.214"))
    assert "with 99\xa0% confidence" in picture.alt
    assert "ε is ∞" in of(EXACT, "profile").alt


def test_the_outputs_are_the_counts_of_the_test() -> None:
    picture = of(VIOLATION, "outputs")
    assert picture.rows == (
        ("1", "17.3\xa0%", "89.0\xa0%", "for d2"),
        ("2", "82.7\xa0%", "11.0\xa0%", "for d1"),
    )
    second = replace(FULL, ending=Sampled((FULL.certificates[1],)))
    words = [row[0] for row in of(second, "outputs").rows]
    assert words == ["score below 0.5", "score above 0.5"]


def test_of_a_law_the_outcomes_of_the_event_are_marked() -> None:
    marked = {row[0]: row[3] for row in of(EXACT, "outputs").rows}
    assert marked == {"output is 0": "", "output is 1": "", "output is 2": "for d2"}


def bit(x: int, size: int, rng: Any) -> Any:
    return rng.integers(2, size=size) * x


@pytest.mark.parametrize("claim", [PureDP(1.0), dpaudit.ApproximateDP(1.0, 0.1)])
def test_the_course_of_wealth_ends_as_the_certificate_says(claim: PrivacyClaim) -> None:
    result = dpaudit.audit(bit, 0, 1, claim, samples=1_000, name="bit")
    (one,) = result.certificates
    rounds = one.evidence.rounds
    looks = course(one.point, rounds, one.evidence.blocks)
    followed, believed = Wealth(one.point, one.alpha_betting), None
    for block in one.evidence.blocks:
        if block.round is not None:
            if block.round != believed:
                believed = block.round
                followed.believe(rounds[believed])
            followed.record([block.tally])
    assert max(wealth for _, wealth in looks) == pytest.approx(followed.log_largest)
    assert math.exp(max(wealth for _, wealth in looks)) == pytest.approx(one.wealth)
    bets = [block for block in one.evidence.blocks if block.round is not None]
    assert len(looks) == len(bets)
    assert [draws for draws, _ in looks] == sorted(draws for draws, _ in looks)
    assert f"{looks[-1][0]:,} draws" in of(result, "wealth").alt


@pytest.mark.parametrize("leak", [0.0, 2.0])
def test_scores_of_canaries_have_two_figures_in_addition_to_the_profile(leak: float) -> None:
    canaries = dpaudit.Canaries(1_000, seed=8)
    noise = np.random.default_rng(9).normal(size=1_000)
    result = dpaudit.bound_canaries(canaries, leak * canaries.included + noise, PureDP(0.5))
    roc, _, histogram = pictures(result)
    assert [picture.name for picture in pictures(result)] == ["roc", "profile", "scores"]
    assert any(key.kind == "bound" for key in roc.keys) == (leak > 0)
    assert len(roc.rows) == 3
    counts = [int(row[2].replace(",", "")) for row in histogram.rows]
    assert sum(counts) == canaries.included.sum()
    counted = dpaudit.bound_guesses(1_000, 100, 90, PureDP(0.5))
    assert [picture.name for picture in pictures(counted)] == ["profile"]
