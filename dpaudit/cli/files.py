"""Files that results are written to: refused before the work, whole or not at all after it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from dpaudit.errors import DpauditError, UsageError


def check_writable(path: Path | str, inputs: Iterable[Path | str] = ()) -> None:
    """Raise UsageError when a file cannot be put at `path`, or would replace an input. path: as it
    was given, since a Path does not know of a slash at its end."""
    if str(path).endswith(("/", os.sep)):
        example = Path(path) / "results.json"
        raise UsageError(
            f"cannot write {path}: this path is a folder; name a file, e.g. {example}",
            code="cannot-write",
        )
    if not str(path).strip():  # a slip of quotes, as in --report 'junit: ', or an unset variable
        raise UsageError(f"cannot write {str(path)!r}: name a file", code="cannot-write")
    path = Path(path)
    with _writing(path):
        _check_place(path, inputs)
        probe = _beside(path)
        probe.touch()
        probe.unlink()


@contextmanager
def _writing(path: Path, kind: type[DpauditError] = UsageError) -> Iterator[None]:
    """Raise an error for what the system says, where the place cannot even be looked at, too."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # a RuntimeError for links that lead to themselves
        reason = getattr(error, "strerror", None) or error
        raise kind(f"cannot write {path}: {reason}", code="cannot-write") from error


def _check_place(path: Path, inputs: Iterable[Path | str]) -> None:
    if path.exists() and any(Path(one).exists() and path.samefile(one) for one in inputs):
        raise UsageError(
            f"cannot write {path}: it is an input of this audit; name another file",
            code="cannot-write",
        )
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder; name a file", code="cannot-write")
    if path.exists() and not path.is_file():
        raise UsageError(
            f"cannot write {path}: it is not a regular file (for a pipe, give '-')",
            code="cannot-write",
        )
    parent = path.absolute().parent
    if parent.exists() and not parent.is_dir():
        raise UsageError(
            f"cannot write {path}: {str(path.parent)!r} is a file, not a folder",
            code="cannot-write",
        )
    if not parent.is_dir():
        raise UsageError(
            f"cannot write {path}: there is no folder {str(path.parent)!r}; create it",
            code="cannot-write",
        )


def write_whole(path: Path, content: bytes, *, lasting: bool = True) -> None:
    """Write a file that others only ever see complete, as it was before or as it is now. lasting:
    also when the machine loses its power in the next moment.  Raises DpauditError: whether it could
    be written, `check_writable` has said before the work."""
    with _writing(path, DpauditError):
        temporary = _beside(path)
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                if lasting:
                    os.fsync(file.fileno())
            temporary.replace(path.resolve())
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def write_together(texts: Mapping[Path, bytes]) -> None:
    """Write several files, or leave everything as it was: what takes room on the disk is done
    before the first of them is replaced."""
    made: list[Path] = []
    temporary: dict[Path, Path] = {}
    kept: list[tuple[Path, Path | None]] = []
    try:
        for path, content in texts.items():
            with _writing(path):
                absent = [one for one in (path.parent, *path.parent.parents) if not one.exists()]
                for folder in reversed(absent):
                    folder.mkdir()
                    made.append(folder)
                temporary[path] = _beside(path)
                with temporary[path].open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
        for path, new in temporary.items():
            with _writing(path):
                place = path.resolve()
                old = new.with_suffix(".old") if place.exists() else None
                kept.append((place, old))
                if old is not None:
                    place.rename(old)
                new.rename(place)
    except BaseException:
        for place, old in kept:
            with suppress(OSError):
                place.unlink(missing_ok=True) if old is None else old.replace(place)
        _remove([*temporary.values()])
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()
        raise
    _remove([old for _, old in kept if old is not None])


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    # In the same folder, since a rename is atomic only within one file system.
    target = path.resolve()
    return target.with_name(f".{target.name}.{os.getpid()}.tmp")
