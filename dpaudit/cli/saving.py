"""What --json asks for: results on file as soon as they are there, or on standard output at the
end."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from dpaudit.certificates.result import AuditResult
from dpaudit.cli.files import write_whole
from dpaudit.cli.process import parent as watching
from dpaudit.errors import DpauditError

if TYPE_CHECKING:
    from dpaudit.reports.json import Entry

STDOUT = "-"


class Results:
    """Results to be written to a file, to standard output (`-`), or nowhere (None)."""

    def __init__(self, where: str | None, stdout: TextIO) -> None:
        self._where, self._stdout = where, stdout
        self._entries: list[Entry] = []
        self._kept: Path | None = None

    def add(self, result: AuditResult) -> None:
        """Take one more result."""
        if self._where is not None:
            from dpaudit.reports.json import entry

            self._entries.append(entry(result))

    def keep(self) -> None:
        """Put down what there is, since what comes next may end this process."""
        if not self._entries:
            return
        with suppress(DpauditError, OSError):  # in the end it is said why
            if self._where != STDOUT:
                write_whole(Path(str(self._where)), self._text(), lasting=False)
            elif watching.is_watched():
                write_whole(self._aside(), self._text(), lasting=False)

    def finish(self) -> None:
        """Write all results. Raises UsageError when that is not possible."""
        if not self._entries:
            return
        if self._where == STDOUT:
            click.echo(self._text(), nl=False, file=self._stdout)
            self._forget()
        else:
            write_whole(Path(str(self._where)), self._text())

    def _text(self) -> str:
        from dpaudit.reports.json import document

        return document(self._entries)

    def _aside(self) -> Path:
        """Return a file that the process which watches this one shows if need be."""
        if self._kept is None:
            number, path = tempfile.mkstemp(prefix="dpaudit-", suffix=".json")
            os.close(number)
            self._kept = Path(path)
            watching.say_file(path)
        return self._kept

    def _forget(self) -> None:
        if self._kept is not None:
            watching.say_file("")
            self._kept.unlink(missing_ok=True)
            self._kept = None
