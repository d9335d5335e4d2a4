"""Judgements of planted bugs are true: bugs that leak are not called harmless, and what is
harmless is not called a leak."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.mutants import ROOT, audits, known
from dpaudit.auditing.spec import AuditSpec
from dpaudit.claims import PureDP
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.mutating.judging import Baseline, baseline, judgement
from dpaudit.mutating.scoring import mutated
from dpaudit.mutating.spaces import space_of
from dpaudit.targets.target import CallableTarget

Array = NDArray[Any]


@pytest.mark.parametrize(
    ("file", "samples"),
    [
        ("configs/quickstart.yaml", 20_000),
        # Too few draws to kill: traces and searches must tell.
        ("configs/quickstart.yaml", 400),
        ("configs/seeds/001-gaussian.yaml", 1_000),
    ],
)
def test_no_bug_that_leaks_on_the_pair_is_called_harmless(file: str, samples: int) -> None:
    specs = audits(ROOT / Path(file), samples)
    bugs = list(known(mutated(specs), specs))
    assert {bug.mutant.kind for bug in bugs if bug.excess >= 1.5} >= {"scale-halved", "no-noise"}
    assert [bug for bug in bugs if bug.is_wrong] == []


def test_the_number_of_draws_that_a_missed_bug_needs_kills_it() -> None:
    file = ROOT / "configs" / "seeds" / "002-laplace.yaml"
    missed = [
        (mutant.audits[0], judgement.draws)
        for mutant, judgement in mutated(audits(file, 300), ("scale-halved",)).judged
        if judgement.answer == "missed"
    ]
    assert len(missed) == 1
    for name, draws in missed:
        assert draws is not None
        assert draws > 300
        specs = [spec for spec in audits(file, draws) if spec.name == name]
        (bug,) = mutated(specs, ("scale-halved",)).judged
        assert bug[1].answer == "killed"


def spec_of(function: Callable[..., Any], d1: Any, d2: Any) -> AuditSpec:
    spec = AuditSpec(
        name="a",
        target=CallableTarget(function=function),
        pairs=(NeighbouringPair(d1, d2, Adjacency("add-remove")),),
        claim=PureDP(1.0),
        no_trace=True,
    )
    return replace(spec, sampling=replace(spec.sampling, samples=10_000))


def noisy_max(rows: list[int], size: int, rng: np.random.Generator) -> Array:
    """The index of the largest noisy count, which costs as much as one of the three noises."""
    counts = [sum(row == value for row in rows) for value in range(3)]
    return np.asarray(np.argmax(counts + rng.laplace(scale=1, size=(size, 3)), axis=1))


def two_counts(rows: list[int], size: int, rng: np.random.Generator) -> Array:
    """Two counts that move together, of which the sum is the claim."""
    counts = np.array([len(rows), len(rows)])
    return counts + rng.laplace(scale=2, size=(size, 2))


def unclipped_sum(rows: list[float], size: int, rng: np.random.Generator) -> Array:
    """Keeps its claim for records in [0, 1] alone."""
    return np.asarray(sum(rows) + rng.laplace(scale=1, size=size))


def first_above(answers: list[int], rng: np.random.Generator) -> int:
    """The sparse vector technique: answers that are compared with one threshold."""
    threshold = 3 + rng.laplace(scale=2)
    above = (n for n, answer in enumerate(answers) if answer + rng.laplace(scale=4) >= threshold)
    return next(above, -1)


def test_the_sum_over_values_that_are_only_compared_is_no_leak() -> None:
    spec = spec_of(first_above, [-9] * 6, [-10] * 6)
    base = baseline(replace(spec, pairs=(replace(spec.pairs[0], adjacency=Adjacency("linf", 1)),)))
    assert "sum" in base.known
    assert judgement([replace(base, known=frozenset())]).answer == "not shown to be a leak"


@pytest.mark.parametrize(
    ("function", "d1", "d2"),
    [(noisy_max, [0, 1, 2], [0, 1]), (two_counts, [1, 1], [1]), (unclipped_sum, [1, 0.5], [0.5])],
)
def test_a_mechanism_without_a_bug_is_not_shown_to_leak(
    function: Callable[..., Any], d1: Any, d2: Any
) -> None:
    base = baseline(spec_of(function, d1, d2))
    assert base.left_out == ""
    assert judgement([base]).answer == "not shown to be a leak"


def averaged(rows: list[int], size: int, rng: np.random.Generator, scale: float = 2) -> Array:
    """The mean of two noisy counts: with scale 1, the first alone still makes it 1-DP."""
    first = len(rows) + rng.laplace(scale=scale, size=size)
    second = len(rows) + rng.laplace(scale=2, size=size)
    return np.asarray((first + second) / 2)


def with_scale(base: Baseline, scale: float) -> Baseline:
    target = CallableTarget(function=partial(averaged, scale=scale))
    return replace(base, spec=replace(base.spec, target=target))


def test_the_sum_over_lines_is_no_leak_and_one_line_above_the_claim_is() -> None:
    base = baseline(spec_of(averaged, [1, 1], [1]))
    harmless = judgement([with_scale(base, 1.0)])
    assert (harmless.answer, harmless.audit) == ("not shown to be a leak", "a")
    few = replace(base.spec, sampling=replace(base.spec.sampling, samples=200))
    assert judgement([with_scale(replace(base, spec=few), 0.5)]).answer == "missed"


def test_the_twin_that_forgets_what_a_trace_says_without_a_bug_sees_a_leak() -> None:
    base = baseline(spec_of(partial(averaged, scale=0.5), [1, 1], [1]))
    assert judgement([base]).answer == "not shown to be a leak"
    forgetful = replace(base, known=frozenset())
    assert judgement([forgetful]).answer == "missed"


def test_the_twin_that_searches_where_the_mechanism_leaks_without_a_bug_sees_a_leak() -> None:
    spec = spec_of(unclipped_sum, [1, 0.5], [0.5])
    wide, narrow = space_of(spec)
    base = baseline(spec)
    assert base.search == narrow
    twin: Baseline = replace(base, search=wide)
    assert judgement([twin]).answer == "missed"
