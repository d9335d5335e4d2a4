"""A new definition is one new file and one line of registration."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import dpaudit
from dpaudit.auditing.options import OPTIONS
from dpaudit.claims import DEFINITIONS, PureDP
from dpaudit.claims.registry import described, parameters
from dpaudit.errors import UsageError

ROOT = Path(__file__).parents[2]

NEW = '''\
"""κ-Kullback-Leibler differential privacy."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from dpaudit.claims.base import Parameter, PrivacyClaim, ProfilePoint, positive_up_to


@dataclass(frozen=True, slots=True)
class KullbackLeiblerDP(PrivacyClaim):
    """KL(P, Q) ≤ κ, so that P(E) - Q(E) ≤ √(κ/2) (Pinsker)."""

    key: ClassVar[str] = "kl"
    title: ClassVar[str] = "Kullback-Leibler differential privacy"
    formula: ClassVar[str] = "KL(P, Q) ≤ κ"

    kappa: Annotated[
        float,
        Parameter(
            "The κ of a KL claim.",
            positive_up_to(1.0),
            is_telling=True,
            has_curve=True,
            symbol="κ",
        ),
    ]

    def profile(self, epsilon):
        return math.sqrt(self.kappa / 2)

    def points(self):
        return (ProfilePoint(0.0, self.profile(0.0)),)

    def describe(self):
        return f"{self.kappa:.12g}-KL DP"

    def own_lower(self, epsilon, delta_lower):
        return "kappa", 2 * max(0.0, delta_lower) ** 2 * (1 - 1e-15)
'''
MECHANISM = """\
def noisy(x, size, rng):
    return x + rng.normal(size=size)
"""
AUDITS = """\
version: 1
defaults: {mechanism: "mine.py:noisy", d1: 0, d2: 1, samples: 5000}
audits:
  - {name: as it is, claim: {kappa: 0.5}, expect: pass}
  - name: too strong
    claim: {epsilon: 1, delta: 0.3, curve: {kl: {kappa: 0.1}, expect: violation}}
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one more file and one more line."""
    folder = tmp_path_factory.mktemp("copy")
    # With its bytecode, but for files that another process is writing.
    ignored = shutil.ignore_patterns("*.pyc.*")
    shutil.copytree(ROOT / "dpaudit", folder / "dpaudit", ignore=ignored)
    claims = folder / "dpaudit" / "claims"
    (claims / "kullback_leibler.py").write_text(NEW)
    line = "from dpaudit.claims.kullback_leibler import KullbackLeiblerDP as KullbackLeiblerDP\n"
    with (claims / "definitions.py").open("a") as file:
        file.write(line)
    (folder / "mine.py").write_text(MECHANISM)
    (folder / "audits.yaml").write_text(AUDITS)
    return folder


COMMANDS = {
    "list definitions": "Kullback-Leibler differential privacy (--kappa)",
    "bound --help-all": "--kappa NUMBER",
    "explain profile --kappa 0.5 --mu 1": "0.5-KL DP",
    "run mine.py:noisy --d1 0 --d2 1 --kappa 0.02 --samples 5000 --expect violation": "κ at least",
    "run audits.yaml -v --json kept.json": "0.1-KL DP",
    "report kept.json -v": "0.5-KL DP",
    "schema": "The κ of a KL claim.",
}
PROGRAM = """
import json, sys
from click.testing import CliRunner
import dpaudit
from dpaudit import *
from dpaudit.cli.commands import cli
assert str(KullbackLeiblerDP(0.5)) == "KullbackLeiblerDP(kappa=0.5)"
assert "KullbackLeiblerDP" in dpaudit.__all__
results = [CliRunner().invoke(cli, words.split()) for words in json.loads(sys.argv[1])]
print(json.dumps([[result.exit_code, result.output] for result in results]))
"""


def test_commands_know_a_new_definition(copy: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([*COMMANDS])],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for (code, output), (words, shown) in zip(
        json.loads(ended.stdout), COMMANDS.items(), strict=True
    ):
        assert code == 0, (words, output)
        assert shown in output, words


def test_nothing_outside_of_claims_names_a_definition() -> None:
    """What differs between definitions is asked of the claim, not of its class."""
    classes = {one.__name__ for one in DEFINITIONS.values()}
    paths = [one for one in (ROOT / "dpaudit").rglob("*.py") if one.parent.name != "claims"]
    texts = {path.relative_to(ROOT): path.read_text() for path in sorted(paths)}
    found = [
        f"{path}: {name}"
        for path, text in texts.items()
        if any(name in text for name in classes)  # most files need not be parsed
        for node in ast.walk(ast.parse(text))
        for name in _names(node)
        if name in classes
    ]
    assert found == []


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [one.name for one in node.names]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    return [node.id] if isinstance(node, ast.Name) else []


@dataclass(frozen=True, slots=True)
class MisnamedDP(PureDP):
    """A claim whose methods name parameters that it does not have, where they are given."""

    of_delta: ClassVar[str] = "epsilon"
    of_divergence: ClassVar[str] = "epsilon"

    def own_lower(self, epsilon: float, delta_lower: float) -> tuple[str, float]:
        return self.of_delta, 0.0

    def divergences(self) -> tuple[tuple[float, float], ...]:
        return ((2.0, 1.0),)

    def own_of_divergence(self, order: float, lower: float) -> tuple[str, float]:
        return self.of_divergence, 0.0


def test_a_bound_for_no_parameter_is_refused_before_the_first_draw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    OPTIONS["claim"].read(MisnamedDP(1.0))
    for name, method in (("of_divergence", "own_of_divergence"), ("of_delta", "own_lower")):
        monkeypatch.setattr(MisnamedDP, name, "kapa")
        with pytest.raises(UsageError) as error:
            dpaudit.audit(lambda x: pytest.fail("drawn"), 0, 1, MisnamedDP(1.0))
        assert error.value.code == "option-invalid"
        assert f"its {method} names 'kapa'" in str(error.value)
        assert str(error.value).endswith("one of: epsilon")


def test_every_definition_is_in_the_documents() -> None:
    table = (ROOT / "docs" / "configuration.md").read_text()
    assert [key for key in DEFINITIONS if f"| `{key}` |" not in table] == []


def test_every_parameter_says_what_it_is() -> None:
    for one in parameters():
        assert one.help.endswith(".")
        assert one.definitions
    for name in {name for key in DEFINITIONS for name in described(key)}:
        about = [described(key)[name] for key in DEFINITIONS if name in described(key)]
        assert len({(one.help, one.forms, one.has_flag) for one in about}) == 1  # of the flag
