"""Draws in a process of its own: the same draws, and faults that are outcomes."""

from __future__ import annotations

import ast
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.adapters.loading import load_mechanism
from dpaudit.errors import MechanismError, TargetError
from dpaudit.outcomes import Raised, frames, from_raw, set_order
from dpaudit.processes import child_script, origin
from dpaudit.targets.target import (
    Limits,
)
from tests import faulty
from tests.isolated import OLDEST, interpreters, isolated, kinds, lines, rng, target

PYTHONS = interpreters()


@pytest.mark.parametrize("script", [child_script, origin, frames, set_order])
def test_the_child_script_is_written_for_python_3_8(script: Any) -> None:
    source = Path(script.__file__).read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, OLDEST))
    imported = {
        (one.names[0].name if isinstance(one, ast.Import) else str(one.module)).partition(".")[0]
        for one in ast.walk(tree)
        if isinstance(one, ast.Import | ast.ImportFrom)
    }
    assert imported <= {*sys.stdlib_module_names, "origin", "dpaudit"}


@pytest.mark.parametrize("python", PYTHONS)
def test_every_python_draws(python: str) -> None:
    with isolated("plain", python=python) as mechanism:
        assert mechanism.interleaved
        drawn = mechanism.sample_each([0, 10] * 500, rng())
        assert [int(one) for one in drawn] == [0, 10] * 500
        assert len(set(drawn)) == 1_000
        again = mechanism.sample_each([0, 10] * 500, rng())
        assert np.array_equal(drawn, again)
    # With the noise of the same generators, in every version.
    with isolated("plain") as mechanism:
        assert np.array_equal(drawn, mechanism.sample_each([0, 10] * 500, rng()))


@pytest.mark.parametrize("python", PYTHONS)
def test_every_python_sends_outcomes_of_any_shape(python: str) -> None:
    values = [1, 2.5, None, True, "ä", b"\x00", (1, [2]), {"a": {1, 2}}, {1: "$"}, 2**70, 1 + 2j]
    with isolated("echo", python=python) as mechanism:
        assert mechanism.sample_each(values, rng()) == values
    with isolated("point", python=python) as mechanism:
        ours = from_raw([faulty.point(0.5)] * 2)
        theirs = from_raw(mechanism.sample(0.5, 2, rng()))
        assert np.array_equal(ours.keys(), theirs.keys())
    with isolated("carried", python=python) as mechanism:
        drawn = [one for one in mechanism.sample(0, 100, rng()) if not isinstance(one, Raised)]
        assert len(set(drawn)) == len(drawn) < 100


def test_a_generator_is_passed() -> None:
    with isolated("with_rng") as mechanism:
        drawn = mechanism.sample(5, 100, rng())
        assert len(set(drawn)) == 100
        assert np.array_equal(drawn, mechanism.sample(5, 100, rng()))
        assert not set(drawn) & set(mechanism.sample(5, 100, rng(1)))


@pytest.mark.parametrize("how", ["abort", "interrupt"])
def test_the_draw_under_way_is_the_outcome_crash_and_no_other_is_lost(
    how: str, tmp_path: Path
) -> None:
    log, inputs = tmp_path / "log", list(range(8)) * 15
    with isolated("logged", params={"log": str(log), "how": how}) as mechanism:
        drawn = mechanism.sample_each(inputs, rng())
    assert kinds(drawn)["crash"] >= 1
    assert set(kinds(drawn)) == {"crash"}
    # Each draw began once, in order.
    assert lines(log) == list(map(str, inputs))
    assert all(
        one == dataset or isinstance(one, Raised)
        for one, dataset in zip(drawn, inputs, strict=True)
    )


def test_a_draw_that_takes_too_long_is_an_outcome(tmp_path: Path) -> None:
    log, inputs = tmp_path / "log", list(range(8)) * 12
    params = {"log": str(log), "how": "hang"}
    start = time.perf_counter()
    with isolated("logged", params=params, limits=Limits(timeout=0.4)) as mechanism:
        drawn = mechanism.sample_each(inputs, rng())
    actual = kinds(drawn)
    assert set(actual) == {"timeout"}
    assert lines(log) == list(map(str, inputs))
    assert 0.4 * actual["timeout"] <= time.perf_counter() - start
    assert next(one for one in drawn if isinstance(one, Raised)).message == "over 0.4 s"


def test_too_much_memory_is_an_outcome() -> None:
    limits = Limits(memory=1_000_000_000)
    with isolated("always", params={"how": "memory"}, limits=limits) as mechanism:
        assert kinds(mechanism.sample(0, 20, rng())) == {"out of memory": 20}


