"""Attacks and scores that users bring along."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpaudit
from dpaudit.attacks import user_attacks as users_attacks
from dpaudit.attacks.user_attacks import load_attacks
from dpaudit.auditing.engine import run_audit
from dpaudit.config.yaml_files import load_config
from dpaudit.draws import SelectionDraws
from dpaudit.errors import UsageError
from dpaudit.outcomes import Outcomes
from tests.raising import refusal

Rng = np.random.Generator
Scores = NDArray[np.float64]
Verdict = dpaudit.Verdict


def circles(dataset: float, size: int, rng: Rng) -> Scores:
    """Points at a noisy distance; no coordinate and no sum of coordinates says much."""
    angle = rng.uniform(0, 2 * math.pi, size)
    distance = 30 + dataset + rng.laplace(size=size)
    return np.asarray(distance[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))


def radius(outcomes: Outcomes) -> Scores:
    x, y = outcomes.named(["output[0]", "output[1]"])
    return np.hypot(x.numbers, y.numbers)


class Radius:
    """Keeps what it has learned in itself, and is the score too."""

    words = "the distance from the origin"

    def __init__(self) -> None:
        self.seen = 0

    def fit(self, selection: SelectionDraws) -> Radius:
        assert self.seen == 0
        self.seen = selection.size
        return self

    def __call__(self, outcomes: Outcomes) -> Scores:
        return radius(outcomes)


def fit_radius(selection: SelectionDraws) -> Callable[[Outcomes], Scores]:
    return radius


def fit_nearness(selection: SelectionDraws) -> Callable[[Outcomes], Scores]:
    return lambda outcomes: -radius(outcomes)


def audited(mechanism: Callable[..., Any] | str = circles, **given: Any) -> dpaudit.AuditResult:
    options = {"samples": 5_000, "stop": "never", **given}
    return dpaudit.audit(mechanism, 0.0, 1.0, dpaudit.PureDP(0.5), **options)


@functools.cache
def with_one(attack: Any) -> dpaudit.AuditResult:
    return audited(attacks=[attack])


@pytest.mark.parametrize("attack", [Radius, Radius(), fit_radius, fit_nearness])
def test_an_attack_is_used_where_it_is_best(attack: Any) -> None:
    result = with_one(attack)
    (certificate,) = result.certificates
    assert certificate.fixed.rule.attack == getattr(attack, "__qualname__", "Radius")
    assert 0.6 < result.epsilon_lower <= 1
    assert certificate.scores is not None
    assert certificate.scores.columns == ()


def test_an_attack_gets_selection_draws_only() -> None:
    given: list[int] = []

    def spying(selection: SelectionDraws) -> Callable[[Outcomes], Scores]:
        assert type(selection) is SelectionDraws
        given.append(selection.size)
        return radius

    result = audited(attacks=[spying], samples=20_000)
    learned = sum(
        one.draws for one in result.certificates[0].evidence.blocks if one.stage == "learning"
    )
    assert max(given) == learned == 2_500


def test_an_attack_in_a_file_goes_to_workers(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "def circles(x, size, rng):\n"
        "    angle, r = rng.uniform(0, 6.3, size), 30 + x + rng.laplace(size=size)\n"
        "    return r[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])\n"
        "class Radius:\n"
        "    def fit(self, selection): return Score()\n"
        "class Score:\n"
        "    def __call__(self, outcomes):\n"
        "        return np.hypot(*(one.numbers for one in outcomes.columns))\n"
    )
    path = str(tmp_path / "mine.py")
    results = [
        dpaudit.audit(
            f"{path}:circles",
            0,
            1,
            dpaudit.PureDP(1.0),  # which is true: after a violation, others draw too
            attacks=[f"{path}:Radius"],
            samples=2_000,
            stop="never",
            workers=workers,
        )
        for workers in (1, 2)
    ]
    assert results[0].certificates[0].fixed.rule.attack == f"{path}:Radius"
    assert results[0].certificates == results[1].certificates


class Raising:
    def fit(self, selection: SelectionDraws) -> Any:
        raise ValueError("no\nway")


def fails(scores: Callable[[Outcomes], Any]) -> Callable[[SelectionDraws], Any]:
    def attack(selection: SelectionDraws) -> Any:
        return scores

    attack.__qualname__ = "attack"
    return attack


@pytest.mark.parametrize(
    ("attack", "code", "named"),
    [
        (Raising, "attack-raised", r"Raising raised ValueError: no way .* \d+ draws"),
        (
            fails(lambda outcomes: np.zeros((outcomes.size, 2))),
            "attack-returned-no-score",
            r"shape \(\d+, 2\);",
        ),
        (lambda selection: None, "attack-returned-no-score", "None from fit"),
        (
            fails(lambda outcomes: radius(outcomes) - radius(outcomes).mean()),
            "score-depends-on-batch",
            "",
        ),
    ],
)
def test_an_attack_that_fails_is_an_error_and_no_verdict(
    attack: Any, code: str, named: str
) -> None:
    result = audited(attacks=[attack])
    assert (result.verdict, result.error_code) == (Verdict.ERROR, code)
    assert result.error is not None
    assert "\n" not in result.error
    assert re.search(named, result.error)


def test_a_score_that_cannot_be_sent_to_workers() -> None:
    result = audited("benchmarks.whole_audits:signs", attacks=[fit_nearness], workers=2)
    assert (result.verdict, result.error_code) == (Verdict.ERROR, "score-not-sendable")
    assert "fit_nearness" in str(result.error)


class NoFit:
    pass


class WithArguments:
    def __init__(self, depth: int) -> None:
        self.depth = depth

    def fit(self, selection: SelectionDraws) -> Any:
        return radius


@pytest.mark.parametrize(
    ("attack", "code", "named"),
    [
        (NoFit, "attack-without-fit", "the class NoFit "),
        (WithArguments, "attack-not-loadable", "the class WithArguments .*: TypeError"),
        (3, "attack-without-fit", "type int"),
        ("mechanisms.laplace:laplase", "name-not-found", "Did you mean 'laplace'"),
        ("radius", "attack-not-found", "'radius'"),
    ],
)
def test_an_attack_that_cannot_be_loaded_is_a_usage_error(
    attack: Any, code: str, named: str
) -> None:
    error = refusal(audited, attacks=[attack])
    assert error.code == code
    assert re.search(f"attacks: .*{named}", str(error))


def test_an_attack_given_twice() -> None:
    assert refusal(audited, attacks=[Radius, Radius]).code == "attack-twice"


def test_installed_attacks_are_off_unless_named(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = {
        "radius": EntryPoint("radius", f"{__name__}:Radius", users_attacks.GROUP),
        "broken": EntryPoint("broken", "mechanisms.nowhere:Attack", users_attacks.GROUP),
    }
    monkeypatch.setattr(EntryPoint, "load", lambda one: _load(one.value))
    monkeypatch.setattr(users_attacks, "installed_attacks", lambda: offered)
    (loaded,) = load_attacks(["radius"], travels=False)
    assert loaded.name == "radius"
    assert load_attacks([], travels=False) == ()
    with pytest.raises(UsageError, match=r"installed: radius, broken\. Did you mean 'radius'"):
        load_attacks(["radios"], travels=False)
    with pytest.raises(UsageError, match="the installed attack 'broken' cannot be loaded: Module"):
        load_attacks(["broken"], travels=False)


def _load(value: str) -> Any:
    if value.endswith("nowhere:Attack"):
        raise ModuleNotFoundError("No module named 'mechanisms.nowhere'")
    return Radius


def distance(output: list[float]) -> float:
    return math.hypot(*output)


def test_a_score_by_post_processing_is_all_that_is_looked_at() -> None:
    result = audited(post_process=distance)
    assert result.epsilon_lower > 0.8
    words = {event.words.partition(" ")[0] for event in result.certificates[0].fixed.events}
    assert words == {"output"}
    assert audited(post_process=lambda output: 0).epsilon_lower == 0


def test_a_file_finds_attacks_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "audits"
    folder.mkdir()
    (folder / "mine.py").write_text(
        "def draw(x, rng):\n    return x + rng.laplace()\n"
        "def fit(selection):\n    return lambda outcomes: outcomes.columns[0].numbers\n"
    )
    (folder / "audits.yaml").write_text(
        "version: 1\naudits:\n  - {mechanism: 'mine.py:draw', d1: 0, d2: 1, claim: {epsilon: 1},"
        " attacks: ['mine.py:fit']}\n"
    )
    (spec,) = load_config(Path("audits/audits.yaml"), {"samples": 200})
    (certificate,) = run_audit(spec).certificates
    assert any(attack.attack.endswith("mine.py:fit") for attack in certificate.attacks)
