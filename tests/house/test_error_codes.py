"""docs/errors.md lists the codes that the source uses, with the classes that have them."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dpaudit import errors
from dpaudit.inputs.yaml_values import YamlError

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "errors.md"
CODE = re.compile(r"[a-z]+(-[a-z]+)*")
ROW = re.compile(r"\| `(.*?)` \| (.+?) \| (.+?) \|")


@cache
def documented() -> dict[str, frozenset[str]]:
    """Return the classes of each code on the page."""
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    matches = [ROW.fullmatch(row) for row in rows]
    assert all(matches), [row for row, match in zip(rows, matches, strict=True) if not match]
    codes = [match[1] for match in matches if match]
    assert len(codes) == len(set(codes)), "a code has two rows"
    return {match[1]: frozenset(match[2].split(", ")) for match in matches if match}


@cache
def used() -> tuple[tuple[str, str | None, str], ...]:
    """Return every code in the source, with the class that gets it where one is named, and the
    place."""
    found: list[tuple[str, str | None, str]] = []
    found += [(code, None, "dpaudit/errors.py") for _, code in errors.CODES_OF_OTHERS]
    for path in sorted((ROOT / "dpaudit").rglob("*.py")):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "code" in text else ():
            for code, name in _codes(node):
                found.append((code, name, str(path.relative_to(ROOT))))
    return tuple(found)


def _codes(node: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Yield the codes that a call, a class or the defaults of a function state."""
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else None
        is_error = name is not None and isinstance(getattr(errors, name, None), type)
        for keyword in node.keywords:
            if keyword.arg == "code":
                yield from ((one, name if is_error else None) for one in _texts(keyword.value))
    elif isinstance(node, ast.ClassDef):
        for line in node.body:
            if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "code":
                name = node.name if hasattr(errors, node.name) else None
                yield from ((one, name) for one in _texts(line.value))
    elif isinstance(node, ast.arguments):
        defaults = [*([None] * (len(node.args) - len(node.defaults))), *node.defaults]
        named = [*zip(node.args, defaults, strict=True)]
        for argument, default in [*named, *zip(node.kwonlyargs, node.kw_defaults, strict=True)]:
            if argument.arg == "code" and default is not None:
                yield from ((one, None) for one in _texts(default))


def _texts(node: ast.AST) -> Iterator[str]:
    """Yield the texts that an expression may have as its value."""
    if isinstance(node, ast.IfExp):
        yield from [*_texts(node.body), *_texts(node.orelse)]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def test_every_code_is_documented_and_every_documented_code_is_used() -> None:
    undocumented = {f"{code} ({place})" for code, _, place in used() if code not in documented()}
    assert not undocumented, "docs/errors.md lacks these"
    assert set(documented()) == {code for code, _, _ in used()}


def test_codes_are_words_joined_by_hyphens() -> None:
    assert [code for code in documented() if not CODE.fullmatch(code)] == []


def test_classes_are_those_on_the_page() -> None:
    wrong = [
        f"{code} of {name} ({place})"
        for code, name, place in used()
        if name is not None and name not in documented()[code]
    ]
    assert wrong == []


def test_every_class_has_a_default() -> None:
    classes = [one for one in vars(errors).values() if isinstance(one, type)]
    without = [
        one.__name__
        for one in classes
        if issubclass(one, errors.DpauditError) and "code" not in vars(one)
    ]
    assert without == []


def test_other_exceptions_have_the_code_of_the_first_class_that_fits() -> None:
    codes = [
        errors.code_of(error)
        for error in (FileNotFoundError(), MemoryError(), KeyError(), SystemExit(1))
    ]
    assert codes == ["system", "out-of-memory", "internal", "internal"]


def test_an_error_keeps_its_code_on_the_way_to_another_process() -> None:
    kinds: list[errors.DpauditError] = [
        errors.MechanismError("it ", "fails", code="draws-repeat"),
        errors.UsageError(errors.Given("resume=True", "--resume"), code="journal-exists"),
        YamlError("no value", 3, code="key-twice"),
    ]
    for error in kinds:
        sent = pickle.loads(pickle.dumps(error))
        assert (type(sent), sent.code, str(sent)) == (type(error), error.code, str(error))
