"""OpenDP's `make_laplace`, which needs a domain and a metric before it draws.

OpenDP checks, proves and draws; nothing here adds noise. Its generator is the operating system's.
Adjacency: numbers at distance of at most 1.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

Draw = Callable[..., Any]


def floats(scale: float = 1.0) -> Draw:
    """Return `make_laplace` on one float; 1/scale-DP between inputs at distance 1."""
    dp = _opendp()
    return _measurement(
        dp, dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale
    )


def integers(scale: float = 1.0) -> Draw:
    """Return `make_laplace` on one integer; 1/scale-DP between inputs at distance 1."""
    dp = _opendp()
    return _measurement(dp, dp.atom_domain(T=int), dp.absolute_distance(T=int), scale)


def float_vector(scale: float = 1.0) -> Draw:
    """Return `make_laplace` on vectors of floats, as many independent draws in one call."""
    dp = _opendp()
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    return _batched(_measurement(dp, domain, dp.l1_distance(T=float), scale))


def integer_vector(scale: float = 1.0) -> Draw:
    """Return `make_laplace` on vectors of integers, as many independent draws in one call."""
    dp = _opendp()
    domain = dp.vector_domain(dp.atom_domain(T=int))
    return _batched(_measurement(dp, domain, dp.l1_distance(T=int), scale))


def _opendp() -> Any:
    # OpenDP is needed for this specimen only: the others import without it. Its prelude has all of
    # these, but imports scikit-learn and pandas, too, which takes ten times as long.
    mod: Any = import_module("opendp.mod")
    mod.enable_features("contrib")
    domains, metrics = map(import_module, ("opendp.domains", "opendp.metrics"))
    return SimpleNamespace(
        **{name: getattr(domains, name) for name in ("atom_domain", "vector_domain")},
        **{name: getattr(metrics, name) for name in ("absolute_distance", "l1_distance")},
        m=import_module("opendp.measurements"),
    )


def _measurement(dp: Any, domain: Any, metric: Any, scale: float) -> Draw:
    measurement: Draw = dp.m.make_laplace(domain, metric, scale=scale)
    return measurement


def _batched(measurement: Draw) -> Draw:
    """Every coordinate gets noise of its own, so one vector of equal entries is many draws."""

    def draw(dataset: float, size: int) -> Any:
        return measurement([dataset] * size)

    return draw
