"""What the page marks up: code, expressions, expected violations, and rows that are folded."""

from __future__ import annotations

import re

import pytest

from dpaudit.certificates.result import AuditResult
from dpaudit.reports.html.page import _glued, _prose, row_of, view_of
from tests.cli.made_results import CERTIFICATE, PASS, VIOLATION
from tests.forging import with_certificates
from tests.hostile import TRACE
from tests.result_files import reported
from tests.specs import replace

TRACED = replace(VIOLATION, trace=TRACE, command="dpaudit run mine.py:laplace", expect="violation")
TWO_PAIRS = with_certificates(VIOLATION, CERTIFICATE, replace(CERTIFICATE, pair="other"))


def section(page: str, title: str) -> str:
    found = re.search(rf"<section[^>]*>\s*<h4[^>]*>{title}</h4>.*?</section>", page, re.DOTALL)
    assert found is not None
    return found[0]


def test_causes_have_code_elements_and_no_backticks() -> None:
    page = reported("html", [TRACED])
    assert "`" in view_of(TRACED).cause[1]  # type: ignore[index]
    for title in ("Likely cause", "Which line leaks"):
        part = section(page, title)
        assert "`" not in re.sub(r"<code>.*?</code>", "", part, flags=re.DOTALL)
    assert "<code>rng.laplace(scale=0.5)</code>" in section(page, "Likely cause")


def test_the_command_comes_after_the_cause_and_before_all_else() -> None:
    page = reported("html", [replace(TRACED, warnings=("doubtful",))])
    titles = re.findall(r"<h4[^>]*>(.*?)</h4>", page)
    assert titles[:3] == ["Likely cause", "Repeat it", "Warnings"]


@pytest.mark.parametrize(
    ("text", "expressions"),
    [
        ("refuted: ε = 1.69.", ["ε = 1.69"]),
        ("ε ≥ 0.71, p = 3.2e-120 and δ ≤ 1e-5", ["ε ≥ 0.71", "p = 3.2e-120", "δ ≤ 1e-5"]),
        ("D_2 ≥ 0.8 (μ = 2)", ["D_2 ≥ 0.8", "μ = 2"]),
        ("step = 3, help = me, ε at least 2", []),
    ],
)
def test_expressions_stay_on_a_line(text: str, expressions: list[str]) -> None:
    shown = _glued(text)
    assert shown.replace("\xa0", " ") == text
    assert shown.count("\xa0") == 2 * len(expressions)
    assert all(one.replace(" ", "\xa0") in shown for one in expressions)


def test_code_is_text() -> None:
    shown = str(_prose("`<b>` and <i> in `x = '`"))
    assert shown == "<code>&lt;b&gt;</code> and &lt;i&gt; in <code>x = &#39;</code>"
    assert str(_prose("a ` alone")) == "a ` alone"


@pytest.mark.parametrize(
    ("result", "sign"),
    [(VIOLATION, "violation"), (replace(VIOLATION, expect="violation"), "expected"),
     (PASS, "nothing"), (replace(PASS, expect="violation"), "missed")],
)  # fmt: skip
def test_an_expected_violation_has_a_sign_of_its_own(result: AuditResult, sign: str) -> None:
    assert row_of(result).sign == sign
    assert f'data-sign="{sign}"' in reported("html", [result])


def test_workings_of_each_pair_are_folded() -> None:
    labels = [
        ([label for label, _ in shown], [label for label, _ in folded])
        for shown, folded in view_of(TWO_PAIRS).parts
    ]
    assert len(labels) == 3
    for shown, folded in labels[1:]:
        assert folded == ["betting", "error split", "record"]
        assert "exact test" in shown
    assert labels[0][1] == []
    page = reported("html", [TWO_PAIRS])
    folds = re.findall(r"<details class=\"numbers\"><summary>(.*?)</summary>", page)
    assert folds.count("Betting, error split, record") == 2
