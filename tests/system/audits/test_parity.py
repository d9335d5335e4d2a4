"""Two implementations of one mechanism are compared on one input."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import AuditResult, Verdict
from dpaudit.auditing.underpowered import event_could_not
from dpaudit.certificates.result import Progress
from dpaudit.reports.bounds_report import detectable_distance
from dpaudit.reports.text import render
from tests.result_files import from_json, to_json
from tests.sent import batch, single

SAMPLES = 4_000
PER_IMPORT = """
import random

NOISE = random.SystemRandom().gauss(0, 1)


def a(x):
    return x + NOISE


def other(x):
    return x + 1
"""
DRAWING = """
import random


def plain(x, rng):
    return x + rng.laplace()


def ends(x):
    if random.random() < 0.3:
        import os
        os._exit(3)
    return x


def stays(x):
    return x
"""


def wide(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + rng.laplace(scale=2.0, size=size)


def normals(x: float, size: int, rng: np.random.Generator) -> Any:
    return rng.normal(size=(size, 2))


def forward(x: float, rng: np.random.Generator) -> float:
    return sum([0.1, 0.2, 0.3, float(rng.integers(3))])


def backward(x: float, rng: np.random.Generator) -> float:
    return sum([float(rng.integers(3)), 0.3, 0.2, 0.1])


def changes(x: list[int], rng: np.random.Generator) -> float:
    x.append(1)
    return rng.random()


def parity(*arguments: Any, **more: Any) -> AuditResult:
    return dpaudit.parity(*arguments, **{"samples": SAMPLES, **more})


def test_a_batch_and_single_draws_of_one_law_are_not_refuted() -> None:
    result = parity(single, batch, [0, 1])
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert result.underpowered is None
    assert len(result.certificates) == 2
    assert not result.all_warnings


@pytest.mark.parametrize("seed", range(5))
def test_a_pass_without_a_predicted_bound_has_an_event_with_power(seed: int) -> None:
    """At seed 2, the event by luck would come up in none of the certifying draws."""
    result = parity(normals, normals, [0], samples=2_000, seed=seed)
    (certificate,) = result.certificates
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert detectable_distance(certificate) == pytest.approx(0.097, abs=0.01)
    assert event_could_not(certificate) is None


def test_a_difference_is_refuted_with_a_distance_below_the_true_one() -> None:
    result = parity(single, wide, [0], samples=20_000)
    assert result.verdict is Verdict.VIOLATION
    assert 0.15 < result.delta_lower <= 0.25  # the distance is 1/4
    (read,) = from_json(to_json([result]))
    assert read.is_parity
    assert render(read) == render(result)
    assert parity(single, wide, [0], samples=20_000, tau=0.25).verdict is not Verdict.VIOLATION


def rejects(error: type[Exception]) -> Any:
    def mechanism(x: int, rng: np.random.Generator) -> float:
        if x < 0:
            raise error(x)
        return float(rng.laplace())

    return mechanism


@pytest.mark.parametrize("a", [single, rejects(KeyError)])
def test_an_exception_of_one_side_and_exceptions_of_two_classes_differ(a: Any) -> None:
    result = parity(a, rejects(ValueError), [-1], samples=1_000)
    assert result.verdict is Verdict.VIOLATION
    assert result.delta_lower > 0.9


def test_an_input_that_both_reject_does_not_end_the_comparison() -> None:
    a, b = rejects(ValueError), rejects(ValueError)
    result = parity(a, b, [-1, 1], samples=1_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert (len(result.certificates), result.underpowered) == (2, None)
    assert parity(a, b, [-1, -2], samples=1_000).underpowered is not None
    assert parity(a, b, [-1], samples=1_000).error_code == "always-raises"


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (1, 1.0, Verdict.NO_VIOLATION_FOUND),
        (True, 1, Verdict.VIOLATION),
        ({1: 0, 2: 0}, {2: 0, 1: 0}, Verdict.VIOLATION),
    ],
)
def test_truth_values_and_orders_of_keys_are_differences_and_types_of_equal_numbers_are_none(
    a: Any, b: Any, verdict: Verdict
) -> None:
    assert parity(lambda x: a, lambda x: b, [0], samples=1_000).verdict is verdict


def test_last_bits_are_a_difference_only_with_floating_point() -> None:
    assert parity(forward, backward, [0]).verdict is Verdict.NO_VIOLATION_FOUND
    result = parity(forward, backward, [0], floating_point=True)
    assert result.verdict is Verdict.VIOLATION


def test_a_changed_input_is_an_error() -> None:
    assert parity(changes, single, [[1]]).error_code == "input-changed"


class Cut(BaseException):
    """An end of the run."""


def test_an_interrupted_comparison_continues_from_its_journal(tmp_path: Path) -> None:
    def cut(progress: Progress) -> None:
        if progress.draws > SAMPLES / 2:
            raise Cut

    with pytest.raises(Cut):
        parity(single, batch, [0], journal=tmp_path, on_progress=cut)
    continued = parity(single, batch, [0], journal=tmp_path, resume=True)
    assert continued.resumed == 1
    assert continued.ending == parity(single, batch, [0]).ending


def test_workers_make_the_same_draws() -> None:
    assert parity(single, wide, [0], workers=2).ending == parity(single, wide, [0]).ending


@pytest.fixture
def drawing(tmp_path: Path) -> str:
    (tmp_path / "drawing.py").write_text(DRAWING)
    return str(tmp_path / "drawing.py")


def test_each_side_has_an_interpreter_of_its_own(drawing: str) -> None:
    plain = f"{drawing}:plain"
    result = parity(plain, plain, [0], python_b=sys.executable, samples=1_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert result.target == f"A: {plain}; B: {plain}, run by {sys.executable}"
    result = parity(plain, plain, [0], python=sys.executable, samples=1_000)
    assert result.target.count("run by") == 2


def test_a_crash_of_one_side_is_an_outcome(drawing: str) -> None:
    result = parity(f"{drawing}:stays", f"{drawing}:ends", [0], isolate=True, samples=150)
    assert result.verdict is Verdict.VIOLATION
    (certificate,) = result.certificates
    assert certificate.failures["crash"][0] == 0 < certificate.failures["crash"][1]


def test_noise_of_an_import_is_an_error(tmp_path: Path, new_processes: None) -> None:
    (tmp_path / "imported.py").write_text(PER_IMPORT)
    a, other = (f"{tmp_path}/imported.py:{name}" for name in ("a", "other"))
    result = parity(a, other, [0], samples=2_000)
    assert result.error_code == "new-process-differs"


def test_a_seed_that_both_set_is_found() -> None:
    def fixed(x: float) -> float:
        return x + random.Random(1).random()

    result = parity(fixed, fixed, [0])
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert len(result.all_warnings) == 1  # all draws are equal
