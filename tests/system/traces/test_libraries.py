"""Mechanisms of libraries, and primitives of the user's own: which argument the noise hides, and
its law; what is not understood has no finding; afterwards all is as it was."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp
import pydp.algorithms.laplacian as algorithms
import pydp.algorithms.numerical_mechanisms as mechanisms
import pydp.distributions as distributions
import pytest
from opendp.mod import Measurement, Queryable
from pydp.algorithms._algorithm import MetaAlgorithm

import dpaudit
from dpaudit import ApproximateDP, PureDP, Trace
from dpaudit.certificates.traced import INSIDE
from dpaudit.targets.target import ImportedTarget, IsolatedTarget
from dpaudit.tracing.mechanism_trace import trace_pair
from tests.raising import code

dp.enable_features("contrib", "honest-but-curious")
TEN = PureDP(10.0)
INTEGERS = dp.atom_domain(T=int), dp.absolute_distance(T=int)
FLOATS = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
VECTORS = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
WHOLE = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
ROWS = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
LAPLACE = dp.m.then_laplace(scale=2.0)
SUM: Any = getattr(dp.t, "then_sum")  # noqa: B009  # it has no types
COUNT = ROWS >> dp.t.then_count() >> LAPLACE
ENTRIES = WHOLE >> LAPLACE
MADE_BEFORE = INTEGERS >> LAPLACE


def traced(function: Callable[..., Any], d1: Any = 0, d2: Any = 1, **more: Any) -> Trace:
    """Return a trace; what stood in for anything is gone afterwards."""
    kinds = (
        Measurement, Queryable, MetaAlgorithm, mechanisms.LaplaceMechanism,
        mechanisms.GaussianMechanism, distributions.LaplaceDistribution,
        distributions.GaussianDistribution,
    )  # fmt: skip
    before = [dict(vars(one)) for one in kinds]
    found = dpaudit.trace(function, d1, d2, more.pop("claim", TEN), noises=1, **more)
    after = [dict(vars(one)) for one in kinds]
    for one, other in zip(before, after, strict=True):
        assert one.keys() == other.keys()
        assert all(one[name] is other[name] for name in one)
    return found


# OpenDP.


def made_by_a_factory(scale: float) -> Any:
    return dp.m.make_laplace(*INTEGERS, scale=scale)


FACTORY = """
import opendp.prelude as dp
dp.enable_features("contrib")
INTEGERS = dp.atom_domain(T=int), dp.absolute_distance(T=int)
def made_by_a_factory(scale):
    return dp.m.make_laplace(*INTEGERS, scale=scale)
