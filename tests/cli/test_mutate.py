"""`dpaudit mutate`: its exit codes, its reports, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from dpaudit.auditing.spec import AuditSpec
from dpaudit.mutating.judging import Judgement
from dpaudit.mutating.mutants import Mutant
from dpaudit.mutating.scoring import Mutation

AUDITS = """
version: 1
defaults: {d1: 0, d2: 1, claim: {epsilon: 1}}
audits:
  - {name: a, mechanism: "math:sqrt"}
  - {name: b, mechanism: "math:cos"}
"""
MUTANT = Mutant("no-noise", "/m.py", 3, ("return x + noise",), ("return x",), "", ("a",))


class Request:
    """What the command asks for; `result` is what it gets."""

    result = Mutation(((MUTANT, Judgement("killed", "a")), (MUTANT, Judgement("missed", "a"))))
    names: Sequence[str] = ()
    kinds: Collection[str] = ()
    seconds = 0.0


@pytest.fixture(autouse=True)
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Request:
    request_ = Request()

    def mutated(
        specs: Sequence[AuditSpec],
        kinds: Collection[str],
        seconds: float,
        on_step: Callable[[str], None],
    ) -> Mutation:
        request_.names, request_.kinds, request_.seconds = [s.name for s in specs], kinds, seconds
        on_step("a step")
        return request_.result

    monkeypatch.setattr("dpaudit.mutating.scoring.mutated", mutated)
    (tmp_path / "audits.yaml").write_text(AUDITS)
    monkeypatch.chdir(tmp_path)
    return request_


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), 0),
        (("--min-score", "0.5"), 0),
        (("--min-score", "0.51", "-q"), 1),
    ],
)
def test_a_score_below_the_least_one_is_a_failure(
    dpaudit: Any, words: tuple[str, ...], code: int
) -> None:
    result = dpaudit("mutate", "audits.yaml", *words)
    assert result.exit_code == code
    assert result.stdout.startswith("score 50 %")
    assert result.stderr == ("" if "-q" in words else "a step\n")


KILLED = MUTANT, Judgement("killed")


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (Mutation((KILLED,), left_out=(("b", "no code"),)), 0),
        (Mutation((KILLED, (MUTANT, Judgement("not run")))), 4),
        (Mutation((KILLED,), left_out=(("b", "?"),), failed=("b",)), 4),
        (Mutation(((MUTANT, Judgement("invalid")),)), 4),
    ],
)
def test_a_least_score_is_not_reached_by_a_part(
    dpaudit: Any, request_: Request, result: Mutation, code: int
) -> None:
    request_.result = result
    assert dpaudit("mutate", "audits.yaml", "--min-score", "1").exit_code == code


def test_what_is_asked_for(dpaudit: Any, request_: Request) -> None:
    words = ("-k", "b", "--kinds", "no-noise, fixed-seed", "--time", "2m")
    assert dpaudit("mutate", "audits.yaml", *words).exit_code == 0
    assert (request_.names, request_.kinds) == (["b"], ("no-noise", "fixed-seed"))
    assert request_.seconds == 120.0
    assert dpaudit("mutate", "math:sqrt", "--d1", 0, "--d2", 1, "--epsilon", 1).exit_code == 0
    assert request_.names == ["sqrt"]
    assert dpaudit("mutate", "audits.yaml", "-k", "c").exit_code == 5


def test_reports_are_written_to_their_files(dpaudit: Any, tmp_path: Path) -> None:
    files = ("--report", "html:m.html", "--report", "junit:m.xml", "--json", "-")
    result = dpaudit("mutate", "audits.yaml", *files)
    assert json.loads(result.stdout)["score"] == 0.5
    assert (tmp_path / "m.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "m.xml").read_text().startswith("<?xml")


PAIR = ("--d1", "0", "--d2", "1", "--epsilon", "1")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("audits.yaml", "--kinds", "no-nois"), "option-invalid"),
        (("audits.yaml", "--min-score", "80"), "option-invalid"),
        (("audits.yaml", "--min-score", "nan"), "option-invalid"),
        (("audits.yaml", "--time", "soon"), "option-invalid"),
        (("audits.yaml", "--report", "pdf:x"), "option-invalid"),
        (("audits.yaml", "--json", "nowhere/m.json"), "cannot-write"),
        (("audits.yaml", "--json", "m.py"), "cannot-write"),
        (("m.py:f", *PAIR, "--report", "html:./m.py"), "cannot-write"),
        (("audits.yaml", "--json", "audits.yaml"), "cannot-write"),
        (("audits.yaml", "--json", "x", "--report", "junit:./x"), "options-conflict"),
        (("m.py:f", *PAIR, "--json", "-", "--report", "junit"), "options-conflict"),
        (("m.py:g", *PAIR), "name-not-found"),
        (("m.py",), "import-path-invalid"),
    ],
)
def test_requests_are_refused(
    refused: Any, tmp_path: Path, words: tuple[str, ...], code: str | None
) -> None:
    (tmp_path / "m.py").write_text("def f(x):\n    return x\n")
    (tmp_path / "audits.yaml").write_text(AUDITS.replace("math:sqrt", "m.py:f"))
    assert refused("mutate", *words)[0] == code
