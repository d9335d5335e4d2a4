"""Where results go, as --report and --json ask: to files as soon as they are there, or to standard
output at the end."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import click

from dpaudit.certificates.result import AuditResult
from dpaudit.cli.files import check_writable, write_whole
from dpaudit.cli.process import parent as watching
from dpaudit.errors import DpauditError, UsageError
from dpaudit.reports.registry import FORMATS, Format, parse_report

STDOUT = "-"
Destination = tuple[Format, str]


def destinations(
    json: str | None, reports: Sequence[str], inputs: Iterable[str | Path]
) -> list[Destination]:
    """Return where results are to be written, refused before the work. Raises UsageError. inputs:
    files that must not be replaced."""
    given = [parse_report(text) for text in reports]
    given += [] if json is None else [(FORMATS["json"], json)]
    inputs, found = set(inputs), list[Destination]()
    for form, file in given:
        if file != STDOUT:
            check_writable(file, inputs)
        # Found here, since a mechanism may go to another folder.
        place = file if file == STDOUT else str(Path(file).absolute())
        if any(place == other for _, other in found):
            raise UsageError(f"two reports cannot be written to {file!r}; give each its own file")
        found.append((form, place))
    return found


class Results:
    """Results to be written to files, or to standard output (`-`)."""

    def __init__(self, to: Iterable[Destination], stdout: TextIO, planned: int = 1) -> None:
        """planned: how many results there are to be."""
        self._entries: dict[Destination, list[Any]] = {one: [] for one in to}
        self._planned = planned
        self._stdout = stdout
        self._kept: Path | None = None

    @property
    def beside(self) -> TextIO:
        """Where reports are shown: standard error, if standard output belongs to one of them."""
        return sys.stderr if any(file == STDOUT for _, file in self._entries) else self._stdout

    def add(self, result: AuditResult) -> None:
        """Take one more result."""
        for (form, _), entries in self._entries.items():
            entries.append(form.entry(result))

    def keep(self) -> None:
        """Put down what there is, since what comes next may end this process."""
        for (form, file), entries in self._entries.items():
            with suppress(DpauditError, OSError):  # in the end it is said why
                if file != STDOUT or watching.is_watched():
                    path = Path(file) if file != STDOUT else self._aside()
                    write_whole(path, form.document(entries, self._planned).encode(), lasting=False)

    def finish(self) -> None:
        """Write all results. Raises UsageError when that is not possible."""
        for (form, file), entries in self._entries.items():
            if not entries:
                continue
            text = form.document(entries, self._planned)
            if file == STDOUT:
                # Programs read UTF-8, whatever a terminal can show.
                shown = text if form.is_prose else text.encode()
                click.echo(shown, nl=False, file=self._stdout)
                if self._kept is not None:
                    watching.say(watching.FILE, "")
                    self._kept.unlink(missing_ok=True)
                    self._kept = None
            else:
                write_whole(Path(file), text.encode())

    def _aside(self) -> Path:
        """Return a file that the process which watches this one shows if need be."""
        if self._kept is None:
            number, path = tempfile.mkstemp(prefix="dpaudit-")
            os.close(number)
            self._kept = Path(path)
            watching.say(watching.FILE, path)
        return self._kept
