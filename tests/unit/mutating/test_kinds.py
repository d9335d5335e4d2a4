"""Each kind of planted bug, on a snippet: the changed lines."""

from __future__ import annotations

import pytest

from dpaudit.mutating.kinds import KINDS
from dpaudit.mutating.syntax import Module

IMPORTS = """
import random
import numpy as np
import torch
import jax
from scipy import stats
import opendp.prelude as dp
from diffprivlib import tools
from diffprivlib.mechanisms import Laplace
from pydp.algorithms.numerical_mechanisms import LaplaceMechanism
C = 1.0
"""


def planted(kind: str, line: str) -> list[str]:
    """Return what each bug of a kind makes of a line of a function `f(x, rng)`."""
    text = f"{IMPORTS}\n\ndef f(x, size):\n    {line}\n"
    module = Module(text)
    results = [module.edited(edits) for edits in KINDS[kind](module)]
    for result in results:
        compile(result, "f.py", "exec")
    return [result.rpartition("size):\n")[2].strip() for result in results]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("return x + rng.laplace(scale=2 / 3)", "return x + rng.laplace(scale=0.5 * (2 / 3))"),
        ("return rng.normal(x, s, size)", "return rng.normal(x, 0.5 * s, size)"),
        ("return x + random.expovariate(3)", "return x + random.expovariate(2 * 3)"),
        ("return stats.dlaplace.rvs(loc=x, a=s)", "return stats.dlaplace.rvs(loc=x, a=2 * s)"),
        ("return x + s * torch.randn(3)", "return x + s * (0.5 * torch.randn(3))"),
        ("return private(x, noise_multiplier=s)", "return private(x, noise_multiplier=0.5 * s)"),
        ("return dp.m.make_gaussian(*space, s)", "return dp.m.make_gaussian(*space, 0.5 * s)"),
        (
            "return dp.m.make_geometric(d, m, s, (0, 9))",
            "return dp.m.make_geometric(d, m, 0.5 * s, (0, 9))",
        ),
        ("return dp.m.then_laplace(scale=s)", "return dp.m.then_laplace(scale=0.5 * s)"),
        (
            "return tools.mean(x, epsilon=e, bounds=(0, 1))",
            "return tools.mean(x, epsilon=2 * e, bounds=(0, 1))",
        ),
        ("return Laplace(epsilon=1)", "return Laplace(epsilon=2 * 1)"),
        ("return LaplaceMechanism(1.0, 1.0)", "return LaplaceMechanism(2 * 1.0, 1.0)"),
    ],
)
def test_a_scale_is_halved_and_a_budget_doubled(line: str, expected: str) -> None:
    assert planted("scale-halved", line) == [expected]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("return x + rng.laplace(scale=s)", "return x + (0 * rng.laplace(scale=s))"),
        ("return rng.normal(x, s, size)", "return rng.normal(x, 0 * s, size)"),
        ("return stats.dlaplace.rvs(loc=x, a=s)", "return stats.dlaplace.rvs(loc=x, a=1e6 * s)"),
        ("return Laplace(epsilon=1).randomise(x)", "return x"),
        ("return tools.mean(x, epsilon=1)", "return x"),
        (
            "m = dp.m.make_laplace(d, m, s); return m(x)",
            "m = dp.m.make_laplace(d, m, s); return x",
        ),
    ],
)
def test_noise_is_removed_and_keeps_its_shape(line: str, expected: str) -> None:
    assert planted("no-noise", line) == [expected]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rng = np.random.default_rng()", "rng = np.random.default_rng(0)"),
        ("rng = random.Random(seed)", "rng = random.Random(0)"),
        ("key = jax.random.PRNGKey(seed)", "key = jax.random.PRNGKey(0)"),
    ],
)
def test_a_seed_becomes_constant(line: str, expected: str) -> None:
    assert planted("fixed-seed", line) == [expected]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (
            'def f(x, rng):\n    """Text."""\n    return rng.normal(x)\n',
            'def f(x, rng):\n    """Text."""\n'
            "    rng = np.random.default_rng(0)\n    return rng.normal(x)\n",
        ),
        (
            "def f(x, rng): return rng.normal(x)\n",
            "def f(x, rng): rng = np.random.default_rng(0); return rng.normal(x)\n",
        ),
    ],
)
def test_a_generator_that_is_passed_is_replaced_by_one_with_a_constant_seed(
    function: str, expected: str
) -> None:
    module = Module(f"import numpy as np\n{function}")
    (edits,) = KINDS["fixed-seed"](module)
    assert module.edited(edits) == f"import numpy as np\n{expected}"


