"""A file of records that outlives whoever writes it: only appended to, checked, synced in groups.

A record is a line, `CRC-32 of all that follows it, length of what follows the line, JSON`, and
after it the arrays as a .npz archive and a line's end, where there are any. Nothing is pickled.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import JournalError

# What a record is made of: JSON, and arrays by name.
Content = tuple[Mapping[str, Any], Mapping[str, NDArray[Any]]]

_LINE = re.compile(rb"([0-9a-f]{8}) (([0-9]{1,12}) (\{.*\})\n)")
# The first line of a journal, or what was written of it.
_TORN = re.compile(rb"[0-9a-f]{0,8}|[0-9a-f]{8} [0-9]{0,12}|[0-9a-f]{8} [0-9]{1,12} (\{.*\n?)?")
_START = re.compile(rb"[0-9a-f]{8} [0-9]{1,12} \{")
# Seconds between two syncs, at least: what is lost with the power is only drawn again. And so many
# times what the last one took, so that a slow disk holds up nobody.
_BETWEEN, _TIMES = 0.5, 100.0


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """words: what the line says. payload: what follows it."""

    words: dict[str, Any]
    payload: bytes

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        with np.load(io.BytesIO(self.payload[:-1]), allow_pickle=False) as archive:
            return dict(archive)


class Records:
    """The records of a file, which nobody else writes until `close`.

    What is left of a record that was not written to its end is taken away. Raises JournalError for
    a file that another process writes, that cannot be written, or that is damaged before its end.

    was_there: whether the file was, with or without records.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with failing(path):
            self.was_there = path.exists()
            self._file = _opened(path, is_new=not self.was_there)
        try:
            with failing(path):
                _lock(self._file, path)
            self._end = _checked(path)
            self._file.truncate(self._end)
        except BaseException:
            self._file.close()
            raise
        self._synced, self._took = -_BETWEEN, 0.0

    def read(self) -> Iterator[Record]:
        """Yield what was there when the file was opened, one record after the other."""
        with self.path.open("rb") as file:
            while file.tell() < self._end:
                record = _read(file)
                if record is None:  # since it was checked
                    raise _damaged(self.path, file.tell())
                yield record

    def append(self, words: Mapping[str, Any]) -> None:
        """Write a record without arrays."""
        self.extend([(words, {})])

    def extend(self, records: Iterable[Content]) -> None:
        """Write records; from now on they outlive this process, and from a sync on the power."""
        left = memoryview(b"".join(_framed(words, arrays) for words, arrays in records))
        with failing(self.path):
            while left:
                left = left[self._file.write(left) :]
        if time.monotonic() - self._synced >= max(_BETWEEN, _TIMES * self._took):
            self.sync()

    def sync(self) -> None:
        """Bring everything onto the disk."""
        start = time.monotonic()
        with failing(self.path):
            os.fsync(self._file.fileno())
        self._synced = time.monotonic()
        self._took = self._synced - start

    def close(self) -> None:
        """Bring everything onto the disk, and let others write."""
        try:
            self.sync()
        finally:
            self._file.close()


def _opened(path: Path, *, is_new: bool) -> FileIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not is_new and not path.is_file():  # to open a pipe would wait for a reader
        raise JournalError(f"the journal {path} is not a regular file; name another folder")
    file = path.open("ab", buffering=0)
    if is_new:
        _sync_folder(path.parent)
    return file


def _sync_folder(folder: Path) -> None:
    """Bring onto the disk that a file is in it."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _lock(file: FileIO, path: Path) -> None:
    """Keep others out as long as the file is open, however this process ends."""
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise JournalError(
            f"another process is writing the journal {path}; wait for its end, end it, or name "
            "another folder"
        ) from None


def _checked(path: Path) -> int:
    """Return where the last whole record ends. Raises JournalError where others follow a broken
    one: that is no end that was not written, and what was recorded there is lost; and for a file
    that is somebody else's, whose content is not to be lost."""
    with path.open("rb") as file:
        end = 0
        while _read(file) is not None:
            end = file.tell()
        file.seek(end)
        if _is_followed(file):
            raise _damaged(path, end)
        file.seek(end)
        if end == 0 and _TORN.fullmatch(file.readline()) is None:
            raise JournalError(
                f"{path} is not a journal of dpaudit; name another folder, or move the file away"
            )
        return end


def _read(file: BinaryIO) -> Record | None:
    """Return the record that starts here; None when no whole one does."""
    found = _LINE.fullmatch(file.readline())
    if found is None:
        return None
    payload = file.read(int(found[3]))
    is_whole = len(payload) == int(found[3])
    if not is_whole or zlib.crc32(payload, zlib.crc32(found[2])) != int(found[1], 16):
        return None
    return Record(json.loads(found[4]), payload)


def _is_followed(file: BinaryIO) -> bool:
    """Return whether a whole record starts anywhere after this place."""
    place = file.tell()
    for found in _START.finditer(file.read(), 1):
        file.seek(place + found.start())
        if _read(file) is not None:
            return True
    return False


def _damaged(path: Path, place: int) -> JournalError:
    return JournalError(
        f"the journal {path} is damaged at byte {place:,}, and the records after it need those "
        "that are lost; restore the file, or start again in another folder"
    )


def _framed(words: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    payload = _archived(arrays) if arrays else b""
    body = b"%d %b\n%b" % (len(payload), _encoded(words), payload)
    return b"%08x %b" % (zlib.crc32(body), body)


def _encoded(words: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(words)  # ten times as fast
    except UnicodeEncodeError:  # lone surrogates
        return json.dumps(words, separators=(",", ":")).encode("ascii")


def _archived(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    if any(array.dtype.hasobject for array in arrays.values()):
        raise ValueError("objects are not kept: reading them again would run code")
    archive = io.BytesIO()
    # Before NumPy 2.1, `allow_pickle=False` was the name of an array.
    np.savez(archive, **arrays)  # type: ignore[arg-type]  # taken for allow_pickle
    archive.write(b"\n")  # so that every record starts a line
    return archive.getvalue()


@contextmanager
def failing(path: Path) -> Iterator[None]:
    """Raise JournalError for what the system refuses."""
    try:
        yield
    except OSError as error:
        raise JournalError(f"cannot write the journal {path}: {error.strerror}") from error
