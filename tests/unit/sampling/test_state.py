"""Every place where a mechanism may keep state between calls is found, and named."""

from __future__ import annotations

import importlib
import linecache
import logging
import os
import random
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from dpaudit.auditing.ledger import PROBING
from dpaudit.auditing.schedule import FIRST_CALLS
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.sampling.chunks import FirstCalls
from dpaudit.sampling.sampler import Sampler
from dpaudit.sampling.state import changed, kept_state
from dpaudit.targets.target import CallableTarget
from mechanisms import laplace

Mechanism = Callable[[], Any]
_context: ContextVar[int] = ContextVar("_context", default=0)


def in_a_bytearray() -> Mechanism:
    kept = bytearray(8)

    def draw() -> None:
        kept[3] += 1

    return draw


class Slotted:
    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept = 0


def in_slots_of_a_closure() -> Mechanism:
    kept = Slotted()

    def draw() -> None:
        kept.kept += 1

    return draw


def in_a_context_variable() -> Mechanism:
    def draw() -> None:
        _context.set(_context.get() + 1)

    return draw


def in_a_generator() -> Mechanism:
    def every() -> Iterator[int]:
        number = 0
        while True:
            number += 1
            yield number

    kept = every()
    return lambda: next(kept)


def in_arguments_of_partial() -> Mechanism:
    def draw(kept: list[int]) -> None:
        kept.append(1)

    return partial(draw, [])


def in_a_default() -> Mechanism:
    def draw(kept: list[int] = []) -> None:  # noqa: B006  # the mistake to find
        kept.append(1)

    return draw


PLACES = {
    in_a_bytearray: "kept",
    in_slots_of_a_closure: "kept",
    in_a_context_variable: "_context",
    in_a_generator: "kept",
    in_arguments_of_partial: "the arguments of partial(draw)",
    in_a_default: "the defaults of draw",
}


def test_every_place_is_found_and_named() -> None:
    for place in PLACES:
        draw = place()
        before = kept_state(draw)
        assert changed(before, kept_state(draw)) == ()
        draw()
        assert changed(before, kept_state(draw)) == (PLACES[place],)