@pytest.mark.parametrize(
    "body",
    [
        "return g(x, rng)\n",
        "@d\n    def g():\n        return rng.normal(x)\n    return g()\n",
    ],
)
def test_a_generator_that_is_passed_on_or_used_inside_stays(body: str) -> None:
    assert list(KINDS["fixed-seed"](Module(f"def f(x, rng):\n    {body}"))) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "a = x + rng.normal(0, 2); b = x + rng.normal(0, 2)",
            ["a = x + (reused_noise := rng.normal(0, 2)); b = x + reused_noise"],
        ),
        ("a = x + rng.normal(0, 2); b = x + rng.normal(0, 3)", []),
        ("a = [rng.normal(0, 2) for _ in x]; b = x + rng.normal(0, 2)", []),
        ("a = sum(rng.normal(0, 2) for _ in x) + rng.normal(0, 2)", []),
        ("if x: a = rng.normal(0, 2)\n    else: a = rng.normal(0, 2)", []),
    ],
)
def test_equal_calls_in_one_block_share_their_noise(line: str, expected: list[str]) -> None:
    assert planted("noise-reused", line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("return np.clip(x, 0, 1)", "return np.asarray(x)"),
        ("return torch.clamp(x, 0, 1)", "return x"),
        ("return min(max(x + 1, 0), 1) ** 2", "return (x + 1) ** 2"),
        ("return np.minimum(np.maximum(x, 0), 1)", "return x"),
        ("return sum(max(-C, min(C, r)) for r in x)", "return sum(r for r in x)"),
        ("return sum(min(C, max(-C, r)) for r in x)", "return sum(r for r in x)"),
        ("return max(low, min(high, x[0]))", "return (x[0])"),
        ("v = x[0]; return min(self.C, max(-self.C, v))", "v = x[0]; return v"),
        ("return x / max(1, norm / C)", "return x"),
        ("return x * min(1, C / norm)", "return x"),
    ],
)
def test_clipping_is_removed(line: str, expected: str) -> None:
    assert planted("no-clipping", line) == [expected]


def test_a_count_that_is_at_least_one_is_no_clipped_norm() -> None:
    assert planted("no-clipping", "return total / max(1, count)") == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "return s + rng.laplace(scale=1 / e)",
            "return s + rng.laplace(scale=max(np.ravel(x).tolist(), default=1) / e)",
        ),
        (
            "return s + rng.normal(0, C)",
            "return s + rng.normal(0, max(np.ravel(x).tolist(), default=C))",
        ),
        (
            "return min(max(s, 0), C)",
            "return min(max(s, 0), max(np.ravel(x).tolist(), default=C))",
        ),
    ],
)
def test_a_constant_comes_from_the_data(line: str, expected: str) -> None:
    assert planted("scale-from-data", line) == [expected]


def test_without_numpy_the_data_are_a_list() -> None:
    module = Module("def f(x):\n    return min(max(x[0], 0), 5)\n")
    (edits,) = KINDS["scale-from-data"](module)
    assert module.edited(edits) == "def f(x):\n    return min(max(x[0], 0), max(x, default=5))\n"


def test_a_scale_that_is_computed_is_no_constant() -> None:
    assert planted("scale-from-data", "return x + rng.laplace(scale=spread(e))") == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "return t / (len(x) + rng.laplace(scale=s))",
            ["return t / (len(x) + (0 * rng.laplace(scale=s)))"],
        ),
        (
            "n = len(x) + rng.normal(0, s); return t / max(n, 1)",
            ["n = len(x) + (0 * rng.normal(0, s)); return t / max(n, 1)"],
        ),
        ("return (t + rng.normal(0, s)) / len(x)", []),
    ],
)
def test_the_noise_of_a_count_is_removed(line: str, expected: list[str]) -> None:
    assert planted("count-is-exact", line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("return x >= 3", ["return x > 3"]),
        ("return x + y > 3", ["return (x + y) >= 3"]),
        ("return (x or y) > (2 if y else 3)", ["return (x or y) >= (2 if y else 3)"]),
        ("return [x for _ in range(n)]", ["return [x for _ in range(n - 1)]"]),
        ("return [x for _ in range(3)] + [x for _ in range(size)]", []),
        ("return 0 < x < 3", []),
    ],
)
def test_a_threshold_and_a_range_are_off_by_one(line: str, expected: list[str]) -> None:
    assert planted("off-by-one", line) == expected
