"""What a batch says of seeds that its audits share, where it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SHARED = "Audits with the same "


@pytest.mark.parametrize(
    ("audits", "is_said"),
    [
        ("{name: a, seed: 1}, {name: b, seed: 1}", True),
        ("{name: a}, {name: b}, {name: c, seed: 7}", True),
        ("{name: a, seed: 1}, {name: b, seed: 2}", False),
        ("{name: a, seed: 1}, {name: b, seed: 1, exact: true}", False),
    ],
)
def test_shared_seeds_are_said_in_the_summary(
    dpaudit: Any, tmp_path: Path, audits: str, is_said: bool
) -> None:
    (tmp_path / "a.yaml").write_text(
        "version: 1\n"
        "defaults: {mechanism: 'mechanisms.randomized_response:randomized_response', d1: 0,\n"
        "  d2: 1, claim: {epsilon: 2}, samples: 1000}\n"
        f"audits: [{audits}]\n"
    )
    result = dpaudit("run", tmp_path / "a.yaml")
    assert result.exit_code == 0
    assert (SHARED in result.stdout) is is_said
