"""Batches with one error probability: audited, continued, rechecked and repeated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.result_files import from_json

ROOT = Path(__file__).parents[3]
# ε = 1 holds tightly for the first two; the others claim too little, by less and less.
BATCH = """version: 1
familywise: true
defaults: {mechanism: "mechanisms.laplace:laplace", d1: 0, d2: 1, samples: 20_000}
audits:
  - {name: tight, claim: {epsilon: 1}}
  - {name: exact, mechanism: "mechanisms.pdp:counterexample", exact: true, claim: {epsilon: 9}}
  - {name: wrong, claim: {epsilon: 0.5}}
  - {name: late, claim: {epsilon: 0.94}, seed: 21}
  - name: two-pairs
    claim: {epsilon: 1}
    pairs: [{d1: 0, d2: 1}, {d1: 1, d2: 0}]
"""


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(ROOT)
    path = tmp_path / "batch.yaml"
    path.write_text(BATCH, encoding="utf-8")
    return path


def test_a_real_batch_is_kept_rechecked_repeated_and_forged(
    dpaudit: Any, batch: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "results.json"
    ran = dpaudit("run", batch, "--json", saved)
    results = {one.name: one for one in from_json(saved.read_text("utf-8"))}
    assert ran.exit_code == 1
    assert results["exact"].family is None
    assert {one.confidence for name, one in results.items() if name != "exact"} == {0.9975}
    late = results["late"]
    assert 0.0025 < late.p_value <= 0.01 / 3
    assert not late.is_refuted_alone
    assert late.verdict.value == "VIOLATION"
    assert late.epsilon_lower < 0.94
    assert "ε > 0.94" in ran.stdout
    # The bound of what its share refutes is above the claim.
    assert results["wrong"].epsilon_lower > 0.5
    report = dpaudit("report", saved, "--rerun")
    assert report.exit_code == 0, report.output
    document = json.loads(saved.read_text("utf-8"))
    alone = dpaudit("run", batch, "-k", "=late", "--json", tmp_path / "alone.json")
    assert alone.exit_code == 0  # refuted only beside another violation
    (same,) = from_json((tmp_path / "alone.json").read_text("utf-8"))
    assert same.ending == late.ending
    assert document["audits"][3]["family"]["size"] == 4


def test_a_journal_goes_on_with_the_same_shares(dpaudit: Any, batch: Path, tmp_path: Path) -> None:
    text = BATCH.replace("20_000", "500").replace("epsilon: 0.5", "epsilon: 0.1")
    batch.write_text(text, encoding="utf-8")
    words_ = ("run", batch, "--journal", tmp_path / "journal", "--json", tmp_path / "r.json")
    dpaudit(*words_)
    before = from_json((tmp_path / "r.json").read_text("utf-8"))
    dpaudit(*words_, "--resume")
    after = from_json((tmp_path / "r.json").read_text("utf-8"))
    assert "VIOLATION" in [one.verdict.value for one in before]
    assert [one.ending for one in after] == [one.ending for one in before]
    assert [one.family for one in after] == [one.family for one in before]
    # Another batch has other shares, so that its audits are other ones.
    text = batch.read_text("utf-8") + "  - {name: more, claim: {epsilon: 1}}\n"
    batch.write_text(text, encoding="utf-8")
    assert "confidence was " in dpaudit(*words_, "--resume").stdout
