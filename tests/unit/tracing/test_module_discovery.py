"""Noise is seen in all modules that a mechanism can reach; other code is left alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import dpaudit
from dpaudit.tracing.runs.places import reached

NOISE = """
from random import Random, gauss
own = Random(7)
def noised(x):
    return x + own.gauss(0, 8), x + gauss(0, 8)
"""
# How a mechanism of m.py may come to what is in reach.py, a module of its package.
WAYS = {
    "a module": ("import pkg.reach", "pkg.reach.noised(x)"),
    "in a function": ("", "from pkg.reach import noised; return noised(x)"),
    "a table": ("from pkg.reach import noised\nby = {1: [noised]}\ndel noised", "by[1][0](x)"),
    "a partial": (
        "from functools import partial\nfrom pkg.reach import noised\n"
        "done = partial(noised)\ndel noised",
        "done(x)",
    ),
    "a closure": (
        "def made():\n    from pkg.reach import noised\n    return lambda x: noised(x)\n"
        "go = made()",
        "go(x)",
    ),
    "another module": ("from pkg.between import go", "go(x)"),
    "a class": (
        "class Kind:\n    @staticmethod\n    def go(x):\n"
        "        from pkg.reach import noised\n        return noised(x)",
        "Kind.go(x)",
    ),
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "pkg").mkdir()
    for name, text in {
        "__init__": "",
        "reach": NOISE,
        "between": "from .reach import noised\ndef go(x):\n    return noised(x)",
        "beside": NOISE + "seen = []\n",
    }.items():
        (tmp_path / "pkg" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "pkg"
    for name in [name for name in sys.modules if name.partition(".")[0] == "pkg"]:
        del sys.modules[name]


def loaded(package: Path, way: str) -> ModuleType:
    first, then = WAYS[way]
    body = then if "return" in then else f"return {then}"
    (package / "m.py").write_text(f"{first}\ndef noisy(x):\n    {body}\n")
    for name in ("pkg.reach", "pkg.beside"):
        import_module(name)
    return import_module("pkg.m")


@pytest.mark.parametrize("way", WAYS)
def test_noise_of_all_that_is_named_is_seen(package: Path, way: str) -> None:
    trace = dpaudit.trace(loaded(package, way).noisy, 0.0, 1.0)
    assert [site.law for site in trace.sites] == ["normal", "normal"]
    assert not trace.causes


def test_other_modules_are_left_alone(package: Path) -> None:
    m = loaded(package, "another module")
    modules = reached([m.noisy], lambda file: str(package) in file)
    assert [module.__name__ for module in modules] == ["pkg.between", "pkg.m", "pkg.reach"]
    assert reached([m.noisy], lambda file: False) == []
