"""A file of audits, its planted bugs, and what the audits say of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpaudit.auditing.spec import AuditSpec
from dpaudit.config.yaml_files import load_config
from dpaudit.mutating.judging import Judgement
from dpaudit.mutating.mutants import Mutant
from dpaudit.mutating.scoring import Mutation, mutated

MECHANISMS = """
import numpy as np

C = 10

def count(rows, size, rng):
    return len(rows) + rng.laplace(scale=1, size=size)

def total(rows, size, rng):
    return sum(min(max(row, 0), C) for row in rows) + rng.laplace(scale=10, size=size)

def leaking(rows, size, rng):
    return len(rows) + rng.laplace(scale=0.25, size=size)

def record(row, size, rng):
    return row["n"] + rng.laplace(scale=1, size=size)

def texts(rows, rng):
    return len(rows) + rng.laplace(scale=1)

class Count:
    def __init__(self, scale):
        self.scale = scale

    def draw(self, rows, size, rng):
        return len(rows) + rng.laplace(0, self.scale, size)

def make(scale):
    def mechanism(rows, size, rng):
        return len(rows) + rng.laplace(0, scale, size)

    return mechanism
"""
AUDITS = """
version: 1
defaults: {d1: [1, 2], d2: [1], claim: {epsilon: 1}, samples: 10_000}
audits:
  - {name: count, mechanism: "m.py:count"}
  - {name: total, mechanism: "m.py:total"}
  - {name: known-bug, mechanism: "m.py:leaking", expect: violation}
  - {name: leaking, mechanism: "m.py:leaking"}
  - {name: built-in, mechanism: "math:fsum"}
  - {name: record, mechanism: "m.py:record", d1: {n: 1}, d2: {n: 0}}
  - {name: texts, mechanism: "m.py:texts", d1: [a, b], d2: [a], samples: 1000}
  - {name: numbers, mechanism: "m.py:texts", d1: [1], d2: [], samples: 1000}
  - {name: class, mechanism: "m.py:Count", init: [1], call: draw}
  - {name: factory, mechanism: "m.py:make", factory: true, init: [1]}
  - {name: isolated, mechanism: "m.py:Count", init: [1], call: draw, isolate: true}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("mutating")
    (folder / "m.py").write_text(MECHANISMS)
    (folder / "audits.yaml").write_text(AUDITS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


def audits(folder: Path, *names: str) -> list[AuditSpec]:
    return [spec for spec in load_config(folder / "audits.yaml") if spec.name in names]


@pytest.fixture(scope="module")
def result(folder: Path) -> Mutation:
    names = ("count", "total", "known-bug", "leaking", "built-in")
    return mutated(audits(folder, *names), ("scale-halved", "no-clipping", "scale-from-data"))


def judged(result: Mutation) -> dict[tuple[str, int], tuple[Mutant, Judgement]]:
    return {(mutant.kind, mutant.line): (mutant, judgement) for mutant, judgement in result.judged}


def test_bugs_that_show_on_the_pairs_are_killed_and_not_written(
    result: Mutation, folder: Path
) -> None:
    assert (folder / "m.py").read_text() == MECHANISMS
    mutant, judgement = judged(result)["scale-halved", 7]
    assert mutant.audits == ("count",)
    assert (judgement.answer, judgement.audit) == ("killed", "count")
    assert judgement.point is not None
    assert judgement.epsilon_lower > judgement.point.epsilon == 1


def test_a_bug_that_shows_on_other_inputs_is_missed_with_a_pair(result: Mutation) -> None:
    _, judgement = judged(result)["no-clipping", 10]
    assert judgement.answer == "missed"
    assert judgement.pair is not None
    d1, d2 = judgement.pair
    assert abs(sum(d1) - sum(d2)) > 10  # the clipped sums differ by at most 10
    assert judgement.epsilon_lower > 1


def test_a_bug_that_costs_more_than_the_claim_only_elsewhere_is_missed(result: Mutation) -> None:
    _, judgement = judged(result)["scale-halved", 10]  # 2 of 10 · ½: on this pair, ε = 0.4
    assert (judgement.answer, judgement.pair is not None) == ("missed", True)


def test_audits_that_do_not_pass_without_a_bug_are_left_out(result: Mutation) -> None:
    assert result.audits == ("count", "total")
    assert [name for name, _ in result.left_out] == ["known-bug", "leaking", "built-in"]
    assert result.failed == ("leaking", "built-in")
    assert not [mutant for mutant, _ in result.judged if mutant.line == 13]


def test_the_score_is_the_share_of_killed_among_killed_and_missed(result: Mutation) -> None:
    counts = Counter(judgement.answer for _, judgement in result.judged)
    assert result.score == counts["killed"] / (counts["killed"] + counts["missed"])


def test_classes_factories_and_isolated_mechanisms_have_bugs(folder: Path) -> None:
    result = mutated(audits(folder, "class", "factory", "isolated"), ("scale-halved",))
    by_audits = {mutant.audits: judgement.answer for mutant, judgement in result.judged}
    assert by_audits == dict.fromkeys([("class", "isolated"), ("factory",)], "killed")
    answers = {
        mutant.kind: (judgement.answer, judgement.audit)
        for mutant, judgement in mutated(
            audits(folder, "isolated"), ("scale-halved", "fixed-seed")
        ).judged
    }
    assert answers == dict.fromkeys(("scale-halved", "fixed-seed"), ("killed", "isolated"))


@pytest.mark.parametrize("names", [("record",), ("texts",), ("numbers", "texts")])
def test_a_bug_with_which_an_audit_fails_is_invalid_and_does_not_count(
    folder: Path, names: tuple[str, ...]
) -> None:
    result = mutated(audits(folder, *names), ("scale-from-data",))
    assert [judgement.answer for _, judgement in result.judged] == ["invalid"]
    assert result.score is None


def test_a_scale_from_the_data_is_the_constant_for_empty_data(folder: Path) -> None:
    result = mutated(audits(folder, "numbers"), ("scale-from-data",))
    ((_, judgement),) = result.judged
    assert (judgement.answer, judgement.pair is not None) == ("missed", True)


def test_what_is_left_when_time_is_over_is_not_run(folder: Path) -> None:
    result = mutated(audits(folder, "count"), seconds=0.0)
    assert (result.judged, result.score) == ((), None)
    assert result.left_out[0][0] == "count"
    assert not result.is_complete
