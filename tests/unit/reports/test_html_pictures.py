"""Figures: where their marks are, and that there is one for whatever an audit ends in."""

from __future__ import annotations

import math
import re
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.certificates.certificate import Certificate, ExactCertificate
from dpaudit.certificates.evidence import DrawLimits
from dpaudit.certificates.result import AuditResult, Exact, Sampled, Verdict
from dpaudit.certificates.wealth import Wealth, course
from dpaudit.claims import PrivacyClaim, PureDP, make_claim
from dpaudit.claims.tradeoff import tradeoff
from dpaudit.draws import Tally
from dpaudit.levels.portfolio import ScoreDistributions
from dpaudit.reports import numbers
from dpaudit.reports.html.canvas import HEIGHT, WIDTH, Canvas, Picture, Scale
from dpaudit.reports.html.pictures import outputs, pictures
from tests.cli.made_results import ABOVE, BELOW, CERTIFICATE, PASS, VIOLATION
from tests.hostile import EVERY_KIND, EXACT, FULL
from tests.specs import replace

CLAIMS = [
    make_claim(given)
    for given in (
        {"epsilon": 0.0},
        {"epsilon": 1.0},
        {"epsilon": 800.0},
        {"epsilon": 1.0, "delta": 1e-300},
        {"epsilon": 1.0, "delta": 1e-5},
        {"epsilon": 0.0, "delta": 0.9},
        {"mu": 1.0},
        {"rho": 0.5},
        {"order": 2.0, "epsilon": 1.0},
    )
] + [
    make_claim({"delta": 0.2}, "total-variation"),
    make_claim({"epsilon": 1.0, "delta": 0.1}, "probabilistic"),
    make_claim({"epsilon": 1.0, "delta": 0.1}, "computational"),
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


@pytest.mark.parametrize("result", EVERY_KIND, ids=lambda one: one.name)
def test_no_text_of_an_audit_is_in_a_drawing(result: AuditResult) -> None:
    for one in pictures(result):
        words = re.findall(r">([^<]+)<", one.drawing)
        known = (
            r"[\d.e\-kMG]+|E\d*(, E\d+)*|for d[12]|violation at [\d,.e+]+|.*[αβδε].*|draws|wealth"
        )
        known += r"|levels( of the score)?|outcomes|share of .*"
        assert [one for one in words if not re.fullmatch(known, one)] == []


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


def with_rare_event(result: AuditResult) -> AuditResult:
    """Return a result whose event comes up once in a hundred draws."""
    rare = replace(
        BELOW, count_d1=9, count_d2=2, interval_d1=(0.005, 0.04), interval_d2=(0.0005, 0.012)
    )
    fixed = replace(CERTIFICATE.fixed, events=(rare,))
    return replace(result, ending=Sampled((replace(CERTIFICATE, fixed=fixed),)))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda one: one.describe())
def test_rare_events_are_drawn_beside_the_curve_of_every_claim(claim: PrivacyClaim) -> None:
    picture = of(with_claim(with_rare_event(VIOLATION), claim), "region")
    curve, frame = places(picture, "claim")[0], places(picture, "frame")
    assert len(curve) > 1
    # It ends at an edge of what is shown.
    lowest = max(y for line in frame for _, y in line)
    right = max(x for line in frame for x, _ in line)
    assert curve[-1][1] == pytest.approx(lowest, abs=0.2) or curve[-1][0] == pytest.approx(right)


def test_of_rare_events_only_the_corner_is_shown() -> None:
    result = with_rare_event(VIOLATION)
    picture = of(result, "region")
    assert any("corner" in one for one in picture.notes)
    (x, y), frame = middle(places(picture, "mark d1")[0]), places(picture, "region")[0]
    low, high = min(x for x, _ in frame), max(x for x, _ in frame)
    bottom, up = min(y for _, y in frame), max(y for _, y in frame)
    assert (x - low) / (high - low) == pytest.approx(2 / 502 / 0.1, abs=0.003)
    assert (y - bottom) / (up - bottom) == pytest.approx(9 / 498 / 0.1, abs=0.003)
    assert not any("corner" in one for one in of(VIOLATION, "region").notes)


def test_events_upon_each_other_share_a_place_for_their_names() -> None:
    fixed = replace(CERTIFICATE.fixed, events=(BELOW, BELOW))
    result = replace(VIOLATION, ending=Sampled((replace(CERTIFICATE, fixed=fixed),)))
    assert ">E1, E2<" in of(result, "region").drawing


