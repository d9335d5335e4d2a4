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
from dpaudit.targets.target import ImportedTarget, IsolatedTarget
from dpaudit.tracing.mechanism_trace import trace_pair
from tests.raising import code

dp.enable_features("contrib", "honest-but-curious")
TEN = PureDP(10.0)
INTEGERS = dp.atom_domain(T=int), dp.absolute_distance(T=int)
FLOATS = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
VECTORS = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
ROWS = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
LAPLACE = dp.m.then_laplace(scale=2.0)
SUM: Any = getattr(dp.t, "then_sum")  # noqa: B009  # it has no types
COUNT = ROWS >> dp.t.then_count() >> LAPLACE
MADE_BEFORE = INTEGERS >> LAPLACE
CLAMPED_SUM = ROWS >> dp.t.then_clamp((0, 5)) >> SUM() >> LAPLACE
GAUSSIAN = mechanisms.GaussianMechanism(0.5, 1e-5, 1.0)


def traced(function: Callable[..., Any], d1: Any = 0, d2: Any = 1, **more: Any) -> Trace:
    """Return a trace; what stood in for anything is gone afterwards."""
    kinds = (
        Measurement, Queryable, MetaAlgorithm, mechanisms.LaplaceMechanism,
        mechanisms.GaussianMechanism, distributions.LaplaceDistribution,
        distributions.GaussianDistribution,
    )  # fmt: skip
    before = [{name: id(value) for name, value in vars(kind).items()} for kind in kinds]
    trace = dpaudit.trace(function, d1, d2, more.pop("claim", TEN), noises=1, **more)
    assert before == [{name: id(value) for name, value in vars(kind).items()} for kind in kinds]
    return trace


# OpenDP.


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
    file = tmp_path / "mine.py"
    file.write_text(FACTORY)
    path = f"{file}:made_by_a_factory"
    target: Any = ImportedTarget(path=path, factory=True, init={"scale": 0.5})
    target = IsolatedTarget(target=target) if isolated else target
    (cause,) = trace_pair(target, 0, 1, PureDP(1.0), seeds=1).causes
    assert (cause.kind, cause.line.line) == ("too-little-noise", 5)
    assert cause.cost == pytest.approx(2.0)
    trace = trace_pair(target, 0, 1, PureDP(2.1), seeds=1)
    assert (trace.understood, trace.causes) == (True, ())


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
        (lambda x: (FLOATS >> LAPLACE)(np.float64(3 * x)), "laplace", 2.0, 3.0),
        (lambda x: (FLOATS >> dp.m.then_gaussian(scale=3.0))(2.0 * x), "normal", 3.0, 2.0),
        (lambda x: (VECTORS >> LAPLACE)([1.0, 2.0 * x, 0.0]), "laplace", 2.0, 2.0),
        (lambda x: CLAMPED_SUM([7 * x, 3]), "discrete", 2.0, 5.0),
        (lambda x: dp.c.make_composition([COUNT, COUNT])([0] * x), "discrete", 2.0, 1.0),
        (lambda x: GAUSSIAN.add_noise(x), "normal", GAUSSIAN.std, 1.0),
        (lambda x: x + distributions.GaussianDistribution(2.0).sample(1.5), "normal", 3.0, 1.0),
    ],
)
def test_measurements(function: Any, law: str, scale: float, shift: float) -> None:
    trace = traced(function)
    (site,) = trace.sites
    assert (site.law, site.scales, site.shift) == (law, (scale, scale), shift)
    assert not trace.not_understood
    if law != "normal":
        assert not trace.causes


def test_vectors_keep_their_operands_apart() -> None:
    (site,) = traced(lambda x: (VECTORS >> LAPLACE)([1.0, 2.0 * x, 1.0 * x])).sites
    assert (site.entries, site.cost, site.total) == (3, 1.0, 1.5)
    assert site.operands == ("[1, 0, 0]", "[1, 2, 1]")


def test_randomised_response() -> None:
    yes = dp.m.make_randomized_response_bool(prob=0.75)
    trace = traced(lambda x: yes(bool(x)), claim=PureDP(1.0))
    assert trace.sites[0].cost == pytest.approx(np.log(3))
    assert trace.causes
    assert not traced(lambda x: yes(bool(x)), claim=PureDP(1.1)).causes
    letters = dp.m.make_randomized_response(categories=["a", "b", "c"], prob=0.5)
    trace = traced(lambda x: letters("abc"[x]))
    assert trace.sites[0].cost == pytest.approx(np.log(2))


