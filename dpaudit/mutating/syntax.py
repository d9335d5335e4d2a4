"""The syntax tree of a Python file, with the places in its text, so that parts can be replaced."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple, TypeVar

Node = TypeVar("Node", bound=ast.expr | ast.stmt)


class Edit(NamedTuple):
    """A replacement of a part of a file by a text."""

    node: ast.expr | ast.stmt
    text: str


class Module:
    """A Python file as text and as a syntax tree. Raises SyntaxError for text that is no Python."""

    def __init__(self, text: str) -> None:
        self.tree, self._text = ast.parse(text), text.encode()
        # ast counts columns in bytes.
        self._starts = [0]
        for line in self._text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._parents = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }
        self._imports = dict(self._imported())
        self.defined = {
            node.name
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        }

    def _imported(self) -> Iterator[tuple[str, str]]:
        """Yield (name in the file, full name) for what the file imports."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for name in node.names:
                    full = name.name if name.asname else name.name.partition(".")[0]
                    yield name.asname or full, full
            elif isinstance(node, ast.ImportFrom):
                for name in node.names:
                    yield name.asname or name.name, f"{node.module or ''}.{name.name}"

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield a node and those that contain it, the innermost first, but not the module."""
        while node is not self.tree:
            yield node
            node = self._parents[node]

    def nodes(self, kind: type[Node]) -> list[Node]:
        """Return the expressions or statements of a kind in the order of the text."""
        nodes = [node for node in ast.walk(self.tree) if isinstance(node, kind)]
        return sorted(nodes, key=self._span)

    def text_of(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._text[start:end].decode()

    def text_after(self, statement: str, node: ast.stmt) -> str:
        """Return the text of a statement after another one in the same block."""
        before = self._text[: self._span(node)[0]].rpartition(b"\n")[2].decode()
        # A statement in the line of its `def` has no line of its own.
        separator = "; " if before.strip() else f"\n{before}"
        return f"{statement}{separator}{self.text_of(node)}"

    def operand(self, node: ast.expr) -> str:
        """Return an expression as a text that can be a factor: in parentheses if needed."""
        is_simple = isinstance(node, ast.Name | ast.Constant | ast.Attribute | ast.Call)
        return self.text_of(node) if is_simple else f"({self.text_of(node)})"

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr | ast.stmt)
        end_line, end_column = node.end_lineno or 0, node.end_col_offset or 0
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[end_line - 1] + end_column,
        )

    def full_name(self, node: ast.AST) -> str:
        """Return the name of a function with the full name of an imported module, such as
        `numpy.random.laplace`; `rng.laplace` for a method of a variable, and `.laplace` for a
        method of any other value."""
        if isinstance(node, ast.Name):
            return self._imports.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            return f"{self.full_name(node.value)}.{node.attr}"
        return ""

    def last_name(self, node: ast.AST) -> str:
        return self.full_name(node).rpartition(".")[2]

    def name_in_file(self, package: str) -> str | None:
        """Return the name that a package has in the file; None if the file does not import it."""
        return next((name for name, full in self._imports.items() if full == package), None)

    def function_of(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """Return the innermost function with a name that contains a node; None outside of all."""
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        return next((part for part in self.around(node) if isinstance(part, functions)), None)

    def is_decorator(self, node: ast.AST) -> bool:
        """Return whether a node is a part of a decorator."""
        inside = pairwise(self.around(node))
        return any(part in getattr(outer, "decorator_list", ()) for part, outer in inside)

    def edited(self, edits: Iterable[Edit]) -> str:
        """Return the text of the file after some replacements, none within another."""
        text = self._text
        for edit in sorted(edits, key=lambda edit: self._span(edit.node), reverse=True):
            start, end = self._span(edit.node)
            text = text[:start] + edit.text.encode() + text[end:]
        return text.decode()
