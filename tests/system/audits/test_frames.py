"""Audits of mechanisms that take a data frame, here and in another Python."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.adapters.loading import load_mechanism
from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.request import digest
from dpaudit.certificates.result import Verdict
from dpaudit.config.building import build_spec
from dpaudit.inputs.values import Rows
from tests.raising import code
from tests.unit.inputs.test_frames import folder as folder


@pytest.mark.parametrize(
    ("place", "epsilon", "verdict"),
    [
        ({}, 0.5, Verdict.VIOLATION),
        ({"isolate": True}, 2, Verdict.NO_VIOLATION_FOUND),
    ],
)
def test_mechanisms_of_data_frames_are_audited(
    folder: Path,
    place: dict[str, Any],
    epsilon: float,
    verdict: Verdict,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A refutation is compared with draws of two new processes; each imports pandas.
    monkeypatch.setattr("dpaudit.sampling.executors.new_processes.PROCESSES", 2)
    monkeypatch.setattr("dpaudit.sampling.executors.new_processes.DRAWING_SECONDS", 60.0)
    settings = {
        "mechanism": "framed.py:noisy_mean",
        "as": "pandas",
        "d1": [{"age": 1}, {"age": 2}],
        "d2": [{"age": 1}],
        "adjacency": "add-remove",
        "claim": {"epsilon": epsilon},
        "samples": 2_000,
        **place,
    }
    result = run_audit(build_spec(settings))
    assert (result.verdict, result.error) == (verdict, None)
    assert 0.5 < result.epsilon_lower <= 2
    assert not any("unchecked" in one for one in result.certificates[0].warnings)
    assert code(build_spec, {**settings, "d2": [{"age": 5}]}) == "pair-not-neighbours"


def test_another_python_makes_the_same_frame(folder: Path) -> None:
    settings = {
        "mechanism": "framed.py:dtypes",
        "as": "pandas",
        "d1": "@rows.csv",
        "d2": "@numbers.csv",
        "claim": {"epsilon": 1},
    }
    given = [build_spec(settings), build_spec({**settings, "python": sys.executable})]
    assert type(given[0].pairs[0].d1) is pd.DataFrame
    assert type(given[1].pairs[0].d1) is Rows
    outputs: list[Any] = []
    for spec in given:
        mechanism = load_mechanism(spec.target)
        for dataset in (spec.pairs[0].d1, spec.pairs[0].d2):
            outputs += mechanism.sample(dataset, 1, np.random.default_rng(0))
        mechanism.close()
    assert outputs[:2] == outputs[2:]
    assert digest(Rows("pandas", [[1]])) != digest(Rows("polars", [[1]]))
