"""The house rules that no linter knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests import conftest

ROOT = Path(__file__).parents[2]
ROOMS = ("dpaudit", "mechanisms", "benchmarks", "tests")
SOURCES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
TEXTS = [
    *SOURCES,
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "benchmarks").glob("*.md"),
    *(ROOT / "configs").rglob("*.y*ml"),
    ROOT / "pyproject.toml",
    ROOT / "Makefile",
    ROOT / ".ci" / "run",
]
LONGEST_FUNCTION = 50
Function = ast.FunctionDef | ast.AsyncFunctionDef
# Absolute paths of the machine that something was written on; such names within a path are fine.
SOMEBODYS_FOLDER = re.compile(r"(?<![\w.~)}/])/(?:work|tmp|home|root|Users|mnt)/")


def test_no_file_names_a_folder_of_somebodys_machine() -> None:
    assert SOMEBODYS_FOLDER.search(f"see /{'tmp'}/notes.md")
    found = [path for path in TEXTS if SOMEBODYS_FOLDER.search(path.read_text(encoding="utf-8"))]
    assert not found


def test_no_file_has_a_blank_in_its_name() -> None:
    """As one has that a report was written to by mistake."""
    rooms = [one for one in ROOT.iterdir() if one.name in {*ROOMS, "docs", "configs"}]
    every = [*ROOT.iterdir(), *(path for room in rooms for path in room.rglob("*"))]
    assert len(every) > len(SOURCES)
    assert [path for path in every if re.search(r"\s", path.name)] == []


def test_functions_are_short() -> None:
    lines = {
        f"{path}:{node.lineno} {node.name}": _lines(node)
        for path in SOURCES
        for node in _functions(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert len(lines) > 5_000
    assert not {name: count for name, count in lines.items() if count > LONGEST_FUNCTION}


def test_code_for_python_3_8_makes_no_object_of_a_subscripted_type() -> None:
    """Python 3.8 refuses `dict[int, float]()`; annotations are not evaluated."""
    for_older = ("dpaudit/tracing/runs", "dpaudit/library_claims")
    paths = [path for room in for_older for path in (ROOT / room).rglob("*.py")]
    assert len(paths) > 20
    assert _subscripted(ast.parse("found = dict[int, float]()")) == [1]
    found = {path: _subscripted(ast.parse(path.read_text(encoding="utf-8"))) for path in paths}
    assert not {path: lines for path, lines in found.items() if lines}


def _subscripted(tree: ast.AST) -> list[int]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    built_in = {"dict", "list", "set", "frozenset", "tuple", "type"}
    return [
        one.lineno
        for one in calls
        if isinstance(one.func, ast.Subscript)
        and isinstance(one.func.value, ast.Name)
        and one.func.value.id in built_in
    ]


def _functions(tree: ast.AST) -> Iterator[Function]:
    """Yield all functions within, of which no expression has any."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.expr):
            if isinstance(node, Function):
                yield node
            yield from _functions(node)


def _lines(function: Function) -> int:
    """Count the lines of code: neither signature nor docstring make a function long."""
    has_docstring = ast.get_docstring(function) is not None and len(function.body) > 1
    first = function.body[1 if has_docstring else 0].lineno
    return (function.end_lineno or first) - first + 1


def test_every_room_of_the_tests_is_run() -> None:
    """By `make test`, or by a target of its own."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for room in conftest.collect_ignore:
        assert list((ROOT / "tests" / room).rglob("test_*.py"))
        assert re.search(rf"pytest (-.*)?tests/{room}$", makefile, re.MULTILINE), room


def test_every_room_is_a_package_that_is_shipped_with_its_types() -> None:
    folders = {path.parent for path in (ROOT / "dpaudit").rglob("*.py")}
    assert all((folder / "__init__.py").exists() for folder in folders)
    assert (ROOT / "dpaudit" / "py.typed").exists()


def test_the_architecture_names_every_room_and_no_other() -> None:
    tree = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("```")[1]
    drawn = set(re.findall(r"^  (\w+(?:/|\.py)) ", tree, re.MULTILINE))
    rooms = {f"{path.parent.name}/" for path in (ROOT / "dpaudit").glob("*/__init__.py")}
    files = {path.name for path in (ROOT / "dpaudit").glob("[a-z]*.py")} - {"version.py"}
    assert drawn == rooms | files


def test_every_module_that_the_architecture_names_is_there() -> None:
    tree = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("```")[1]
    there = {path.name for path in (ROOT / "dpaudit").rglob("*.py")}
    assert set(re.findall(r"\w+\.py", tree)) <= there
