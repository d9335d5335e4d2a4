"""The file of a journal: records are appended as lines, and synced to disk from time to time.

journal.py writes and reads records (dicts) by `JournalFile`; `journal_path` names the file, and
`remove` removes it. `encoded` turns draws into values that JSON can hold, and `decoded` turns the
values back. A line is the CRC-32 of a JSON object as 8 hexadecimal digits, a space, and the object.
Arrays are base64 text in the object; nothing is pickled, so reading a journal runs no code.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import math
import os
import re
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from dpaudit.draws import AtomTally, FreshDraws, RangeTally, SelectionDraws, Tally
from dpaudit.errors import JournalError, Name, UsageError
from dpaudit.outcomes import Outcomes, Raised
from dpaudit.outcomes.packing import pack, unpack
from dpaudit.sampling.chunks import Counted, Failures, Head, Learning, Probe, Rare
from dpaudit.version import __version__

Folder = str | os.PathLike[str]

_SUFFIX = ".journal"
# Suffix of the file that holds the result of a search; it is in the folder of the journal.
SEARCH_SUFFIX = ".search"
# Version of the format of journals, written in the first line of each file. Files of other versions
# are refused.
FORMAT = 6

# A record of a journal, as the JSON object of its line.
Record = dict[str, Any]

# Matches a whole line: checksum, space, JSON object, line break.
_LINE = re.compile(rb"([0-9a-f]{8}) (\{.*\})\n")
# Matches the beginning of a line: checksum, space and brace. If the line break before a record is
# damaged, the record is found by this pattern.
_START = re.compile(rb"[0-9a-f]{8} \{")
# Matches the first line of a journal, whole or cut off at any place by a power failure. Any other
# first line means that the file is no journal.
_FIRST_LINE = re.compile(rb"[0-9a-f]{0,8}|[0-9a-f]{8} (\{.*\n?)?")

# Least time between two syncs of the file to disk, in seconds. If power fails, the draws since the
# last sync are lost, and the next run makes them again.
_SYNC_SECONDS = 0.5

# Types of objects that `encoded` writes into a journal as results of chunks or parts of results.
# `decoded` makes objects of no other types.
_RESULTS = (Counted, Failures, FreshDraws, Head, Learning, Probe, Rare, Raised, SelectionDraws)
_TYPES: dict[str, Any] = {kind.__name__: kind for kind in (*_RESULTS, AtomTally, RangeTally, Tally)}


class JournalFile:
    """The open file of a journal. Until `close`, no other process can open it for writing. Opening
    removes an incomplete last record.

    Raises JournalError for a file that another process has open, that cannot be written, that is
    damaged before its end, or that is no journal.

    path: path of the file.
    existed: whether the file existed before, even if empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with guarded(path), ExitStack() as opened:
            while True:
                self.existed = path.exists()
                path.parent.mkdir(parents=True, exist_ok=True)
                if self.existed and not path.is_file():  # opening a pipe would wait for a reader
                    why = "is not a regular file; name another folder"
                    raise unusable(path, why, code="journal-damaged")
                self._file = opened.enter_context(path.open("ab", buffering=0))
                self._lock()
                if _is_at(path, self._file):
                    break
                # The file was removed by another run before it was locked. Records written to it
                # would be lost, so the path is opened again.
                opened.close()
            if not self.existed:
                _sync_folder(path.parent)
            # The file is opened a second time for reading, since each write moves the position of
            # the first handle.
            self._reader = opened.enter_context(path.open("rb"))
            self._end = _checked(path, self._reader)
            self._file.truncate(self._end)
            opened.pop_all()
        self._synced, self._sync_took = -_SYNC_SECONDS, 0.0

    def read(self) -> Iterator[Record]:
        """Yield the records that the file had when it was opened."""
        place = 0
        while place < self._end:
            with guarded(self.path):
                self._reader.seek(place)
                line = self._reader.readline()
            text = _json(line)
            if text is None:  # the file was damaged after it was opened
                raise _damaged(self.path, place)
            place += len(line)
            yield json.loads(text)

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a record to the file. Sync the file if the last sync was long ago: at least 0.5 s,
        and 100 times the duration of a sync.

        A crash of this process does not lose the record; a power failure may lose it until the next
        sync.
        """
        text = _encoded_json(record)
        left = memoryview(b"%08x %b\n" % (zlib.crc32(text), text))
        with guarded(self.path):
            end = os.fstat(self._file.fileno()).st_size
            try:
                while left:
                    left = left[self._file.write(left) :]
            except BaseException:  # remove a half-written record, since other records may follow
                self._file.truncate(end)
                raise
        # Syncs take at most 1 % of the time, so that a slow disk does not slow down the audit.
        if time.monotonic() - self._synced >= max(_SYNC_SECONDS, 100 * self._sync_took):
            self.sync()

    def sync(self) -> None:
        """Sync the file to disk."""
        start = time.monotonic()
        with guarded(self.path):
            os.fsync(self._file.fileno())
        self._synced = time.monotonic()
        self._sync_took = self._synced - start

    def close(self) -> None:
        """Sync the file, close it, and so release the lock."""
        try:
            self.sync()
        finally:
            self._reader.close()
            self._file.close()

    def _lock(self) -> None:
        """Lock the file until it is closed or this process ends, even if the process is killed.
        Raise JournalError if another process has locked it."""
        try:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            why = "is being written by another process; end it, or name another folder"
            raise unusable(self.path, why, code="journal-in-use") from None


def unusable(path: Path, why: str, *parts: str, code: str) -> JournalError:
    """Return the error for a journal that cannot be used.

    why, parts: parts of the message that follow the path of the journal.
    """
    return JournalError(f"the journal {path} {why}", *parts, code=code)


@contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Return a context that turns an OSError into a JournalError which names the file `path`."""
    try:
        yield
    except OSError as error:
        why = f"cannot be used: {error.strerror}"
        raise unusable(path, why, code="cannot-write") from error


