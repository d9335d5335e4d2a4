"""Claims of OpenDP and python-dp, which every environment has, and requests that are refused."""

from __future__ import annotations

import functools
import math
import sys
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest

from dpaudit.adapters.asking import library_claim
from dpaudit.claims import ApproximateDP, ProfileDP, PureDP, ZeroConcentratedDP
from dpaudit.config.building import build_spec
from dpaudit.inputs.adjacency import parse_adjacency
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.library_claims import NoClaim, Question, ask, opendp
from dpaudit.library_claims.answers import DELTAS, edits, exchanged, norm
from dpaudit.targets.target import (
    CallableTarget,
    CommandTarget,
    ComposedTarget,
    ImportedTarget,
    IsolatedTarget,
    repeated,
)
from mechanisms import opendp_laplace
from tests.raising import code

INTEGERS = "mechanisms.opendp_laplace:integers"


@pytest.fixture(scope="module")
def integers() -> Any:
    return opendp_laplace.integers(scale=3.0)


@pytest.fixture(scope="module")
def gaussian() -> Any:
    """OpenDP's Gaussian mechanism with a standard deviation of 2."""
    import opendp.domains as domains
    import opendp.measurements as measurements
    import opendp.metrics as metrics
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = domains.vector_domain(domains.atom_domain(T=float, nan=False))
    made: Any = measurements.make_gaussian(domain, metrics.l2_distance(T=float), scale=2.0)
    return made


def target(function: Any, **more: Any) -> CallableTarget:
    return CallableTarget(function=function, **more)


def asked(function: Any, *pairs: tuple[Any, Any], **more: Any) -> Any:
    """Return the claim that the library of a mechanism makes for pairs of inputs."""
    given = [NeighbouringPair(*pair, label=f"{pair}") for pair in pairs]
    return library_claim(target(function), given, **more)[0]


def refused(function: Any, question: Question) -> str:
    with pytest.raises(NoClaim) as caught:
        ask(function, question)
    return caught.value.code


def test_a_pure_claim_is_the_map_at_the_distance_of_the_pair(integers: Any) -> None:
    claim, source = library_claim(target(integers), [NeighbouringPair(2, 6)])
    assert claim == PureDP(integers.map(4))
    assert (source.library, source.asked) == ("OpenDP", "m.map(d_in=4)")
    assert source.version.count(".") == 2
    assert source.answer == f"ε = {integers.map(4):.12g}"


def test_a_gaussian_of_opendp_claims_zcdp_in_its_own_norm(gaussian: Any) -> None:
    assert asked(gaussian, ([0.0, 0.0], [3.0, 4.0])) == ZeroConcentratedDP(gaussian.map(5.0))


def test_a_curve_is_claimed_at_several_points(gaussian: Any) -> None:
    from opendp.combinators import make_fix_delta, make_zCDP_to_approxDP

    curve: Any = make_zCDP_to_approxDP(gaussian)
    profile = curve.map(1.0)
    pair = ([0.0], [1.0])
    points = [(profile.epsilon(delta), delta) for delta in DELTAS]
    zeros = [delta for epsilon, delta in points if epsilon == 0]
    kept = [one for one in points if one[0] > 0 or one[1] == min(zeros)]
    assert asked(curve, pair) == ProfileDP(kept)
    assert len(kept) >= 6
    assert asked(curve, pair, delta=1e-6) == ApproximateDP(profile.epsilon(1e-6), 1e-6)
    fixed: Any = make_fix_delta(curve, 1e-7)
    assert asked(fixed, pair) == ApproximateDP(*fixed.map(1.0))


