"""Begins a journal, or takes one up again: for the same request, and in nobody else's hands."""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

from dpaudit.auditing.journal.file_journal import FileJournal
from dpaudit.auditing.journal.history import ANEW, HEADER, SESSION, History
from dpaudit.auditing.journal.records import Records, failing
from dpaudit.auditing.request import differences, request
from dpaudit.auditing.spec import AuditSpec, DrawnSeed
from dpaudit.errors import Given, JournalError, UsageError
from dpaudit.version import __version__

Folder = str | os.PathLike[str]

_FORMAT = 4
_SUFFIX = ".journal"
# Of the file beside it that holds what a search has found.
SEARCH_SUFFIX = ".search"
_LONGEST_NAME = 80
# What the numbers depend on beside dpaudit itself.
_LIBRARIES = ("numpy", "scipy", "scikit-learn")


@contextmanager
def kept(spec: AuditSpec, folder: Folder) -> Iterator[FileJournal]:
    """Open the journal of an audit.

    Raises JournalError for one that is there already and not to be continued, that was begun for
    another request, by another release or in another format, or that another process writes.
    """
    with (
        closing(Records(journal_path(folder, spec.name))) as records,
        closing(_opened(spec, records)) as journal,
    ):
        yield journal


def check_free(specs: Sequence[AuditSpec]) -> None:
    """Raise before anything is drawn: UsageError for two audits that would share a journal,
    JournalError for one that is there and is not to be continued."""
    taken: dict[Path, str] = {}
    for spec in specs:
        if spec.journal is None or spec.exact:
            continue
        path = journal_path(spec.journal, spec.name)
        if path in taken:
            raise UsageError(
                f"two audits have the name {spec.name!r}; with a journal, give each its own name"
            )
        taken[path] = spec.name
        with failing(path):
            if not spec.resume and path.exists() and path.stat().st_size > 0:
                raise _not_free(path)


def journal_path(folder: Folder, name: str) -> Path:
    """Return the file of the journal of an audit; audits of different names have different ones.

    Raises UsageError for what is no folder.
    """
    if not os.fspath(folder):
        raise UsageError(f"journal={folder!r} must name a folder")
    with failing(Path(folder)):
        if Path(folder).exists() and not Path(folder).is_dir():
            raise UsageError(f"journal: {folder} is a file; name a folder, which need not exist")
    plain = re.sub(r"[^a-z0-9_.-]+", "-", name.lower()).strip("-.")[:_LONGEST_NAME]
    if plain != name or not plain:
        digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=4).hexdigest()
        plain = f"{plain}-{digest}".lstrip("-")
    return Path(folder) / f"{plain}{_SUFFIX}"


def remove(folder: Folder, name: str) -> None:
    """Remove the journal of an audit, and what a search has found, where they are there."""
    path = journal_path(folder, name)
    for one in (path, path.with_suffix(SEARCH_SUFFIX)):
        one.unlink(missing_ok=True)


def _opened(spec: AuditSpec, records: Records) -> FileJournal:
    there = [one.words for one in records.read()]
    if there:
        spec = _continued(spec, there[0], records.path)
        anew = there[0].get(ANEW, False)
    else:
        anew = spec.resume and records.was_there
        records.append(
            {
                HEADER: _FORMAT,
                "dpaudit": __version__,
                "audit": spec.name,
                "seed": int(spec.seed),
                "request": request(spec),
                ANEW: anew,
            }
        )
    session = {
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "process": os.getpid(),
        "versions": _versions(),
    }
    records.append({SESSION: session})
    records.sync()
    sessions = [words[SESSION] for words in there if SESSION in words]
    changed = _changes([one["versions"] for one in (*sessions, session)])
    return FileJournal(spec, records, History.of(there), changed, anew=anew)


def _continued(spec: AuditSpec, header: Mapping[str, Any], path: Path) -> AuditSpec:
    """Return the audit with the seed that its journal was begun with, if any would do."""
    if not spec.resume:
        raise _not_free(path)
    if header.get(HEADER) != _FORMAT:
        raise JournalError(
            f"the journal {path} has the format {header.get(HEADER)!r}, but dpaudit {__version__} "
            f"knows {_FORMAT}; start again in another folder"
        )
    if header["dpaudit"] != __version__:
        raise JournalError(
            f"the journal {path} was started by dpaudit {header['dpaudit']}, this is "
            f"{__version__}; continue it with that release, or start again in another folder"
        )
    if isinstance(spec.seed, DrawnSeed):
        spec = replace(spec, seed=header["seed"])
    found = differences(header["request"], request(spec))
    if found:
        raise JournalError(
            f"the journal {path} belongs to another audit: {found}; give the same options as "
            "before, or name another folder"
        )
    return spec


def _not_free(path: Path) -> JournalError:
    return JournalError(
        f"the journal {path} exists already; continue it with ",
        *(Given("resume=True", "--resume"), ", or name another folder"),
    )


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _changes(sessions: Sequence[Mapping[str, str]]) -> str:
    """Return in words which versions there were, one after the other, where they differ."""
    names = dict.fromkeys(name for versions in sessions for name in versions)
    found = {name: [one.get(name, "none") for one in sessions] for name in names}
    runs = {name: list(dict.fromkeys(every)) for name, every in found.items()}
    return ", ".join(f"{name} {', then '.join(run)}" for name, run in runs.items() if len(run) > 1)
