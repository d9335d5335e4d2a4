"""`dpaudit report --badge`: what may be cited of a file of results."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

import dpaudit as dp
from dpaudit.certificates.result import AuditResult, Sampled
from dpaudit.reports.badge import badge, markdown, short, statement, svg
from mechanisms import pdp
from tests.cli.made_results import CLEARED, ERROR, PASS, VIOLATION
from tests.result_files import to_json
from tests.specs import replace

NASTY = 'a"b</text>]]>&\x00\x1b[31m\ud800\ufffe\n![x](y)'
BLIND = replace(CLEARED, fixed=replace(CLEARED.fixed, detectable_epsilon=float("inf")))
GUESSED = dp.bound_guesses(1_000, 500, 250, dp.PureDP(1.0))
EXACT = dp.audit(pdp.counterexample, 0, 1, dp.ApproximateDP(1.0, 0.1), exact=True)


@pytest.mark.parametrize(
    ("results", "words", "colour"),
    [
        ([PASS], "not refuted, 10⁶ draws, would have shown ε ≥ 1.02", "blue"),
        ([replace(PASS, underpowered="few")], "not refuted, 10⁶ draws, under-powered", "yellow"),
        (
            [replace(PASS, ending=Sampled((BLIND,)))],
            "not refuted, 10⁶ draws, under-powered",
            "yellow",
        ),
        ([VIOLATION], "refuted, ε ≥ 1.21, claimed 0.5", "red"),
        ([replace(VIOLATION, expect="violation")], "refuted, ε ≥ 1.21, claimed 0.5", "red"),
        ([ERROR], "error, no verdict", "lightgrey"),
        ([EXACT], "not refuted, computed, ε = 1, claimed 1", "blue"),
        ([PASS, PASS], "2 claims, none refuted", "blue"),
        ([PASS, VIOLATION, ERROR], "3 claims, 1 refuted, 1 error", "red"),
        ([PASS, ERROR], "2 claims, none refuted, 1 error", "lightgrey"),
        (
            [PASS, replace(PASS, underpowered="few")],
            "2 claims, none refuted, 1 under-powered",
            "yellow",
        ),
    ],
)
def test_a_badge_is_blue_at_best(results: list[AuditResult], words: str, colour: str) -> None:
    assert badge(results) == (words, colour)


@pytest.mark.parametrize("result", [PASS, VIOLATION, ERROR, EXACT, GUESSED])
def test_nothing_is_called_private(result: AuditResult) -> None:
    said = statement(result, "0" * 64, "2026-01-02")
    shown = badge([result])
    for text in (said, shown.words, markdown(shown), svg(shown, said)):
        assert "private" not in text.lower()
        assert not re.search(r"\b(safe|proved|proven|secure)\b", text.lower())
    assert "\n" not in said
    assert result.claim.describe() in said
    assert said.endswith("; numbers rechecked on 2026-01-02; result file sha256:" + "0" * 64)


def test_a_statement_has_what_others_need() -> None:
    assert statement(PASS, "ab", "2026-01-02") == (
        "dpaudit 0.1.0: 1-DP of laplace (mechanisms.laplace:laplace): not refuted at 99 %; a leak "
        "of ε ≥ 1.02 visible to its event would have been caught about 9 times in 10; d1 = 0, "
        "d2 = 1; 1,000,000 draws, seed 0; numbers rechecked on 2026-01-02; result file sha256:ab"
    )
    assert "500 guesses about 1,000 canaries" in statement(GUESSED, "ab", "2026-01-02")
    assert "not refuted, exactly, ε = 1, claimed 1" in statement(EXACT, "ab", "2026-01-02")


def test_numbers_are_rounded_down() -> None:
    shown = [short(one) for one in (0, 99_999, 100_000, 3_990_000, 4_000_000, 10**15)]
    assert shown == ["0", "99,999", "10⁵", "3.9·10⁶", "4·10⁶", "10¹⁵"]


def test_whatever_a_name_is_the_image_is_one() -> None:
    nasty = replace(PASS, name=NASTY)
    image = svg(badge([nasty]), statement(nasty, "ab", "2026-01-02"))
    root = ElementTree.fromstring(image.encode())
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["dpaudit", badge([nasty]).words]
    assert len(list(root)) == 4
    assert "\n" not in markdown(badge([nasty]))


def test_shields_reads_what_was_meant() -> None:
    linked = re.fullmatch(r"!\[.*\]\((\S+)\)", markdown(badge([VIOLATION])))
    assert linked
    path = linked[1].removeprefix("https://img.shields.io/badge/")
    assert path.isascii()
    label, words, colour = path.split("-")
    assert (label, colour) == ("dpaudit", "red")
    assert unquote(words).replace("_", " ") == "refuted, ε ≥ 1.21, claimed 0.5"


def response(**more: Any) -> AuditResult:
    return dp.audit(lambda x, size, rng: x + rng.laplace(size=size), 0, 1, dp.PureDP(1.0), **more)


@pytest.fixture(scope="module")
def real() -> AuditResult:
    return response(samples=2_000, name="laplace")


def written(path: Path, results: Sequence[AuditResult]) -> Path:
    path.write_text(to_json(results), "utf-8")
    return path


def test_the_command(
    dpaudit: Any, tmp_path: Path, real: AuditResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path / "r.json", [real])
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    ran = dpaudit("report", file, "--badge")
    assert ran.exit_code == 0
    said, nothing, linked = ran.stdout.splitlines()
    assert said == statement(real, digest, "1970-01-02")
    assert (nothing, linked) == ("", markdown(badge([real])))
    image = tmp_path / "b c.svg"
    ran = dpaudit("report", file, "--badge", image)
    assert image.read_text("utf-8") == svg(badge([real]), said)
    assert ran.stdout.splitlines()[-1].endswith("b%20c.svg)")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    assert dpaudit("report", file, "--badge").exit_code == 0


def test_there_is_no_badge_of_numbers_that_are_wrong(
    dpaudit: Any, tmp_path: Path, real: AuditResult
) -> None:
    (one,) = real.certificates
    better = replace(real, ending=Sampled((replace(one, wealth=one.wealth * 2),)))
    image = tmp_path / "b.svg"
    ran = dpaudit("report", written(tmp_path / "r.json", [better]), "--badge", image)
    assert (ran.exit_code, ran.stdout) == (3, "")
    assert "wealth: recorded" in ran.stderr
    assert not image.exists()
    file = written(tmp_path / "r.json", [real])
    file.write_text(file.read_text("utf-8").replace('"count": 1', '"count": 1,\n  "planned": 2'))
    assert dpaudit("report", file, "--badge").exit_code == 3


def test_what_cannot_be_is_refused(dpaudit: Any, tmp_path: Path, real: AuditResult) -> None:
    requests = {
        ("--badge", "b.png"): "option-invalid",
        ("--badge", "no/folder/b.svg"): "cannot-write",
        ("--badge", "-q"): "options-conflict",
        ("--badge", "-v"): "options-conflict",
        ("--report", "markdown", "--badge"): "options-conflict",
    }
    file = written(tmp_path / "r.json", [real])
    for words, code in requests.items():
        ran = dpaudit("report", file, *words)
        assert (ran.exit_code, ran.code) == (2, code)
    assert dpaudit("report", "-", "--badge").exit_code == 2
