"""Every format rounds a number once, in the same way."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

import dpaudit
from dpaudit.certificates.result import AuditResult
from dpaudit.claims import ApproximateDP, GaussianDP, PureDP
from dpaudit.reports import numbers
from dpaudit.reports.bounds_report import bounds
from dpaudit.reports.events import refutation
from dpaudit.reports.html.page import row_of, view_of
from dpaudit.reports.text import render
from mechanisms import laplace
from tests.cli.made_results import BELOW, CERTIFICATE, FIXED, PASS, VIOLATION
from tests.forging import with_certificates
from tests.result_files import reported
from tests.specs import replace

SHARE = re.compile(r"\d[\d.]* %")


def seen(count_d1: int, count_d2: int, claim: dpaudit.PrivacyClaim) -> AuditResult:
    """Return a violation by an event of these counts, of 10,000 draws of each input."""
    event = replace(BELOW, count_d1=count_d1, draws_d1=10_000, count_d2=count_d2, draws_d2=10_000)
    fixed = replace(FIXED, events=(event,))
    certificate = replace(CERTIFICATE, fixed=fixed, point=claim.point())
    return replace(with_certificates(VIOLATION, certificate), claim=claim)


RESULTS = {
    "violation": VIOLATION,
    "pass": PASS,
    # 73.18 %: 73.1 rounded down and 73.2 to the nearest.
    "rounded in two directions": seen(7_318, 1_000, ApproximateDP(0.5, 0.1)),
    # Just beyond what is allowed, 26.4872 %, by which three digits are too few.
    "just beyond": seen(2_649, 1_000, ApproximateDP(0.5, 0.1)),
    "all of one input": seen(10_000, 0, ApproximateDP(0.5, 0.1)),
    "p of three digits": replace(
        with_certificates(PASS, replace(PASS.certificates[0], p_value=0.403)), claim=PureDP(1.0)
    ),
    "audited": dpaudit.audit(laplace.laplace, 0.0, 1.0, GaussianDP(1.5), samples=2_000),
    "guessed": dpaudit.bound_guesses(1_000, 100, 75, ApproximateDP(0.5, 1e-4)),
}


@pytest.fixture(params=RESULTS)
def result(request: pytest.FixtureRequest) -> AuditResult:
    return RESULTS[request.param]


def text_of(result: AuditResult) -> str:
    return " ".join(render(result, verbose=1).split())


def test_p_values_and_bounds_are_the_same_in_every_format(result: AuditResult) -> None:
    text = text_of(result)
    found = re.search(r" p-value (\S+) \(violation", text)
    assert found is not None
    rows = dict(view_of(result).rows)
    assert rows["p-value"][0].startswith(f"{found[1]} ")
    suite = ElementTree.fromstring(reported("junit", [result]).encode())
    figures = {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}
    assert figures["p_value"] == found[1]
    for name, symbol in (("epsilon_lower", "ε"), ("delta_lower", "δ")):
        stated = re.search(rf" {symbol} at least (\S+?),? (?:at|with) ", text)
        if stated is not None:
            assert figures[name] == stated[1]
    shown = numbers.unglued(bounds(result)[0].brief(result))
    assert numbers.unglued(row_of(result).shown) == shown
    assert shown.replace("≥ ", "").split()[1].strip(",>") in text
    assert shown in reported("markdown", [result]).replace("&gt;", ">").replace("\\", "")


def test_shares_are_the_same_in_every_format(result: AuditResult) -> None:
    text = text_of(result)
    for table in view_of(result).events:
        for name, arm, counts, share, interval in table.rows:
            row = numbers.unglued(" ".join((name, arm, counts, share, interval)))
            assert row in text
    if result.certificates and "draws for d" in refutation(result.certificates[0])[1]:
        headline = SHARE.findall(numbers.unglued(refutation(result.certificates[0])[1]))
        shares = [numbers.unglued(row[3]) for row in view_of(result).events[0].rows]
        # The share of each input is in the headline, but for 0, which is "never".
        assert {one for one in shares if one != "0 %"} <= set(headline)
        allowed = re.search(r" allowed P\(E1?\) ≤ .*? = ([\d.]+ %)", text)
        assert allowed is None or allowed[1] == headline[-1]
