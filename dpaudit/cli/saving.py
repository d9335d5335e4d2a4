"""Write results to the destinations of --report and --json: to files after each audit, or to
standard output at the end. Files are checked before the first audit, and replaced as a whole."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import click

from dpaudit.certificates.result import AuditResult
from dpaudit.cli.process import parent as watching
from dpaudit.errors import DpauditError, UsageError
from dpaudit.reports.registry import FORMATS, Format, parse_report

STDOUT = "-"
# Environment variable that names the file for the summary of a step of GitHub Actions, and the
# largest size of this file in bytes.
_SUMMARY = "GITHUB_STEP_SUMMARY"
_LARGEST_SUMMARY = 2**20


class Destination(NamedTuple):
    """A format and a file. is_added: append to the file if possible, without an error if not, since
    the user did not ask for this file."""

    format: Format
    file: str
    is_added: bool = False


def destinations(
    json: str | None,
    reports: Sequence[str],
    inputs: Iterable[str | Path],
    formats: Collection[str] = FORMATS,
) -> list[Destination]:
    """Return the destinations of results. Raises UsageError for a file that cannot be written, so
    that no audit runs in vain.

    inputs: files that must not be replaced.  formats: formats that the command writes.
    """
    given = [parse_report(text, formats) for text in reports]
    given += [] if json is None else [(FORMATS["json"], json)]
    inputs, found = set(inputs), list[Destination]()
    for form, file in given:
        if file != STDOUT:
            check_writable(file, inputs)
        # Absolute, since a mechanism may change the working directory.
        place = file if file == STDOUT else str(Path(file).absolute())
        if any(_is_same(place, one.file) for one in found):
            if file == STDOUT:
                raise UsageError(
                    f"only one report can go to standard output ({file!r}); give the others a "
                    "path each, as in --json FILE or --report junit:FILE",
                    code="options-conflict",
                )
            raise UsageError(
                f"two reports cannot be written to {file!r}; give each its own file",
                code="options-conflict",
            )
        found.append(Destination(form, place))
    if all(one.format is not FORMATS["markdown"] for one in found):
        found += _summary()
    for one in found:
        one.format.check()
    return found


def _is_same(one: str, other: str) -> bool:
    """Return whether two paths lead to the same place."""
    return one == other or (
        STDOUT not in (one, other) and Path(one).resolve() == Path(other).resolve()
    )


def _summary() -> list[Destination]:
    """Return a list with the summary of the step as a destination if GitHub Actions runs this
    program; else an empty list."""
    file = os.environ.get(_SUMMARY)
    if not file:
        return []
    return [Destination(FORMATS["markdown"], str(Path(file).absolute()), is_added=True)]


class Results:
    """Results to be written to files, or to standard output (`-`)."""

    def __init__(self, to: Iterable[Destination], stdout: TextIO, planned: int = 1) -> None:
        """Begin without results. planned: number of results of a complete run."""
        self._entries: dict[Destination, list[Any]] = {one: [] for one in to}
        self._planned = planned
        # Names of audits that were left out because the run stopped early.
        self.not_run: Sequence[str] = ()
        self._stdout = stdout
        self._kept: Path | None = None

    @property
    def beside(self) -> TextIO:
        """The stream for the text report: standard error if another report goes to standard output,
        else standard output."""
        return sys.stderr if any(one.file == STDOUT for one in self._entries) else self._stdout

    def add(self, result: AuditResult) -> None:
        """Add a result."""
        for to, entries in self._entries.items():
            entries.append(to.format.entry(result))

    def replace(self, place: int, result: AuditResult) -> None:
        """Replace the result with this index."""
        for to, entries in self._entries.items():
            entries[place] = to.format.entry(result)

    def keep(self) -> None:
        """Save the results so far. Called after each audit, since the next audit may end this
        process."""
        for to, entries in self._entries.items():
            if to.is_added:
                continue
            with suppress(DpauditError, OSError):  # `finish` reports the error
                if to.file != STDOUT or watching.is_watched():
                    path = Path(to.file) if to.file != STDOUT else self._aside()
                    write_whole(path, _bytes(self._text(to, entries)), lasting=False)

    def finish(self) -> None:
        """Write all results. Without results, files are written too, since a file of an earlier run
        would look like one of this run. Raises UsageError if a file cannot be written."""
        for to, entries in self._entries.items():
            text = self._text(to, entries)
            if to.is_added:
                add_at_end(Path(to.file), _bytes(text))
            elif to.file == STDOUT:
                # Programs read UTF-8, whatever the encoding of the terminal is.
                shown = text if to.format.is_prose else _bytes(text)
                click.echo(shown, nl=False, file=self._stdout)
                if self._kept is not None:
                    watching.say(watching.FILE, "")
                    self._kept.unlink(missing_ok=True)
                    self._kept = None
            else:
                write_whole(Path(to.file), _bytes(text))

    def _text(self, to: Destination, entries: Sequence[Any]) -> str:
        return to.format.document(entries, self._planned, self.not_run)

    def _aside(self) -> Path:
        """Return a temporary file for the results so far. If this process dies, the process that
        watches it prints this file to standard output."""
        if self._kept is None:
            number, path = tempfile.mkstemp(prefix="dpaudit-")
            os.close(number)
            self._kept = Path(path)
            watching.say(watching.FILE, path)
        return self._kept


def add_at_end(path: Path, content: bytes) -> None:
    """Append to a file, if it can be written and stays below the largest size of a summary."""
    with suppress(OSError):
        before = path.read_bytes() if path.exists() else b""
        if len(before) + len(content) < _LARGEST_SUMMARY:
            with path.open("ab") as file:
                # The text begins with a heading, which must begin a line.
                file.write(b"\n" + content if before[-1:] not in (b"", b"\n") else content)


def _bytes(text: str) -> bytes:
    """Return text as UTF-8, with escapes for characters that have no encoding."""
    return text.encode(errors="backslashreplace")


def check_writable(path: Path | str, inputs: Iterable[Path | str] = ()) -> None:
    """Raise UsageError if a file cannot be written at `path`, or would replace an input. path: as
    the user wrote it; a Path would drop a slash at the end."""
    if str(path).endswith(("/", os.sep)):
        example = Path(path) / "results.json"
        raise UsageError(
            f"cannot write {path}: this path is a folder; name a file, e.g. {example}",
            code="cannot-write",
        )
    if not str(path).strip():  # wrong quotes, as in --report 'junit: ', or an unset variable
        raise UsageError(f"cannot write {str(path)!r}: name a file", code="cannot-write")
    path = Path(path)
    with _writing(path):
        _check_place(path, inputs)
        probe = _beside(path)
        probe.touch()
        probe.unlink()


@contextmanager
def _writing(path: Path, kind: type[DpauditError] = UsageError) -> Iterator[None]:
    """Turn errors of the system about a path into an error of the given kind."""
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
    """Replace a file atomically, so that readers see either the old or the new content.

    lasting: wait until the content is on the disk.  Raises DpauditError; `check_writable` has
    raised UsageError before the work.
    """
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
    """Write several files, or leave all files as they were. All contents are on the disk before the
    first file is replaced."""
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
