"""Find places in the user's code: the files that belong to the user, the modules to which a
mechanism refers, and the lines that a run executes."""

from __future__ import annotations

import functools
import importlib.util
import linecache
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import FrameType

    Line = tuple[str, int]


_OURS = f"{Path(__file__).resolve().parents[2]}{os.sep}"
_RUNNING = str(Path(__file__).resolve().with_name("running.py"))
_PYTHONS = f"{Path(os.__file__).parent}{os.sep}"
_INSTALLED = tuple(f"{os.sep}{kind}-packages{os.sep}" for kind in ("site", "dist"))

# Takes the place of an instruction's offset in a `Spot` that stands for a whole function.
_WHOLE = -1
# For each draw, addition and comparison of noise, at most this number of calling lines is recorded,
# innermost first.
_MAX_CALLERS = 5


class Spot(tuple):  # type: ignore[type-arg]  # as Python 3.8 has it
    """An instruction of the user's code: (code object, offset in bytes). In all runs of a trace, an
    instruction has the same `Spot`. It is hashed by identity, since a code object hashes slowly."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


class Place(NamedTuple):
    """A line of code.

    line: The number of the line, from 1.
    code: The text of the executed expression, or of the whole line if the expression is unknown.
    function: The name of the function that contains the line; "" if it is unknown.
    """

    file: str
    line: int
    code: str
    function: str


class Followed:
    """Decides which code counts as the user's: all files outside of installed packages, and the
    files and packages that the user names.

    packages: The names or paths of these packages, folders and files.
    home: Code, such as the factory of a library's mechanism. If no line of the user's code draws
        the noise, reports show it in place of a line.
    """

    def __init__(self, files: Sequence[str], packages: Sequence[str], home: CodeType) -> None:
        self.home = Spot((home, _WHOLE))
        self._files = set(files)
        self._folders = tuple(folder for package in packages for folder in _folders(package))
        # Maps the path of a file to whether it is the user's. Cached, since each draw asks again.
        self.known: dict[str, bool] = {}
        # Number of loaded modules when `_modules` was computed. If it changes, `_modules` is
        # computed again.
        self._loaded = 0
        self._modules: list[ModuleType] = []
        self._spots: dict[tuple[int, int], Spot] = {}

    def spot(self, frame: FrameType) -> Spot:
        """Return the instruction that a frame executes."""
        code, instruction = frame.f_code, frame.f_lasti
        spot = self._spots.get((id(code), instruction))
        if spot is None:
            spot = self._spots[id(code), instruction] = Spot((code, instruction))
        return spot

    def owns(self, file: str) -> bool:
        known = self.known.get(file)
        if known is None:
            known = self.known[file] = self._owns(file)
        return known

    def modules(self, objects: Iterable[Any]) -> list[ModuleType]:
        """Return the user's modules to which the objects refer, directly or through other modules.
        The result is cached until a further module is imported."""
        if len(sys.modules) != self._loaded:
            self._modules = reached(objects, self.owns)
            self._loaded = len(sys.modules)
        return self._modules

    def _owns(self, file: str) -> bool:
        if file.startswith((_OURS, "<")) and file not in self._files:
            return False
        if file in self._files or file.startswith(self._folders):
            return True
        return not (file.startswith(_PYTHONS) or any(folder in file for folder in _INSTALLED))


def check_followed(packages: Sequence[str]) -> None:
    """Raise ValueError for a name that is no package, module, folder or file."""
    for package in packages:
        if not _folders(package):
            raise ValueError(
                f"there is no package, folder or file {package!r} whose lines could be followed"
            )


def _folders(name: str) -> list[str]:
    """Return [path] for a package, module, folder or file; [] if it does not exist."""
    path = Path(name)
    if path.exists():
        full = str(path.resolve())
        return [full + os.sep if path.is_dir() else full]
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
        file = None if spec is None or not spec.has_location else spec.origin
    if file is None:
        return []
    path = Path(file)
    return [f"{path.parent}{os.sep}" if path.stem == "__init__" else file]


def is_ours(file: str) -> bool:
    """Return whether a file is a part of dpaudit."""
    return file.startswith(_OURS)


def own_frame(frame: FrameType | None, followed: Followed) -> FrameType | None:
    """Return the innermost frame that runs the user's code: `frame` itself, or the nearest of its
    callers. Return None if there is none up to the call of the mechanism."""
    known = followed.known
    while frame is not None:
        file = frame.f_code.co_filename
        owns = known.get(file)
        if owns is None:
            owns = followed.owns(file)
        if owns:
            return frame
        if file == _RUNNING:
            return None
        frame = frame.f_back
    return None


def callers(frame: FrameType | None, followed: Followed) -> tuple[Spot, ...]:
    """Return the callers of a frame: at most 5 spots, innermost first."""
    spots: list[Spot] = []
    frame = None if frame is None else own_frame(frame.f_back, followed)
    while frame is not None and len(spots) < _MAX_CALLERS:
        spots.append(followed.spot(frame))
        frame = own_frame(frame.f_back, followed)
    return tuple(spots)


def place_of(spot: Spot) -> Place:
    """Return the place of a spot, with its expression (before Python 3.11, with its whole line)."""
    code, instruction = spot
    if instruction == _WHOLE:
        return Place(code.co_filename, code.co_firstlineno, f"{code.co_name}(…)", code.co_name)
    line, text = _line(code, instruction), None
    if hasattr(code, "co_positions"):  # since Python 3.11
        positions = list(code.co_positions())[instruction // 2]
        text = _segment(code.co_filename, *positions)
        line = positions[0] or line
    if text is None:
        text = linecache.getline(code.co_filename, line).strip()
    return Place(code.co_filename, line, text, code.co_name)


def places_of(spots: Iterable[Spot]) -> tuple[Place, ...]:
    """Return the places of some spots, in order. Each spot counts once."""
    return tuple(map(place_of, dict.fromkeys(spots)))


def _segment(
    file: str,
    line: int | None,
    end_line: int | None,
    column: int | None,
    end_column: int | None,
) -> str | None:
    if line is None or line != end_line or column is None or end_column is None:
        return None
    # Python counts columns in bytes of the line's UTF-8 encoding.
    return linecache.getline(file, line).encode()[column:end_column].decode(errors="replace")


@functools.lru_cache(maxsize=256)
def loops_of(file: str) -> tuple[tuple[int, int], ...]:
    """Return (first line, last line) of each loop in a file; () if it cannot be read."""
    import ast

    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    kinds = ast.For, ast.While, ast.AsyncFor
    return tuple(
        (loop.lineno, loop.end_lineno or loop.lineno)
        for loop in ast.walk(tree)
        if isinstance(loop, kinds)
    )


def _line(code: CodeType, instruction: int) -> int:
    import dis

    number = code.co_firstlineno
    for start, line in dis.findlinestarts(code):
        if start > instruction:
            break
        number = line or number
    return number


# Limits of the search for modules to which the user's objects refer: number of items of a list or
# mapping that are examined (`_MAX_ITEMS`), and depth of nested lists, closures and wrapped
# functions (`_MAX_HOLDER_DEPTH`).
_MAX_ITEMS, _MAX_HOLDER_DEPTH = 100, 2


def reached(objects: Iterable[Any], owns: Callable[[str], bool]) -> list[ModuleType]:
    """Return the user's modules in which the objects are defined, and those to which these modules
    refer, directly or indirectly. `owns` says whether the file at a path is the user's. Only in
    these modules are primitives replaced, which saves time."""
    modules: dict[int, ModuleType] = {}
    waiting: list[tuple[Any, int]] = [(start, 0) for start in objects]
    while waiting:
        value, depth = waiting.pop()
        if not isinstance(value, ModuleType):
            waiting += _held(value, depth)
        elif id(value) not in modules:
            file = getattr(value, "__file__", None)
            if isinstance(file, str) and owns(file):
                modules[id(value)] = value
                for member in list(vars(value).values()):
                    waiting.append((member, 0))
                    is_here = getattr(member, "__module__", None) == value.__name__
                    for name in _names(member) if is_here else ():
                        waiting.append((sys.modules.get(name), 0))
    return sorted(modules.values(), key=lambda module: module.__name__)


def _held(value: Any, depth: int) -> Iterator[tuple[Any, int]]:
    """Yield (object, depth) for the modules and values to which a value refers."""
    below: Iterable[Any] = ()
    if isinstance(value, functools.partial):
        below = (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, MethodType):
        below = value.__func__, value.__self__
    elif isinstance(value, FunctionType):
        yield sys.modules.get(value.__module__ or ""), depth
        below = (*map(_content, value.__closure__ or ()), getattr(value, "__wrapped__", None))
    elif isinstance(value, (dict, list, tuple, set, frozenset)):
        below = list(value.values() if isinstance(value, dict) else value)[:_MAX_ITEMS]
    elif value is not None:
        for kind in (value if isinstance(value, type) else type(value)).__mro__:
            yield sys.modules.get(kind.__module__), depth
    if depth < _MAX_HOLDER_DEPTH:
        yield from ((item, depth + 1) for item in below)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has not been assigned yet
        return None


def _names(value: Any) -> Iterator[str]:
    """Yield names, perhaps of modules, to which the code of a function or class refers."""
    if isinstance(value, type):
        for member in list(vars(value).values()):
            yield from () if isinstance(member, type) else _names(member)
    value = getattr(value, "fget", getattr(value, "__func__", value))
    while isinstance(value, FunctionType):
        package = value.__globals__.get("__package__") or ""
        codes = [value.__code__]
        for code in codes:
            codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
            for name in code.co_names:
                yield from (name, f"{package}.{name}", f"{package.rpartition('.')[0]}.{name}")
        value = getattr(value, "__wrapped__", None)


# Largest number of executed lines that are recorded in a run; later lines are ignored.
MAX_LINES = 100_000


class Lines(list):  # type: ignore[type-arg]  # of lines
    """The lines that a run executes, as (file, line number), in order. `end` is the last of them in
    the function in which the run began."""

    _outer: Any = None
    end: Line | None = None

    def ran(self, code: CodeType, line: int) -> None:
        if len(self) == MAX_LINES:
            return
        self.append((code.co_filename, line))
        if self._outer is None:
            self._outer = code
        if code is self._outer:
            self.end = code.co_filename, line


def unwatched(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls `function` while no executed lines are recorded
    (`sys.settrace`). Its lines are not the user's, and to look at each of them would be slow."""

    def call(*args: Any, **named: Any) -> Any:
        tracer = sys.gettrace()
        if tracer is None:
            return function(*args, **named)
        sys.settrace(None)
        try:
            return function(*args, **named)
        finally:
            sys.settrace(tracer)

    return call


@contextmanager
def watched(followed: Followed) -> Iterator[Lines]:
    """Yield a list, to which each line of the user's code that this thread executes is appended."""
    lines = Lines()
    tracer = sys.gettrace()
    sys.settrace(_tracer(followed, lines))
    try:
        yield lines
    finally:
        sys.settrace(tracer)


def _tracer(followed: Followed, lines: Lines) -> Any:
    def local(frame: Any, event: str, arg: Any) -> Any:
        if event == "line":
            lines.ran(frame.f_code, frame.f_lineno)
        return local

    def entered(frame: Any, event: str, arg: Any) -> Any:
        return local if followed.owns(frame.f_code.co_filename) else None

    return entered
