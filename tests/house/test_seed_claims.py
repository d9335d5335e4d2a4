"""What configs/seeds expects follows from the truth of the specimens, not from a lucky seed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpaudit.auditing.spec import AuditSpec
from dpaudit.config.yaml_files import load_config
from dpaudit.import_path import resolve
from dpaudit.targets.target import ImportedTarget
from mechanisms.truth import Truth, truth_of

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "configs" / "seeds").glob("00[234]-*.yaml"))
# How far above the truth a claim may be that is to pass: it is written with some six digits.
LOOSE = 1e-5


def audits() -> Iterator[AuditSpec]:
    for config in CONFIGS:
        for spec in load_config(config):
            # What a function makes of the outputs has a truth of its own.
            if isinstance(spec.target, ImportedTarget) and spec.target.post_process is None:
                yield spec


@pytest.mark.parametrize("spec", list(audits()), ids=lambda spec: spec.name)
def test_claims_that_pass_are_tight_and_the_others_false(spec: AuditSpec) -> None:
    assert isinstance(spec.target, ImportedTarget)
    truth, point = truth_of(resolve(spec.target.path)), spec.claim.point()
    params = dict(spec.target.params)
    for pair in spec.pairs:
        if point.delta:
            allowed, needed = point.delta, truth.profile(pair.d1, pair.d2, point.epsilon, **params)
        else:
            allowed, needed = point.epsilon, _epsilon(truth, spec, params)
        if spec.requirements.expect == "pass":
            assert needed * (1 - 1e-12) <= allowed <= needed * (1 + LOOSE)
        else:
            assert needed > 1.05 * allowed


def _epsilon(truth: Truth, spec: AuditSpec, params: dict[str, object]) -> float:
    return max(truth.epsilon(pair.d1, pair.d2, **params) for pair in spec.pairs)


def test_three_documents_are_covered() -> None:
    assert {config.name[:3] for config in CONFIGS} == {"002", "003", "004"}
