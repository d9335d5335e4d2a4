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
from tests.raising import refusal

FEW: dict[str, Any] = {"samples": 5_000}


def noisy(dataset: float, size: int, rng: np.random.Generator) -> Any:
    return dataset + rng.laplace(size=size)


def broken(dataset: float) -> float:
    raise ValueError("out of range")


@pytest.fixture(autouse=True)
def outside_of_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As from a script: without the settings and the name of the test that is running."""
    monkeypatch.setattr(session, "_current", [])
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"epsilon": 1.5}, "1.5-DP"),
        ({"epsilon": 1.5, "delta": 1e-3}, "(1.5, 0.001)-DP"),
        ({"mu": 3.0}, "3-Gaussian DP"),
        ({"rho": 1.0}, "1-zCDP"),
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


def test_a_leak_fails_with_the_report() -> None:
    with pytest.raises(AssertionError) as failure:
        assert_private(laplace.wrong_density, 0.0, 1.0, epsilon=0.5, **FEW)
    first, empty, headline = str(failure.value).splitlines()[:3]
    assert first.startswith("VIOLATION: ε ≥ ")
    assert (empty, headline.split(":")[0]) == ("", "VIOLATION  wrong_density")


def test_a_leak_that_is_expected_passes_and_one_that_is_not_there_fails() -> None:
    assert assert_violates(noisy, 0.0, 1.0, epsilon=0.5, **FEW).epsilon_lower > 0.5
    with pytest.raises(
        AssertionError, match=r"(?s)NO VIOLATION FOUND  noisy: .*expected: violation"
    ):
        assert_violates(noisy, 0.0, 1.0, epsilon=1.5, samples=5_000, name="noisy")


@pytest.mark.parametrize("asserts", [assert_private, assert_violates])
def test_an_error_never_passes(asserts: Any) -> None:
    with pytest.raises(AssertionError, match=r"(?s)ERROR  broken: .*ValueError: out of range"):
        asserts(broken, 0, 1, epsilon=1.0, **FEW)


@pytest.mark.parametrize("asserts", [assert_private, assert_violates])
def test_an_audit_that_cannot_fail_never_passes(asserts: Any) -> None:
    with pytest.raises(AssertionError, match="under-powered: 5,000 draws cannot refute ε = 20"):
        asserts(noisy, 0.0, 1.0, epsilon=20.0, **FEW)


def in_letters(x: float, rng: np.random.Generator) -> str:
    """Return a noisy number in letters, in which no event can be learned."""
    digits = str.maketrans("0123456789", "abcdefghij")
    return f"{x + rng.laplace():.12f}".translate(digits)


def test_an_audit_that_saw_only_new_outputs_fails_unless_that_is_allowed(
    recwarn: pytest.WarningsRecorder,
) -> None:
    with pytest.raises(AssertionError, match=r"UNDER-POWERED: .* --post-process"):
        assert_private(in_letters, 0.0, 1.0, epsilon=1.0, **FEW)
    result = assert_private(in_letters, 0.0, 1.0, epsilon=1.0, allow_underpowered=True, **FEW)
    assert result.underpowered is None
    assert not [one for one in recwarn if issubclass(one.category, AuditWarning)]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({}, dpaudit.UsageError, "epsilon=…"),
        ({"claim": dpaudit.PureDP(1.0), "delta": 0.1}, dpaudit.UsageError, "not both: delta"),
        ({"epsilon": -1.0}, dpaudit.UsageError, "epsilon"),
        ({"epsilon": 1.0, "confidence": 0.01}, dpaudit.UsageError, "0.5 to below 1"),
        ({"epsilon": 1.0, "sampels": 9}, TypeError, "'sampels'. Did you mean 'samples'?"),
        ({"epsilon": 1.0, "samples": 9, "time": 2.0}, dpaudit.UsageError, "not both"),
    ],
)
def test_a_wrong_request_is_no_failed_assertion(
    given: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as raised:
        assert_private(noisy, 0.0, 1.0, **given)
    assert words in str(raised.value)


def test_settings_come_from_the_nearest_project_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.dpaudit]\nsamples = 4_000\nconfidence = 0.9\n")
    result = assert_private(noisy, 0.0, 1.0, epsilon=1.5)
    assert (result.confidence, result.certificates[0].evidence.budget) == (0.9, 4_000)
    own = assert_private(noisy, 0.0, 1.0, epsilon=1.5, samples=3_000)
    assert (own.confidence, own.certificates[0].evidence.budget) == (0.9, 3_000)


def test_time_takes_the_place_of_the_usual_draws() -> None:
    assert (
        assert_private(noisy, 0.0, 1.0, epsilon=1.5, time=1).certificates[0].evidence.budget
        != 100_000
    )


def test_a_journal_is_gone_once_its_audit_has_ended(tmp_path: Path) -> None:
    for _ in range(2):
        result = assert_private(noisy, 0.0, 1.0, epsilon=1.5, journal=tmp_path / "kept", **FEW)
        assert result.resumed == 0
    assert list((tmp_path / "kept").iterdir()) == []


def test_what_an_audit_warns_of_is_a_warning_of_the_test() -> None:
    with pytest.warns(AuditWarning, match="constant: all .* are 3, for both .* is this intended"):
        assert_private(lambda d: 3, [1], [], epsilon=1, name="constant", **FEW)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_private(noisy, 0.0, 1.0, epsilon=1.5, **FEW)
        with pytest.raises(AuditWarning, match="is this intended"):
            assert_private(lambda d: 3, [1], [], epsilon=1, **FEW)


def _forgets_to_clip(rows: list[float], size: int, rng: np.random.Generator) -> Any:
    return sum(rows) + rng.laplace(size=size)


def test_the_pair_may_be_searched_for() -> None:
    given: dict[str, Any] = {"adjacency": "add-remove", "epsilon": 1.0, "samples": 5_000}
    space = "list of number in [0, 1]"
    outside = {"space": space, "outside": True}
    found = assert_violates(_forgets_to_clip, search=outside, **given)
    assert found.searched is not None
    noted = assert_private(_forgets_to_clip, search=space, **given)
    assert noted.searched is not None
    assert noted.searched.beyond is not None
    with pytest.raises(AssertionError, match=r"dpaudit\.audit"):
        assert_private(_forgets_to_clip, search=outside, **given)


@pytest.mark.parametrize(
    ("given", "code", "named"),
    [
        ({}, "option-missing", "d1 is missing"),
        ({"d1": 0, "d2": 1, "search": "number"}, "options-conflict", "search"),
        ({"search": "number"}, "option-missing", "adjacency"),
        ({"search": {"space": "number", "kepe": 1}}, "key-unknown", "'keep'"),
    ],
)
def test_what_a_search_needs(given: dict[str, Any], code: str, named: str) -> None:
    error = refusal(assert_private, _forgets_to_clip, epsilon=1.0, **given)
    assert (error.code, named in str(error)) == (code, True)


def test_rare_outputs_that_would_not_have_been_caught_fail_the_test() -> None:
    assert_private(noisy, 0.0, 1.0, epsilon=2.0, samples=10_000, require_rare=0.1)
    with pytest.raises(
        AssertionError, match=r"UNDER-POWERED: .*require_rare=0.0001.* samples=2_470_000"
    ):
        assert_private(noisy, 0.0, 1.0, epsilon=2.0, samples=10_000, require_rare=1e-4)


def test_rare_outputs_may_be_required_of_all_tests_but_those_that_allow_it() -> None:
    run = session.PytestRun({"require_rare": 1e-4})
    assert run.options({})["require_rare"] == 1e-4
    assert run.options({"require_rare": 0.1})["require_rare"] == 0.1
    assert "require_rare" not in run.options({"allow_underpowered": True})
    assert "require_rare" not in run.options({"require_rare": None})
