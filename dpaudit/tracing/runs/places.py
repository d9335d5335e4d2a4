"""Where something happens: the line of the user's own code that a call comes from."""

from __future__ import annotations

import importlib.util
import linecache
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .reaching import reached

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import CodeType, FrameType, ModuleType

_OURS = f"{Path(__file__).resolve().parents[2]}{os.sep}"
_RUNNING = str(Path(__file__).resolve().with_name("running.py"))
_PYTHONS = f"{Path(os.__file__).parent}{os.sep}"
_INSTALLED = tuple(f"{os.sep}{kind}-packages{os.sep}" for kind in ("site", "dist"))

# In the place of an instruction: what a function has made, as a whole.
_WHOLE = -1
# So many callers of a line are named.
_DEEPEST = 5


class Spot(tuple):  # type: ignore[type-arg]  # as Python 3.8 has it
    """Where in a program something happens: its code, and the instruction. There is one for each in
    all runs of a trace, so that it is found at once: code itself is compared piece by piece."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


class Place(NamedTuple):
    """A line of code.

    file: as Python names it.  line: from 1.  code: the expression, or the line where it is not
    known.  function: that it is in.
    """

    file: str
    line: int
    code: str
    function: str


class Followed:
    """Whose code counts as the user's own: all that is not installed, and what is named.

    files: more files, by their paths.  packages: more packages, or folders.  home: what stands for
    a mechanism that is a library's own object, such as the factory that has made it: noise that no
    code of the user's has asked for is drawn there.
    """

    def __init__(
        self,
        files: Sequence[str] = (),
        packages: Sequence[str] = (),
        home: CodeType | None = None,
    ) -> None:
        self.home = None if home is None else Spot((home, _WHOLE))
        self._files = set(files)
        self._folders = tuple(folder for one in packages for folder in _folders(one))
        # Files that have been asked for: there are few, which are asked for at every draw.
        self.known: dict[str, bool] = {}
        # As many modules were loaded when these were looked for.
        self._loaded = 0
        self._modules: list[ModuleType] = []
        self._spots: dict[tuple[int, int], Spot] = {}

    def spot(self, frame: FrameType) -> Spot:
        """Return where a frame is."""
        code, instruction = frame.f_code, frame.f_lasti
        found = self._spots.get((id(code), instruction))
        if found is None:
            found = self._spots[id(code), instruction] = Spot((code, instruction))
        return found

    def owns(self, file: str) -> bool:
        known = self.known.get(file)
        if known is None:
            known = self.known[file] = self._owns(file)
        return known

    def modules(self, objects: Iterable[Any]) -> list[ModuleType]:
        """Return the user's own modules that objects can reach; the same ones for the objects of
        another run, as long as no more modules are loaded."""
        if len(sys.modules) != self._loaded:
            self._modules = reached(objects, self.owns)
            self._loaded = len(sys.modules)
        return self._modules

    def _owns(self, file: str) -> bool:
        if file.startswith((_OURS, "<")) and file not in self._files:
            return False
        if file in self._files or file.startswith(self._folders):
            return True
        return not (file.startswith(_PYTHONS) or any(one in file for one in _INSTALLED))


def check_followed(packages: Sequence[str]) -> None:
    """Raise ValueError for what names no package, folder or file."""
    for one in packages:
        if not _folders(one):
            raise ValueError(
                f"there is no package, folder or file {one!r} whose lines could be followed"
            )


def _folders(name: str) -> list[str]:
    """Return the folders, or the files, that a package or a path names."""
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
    found = Path(file)
    return [f"{found.parent}{os.sep}" if found.stem == "__init__" else file]


def own_frame(frame: FrameType | None, followed: Followed) -> FrameType | None:
    """Return the innermost frame of the user's own code, from this one outwards, as far as the call
    of the mechanism; None where there is none."""
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
    """Return the spots in the user's own code that a frame was called from, the next one first."""
    found: list[Spot] = []
    frame = None if frame is None else own_frame(frame.f_back, followed)
    while frame is not None and len(found) < _DEEPEST:
        found.append(followed.spot(frame))
        frame = own_frame(frame.f_back, followed)
    return tuple(found)


def place_of(spot: Spot) -> Place:
    """Return the line, and the expression in it, of a spot."""
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
    """Return the lines of some spots, each once."""
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
    # Columns count the bytes of a line.
    return linecache.getline(file, line).encode()[column:end_column].decode(errors="replace")


def _line(code: CodeType, instruction: int) -> int:
    import dis

    found = code.co_firstlineno
    for start, line in dis.findlinestarts(code):
        if start > instruction:
            break
        found = line or found
    return found
