"""Parameters of targets in whole audits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.errors import UsageError


def test_the_python_interface_has_them() -> None:
    def mechanism(prng: np.random.Generator, x: float) -> float:
        return x + float(prng.laplace())

    result = dpaudit.audit(
        mechanism, 0, 1, dpaudit.PureDP(1), samples=2_000, data_arg="x", rng_arg="prng"
    )
    assert (result.error, result.certificates[0].reproducible) == (None, True)
    for key in ("data_arg", "rng_arg"):
        named: dict[str, Any] = {key: "x"}
        with pytest.raises(UsageError, match=f"a program takes no {key}"):
            dpaudit.audit(["cat"], 0, 1, dpaudit.PureDP(1), **named)
