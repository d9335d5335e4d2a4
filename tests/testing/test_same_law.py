"""`assert_same_law` in a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import Verdict
from dpaudit.errors import UsageError
from dpaudit.testing import assert_same_law

FEW: dict[str, Any] = {"samples": 5_000}


def plain(x: float, rng: np.random.Generator) -> float:
    return x + float(rng.laplace())


def wide(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + rng.laplace(scale=2.0, size=size)


def test_equal_laws_pass() -> None:
    result = assert_same_law(plain, plain, [0, 1], **FEW)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert result.confidence == 0.9999


def test_a_difference_fails_unless_tau_allows_it() -> None:
    with pytest.raises(AssertionError, match=r"^VIOLATION: δ ≥ 0\.1\d+, claimed 0\n"):
        assert_same_law(plain, wide, [0], **FEW)
    assert assert_same_law(plain, wide, [0], tau=0.25, **FEW).claim.parameters() == {"delta": 0.25}


def test_settings_of_the_project_about_two_inputs_do_not_apply(tmp_path: Path) -> None:
    text = "[tool.dpaudit]\nrequire_power = 2\nconfidence = 0.99\n"
    (tmp_path / "pyproject.toml").write_text(text)
    assert assert_same_law(plain, plain, [0], **FEW).confidence == 0.99


def test_wrong_arguments() -> None:
    wrong: Any = {"epsilon": 1.0}
    with pytest.raises(TypeError, match="epsilon"):
        assert_same_law(plain, plain, [0], **wrong)
    with pytest.raises(UsageError, match="inputs"):
        assert_same_law(plain, plain, [])