def test_names_of_events_that_lie_close_together_do_not_cover_each_other_or_marks() -> None:
    near = replace(BELOW, count_d1=380, interval_d1=(0.72, 0.8))
    beside = replace(BELOW, count_d2=90, interval_d2=(0.15, 0.21))
    fixed = replace(CERTIFICATE.fixed, events=(BELOW, near, beside, ABOVE))
    result = replace(VIOLATION, ending=Sampled((replace(CERTIFICATE, fixed=fixed),)))
    drawing = of(result, "region").drawing
    found = re.findall(
        r'<g class="word (\w+)"><text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]+)', drawing
    )
    boxes = []
    for anchor, x, y, words in found:
        wide = 6.5 * len(words)
        left = float(x) - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        boxes.append((left, left + wide, float(y) - 9, float(y)))
    marks = [
        middle(one) for kind in ("mark d1", "mark d2") for one in places(of(result, "region"), kind)
    ]
    assert len(boxes) >= 2
    assert len(marks) == 4
    for one, other in combinations(boxes, 2):
        assert one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]
    for left, right, top, bottom in boxes:
        assert not any(left < x < right and top < y < bottom for x, y in marks)


def test_events_for_the_two_inputs_differ_in_shape() -> None:
    picture = of(VIOLATION, "region")
    first, second = (places(picture, kind)[0] for kind in ("mark d1", "mark d2"))
    assert len(first) != len(second)
    assert min(max(x for x, _ in one) - min(x for x, _ in one) for one in (first, second)) > 6
    assert {one.shape for one in picture.keys if one.words.startswith("event")} == {
        "circle",
        "diamond",
    }


def test_a_violation_whose_bounds_do_not_exceed_the_claim_says_what_refutes_it() -> None:
    """As one that Holm's procedure refutes at more than the audit's share."""
    said = " p-value refutes "
    assert not any(said in one for one in of(VIOLATION, "profile").notes)
    short = replace(CERTIFICATE, epsilon_lower=0.4, delta_lower=0.0)
    assert VIOLATION.point.epsilon == 0.5
    result = replace(VIOLATION, ending=Sampled((short,)))
    assert result.verdict is Verdict.VIOLATION
    assert any(said in one for one in of(result, "profile").notes)
    assert "at 500" in of(VIOLATION, "wealth").alt


def test_wealth_is_rounded_as_in_the_text() -> None:
    picture = of(VIOLATION, "wealth")
    reached = max(
        math.exp(wealth)
        for _, wealth in course(
            CERTIFICATE.point,
            CERTIFICATE.evidence.rounds,
            CERTIFICATE.evidence.blocks,
        )
    )
    assert numbers.at_least(reached) != numbers.about(reached)
    assert f"reached at most {numbers.at_least(reached)} within" in picture.alt
    assert numbers.at_least(reached) in [row[1] for row in picture.rows]


def test_a_marker_is_an_estimate_and_its_box_lies_over_it() -> None:
    picture = of(VIOLATION, "region")
    assert picture.drawing.index('class="mark d1"') < picture.drawing.index('class="box d1"')
    mark = places(picture, "mark d1")[0]
    box = places(picture, "box d1")[0]
    sizes = [max(x for x, _ in one) - min(x for x, _ in one) for one in (mark, box)]
    assert sizes[0] < sizes[1]
    assert any("Markers are estimates" in one for one in picture.notes)
    assert not any("no point below" in one for one in picture.notes)
    assert any("no point below" in one for one in of(EXACT, "region").notes)


@pytest.mark.parametrize("name", ["region", "wealth"])
def test_every_line_is_in_the_legend(name: str) -> None:
    picture = of(VIOLATION, name)
    keys = {(key.kind, key.shape) for key in picture.keys}
    for kind in ("claim", "bound", "even"):
        assert (f'class="{kind}"' in picture.drawing) is ((kind, "line") in keys)


def ticks(picture: Picture) -> list[str]:
    return re.findall(r'<g class="tick middle"><text[^>]*>([^<]+)<', picture.drawing)


def test_levels_can_be_told_by_what_stands_below_them() -> None:
    picture = of(VIOLATION, "outputs")
    assert ticks(picture) == ["1", "2"]
    assert any("point to d2 " in one for one in picture.notes)
    assert [key.words for key in picture.keys[2:]] == [
        f"chosen event for {one.guess}: {one.words}" for one in CERTIFICATE.fixed.events
    ]
    scored = of(replace(FULL, ending=Sampled((FULL.certificates[1],))), "outputs")
    assert ticks(scored) == ["0.5"]
    assert any("event begins or" in one for one in scored.notes)
    fixed = replace(CERTIFICATE.fixed, guesses=(1, 1, 0, -1, -1, 0))
    fives = Tally(np.full((6, 2), 5))
    blocks = tuple(replace(block, tally=fives) for block in CERTIFICATE.evidence.blocks)
    sizes = {"refuted_after": 120, "budget": 180, "limits": DrawLimits(confirming=60)}
    many = replace(CERTIFICATE, fixed=fixed, rules=(fixed.rule,), blocks=blocks, **sizes)
    drawn = outputs(many)
    assert drawn is not None
    assert ticks(drawn) == ["1", "6", "3", "4", "2", "5"]
    assert any("order of the " in one for one in drawn.notes)


