"""`assert_kills`: whether an audit would notice bugs in a function of a file."""

from __future__ import annotations

from functools import partial

import pytest

from dpaudit.mutating.judging import Judgement
from dpaudit.mutating.mutants import Mutant
from dpaudit.mutating.scoring import Mutation
from dpaudit.testing import assert_kills
from tests.raising import code
from tests.sent import batch


def test_an_audit_that_kills_every_bug_passes() -> None:
    kinds = ("scale-halved", "no-noise")
    result = assert_kills(batch, 0, 1, epsilon=1.0, samples=5_000, kinds=kinds)
    assert result.score == 1
    assert [mutant.kind for mutant, _ in result.judged] == list(kinds)


def test_an_audit_with_too_few_draws_fails() -> None:
    options = {"epsilon": 1.0, "samples": 100, "kinds": ("scale-halved",)}
    with pytest.raises(AssertionError, match="score 0 %"):
        assert_kills(batch, 0, 1, **options)  # type: ignore[arg-type]  # options of several types
    assert assert_kills(batch, 0, 1, min_score=0.0, **options).score == 0  # type: ignore[arg-type]


def test_bugs_that_were_not_run_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = Mutant("no-noise", "/m.py", 3, (), (), "", ("a",))
    judged = ((mutant, Judgement("killed", "a")), (mutant, Judgement("not run")))
    monkeypatch.setattr("dpaudit.testing.kills.mutated", lambda *_: Mutation(judged))
    with pytest.raises(AssertionError, match="1 not run"):
        assert_kills(batch, 0, 1, epsilon=1.0)


def test_what_is_refused() -> None:
    audited = partial(assert_kills, d1=0, d2=1, epsilon=1.0)
    assert code(audited, batch, kinds=("no-nois",)) == "option-invalid"
    assert code(audited, lambda x: x) == "not-picklable"
