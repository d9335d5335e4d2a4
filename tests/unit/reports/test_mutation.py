"""Planted bugs and judgements in each format."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from dpaudit.claims import ProfilePoint
from dpaudit.mutating.judging import Judgement
from dpaudit.mutating.mutants import Mutant
from dpaudit.mutating.scoring import Mutation
from dpaudit.reports.mutation_report import FORMATS, as_html, as_json, as_junit, as_text, summary

POINT = ProfilePoint(1.0, 0.0)


def mutant(line: int, **changed: Any) -> Mutant:
    fields = {"kind": "no-noise", "file": "/m.py", "line": line, "audits": ("<a>",), "source": ""}
    return Mutant(**{**fields, "old": ("    x + <noise>",), "new": ("    x",), **changed})


RESULT = Mutation(
    (
        (mutant(1), Judgement("killed", "<a>", "", POINT, 1.23456)),
        (mutant(2), Judgement("missed", "<a>", "a line costs 2", POINT, draws=52_000)),
        (mutant(3), Judgement("missed", "<a>", "", POINT, 2.5, pair=([], [float("nan")]))),
        (mutant(4, old=("y" * 200,)), Judgement("not shown to be a leak")),
        (mutant(7), Judgement("killed", "c", "", ProfilePoint(1.0, 0.25), 1.5)),
        (mutant(5), Judgement("invalid", why="\x1b[31mit raised")),
        (mutant(6), Judgement("not run", why="the time was over")),
    ),
    audits=("<a>",),
    left_out=(("b", "it expects a violation"), ("d", "without a bug: it raised")),
    failed=("d",),
    seconds=61.0,
)


def test_the_score_counts_killed_and_missed_and_is_rounded_down() -> None:
    assert RESULT.score == 1 / 2
    assert summary(RESULT).startswith("score 50 %: 7 planted bugs")
    for killed, missed, percent in ((199, 1, 99), (29, 21, 58)):
        judged = [Judgement("killed")] * killed + [Judgement("missed")] * missed
        result = Mutation(tuple((mutant(1), judgement) for judgement in judged))
        assert summary(result).startswith(f"score {percent} %")
    assert summary(Mutation(())) == "no score: 0 planted bugs"


def test_the_text_has_bounds_draws_and_pairs() -> None:
    text = as_text(RESULT)
    for words in ("ε ≥ 1.23,", "52,000 draws", "δ = 0.25", "d2: [.nan]", "it expects a violation"):
        assert words in text
    assert "\x1b" not in text


def test_json_has_every_mutant() -> None:
    document = json.loads(as_json(RESULT))
    assert document["counts"]["missed"] == 2
    assert document["failed"] == ["d"]
    assert [entry["line"] for entry in document["mutants"]] == [1, 2, 3, 4, 7, 5, 6]
    assert document["mutants"][1]["draws"] == 52_000
    assert document["mutants"][2]["pair"] == ["[]", '[float("nan")]']
    assert document["mutants"][2]["epsilon_lower"] == 2.5


def test_html_has_no_markup_of_others() -> None:
    page = as_html(RESULT)
    assert not {"<noise>", "<a>"} & set(re.findall("<.*?>", page))
    assert page.count("/m.py:") == 7


def test_a_missed_bug_is_a_failure_of_junit() -> None:
    root = ElementTree.fromstring(as_junit(RESULT).partition("\n")[2])
    assert root.attrib["tests"] == "8"
    assert root.attrib["failures"] == "2"
    assert root.attrib["errors"] == "2"  # a mutant that was not run, and an audit that fails
    assert len(list(root.iter("skipped"))) == 2
    names = [case.attrib["name"] for case in root.iter("testcase")]
    assert len(set(names)) == 8


@pytest.mark.parametrize("form", FORMATS)
def test_a_result_without_mutants_has_every_report(form: str) -> None:
    assert FORMATS[form](Mutation(()))
