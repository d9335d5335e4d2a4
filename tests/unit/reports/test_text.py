"""What the text report says, and in how many lines; formats by name."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import dpaudit
from dpaudit import (
    ApproximateDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    TotalVariation,
    ZeroConcentratedDP,
)
from dpaudit.certificates.certificate import DivergenceBets, DivergenceTest
from dpaudit.certificates.result import AuditResult, Family, Sampled
from dpaudit.claims.base import ProfilePoint
from dpaudit.claims.renyi import ApproximateZCDP
from dpaudit.inputs.neighbouring import EQUAL
from dpaudit.reports.audit_report import notes_of
from dpaudit.reports.bounds_report import bounds, detectable, may_miss
from dpaudit.reports.events import allowance, compared
from dpaudit.reports.layout import laid_out
from dpaudit.reports.text import render
from dpaudit.stats.witness import DivergenceWitness
from dpaudit.targets.construction import source_of
from dpaudit.targets.target import CallableTarget, ImportedTarget
from tests.cli.made_results import BELOW, CERTIFICATE, ERROR, FIXED, PASS, VIOLATION
from tests.forging import with_certificates
from tests.hostile import EXACT, ONE_RUN
from tests.specs import replace

DIVERGENCE = DivergenceTest(
    witness=DivergenceWitness(2.0, True, (0.5, -0.5), (0.1, 0.1)),
    alpha=0.00025,
    allowed=0.8,
    lower=0.91349,
    p_value=3.1e-9,
)
ASKED = replace(VIOLATION, command="dpaudit run a.yaml -k wrong", source="mechanisms/laplace.py:71")


def at(claim: dpaudit.PrivacyClaim, **values: float) -> AuditResult:
    """Return the violation of another claim, with other bounds."""
    certificate = replace(CERTIFICATE, point=claim.point(), **values)
    return replace(with_certificates(VIOLATION, certificate), claim=claim)


def test_the_headline_of_bets_compares_the_event_and_the_wealth_is_below() -> None:
    ended = replace(CERTIFICATE, fixed=replace(FIXED, stage="betting", p_value=1.0))
    headline, _, body = render(with_certificates(VIOLATION, ended)).partition("\n\n")
    for text in ("after 265 draws", "outputs ≤ 0.13 appear 7.6 times", "the claim allows 1.6"):
        assert text in " ".join(headline.split())
    assert "wealth" not in headline
    assert "wealth: 812" in body


def test_events_that_obey_the_claim_are_not_the_headline_of_bets() -> None:
    obeying = replace(BELOW, count_d1=60)
    for stage in ("betting", "confirmation"):
        fixed = replace(FIXED, stage=stage, p_value=0.2, events=(obeying,))
        text = render(with_certificates(VIOLATION, replace(CERTIFICATE, fixed=fixed)))
        headline, _, body = text.partition("\n\n")
        assert "after 265 draws: all events together" in " ".join(headline.split())
        assert "812" in body.partition("p-value")[2]


def test_an_event_of_few_counts_does_not_seem_to_be_the_evidence() -> None:
    wide = replace(BELOW, interval_d1=(0.2, 0.9))  # 0.2 < e^0.5 * 0.14
    fixed = replace(FIXED, stage="betting", p_value=1.0, events=(wide,))
    text = render(with_certificates(VIOLATION, replace(CERTIFICATE, fixed=fixed)))
    headline = " ".join(text.partition("\n\n")[0].split())
    assert "after 265 draws by all events together: outputs ≤ 0.13 appear" in headline


def test_bets_on_divergences_that_refute_have_their_wealth_below() -> None:
    bets = DivergenceBets(alpha=0.002, wealth=777.0)
    fixed = replace(FIXED, p_value=0.2)
    certificate = replace(CERTIFICATE, fixed=fixed, wealth=1.5, divergence_bets=bets)
    headline, _, body = render(with_certificates(VIOLATION, certificate)).partition("\n\n")
    assert "after 265 draws: the Rényi divergences" in " ".join(headline.split())
    assert "wealth 777 (violation at 500)" in " ".join(body.split())


def by_divergence(claim: dpaudit.PrivacyClaim, test: DivergenceTest) -> AuditResult:
    """Return a violation that the event does not show."""
    fixed = replace(FIXED, alpha=test.alpha, p_value=0.31)
    certificate = replace(
        CERTIFICATE, point=claim.point(), fixed=fixed, divergence=test, wealth=1.5, delta_lower=0.0
    )
    return replace(with_certificates(ASKED, certificate), claim=claim)


def test_a_violation_that_only_a_divergence_shows() -> None:
    text = render(by_divergence(RenyiDP(2, 0.8), DIVERGENCE))
    assert "D_2(P ‖ Q) ≥ 0.913 (allowed: 0.8), p = 3.1e-09" in text
    assert "  D_2 at least 0.913" in text
    assert "event E" not in text
    assert len(text.splitlines()) == 11


def test_the_order_and_the_direction_are_those_of_the_witness() -> None:
    witness = replace(DIVERGENCE.witness, order=1.05, from_d1=False)
    test = replace(DIVERGENCE, witness=witness, allowed=0.42)
    result = by_divergence(ZeroConcentratedDP(0.4), test)
    said = " ".join(render(result).split())
    assert "D_1.05(Q ‖ P) is at least 0.91; the claim allows 0.42" in said
    assert rows(result) == ["ρ at least 0.869, with 99 % confidence (claimed: 0.4)"]


def test_what_was_not_refuted_is_never_called_private() -> None:
    text = render(PASS)
    assert len(text.splitlines()) <= 17
    assert "private" not in text
    assert "ε of 1.02" in text
    assert "No proof: " in text


def rows(result: AuditResult, *, every: bool = False) -> list[str]:
    every_bound = bounds(result, every=every)
    return [" ".join(" ".join(laid_out(one.row(result))).split()) for one in every_bound]


def test_bounds_of_a_violation_that_stay_below_the_claim_are_not_shown() -> None:
    unseen = at(ApproximateDP(1.0, 0.1), epsilon_lower=1.0, delta_lower=0.09)
    for every in (False, True):
        assert rows(unseen, every=every) == [
            "ε above 1 at δ = 0.1, with 99 % confidence (claimed: 1)"
        ]
    seen = at(ApproximateDP(1.0, 0.1), epsilon_lower=1.2, delta_lower=0.15)
    assert [one.symbol for one in bounds(seen)] == ["ε", "δ"]
    assert [one.symbol for one in bounds(at(PureDP(0.5), delta_lower=0.0), every=True)] == ["ε"]


def test_the_parameter_of_the_claim_comes_first() -> None:
    claim = ZeroConcentratedDP(0.1)
    refuted = at(claim, delta_lower=0.6)
    assert bounds(refuted)[0].symbol == "ρ"
    assert len(bounds(refuted)) == 1
    assert {one.symbol for one in bounds(refuted, every=True)} == {"ρ", "ε", "δ"}
    nothing_seen = at(claim, delta_lower=0.0)
    assert rows(nothing_seen) == ["ρ above 0.1, with 99 % confidence (claimed: 0.1)"]
    approximate = at(ApproximateZCDP(rho=0.1, delta=0.01), delta_lower=0.6)
    assert [(one.symbol, one.claimed) for one in bounds(approximate)] == [("ρ", 0.1)]
    divergence = at(RenyiDP(3, 0.1), delta_lower=0.6)
    assert [(one.symbol, one.claimed) for one in bounds(divergence)] == [("D_3", 0.1)]
    distance = at(TotalVariation(0.1), delta_lower=0.2)
    assert rows(distance) == ["δ at least 0.2, with 99 % confidence (claimed: 0.1)"]


def test_what_is_allowed_is_rounded_as_in_the_headline() -> None:
    """Upwards: e · 50/503 + 1e-6 = 27.02 %."""
    point = ProfilePoint(1.0, 1e-6)
    event = replace(BELOW, count_d1=260, draws_d1=497, count_d2=50, draws_d2=503)
    said = "27.1\xa0%"
    assert compared(event, point).endswith(f"the claim allows {said}")
    assert allowance("E", event, point).text.endswith(f"= {said}")
    # Just beyond the limit it takes more digits.
    close = replace(event, count_d1=27_023, draws_d1=100_000)
    said = "27.021\xa0%"
    assert compared(close, point).endswith(f"the claim allows {said}")
    assert allowance("E", close, point).text.endswith(f"= {said}")


def shifted(x: float, size: int, rng: Any) -> Any:
    return x + rng.normal(size=size)


def test_where_the_code_of_a_mechanism_stands() -> None:
    line = shifted.__code__.co_firstlineno
    for function in (shifted, partial(shifted, size=1)):
        source = str(source_of(CallableTarget(function=function)))
        assert source.endswith(f"tests/unit/reports/test_text.py:{line}")
    for target in (CallableTarget(function=len), ImportedTarget(path="not_loaded:f")):
        assert source_of(target) is None


def test_equal_inputs_promise_nothing() -> None:
    same = replace(PASS.certificates[0], warnings=(EQUAL,))
    text = render(with_certificates(PASS, same))
    assert EQUAL.partition(":")[0] in text
    assert "9 of 10 runs" not in text


def _of_three(level: float, p: float = 0.42, alpha: float = 0.01) -> str:
    """Return the report of one of three audits that have α together."""
    (one,) = PASS.certificates
    family = Family("a.yaml", 3, 1 - alpha, level)
    shown = replace(
        PASS, confidence=1 - alpha / 3, family=family, ending=Sampled((replace(one, p_value=p),))
    )
    return " ".join(render(shown).split())


def test_a_p_value_that_refutes_is_not_printed_as_a_larger_one_than_its_level() -> None:
    text = _of_three(0.01 / 3, 0.00332)
    assert text.startswith("VIOLATION")
    assert "p-value 0.00332 (violation if ≤ 0.00333, its share" in text
    assert "p-value 0.01 (violation if ≤ 0.01: its share" in _of_three(0.01, 0.00999)


def test_a_pass_says_how_rare_an_output_it_would_have_refuted() -> None:
    (one,) = PASS.certificates
    texts = [detectable(replace(one, detectable_rare=rare)) for rare in (None, 0.000746, math.inf)]
    assert all("1.02" in text for text in texts)
    assert ["0.000746" in text for text in texts] == [False, True, False]
    assert len(set(texts)) == 3


def test_a_timed_audit_has_the_note_that_a_rerun_differs() -> None:
    (one,) = PASS.certificates
    timed = replace(one, by_clock=True)
    assert notes_of(PASS) == []
    (note,) = notes_of(replace(PASS, ending=Sampled((timed,))))
    assert f"samples={timed.evidence.budget}" in note
    unseeded = replace(timed, reproducible=False)  # no number of draws makes its reruns equal
    assert notes_of(replace(PASS, ending=Sampled((unseeded,)))) == []


def passed(claim: dpaudit.PrivacyClaim, detectable: float) -> AuditResult:
    """Return a pass of another claim, whose event has this power."""
    (one,) = PASS.certificates
    fixed = replace(one.fixed, detectable_epsilon=detectable)
    changed = replace(one, point=claim.point(), fixed=fixed)
    return replace(with_certificates(PASS, changed), claim=claim)


def test_a_pass_states_the_leak_that_it_may_miss_at_the_tested_point() -> None:
    assert may_miss(PASS) == "ε < 1.02"
    assert [may_miss(one) for one in (VIOLATION, ERROR, EXACT, ONE_RUN)] == [""] * 4
    assert may_miss(passed(PureDP(1.0), math.inf)) == "any ε"
    assert may_miss(passed(ApproximateDP(1.0, 1e-5), 1.3)) == "ε < 1.3"
    (one,) = PASS.certificates
    without = replace(one, fixed=replace(one.fixed, events=()))
    assert may_miss(with_certificates(PASS, without)) == "any ε"
    for curve in (
        RenyiDP(2.0, 1.0),
        ZeroConcentratedDP(0.5),
        ApproximateZCDP(0.5, 0.01),
        GaussianDP(1.0),
    ):
        assert may_miss(passed(curve, 1.3)).startswith("ε < 1.3 at δ = 0.")
    assert may_miss(with_certificates(PASS, replace(one, warnings=(EQUAL,)))) == "any ε"