def test_a_search_asks_for_the_distance_of_neighbours(integers: Any) -> None:
    claim, source = library_claim(target(integers), [], parse_adjacency("l1:2"))
    assert (claim, source.asked) == (PureDP(integers.map(2)), "m.map(d_in=2)")
    assert code(library_claim, target(integers), [], None) == "claim-not-for-pair"
    assert (
        code(library_claim, target(integers), [], parse_adjacency("l2:1")) == "claim-not-for-pair"
    )


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_python_dp_states_epsilon_and_delta(delta: float) -> None:
    from pydp.algorithms import laplacian
    from pydp.algorithms import numerical_mechanisms as mechanisms

    if delta:
        noise, claim = mechanisms.GaussianMechanism(0.4, delta, 1.0), ApproximateDP(0.4, delta)
        assert asked(noise.add_noise, (0.0, 1.0)) == claim
        assert asked(noise.add_noise, (0.0, 1.0), delta=delta) == claim
        other = "claim-at-another-delta"
        assert code(asked, noise.add_noise, (0.0, 1.0), delta=delta / 10) == other
        return
    noise = mechanisms.LaplaceMechanism(0.4, 2.0)
    assert asked(noise.add_noise, (0.0, 2.0)) == PureDP(noise.epsilon)
    count = laplacian.Count(0.8)
    assert asked(count.quick_result, ([1.0, 2.0], [1.0])) == PureDP(count.epsilon)
    pair = [NeighbouringPair(0.0, 3.0)]
    assert code(library_claim, target(noise.add_noise), pair) == "claim-not-for-pair"


def test_a_mechanism_names_the_object_that_makes_its_claim(integers: Any) -> None:
    def noisy(x: int) -> Any:
        return integers(x)

    assert code(asked, noisy, (0, 1)) == "claim-source-unknown"
    noisy.claim_source = integers  # type: ignore[attr-defined]  # what is tested
    assert asked(noisy, (0, 1)) == asked(integers, (0, 1))
    later = SimpleNamespace(claim_source=lambda: integers)
    assert ask(later, Question((0, 1)))["claim"] == {"epsilon": integers.map(1)}
    partial = functools.partial(integers)
    assert ask(partial, Question((0, 1)))["claim"] == {"epsilon": integers.map(1)}


def test_another_process_and_another_python_answer_the_same() -> None:
    named = ImportedTarget(path=INTEGERS, init={"scale": 3.0}, factory=True)
    pair = [NeighbouringPair(0, 2)]
    here = library_claim(named, pair)
    assert here == library_claim(IsolatedTarget(target=named, python=sys.executable), pair)
    text = IsolatedTarget(target=named)
    assert code(library_claim, text, [NeighbouringPair("a", "b")]) == "claim-not-for-pair"


def test_repeated_runs_are_asked_for_one_run(integers: Any) -> None:
    twice = repeated(target(integers), 2)
    assert library_claim(twice, [NeighbouringPair(0, 1)])[0] == PureDP(integers.map(1))


def test_pairs_with_different_claims_are_refused(integers: Any) -> None:
    assert asked(integers, (0, 2), (5, 3)) == PureDP(integers.map(2))
    assert code(asked, integers, (0, 1), (0, 2)) == "options-conflict"


def test_mechanisms_without_an_object_are_refused(integers: Any) -> None:
    program = CommandTarget(words=("cat",))
    both = ComposedTarget(parts=(target(integers), target(integers)))
    for other in (program, both):
        assert code(library_claim, other, [NeighbouringPair(0, 1)]) == "claim-source-unknown"


def measurement(loss: Any, measure: str = "MaxDivergence", metric: str = "L1Distance(f64)") -> Any:
    """Return an object like a measurement of OpenDP with a map of the test's own."""
    kind: Any = type("Measurement", (SimpleNamespace,), {"__module__": "opendp.mod"})
    return kind(input_metric=metric, output_measure=measure, map=loss)


def raises(d_in: float) -> Any:
    raise OverflowError(f"{d_in} is too far")


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (measurement(lambda d: math.inf), "claim-failed"),
        (measurement(lambda d: math.nan), "claim-failed"),
        (measurement(raises), "claim-failed"),
        (measurement(lambda d: (1.0, 1.0), "Approximate(MaxDivergence)"), "claim-says-nothing"),
        (measurement(lambda d: (1.0, math.nan), "Approximate(MaxDivergence)"), "claim-failed"),
        (measurement(lambda d: 1.0, "RenyiDivergence"), "claim-failed"),
        (
            measurement(lambda d: 1.0, metric="FrameDistance(SymmetricDistance())"),
            "claim-not-for-pair",
        ),
    ],
)
def test_a_map_that_claims_nothing_is_refused(made: Any, expected: str) -> None:
    assert refused(made, Question((0.0, 1.0))) == expected


def test_a_delta_is_refused_where_there_is_no_curve(integers: Any) -> None:
    assert refused(integers, Question((0, 1), delta=1e-5)) == "options-conflict"