def test_bounds_are_said_as_the_report_says_them() -> None:
    picture = of(VIOLATION, "profile")
    assert picture.rows == (
        ("ε at δ = 0", "0.5", "1.21"),
        ("δ at ε = 0.5", "0", "0.214"),
    )
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


def test_of_many_outcomes_the_likeliest_are_drawn_and_the_others_counted() -> None:
    (one,) = EXACT.by_pair
    assert isinstance(one, ExactCertificate)
    law: list[tuple[str, float, float]] = [(f"{place}", 1 / 800, 0.0) for place in range(400)]
    law += [(f"{place}", 0.0, 1 / 800) for place in range(400)] + [("often", 0.5, 0.5)]
    made = replace(one, law=tuple(law), event=None)
    picture = of(replace(EXACT, ending=Exact((made,))), "outputs")
    assert any(one.startswith("701 more, ") for one in picture.notes)
    assert any(one.endswith(" first 40.") for one in picture.notes)
    (outline,) = places(picture, "d2")
    assert len({y for _, y in outline}) == 3  # nothing, 1/800 and a half


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


@pytest.mark.parametrize(
    "claim",
    [
        dpaudit.ProbabilisticDP(1.0, 0.1),
        dpaudit.RenyiDP(2.0, 0.1),
        dpaudit.GaussianDP(1.0),
        dpaudit.TotalVariation(0.1),
    ],
    ids=lambda one: one.key,
)
def test_audits_of_other_definitions_have_every_figure(claim: PrivacyClaim) -> None:
    result = dpaudit.audit(bit, 0, 1, claim, samples=1_000, name="bit")
    assert [one.name for one in pictures(result)] == ["region", "profile", "outputs", "wealth"]
    rows = of(result, "outputs").rows
    assert rows
    assert any(row[3] for row in rows)


def test_ticks_are_round_and_inside() -> None:
    assert [words for _, words in Scale(0, 1).ticks()] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert [words for _, words in Scale(0, 1_000_000).ticks()][-1] == "1M"
    powers = Scale(1e-6, 1.0, is_log=True).ticks()
    assert [words for _, words in powers] == ["1e-6", "1e-4", "1e-2", "1"]


def test_what_lies_beyond_an_axis_is_at_its_end() -> None:
    scale = Scale(1e-3, 1.0, is_log=True)
    assert [scale.share(one) for one in (0.0, 1e-9, 1e-3, 1.0, 7.0)] == [0, 0, 0, 1, 1]
    assert scale.share(math.sqrt(1e-3)) == pytest.approx(0.5)


def test_a_drawing_has_neither_ids_nor_styles() -> None:
    canvas = Canvas(Scale(0, 1), Scale(0, 1), "across", "up")
    canvas.ticks()
    canvas.mark("d1", "diamond", 0.25, 0.5)
    canvas.line("claim", [(0, 0), (1, 1)])
    drawn = canvas.markup()
    assert not re.search(r"\b(id|style|xlink|transform)=|url\(|#", drawn)
    assert set(re.findall(r"<(\w+)", drawn)) == {"g", "path", "text"}
    assert '<text x="' in drawn


def of_several_rules(shown: str) -> Certificate:
    """Return a certificate of a main rule by a score and a rare rule, with two added levels."""
    main = replace(CERTIFICATE.fixed, share=0.92, guesses=(-1, 1, 0, -1, 1))
    rare = replace(CERTIFICATE.fixed, kind="rare", share=0.08, guesses=(0, 0, 0, 1, 1))
    fives = Tally(np.full((5, 2), 5))
    evidence = replace(
        PASS.certificates[0].evidence,
        budget=150,
        rules=(main.rule, rare.rule),
        blocks=tuple(replace(block, tally=fives) for block in PASS.certificates[0].evidence.blocks),
    )
    fixed, other = (main, rare) if shown == "main" else (rare, main)
    return replace(
        CERTIFICATE,
        fixed=fixed,
        others=(other,),
        evidence=evidence,
        scores=ScoreDistributions((0.5,), ((1, 2), (3, 4), (0, 0)), (("age", 0.7),)),
    )


@pytest.mark.parametrize(
    ("shown", "events"),
    [("main", ["for d2", "for d1", "", "for d2", "for d1"]),
     ("rare", ["", "", "", "for d1", "for d1"])],
)  # fmt: skip
def test_levels_of_other_rules_stand_after_those_of_the_score(
    shown: str, events: list[str]
) -> None:
    picture = outputs(of_several_rules(shown))
    assert picture is not None
    assert [row[0] for row in picture.rows] == [
        *("score below 0.5", "score above 0.5", "no score"),
        *("rare outputs (rare rule: d1)", "rare outputs (rare rule: d1)"),
    ]
    assert [row[3] for row in picture.rows] == events
