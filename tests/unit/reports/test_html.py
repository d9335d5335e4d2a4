"""HTML: whole, self-contained, readable without eyes or colours; no text of a user is markup."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest

from dpaudit.certificates.result import AuditResult
from dpaudit.errors import UsageError
from dpaudit.reports.bounds import UNPROVEN
from dpaudit.reports.html import page
from dpaudit.reports.registry import parse_report
from dpaudit.reports.report import reason
from dpaudit.version import __version__
from tests.cli.made_results import ERROR, PASS, VIOLATION
from tests.hostile import EVERY_KIND, EXACT, FULL, HALF, ONE_RUN, PLANTED, RECORDED, planted
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


def test_of_an_audit_stands_there_what_has_to() -> None:
    text = read(FULL).text
    for said in (
        "dpaudit run mine.py:laplace",
        "mine.py:12",
        "to confirm ",
        "trees too few draws",
        "warned",
        "about the pair",
        "P(E1) d1 412 of 498 82.7",
        "the first: it said (mine.py:3)",
        "d1 = 1, d2 = 2",
    ):
        assert said in text.replace("\xa0", " ")


def test_the_likely_cause_stands_once_above_what_it_means() -> None:
    text = read(FULL).text
    words = "a change of 1: ε = 2"
    assert text.count(words) == 1
    assert text.count("a scale of 1 would do") == 1
    assert text.index("Likely cause") < text.index(words) < text.index("What it means")
    assert text.count("Likely cause") == 1
    assert "Another cause mine.py:2: output is 0 for d1 and 1 for d2" in text


def test_each_p_value_says_what_it_is_of() -> None:
    text = read(VIOLATION).text.replace("\xa0", " ")
    assert text.count("the whole audit") == 1
    assert "this test alone: ε ≥ 1.21, p = 3.2e-120" in text
    assert "whole audit" not in read(EXACT).text


@pytest.mark.parametrize(
    ("result", "names"),
    [
        (VIOLATION, ["region", "profile", "outputs", "wealth"]),
        (RECORDED, ["region", "profile", "outputs"]),
        (EXACT, ["region", "profile", "outputs"]),
        (ONE_RUN, ["profile"]),
        (HALF, ["region", "profile", "outputs", "wealth"]),
        (ERROR, []),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_figures_that_are_not_there_are_said_to_be_missing(
    result: AuditResult, names: list[str]
) -> None:
    found = read(result)
    captions = [one["id"] for one in found.of("figcaption")]
    assert captions == [f"{name}-1" for name in names]
    missing = ("no wealth ", "no pair of ")
    assert any(said in found.text for said in missing) is (len(names) < 4)


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


def test_a_run_that_did_not_end_says_so() -> None:
    assert "1 of 3 audits: " in read(PASS, planned=3).text
    assert "0 of 3 audits: " in read(planned=3).text
    for found, said in (
        (read(PASS, planned=3), "1 of 3 privacy audits, "),
        (read(VIOLATION, planned=3), ": 1 not as"),
        (read(PASS), "1 privacy audit, as expected"),
    ):
        titles = [text for tag, text in found.texts if tag in ("title", "h1")]
        assert len(titles) == 2
        assert all(said in text for text in titles)


def test_a_page_says_when_and_by_what_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    found = read(PASS)
    assert f"Written on 14 November 2023, 22:13 UTC by dpaudit {__version__}." in found.text
    assert found.of("time") == [{"datetime": "2023-11-14T22:13:20+00:00"}]
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    before = datetime.now(UTC)
    assert before <= page.clock() <= datetime.now(UTC)


def test_every_audit_has_its_seed() -> None:
    rows = read(PASS, replace(PASS, seed=77), EXACT).of("tr")
    seeds = {one["data-audit"]: one["data-seed"] for one in rows if "data-seed" in one}
    assert seeds == {"audit-1": "0", "audit-2": "77", "audit-3": ""}


def test_at_most_three_start_open_and_only_such_as_have_to_be_looked_at() -> None:
    found = read(PASS, *[VIOLATION] * 5)
    articles = [place for place, (tag, _) in enumerate(found.tags) if tag == "article"]
    opened = ["open" in found.tags[place + 1][1] for place in articles]
    assert opened == [True] * 3 + [False] * 3
    assert sum("open" in one for one in read(PASS, VIOLATION).of("details")) == 1


def test_a_pass_that_is_not_as_expected_has_a_sign_of_its_own() -> None:
    missed = replace(PASS, expect="violation")
    weak = replace(PASS, underpowered="too few draws")
    for result, sign in ((PASS, "nothing"), (missed, "missed"), (weak, "missed")):
        found = read(result)
        (article,) = found.of("article")
        assert article["data-sign"] == sign
        row = next(one for one in found.of("tr") if "data-kind" in one)
        assert row["data-kind"] == "nothing"  # which it is found by
        verdicts = [one["class"] for one in found.of("span") if "verdict" in one.get("class", "")]
        assert verdicts == ["verdict nothing", *[f"verdict {sign}"] * 2]


def test_what_an_attacker_learns_is_said_with_its_confidence() -> None:
    said = "(shown with 99 % confidence)"
    assert said in read(VIOLATION).text.replace("\xa0", " ")
    assert said in read(ONE_RUN).text.replace("\xa0", " ")


def test_how_many_audits_have_figures_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MAX_WITH_FIGURES", 2)
    found = read(PASS, VIOLATION, PASS, ERROR)
    assert re.search(r"Figures are drawn for 2 audits.*; 2 audits have none", found.text)
    assert {one["id"].split("-")[1] for one in found.of("figcaption")} == {"2"}
    assert found.text.count("The figures of this audit are left out") == 2


def test_what_was_made_of_an_audit_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report is written again after every audit of a run."""
    calls = []

    def counted(result: AuditResult) -> list[Any]:
        calls.append(result)
        return []

    monkeypatch.setattr(page, "pictures", counted)
    parts = []
    for _ in range(5):
        parts.append(page.entry(VIOLATION))
        page.document(parts, 5)
    assert len(calls) == 5


