"""Where results go, as --report and --json ask: to files as soon as they are there, or to standard
output at the end."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import click

from dpaudit.certificates.result import AuditResult
from dpaudit.cli.files import check_writable, write_whole
from dpaudit.cli.process import parent as watching
from dpaudit.errors import DpauditError, UsageError
from dpaudit.reports.registry import FORMATS, Format, parse_report

STDOUT = "-"
# Where GitHub Actions says that a step may write its summary to.
_SUMMARY = "GITHUB_STEP_SUMMARY"
_LARGEST_SUMMARY = 2**20


class Destination(NamedTuple):
    """A format and a file. is_added: at the end, to what others have written there by then, if that
    can be done: nobody has asked for it here."""

    format: Format
    file: str
    is_added: bool = False


def destinations(
    json: str | None,
    reports: Sequence[str],
    inputs: Iterable[str | Path],
    formats: Collection[str] = FORMATS,
) -> list[Destination]:
    """Return where results are to be written, refused before the work. Raises UsageError. inputs:
    files that must not be replaced. formats: those that the command writes."""
    given = [parse_report(text, formats) for text in reports]
    given += [] if json is None else [(FORMATS["json"], json)]
    inputs, found = set(inputs), list[Destination]()
    for form, file in given:
        if file != STDOUT:
            check_writable(file, inputs)
        # Found here, since a mechanism may go to another folder.
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
    """Return whether two places are one, by whatever path."""
    return one == other or (
        STDOUT not in (one, other) and Path(one).resolve() == Path(other).resolve()
    )


def _summary() -> list[Destination]:
    """Return the summary of a step of GitHub Actions, where there is one to write to."""
    file = os.environ.get(_SUMMARY)
    if not file:
        return []
    return [Destination(FORMATS["markdown"], str(Path(file).absolute()), is_added=True)]


class Results:
    """Results to be written to files, or to standard output (`-`)."""

    def __init__(self, to: Iterable[Destination], stdout: TextIO, planned: int = 1) -> None:
        """planned: how many results there are to be."""
        self._entries: dict[Destination, list[Any]] = {one: [] for one in to}
        self._planned = planned
        # Names of audits that the run has stopped before.
        self.not_run: Sequence[str] = ()
        self._stdout = stdout
        self._kept: Path | None = None

    @property
    def beside(self) -> TextIO:
        """Where reports are shown: standard error, if standard output belongs to one of them."""
        return sys.stderr if any(one.file == STDOUT for one in self._entries) else self._stdout

    def add(self, result: AuditResult) -> None:
        """Take one more result."""
        for to, entries in self._entries.items():
            entries.append(to.format.entry(result))

    def replace(self, place: int, result: AuditResult) -> None:
        """Take another result in the place of one that was taken before."""
        for to, entries in self._entries.items():
            entries[place] = to.format.entry(result)

    def keep(self) -> None:
        """Put down what there is, since what comes next may end this process."""
        for to, entries in self._entries.items():
            if to.is_added:
                continue
            with suppress(DpauditError, OSError):  # in the end it is said why
                if to.file != STDOUT or watching.is_watched():
                    path = Path(to.file) if to.file != STDOUT else self._aside()
                    write_whole(path, _bytes(self._text(to, entries)), lasting=False)

    def finish(self) -> None:
        """Write all results, or that there are none yet: a file of an earlier run would be taken
        for one of this run. Raises UsageError when that is not possible."""
        for to, entries in self._entries.items():
            text = self._text(to, entries)
            if to.is_added:
                add_at_end(Path(to.file), _bytes(text))
            elif to.file == STDOUT:
                # Programs read UTF-8, whatever a terminal can show.
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
        """Return a file that the process which watches this one shows if need be."""
        if self._kept is None:
            number, path = tempfile.mkstemp(prefix="dpaudit-")
            os.close(number)
            self._kept = Path(path)
            watching.say(watching.FILE, path)
        return self._kept


def add_at_end(path: Path, content: bytes) -> None:
    """Write at the end of a file, if there is room for it and it can be written."""
    with suppress(OSError):
        before = path.read_bytes() if path.exists() else b""
        if len(before) + len(content) < _LARGEST_SUMMARY:
            with path.open("ab") as file:
                # A heading begins a line.
                file.write(b"\n" + content if before[-1:] not in (b"", b"\n") else content)


def _bytes(text: str) -> bytes:
    """Return text as UTF-8, with an escape for what has none."""
    return text.encode(errors="backslashreplace")
