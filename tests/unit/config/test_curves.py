"""A curve beside the point of a claim, functions named in claims: two audits, two verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpaudit.auditing.engine import run_audit
from dpaudit.certificates.result import Verdict
from dpaudit.claims import ApproximateDP, ComputationalDP, FunctionalDP, GaussianDP
from dpaudit.config.yaml_files import load_config
from dpaudit.errors import ClaimError
from tests.raising import placed, refusal

MODULE = """\
def noisy(x, size, rng):
    return x + rng.normal(size=size)
def guess(output):
    return 1 if output < 0.5 else 2
def line(alpha):
    return 0.5 * (1 - alpha)
"""


def write(folder: Path, claim: str, more: str = "") -> Path:
    (folder / "curved.py").write_text(MODULE)
    path = folder / "audits.yaml"
    path.write_text(
        "version: 1\naudits:\n  - mechanism: curved.py:noisy\n    name: noisy\n"
        f"    d1: 0\n    d2: 1\n    samples: 30000\n    claim: {claim}\n{more}"
    )
    return path


def test_point_and_curve_are_audited_apart(tmp_path: Path) -> None:
    claim = "{epsilon: 4, delta: 1e-4, curve: {gaussian: {sigma: 1.25}, expect: violation}}"
    path = write(tmp_path, claim, "    expect: pass\n")
    point, curve = load_config(path, {"samples": 10_000})
    assert (point.name, curve.name) == ("noisy", "noisy (curve)")
    assert (point.claim, curve.claim) == (ApproximateDP(4, 1e-4), GaussianDP(0.8))
    assert (point.requirements.expect, curve.requirements.expect) == ("pass", "violation")
    verdicts = [run_audit(one).verdict for one in (point, curve)]
    assert verdicts == [Verdict.NO_VIOLATION_FOUND, Verdict.VIOLATION]


def test_a_curve_expects_what_its_audit_does_unless_it_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, "{epsilon: 1, curve: {zcdp: {rho: 0.5}}}", "    expect: pass\n")
    assert [spec.requirements.expect for spec in load_config(path)] == ["pass", "pass"]


def test_flags_change_the_point_and_not_the_curve(tmp_path: Path) -> None:
    path = write(tmp_path, "{epsilon: 1, curve: {gaussian: {mu: 1}}}")
    point, curve = load_config(path, {"claim": {"epsilon": 2.0}, "samples": 5000})
    assert point.claim.point().epsilon == 2.0
    assert curve.claim == GaussianDP(1.0)
    assert (point.sampling.samples, curve.sampling.samples) == (5000, 5000)


def test_what_is_no_curve_is_refused_with_its_line(tmp_path: Path) -> None:
    curves = {
        "1": "option-invalid",
        "{gaussian: 1}": "option-invalid",
        "{gaussian: {mu: 1}, zcdp: {rho: 1}}": "option-invalid",
        "{gausian: {mu: 1}}": "definition-unknown",
    }
    for curve, expected in curves.items():
        path = write(tmp_path, f"{{epsilon: 1, curve: {curve}}}")
        assert placed(load_config, path) == (expected, 8)
    for curve, name in {"{gaussian: {mu: 0}}": "mu=0.0", "{gaussian: {nu: 1}}": "'nu'"}.items():
        error = refusal(load_config, write(tmp_path, f"{{epsilon: 1, curve: {curve}}}"))
        assert isinstance(error, ClaimError)
        assert name in str(error)


def test_functions_are_found_beside_the_file(tmp_path: Path) -> None:
    path = write(
        tmp_path, "{definition: computational, epsilon: 0.5, adversary: 'curved.py:guess'}"
    )
    (spec,) = load_config(path, {"samples": 5_000})
    assert isinstance(spec.claim, ComputationalDP)
    assert str(spec.claim.adversary).endswith("curved.py:guess")
    assert run_audit(spec).verdict is Verdict.VIOLATION
    (spec,) = load_config(write(tmp_path, "{definition: f-dp, tradeoff: 'curved.py:line'}"))
    assert isinstance(spec.claim, FunctionalDP)
    assert spec.claim.name == "curved.py:line"
    assert spec.claim.profile(0.0) == pytest.approx(0.5, abs=1e-9)
