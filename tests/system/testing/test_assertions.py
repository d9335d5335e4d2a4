"""Assertions that compare draws of new processes."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.testing import assert_violates, session
from mechanisms import laplace
from tests.testing.conftest import outside_of_a_run as outside_of_a_run

_AT_IMPORT = "from random import gauss\nZ = [gauss(0, 1), gauss(0, 1)]\n"
_AT_IMPORT += "def drawn_at_import(x):\n    return x + Z[x] + gauss(0, 0.05)\n"


@pytest.fixture
def in_a_run(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a test of a run."""
    run = session.PytestRun(test=session.RunningTest("tests/test_it.py::test", {}, "test_it.py"))
    monkeypatch.setattr(session, "_current", [run])
    yield
    run.close()


def test_noise_drawn_at_import_is_no_violation_of_a_test(
    in_a_run: None, new_processes: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "drawn_once.py").write_text(_AT_IMPORT, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    mechanism = importlib.import_module("drawn_once").drawn_at_import
    with pytest.raises(AssertionError) as failure:
        assert_violates(mechanism, 0, 1, epsilon=0.1, samples=5_000)
    assert str(failure.value).startswith(("ERROR", "NO VIOLATION FOUND"))


def test_a_leak_of_a_test_is_compared_with_new_processes(
    in_a_run: None, new_processes: None
) -> None:
    result = assert_violates(laplace.wrong_density, 0.0, 1.0, epsilon=0.5, samples=5_000)
    redrawn = result.certificates[0].redrawn
    assert redrawn is not None
    assert (redrawn.processes, redrawn.note) == (8, "")


def test_what_a_test_defines_inside_cannot_be_compared_and_says_so(
    in_a_run: None, new_processes: None
) -> None:
    def local(x: float, rng: np.random.Generator) -> Any:
        return x + rng.laplace(scale=0.1)

    result = assert_violates(local, 0, 1, epsilon=0.5, samples=5_000)
    (certificate,) = result.certificates
    assert certificate.redrawn is not None
    assert certificate.redrawn.processes == 0
    assert any(certificate.redrawn.note in note for note in certificate.notes)
