"""`dpaudit compare`: what has changed between two files of results, and what of it is worse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit as dp
from dpaudit.certificates.certificate import EpsilonInterval
from dpaudit.certificates.evidence import Block
from dpaudit.certificates.result import AuditResult, Family, Sampled
from dpaudit.claims import PureDP
from dpaudit.draws import Tally
from dpaudit.reports.comparison import Comparison, compare
from dpaudit.reports.json import document, entry
from dpaudit.reports.numbers import unglued
from mechanisms import pdp, randomized_response
from tests.cli.made_results import CLEARED, ERROR, PASS, VIOLATION
from tests.specs import replace

FEWER = replace(
    CLEARED,
    budget=100_000,
    blocks=(
        *CLEARED.evidence.blocks[:2],
        Block("certification", 0, Tally(np.array([[8_600, 44_700], [40_935, 5_500]]))),
    ),
)


def named(result: AuditResult, name: str = "a", **more: Any) -> AuditResult:
    return replace(result, name=name, **more)


def differences(was: AuditResult, found: AuditResult) -> list[tuple[str, bool]]:
    found_ = compare([named(was)], [named(found)])
    return [(unglued(one.what), one.is_regression) for one in found_.changes]


EXPECTED = replace(VIOLATION, claim=PASS.claim, target=PASS.target, expect="violation")
FOUND = replace(VIOLATION, claim=PASS.claim, target=PASS.target)
FAILED = replace(ERROR, claim=PASS.claim, target=PASS.target)
LONGED_FOR = replace(PASS, expect="violation")
UNDER = replace(PASS, underpowered="too few draws")
KINDS = {
    "passed": PASS,
    "violated": FOUND,
    "as expected": EXPECTED,
    "failed": FAILED,
    "missed": LONGED_FOR,
    "too few": UNDER,
}
# Of each kind: the kinds that are a regression after it, and those that are another change.
AFTER = {
    "passed": ({"violated", "failed", "too few"}, {"as expected"}),
    "violated": ({"failed", "missed", "too few"}, {"passed", "too few"}),
    "as expected": ({"violated", "failed", "missed", "too few"}, {"passed", "too few"}),
    "failed": ({"violated"}, {"passed", "as expected", "missed", "too few"}),
    "missed": ({"violated", "failed", "too few"}, {"as expected"}),
    "too few": ({"violated", "failed"}, {"as expected"}),
    "": ({"violated", "failed", "missed", "too few"}, {"passed", "as expected"}),
}


def every_change() -> Comparison:
    """Compare an audit of each kind with each; "" is the run without it."""
    pairs = {f"{was or 'new'}, then {now}": (was, now) for was in AFTER for now in KINDS}
    before = [named(KINDS[was], name) for name, (was, _) in pairs.items() if was]
    return compare(before, [named(KINDS[now], name) for name, (_, now) in pairs.items()])


def test_verdicts() -> None:
    found: dict[str, tuple[set[str], set[str]]] = {name: (set(), set()) for name in AFTER}
    for change in every_change().changes:
        was, _, now = change.name.partition(", then ")
        found["" if was == "new" else was][not change.is_regression].add(now)
    assert found == AFTER


def test_fewer_draws_are_lost_power_unless_the_clock_says_how_many() -> None:
    fewer = replace(PASS, ending=Sampled((FEWER,)))
    said = "lost power: 100,000 draws, before 1,000,000"
    assert differences(PASS, fewer) == [(said, True)]
    assert differences(fewer, PASS) == []
    assert differences(FOUND, replace(FOUND, ending=replace(FOUND.ending))) == []
    by_clock = replace(FEWER, by_clock=True)
    assert differences(PASS, replace(PASS, ending=Sampled((by_clock,)))) == []
    two = replace(PASS, ending=Sampled((CLEARED, CLEARED)))
    assert (said.replace("100,000", "1,000,000").replace("before 1,", "before 2,"), True) in (
        differences(two, PASS)
    )


def test_what_was_asked_otherwise_is_said() -> None:
    other = replace(PASS, claim=PureDP(2.0), target="mine.py:f")
    assert differences(PASS, other) == [
        ("another claim: 2-DP, before 1-DP", False),
        ("another mechanism: mine.py:f, before mechanisms.laplace:laplace", False),
    ]
    pair = replace(CLEARED, pair="d1 = 0, d2 = 2")
    assert differences(PASS, replace(PASS, ending=Sampled((pair,)))) == [
        ("other inputs: d1 = 0, d2 = 2, before d1 = 0, d2 = 1", False)
    ]


def asked(**settings: Any) -> AuditResult:
    return replace(PASS, request={"folder": None, "settings": {"d1": 0, "d2": 1, **settings}})


def test_no_change_of_what_was_asked_is_silent() -> None:
    """Whatever decides how much an audit can find is named, and none of it is noise."""
    surer = replace(PASS, confidence=0.9999)
    assert differences(PASS, surer) == [("another confidence: 99.99 %, before 99 %", False)]
    shared = replace(PASS, confidence=0.995, family=Family("a.yaml", 2, 0.99, 0.005))
    assert differences(PASS, shared) == [("another error probability: that of 2 audits", False)]
    assert differences(shared, PASS) == [("another error probability: its own", False)]
    timing, rows = asked(timing=True), asked(d1=[*range(500)])
    assert differences(timing, asked()) == [("other settings: timing", False)]
    # Reports cut long inputs short.
    assert differences(rows, asked(d1=[*range(499), 7])) == [("other settings: d1", False)]
    assert differences(asked(), asked(time="10s", bound="clopper-pearson")) == [
        ("other settings: time, bound", False)
    ]
    # What is given as it is anyway, or said in other words, is no other setting.
    assert differences(asked(), asked(bound="game", on_error="auto")) == []
    assert differences(asked(samples=10_000), asked(confidence=0.9)) == []
    other = replace(asked(params={"x": 1}), target="mine.py:f", claim=PureDP(3.0))
    assert len(differences(asked(params={"x": 2}), other)) == 2
    exact = dp.audit(pdp.counterexample, 0, 1, PASS.claim, exact=True, name="a")
    said = dict(differences(PASS, replace(exact, target=PASS.target)))
    assert said["judged by a stated law, before by draws"] is False
    assert not any(what.startswith("another confidence") for what in said)


def bounded(lower: float, upper: float | None) -> AuditResult:
    interval = None if upper is None else EpsilonInterval(lower, upper)
    one = replace(CLEARED, epsilon_lower=lower, interval=interval)
    return replace(PASS, ending=Sampled((one,)))


@pytest.mark.parametrize(
    ("was", "found", "said"),
    [
        ((0.5, 0.6), (0.61, 0.7), "leaks more: ε ≥ 0.61, before ε ≤ 0.6"),
        ((0.5, 0.6), (0.61, None), "leaks more: ε ≥ 0.61, before ε ≤ 0.6"),
        ((0.5, None), (0.3, 0.4), "leaks less: ε ≤ 0.4, before ε ≥ 0.5"),
        ((0.5, 0.6), (0.59, 0.7), None),
        ((0.5, 0.6), (0.6, None), None),
        ((0.01, None), (0.99, None), None),  # the first run may have had worse luck
        ((0.5, float("inf")), (0.9, float("inf")), None),
    ],
)
def test_a_bound_moved_where_intervals_have_nothing_in_common(
    was: tuple[float, float | None], found: tuple[float, float | None], said: str | None
) -> None:
    expected = [] if said is None else [(said, False)]
    assert differences(bounded(*was), bounded(*found)) == expected


def response(p: float, seed: int, **more: Any) -> AuditResult:
    return dp.audit(
        randomized_response.randomized_response,
        0,
        1,
        PureDP(3.0),
        range=[0, 1],
        samples=4_000,
        seed=seed,
        params={"p": p},
        name="a",
        **more,
    )


def test_noise_is_no_change_and_a_real_one_is() -> None:
    was = response(0.5, 0)
    assert [compare([was], [response(0.5, seed)]).changes for seed in range(1, 9)] == [()] * 8
    (change,) = [
        one
        for one in compare([was], [response(0.75, 9)]).changes
        if not one.what.startswith("another mechanism")
    ]
    assert change.what.startswith("leaks more: ε ≥ ")
    assert not change.is_regression


def test_other_draws_from_the_same_seed_are_other_code() -> None:
    was = replace(response(0.5, 0), request={"folder": None, "settings": {}})
    (one,) = was.certificates
    *first, last = one.evidence.blocks
    counts = last.tally.counts.copy()
    counts[-1, 0] += 1
    counts[0, 0] -= 1
    other = replace(one, blocks=(*first, replace(last, tally=Tally(counts))))
    changed = replace(was, ending=Sampled((other,)))
    ((said, is_regression),) = differences(was, changed)
    assert (said.partition(": ")[0], is_regression) == ("other draws from the same seed", False)
    assert differences(was, replace(changed, seed=1)) == []
    assert differences(was, replace(changed, versions={"numpy": "9"})) == []
    assert differences(replace(was, request=None), replace(changed, request=None)) == []


def written(path: Path, results: Sequence[AuditResult], planned: int = 0) -> Path:
    path.write_text(document([entry(one) for one in results], planned), "utf-8")
    return path


def test_the_table_is_added_to_the_summary_of_the_step(
    dpaudit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = written(tmp_path / "old.json", [named(PASS)])
    new = written(tmp_path / "new.json", [named(FOUND)])
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    result = dpaudit("compare", old, new)
    assert "**REGRESSION** | a | new violation" in result.stdout
    assert (tmp_path / "summary.md").read_text("utf-8") == result.stdout


def test_exit_codes_and_the_text(dpaudit: Any, tmp_path: Path) -> None:
    old = written(tmp_path / "old.json", [named(PASS, "a"), named(PASS, "b"), named(PASS, "c")])
    new = written(tmp_path / "new.json", [named(FOUND, "b"), named(PASS, "c"), named(PASS, "d")])
    ran = dpaudit("compare", old, new)
    assert ran.exit_code == 1
    passed, violated = (
        "NO VIOLATION FOUND, ε ≥ 0.983, claimed 0.5",
        "VIOLATION, ε ≥ 1.21, claimed 0.5",
    )
    assert ran.stdout.splitlines() == [
        "### dpaudit compare: 4 audits: 2 regressions, 1 with other changes, 1 without a change.",
        "",
        "|  | audit | what | before | now |",
        "| --- | --- | --- | --- | --- |",
        f"| **REGRESSION** | a | vanished | {passed} |  |",
        f"| **REGRESSION** | b | new violation | {passed} | {violated} |",
        f"| change | d | new audit |  | {passed} |",
    ]
    back = dpaudit("compare", new, old)
    assert back.exit_code == 1  # d vanished
    same = written(tmp_path / "same.json", [named(PASS, "a"), named(PASS, "b"), named(PASS, "c")])
    equal = dpaudit("compare", old, same)
    assert equal.exit_code == 0
    assert "3 audits: 3 without a change.\n\n* both files " in equal.stdout


def test_a_second_run_that_did_not_end_is_no_pass(dpaudit: Any, tmp_path: Path) -> None:
    """The audits that are missing may be new, or have been missing before."""
    old = written(tmp_path / "old.json", [named(PASS, "a")], planned=2)
    new = written(tmp_path / "new.json", [named(PASS, "a", seconds=9.0)], planned=2)
    ran = dpaudit("compare", old, new)
    assert ran.exit_code == 2
    assert "1 audit: 1 without a change." in ran.stdout
    assert f"{new}: 1 of 2 audits: " in ran.stdout.replace("\\_", "_")
    whole = written(tmp_path / "whole.json", [named(PASS, "a"), named(PASS, "b")])
    assert dpaudit("compare", old, whole).exit_code == 0


def test_no_files_and_one_file_twice(dpaudit: Any, refused: Any, tmp_path: Path) -> None:
    good = written(tmp_path / "good.json", [PASS])
    code, line = refused("compare", good, tmp_path / "god.json")
    assert code == "file-not-found"
    assert "Did you mean" in line
    assert dpaudit("compare", good).exit_code == 2
    (tmp_path / "link.json").symlink_to(good)
    for twin in (good, tmp_path / "link.json"):
        assert refused("compare", good, twin)[0] == "file-twice"
    alike = written(tmp_path / "alike.json", [PASS, PASS])
    assert refused("compare", good, alike)[0] == "name-not-unique"
    audits = tmp_path / "audits.yaml"
    audits.write_text("version: 1")
    assert refused("compare", good, audits)[0] == "wrong-kind-of-file"