def test_all_variables_of_a_module_of_the_user_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code need not name the variable that a call sets."""
    mine = types.ModuleType("kept_home.settings")
    home = types.ModuleType("kept_home")
    monkeypatch.setitem(sys.modules, "kept_home.settings", mine)
    monkeypatch.setitem(sys.modules, "kept_home", home)
    home.__dict__["settings"] = mine
    exec(
        "def draw():\n    setattr(settings, 'calls'.upper(), 1)\n", vars(home)
    )  # a module of its own
    draw = vars(home)["draw"]
    before = kept_state(draw)
    draw()
    assert changed(before, kept_state(draw)) == ("settings.CALLS",)


def test_random_generators_are_no_state() -> None:
    rng = np.random.default_rng(1)
    before = kept_state(rng.laplace, lambda: rng.normal())
    rng.laplace()
    assert changed(before, kept_state(rng.laplace, lambda: rng.normal())) == ()


_log = logging.getLogger(__name__)


class Logging:
    def __init__(self) -> None:
        self.log = logging.getLogger(f"{__name__}.own")
        self.handler = logging.NullHandler()
        self.kept = {"handlers": [self.handler], "log": self.log}

    def __call__(self) -> None:
        self.log.debug("one")
        self.handler.setLevel(5)


def logging_warning_and_parsing() -> None:
    _log.debug("a message")
    warnings.warn(f"number {random.random()}", stacklevel=1)
    warnings.onceregistry.clear()  # type: ignore[attr-defined]  # no public name
    linecache.cache["<test>"] = (0, None, [], str(random.random()))
    urlsplit(f"http://{random.random()}/")


@pytest.mark.filterwarnings("ignore:number")
def test_loggers_and_registries_and_caches_of_python_are_no_state() -> None:
    for mechanism in (Logging(), logging_warning_and_parsing):
        before = kept_state(mechanism)
        mechanism()
        assert changed(before, kept_state(mechanism)) == ()


def test_an_own_cache_beside_them_is_state() -> None:
    """The planted twin."""

    @cache
    def own(x: int) -> int:
        return x

    def draw() -> None:
        _log.debug("a message")
        own(len(urlsplit("http://a/")))

    before = kept_state(draw)
    draw()
    assert changed(before, kept_state(draw)) == ("own",)


class Counter:
    def __init__(self) -> None:
        self.calls = 0
        self.rng = np.random.default_rng(0)

    def __call__(self, x: float) -> float:
        self.calls += 1
        return x + self.rng.laplace()

    def idle(self, x: float) -> float:
        return x + self.rng.laplace()


def counted() -> Callable[[float], float]:
    calls = [0]

    def mechanism(x: float) -> float:
        calls[0] += 1
        return x

    return mechanism


class Remembering:
    noise: dict[float, float] = {}  # noqa: RUF012  # the mistake to find

    def __call__(self, x: float) -> float:
        return x + self.noise.setdefault(x, 0.5)


@cache
def _noise(x: float) -> float:
    return x / 3


def of_a_cache(x: float) -> float:
    return x + _noise(x)


def of_itself(x: float) -> float:
    of_itself.last = x  # type: ignore[attr-defined]
    return x


def test_variables_that_calls_change_are_named() -> None:
    cases: list[tuple[Any, str]] = [
        (Counter(), "Counter.calls"),
        (Counter().__call__, "Counter.calls"),
        (partial(Counter()), "Counter.calls"),
        (counted(), "calls"),
        (of_itself, "of_itself.last"),
        (Remembering(), "Remembering.noise"),
        (of_a_cache, "_noise"),
    ]
    for mechanism, name in cases:
        before = kept_state(mechanism)
        mechanism(1.0)
        assert changed(before, kept_state(mechanism)) == (name,)


def test_a_generator_is_no_state() -> None:
    for mechanism in (Counter().idle, partial(laplace.laplace_scalar, rng=np.random.default_rng())):
        before = kept_state(mechanism)
        assert mechanism(1.0) != mechanism(1.0)
        assert changed(before, kept_state(mechanism)) == ()


LAZY = """
def draw():
    import {module}
    {module}.calls += {added}
    return float({module}.rate)
"""


@pytest.mark.parametrize(("added", "names"), [(0, ()), (1, ("{module}.calls",))])
def test_a_module_that_the_first_call_imports_is_no_state_but_its_later_changes_are(
    added: int, names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"kept_lazily_{added}"
    (tmp_path / f"{module}.py").write_text("calls, rate, float = 0, 0.5, 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    scope: dict[str, Any] = {"__name__": "kept_lazily_home"}
    exec(LAZY.format(module=module, added=added), scope)  # a module of its own
    draw = scope["draw"]
    before = kept_state(draw)
    draw()
    first = kept_state(draw)
    assert f"{module}.float" in first.keys() - before.keys()
    assert changed(before, first) == ()
    draw()
    expected = tuple(name.format(module=module) for name in names)
    assert changed(before.with_imports(first), kept_state(draw)) == expected
    monkeypatch.delitem(sys.modules, module)


def test_an_import_may_change_the_environment_but_a_draw_may_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept_setting.py").write_text("import os\nos.environ['KEPT_SETTING'] = '1'\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("KEPT_SETTING", "0")
    monkeypatch.setenv("KEPT_CALLS", "0")

    def imports(rows: list[int]) -> int:
        importlib.import_module("kept_setting")
        return len(rows)

    def counts(rows: list[int]) -> int:
        os.environ["KEPT_CALLS"] += "1"
        return len(rows)

    found = [changes_environment(imports), changes_environment(counts)]
    del sys.modules["kept_setting"]
    assert found == [False, True]
    assert os.environ["KEPT_SETTING"] == "1"


def changes_environment(function: Any) -> bool:
    target = CallableTarget(function=function)
    sampler = Sampler(target, [NeighbouringPair([1], [])], 0)
    for _ in range(2):
        sampler.draw(FirstCalls((0, PROBING, 1), FIRST_CALLS))
    return sampler.changes_environment
