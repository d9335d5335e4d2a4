"""Measurements of OpenDP, each as its library makes it: nothing here adds noise.

The claim of each is `measurement.map`, at the distance of two inputs that an audit gives.
"""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any


def laplace(kind: str = "float", scale: float = 1.0) -> Any:
    """Return `make_laplace` on one number. kind: "float" or "int"."""
    dp = _opendp()
    return dp.m.make_laplace(_atom(dp, kind), _absolute(dp, kind), scale=scale)


def gaussian(kind: str = "float", scale: float = 1.0) -> Any:
    """Return `make_gaussian` on one number. kind: "float" or "int"."""
    dp = _opendp()
    return dp.m.make_gaussian(_atom(dp, kind), _absolute(dp, kind), scale=scale)


def laplace_vector(kind: str = "float", scale: float = 1.0) -> Any:
    """Return `make_laplace` on a vector, with noise of its own for every entry."""
    dp = _opendp()
    domain = dp.d.vector_domain(_atom(dp, kind))
    return dp.m.make_laplace(domain, dp.metrics.l1_distance(T=_type(kind)), scale=scale)


def gaussian_vector(kind: str = "float", scale: float = 1.0) -> Any:
    """Return `make_gaussian` on a vector, with noise of its own for every entry."""
    dp = _opendp()
    domain = dp.d.vector_domain(_atom(dp, kind))
    return dp.m.make_gaussian(domain, dp.metrics.l2_distance(T=_type(kind)), scale=scale)


def gaussian_curve(scale: float = 1.0) -> Any:
    """Return `make_gaussian` with its loss as a curve ε(δ), by `make_zCDP_to_approxDP`."""
    return _opendp().c.make_zCDP_to_approxDP(gaussian_vector(scale=scale))


def geometric(scale: float = 1.0) -> Any:
    """Return `make_geometric` on an integer, with noise of bounded duration in [0, 10]."""
    dp = _opendp()
    return dp.m.make_geometric(_atom(dp, "int"), _absolute(dp, "int"), scale, (0, 10))


def geometric_vector(kind: str = "int", scale: float = 1.0) -> Any:
    """Return `make_geometric` on a vector of integers, with noise of its own for every entry."""
    dp = _opendp()
    domain = dp.d.vector_domain(_atom(dp, kind))
    return dp.m.make_geometric(domain, dp.metrics.l1_distance(T=_type(kind)), scale)


def response(prob: float = 0.75) -> Any:
    """Return `make_randomized_response_bool`."""
    return _opendp().m.make_randomized_response_bool(prob)


def response_of_categories(prob: float = 0.75) -> Any:
    """Return `make_randomized_response` on the categories 0, 1 and 2."""
    return _opendp().m.make_randomized_response([0, 1, 2], prob)


def noisy_max(scale: float = 2.0) -> Any:
    """Return `make_noisy_max`, the index of the largest noisy score."""
    dp = _opendp()
    domain = dp.d.vector_domain(_atom(dp, "float"))
    measure = import_module("opendp.measures").max_divergence()
    return dp.m.make_noisy_max(domain, dp.metrics.linf_distance(T=float), measure, scale=scale)


def count(scale: float = 1.0) -> Any:
    """Return a count of records with Laplace noise."""
    dp = _opendp()
    space = dp.d.vector_domain(_atom(dp, "int")), dp.metrics.symmetric_distance()
    return space >> dp.t.then_count() >> dp.m.then_laplace(scale)


def clamped_sum(scale: float = 10.0) -> Any:
    """Return a sum of numbers, clamped to [0, 10], with Laplace noise."""
    dp = _opendp()
    space = dp.d.vector_domain(_atom(dp, "float")), dp.metrics.symmetric_distance()
    return space >> dp.t.then_clamp((0.0, 10.0)) >> dp.t.then_sum() >> dp.m.then_laplace(scale)


def _opendp() -> Any:
    # Imported only when asked for. The prelude of OpenDP imports scikit-learn and pandas, too.
    import_module("opendp.mod").enable_features("contrib")
    return SimpleNamespace(
        d=import_module("opendp.domains"),
        metrics=import_module("opendp.metrics"),
        m=import_module("opendp.measurements"),
        t=import_module("opendp.transformations"),
        c=import_module("opendp.combinators"),
    )


def _type(kind: str) -> type[int] | type[float]:
    return int if kind == "int" else float


def _atom(dp: Any, kind: str) -> Any:
    return dp.d.atom_domain(T=int) if kind == "int" else dp.d.atom_domain(T=float, nan=False)


def _absolute(dp: Any, kind: str) -> Any:
    return dp.metrics.absolute_distance(T=_type(kind))
