"""Planted leaks have the stated size on the stated pair, and their correct counterparts have none.

Seeds are fixed. With random seeds, comparisons of frequencies at six standard errors would fail for
correct code with a probability of less than 10⁻⁷. validity/test_planted.py has the whole audits.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.import_path import resolve
from mechanisms.neighbours.planted import PLANTED, Planted

BY_NAME = {one.name: one for one in PLANTED}

NAN, INF = math.nan, math.inf


# Awkward pairs, by an enumeration that knows no code of the package.

# The first five of each are audited, all are in the exact tests.
NUMBERS: Sequence[Any] = (
    NAN, None, 1e308, -INF, 2**63 - 1, INF, -1e308, 5e-324, -0.0, 0, -(2**63), 10**400, -(10**400),
    True, -10.0, 0.5, 1.0, 5.0, 30.0, 100.0, 20_000, "text",
)  # fmt: skip


TEXTS: Sequence[Any] = ("", 10 * "🙂", None, 1000 * "é", "\ud800", "a", "red", 3, NAN, 10**400)


USERS: Sequence[Any] = ("Bo", None, NAN, "", 1, True, 10**400)


CITIES: Sequence[Any] = ("Oslo", "Rome", "rome", "ROME", " rome ", "Paris", "", None, NAN, 3)


def odd_records(planted: Planted) -> list[Any]:
    """Return records that the space has not foreseen, or hardly."""
    usual = planted.harmless[1][-1]
    if not isinstance(usual, dict):
        return list(NUMBERS if isinstance(usual, float | int) else TEXTS)
    values = {"answer": [*TEXTS, "yes", "no"]}
    odd = [
        {**usual, column: value}
        for column in usual
        for value in itertools.islice(values.get(column, NUMBERS), 30)
    ]
    # Both columns by turns, so that the first five are of either.
    half = len(odd) // 2
    return [
        records
        for pair in itertools.zip_longest(odd[:half], odd[half:])
        for records in pair
        if records
    ]


def pairs_with(planted: Planted, odd: Any) -> Iterator[tuple[Any, Any]]:
    usual = planted.harmless[1][-1]
    hosts: list[list[Any]] = [
        [],
        [usual],
        2 * [usual],
        list(planted.d1),
        [odd],
        3 * [odd],
        [None, None, usual],
    ]
    for host in hosts:
        if isinstance(usual, dict) and None in host:
            continue
        if planted.adjacency == "add-remove":
            yield host, [*host, odd]
            yield [odd, *host], host
        else:
            yield [*host, odd], [*host, usual]
            yield [planted.d2[-1], *host], [odd, *host]


def records_of_users() -> list[list[dict[str, Any]]]:
    """Return records of one user each: of one city, of two, of all that are known."""
    cities = [*[(city,) for city in CITIES], ("Oslo", "Rome"), ("Rome", "ROME"), CITIES[:4], CITIES]
    return [
        times * [{"who": who, "city": city} for city in some]
        for who in USERS
        for some in cities
        for times in (1, 3)
    ]


def pairs_of_users() -> list[tuple[Any, Any]]:
    ada = [{"who": "Ada", "city": city} for city in CITIES]
    hosts: list[list[Any]] = [[], ada[:1], ada]
    return [(host, [*host, *rows]) for rows in records_of_users() for host in hosts]


def pairs_of_answers(length: int) -> list[tuple[Any, Any]]:
    """Return one odd answer that stays, among others that move by 1 up and down."""
    odd = (NAN, INF, 1e308, -INF, None, 5e-324, -0.0, 10**400, -5.0)
    moves = [(-1) ** index for index in range(length - 1)]
    return [
        (
            [value, *(base - move / 2 for move in moves)],
            [value, *(base + move / 2 for move in moves)],
        )
        for base in (5.0, 10.0, 0.0)
        for value in odd
    ]


def awkward(planted: Planted) -> list[tuple[Any, Any]]:
    if planted.adjacency == "linf:1":
        return pairs_of_answers(len(planted.d1))
    if planted.adjacency == "user:who":
        return pairs_of_users()
    return [pair for odd in odd_records(planted) for pair in pairs_with(planted, odd)]


def five(planted: Planted) -> list[tuple[Any, Any]]:
    """Return awkward pairs to audit, no two alike: other odd values, in other hosts."""
    if planted.adjacency == "linf:1":
        return awkward(planted)[:5]
    if planted.adjacency == "user:who":
        both = [(host, more) for host, more in awkward(planted) if len(more) - len(host) >= 4]
        return both[:: len(both) // 4][:5]
    odd = odd_records(planted)[:5]
    return [list(pairs_with(planted, one))[2 * place] for place, one in enumerate(odd)]


def ids(planted: Planted) -> str:
    return planted.name


each = pytest.mark.parametrize("planted", PLANTED, ids=ids)


def are_neighbours(d1: Any, d2: Any, adjacency: str) -> bool:
    if adjacency == "linf:1":
        return len(d1) == len(d2) and max(abs(a - b) for a, b in zip(d1, d2, strict=True)) <= 1
    one, other = Counter(map(repr, d1)), Counter(map(repr, d2))
    less, more = sorted([(one - other).total(), (other - one).total()])
    if adjacency == "user:who":
        longer, shorter = (d1, d2) if len(d1) > len(d2) else (d2, d1)
        users = {row["who"] for row in longer} - {row["who"] for row in shorter}
        return len(users) == 1 and not less
    return (less, more) == ((0, 1) if adjacency == "add-remove" else (1, 1))


@each
def test_the_witness_breaks_the_claim_and_is_a_pair_of_neighbours(planted: Planted) -> None:
    assert planted.truth > (planted.delta or planted.epsilon)
    assert are_neighbours(planted.d1, planted.d2, planted.adjacency)
    assert are_neighbours(*planted.harmless, planted.adjacency)
    needs_many = planted.adjacency == "linf:1" or planted.name == "many-rarely-pass"
    assert len(planted.d2) <= 3 or needs_many


@each
def test_a_correct_one_raises_for_nothing(planted: Planted) -> None:
    correct, rng = resolve(planted.correct), np.random.default_rng(0)
    for pair in awkward(planted):
        for dataset in pair:
            assert len(draws(correct, dataset, 2, rng)) == 2


def draws(function: Callable[..., Any], dataset: Any, size: int, rng: np.random.Generator) -> Any:
    if function.__name__ in ("raises_for_nan", "nan_counts_as_zero"):
        return [function(dataset, rng=rng) for _ in range(size)]
    return function(dataset, size=size, rng=rng)


# What is Laplace noise on numbers is known exactly, from the numbers and their scales.


class Centres:
    """Stands in for the noise of a mechanism, and keeps what it would have been added to."""

    def __init__(self, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.function = resolve(path)
        self.seen: list[tuple[Any, float]] = []
        module = import_module(path.partition(":")[0])
        monkeypatch.setattr(module, "noisy", self.kept, raising=False)
        if hasattr(module, "_hundredths"):
            monkeypatch.setattr(module, "_hundredths", self.kept_hundredths)

    def kept(self, centre: Any, scale: float, size: int, rng: Any) -> Any:
        self.seen.append((np.asarray(centre, dtype=np.float64), scale))
        return np.zeros((size, *np.shape(centre)))

    def kept_hundredths(self, total: int, epsilon: float, rng: Any) -> float:
        self.seen.append((np.asarray(float(total)), 100 / epsilon))
        return 0.0

    def of(self, dataset: Any) -> list[tuple[Any, float]]:
        self.seen = []
        draws(self.function, dataset, 1, np.random.default_rng(0))
        return self.seen

    def epsilon(self, d1: Any, d2: Any) -> float:
        """Return the distance of the numbers in scales, the exact ε of their release."""
        ours, theirs = self.of(d1), self.of(d2)
        assert [scale for _, scale in ours] == [scale for _, scale in theirs]
        distance = 0.0
        for (a, scale), (b, _) in zip(ours, theirs, strict=True):
            moved = a != b  # infinite ones may stay where they are
            distance += float(np.abs(a[moved] - b[moved]).sum()) / scale
        return distance


NO_LAPLACE = {"ties-have-a-length", "at-least-the-largest"}
ON_NUMBERS = [one for one in PLANTED if one.adjacency != "linf:1" and one.name not in NO_LAPLACE]


@pytest.mark.parametrize("planted", ON_NUMBERS, ids=ids)
def test_a_correct_one_keeps_its_claim_on_every_awkward_pair(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    centres = Centres(planted.correct, monkeypatch)
    found = [centres.epsilon(d1, d2) for d1, d2 in awkward(planted)]
    assert len(found) > 60
    assert 0 < max(found) <= planted.epsilon * (1 + 1e-9)
    assert centres.epsilon(planted.d1, planted.d2) <= planted.epsilon * (1 + 1e-9)


FINITE = [one for one in ON_NUMBERS if math.isfinite(one.truth)]


@pytest.mark.parametrize("planted", FINITE, ids=ids)
def test_the_same_pairs_show_that_a_broken_one_does_not(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    centres = Centres(planted.broken, monkeypatch)
    with np.errstate(over="ignore"):
        found = [centres.epsilon(d1, d2) for d1, d2 in awkward(planted)]
    assert max(found) > 1.4 * planted.epsilon


@pytest.mark.parametrize("planted", FINITE, ids=ids)
def test_the_truth_of_a_broken_one(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    centres = Centres(planted.broken, monkeypatch)
    assert centres.epsilon(planted.d1, planted.d2) == pytest.approx(planted.truth, rel=1e-12)
    assert centres.epsilon(*planted.harmless) <= planted.epsilon * (1 + 1e-9)


def frequency(planted: Planted, dataset: Any, event: Callable[[Any], Any]) -> float:
    drawn = draws(resolve(planted.broken), dataset, 100_000, np.random.default_rng(5))
    return float(np.mean(event(drawn)))


def six(probability: float) -> float:
    """Return six standard errors of a frequency of 100,000 draws."""
    return 6 * math.sqrt(probability * (1 - probability) / 100_000)


NEVER: dict[str, Callable[[Any], Any]] = {
    "empty-is-exact": np.isnan,
    "only-what-was-seen": lambda drawn: drawn.shape[1] == 2,
    "noise-not-refreshed": lambda drawn: drawn == 1,
    "largest-rarely-passes": lambda drawn: drawn == 0.3,
    "largest-often-passes": lambda drawn: drawn == 0.3,
    "many-rarely-pass": lambda drawn: drawn == math.fsum(21 * [0.3]),
}
PASSES = {"largest-rarely-passes": 0.01, "largest-often-passes": 0.25, "many-rarely-pass": 0.01}


@pytest.mark.parametrize("name", NEVER)
def test_what_one_input_never_gives(name: str) -> None:
    planted, event = BY_NAME[name], NEVER[name]
    assert planted.truth == INF
    found = sorted(frequency(planted, one, event) for one in (planted.d1, planted.d2))
    assert found[0] == 0
    expected = PASSES.get(name)
    assert found[1] > 0.05 if expected is None else abs(found[1] - expected) < six(expected)


@pytest.mark.parametrize("name", [name for name in PASSES if name != "many-rarely-pass"])
def test_values_that_pass_at_the_bounds_use_exactly_the_claim(name: str) -> None:
    """P(1) is (1 + p)/2 on [1] and (1 - p) e^{-1/scale}/2 on [0], whose ratio is e."""
    planted, share = BY_NAME[name], PASSES[name]
    at_one = (1 + share) / 2
    for dataset, expected in zip(planted.harmless, (at_one / math.e, at_one), strict=True):
        found = frequency(planted, dataset, lambda drawn: drawn == 1)
        assert found == pytest.approx(expected, abs=six(expected))


def test_the_one_that_raises() -> None:
    planted, rng = BY_NAME["raises-for-nan"], np.random.default_rng(0)
    broken = resolve(planted.broken)
    with pytest.raises(ValueError, match="NaN"):
        broken(planted.d2, rng=rng)
    for value in NUMBERS[1:]:
        broken([value], rng=rng)


def test_the_scale_of_the_slope_depends_on_the_data() -> None:
    planted = BY_NAME["bound-read-twice"]
    broken = resolve(planted.broken)
    for dataset, squares in ((planted.d1, 2), (planted.d2, 101)):
        drawn = broken(dataset, size=20_000, rng=np.random.default_rng(3))
        assert stats.kstest(drawn, stats.laplace(scale=20 / squares).cdf).pvalue > 1e-9


def test_the_truth_of_ties() -> None:
    planted = BY_NAME["ties-have-a-length"]
    at_tie = (1 + math.exp(-1)) / (10 * math.exp(-1) + 0.25)
    assert planted.truth == pytest.approx(math.log(10 * at_tie), rel=1e-12)
    assert planted.truth == pytest.approx(1.2475, abs=5e-5)
    for dataset, density in ((planted.d1, 0.1), (planted.d2, at_tie)):
        found = frequency(planted, dataset, lambda y: (y > 5) & (y <= 5.25))
        assert found == pytest.approx(density / 4, abs=six(density / 4))


@pytest.mark.parametrize("dataset", [[], [5.0], [5.0, 5.0], [0.0, 2.0, 2.0, 2.0, 9.0], [NAN, INF]])
def test_the_law_of_the_median(dataset: list[float]) -> None:
    """Density e^{-|#{x < y} - n/2|}, whose log moves by ½ at each record and by ½ with n."""
    inside = [min(max(one, 0.0), 10.0) if one == one else 0.0 for one in dataset]

    def density(y: float) -> float:
        return math.exp(-abs(sum(x < y for x in inside) - len(inside) / 2))

    edges = np.arange(0, 10.5, 0.5)
    masses = np.array([density(edge + 0.25) for edge in edges[:-1]])
    correct = resolve(BY_NAME["ties-have-a-length"].correct)
    drawn = correct(dataset, size=100_000, rng=np.random.default_rng(7))
    counts, _ = np.histogram(drawn, edges)
    assert stats.chisquare(counts, 100_000 * masses / masses.sum()).pvalue > 1e-9


def test_the_truth_of_a_partition() -> None:
    planted = BY_NAME["at-least-the-largest"]
    named = [
        frequency(planted, one, lambda drawn: [len(names) for names in drawn])
        for one in (planted.d1, planted.d2)
    ]
    assert named == pytest.approx([0.0, planted.truth], abs=six(0.5))
    correct = resolve(planted.correct)
    drawn = correct(planted.d2, size=100_000, rng=np.random.default_rng(1))
    assert np.mean([len(one) for one in drawn]) == pytest.approx(planted.delta, abs=six(0.01))


def test_the_truth_of_noisy_max() -> None:
    planted = BY_NAME["noise-for-one-direction"]
    rises = 0.2 * math.exp(-planted.truth)
    for dataset, probability in ((planted.d1, 0.2), (planted.d2, rises)):
        found = frequency(planted, dataset, lambda winner: winner == 0)
        assert found == pytest.approx(probability, abs=six(probability))


def test_the_truth_of_a_threshold_without_noise() -> None:
    planted = BY_NAME["threshold-without-noise"]
    none = {5.0: 0.5**5, 6.0: (math.exp(-0.5) / 2) ** 5}
    assert planted.truth == pytest.approx(math.log(none[5.0] / none[6.0]), rel=1e-12)
    for dataset in (planted.d1, planted.d2):
        found = frequency(planted, dataset, lambda first: first == 5)
        assert found == pytest.approx(none[dataset[0]], abs=six(none[dataset[0]]))


def above(t: float, scale: float) -> float:
    """Return the probability that Laplace noise exceeds t."""
    return math.exp(-t / scale) / 2 if t > 0 else 1 - math.exp(t / scale) / 2


def chance(answers: Sequence[float], outcome: Sequence[bool]) -> float:
    """Integrate over the noise of the threshold: which answers are above it?"""

    def integrand(z: float) -> float:
        over = [above(5 + z - one, 8 / 3) for one in answers]
        each_one = [p if is_above else 1 - p for p, is_above in zip(over, outcome, strict=True)]
        return math.exp(-abs(z) / 4) / 8 * math.prod(each_one)

    kinks = sorted({0.0, *(one - 5 for one in answers)})
    return math.fsum(
        integrate.quad(integrand, low, high, epsabs=0, epsrel=1e-8)[0]
        for low, high in itertools.pairwise([-100.0, *kinks, 100.0])
    )


def equal_to(outcome: Sequence[bool]) -> Callable[[Any], Any]:
    return lambda drawn: (drawn == outcome).all(axis=1)


def test_the_truth_of_answers_without_end() -> None:
    """The 256 outputs have 25 chances: how many of the first and of the last four are above."""
    planted, ratios = BY_NAME["budget-ignored"], {}
    for first, last in itertools.product(range(5), range(5)):
        outcome = [place < first for place in range(4)] + [place < last for place in range(4)]
        p, q = chance(planted.d1, outcome), chance(planted.d2, outcome)
        ratios[first, last] = math.log(q / p)
        if (first, last) == (4, 0):
            found = frequency(planted, planted.d2, equal_to(outcome))
            assert found == pytest.approx(q, abs=six(q))
    assert max(map(abs, ratios.values())) == pytest.approx(planted.truth, rel=1e-9)
    assert ratios[4, 0] == pytest.approx(planted.truth, rel=1e-9)


def test_the_law_of_the_first_above() -> None:
    answers = [4.0, 6.0, 5.0]
    correct = resolve(BY_NAME["budget-ignored"].correct)
    drawn = correct(answers, size=100_000, rng=np.random.default_rng(2))
    for first in range(4):
        before = [False] * first
        seen = answers[: first + 1]
        expected = chance(seen, [*before, True] if first < 3 else before)
        assert np.mean(drawn == first) == pytest.approx(expected, abs=six(expected))