def test_the_same_results_make_the_same_page() -> None:
    assert written(*EVERY_KIND) == written(*EVERY_KIND)


def test_what_is_missing_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(module: str) -> object | None:
        return None if module == "jinja2" else object()

    monkeypatch.setattr(page, "find_spec", found)
    with pytest.raises(UsageError, match=r"needs Jinja2, .*: pip install jinja2 matplotlib"):
        parse_report("html:out.html")[0].check()
    parse_report("text:out.txt")[0].check()


# What is written in each colour, and on what.
TEXTS = [("ink", "paper"), ("ink", "panel"), ("quiet", "paper"), ("quiet", "panel")]
TEXTS += [("link", "paper")]
LINES = [
    (name, ground)
    for name in ("claim", "d1", "d2", "bound", "even", "violation", "nothing", "error", "missed")
    for ground in ("paper", "panel")
]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("pairs", "least"), [(TEXTS, 4.5), (LINES, 3.0)], ids=["texts", "lines"])
def test_colours_can_be_told_from_what_is_behind_them(
    theme: int, pairs: list[tuple[str, str]], least: float
) -> None:
    style = next(text for tag, text in read().texts if tag == "style")
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    colours = dict(re.findall(r"--(\w+): (#\w{6});", blocks[theme]))
    for name, ground in pairs:
        assert contrast(colours[name], colours[ground]) >= least, (name, ground)


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, contrast ratio."""
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_ratio_of_black_and_white() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


def test_planted_texts_would_be_noticed() -> None:
    with pytest.raises(AssertionError):
        Page(f"<p>{PLANTED}</p>")


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_only_a_pass_leaves_something_to_be_refuted(form: str) -> None:
    assert UNPROVEN not in reported(form, [VIOLATION, ERROR])
    assert UNPROVEN in reported(form, [VIOLATION, PASS])
