"""Files of test cases become audits: cases that must pass, and variants that must be refuted."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dpaudit.cli.commands import cli
from mechanisms.conformance import budgets, cases, python_dp, revealing
from mechanisms.conformance.textproto import parse

COUNTS = """
# A comment { with a brace
validity_parameters { distance_specificity: 1.175  failure_specificity: 1.25 }
voting_parameters: <number_of_votes: 9>
count_dp_test_case {
  name: "Laplace noise, " 'two people'
  dp_test_parameters { epsilon: 2.0, delta: 0.0; delta_tolerance: 0.08 }
  count_sampling_parameters {
    number_of_samples: 1000000
    noise_type: LAPLACE
    max_partitions_contributed: 1
    epsilon: 2.0
    raw_increment_by: []
    raw_increment_by: [1, 1]
    neighbour_raw_increment_by: [1, 1]
    neighbour_raw_increment_by: 1 # one more
  }
}
count_dp_test_case {
  name: "Gaussian noise"
  dp_test_parameters { epsilon: 1.0986 delta: 1e-05 delta_tolerance: 0.00031 }
  count_sampling_parameters {
    noise_type: GAUSSIAN
    max_partitions_contributed: 250
    epsilon: 1.0986
    delta: 0.00001
    raw_increment_by: [2147483647]
    neighbour_raw_increment_by: [2147483647, 15]
  }
}
"""
SUMS = """
validity_parameters { failure_specificity: 2 }
bounded_sum_dp_test_case {
  name: "sum"
  dp_test_parameters { epsilon: .5 delta_tolerance: 0.1 granularity: 0.25 }
  bounded_sum_sampling_parameters {
    noise_type: LAPLACE
    max_partitions_contributed: 1
    lower_bound: -50.0
    upper_bound: 4.99e1
    epsilon: 0.5
    neighbour_raw_entry: [-5E+4]
  }
}
"""


def test_every_case_becomes_an_audit_of_its_inputs_and_its_claim() -> None:
    document = cases.document([COUNTS, SUMS], "mine")
    assert 1 - document["defaults"]["confidence"] == pytest.approx(1e-4)
    assert document["familywise"] is True
    laplace, gaussian, total = document["audits"]
    assert laplace["name"] == "count: Laplace noise, two people"
    assert (laplace["d1"], laplace["d2"]) == ([1, 1], [1, 1, 1])
    assert laplace["claim"] == {"epsilon": 2.0}
    assert laplace["mechanism"] == "mine:count"
    assert laplace["params"] == {
        "noise_type": "LAPLACE",
        "max_partitions_contributed": 1,
        "epsilon": 2.0,
    }
    assert gaussian["claim"] == {"epsilon": 1.0986, "delta": 1e-5}
    assert total["mechanism"] == "mine:bounded_sum"
    assert (total["d1"], total["d2"]) == ([], [-50000.0])
    assert (total["params"]["lower_bound"], total["params"]["upper_bound"]) == (-50.0, 49.9)
    assert {one["expect"] for one in document["audits"]} == {"pass"}


def test_missing_cases_are_left_out_with_their_number_and_the_reason() -> None:
    sources, missing = [COUNTS, SUMS], {("count", "GAUSSIAN"): "never made", ("count", "NONE"): ""}
    document = cases.document(sources, "mine", violating=True, missing=missing)
    names = [one["name"].split(",")[0] for one in document["audits"]]
    assert names == ["count: Laplace noise"] * 3 + ["bounded_sum: sum"] * 2
    (line,) = cases.left_out(sources, missing)
    assert all(part in line for part in ("count", "Gaussian", "(1)", "never made"))


def test_violating_variants_are_those_of_the_published_tests() -> None:
    audits = cases.document([COUNTS, SUMS], "mine", violating=True)["audits"]
    assert [one["expect"] for one in audits] == ["pass", *["violation"] * 2] * 2 + [
        "pass",
        "violation",
    ]
    _, far, reveals, _, gaussian, _, _, total = audits
    assert far["d2"] == [1, 1, 2]  # ⌈1.175⌉
    assert gaussian["d2"] == [2147483647, 19]  # ⌈1.175 √250⌉
    assert reveals["init"]["probability"] == pytest.approx(0.1)
    assert reveals["init"]["larger_than"] == 2
    # Many draws only if the variant differs little from the claim.
    assert far["samples"] == 20_000
    assert 20_000 < reveals["samples"] < 30_000
    assert 80_000_000 < gaussian["samples"] < 100_000_000
    assert total["init"]["probability"] == pytest.approx(0.2)


def test_a_failing_mechanism_reveals_larger_inputs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def same(entries: list[float], size: int, output: Any) -> list[Any]:
        return [output] * size

    monkeypatch.setattr(python_dp, "count", same)
    mechanism = f"{python_dp.__name__}:count"
    for output, revealed in ((7, -(2**63)), (7.0, math.nan), ([7.0, 8.0], [math.nan] * 2)):
        failing = revealing.failing(mechanism, 1, 0.25, {"output": output})
        small = failing([1], 1_000, np.random.default_rng(1))
        large = failing([1, 1], 1_000, np.random.default_rng(1))
        assert small.tolist() == [output] * 1_000
        assert small.dtype == large.dtype
        fails = np.array([not np.array_equal(one, output) for one in large])
        assert np.mean(fails) == pytest.approx(0.25, abs=0.06)  # 4.4 standard deviations
        assert np.array_equal(large[fails], [revealed] * fails.sum(), equal_nan=True)


def test_variants_that_keep_the_claim_have_no_budget() -> None:
    with pytest.raises(ValueError, match=r"1 apart .* \(1\)"):
        budgets.draws_for_distance("LAPLACE", (1.0, 0.0), 1.0, 1)
    with pytest.raises(ValueError, match=r"0\.001"):
        budgets.draws_for_revealing((1.0, 0.001), 0.001)


@pytest.mark.parametrize(("text", "line"), [("a: 1\nb: @", 2), ("a: [1, }", 1)])
def test_a_text_that_is_not_text_format_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(ValueError, match=f"^line {line}:"):
        parse(text)


@pytest.mark.parametrize("noise", ["LAPLACE", "GAUSSIAN"])
def test_python_dp_adds_noise_to_the_clamped_values(noise: str) -> None:
    size = 2_000
    common: dict[str, Any] = {"noise_type": noise, "epsilon": 50.0, "delta": 0.1}
    common["max_partitions_contributed"] = 1
    bounds: dict[str, Any] = {"lower_bound": -1.0, "upper_bound": 4.0}
    whole: dict[str, Any] = {"lower_bound": -1, "upper_bound": 4}
    often: dict[str, Any] = {"max_contributions_per_partition": 1}
    counts = python_dp.count([3, 4], size, **common)
    sums = python_dp.bounded_sum([9.0, 2.0], size, **common, **bounds)
    long_sums = python_dp.long_bounded_sum([9, 2, -5], size, **common, **whole)
    means = python_dp.bounded_mean([9.0, 2.0], size, **common, **bounds, **often)
    assert [len(one) for one in (counts, sums, long_sums, means)] == [size] * 4
    assert np.median(counts) == 7
    # python-dp takes no seed. The standard errors of the medians are at most 0.013.
    assert np.median(sums) == pytest.approx(6.0, abs=0.1)
    assert np.median(long_sums) == 5
    assert {type(one) for one in long_sums} == {int}
    assert np.median(means) == pytest.approx(3.0, abs=0.1)
    assert all(-1.0 <= mean <= 4.0 for mean in means)


def test_python_dp_passes_its_case_and_both_variants_are_refuted(tmp_path: Path) -> None:
    document = cases.document([COUNTS], python_dp.__name__, violating=True)
    document["audits"] = document["audits"][:3]
    document["defaults"]["confidence"] = 0.999999  # python-dp takes no seed
    file = tmp_path / "cases.yaml"
    file.write_text(cases.as_yaml(document), encoding="utf-8")
    result = CliRunner().invoke(cli, ["run", str(file), "-q", "--workers", "1", "--no-trace"])
    assert result.exit_code == 0, result.output
