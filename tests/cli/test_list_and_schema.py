"""`dpaudit list` and `dpaudit schema`."""

from __future__ import annotations

import json
import re
import sys
from importlib import invalidate_caches
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import pytest

from dpaudit.auditing.options import OPTIONS
from dpaudit.claims import DEFINITIONS
from dpaudit.import_path import resolve
from dpaudit.inputs.adjacency import ADJACENCY_KINDS, ARGUMENTS, parse_adjacency
from dpaudit.reports.json import schema as result_schema
from dpaudit.reports.layout import width_of
from dpaudit.reports.registry import FORMATS


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in a working directory of its own."""
    folder = tmp_path / "specimens_for_a_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "noise.py").write_text(
        "from math import exp\nfrom os.path import join\n\n"
        'def add(x):\n    """Adds noise.\n\n    More."""\n\n'
        "def silent(x): pass\n\ndef constant(): pass\n\ndef _hidden(x): pass\n\nclass Tool: pass\n"
    )
    (folder / "broken.py").write_text("import a_module_that_nobody_has\n")
    for name in [one for one in sys.modules if one.startswith(folder.name)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return folder


def test_every_definition_is_listed_with_its_formula(dpaudit: Any) -> None:
    result = dpaudit("list", "definitions")
    assert result.exit_code == 0
    for key, definition in DEFINITIONS.items():
        assert f"\n{key} " in f"\n{result.stdout}"
        assert definition.formula in " ".join(result.stdout.split())
    flags = re.search(r"^gaussian .*\((.*)\)$", result.stdout, re.MULTILINE)
    assert flags is not None
    assert flags[1] == "--mu or --sigma"


def test_every_format_is_listed(dpaudit: Any) -> None:
    result = dpaudit("list", "reports")
    assert result.exit_code == 0
    for name, form in FORMATS.items():
        assert re.search(
            rf"^{name} +[A-Z].*\n?.*\n?.*\({re.escape(form.suffix)}\)", result.stdout, re.MULTILINE
        )


def test_what_a_format_is_for_is_said(dpaudit: Any) -> None:
    said = " ".join(dpaudit("list", "reports").stdout.split())
    assert "html Audits as one self-contained HTML file" in said
    assert "registered" not in said


def test_every_adjacency_is_listed(dpaudit: Any) -> None:
    result = dpaudit("list", "adjacencies")
    assert result.exit_code == 0
    listed = [line.split()[0] for line in result.stdout.splitlines() if line[0] != " "]
    assert listed == list(ADJACENCY_KINDS)
    for kind in listed:
        assert parse_adjacency(f"{kind}:{ARGUMENTS[kind]}" if kind in ARGUMENTS else kind)


def test_attacks_that_are_asked_for_name_their_flag(dpaudit: Any) -> None:
    text = " ".join(dpaudit("list", "attacks").stdout.split())
    shown = set(re.findall(r"\((--[\w-]+)\)", text))
    flags = {one.flag for one in OPTIONS.values()}
    assert {"--floating-point", "--timing", "--repeat"} <= shown <= flags


def test_the_audits_of_a_file(dpaudit: Any, config: Any) -> None:
    path = config("first", "second", more=", matrix: {e: [1, 2]}, expect: pass")
    path.write_text(path.read_text().replace("name: first", "name: 'first-${e}'"))
    path.write_text(path.read_text().replace("name: second", "name: 'second-${e}'"))
    shown = dpaudit("list", path)
    assert shown.exit_code == 0, shown.stderr
    assert [line.split()[0] for line in shown.stdout.splitlines()] == [
        *("first-1", "first-2", "second-1", "second-2")
    ]
    assert "1-DP, m:f, expect pass" in shown.stdout
    assert dpaudit("list", "audits", path).stdout == shown.stdout


def test_a_command_goes_before_a_file_of_its_name(
    dpaudit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("attacks", "mine"):
        (tmp_path / name).write_text("version: 2")
    assert "one_dimensional" in dpaudit("list", "attacks").stdout
    result = dpaudit("list", "mine")
    assert result.exit_code == 2
    assert "mine:1: version=2 is not known" in result.stderr
    (tmp_path / "mine.py").write_text('def noise(x):\n    "Adds it."\n')
    assert dpaudit("list", "mine.py").stdout == "mine.py:noise  Adds it.\n"
    assert dpaudit("list", "nope.yaml").exit_code == 2


@pytest.mark.parametrize("what", ["definitions", "attacks", "reports", "adjacencies"])
def test_no_line_is_longer_than_a_terminal_is_wide(dpaudit: Any, what: str) -> None:
    lines = dpaudit("list", what).stdout.splitlines()
    assert max(map(len, lines)) <= 80


def test_reference_mechanisms_that_are_not_there(
    dpaudit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [one for one in sys.modules if one.partition(".")[0] == "mechanisms"]:
        monkeypatch.delitem(sys.modules, name)
    elsewhere = [one for one in sys.path if one and not (Path(one) / "mechanisms").is_dir()]
    monkeypatch.setattr(sys, "path", elsewhere)
    monkeypatch.setattr(sys, "meta_path", [PathFinder])
    monkeypatch.chdir(tmp_path)
    result = dpaudit("list", "mechanisms")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "'mechanisms'" in result.stderr
    assert "my/file.py" in result.stderr


def test_wide_characters_are_aligned(dpaudit: Any, package: Path) -> None:
    (package / "wide.py").write_text('def 計算(x): "One."\ndef calculate(x): "Two."\n')
    invalidate_caches()
    lines = dpaudit("list", "mechanisms", f"{package.name}.wide").stdout.splitlines()
    assert [width_of(line.partition("  ")[0]) for line in lines] == [30, 35]
    assert len({width_of(line) for line in lines}) == 1


def test_what_is_listed_can_be_given_as_a_target(dpaudit: Any, package: Path) -> None:
    """A lambda has the name that it is given to, and a class is called by a method."""
    (package / "various.py").write_text(
        "from enum import Enum\n"
        "noise = lambda x: x\n"
        "class Tool:\n    def use(self): pass\n"
        'class Laplace:\n    "Adds it."\n    def draw(self, x): pass\n'
        "class Same(Laplace): pass\n"
        "class Called:\n    def __call__(self, x): pass\n"
        "class Wrong(ValueError):\n    def add(self, x): pass\n"
        "class Kind(Enum):\n    A = 1\n"
    )
    lines = dpaudit("list", package / "various.py").stdout.splitlines()
    named = [line.partition(":")[2].split()[0] for line in lines]
    assert named == ["noise", "Laplace", "Same", "Called"]
    assert lines[1].endswith("  Adds it.")
    assert all(resolve(line.split()[0]) for line in lines)


def test_specimens_are_listed_and_the_tools_beside_them_are_not(dpaudit: Any) -> None:
    result = dpaudit("list", "mechanisms")
    assert result.exit_code == 0
    targets = [line.split()[0] for line in result.stdout.splitlines()]
    assert "mechanisms.laplace:wrong_density" in targets
    assert not any("truth" in target.partition(":")[0] for target in targets)


def test_public_functions_of_a_package_with_their_first_line(dpaudit: Any, package: Path) -> None:
    result = dpaudit("list", "mechanisms", package.name)
    assert result.exit_code == 0
    lines = [line.split(maxsplit=1) for line in result.stdout.splitlines()]
    assert lines == [
        [f"{package.name}.noise:add", "Adds noise."],
        [f"{package.name}.noise:silent"],
    ]
    assert f"left out {package.name}.broken: ModuleNotFoundError" in result.stderr


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("specimens_for_a_tes", 2, "Did you mean 'specimens_for_a_test'?"),
        ("specimens_for_a_test.broken", 2, "No module named 'a_module_that_nobody_has'"),
        ("specimens_for_a_test.missing", 2, "'specimens_for_a_test.missing' in "),
    ],
)
def test_wrong_packages(dpaudit: Any, package: Path, name: str, code: int, message: str) -> None:
    result = dpaudit("list", "mechanisms", name)
    assert result.exit_code == code
    assert message in result.stderr


def test_a_first_sentence_that_is_longer_than_a_line(dpaudit: Any, package: Path) -> None:
    (package / "long.py").write_text('def f(x):\n    """As after\n    a fork.\n\n    More."""\n')
    invalidate_caches()
    result = dpaudit("list", "mechanisms", f"{package.name}.long")
    assert result.stdout.endswith("As after a fork.\n")


def test_a_package_without_functions_matches_nothing(dpaudit: Any, package: Path) -> None:
    (package / "empty.py").write_text("")
    invalidate_caches()
    assert dpaudit("list", "mechanisms", f"{package.name}.empty").exit_code == 5


def test_a_mistyped_list(dpaudit: Any) -> None:
    result = dpaudit("list", "mechanism")
    assert result.exit_code == 2
    assert "Did you mean 'mechanisms'?" in result.stderr


def test_the_schema_is_json(dpaudit: Any) -> None:
    result = dpaudit("schema")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["$schema"].startswith("https://json-schema.org")


def test_the_schema_of_results_is_that_of_their_files(dpaudit: Any) -> None:
    printed = dpaudit("schema", "result")
    assert printed.exit_code == 0
    assert json.loads(printed.stdout) == json.loads(json.dumps(result_schema()))
    assert dpaudit("schema", "config").stdout == dpaudit("schema").stdout
    wrong = dpaudit("schema", "results")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "not one of 'config', 'result'" in wrong.stderr
