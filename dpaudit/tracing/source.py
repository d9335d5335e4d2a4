"""Source lines and numbers in messages, and the lines on which a scale is set."""

from __future__ import annotations

import ast
import linecache
import math
import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from dpaudit.certificates.traced import SourceLine
from dpaudit.tracing.runs.places import Place


def shown(place: Place) -> SourceLine:
    """Return a place as a `SourceLine`. The file is relative to the working directory if it lies
    inside it."""
    here, file = Path(os.getcwd()), Path(place.file)
    inside = file.relative_to(here) if file.is_relative_to(here) else file
    return SourceLine(str(inside), place.line, place.code)


# Relative rounding error of a computed number.
_ROUNDING = 1e-9


def times(count: int) -> str:
    """Return a count in words: "once", "twice" or "3 times"."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def rounded_up(value: float) -> str:
    """Return a number as text, rounded up to four digits."""
    if not math.isfinite(value) or value <= 0:
        return number(value)
    unit = _unit(value)
    return number(math.ceil(value / unit * (1 - _ROUNDING)) * unit)


def rounded_down(value: float) -> str:
    """Return a number above 0 as text, rounded down to four digits."""
    unit = _unit(value)
    return number(math.floor(value / unit * (1 + _ROUNDING)) * unit)


def _unit(value: float) -> float:
    return 10.0 ** (math.floor(math.log10(value)) - 3)


def number(value: float) -> str:
    """Return a number as text with four significant digits; "∞" for infinity."""
    return "∞" if math.isinf(value) else f"{value:.4g}"


# Limits of `origins`: lines that it returns, nested constructors that it follows, and lines of a
# file that it parses (a longer file takes too long).
_FEW, _DEPTH, _LONGEST = 3, 2, 5_000
# Names of keyword arguments that do not set the scale of noise.
_OTHERS = {"loc", "size", "random_state", "rng", "lower", "upper", "dtype", "out", "low"}

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Assignment = ast.Assign | ast.AnnAssign | ast.AugAssign


def origins(line: SourceLine) -> tuple[SourceLine, ...]:
    """Return the lines of assignments that set the scale of the noise drawn on a line, nearest
    first. Only the function around the line is searched, so that a scale which is a constant or a
    parameter gives no line."""
    source = tuple(linecache.getlines(line.file))
    function = _function(source, line.line)
    call = None if function is None else _call(function, line, "".join(source))
    if function is None or call is None:
        return ()
    found = {one.lineno: one for one in _setting(function, call, line.line, _DEPTH)}
    nearest = sorted(found, reverse=True)[:_FEW]
    return tuple(SourceLine(line.file, number, source[number - 1].strip()) for number in nearest)


@lru_cache(maxsize=8)
def _parsed(source: tuple[str, ...]) -> ast.Module | None:
    if not source or len(source) > _LONGEST:
        return None
    try:
        return ast.parse("".join(source))
    except (SyntaxError, ValueError, RecursionError):  # of another version of Python
        return None


def _function(source: tuple[str, ...], line: int) -> _Function | None:
    """Return the innermost function that contains a line; None if there is none."""
    tree = _parsed(source)
    around = [
        node
        for node in ast.walk(tree or ast.Module([], []))
        if isinstance(node, _Function) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno, default=None)


def _call(function: _Function, line: SourceLine, source: str) -> ast.Call | None:
    """Return the call whose text is `line.code`; else the longest call inside this code; else the
    longest call on the line; None if there is no call."""
    calls = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and node.lineno <= line.line <= (node.end_lineno or 0)
    ]
    texts = {id(one): ast.get_source_segment(source, one) or "" for one in calls}
    named = [one for one in calls if texts[id(one)] == line.code]
    inside = [one for one in calls if texts[id(one)] in line.code]
    for some in (named, inside, calls):
        if some:
            return max(some, key=lambda one: len(texts[id(one)]))
    return None


def _setting(function: _Function, call: ast.Call, before: int, depth: int) -> Iterator[_Assignment]:
    """Yield the last assignments, before a line, to the names in the scale of a call. For a method
    of an object that the function made, look at the call that made the object.

    before: number of the line.
    depth: number of further constructors to follow.
    """
    func = call.func
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
        made = _last(function, func.value.id, before)
        if made is not None and isinstance(made.value, ast.Call) and not _is_generator(made.value):
            inside = list(_setting(function, made.value, made.lineno, depth - 1)) if depth else []
            yield from inside or [made]
            return
    for name in _names(_scales(call)):
        found = _last(function, name, before)
        if found is not None:
            yield found


def _is_generator(call: ast.Call) -> bool:
    """Return whether a call makes a random generator. The methods of a generator take the scale;
    the methods of other objects, such as a mechanism, have it from the constructor."""
    name = ast.unparse(call.func).rpartition(".")[2]
    return name in ("default_rng", "RandomState", "Random", "SystemRandom", "Generator")


def _scales(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the arguments that may set a scale: the second positional one, and keyword arguments.
    Of a function, or a call with a single argument, yield all positional arguments."""
    is_first = len(call.args) == 1 or not isinstance(call.func, ast.Attribute)
    yield from call.args if is_first else call.args[1:2]
    yield from (one.value for one in call.keywords if one.arg not in _OTHERS)


def _names(nodes: Iterable[ast.expr]) -> list[str]:
    inside = (each for node in nodes for each in ast.walk(node))
    return list(dict.fromkeys(one.id for one in inside if isinstance(one, ast.Name)))


def _last(function: _Function, name: str, before: int) -> _Assignment | None:
    """Return the last assignment to a name before a line; None if there is none."""
    found = [
        node
        for node in ast.walk(function)
        if isinstance(node, _Assignment) and node.lineno < before and name in _targets(node)
    ]
    return max(found, key=lambda node: node.lineno, default=None)


def _targets(node: _Assignment) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))
