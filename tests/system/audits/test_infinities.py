"""Outputs of ±inf and near the largest float, and messages without UTF-8.

pytest turns each RuntimeWarning into an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import PureDP, Verdict
from tests.result_files import from_json, to_json

LARGEST = float(np.finfo(float).max)
Law = Callable[[int, np.random.Generator], Any]


def half_infinite(x: int, rng: np.random.Generator) -> float:
    u = rng.random()
    return math.inf if u < 0.3 else -math.inf if u < 0.6 else x + rng.normal()


def infinite(x: int, rng: np.random.Generator) -> float:
    return math.inf if rng.random() < 0.5 else -math.inf


def huge(x: int, rng: np.random.Generator) -> float:
    return float(rng.choice([LARGEST, -LARGEST, math.inf, -math.inf, 0.0]) * rng.choice([0.5, 1]))


def vector(x: int, rng: np.random.Generator) -> list[float]:
    return [infinite(x, rng), -math.inf, LARGEST * rng.uniform(-1, 1), rng.normal()]


def leaking(x: int, rng: np.random.Generator) -> list[float]:
    return [rng.normal(), -math.inf if x and rng.random() < 0.2 else rng.normal()]


@pytest.mark.parametrize("law", [half_infinite, infinite, huge, vector])
def test_infinite_outputs_are_audited_without_a_warning(law: Law) -> None:
    result = dpaudit.audit(law, 0, 1, PureDP(8.0), samples=2_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND


def test_an_infinity_that_one_input_alone_gives_is_found() -> None:
    assert dpaudit.audit(leaking, 0, 1, PureDP(1.0), samples=5_000).verdict is Verdict.VIOLATION


@pytest.mark.parametrize("law", [half_infinite, infinite, huge, vector])
def test_recorded_infinities_are_bounded_without_a_warning(law: Law) -> None:
    rng = np.random.default_rng(1)
    d1, d2 = ([law(x, rng) for _ in range(1_000)] for x in (0, 1))
    assert dpaudit.bound(d1, d2, PureDP(8.0)).verdict is Verdict.NO_VIOLATION_FOUND


def test_messages_that_have_no_utf_8_are_written_all_the_same(tmp_path: Path) -> None:
    def odd(x: int, rng: np.random.Generator) -> int:
        if rng.random() < 0.5:
            raise ValueError("\udcff")
        return x

    text = to_json([dpaudit.audit(odd, 0, 1, PureDP(1.0), samples=1_000)])
    (tmp_path / "r.json").write_text(text, encoding="utf-8")
    (result,) = from_json((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert result.certificates[0].first_failures["ValueError"].message == "\udcff"
