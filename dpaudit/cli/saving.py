"""Write results to the files of --report and --json, or to standard output. Before the first audit,
dpaudit checks that each file can be written. After each audit, each file is replaced as a whole, so
that no reader sees half a file. Standard output is written at the end of the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import click

from dpaudit.certificates.result import AuditResult
from dpaudit.cli.messages import standard_error
from dpaudit.errors import DpauditError, UsageError
from dpaudit.reports.formats import FORMATS, Format, parse_report
from dpaudit.wording import MAX_WIDTH, did_you_mean, of_width

STDOUT = "-"
# Environment variable in which GitHub Actions names the file for the summary of a step.
_SUMMARY = "GITHUB_STEP_SUMMARY"
# Largest size that GitHub allows for the summary of a step, in bytes.
_MAX_SUMMARY_BYTES = 2**20


class Destination(NamedTuple):
    """A report format and the file to write the report to. If `is_added`, dpaudit chose the file,
    and not the user: the report is then added at the end of the file, and errors are ignored."""

    format: Format
    file: str
    is_added: bool = False


def destinations(
    json: str | None,
    reports: Sequence[str],
    inputs: Iterable[str | Path],
    formats: Collection[str] = FORMATS,
) -> list[Destination]:
    """Return the destinations that the values of --json and --report name, each in one of
    `formats`. Raises UsageError for a file that cannot be written, or that is one of `inputs`."""
    outputs = [parse_report(text, formats) for text in reports]
    outputs += [] if json is None else [(FORMATS["json"], json)]
    inputs, destinations = set(inputs), list[Destination]()
    for form, file in outputs:
        if file != STDOUT:
            check_writable(file, inputs)
        # Make the path absolute now, since a mechanism may change the working directory.
        path = file if file == STDOUT else str(Path(file).absolute())
        _check_distinct(path, [destination.file for destination in destinations])
        destinations.append(Destination(form, path))
    if all(destination.format is not FORMATS["markdown"] for destination in destinations):
        destinations += _summary()
    for destination in destinations:
        destination.format.check()
    return destinations


def _check_distinct(file: str, others: Iterable[str]) -> None:
    """Raise UsageError if one of the other reports goes to the same file."""
    if not any(is_same(file, report) for report in others):
        return
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


def is_same(first: str, second: str) -> bool:
    """Return whether two paths lead to the same file, perhaps through a symbolic link."""
    return first == second or (
        STDOUT not in (first, second) and Path(first).resolve() == Path(second).resolve()
    )


def _summary() -> list[Destination]:
    """Return [the step summary of GitHub Actions] if the program runs there, else []."""
    file = os.environ.get(_SUMMARY)
    if not file:
        return []
    return [Destination(FORMATS["markdown"], str(Path(file).absolute()), is_added=True)]


class Results:
    """The results of a run, and their destinations: files, or standard output (`-`)."""

    def __init__(self, to: Iterable[Destination], stdout: TextIO, planned: int = 1) -> None:
        """Begin with empty reports of a run of `planned` audits."""
        self._entries: dict[Destination, list[Any]] = {destination: [] for destination in to}
        self._planned = planned
        # Names of audits that were not run because the run stopped early.
        self.not_run: Sequence[str] = ()
        self._stdout = stdout

    @property
    def beside(self) -> TextIO:
        """Return the stream for the text report: standard error if another report goes to standard
        output, else standard output."""
        return standard_error() if any(to.file == STDOUT for to in self._entries) else self._stdout

    def add(self, result: AuditResult) -> None:
        """Add a result to the report of each destination."""
        for to, entries in self._entries.items():
            entries.append(to.format.entry(result))

    def replace(self, place: int, result: AuditResult) -> None:
        """Replace the result with the index `place`."""
        for to, entries in self._entries.items():
            entries[place] = to.format.entry(result)

    def keep(self) -> None:
        """Save the results so far in files, since a crash in the next audit may end this
        process."""
        for to, entries in self._entries.items():
            if to.is_added or to.file == STDOUT:
                continue
            with suppress(DpauditError, OSError):  # `finish` reports the error
                write_whole(Path(to.file), self._text(to, entries), lasting=False)

    def finish(self) -> None:
        """Write all results. Without results, write empty reports, since a file of an earlier run
        could be taken for the file of this run. Raises UsageError if a file cannot be written."""
        for to, entries in self._entries.items():
            text = self._text(to, entries)
            if to.is_added:
                add_at_end(Path(to.file), text)
            elif to.file == STDOUT:
                # Reports for people use the encoding of the terminal. Formats for programs, such as
                # JSON, are always UTF-8.
                shown = text if to.format.is_prose else _bytes(text)
                click.echo(shown, nl=False, file=self._stdout)
            else:
                write_whole(Path(to.file), text)

    def _text(self, to: Destination, entries: Sequence[Any]) -> str:
        return to.format.document(entries, self._planned, self.not_run)


def record_place(file: str | None) -> str | None:
    """Return the value of --json as an absolute path, since a mechanism may change the working
    directory. Raises UsageError if the file cannot be written."""
    if file is None or file == STDOUT:
        return file
    check_writable(file)
    return str(Path(file).absolute())


def show_and_save(
    report: str, record: Callable[[], str], place: str | None, stdout: TextIO
) -> None:
    """Print a report, and write a record as JSON to `place`, the result of `record_place`. If the
    record goes to standard output, the report goes to standard error."""
    if place is not None and place != STDOUT:
        write_whole(Path(place), record())
    is_shown = place == STDOUT
    click.echo(report, nl=False, file=standard_error() if is_shown else stdout)
    if is_shown:
        click.echo(_bytes(record()), nl=False, file=stdout)


def outputs_of(
    json: str | None,
    reports: Sequence[str],
    known: Collection[str],
    inputs: Sequence[str | Path],
) -> list[tuple[str, str]]:
    """Return (format, file) for each value of --json and --report of a command that is no audit.

    known: names of the formats of the command.
    inputs: files that must not be replaced.

    Raises UsageError for another format, for a file that cannot be written, and for two reports in
    one file.
    """
    outputs = [] if json is None else [("json", json)]
    for text in reports:
        kind, colon, file = text.partition(":")
        if kind not in known:
            why = f"--report {text!r} is not known; known: {', '.join(known)}."
            raise UsageError(why + did_you_mean(kind, known), code="option-invalid")
        outputs.append((kind, file if colon else STDOUT))
    files: list[str] = []
    for _, file in outputs:
        if file != STDOUT:
            check_writable(file, inputs)
        path = file if file == STDOUT else str(Path(file).absolute())
        _check_distinct(path, files)
        files.append(path)
    return [(kind, file) for (kind, _), file in zip(outputs, files, strict=True)]


def write_outputs(
    outputs: Sequence[tuple[str, str]], text_of: Callable[[str], str], stdout: TextIO
) -> None:
    """Print the text report, and write the reports that `outputs_of` returned.

    text_of: returns the report in a format.
    """
    with of_width(MAX_WIDTH):
        texts = {kind: text_of(kind) for kind, _ in outputs}
    for kind, file in outputs:
        if file != STDOUT:
            write_whole(Path(file), texts[kind])
    shown = [kind for kind, file in outputs if file == STDOUT]
    click.echo(text_of("text"), nl=False, file=standard_error() if shown else stdout)
    for kind in shown:
        click.echo(texts[kind], nl=False, file=stdout)


def add_at_end(path: Path, text: str) -> None:
    """Append a text to the file at `path`. Do nothing if the file cannot be written, or if it would
    reach the limit of GitHub Actions, `_MAX_SUMMARY_BYTES` bytes."""
    content = _bytes(text)
    with suppress(OSError):
        old_content = path.read_bytes() if path.exists() else b""
        if len(old_content) + len(content) < _MAX_SUMMARY_BYTES:
            with path.open("ab") as file:
                # The new content begins with a Markdown heading, which must be at the beginning of
                # a line.
                file.write(b"\n" + content if old_content[-1:] not in (b"", b"\n") else content)


def _bytes(text: str) -> bytes:
    """Return a text in UTF-8, with escapes for characters that UTF-8 cannot encode."""
    return text.encode(errors="backslashreplace")


def check_writable(path: Path | str, inputs: Iterable[Path | str] = ()) -> None:
    """Raise UsageError if no file can be written at `path`, or if the file would replace one of the
    files `inputs`. Pass a path of the user as the text that was typed: a slash at its end means a
    folder, and a pathlib.Path would drop it."""
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
    """Turn operating-system errors about `path` into errors of the class `kind`."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # a RuntimeError for links that lead to themselves
        reason = getattr(error, "strerror", None) or error
        raise kind(f"cannot write {path}: {reason}", code="cannot-write") from error