def settings(**claim: Any) -> dict[str, Any]:
    made = {"mechanism": INTEGERS, "factory": True, "init": {"scale": 2.0}}
    return {**made, "d1": 0, "d2": 1, "claim": {"from": "library", **claim}}


def test_an_audit_takes_the_claim_and_its_source() -> None:
    spec = build_spec(settings())
    assert spec.claim == PureDP(0.5)
    assert spec.claimed_by is not None
    assert spec.claimed_by.describe().endswith("m.map(d_in=1): ε = 0.5")
    for wrong in ({"epsilon": 1}, {"group": 2}, {"definition": "pure"}, {"delta": 1e-5}):
        assert code(build_spec, settings(**wrong)) == "options-conflict"
    assert code(build_spec, settings(delta=2)) == "option-invalid"
    assert code(build_spec, {**settings(), "claim": {"from": "me"}}) == "option-invalid"
    absent = {**settings(), "mechanism": "no_such_package_here:thing"}
    assert code(build_spec, absent) == "module-not-found"


VECTORS = [[0.1, 0.2], [0.3, -7.5], [1e300, 5e-324], [1 / 3, 2 / 3]]


@pytest.mark.parametrize(("first", "second"), list(combinations(VECTORS, 2)))
@pytest.mark.parametrize("order", [1.0, 2.0, math.inf])
def test_no_distance_is_below_the_exact_one(first: Any, second: Any, order: float) -> None:
    from fractions import Fraction

    found = norm(first, second, order)
    assert found is not None
    gaps = [abs(Fraction(a) - Fraction(b)) for a, b in zip(first, second, strict=True)]
    power = 2 if order == 2 else 1
    exact = max(gaps) if order == math.inf else sum(gap**power for gap in gaps)
    assert Fraction(found) ** power >= exact
    assert Fraction(math.nextafter(found, 0.0)) ** power < exact


def test_distances_of_records() -> None:
    assert norm(3, [3], 1) == 0
    assert norm([1], [1, 2], 1) is None
    assert norm("a", 1, 1) is None
    assert norm(True, 1, 1) is None
    assert norm(math.nan, 1, 1) is None
    assert exchanged([1, 1, 2], [2, 1]) == (1, 0)
    assert exchanged([1, 2], [2, 3, 4]) == (1, 2)
    assert exchanged("ab", "b") is None
    pairs = {
        "SymmetricDistance()": ([1, 2, 3], [3, 2], 1),
        "InsertDeleteDistance()": ([1, 2, 3], [3, 2], 3),
        "ChangeOneDistance()": ([1, 2, 3], [3, 2, 5], 1),
        "HammingDistance()": ([1, 2, 3], [3, 2, 5], 2),
        "DiscreteDistance()": ("a", "b", 1),
        "AbsoluteDistance(i32)": (-3, 4, 7),
        "AbsoluteDistance(f64)": (-3, 4, 7.0),
        "L1Distance(u32)": ([1, 5], [2, 2], 4),
        "L2Distance(i32)": ([0, 0], [1, 1], 2),
        "L2Distance(f64)": ([0, 0], [3, 4], 5.0),
        "LInfDistance(T=f64)": ([1.0, 5.0], [2.0, 2.5], 2.5),
        "LInfDistance(T=i32)": ([1, 5], [2, 2], 3),
        "LInfDistance(monotonic, T=i32)": ([1, 5, 3], [2, 9, 3], 4),
    }
    for metric, (first, second, expected) in pairs.items():
        found = opendp.distance(metric, Question((first, second)))
        assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("metric", "first", "second", "expected"),
    [
        ("L01InfDistance(AbsoluteDistance(i32))", {"a": 5, "b": 1}, {"b": 3, "a": 2}, (2, 5, 3)),
        ("L02InfDistance(AbsoluteDistance(i32))", {"a": 5, "b": 1}, {"b": 3, "a": 2}, (2, 4, 3)),
        ("L01InfDistance(AbsoluteDistance(u32))", {"a": 5, "c": 2}, {"a": 5, "b": 1}, (2, 3, 2)),
        ("L01InfDistance(AbsoluteDistance(i32))", [5, 1, 0], [5, 2, 0], (1, 1, 1)),
    ],
)  # fmt: skip
def test_distances_of_histograms(metric: str, first: Any, second: Any, expected: Any) -> None:
    found = opendp.distance(metric, Question((first, second)))
    assert found == expected
    if isinstance(found, tuple):
        assert list(map(type, found)) == list(map(type, expected))


