"""From what the lower bound for ε follows, if not from the event that a report shows."""

from __future__ import annotations

from typing import Any

from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.result import AuditResult
from dpaudit.reports.bounds import bound_source
from dpaudit.reports.events import leading_event
from dpaudit.reports.text import render
from tests.cli.made_results import ABOVE, BELOW, CLEARED, PASS, VIOLATION
from tests.forging import with_certificates
from tests.specs import replace

# The event of the issue: it lies nearest to its limit, since it almost never occurs.
RARE = replace(
    BELOW, words="output is 7", guess="d2", count_d1=1, count_d2=4, draws_d1=185_561,
    draws_d2=186_102, interval_d1=(0.0, 4.1e-5), interval_d2=(3.6e-6, 6.8e-5),
)  # fmt: skip
COMMON = CLEARED.fixed.events[0]


def passed(**fields: Any) -> AuditResult:
    cleared: Certificate = replace(CLEARED, point=PASS.claim.point(), **fields)
    return with_certificates(PASS, cleared)


def row(result: AuditResult) -> str:
    """Return the row of the bound for ε."""
    text = render(result)
    return " ".join(text.partition("ε at least")[2].partition("p-value")[0].split())


def test_an_event_that_gives_the_bound_needs_no_remark() -> None:
    assert bound_source(PASS) == bound_source(VIOLATION) == ""
    both = replace(CLEARED.fixed, events=(COMMON, replace(ABOVE, interval_d2=(0.71, 0.75))))
    assert bound_source(passed(fixed=both)) == ""
    assert bound_source(passed(epsilon_lower=0.0)) == ""


def test_bets_that_give_the_bound_are_named() -> None:
    fixed = replace(CLEARED.fixed, events=(RARE,), epsilon_lower=0.0)
    result = passed(fixed=fixed, epsilon_betting=0.744, epsilon_lower=0.744)
    assert row(result).endswith(bound_source(result))
    assert bound_source(result).endswith(" bets together")


def test_another_event_of_the_same_rule_is_named() -> None:
    result = passed(fixed=replace(CLEARED.fixed, events=(COMMON, RARE)))
    assert leading_event(result.certificates[0]) == RARE
    assert f"“{COMMON.words}”" in bound_source(result)
    assert row(result).endswith(bound_source(result))


def test_the_event_of_another_rule_is_named() -> None:
    rare = replace(CLEARED.fixed, kind="rare", events=(RARE,), epsilon_lower=0.3)
    result = passed(fixed=rare, others=(CLEARED.fixed,))
    assert f"“{COMMON.words}”" in bound_source(result)
    result = passed(fixed=CLEARED.fixed, others=(rare,))
    assert bound_source(result) == ""


def test_another_pair_is_named() -> None:
    other = replace(CLEARED, pair="d1 = 5, d2 = 6", p_value=1.0, epsilon_lower=0.99)
    result = with_certificates(PASS, CLEARED, other)
    assert bound_source(result).endswith("d1 = 5, d2 = 6")
    assert bound_source(with_certificates(PASS, CLEARED, replace(other, epsilon_lower=0.5))) == ""
