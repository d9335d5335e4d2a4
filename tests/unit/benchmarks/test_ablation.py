"""An ablation reuses results of one removal for another only where they are the same."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.ablation import Measuring
from benchmarks.ablation_cases import Case
from benchmarks.removals import CASES, SCORERS, SMOOTHERS, removals, watched
from benchmarks.specimens import specimens

ISOTONIC, CUT_OFFS, SUMS = (
    "smoother isotonic, of thresholds",
    "case cut-offs of piecewise fits",
    "scorer additive",
)
NOTHING: frozenset[str] = frozenset()


def laplace() -> Case:
    """Return a case that both parts change, and that has no columns to add up."""
    return Case(next(one for one in specimens() if one.name == "Laplace, ε = 1"), 20_000)


def efficiencies(measuring: Measuring, case: Case) -> list[float]:
    every = [NOTHING, *(frozenset({name}) for name in (ISOTONIC, CUT_OFFS, SUMS))]
    with watched():
        return [measuring.efficiency(case, 0, without) for without in every]


def test_each_removal_changes_a_part_that_exists() -> None:
    assert {*SCORERS, *SMOOTHERS, *CASES} <= set(removals())


def test_efficiencies_with_reuse_equal_those_without(tmp_path: Path) -> None:
    file = tmp_path / "kept"
    base, isotonic, cut_offs, sums = efficiencies(Measuring(file), laplace())
    assert {ISOTONIC, CUT_OFFS, SUMS} <= set(removals())
    assert isotonic < base
    assert cut_offs == laplace().efficiency(0, frozenset({CUT_OFFS}))[0] != base
    # Outputs of one column have no sums, so the third removal is not measured.
    assert sums == base
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [without for _, _, _, without, _ in lines] == [[], [ISOTONIC], [CUT_OFFS]]


def test_an_incomplete_record_of_used_parts_hides_a_loss(tmp_path: Path) -> None:
    """The planted twin: with an empty record, every removal looks as if it cost nothing."""
    case, file = laplace(), tmp_path / "kept"
    file.write_text(json.dumps([case.name, 0, 0.9, [], []]) + "\n")
    assert efficiencies(Measuring(file), case) == [0.9] * 4