@pytest.mark.parametrize(("how", "kind"), [("sys.exit", "SystemExit"), ("x", "ValueError")])
def test_an_exception_is_an_outcome(how: str, kind: str) -> None:
    with isolated("always", params={"how": how}) as mechanism:
        assert kinds(mechanism.sample(0, 20, rng())) == {kind: 20}


def test_a_crash_in_every_draw_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.adapters.in_child.MAX_ENDED", 5)
    with (
        isolated("always", params={"how": "abort"}) as mechanism,
        pytest.raises(MechanismError, match=r" 5 times .* a crash "),
    ):
        mechanism.sample(0, 1_000, rng())


def test_equal_crashes_on_all_inputs_end_the_audit_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.adapters.in_child._MAX_FAILED_DRAWS", 2)  # each takes a process
    with (
        isolated("complaining") as mechanism,
        pytest.raises(MechanismError, match=r" 4 draws of both .* no license\)"),
    ):
        mechanism.sample_each([0, 1] * 100, rng())


@pytest.mark.parametrize(
    ("attribute", "inputs"),
    [("complaining_of_1", [1] * 3 + [0, 1]), ("counting_its_deaths", [0, 1] * 3)],
)
def test_crashes_that_differ_do_not_end_the_audit(
    attribute: str, inputs: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "dpaudit.adapters.in_child._MAX_FAILED_DRAWS", 2
    )  # fewer than of an input here
    with isolated(attribute, params={"log": str(tmp_path / "log")}) as mechanism:
        drawn = mechanism.sample_each(inputs, rng())
    crashes = inputs.count(1) if attribute == "complaining_of_1" else len(inputs)
    assert kinds(drawn) == {"crash": crashes}


def test_output_of_the_mechanism_disturbs_nothing() -> None:
    with isolated("talks") as mechanism:
        assert list(mechanism.sample(7, 40, rng())) == [7] * 40


def test_long_outputs_wait_for_room_and_longer_ones_are_refused() -> None:
    with isolated("long_text") as mechanism:
        sizes = [3_000_000, 5, 7_000_000] * 6
        assert list(map(len, mechanism.sample_each(sizes, rng()))) == sizes
        with pytest.raises(MechanismError, match="16,777,216 bytes") as caught:
            mechanism.sample(20_000_000, 1, rng())
        assert caught.value.code == "output-too-large"


def test_a_mechanism_is_made_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with isolated("Counted", init=[str(log)], call="draw") as mechanism:
        for _ in range(3):
            mechanism.sample(0, 10, rng())
    assert lines(log) == ["made"]


def test_an_input_that_changes_is_an_error() -> None:
    with (
        isolated("grows") as mechanism,
        pytest.raises(MechanismError) as error,
    ):
        mechanism.sample([1, 2], 10, rng())
    assert error.value.code == "input-changed"


def test_many_datasets_are_not_mixed_up() -> None:
    with isolated("echo") as mechanism:
        for turn in range(3):
            inputs = [f"dataset {turn} {number}" for number in range(150)]
            assert mechanism.sample_each(inputs, rng()) == inputs


def test_batches() -> None:
    with isolated("batch") as mechanism:
        assert not mechanism.interleaved
        drawn = mechanism.sample(3, 100_000, rng())
        assert isinstance(drawn, np.ndarray)
        assert drawn.shape == (100_000,)
        assert np.array_equal(drawn, mechanism.sample(3, 100_000, rng()))
    with isolated("listed") as mechanism:
        assert mechanism.sample({"a": (1,)}, 3, rng()) == [{"a": (1,)}] * 3


@pytest.mark.parametrize(
    ("attribute", "code", "named"),
    [
        ("too_few", "wrong-number-of-outputs", "1 output.*size=5.*5 outputs"),
        ("dies_in_a_batch", "batch-failed", "signal 6 .*size=5.*batch_arg='none'"),
    ],
)
def test_a_batch_that_fails_is_an_error(attribute: str, code: str, named: str) -> None:
    with isolated(attribute) as mechanism, pytest.raises(MechanismError, match=named) as error:
        mechanism.sample(0, 5, rng())
    assert error.value.code == code


@pytest.mark.parametrize(
    ("attribute", "options", "named"),
    [
        ("plan", {}, "'plan'"),
        ("Counted", {"init": ["/"], "call": "draw"}, "init=.*IsADirectory"),
        ("plain", {"post_process": "builtins:nope"}, "'nope'"),
        ("plain", {"limits": Limits(memory=1_000_000)}, "plain|1,000,000"),
        ("plain", {"python": "no-such-python"}, "'no-such-python'"),
        ("plain", {"python": "echo"}, "invalid reply"),
    ],
)
def test_mechanisms_that_cannot_be_set_up_are_target_errors(
    attribute: str, options: Any, named: str
) -> None:
    with pytest.raises(TargetError, match=named):
        load_mechanism(target(attribute, **options))