@pytest.mark.parametrize(
    ("metric", "first", "second"),
    [
        ("LInfDistance(monotonic, T=i32)", [0, 0], [1, -1]),
        ("L1Distance(i32)", {"a": 5}, {"a": 5, "b": 1}),
        ("L01InfDistance(AbsoluteDistance(i32))", [5], [5, 1]),
        ("L01InfDistance(SymmetricDistance())", {"a": [1]}, {"a": [2]}),
    ],
)
def test_inputs_that_are_infinitely_far_apart_have_no_claim(
    metric: str, first: Any, second: Any
) -> None:
    with pytest.raises(NoClaim) as caught:
        opendp.distance(metric, Question((first, second)))
    assert caught.value.code == "claim-not-for-pair"


@pytest.mark.parametrize(
    ("metric", "relation", "expected"),
    [
        ("DiscreteDistance()", "replace", 1),
        ("SymmetricDistance()", "hamming:3", 6),
        ("InsertDeleteDistance()", "hamming:3", 6),
        ("ChangeOneDistance()", "hamming:3", 3),
        ("SymmetricDistance()", "replace", 2),
        ("LInfDistance(T=i32)", "linf:2", 2),
        ("LInfDistance(monotonic, T=i32)", "linf:2", None),
        ("L02InfDistance(AbsoluteDistance(i32))", "coordinate:2", (1, 2, 2)),
        ("L2Distance(i32)", "l1:2", None),
        ("ChangeOneDistance()", "add-remove", None),
    ],
)
def test_distances_of_neighbours(metric: str, relation: str, expected: Any) -> None:
    adjacency = parse_adjacency(relation)
    assert adjacency is not None
    question = Question(None, (adjacency.kind, adjacency.distance))
    if expected is None:
        with pytest.raises(NoClaim):
            opendp.distance(metric, question)
    else:
        assert opendp.distance(metric, question) == expected


def test_maps_of_opendp_take_integers_and_distances_of_histograms() -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    vectors, keys = dp.vector_domain(dp.atom_domain(T=int)), dp.atom_domain(T=str)
    noisy_max: Any = dp.m.make_noisy_max(
        vectors, dp.linf_distance(T=int), dp.zero_concentrated_divergence(), scale=1.0
    )
    assert asked(noisy_max, ([0, 0], [1, -1])) == ZeroConcentratedDP(noisy_max.map(1))
    counts: Any = dp.m.make_laplace_threshold(
        dp.map_domain(keys, dp.atom_domain(T=int)),
        dp.l01inf_distance(dp.absolute_distance(T=int)),
        scale=2.0,
        threshold=20,
    )
    claim, source = library_claim(
        target(counts), [NeighbouringPair({"a": 30, "b": 7}, {"a": 28, "b": 8})]
    )
    assert claim == ApproximateDP(*counts.map((2, 3, 2)))
    assert source.asked == "m.map(d_in=(2, 3, 2))"
    sizes: Any = dp.m.make_gaussian_threshold(
        dp.map_domain(keys, dp.atom_domain(T=float, nan=False)),
        dp.l02inf_distance(dp.absolute_distance(T=float)),
        scale=2.0,
        threshold=20.0,
    )
    rho, delta = sizes.map((1, 1.5, 1.5))
    _, source = library_claim(target(sizes), [NeighbouringPair({"a": 30.0}, {"a": 31.5})])
    assert source.answer == f"ρ = {rho:.12g}, δ = {delta:.12g}"


def test_edits_are_the_fewest_insertions_and_deletions() -> None:
    def fewest(one: str, two: str) -> int:
        """Try all common subsequences."""
        parts = ("".join(part) for size in range(len(one) + 1) for part in combinations(one, size))
        longest = max(len(part) for part in parts if in_order(part, two))
        return len(one) + len(two) - 2 * longest

    def in_order(part: str, whole: str) -> bool:
        letters = iter(whole)
        return all(letter in letters for letter in part)

    for one, two in combinations(["", "a", "abc", "cab", "abcabc", "bca", "ccbbaa"], 2):
        assert edits(one, two) == fewest(one, two)
