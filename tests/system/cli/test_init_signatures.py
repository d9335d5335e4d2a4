"""Files that `dpaudit init` writes for each kind of signature, audited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpaudit.config.loading import load_config
from tests.cli.test_init import audit, fails, started
from tests.cli.test_init import folder as folder


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("documented", {"d1": 0.0, "d2": 1.0}),
        ("noisy_mean", {"d1": [0.0, 1.0, 1.0], "d2": [0.0, 1.0], "as": "array"}),
        ("elsewhere", {"rng_arg": "prng", "data_arg": "queries", "d2": [0.0, 1.0]}),
        ("scaled --param sensitivity=1", {"params": {"sensitivity": 1, "epsilon": 1.0}}),
        ("Laplace", {"init": {"epsilon": 1.0}, "call": "add_noise", "d1": 0.0}),
        ("Several --call add_noise", {"init": {"epsilon": 1.0}, "call": "add_noise"}),
        ("late", {"data_arg": "rows", "params": {"epsilon": 1.0}, "d2": [0, 1]}),
        (
            'clipped --param bounds={"tuple":[0,1]} --param shape=[.inf,-1e3]',
            {"params": {"bounds": {"tuple": [0, 1]}, "shape": [float("inf"), -1000.0]}},
        ),
        ("by_name", {"data_arg": "rows", "d2": [0, 1]}),
        ("Called", {"d1": 0, "d2": 1}),
        ("make", {"factory": True, "init": {"epsilon": 1.0}}),
        ("ready", {"factory": True}),
        ("defaulted", {"params": {"epsilon": 1.0}, "d2": [0, 1]}),
        ("gaussian --delta 0.01", {"params": {"epsilon": 1.0, "delta": 0.01}}),
        ("gaussian --param epsilon=2 --delta 0.1", {"params": {"epsilon": 2, "delta": 0.1}}),
        ("Laplace --init [0.5]", {"init": [0.5], "call": "add_noise"}),
        ("private_count --d1 [2,3] --d2 [2] --delta 0.1", {"d1": [2, 3], "d2": [2]}),
        ("private_count --definition approximate --delta 0.1 --group 2", {"d2": [0, 1]}),
        ("private_count --definition probabilistic --delta 0.1", {"d2": [0, 1]}),
    ],
)
def test_what_signatures_say(folder: Path, words: str, expected: dict[str, Any]) -> None:
    name, *more = words.split()
    done = started(f"mine.py:{name}", "--epsilon", "1", "--samples", "500", *more)
    assert done.returncode == 0, done.stderr
    assert expected.items() <= audit().items()
    assert len(load_config(folder / "audits.yaml")) == 1
    assert fails() == ""
