"""Tell a comparison of two mechanisms in the report of an audit: A in place of d1, and B of d2."""

from __future__ import annotations

import re

from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.result import AuditResult
from dpaudit.reports import events, numbers
from dpaudit.reports.layout import Item, Row

ALIKE = "These draws show no difference between A and B."

# Matches d1 and d2, but neither a flag such as --d1 nor a quoted output, also in HTML.
_INPUT = re.compile(r"(?<![-\w'\";])d([12])(?![\w'\"])")
_WORDS = (
    ("only one input", "only A or only B"),
    ("one input alone", "A or B alone"),
    ("both inputs", "A and B"),
)
# Matches the text after a tag of HTML.
_TEXT = re.compile(r">[^<]+")


def named(result: AuditResult, text: str) -> str:
    """Return a text of a report; of a comparison, with A and B in place of d1 and d2."""
    if not result.is_parity:
        return text
    text = _INPUT.sub(lambda found: "AB"[int(found[1]) - 1], text)
    for words, of_parity in _WORDS:
        text = text.replace(words, of_parity)
    return text


def named_html(result: AuditResult, html: str) -> str:
    """Return a part of a page, with A and B in place of d1 and d2 in its texts."""
    return _TEXT.sub(lambda found: named(result, found[0]), html)


def named_items(result: AuditResult, items: list[Item]) -> list[Item]:
    """Return rows and lines of a report, with A and B in place of d1 and d2."""
    return [
        Row(item.label, named(result, item.text)) if isinstance(item, Row) else named(result, item)
        for item in items
    ]


def observation(result: AuditResult, certificate: Certificate) -> str:
    """Return the event in which A and B differ most, and the certified distance."""
    tau, lower = result.point.delta, result.delta_lower
    distance = f"more than {numbers.plain(tau)}"
    if lower > tau:
        distance = f"at least {numbers.at_least(lower, above=tau)}"
    words = f"total variation {distance}"
    event = events.leading_event(certificate)
    if event is None:
        return words
    share_a, share_b = event.count_d1 / event.draws_d1, event.count_d2 / event.draws_d2
    in_both = f"{numbers.share(share_a)} of draws of A and {numbers.share(share_b)} of B"
    return f"{events.appears(event.words)} in {in_both}; {words}"