def _check_place(path: Path, inputs: Iterable[Path | str]) -> None:
    if path.exists() and any(Path(file).exists() and path.samefile(file) for file in inputs):
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


def write_whole(path: Path, content: str | bytes, *, lasting: bool = True) -> None:
    """Replace a file atomically: readers see either the old content or the new content. With
    `lasting`, wait until the content is on the disk.

    Raises DpauditError if the file cannot be written. This is no UsageError: `check_writable` has
    refused mistakes of the user, such as a missing folder, before the run.
    """
    with _writing(path, DpauditError):
        temporary = _beside(path)
        try:
            with temporary.open("wb") as file:
                file.write(_bytes(content) if isinstance(content, str) else content)
                file.flush()
                if lasting:
                    os.fsync(file.fileno())
            temporary.replace(path.resolve())
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def write_together(texts: Mapping[Path, bytes]) -> None:
    """Write several files. If one cannot be written, change none: all contents are on the disk
    before the first file is replaced."""
    folders: list[Path] = []
    temporary: dict[Path, Path] = {}
    backups: list[tuple[Path, Path | None]] = []
    try:
        for path, content in texts.items():
            with _writing(path):
                absent = [
                    folder for folder in (path.parent, *path.parent.parents) if not folder.exists()
                ]
                for folder in reversed(absent):
                    folder.mkdir()
                    folders.append(folder)
                temporary[path] = _beside(path)
                with temporary[path].open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
        for path, new in temporary.items():
            with _writing(path):
                target = path.resolve()
                old = new.with_suffix(".old") if target.exists() else None
                backups.append((target, old))
                if old is not None:
                    target.rename(old)
                new.rename(target)
    except BaseException:
        for target, old in backups:
            with suppress(OSError):
                target.unlink(missing_ok=True) if old is None else old.replace(target)
        _remove([*temporary.values()])
        for folder in reversed(folders):
            with suppress(OSError):
                folder.rmdir()
        raise
    _remove([old for _, old in backups if old is not None])


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    # Use the folder of the target for the temporary file, since a rename is atomic only within one
    # file system.
    target = path.resolve()
    return target.with_name(f".{target.name}.{os.getpid()}.tmp")