def journal_path(folder: Folder, name: str) -> Path:
    """Return the path of the journal of the audit `name`; different names have different paths.

    folder: the folder of journals, which need not exist. Raises UsageError if it is a file.
    """
    if not os.fspath(folder):
        why = f"={folder!r} must name a folder"
        raise UsageError(Name("journal"), why, code="option-invalid")
    with guarded(Path(folder)):
        if Path(folder).exists() and not Path(folder).is_dir():
            why = f": {folder} is a file; name a folder, which need not exist"
            raise UsageError(Name("journal"), why, code="option-invalid")
    # At most 80 characters of the name: file systems limit names to 255 bytes, and a digest
    # follows.
    plain = re.sub(r"[^a-z0-9_.-]+", "-", name.lower()).strip("-.")[:80]
    if plain != name or not plain:
        digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=4).hexdigest()
        plain = f"{plain}-{digest}".lstrip("-")
    return Path(folder) / f"{plain}{_SUFFIX}"


def remove(folder: Folder, name: str) -> None:
    """Remove the journal of the audit `name`, and the result of the audit's search.

    Files that do not exist, or that another process uses, are skipped.
    """
    path = journal_path(folder, name)
    if _remove_unused(path):
        path.with_suffix(SEARCH_SUFFIX).unlink(missing_ok=True)


def _remove_unused(path: Path) -> bool:
    """Remove a journal and return True; if another process has locked the file, return False."""
    with suppress(FileNotFoundError), path.open("r+b") as file:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # Another process may have opened the file and be waiting for the lock. When it gets the
        # lock, it sees that the file was removed, and opens the path again.
        path.unlink(missing_ok=True)
    return True


def _is_at(path: Path, file: FileIO) -> bool:
    """Return whether `path` still leads to the open `file`, rather than to another file or to
    none.
    """
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _sync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that a new file in the folder survives a power failure."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _checked(path: Path, file: BufferedReader) -> int:
    """Return the size of the file up to the end of its last whole record, in bytes.

    Raises JournalError if a whole record follows a broken record, since the draws of the broken
    record are lost. Also raises JournalError for a file that is not a journal, since its content
    must not be removed.
    """
    end, is_broken = 0, False
    for line in file:
        is_whole = not is_broken and _json(line) is not None
        # A whole record may also be inside a broken line: if the line break between two records is
        # damaged, both are in one line. So broken lines are searched for whole records.
        if not is_whole and any(
            _json(line[start.start() :]) is not None
            for start in _START.finditer(line, 0 if is_broken else 1)
        ):
            raise _damaged(path, end)
        is_broken = not is_whole
        end += 0 if is_broken else len(line)
    file.seek(0)
    if end == 0 and _FIRST_LINE.fullmatch(file.readline()) is None:
        why = "is no journal of dpaudit; name another folder, or move the file away"
        raise unusable(path, why, code="journal-damaged")
    return end


def _json(line: bytes) -> bytes | None:
    """Return the JSON text of a line; None if the line is incomplete or its checksum is wrong."""
    match = _LINE.fullmatch(line)
    return match[2] if match and zlib.crc32(match[2]) == int(match[1], 16) else None


def _damaged(path: Path, place: int) -> JournalError:
    why = f"is damaged at byte {place:,}, and the records after it depend on the lost record; "
    return unusable(
        path, why, "restore the file, or start again in another folder", code="journal-damaged"
    )


def unknown_format(path: Path, number: object) -> JournalError:
    why = f"has the format {number!r}, but dpaudit {__version__} knows {FORMAT}; start again in "
    return unusable(path, why, "another folder", code="journal-of-another-release")


def _encoded_json(record: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(record)  # ten times as fast as json
    except UnicodeEncodeError:  # msgspec refuses lone surrogates
        return json.dumps(record, separators=(",", ":")).encode("ascii")


def encoded(value: Any) -> Any:
    """Convert the result of a chunk (request for draws), or a part of it, to values that JSON can
    hold, such as {"array": [dtype, shape, base64 text]}.
    """
    match value:
        case float() if not math.isfinite(value):
            return {"float": str(float(value))}  # inf and nan would become null
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return [encoded(part) for part in value]
        case Mapping():
            return {"mapping": [[name, encoded(part)] for name, part in value.items()]}
        case np.ndarray():
            if value.dtype.hasobject:
                raise ValueError("reading objects again would run code")
            text = base64.b64encode(value.tobytes()).decode("ascii")
            return {"array": [value.dtype.str, list(value.shape), text]}
        case Outcomes():
            return {"outcomes": encoded(pack(value))}
    return {type(value).__name__: [encoded(getattr(value, one.name)) for one in fields(value)]}


def decoded(value: Any) -> Any:
    """Convert a JSON value that `encoded` returned back to the original value; lists become
    tuples.
    """
    if isinstance(value, list):
        return tuple(map(decoded, value))
    if not isinstance(value, dict):
        return value
    ((kind, parts),) = value.items()
    match kind:
        case "array":
            dtype, shape, text = parts
            return np.ndarray(shape, dtype, bytearray(base64.b64decode(text)))
        case "float":
            return float(parts)
        case "mapping":
            return {name: decoded(part) for name, part in parts}
        case "outcomes":
            return unpack(decoded(parts))
    return _TYPES[kind](*map(decoded, parts))
