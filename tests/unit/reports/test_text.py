"""What the text report says, and in how many lines; formats by name."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Any

import pytest

import dpaudit
from dpaudit import (
    ApproximateDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    TotalVariation,
    Verdict,
    ZeroConcentratedDP,
)
from dpaudit.certificates.certificate import DivergenceBets, DivergenceTest, Unseen
from dpaudit.certificates.evidence import RuleKind
from dpaudit.certificates.result import AuditResult, Family, Recorded, Sampled
from dpaudit.certificates.traced import SourceLine
from dpaudit.claims.base import ProfilePoint
from dpaudit.claims.renyi import ApproximateZCDP
from dpaudit.inputs.neighbouring import EQUAL, EQUAL_INPUTS
from dpaudit.reports import numbers
from dpaudit.reports.bounds import bounds, detectable, may_miss
from dpaudit.reports.events import allowance, compared
from dpaudit.reports.layout import LABEL, Row, laid_out, table, width_of
from dpaudit.reports.registry import FORMATS, parse_report
from dpaudit.reports.report import notes_of
from dpaudit.reports.text import document, render, render_remarks, render_row, render_warnings
from dpaudit.stats.witness import Witness
from dpaudit.targets.construction import source_of
from dpaudit.targets.target import CallableTarget, ImportedTarget
from tests.cli.made_results import BELOW, CERTIFICATE, ERROR, FIXED, PASS, VIOLATION
from tests.forging import with_certificates
from tests.hostile import EXACT, ONE_RUN, RECORDED
from tests.raising import refusal
from tests.result_files import from_json, reported
from tests.specs import replace

DIVERGENCE = DivergenceTest(
    witness=Witness(2.0, True, (0.5, -0.5), (0.1, 0.1)),
    alpha=0.00025,
    allowed=0.8,
    lower=0.91349,
    p_value=3.1e-9,
)
ASKED = replace(VIOLATION, command="dpaudit run a.yaml -k wrong", source="mechanisms/laplace.py:71")


def shifted(x: float, size: int, rng: Any) -> Any:
    return x + rng.normal(size=size)


def at(claim: dpaudit.PrivacyClaim, **values: float) -> AuditResult:
    """Return the violation of another claim, with other bounds."""
    certificate = replace(CERTIFICATE, point=claim.point(), **values)
    return replace(with_certificates(VIOLATION, certificate), claim=claim)


def test_a_violation_in_fifteen_lines() -> None:
    lines = render(ASKED).splitlines()
    assert len(lines) == 14
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("scale", "samples", "confidence", "seed", "numbers"),
    [
        (0.93, 2_000, 0.8, 5, ("within 132 draws", "wealth 39", "at 25", "1,000 draws")),
        (0.85, 4_000, 0.95, 3, ("within 2,968 draws", "wealth 101", "at 100", "1,032 draws")),
        (0.5, 4_000, 0.95, 3, ()),
    ],
)
def test_bets_that_refute_what_no_event_does_are_the_evidence(
    scale: float, samples: int, confidence: float, seed: int, numbers: tuple[str, ...]
) -> None:
    def count(rows: list[int], rng: Any, size: int) -> Any:
        return len(rows) + rng.laplace(scale=scale, size=size)

    asked: dict[str, Any] = {"samples": samples, "confidence": confidence, "seed": seed}
    result = dpaudit.audit(count, [1, 2], [1], dpaudit.PureDP(1), no_trace=True, **asked)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    for text in (result.report(), result.report(verbose=True)):
        evidence = " ".join(text.partition("\n  evidence ")[2].split())
        assert bool(evidence) is bool(numbers)
        assert all(one in evidence for one in numbers)
    page = parse_report("html:r.html")[0]
    html = page.document([page.entry(result)], 1)
    assert ("all bets within" in html) == bool(numbers)


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
    assert "after 265 draws by all events together: outputs ≤ 0.13 appear 7.6 times" in headline


def test_bets_on_divergences_that_refute_have_their_wealth_below() -> None:
    fixed = replace(FIXED, p_value=0.2)
    bets = DivergenceBets(alpha=0.002, wealth=777.0)
    certificate = replace(CERTIFICATE, fixed=fixed, wealth=1.5, divergence_bets=bets)
    headline, _, body = render(with_certificates(VIOLATION, certificate)).partition("\n\n")
    assert "after 265 draws: the Rényi divergences" in " ".join(headline.split())
    assert "wealth 777 (violation at 500)" in " ".join(body.split())


def test_what_bets_do_not_refute_has_no_evidence_by_them() -> None:
    test = replace(CERTIFICATE.fixed, p_value=0.2)
    for one, is_said in (
        (replace(CERTIFICATE, fixed=test), True),
        (replace(CERTIFICATE, fixed=test, wealth=1.0), False),
        (CERTIFICATE, False),
    ):
        text = render(with_certificates(VIOLATION, one))
        assert ("  evidence    all bets within" in text) == is_said


def by_divergence(claim: dpaudit.PrivacyClaim, test: DivergenceTest) -> AuditResult:
    """Return a violation that the event does not show."""
    fixed = replace(FIXED, alpha=test.alpha, p_value=0.31)
    certificate = replace(
        CERTIFICATE,
        point=claim.point(),
        fixed=fixed,
        divergence=test,
        wealth=1.5,
        delta_lower=0.0,
    )
    return replace(with_certificates(ASKED, certificate), claim=claim)


def test_a_violation_that_only_a_divergence_shows() -> None:
    text = render(by_divergence(RenyiDP(2, 0.8), DIVERGENCE))
    assert "D_2(P ‖ Q) ≥ 0.913 (allowed: 0.8), p = 3.1e-09" in text
    assert "  D_2 at least 0.913" in text
    assert "event E" not in text
    assert len(text.splitlines()) == 11


def test_details_have_the_event_and_the_divergence() -> None:
    verbose = " ".join(render(by_divergence(RenyiDP(2, 0.8), DIVERGENCE), verbose=1).split())
    for words in ("event E2", "D_2(P ‖ Q) ≥ 0.913", "0.2 % for betting, 0.025 % each"):
        assert words in verbose


def test_the_order_and_the_direction_are_those_of_the_witness() -> None:
    witness = replace(DIVERGENCE.witness, order=1.05, from_d1=False)
    test = replace(DIVERGENCE, witness=witness, allowed=0.42)
    result = by_divergence(ZeroConcentratedDP(0.4), test)
    said = " ".join(render(result).split())
    assert "D_1.05(Q ‖ P) is at least 0.91; the claim allows 0.42" in said
    assert rows(result) == ["ρ at least 0.869, with 99 % confidence (claimed: 0.4)"]


def test_a_divergence_that_is_hardly_too_large_is_shown_as_larger() -> None:
    text = render(by_divergence(RenyiDP(2, 0.8), replace(DIVERGENCE, lower=0.800012)))
    assert "D_2(P ‖ Q) is at least 0.80001; the claim allows 0.8" in " ".join(text.split())
    assert "D_2(P ‖ Q) ≥ 0.80001 (allowed: 0.8)" in text


def test_where_the_event_refutes_too_it_is_the_headline() -> None:
    result = by_divergence(RenyiDP(2, 0.8), DIVERGENCE)
    (one,) = result.certificates
    both = with_certificates(result, replace(one, fixed=replace(one.fixed, p_value=1e-6)))
    assert "outputs ≤ 0.13 appear in" in " ".join(render(both).split())
    assert "divergence" not in render(both)


def test_what_was_not_refuted_is_never_called_private() -> None:
    text = render(PASS)
    assert len(text.splitlines()) <= 17
    assert "private" not in text
    assert "ε of 1.02" in text
    assert "No proof: " in text


def test_only_draws_that_were_learned_from_have_chosen_an_event() -> None:
    first, second, confirmed = CERTIFICATE.evidence.blocks
    certified = replace(second, stage="certification")  # refuted by bets before the planned end
    blocks = (first, second, certified, confirmed)
    certificate = replace(CERTIFICATE, blocks=blocks, refuted_after=430, draws=1_430)
    text = render(with_certificates(ASKED, certificate))
    assert "(points to d1; chosen on 265 separate draws)" in text
    assert "chosen on" not in render(ASKED, verbose=1)  # which has a row of draws


def test_details_are_for_verbose_reports() -> None:
    verbose, brief = (" ".join(render(ASKED, verbose=one).split()) for one in (1, 0))
    for words in (
        "event E2",
        "found by",
        "refuted after 265",
        "wealth 812 (violation at 500)",
        "versions",
        "77 % certainty",
        "the claim allows 62.2 %.",
    ):
        assert words in verbose
        assert words not in brief


@pytest.mark.parametrize("verbose", [0, 1])
def test_an_error_names_the_command_that_repeats_it(verbose: int) -> None:
    text = render(replace(ERROR, command="dpaudit run a.yaml -k broken"), verbose=verbose)
    assert text.startswith("ERROR  broken: the mechanism raises ValueError on every draw\n")
    assert "  repeat      dpaudit run a.yaml -k broken" in text


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


def test_what_the_claim_allows_with_a_delta() -> None:
    assert "allowed     P(E) ≤ e^0.5 · 11.0 % + 0.1 = 28.1 %" in render(at(ApproximateDP(0.5, 0.1)))
    assert "appear in 82.7 % of draws for d1, 11.0 % for d2; the claim allows 28.1 %" in " ".join(
        render(at(ApproximateDP(0.5, 0.1))).split()
    )


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


def test_what_a_probability_cannot_exceed_is_no_product() -> None:
    certain = replace(BELOW, count_d1=500, draws_d1=500, count_d2=120, draws_d2=500)
    line = allowance("E", certain, ProfilePoint(6.0, 0.0)).text
    assert line.endswith("P(E) ≤ min(1, e^6 · 24.0\xa0%) = 100\xa0%")
    line = allowance("E", certain, ProfilePoint(6.0, 0.1)).text
    assert line.endswith("P(E) ≤ min(1, e^6 · 24.0\xa0% + 0.1) = 100\xa0%")


def test_a_limit_as_a_percentage_is_free_of_the_noise_of_floats() -> None:
    assert 100 * 0.07 > 7
    assert numbers.shares_apart(0.07, 0.2) == ("7.00\xa0%", "20.0\xa0%")


def test_no_finite_epsilon_makes_an_attacker_certain() -> None:
    assert numbers.sure(37.0) == "99.99999999\xa0%"
    assert numbers.sure(37.0, numbers.UP) == "nearly 100\xa0%"


@pytest.mark.parametrize("name", ["optimizer", "a_very_long_name_of_a_folder_" * 2])
def test_a_long_path_is_broken_after_a_slash(name: str) -> None:
    path = "/".join(["", name, *[f"folder_{number}" for number in range(9)], name, "file.py:162"])
    first, *further = Row("cause", f"likely {path}: `f()` has scale 1").lines()
    assert first == "  cause       likely"
    assert all(len(line) <= 80 and line.startswith(" " * LABEL) for line in further)
    assert sum(line.endswith("/") for line in further) >= 1
    text = " ".join(line.strip() for line in further).replace("/ ", "/")
    assert text == f"{path}: `f()` has scale 1"


def test_a_line_of_an_installed_package_is_named_without_its_folder() -> None:
    names = [
        str(SourceLine(f"{folder}opacus/optimizer.py", 162, "f()"))
        for folder in ("/v/lib/python3.11/site-packages/", "v/dist-packages/", "/x/site/", "")
    ]
    assert names == [
        *["…/opacus/optimizer.py:162"] * 2,
        *["/x/site/opacus/optimizer.py:162", "opacus/optimizer.py:162"],
    ]


def test_columns_of_a_table_are_as_wide_as_they_are_shown() -> None:
    cells = [["名前", "1", "x"], ["a", "22", "y"], ["é\u0301b", "名", "z"]]
    lines = table(cells, left=(0,), margin="")
    assert lines == ["名前   1  x", "a     22  y", "é\u0301b    名  z"]
    assert len(set(map(width_of, lines))) == 1


def test_a_named_pair_has_its_values_and_says_how_many_there_are() -> None:
    named = replace(CERTIFICATE, pair="two people", adjacency="add-remove")
    pairs = [{"name": "two people", "d1": [1, 2], "d2": [1]}]
    result = replace(
        with_certificates(VIOLATION, named, replace(named, pair="other", p_value=1.0)),
        request={"folder": None, "settings": {"name": VIOLATION.name, "pairs": pairs}},
    )
    for one in (result, *from_json(reported("json", [result]))):
        text = " ".join(render(one).split())
        assert "two people: d1 = [1, 2], d2 = [1]; adjacency add-remove; 1 of 2 pairs" in text


def test_where_the_code_of_a_mechanism_stands() -> None:
    line = shifted.__code__.co_firstlineno
    here = f"tests/unit/reports/test_text.py:{line}"
    assert str(source_of(CallableTarget(function=shifted))).endswith(here)
    assert str(source_of(CallableTarget(function=partial(shifted, size=1)))).endswith(here)
    result = dpaudit.audit(shifted, 0.0, 0.0, PureDP(1.0), samples=1_000)
    assert str(result.source).endswith(here)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert source_of(CallableTarget(function=len)) is None
    assert source_of(ImportedTarget(path="not_loaded:f")) is None
    assert source_of(ImportedTarget(path="mechanisms.laplace:missing")) is None


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_writes_audits_of_all_kinds(name: str) -> None:
    text = reported(name, [VIOLATION, PASS, ERROR])
    assert text.endswith("\n")
    # Only unexpected results have annotations and alerts.
    for result in (VIOLATION, *([] if name in ("github", "sarif") else [PASS]), ERROR):
        assert result.name in text
    assert FORMATS[name].suffix.startswith(".")


def test_a_report_of_one_audit_as_text_is_its_report() -> None:
    assert reported("text", [PASS]) == f"{render(PASS)}\n"


def test_a_report_without_a_format_gets_a_remedy() -> None:
    remedies = {
        "jsn:a.json": "Did you mean 'json'?",
        "out.json": "FORMAT:FILE",
        "json:": "FORMAT:FILE",
    }
    for text, remedy in remedies.items():
        error = refusal(parse_report, text)
        assert error.code == "report-format-unknown"
        assert remedy in str(error)


def test_warnings_of_a_batch_are_lines_below_their_audit_and_whole() -> None:
    warned = replace(PASS, warnings=("not too long " * 20 + "to be read to the end",))
    lines = render_remarks(warned)
    assert lines[0].startswith("  warning: not too long ")
    assert lines[-1].endswith("to be read to the end")
    assert max(map(len, lines)) <= 80
    assert all(line in document([warned, PASS], 2).splitlines() for line in lines)


def _raises_anew(bit: int, rng: Any) -> int:
    if rng.random() < 0.5:
        return 0
    raise type(f"Error{rng.integers(10**9)}", (Exception,), {})


def test_of_exceptions_of_many_types_few_are_shown() -> None:
    result = dpaudit.audit(_raises_anew, 0, 1, PureDP(1.0), samples=200)
    (certificate,) = result.certificates
    kinds = len(certificate.failures)
    shown = [line for line in render(result).splitlines() if line.startswith("  exceptions")]
    assert len(shown) == 4 < kinds
    assert shown[-1].startswith(f"  exceptions  of {kinds - 3} more types: ")
    d1, d2 = (int(one) for one in re.findall(r"(\d+) draws? of", shown[-1]))
    assert d1 + d2 + 3 == sum(map(sum, certificate.failures.values()))
    every = render(result, verbose=1).splitlines()
    assert sum(line.startswith("  exceptions") for line in every) == kinds


def test_equal_inputs_promise_nothing() -> None:
    same = replace(PASS.certificates[0], warnings=(EQUAL,))
    text = render(with_certificates(PASS, same))
    assert EQUAL.partition(":")[0] in text
    assert "9 of 10 runs" not in text


def test_that_inputs_are_equal_is_no_warning_where_the_headline_says_it() -> None:
    same = replace(PASS.certificates[0], warnings=(EQUAL, "another one"))
    allowed = with_certificates(PASS, same)
    assert len(render_warnings(allowed)) == 2
    said = replace(allowed, underpowered=EQUAL_INPUTS)
    assert [one.rpartition(": ")[2] for one in render_warnings(said)] == ["another one"]
    # Of several pairs one may be equal, and the headline say something else.
    few = replace(allowed, underpowered="100 draws cannot refute ε = 8")
    assert render_warnings(few) == render_warnings(allowed)


def _of_three(level: float, p: float = 0.42, alpha: float = 0.01) -> str:
    """Return the report of one of three audits that have α together."""
    (one,) = PASS.certificates
    family = Family("a.yaml", 3, 1 - alpha, level)
    shown = replace(
        PASS,
        confidence=1 - alpha / 3,
        family=family,
        ending=Sampled((replace(one, p_value=p),)),
    )
    return " ".join(render(shown).split())


def test_an_audit_of_a_family_states_its_share_and_what_became_of_it() -> None:
    share = _of_three(0.01 / 3)
    assert "p-value 0.42 (violation if ≤ 0.0033, its share of 0.01 for 3 audits)" in share
    raised = _of_three(0.01)
    assert "p-value 0.42 (violation if ≤ 0.01: its share, 0.0033 of 0.01" in raised
    assert "Holm" in raised
    for text in (share, raised):
        assert "do not refute 1-DP at 99.66 %" in text
        assert set(re.findall(r"[\d.]+ %(?= confidence|$)", text)) == {"99.66 %"}
    assert "at 99 %" not in raised
    assert "(violation if ≤ 0.1: its share, 0.033 of 0.1 for 3 audits" in _of_three(1 - 0.9, 1, 0.1)


def test_a_p_value_that_refutes_is_not_printed_as_a_larger_one_than_its_level() -> None:
    text = _of_three(0.01 / 3, 0.00332)
    assert text.startswith("VIOLATION")
    assert "p-value 0.00332 (violation if ≤ 0.00333, its share" in text
    assert "p-value 0.01 (violation if ≤ 0.01: its share" in _of_three(0.01, 0.00999)


def of_rules(*rules: tuple[RuleKind, float, float]) -> AuditResult:
    """Return a pass whose rules have these kinds, shares and bounds, the best bound shown."""
    (one,) = PASS.certificates
    total = one.fixed.alpha / one.fixed.rule.share
    tests: list[Any] = [
        replace(one.fixed, kind=kind, share=share, alpha=share * total, epsilon_lower=bound)
        for kind, share, bound in rules
    ]
    fixed = max(tests, key=lambda test: test.epsilon_lower)
    others = tuple(test for test in tests if test is not fixed)
    return with_certificates(PASS, replace(one, fixed=fixed, others=others))


def test_verbose_reports_list_every_rule_with_its_share_and_bound() -> None:
    result = of_rules(("main", 0.9, 0.98), ("rare", 0.08, 1.62), ("other", 0.02, 0.5))
    verbose = render(result, verbose=1)
    lines = verbose.splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("  rules  "))
    for line, kind, share, bound in zip(
        lines[first:], ("main", "rare", "other"), (90, 8, 2), (0.98, 1.62, 0.5), strict=False
    ):
        assert line[14:].startswith(f"{kind} ({share} %): ε ≥ {bound}, ")
        assert len(line) <= 80
    # The exact test's share, whichever rule is shown.
    (one,) = PASS.certificates
    assert f"{100 * one.fixed.alpha:.4g} % for the exact" in verbose
    assert "  rules " not in render(result)
    assert "  rules " not in render(of_rules(("main", 1.0, 0.98)), verbose=1)
    assert "  rules " in render(of_rules(("rare", 1.0, 0.98)), verbose=1)


def test_a_pass_says_how_rare_an_output_it_would_have_refuted() -> None:
    (one,) = PASS.certificates
    texts = [detectable(replace(one, detectable_rare=rare)) for rare in (None, 0.000746, math.inf)]
    assert all("1.02" in text for text in texts)
    assert ["0.000746" in text for text in texts] == [False, True, False]
    assert len(set(texts)) == 3


def test_rare_outputs_are_refuted_also_where_no_event_could_show_a_leak() -> None:
    (one,) = PASS.certificates
    without = replace(one, fixed=replace(one.fixed, events=()), detectable_rare=0.01)
    assert "probability 0.01 or more" in detectable(without)
    assert "No leak" not in detectable(without)
    assert detectable(replace(without, detectable_rare=math.inf)).startswith("No leak would")
    powerless = replace(one.fixed, detectable_epsilon=math.inf)
    text = detectable(replace(one, fixed=powerless, detectable_rare=0.01))
    assert "no leak" in text
    assert "probability 0.01" in text


def test_a_timed_audit_has_the_note_that_a_rerun_differs() -> None:
    (one,) = PASS.certificates
    timed = replace(one, by_clock=True)
    assert notes_of(PASS) == []
    (note,) = notes_of(replace(PASS, ending=Sampled((timed,))))
    assert f"samples={timed.evidence.budget}" in note
    unseeded = replace(timed, reproducible=False)  # no number of draws makes its reruns equal
    assert notes_of(replace(PASS, ending=Sampled((unseeded,)))) == []


def shown_alike(result: AuditResult, **values: Any) -> bool:
    """Return whether the report of a pass with other values hints at another pair of inputs."""
    (one,) = result.certificates
    return "dpaudit search" in render(with_certificates(result, replace(one, **values)))


def test_a_pass_hints_at_a_search_only_if_no_difference_shows() -> None:
    (one,) = PASS.certificates
    alike = replace(BELOW, interval_d1=(0.4, 0.6), interval_d2=(0.5, 0.7))
    same = replace(one.fixed, events=(alike,), epsilon_lower=0.0)
    blank = {"fixed": same, "others": (), "epsilon_lower": 0.0}
    assert shown_alike(PASS, **blank)
    assert not shown_alike(PASS)
    assert not shown_alike(PASS, **blank | {"epsilon_lower": 0.1})
    assert not shown_alike(PASS, **blank | {"fixed": one.fixed})  # its intervals are disjoint
    assert not shown_alike(PASS, **blank, warnings=(EQUAL,))
    new = Unseen(one.fixed.draws, 0, 1.0, ranges=False)
    assert not shown_alike(PASS, **blank, unseen=new)  # such as texts that contain d1
    assert not shown_alike(VIOLATION, **blank)
    recorded = replace(RECORDED.certificates[0], refuted=False, p_value=1.0, **blank)
    assert "dpaudit search" not in render(replace(PASS, ending=Recorded((recorded,))))


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


def test_a_row_of_a_batch_states_power_within_80_columns() -> None:
    assert render_row(PASS, 10).endswith("may miss ε < 1.02")
    widths = [width_of(render_row(replace(PASS, name="a" * size), size)) for size in range(35)]
    assert max(widths) <= 80
    assert "may miss" not in render_row(replace(PASS, name="a" * 34), 34)
    assert "may miss" not in render_row(VIOLATION, 10)