def test_a_measurement_of_the_users_own_shows_the_noise_inside() -> None:
    measurement = dp.m.make_user_measurement(
        *INTEGERS, dp.max_divergence(), function=lambda x: x + np.random.laplace(scale=2.0),
        privacy_map=lambda d: float(d), TO=float,
    )  # fmt: skip
    (site,) = traced(lambda x: measurement(x)).sites
    assert (site.primitive, site.scales) == ("np.random.laplace", (2.0, 2.0))


def queried(x: int) -> Any:
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


@pytest.mark.parametrize("function", [queried, noisiest, mean, above])
def test_what_is_not_understood_has_no_finding(function: Any) -> None:
    trace = traced(function, claim=PureDP(0.01))
    assert (trace.sites, trace.findings) == ((), ())
    assert trace.not_understood


def test_what_comes_after_it_is_looked_at() -> None:
    trace = traced(lambda x: (mean(x), x + random.gauss(0, 1), x))
    assert trace.causes[0].kind == "no-noise"
    assert [site.primitive for site in trace.sites] == ["random.gauss"]


# The user's own.


def noised(value: Any, scale: float = 2.0) -> Any:
    if isinstance(value, dict):
        return {key: noised(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [noised(entry) for entry in value]
    return value + random.SystemRandom().gauss(0, 1) * scale


def laplace(value: float, b: float) -> float:
    return float(value + random.SystemRandom().gauss(0, 1) * b)


def stated(value: float, epsilon: float) -> float:
    return value + random.SystemRandom().gauss(0, 1) / epsilon


stated.law, stated.scale = "laplace", lambda value, epsilon: 1 / epsilon  # type: ignore[attr-defined]  # what users state


class Noise:
    @staticmethod
    def static(value: float, *, scale: float = 2.0) -> float:
        return value + random.SystemRandom().gauss(0, 1) * scale


@pytest.mark.parametrize(
    ("function", "primitive", "law", "scale"),
    [
        (lambda x: noised([x, 0], scale=3.0), noised, "unknown", None),
        (lambda x: laplace(x, 3.0), laplace, "laplace", 3.0),
        (lambda x: stated(x, epsilon=0.5), stated, "laplace", 2.0),
        (lambda x: Noise.static(x, scale=3.0), Noise.static, "unknown", None),
    ],
)
def test_a_function_of_ones_own(function: Any, primitive: Any, law: Any, scale: Any) -> None:
    before = dict(vars(Noise)), dict(globals())
    (site,) = traced(function, primitives=[primitive]).sites
    assert (dict(vars(Noise)), dict(globals())) == before
    assert (site.law, site.shift) == (law, 1.0)
    assert scale is None or site.scales == (scale, scale)


def test_what_it_noises_that_is_no_number_is_not_understood() -> None:
    trace = traced(lambda x: noised({"a": x}), primitives=[noised])
    assert (trace.sites, trace.findings) == ((), ())
    assert trace.not_understood


def clamped(value: float, low: float, high: float) -> float:
    return min(max(value + random.SystemRandom().gauss(0, 1), low), high)


clamped.bounds = lambda value, low, high: (low, high)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("law", "ends", "delta", "is_cause"),
    [
        ("laplace", lambda x: (0, 1_000 + x), 0, True),
        ("laplace", lambda x: (0, 1_000 + x), 1e-9, False),
        ("laplace", lambda x: (x - 5, 1_000), 1e-9, True),
        ("unknown", lambda x: (x - 5, 5), 1e-9, False),
    ],
)
def test_bounds_of_a_function_of_ones_own_are_compared(
    monkeypatch: pytest.MonkeyPatch, law: str, ends: Any, delta: float, is_cause: bool
) -> None:
    if law != "unknown":
        monkeypatch.setattr(clamped, "law", law, raising=False)
    monkeypatch.setattr(clamped, "scale", 1.0, raising=False)
    claim = ApproximateDP(1.0, delta) if delta else PureDP(1.0)
    trace = traced(lambda x: clamped(x, *ends(x)), primitives=[clamped], claim=claim)
    (finding,) = trace.findings
    assert (finding.kind, finding.is_cause) == ("data-dependent-parameter", is_cause)


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
    trace = traced(f"{late}:lazy", claim=PureDP(1.0))  # type: ignore[arg-type]  # a path will do
    assert [cause.kind for cause in trace.causes] == ["too-little-noise"]
    assert trace.sites[0].line.line == 9
    assert not trace.notes
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
