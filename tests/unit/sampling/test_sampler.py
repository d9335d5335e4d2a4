"""Equal keys give equal draws in every process; misbehaviour of the mechanism is an error."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from dpaudit.attacks.learning import learn
from dpaudit.attacks.objective import Objective
from dpaudit.claims import ProfilePoint
from dpaudit.draws import pool
from dpaudit.errors import MechanismError
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.sampling.chunks import Chunk, Learning, Measure, ToCount, ToLearn, ToProbe
from dpaudit.sampling.sampler import Sampler
from dpaudit.targets.target import CallableTarget

PAIR = NeighbouringPair(0.0, 1.0)


def with_rng(x: float, rng: np.random.Generator) -> float:
    return x + float(rng.laplace())


def batch(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + rng.laplace(size=size)


def with_random(x: float) -> float:
    return x + random.expovariate(1.0)


def with_legacy(x: float) -> float:
    return x + float(np.random.laplace())


class Carries:
    """A mechanism with a generator of its own."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(5)

    def __call__(self, x: float) -> float:
        return x + float(self.rng.laplace())


def from_the_system(x: float) -> int:
    return int.from_bytes(os.urandom(4), "little")


CARRIES = Carries()
SEEDED: list[Callable[..., Any]] = [with_rng, batch, with_random, with_legacy, CARRIES]


def sampler(function: Callable[..., Any], pair: NeighbouringPair = PAIR, **more: Any) -> Sampler:
    return Sampler(CallableTarget(function=function), (pair,), 0, **more)


def numbers(drawn: Learning) -> list[float]:
    assert drawn.fresh is not None
    return numbers_of(drawn.fresh.release())


def test_a_key_decides_the_draws() -> None:
    for function in SEEDED:
        one = sampler(function)
        first = numbers(one.draw(ToLearn((0, 0, 1), 200)))
        other = numbers(one.draw(ToLearn((0, 0, 2), 200)))
        assert first == numbers(one.draw(ToLearn((0, 0, 1), 200)))
        assert first == numbers(sampler(function).draw(ToLearn((0, 0, 1), 200)))
        assert not set(first) & set(other)


def test_the_arms_never_share_their_noise() -> None:
    for function in SEEDED:
        same = NeighbouringPair(0.0, 0.0)
        drawn = numbers(sampler(function, same).draw(ToLearn((0, 0, 0), 2_000)))
        assert len(set(drawn)) == 2_000


def test_a_measured_chunk_is_tallied_with_coins_of_its_own() -> None:
    both: tuple[Callable[..., Any], ...] = (with_rng, batch)
    for function in both:
        one = sampler(function)
        fresh = one.draw(ToLearn((0, 0, 0), 4_000)).fresh
        rule = learn(fresh.release(), Objective(ProfilePoint(0.5, 0.0), 10_000)).portfolio
        drawn = one.draw(ToCount((0, 1, 0), 10_000, Measure(rule)))
        assert drawn.tally.draws == 10_000
        d1, d2 = drawn.tally.arms
        assert abs(d1 - d2) < 500
        assert drawn.tally.counts.shape == (rule.levels, 2)


def test_coins_decide_which_input_is_called_first() -> None:
    called: list[float] = []

    def noting(x: float, size: int, rng: np.random.Generator) -> Any:
        called.append(x)
        return batch(x, size, rng)

    def orders(chunks: Iterable[Chunk[Any]]) -> list[tuple[float, ...]]:
        found = []
        for chunk in chunks:
            called.clear()
            one.draw(chunk)
            found.append(tuple(called))
        return found

    one = sampler(noting)
    learning = orders(ToLearn((0, 0, number), 2_000) for number in range(40))
    assert set(learning) == {(0.0, 1.0), (1.0, 0.0)}
    # A small block has several calls for each input, in random order.
    mixed = orders(ToLearn((0, 0, number), 200) for number in range(40))
    assert {len(one) for one in mixed} == {8}
    assert len(set(mixed)) > 20
    selection = one.draw(ToLearn((0, 0, 0), 4_000)).fresh.release()
    measure = Measure(learn(selection, Objective(ProfilePoint(0.5, 0.0), 10_000)).portfolio)
    counting = orders(ToCount((0, 1, number), 2_000, measure) for number in range(40))
    assert set(counting) == {(0.0, 1.0), (1.0, 0.0)}