"""


@pytest.mark.parametrize("isolated", [False, True])
def test_a_measurement_that_a_factory_makes_is_the_mechanism_itself(
    isolated: bool, tmp_path: Path
) -> None:
    path = f"{__file__}:made_by_a_factory"
    target: Any = ImportedTarget(path=path, factory=True, init={"scale": 0.5})
    if isolated:  # its process imports OpenDP, and not this module
        file = tmp_path / "mine.py"
        file.write_text(FACTORY)
        path = f"{file}:made_by_a_factory"
        target = ImportedTarget(path=path, factory=True, init={"scale": 0.5})
        target = IsolatedTarget(target=target)
        (cause,) = trace_pair(target, 0, 1, PureDP(1.0), seeds=1).causes
        assert (cause.kind, cause.line.line) == ("too-little-noise", 5)
        assert cause.cost == pytest.approx(2.0)
        return
    (cause,) = trace_pair(target, 0, 1, PureDP(1.0)).causes
    assert cause.kind == "too-little-noise"
    assert cause.cost == pytest.approx(2.0)
    assert cause.line.line == made_by_a_factory.__code__.co_firstlineno
    assert cause.line.code == "made_by_a_factory(…)"
    target = ImportedTarget(path=path, factory=True, init={"scale": 1.0})
    found = trace_pair(target, 0, 1, PureDP(1.0))
    assert found.understood
    assert found.causes == ()


def test_a_library_object_at_hand_and_a_compiled_method_are_understood() -> None:
    (cause,) = traced(dp.m.make_laplace(*INTEGERS, scale=0.05)).causes
    assert cause.cost == pytest.approx(20.0)
    path = "pydp.algorithms.numerical_mechanisms:LaplaceMechanism"
    target = ImportedTarget(path=path, init=[2.0, 1.0], call="add_noise")
    (cause,) = trace_pair(target, 0.0, 1.0, PureDP(1.0)).causes
    assert cause.cost == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("function", "law", "scale", "shift"),
    [
        (lambda x: MADE_BEFORE(x), "discrete", 2.0, 1.0),
        (lambda x: dp.m.make_laplace(*FLOATS, scale=2.0)(float(x)), "laplace", 2.0, 1.0),
        (lambda x: (FLOATS >> LAPLACE)(np.float64(3 * x)), "laplace", 2.0, 3.0),
        (lambda x: (FLOATS >> dp.m.then_gaussian(scale=3.0))(2.0 * x), "normal", 3.0, 2.0),
        (lambda x: (VECTORS >> LAPLACE)([1.0, 2.0 * x, 0.0]), "laplace", 2.0, 2.0),
        (lambda x: (COUNT >> (lambda value: max(0, value)))([0] * x), "discrete", 2.0, 1.0),
        (
            lambda x: (ROWS >> dp.t.then_clamp((0, 5)) >> SUM() >> LAPLACE)([7 * x, 3]),
            "discrete",
            2.0,
            5.0,
        ),
        (lambda x: dp.c.make_composition([COUNT, COUNT])([0] * x), "discrete", 2.0, 1.0),
    ],
)
def test_measurements(function: Any, law: str, scale: float, shift: float) -> None:
    found = traced(function)
    (site,) = found.sites
    assert (site.law, site.scales, site.shift) == (law, (scale, scale), shift)
    assert not found.not_understood
    if law != "normal":
        assert not found.causes


def test_vectors_keep_their_operands_apart() -> None:
    (site,) = traced(lambda x: (VECTORS >> LAPLACE)([1.0, 2.0 * x, 1.0 * x])).sites
    assert (site.entries, site.cost, site.total) == (3, 1.0, 1.5)
    assert site.operands == ("[1, 0, 0]", "[1, 2, 1]")


def test_randomised_response() -> None:
    yes = dp.m.make_randomized_response_bool(prob=0.75)
    found = traced(lambda x: yes(bool(x)), claim=PureDP(1.0))
    assert found.sites[0].cost == pytest.approx(np.log(3))
    assert found.causes
    assert not traced(lambda x: yes(bool(x)), claim=PureDP(1.1)).causes
    letters = dp.m.make_randomized_response(categories=["a", "b", "c"], prob=0.5)
    found = traced(lambda x: letters("abc"[x]))
    assert found.sites[0].cost == pytest.approx(np.log(2))


def test_a_measurement_of_the_users_own_shows_the_noise_inside() -> None:
    made = dp.m.make_user_measurement(
        *INTEGERS, dp.max_divergence(), function=lambda x: x + np.random.laplace(scale=2.0),
        privacy_map=lambda d: float(d), TO=float,
    )  # fmt: skip
    (site,) = traced(lambda x: made(x)).sites
    assert (site.primitive, site.scales) == ("np.random.laplace", (2.0, 2.0))


def asked(x: int) -> Any:
    context = dp.Context.compositor(
        data=[1, 2] + [3] * x, privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0), split_evenly_over=1,
    )  # fmt: skip
    return context.query().count().laplace().release()


def noisiest(x: int) -> Any:
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    return dp.m.make_noisy_max(*space, dp.max_divergence(), scale=1.0)([3, 3 + x])


def mean(x: int) -> Any:
    return algorithms.BoundedMean(
        epsilon=5.0, lower_bound=0, upper_bound=10, dtype="float"
    ).quick_result([1.0, 2.0, 9.0 * x])


def above(x: int) -> Any:
    return mechanisms.LaplaceMechanism(1.0, 1.0).noised_value_above_threshold(float(x), 0.5)


@pytest.mark.parametrize("function", [asked, noisiest, mean, above])
def test_what_is_not_understood_has_no_finding(function: Any) -> None:
    found = traced(function, claim=PureDP(0.01))
    assert not found.sites
    assert not found.findings
    assert found.not_understood
    (note,) = found.notes
    assert note.endswith(INSIDE)


def test_noise_that_a_library_adds_to_each_entry_is_named_by_the_mechanism() -> None:
    path: Any = f"{__file__}:ENTRIES"
    (cause,) = traced(path, [1, 1], [1, 5], claim=PureDP(1.0)).causes
    assert cause.kind == "too-little-noise"
    assert cause.line.file.endswith("test_libraries.py:ENTRIES")


def test_what_comes_after_it_is_looked_at() -> None:
    found = traced(lambda x: (mean(x), x + random.gauss(0, 1), x))
    assert found.causes[0].kind == "no-noise"
    assert [one.primitive for one in found.sites] == ["random.gauss"]


# PyDP.


@pytest.mark.parametrize(
    ("function", "law", "scale"),
    [
        (lambda x: mechanisms.LaplaceMechanism(0.5, 2.0).add_noise(x), "laplace", 4.0),
        (lambda x: x + distributions.LaplaceDistribution(0.5, 2.0).sample(), "laplace", 4.0),
        (lambda x: x + distributions.GaussianDistribution(2.0).sample(1.5), "normal", 3.0),
    ],
)
def test_pydp(function: Any, law: str, scale: float) -> None:
    (site,) = traced(function).sites
    assert (site.law, site.scales, site.shift) == (law, (scale, scale), 1.0)


def test_the_standard_deviation_of_pydp() -> None:
    (site,) = traced(lambda x: mechanisms.GaussianMechanism(0.5, 1e-5, 1.0).add_noise(x)).sites
    std = mechanisms.GaussianMechanism(0.5, 1e-5, 1.0).std
    assert (site.law, site.scales) == ("normal", (std, std))


# The user's own.


def noised(value: Any, scale: float = 2.0) -> Any:
    if isinstance(value, dict):
        return {key: noised(one) for key, one in value.items()}
    if isinstance(value, list):
        return [noised(one) for one in value]
    return value + random.SystemRandom().gauss(0, 1) * scale


def laplace(value: float, b: float) -> float:
    return float(value + random.SystemRandom().gauss(0, 1) * b)


def said(value: float, epsilon: float) -> float:
    return value + random.SystemRandom().gauss(0, 1) / epsilon


said.law, said.scale = "laplace", lambda value, epsilon: 1 / epsilon  # type: ignore[attr-defined]  # what users say


class Noise:
    def __init__(self, scale: float) -> None:
        self.size = scale

    def add(self, value: float, sigma: float = 2.0) -> float:
        return value + random.SystemRandom().gauss(0, 1) * sigma

    @staticmethod
    def static(value: float, *, scale: float = 2.0) -> float:
        return value + random.SystemRandom().gauss(0, 1) * scale

    @classmethod
    def of_class(cls, value: float) -> float:
        return value + random.SystemRandom().gauss(0, 1)


NOISE = Noise(2.0)


@pytest.mark.parametrize(
    ("function", "primitive", "law", "scales"),
    [
        (lambda x: noised(x, 3.0), noised, "unknown", 3.0),
        (lambda x: noised([x, 0], scale=3.0), noised, "unknown", 3.0),
        (lambda x: laplace(x, 3.0), laplace, "laplace", 3.0),
        (lambda x: said(x, epsilon=0.5), said, "laplace", 2.0),
        (lambda x: NOISE.add(x, 3.0), NOISE.add, "normal", 3.0),
        (lambda x: Noise.static(x, scale=3.0), Noise.static, "unknown", 3.0),
        (lambda x: NOISE.of_class(x), Noise.of_class, "unknown", None),
    ],
)
def test_a_function_of_ones_own(function: Any, primitive: Any, law: Any, scales: Any) -> None:
    before = dict(vars(Noise)), dict(globals())
    found = traced(function, primitives=[primitive])
    assert (dict(vars(Noise)), dict(globals())) == before
    (site,) = found.sites
    assert (site.law, site.shift) == (law, 1.0)
    expected = None if scales is None or law == "unknown" else (scales, scales)
    assert law == "unknown" or site.scales == expected


def test_what_it_noises_that_is_no_number_is_not_understood() -> None:
    found = traced(lambda x: noised({"a": x}), primitives=[noised])
    assert not found.sites
    assert not found.findings
    assert found.not_understood


def clamped(value: float, low: float, high: float) -> float:
    return min(max(value + random.SystemRandom().gauss(0, 1), low), high)


clamped.bounds = lambda value, low, high: (low, high)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("law", "ends", "delta", "is_cause"),
    [
        ("laplace", lambda x: (0, 5), 0, None),
        ("laplace", lambda x: (0, 1_000 + x), 0, True),
        ("laplace", lambda x: (0, 1_000 + x), 1e-9, False),
        ("laplace", lambda x: (x - 5, 1_000), 1e-9, True),
        ("unknown", lambda x: (x - 5, 5), 0, True),
        ("unknown", lambda x: (x - 5, 5), 1e-9, False),
    ],
)
def test_bounds_of_a_function_of_ones_own_are_compared(
    monkeypatch: pytest.MonkeyPatch, law: str, ends: Any, delta: float, is_cause: bool | None
) -> None:
    if law != "unknown":
        monkeypatch.setattr(clamped, "law", law, raising=False)
    monkeypatch.setattr(clamped, "scale", 1.0, raising=False)
    claim = ApproximateDP(1.0, delta) if delta else PureDP(1.0)
    found = traced(lambda x: clamped(x, *ends(x)), primitives=[clamped], claim=claim)
    expected = [] if is_cause is None else [("data-dependent-parameter", is_cause)]
    assert [(one.kind, one.is_cause) for one in found.findings] == expected


# Around a run.


SOURCE = """
from numpy.random import default_rng

