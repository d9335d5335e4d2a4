"""Several runs on one input as one output: drawn as such, and the claim follows by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.adapters.loading import Repetition, load_mechanism
from dpaudit.attacks.additive import additive, exchangeable
from dpaudit.config.building import build_spec
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import Candidate
from dpaudit.outcomes import Raised, from_raw
from dpaudit.targets.target import CallableTarget, ComposedTarget, repeated

Rng = np.random.Generator
RESPONSE = "mechanisms.randomized_response:randomized_response"


def drawn(function: Any, dataset: Any, size: int, times: int, **how: Any) -> Any:
    target = repeated(CallableTarget(function=function, **how), times)
    return load_mechanism(target).sample(dataset, size, np.random.default_rng(0))


def numbers(x: int, size: int, rng: Rng) -> Any:
    return x + np.arange(size)


def vectors(x: int, size: int, rng: Rng) -> Any:
    return x + np.arange(2 * size).reshape(size, 2)


def texts(x: int, size: int, rng: Rng) -> Any:
    return [f"{x}{index}" for index in range(size)]


def test_runs_are_drawn_in_one_batch_and_split() -> None:
    assert drawn(numbers, 10, 2, 3).tolist() == [[10, 11, 12], [13, 14, 15]]
    assert drawn(vectors, 0, 2, 2).tolist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
    assert drawn(texts, 5, 2, 2) == [("50", "51"), ("52", "53")]
    assert drawn(numbers, 1, 2, 2, post_process=lambda y: -y) == [(-1, -2), (-3, -4)]
    assert len(drawn(numbers, 0, 0, 3)) == 0


def test_single_draws_take_turns_within_an_input() -> None:
    calls: list[int] = []

    def counted(x: int) -> int:
        calls.append(x)
        return len(calls)

    mechanism = load_mechanism(repeated(CallableTarget(function=counted), 2))
    assert mechanism.sample_each([7, 8, 7], np.random.default_rng(0)) == [(1, 2), (3, 4), (5, 6)]
    assert calls == [7, 7, 8, 8, 7, 7]


def test_the_first_exception_is_the_outcome_of_all_runs() -> None:
    runs = iter([1, 0, 2, 3, 0, 0])

    def sometimes(x: int) -> int:
        run = next(runs)
        if run == 0:
            raise ValueError("zero")
        return run

    outputs = drawn(sometimes, 0, 3, 2)
    assert outputs == [Raised("ValueError", "zero"), (2, 3), Raised("ValueError", "zero")]


def test_a_composition_is_repeated_as_a_whole() -> None:
    parts = (CallableTarget(function=numbers),) * 2
    mechanism = load_mechanism(repeated(ComposedTarget(parts=parts), 2))
    assert isinstance(mechanism, Repetition)
    outputs = mechanism.sample(0, 2, np.random.default_rng(0))
    assert np.array(outputs).tolist() == [[[0, 0], [1, 1]], [[2, 2], [3, 3]]]


@pytest.mark.parametrize(
    ("claim", "repeat", "expected"),
    [
        (dpaudit.ApproximateDP(0.5, 0.01), 4, dpaudit.ApproximateDP(2.0, 0.04)),
        (dpaudit.GaussianDP(0.5), 4, dpaudit.GaussianDP(1.0)),
        (dpaudit.ZeroConcentratedDP(0.1), 2, dpaudit.ZeroConcentratedDP(0.2)),
        (dpaudit.ProbabilisticDP(0.5, 0.01), 2, dpaudit.ApproximateDP(1.0, 0.02)),
    ],
)
def test_every_definition_composes(claim: Any, repeat: int, expected: Any) -> None:
    settings = {"mechanism": RESPONSE, "d1": 0, "d2": 1, "repeat": repeat}
    parameters = {"definition": claim.key, **claim.parameters()}
    assert build_spec({**settings, "claim": parameters}).tested == expected


def shifted(seed: int, size: int) -> SelectionDraws:
    """Return draws of fifty runs of Laplace noise, which by themselves are of ε = 0.05."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    runs = rng.laplace(scale=20.0, size=(size, 50)) + np.where(is_d1, 0.0, 1.0)[:, None]
    return SelectionDraws(from_raw(runs), is_d1)


def area(scores: Any, is_d1: Any) -> float:
    """Return the probability that a draw of d1 has a larger score than one of d2."""
    rank = np.argsort(np.argsort(scores))
    d1 = int(is_d1.sum())
    return float((rank[is_d1].sum() - d1 * (d1 - 1) / 2) / (d1 * (len(scores) - d1)))


def held_out(candidates: list[Candidate], fresh: SelectionDraws) -> float:
    assert candidates[0].scored is not None
    return area(candidates[0].scored.final_score()(fresh.outcomes), fresh.is_d1)


def test_runs_are_pooled_to_learn_one_score() -> None:
    """The optimal score, the sum of the true log-ratios, has an area of 0.597."""
    learned, fresh = shifted(1, 4_000), shifted(2, 100_000)
    pooled, separate = (held_out(attack(learned), fresh) for attack in (exchangeable, additive))
    values = np.stack([column.numbers for column in fresh.outcomes.columns])
    best = area(np.sum(np.abs(values - 1) - np.abs(values), axis=0), fresh.is_d1)
    assert best == pytest.approx(0.597, abs=0.005)
    assert pooled > best - 0.012
    assert separate < pooled - 0.01