def _mutates(rows: Any) -> int:
    rows.append(1)
    return len(rows)


def _mutates_array(rows: Any) -> float:
    rows += 1
    return float(rows.sum())


@pytest.mark.parametrize(
    ("function", "d1", "d2"),
    [(_mutates, [1], [2]), (_mutates_array, np.zeros(3), np.ones(3))],
)
def test_changed_inputs_are_noticed(function: Callable[..., Any], d1: Any, d2: Any) -> None:
    with pytest.raises(MechanismError) as error:
        sampler(function, NeighbouringPair(d1, d2)).draw(ToLearn((0, 0, 0), 50))
    assert error.value.code == "input-changed"


def _fails_for_d2(x: float) -> float:
    if x:
        raise KeyError("gone")
    return x


def _ends(x: float) -> float:
    raise StopIteration


@pytest.mark.parametrize(
    ("function", "kind"), [(_fails_for_d2, "KeyError"), (_ends, "StopIteration")]
)
def test_exceptions_are_outcomes_and_counted(function: Callable[..., Any], kind: str) -> None:
    drawn = sampler(function).draw(ToLearn((0, 0, 0), 300))
    assert drawn.fresh is not None
    is_d1 = drawn.fresh.release().is_d1
    expected = (0 if function is _fails_for_d2 else int(is_d1.sum()), int((~is_d1).sum()))
    assert drawn.failures.counts == {kind: expected}
    assert drawn.fresh.size == 300


def test_a_large_chunk_is_drawn_in_parts() -> None:
    every: tuple[Callable[..., Any], ...] = (with_rng, batch, _fails_for_d2)
    for function in every:
        one = sampler(function)
        fresh = one.draw(ToLearn((0, 0, 0), 2_000)).fresh
        rule = learn(fresh.release(), Objective(ProfilePoint(0.5, 0.0), 10_000)).portfolio
        parts = ToCount((0, 1, 0), 10_000, Measure(rule), in_memory=3_000)
        drawn, whole = one.draw(parts), one.draw(ToCount((0, 1, 0), 3_000, Measure(rule)))
        assert len(drawn.heads) == 1
        assert drawn.tally.draws == 10_000
        assert (drawn.tally.counts >= whole.tally.counts).all()
        assert drawn.heads[0].keys.tolist() == whole.heads[0].keys.tolist()
        assert drawn.failures.total == (drawn.tally.arms[1] if function is _fails_for_d2 else 0)


class Counts:
    """A mechanism that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: float) -> int:
        self.calls += 1
        return self.calls


def test_a_probe_sees_what_a_seed_reaches() -> None:
    cases: list[tuple[Callable[..., Any], bool]] = [(one, True) for one in SEEDED]
    cases += [(from_the_system, False), (Counts(), False)]
    for function, reproducible in cases:
        probe = sampler(function).probe(ToProbe((0, 3, 0), 32))
        assert (probe.reproducible, probe.columns) == (reproducible, 1)


def test_released_draws_are_no_longer_fresh() -> None:
    fresh = sampler(with_rng).draw(ToLearn((0, 0, 0), 100)).fresh
    with pytest.raises(AttributeError):
        learn(fresh, Objective(ProfilePoint(1.0, 0.0), 100))  # type: ignore[arg-type]  # refused by the types
    first, all_of_it = fresh.release(30), fresh.release()
    assert (first.size, all_of_it.size) == (30, 100)
    both = pool([first, all_of_it])
    assert both.size == 130
    assert both.outcomes.columns[0].numbers[:30].tolist() == numbers_of(first)


def numbers_of(draws: Any) -> list[float]:
    return draws.outcomes.columns[0].numbers.tolist()  # type: ignore[no-any-return]  # of floats


def test_looks_divide_a_block_in_the_order_of_its_draws() -> None:
    fresh = sampler(with_rng).draw(ToLearn((0, 0, 0), 105)).fresh
    looks = fresh.looks(lambda outcomes: (outcomes.columns[0].numbers > 0).astype(np.intp), 2, 25)
    assert [look.draws for look in looks] == [25, 25, 25, 25, 5]
    released = fresh.release(25)
    positive = np.array(numbers_of(released)) > 0
    assert looks[0].counts[1].tolist() == [
        int((positive & released.is_d1).sum()),
        int((positive & ~released.is_d1).sum()),
    ]