BESIDE = default_rng(3)

def lazy(x):
    import imported_late
    return imported_late.noised(x)

"""
LATE = """
import numpy as np
from numpy.random import laplace
from random import gauss

UNUSED = gauss(0, 1)

def noised(x):
    return x + laplace(scale=0.5)
"""


@pytest.fixture
def late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "mine.py").write_text(SOURCE)
    (tmp_path / "imported_late.py").write_text(LATE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "mine.py"
    sys.modules.pop("imported_late", None)


def test_what_is_imported_during_a_run_is_seen_and_keeps_nothing(late: Path) -> None:
    found = traced(f"{late}:lazy", claim=PureDP(1.0))  # type: ignore[arg-type]  # a path will do
    assert [one.kind for one in found.causes] == ["too-little-noise"]
    assert found.sites[0].line.line == 9
    assert not found.notes
    module: Any = sys.modules["imported_late"]
    assert module.laplace is np.random.laplace
    assert module.gauss is random.gauss


def test_a_library_is_followed_before_it_is_imported(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "not_yet"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import random\n\ndef noised(x):\n    return x + random.gauss(0, 1)\n"
    )
    mine = tmp_path / "mine.py"
    mine.write_text("def f(x):\n    import not_yet\n    return not_yet.noised(x)\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(package.parent))
        path: Any = f"{mine}:f"
        (site,) = traced(path).sites
        assert Path(site.line.file).name == "mine.py"
        del sys.modules["not_yet"]
        for followed in ("not_yet", str(package)):
            (site,) = traced(path, follow=[followed]).sites
            assert (Path(site.line.file).name, site.line.line) == ("__init__.py", 4)
        assert code(traced, path, follow=["nowhere"]) == "module-not-found"
        sys.modules.pop("not_yet", None)
