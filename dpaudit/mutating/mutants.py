"""The mutants of a file: one planted bug each, in code that audits run."""

from __future__ import annotations

import ast
import difflib
import tokenize
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from dpaudit.mutating.kinds import KINDS
from dpaudit.mutating.syntax import Module
from dpaudit.processes.origin import location


@dataclass(frozen=True, slots=True)
class Reach:
    """The user's code that an audit runs.

    functions: (file, first line) of each function.
    names: names that these functions use, and that of the mechanism.
    """

    functions: frozenset[tuple[str, int]] = frozenset()
    names: frozenset[str] = frozenset()

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A file with one planted bug.

    Attributes
    ----------
    kind : str
        A key of `dpaudit.mutating.kinds.KINDS`.
    file : str
        Absolute path of the file, which is never written.
    line : int
        Number of the first changed line.
    old, new : tuple of str
        The changed lines, without and with the bug.
    source : str
        The text of the file with the bug.
    audits : tuple of str
        Names of the audits that run the changed code.
    """

    kind: str
    file: str
    line: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    source: str
    audits: tuple[str, ...]

    @property
    def where(self) -> str:
        """File and line, relative to the working directory if inside."""
        return location(self.file, self.line)


def mutants(
    reaches: Sequence[tuple[str, Reach]], kinds: Collection[str] = KINDS
) -> Iterator[Mutant]:
    """Yield the mutants of all files that audits run, each bug once.

    reaches: name and reach of each audit.
    kinds: names of the kinds of bugs to plant.
    """
    for file in sorted({file for _, reach in reaches for file in reach.files}):
        with tokenize.open(file) as opened:  # in the encoding that the file states
            text = opened.read()
        module, sources = Module(text), {text}
        for kind in (kind for kind in KINDS if kind in kinds):
            for edits in KINDS[kind](module):
                audits = [n for n, reach in reaches if _runs(module, edits[0].node, file, reach)]
                source = module.edited(edits) if audits else text
                if source not in sources:
                    sources.add(source)
                    yield _mutant(kind, file, text, source, tuple(audits))


def _runs(module: Module, node: ast.AST, file: str, reach: Reach) -> bool:
    """Return whether an audit runs the function around a node or, outside of functions, uses a name
    that the statement binds."""
    function = module.function_of(node)
    if module.is_decorator(node):
        return False
    if function is not None:
        first = min(part.lineno for part in (function, *function.decorator_list))
        return (file, first) in reach.functions
    *_, statement = module.around(node)
    bound = (n for n in ast.walk(statement) if isinstance(getattr(n, "ctx", None), ast.Store))
    names = {getattr(statement, "name", ""), *(getattr(n, "id", "") for n in bound)}
    return file in reach.files and not names.isdisjoint(reach.names)


def _mutant(kind: str, file: str, text: str, source: str, audits: tuple[str, ...]) -> Mutant:
    old, new = text.splitlines(), source.splitlines()
    changes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    parts = [change for change in changes if change[0] != "equal"]
    removed = tuple(line for _, start, end, _, _ in parts for line in old[start:end])
    added = tuple(line for _, _, _, start, end in parts for line in new[start:end])
    return Mutant(kind, file, parts[0][3] + 1, removed, added, source, audits)
