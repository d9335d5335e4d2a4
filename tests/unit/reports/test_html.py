"""HTML: whole, self-contained, readable without eyes or colours; no text of a user is markup."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest

from dpaudit.certificates.result import AuditResult
from dpaudit.reports.audit_report import reason
from dpaudit.reports.bounds_report import UNPROVEN
from dpaudit.reports.html import page
from tests.cli.made_results import ERROR, PASS, VIOLATION
from tests.hostile import EVERY_KIND, PLANTED, planted
from tests.result_files import reported
from tests.specs import replace

VOID = {"meta", "link", "input", "br", "img"}


class Page(HTMLParser):
    """A page as a parser sees it: its tags in order, with attributes, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.comments: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(attrs) == len({name for name, _ in attrs})
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1], data))

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def text(self) -> str:
        found = [text for tag, text in self.texts if tag not in ("style", "script")]
        return " ".join(" ".join(found).split())


@pytest.fixture(autouse=True)
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


def written(*results: AuditResult, planned: int = 0) -> str:
    return page.document([page.entry(one) for one in results], planned or len(results))


def read(*results: AuditResult, planned: int = 0) -> Page:
    found = Page(written(*results, planned=planned))
    assert found.open == []
    return found


@pytest.mark.parametrize("result", EVERY_KIND, ids=lambda one: one.name)
def test_an_audit_of_every_kind_says_what_its_report_says(result: AuditResult) -> None:
    found = read(result)
    text = found.text.replace("\xa0", " ")
    assert result.verdict.value in text
    assert result.name in text
    assert " ".join(reason(result).replace("\xa0", " ").split()) in text
    assert result.claim.title in text
    assert not re.search(r"\b(is|are) (now )?private\b", text)


def test_every_text_may_be_markup_and_none_is() -> None:
    """The same audits with harmless texts make the very same tags."""
    hostile = [planted(one) for one in EVERY_KIND]
    tame = [planted(one, "some words") for one in EVERY_KIND]
    found, wanted = read(*hostile), read(*tame)
    assert [(tag, sorted(names)) for tag, names in found.tags] == [
        (tag, sorted(names)) for tag, names in wanted.tags
    ]
    assert found.comments == []
    assert found.text.count("document.title=") >= 9 * 5
    assert "{{ 7 * 7 }} {% raw %}" in found.text
    fixed = {"class", "style", "href", "id", "data-audit", "data-kind", "for", "viewBox", "d"}
    for (tag, names), (_, others) in zip(found.tags, wanted.tags, strict=True):
        for name in fixed & names.keys():
            assert names[name] == others[name], (tag, name)


def test_what_no_browser_shows_is_written_out() -> None:
    text = written(replace(PASS, name="a\x00b\x1b[31m\u202ec\ud800\uffff\x85d"))
    assert r"a\x00b\x1b[31m\u202ec\ud800\uffff\x85d" in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff\uffff]", text)
    assert text == text.encode().decode()
    assert not re.search("[\x00\x1b\u202e\ud800]", written(*map(planted, EVERY_KIND)))


def test_the_page_runs_and_loads_nothing_but_its_own() -> None:
    found = read(*map(planted, EVERY_KIND))
    policy = next(one["content"] for one in found.of("meta") if "http-equiv" in one)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (own,) = [text for name, text in found.texts if name == tag]
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    for _, names in found.tags:
        assert "style" not in names
        assert "src" not in names
        assert not [name for name in names if name.startswith("on")]
        assert re.match("#|data:,", names.get("href", "#"))
    assert {tag for tag, _ in found.tags}.isdisjoint({"iframe", "object", "base", "img", "form"})
    style = next(text for name, text in found.texts if name == "style")
    assert "url(" not in style
    assert "@import" not in style


def test_headings_have_an_order_and_ids_are_single() -> None:
    found = read(*EVERY_KIND)
    levels = [int(tag[1]) for tag, _ in found.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(new <= old + 1 for old, new in pairwise(levels))
    ids = Counter(names["id"] for _, names in found.tags if "id" in names)
    assert max(ids.values()) == 1
    for _, names in found.tags:
        for name in ("aria-labelledby", "for"):
            assert names.get(name, "all") in ids
        assert names.get("href", "#all").removeprefix("#") in {*ids, "data:,"}


def test_it_can_be_read_without_eyes() -> None:
    found = read(*EVERY_KIND)
    assert found.of("html") == [{"lang": "en"}]
    assert {"header", "main", "footer"} <= {tag for tag, _ in found.tags}
    assert len(found.of("table")) == len(found.of("caption"))
    assert all(one.get("scope") in ("col", "row") for one in found.of("th"))
    drawings = [one for one in found.of("svg") if one["class"] == "drawing"]
    assert len(drawings) == len(found.of("figure")) > 20
    for one in drawings:
        assert one["role"] == "img"
        assert len(one["aria-label"]) > 40
    for one in found.of("svg"):
        assert one.get("role") == "img" or one.get("aria-hidden") == "true"


def test_unexpected_results_come_first() -> None:
    found = read(PASS, VIOLATION, replace(PASS, expect="violation", name="missed"))
    assert [one["id"] for one in found.of("article")] == ["audit-2", "audit-3", "audit-1"]
    assert "3 privacy audits: 2 not as expected" in found.text


@pytest.mark.parametrize(
    ("changes", "sign"),
    [({}, "nothing"), ({"expect": "violation"}, "missed"), ({"underpowered": "few"}, "missed")],
)
def test_a_pass_that_is_not_as_expected_has_a_sign_of_its_own(
    changes: dict[str, Any], sign: str
) -> None:
    page = read(replace(PASS, **changes))
    assert [article["data-sign"] for article in page.of("article")] == [sign]
    verdicts = [span["class"] for span in page.of("span") if "verdict" in span.get("class", "")]
    assert verdicts == ["verdict nothing", *[f"verdict {sign}"] * 2]


def test_planted_texts_would_be_noticed() -> None:
    with pytest.raises(AssertionError):
        Page(f"<p>{PLANTED}</p>")


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_only_a_pass_leaves_something_to_be_refuted(form: str) -> None:
    assert UNPROVEN not in reported(form, [VIOLATION, ERROR])
    assert UNPROVEN in reported(form, [VIOLATION, PASS])
