"""What a test says of a mechanism, and how it reads when it fails."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.testing import AuditWarning, assert_private, assert_violates, session
from mechanisms import laplace
from tests.raising import code

FEW: dict[str, Any] = {"samples": 5_000}


def noisy(dataset: float, size: int, rng: np.random.Generator) -> Any:
    return dataset + rng.laplace(size=size)


def broken(dataset: float) -> float:
    raise ValueError("out of range")


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"epsilon": 1.5, "delta": 1e-3}, "(1.5, 0.001)-DP"),
        ({"mu": 3.0}, "3-Gaussian DP"),
        ({"claim": dpaudit.PureDP(1.5)}, "1.5-DP"),
    ],
)
def test_a_claim_by_its_numbers_or_as_an_object(claim: dict[str, Any], words: str) -> None:
    result = assert_private(noisy, 0.0, 1.0, **claim, **FEW)
    assert result.verdict is dpaudit.Verdict.NO_VIOLATION_FOUND
    assert result.claim.describe() == words
    assert result.confidence == 0.9999


def test_an_input_of_another_type_is_no_leak() -> None:
    def count(rows: Any, rng: np.random.Generator) -> float:
        return len(rows) + float(rng.laplace())

    with pytest.raises(AssertionError, match=r"^ERROR: .*TypeError"):
        assert_violates(count, None, [3], epsilon=0.5, **FEW)
    with pytest.warns(AuditWarning, match="d1 always raises"):
        assert_violates(count, None, [3], epsilon=0.5, on_error="outcome", **FEW)


def test_a_leak_fails_and_passes_where_it_is_expected() -> None:
    with pytest.raises(AssertionError, match=r"^VIOLATION: ε ≥ "):
        assert_private(laplace.wrong_density, 0.0, 1.0, epsilon=0.5, **FEW)
    assert assert_violates(noisy, 0.0, 1.0, epsilon=0.5, **FEW).epsilon_lower > 0.5
    with pytest.raises(AssertionError, match="NO VIOLATION FOUND"):
        assert_violates(noisy, 0.0, 1.0, epsilon=1.5, **FEW)


@pytest.mark.parametrize("asserts", [assert_private, assert_violates])
def test_an_error_and_an_audit_that_cannot_fail_never_pass(asserts: Any) -> None:
    with pytest.raises(AssertionError, match=r"(?s)ERROR .*ValueError: out of range"):
        asserts(broken, 0, 1, epsilon=1.0, **FEW)
    with pytest.raises(AssertionError, match="under-powered: 5,000 draws cannot refute ε = 20"):
        asserts(noisy, 0.0, 1.0, epsilon=20.0, **FEW)


def in_letters(x: float, rng: np.random.Generator) -> str:
    """Return a noisy number in letters, in which no event can be learned."""
    digits = str.maketrans("0123456789", "abcdefghij")
    return f"{x + rng.laplace():.12f}".translate(digits)


@pytest.mark.filterwarnings("error::dpaudit.testing.AuditWarning")
def test_an_audit_that_saw_only_new_outputs_fails_unless_that_is_allowed() -> None:
    with pytest.raises(AssertionError, match="UNDER-POWERED: "):
        assert_private(in_letters, 0.0, 1.0, epsilon=1.0, **FEW)
    result = assert_private(in_letters, 0.0, 1.0, epsilon=1.0, allow_underpowered=True, **FEW)
    assert result.underpowered is None


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, dpaudit.UsageError),
        ({"claim": dpaudit.PureDP(1.0), "delta": 0.1}, dpaudit.UsageError),
        ({"epsilon": 1.0, "confidence": 0.01}, dpaudit.UsageError),
        ({"epsilon": 1.0, "sampels": 9}, TypeError),
        ({"epsilon": 1.0, "samples": 9, "time": 2.0}, dpaudit.UsageError),
    ],
)
def test_a_wrong_request_is_no_failed_assertion(
    options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        assert_private(noisy, 0.0, 1.0, **options)


def test_settings_come_from_the_nearest_project_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.dpaudit]\nsamples = 4_000\nconfidence = 0.9\n")
    result = assert_private(noisy, 0.0, 1.0, epsilon=1.5)
    assert (result.confidence, result.certificates[0].evidence.budget) == (0.9, 4_000)
    result = assert_private(noisy, 0.0, 1.0, epsilon=1.5, samples=3_000)
    assert (result.confidence, result.certificates[0].evidence.budget) == (0.9, 3_000)
    result = assert_private(noisy, 0.0, 1.0, epsilon=1.5, time=1)
    assert result.certificates[0].evidence.budget != 4_000


def test_a_journal_is_gone_once_its_audit_has_ended(tmp_path: Path) -> None:
    for _ in range(2):
        result = assert_private(noisy, 0.0, 1.0, epsilon=1.5, journal=tmp_path / "kept", **FEW)
        assert result.resumed == 0
    assert list((tmp_path / "kept").iterdir()) == []


def test_what_an_audit_warns_of_is_a_warning_of_the_test() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_private(noisy, 0.0, 1.0, epsilon=1.5, **FEW)
        with pytest.raises(AuditWarning, match=r"all .* are 3"):
            assert_private(lambda d: 3, [1], [], epsilon=1, **FEW)


def _forgets_to_clip(rows: list[float], size: int, rng: np.random.Generator) -> Any:
    return sum(rows) + rng.laplace(size=size)


def test_the_pair_may_be_searched_for() -> None:
    options: dict[str, Any] = {"adjacency": "add-remove", "epsilon": 1.0, "samples": 5_000}
    space = "list of number in [0, 1]"
    outside = {"space": space, "outside": True}
    assert assert_violates(_forgets_to_clip, search=outside, **options).searched is not None
    result = assert_private(_forgets_to_clip, search=space, **options)
    assert result.searched is not None
    assert result.searched.beyond is not None
    with pytest.raises(AssertionError):
        assert_private(_forgets_to_clip, search=outside, **options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "option-missing"),
        ({"d1": 0, "d2": 1, "search": "number"}, "options-conflict"),
        ({"search": "number"}, "option-missing"),
        ({"search": {"space": "number", "kepe": 1}}, "key-unknown"),
    ],
)
def test_what_a_search_needs(options: dict[str, Any], expected: str) -> None:
    assert code(assert_private, _forgets_to_clip, epsilon=1.0, **options) == expected


def test_rare_outputs_that_would_not_have_been_caught_fail_the_test() -> None:
    assert_private(noisy, 0.0, 1.0, epsilon=2.0, samples=10_000, require_rare=0.1)
    with pytest.raises(AssertionError, match=r"UNDER-POWERED: .*require_rare=0.0001"):
        assert_private(noisy, 0.0, 1.0, epsilon=2.0, samples=10_000, require_rare=1e-4)


def test_rare_outputs_may_be_required_of_all_tests_but_those_that_allow_it() -> None:
    run = session.PytestRun({"require_rare": 1e-4})
    assert run.options({})["require_rare"] == 1e-4
    assert run.options({"require_rare": 0.1})["require_rare"] == 0.1
    assert "require_rare" not in run.options({"allow_underpowered": True})
    assert "require_rare" not in run.options({"require_rare": None})
    run.test = session.RunningTest("test", {"allow_underpowered": True}, "test")
    assert "require_rare" not in run.options({})


def test_a_strict_test_that_fails_by_a_warning_names_it_first() -> None:
    with pytest.raises(AssertionError) as raised:
        assert_private(lambda x: 7, 0, 1, epsilon=1.0, strict=True, **FEW)
    assert "strict: 1 warning fails the audit: " in str(raised.value).partition("\n")[0]
