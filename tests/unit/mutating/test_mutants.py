"""Which mutants a file has: each bug once, in code that an audit runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpaudit.mutating.mutants import Reach, mutants

TEXT = """\
import numpy as np

RNG = np.random.default_rng()
OTHER = np.random.default_rng()


def ε(x):
    return x + RNG.laplace(scale=1)  # « the noise »


def unused(x):
    return x + OTHER.laplace(scale=2)


@decorated(scale=3)
def third(x):
    return x
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "m.py").write_text(TEXT, encoding="utf-8")
    return str(tmp_path / "m.py")


def test_bugs_are_planted_only_in_code_that_an_audit_runs(file: str) -> None:
    reach = Reach(frozenset({(file, 7), (file, 15)}), frozenset({"RNG", "ε", "third"}))
    assert [(mutant.kind, mutant.line) for mutant in mutants([("a", reach)])] == [
        ("scale-halved", 8),
        ("no-noise", 8),
        ("fixed-seed", 3),
        ("scale-from-data", 8),
    ]


def test_a_mutant_names_its_audits_and_its_lines_and_keeps_the_rest(file: str) -> None:
    reaches = [
        ("a", Reach(frozenset({(file, 7)}))),
        ("b", Reach(frozenset({(file, 11)}))),
        ("c", Reach(frozenset({(file, 7), (file, 11)}))),
    ]
    first, second = mutants(reaches, ["scale-halved"])
    assert (first.audits, second.audits) == (("a", "c"), ("b", "c"))
    assert first.old == ("    return x + RNG.laplace(scale=1)  # « the noise »",)
    assert first.new == ("    return x + RNG.laplace(scale=0.5 * 1)  # « the noise »",)
    assert first.source == TEXT.replace("scale=1", "scale=0.5 * 1")
    assert Path(file).read_text(encoding="utf-8") == TEXT


def test_a_bug_of_two_kinds_is_planted_once(tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text("def f(x, rng):\n    return 1 / (len(x) + rng.laplace(scale=1))\n")
    reach = Reach(frozenset({(str(file), 1)}))
    kinds = [mutant.kind for mutant in mutants([("a", reach)], ["no-noise", "count-is-exact"])]
    assert kinds == ["count-is-exact"]
