"""Journals: every draw of an audit is recorded on disk, so that an interrupted run can continue.

engine.py draws through a journal. It first returns the recorded chunks, each usually one block of
draws; then it draws new ones, and records each before it returns it. Readings of the clock are
recorded, too. The audit recomputes everything else, and so makes the same decisions. Each record
has a digest of the bettors' state; a run that repeats the record must reach the same state.

A record is a line: the CRC-32 of a JSON text as 8 hexadecimal digits, a space, and the text; arrays
are base64 texts. Nothing is pickled, so reading a journal runs no code.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import platform
import re
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib import metadata
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import Struct

from dpaudit.auditing.ledger import Ledger
from dpaudit.auditing.options import DrawnSeed
from dpaudit.auditing.request import Request, differences, digest, request
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.time_left import Journal, Plain
from dpaudit.errors import Given, JournalError, MechanismError, Name, UsageError
from dpaudit.outcomes import Outcomes
from dpaudit.outcomes.long_table import LongTable
from dpaudit.outcomes.tables import Table, TimedOutcomes
from dpaudit.sampling.chunks import Chunk, Drawn, Learning, LevelCounts, Probe, ToCount, ToTime
from dpaudit.sampling.executors import Drawer
from dpaudit.version import __version__

Folder = str | os.PathLike[str]

_SUFFIX = ".journal"
# Suffix of the file that holds the result of a search; it is in the folder of the journal.
SEARCH_SUFFIX = ".search"
# Packages whose versions a journal records, in addition to dpaudit's: another version may change
# the numbers of a result.
_PACKAGES = ("numpy", "scipy", "scikit-learn")
# A chunk is not drawn again if this number of runs ended while they were drawing it: the chunk
# probably ends the process each time.
_MAX_DEATHS = 3
# Codes of errors that end a run because a worker process died.
_DEATHS = ("worker-died", "worker-killed", "workers-lost")
# Least time between two syncs of the file to disk, in seconds. If power fails, the draws since the
# last sync are lost, and the next run makes them again.
_SYNC_SECONDS = 0.5

# Matches a whole line: checksum, space, JSON object, line break.
_LINE = re.compile(rb"([0-9a-f]{8}) (\{.*\})\n")
# Matches the beginning of a line, also where the line break before it is damaged.
_START = re.compile(rb"[0-9a-f]{8} \{")
# Matches the first line of a journal, whole or cut off at any place by a power failure.
_FIRST_LINE = re.compile(rb"[0-9a-f]{0,8}|[0-9a-f]{8} (\{.*\n?)?")

# Names of steps: a reading of the clock, and the end of all pairs of an audit.
_CLOCK, _END = "clock", "end"

_NEW_DRAWS = (
    "continued with other draws than an uninterrupted run would have made, because equal seeds do "
    "not give equal outcomes here; every draw, recorded or new, counts once"
)
_DIED = (
    "{deaths} of the {runs} runs of this audit ended in the middle of a block of draws, without "
    "any message (killed, out of memory, or ended by the mechanism itself). If the mechanism "
    "caused this, these outcomes are missing; isolate: true counts them"
)
_DEADLY = (
    "{deaths} runs ended in the middle of the same block of draws, without any message: killed, "
    "out of memory, or ended by the mechanism itself. With isolate: true (--isolate), an end that "
    "the mechanism causes counts as an outcome; start again in another folder"
)
_CHANGED = (
    "continued with other versions than it began with ({changes}); what was recomputed agreed with "
    "the record"
)
_WAS_EMPTY = (
    "the journal {path} was there, but empty or cut off within its first record, so there was "
    "nothing to continue, and the audit began from the start; if the file had held draws, they are "
    "lost, and to begin again because of what they showed makes the verdict invalid"
)


class Begun(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings with which an audit was begun: release of dpaudit, seed and request."""

    dpaudit: str
    seed: int
    request: Request


class Header(Begun, frozen=True, tag="journal"):
    """The first record of a journal.

    is_restarted: whether the file existed before, but was empty or had an incomplete first record.
    """

    is_restarted: bool
    format: Literal[1] = 1


class Session(Struct, frozen=True, forbid_unknown_fields=True, tag="session"):
    """The first record of each process: the versions of Python and of packages."""

    versions: dict[str, str]


class Start(Struct, frozen=True, forbid_unknown_fields=True, tag="start"):
    """A record before and after dangerous draws: before this process, and not a worker, draws a
    chunk, since the mechanism may end the process; and after a worker died while it drew one.

    name: the name of the step that draws the chunk.
    """

    name: str


class Step(Struct, frozen=True, forbid_unknown_fields=True, tag="step"):
    """A step of the audit, which a continued run repeats.

    name: text that identifies the step; for a chunk, its key, its size and a digest of the rules.
    at: seconds since the audit began, without the time between runs.
    state: digest of the state of the bettors after the last block of draws.
    probe, learning, counted: result of a chunk, by its type.
    value: the value that `Journal.once` returned, if the step is not a chunk.
    """

    name: str
    at: float
    state: str
    probe: Probe | None = None
    learning: Learning | None = None
    counted: LevelCounts | None = None
    value: Any = None

    @property
    def drawn(self) -> Drawn | None:
        return self.probe or self.learning or self.counted


class Close(Struct, frozen=True, forbid_unknown_fields=True, tag="close"):
    """The record of a process that ended normally."""


Record = Header | Session | Start | Step | Close


class FileJournal(Journal):
    """A journal in a file that no other process can write to. A run that continues it computes the
    recorded steps again, and raises JournalError if a result differs from the record."""

    def __init__(self, spec: AuditSpec, file: JournalFile) -> None:
        super().__init__(spec)
        self._file = file
        self._read_history()
        self._past = (record for record in file.read() if isinstance(record, Step))
        self._elapsed, self._state, self._begins, self._has_died = 0.0, "", False, False
        self._advance()

    def _read_history(self) -> None:
        """Count the earlier runs and, by name of the chunk, those that ended while they drew it."""
        self._deaths, self._is_restarted, self._is_reproducible = Counter[str](), False, True
        sessions: list[Mapping[str, str]] = []
        drawing, chunk = set[int](), ""
        for record in self._file.read():
            match record:
                case Header():
                    self._is_restarted = record.is_restarted
                case Session():
                    sessions.append(record.versions)
                    self._deaths.update([chunk] if chunk else [])
                    chunk = ""
                case Start():
                    chunk = record.name
                    drawing.add(len(sessions))
                case Step() if record.drawn is not None:
                    chunk = "" if record.name == chunk else chunk
                    drawing.add(len(sessions))
                    self._note_probe(record.drawn)
                case Close():
                    chunk = ""
        self._earlier_runs, self._changes = len(drawing), _changes(sessions)

    @property
    def warnings(self) -> tuple[str, ...]:
        texts, deaths = [], self._deaths.total()
        if deaths:
            texts.append(_DIED.format(deaths=deaths, runs=self.resumed + 1))
        if self._is_restarted:
            texts.append(_WAS_EMPTY.format(path=self._file.path))
        if self._changes:
            texts.append(_CHANGED.format(changes=self._changes))
        if self.resumed and not self._is_reproducible:
            texts.append(_NEW_DRAWS)
        return tuple(texts)

    @property
    def resumed(self) -> int:
        return max(0, self._earlier_runs + self._begins - 1)

    def now(self) -> float:
        return time.perf_counter() - self._start if self._next is None else self._elapsed

    def clock(self) -> float:
        return (self._keep(_CLOCK) if self._next is None else self._repeated(_CLOCK)).at

    def recording(self, drawer: Drawer, is_here: Callable[[], bool]) -> Drawer:
        return partial(self._draw, drawer, is_here)

    def once(self, name: str, make: Callable[[], Plain]) -> Plain | None:
        if self._next is None:
            result = make()
            self._keep(name, value=result)
            return result
        value: Plain | None = self._repeated(name).value if self._next.name == name else None
        return value

    def note(self, ledger: Ledger) -> None:
        counts = (ledger.spent, ledger.plan.budget, len(ledger.rounds))
        gains = ledger.wealth.gains.tobytes()  # two states are equal only if all bits are
        self._state = digest((counts, ledger.largest_wealth, ledger.point, gains))

    def finish(self) -> None:
        if self._next is None:
            self._keep(_END)
        else:
            self._check(_END)  # the journal of an audit that has ended keeps its time

    def close(self) -> None:
        """Record that the process ended normally, and was not killed while it drew a chunk."""
        if not self._has_died:
            self._file.append(Close())

    def _draw(
        self, drawer: Drawer, is_here: Callable[[], bool], chunks: Iterable[Chunk[Any]]
    ) -> Iterator[Any]:
        """Yield the recorded results of chunks, then the results of new draws."""
        source = iter(chunks)
        while self._next is not None:
            chunk = next(source, None)
            if chunk is None:
                return
            yield self._repeated(_name(chunk)).drawn
        names: deque[str] = deque()

        def requested() -> Iterator[Chunk[Any]]:
            for chunk in source:
                self._begins = True
                name = _name(chunk)
                names.append(name)
                if self._deaths[name] >= _MAX_DEATHS:
                    words = _DEADLY.format(deaths=self._deaths[name])
                    raise MechanismError(words, code="mechanism-ends-process")
                if is_here():
                    self._file.append(Start(name))
                yield chunk

        try:
            for result in drawer(requested()):
                self._note_probe(result)
                self._keep(names.popleft(), result)
                yield result
        except MechanismError as error:
            if error.code in _DEATHS:
                self._file.append(Start(names[0]))
                self._has_died = True
            raise

    def _note_probe(self, result: Drawn) -> None:
        if isinstance(result, Probe):
            self._is_reproducible &= result.reproducible

    def _keep(self, name: str, result: Drawn | None = None, value: Any = None) -> Step:
        """Record a step with the present state, and return it."""
        step = Step(
            name,
            self.now(),
            self._state,
            result if isinstance(result, Probe) else None,
            result if isinstance(result, Learning) else None,
            result if isinstance(result, LevelCounts) else None,
            value,
        )
        self._file.append(step)
        return step

    def _repeated(self, name: str) -> Step:
        """Return the next recorded step, whose name must be `name`, and advance by one step."""
        step = self._check(name)
        self._advance()
        return step

    def _check(self, name: str) -> Step:
        """Return the next recorded step; raise JournalError if its name or state differs."""
        step = self._next
        if step is None or (step.name, step.state) != (name, self._state):
            cause = f"other versions ({self._changes}), or " if self._changes else ""
            raise unusable(
                self._file.path,
                "cannot be continued: learning again from the recorded draws gives another result "
                f"than before ({cause}an attack of your own that is not deterministic); start "
                "again in another folder",
                code="journal-disagrees",
            )
        self._elapsed = step.at
        return step

    def _advance(self) -> None:
        """Read the next recorded step; after the last step, start the clock."""
        self._next = next(self._past, None)
        if self._next is None:
            self._start = time.perf_counter() - self._elapsed


@contextmanager
def opened_journal(spec: AuditSpec) -> Iterator[Journal]:
    """Return a context that opens the journal of an audit, or begins a new one, and closes it at
    the end. Raise JournalError if the journal exists, unless `resume` is set, and as `JournalFile`
    and `continued` do."""
    with closing(JournalFile(journal_path(spec.journaling.journal or "", spec.name))) as file:
        match next(file.read(), None):
            case None:
                was_there = spec.journaling.resume and file.existed
                file.append(Header(__version__, int(spec.sampling.seed), request(spec), was_there))
            case Header() as header if spec.journaling.resume:
                spec = continued(spec, header, file.path)
            case Header():
                raise _not_free(file.path)
            case _:
                raise _damaged(file.path, 0)
        file.append(Session(_versions()))
        file.sync()
        with closing(FileJournal(spec, file)) as journal:
            yield journal


def continued(spec: AuditSpec, begun: Begun, path: Path) -> AuditSpec:
    """Return the audit with which to continue the journal at `path`. If its seed was drawn at
    random, it gets the recorded seed. Raise JournalError if the journal is of another release of
    dpaudit, or of another request."""
    if begun.dpaudit != __version__:
        raise _foreign(path, f"was started by dpaudit {begun.dpaudit}, this is {__version__}")
    if isinstance(spec.sampling.seed, DrawnSeed):
        spec = replace(spec, sampling=replace(spec.sampling, seed=begun.seed))
    if changes := differences(begun.request, request(spec)):
        why = f"belongs to another audit: {changes}; give the same options as before, or name "
        raise unusable(path, why, "another folder", code="journal-of-another-audit")
    return spec


def check_free(specs: Sequence[AuditSpec]) -> None:
    """Check the journals of several audits before anything is drawn. Raise UsageError if two audits
    have the same journal. Raise JournalError if a journal exists, unless `resume` is set."""
    taken: set[Path] = set()
    for spec in specs:
        if spec.journaling.journal is None or spec.statistics.exact:
            continue
        path = journal_path(spec.journaling.journal, spec.name)
        if path in taken:
            why = f"two audits have the name {spec.name!r}; with a journal, give each its own name"
            raise UsageError(why, code="name-not-unique")
        taken.add(path)
        with guarded(path):
            if not spec.journaling.resume and path.exists() and path.stat().st_size > 0:
                raise _not_free(path)


class JournalFile:
    """The open file of a journal, locked against other writers until `close`. Opening removes an
    incomplete last record. Raise JournalError if another process has the file open, if it cannot be
    written, if it is damaged before its end, or if it is no journal.

    existed: whether the file existed before, even if empty.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with guarded(path), ExitStack() as stack:
            while True:
                self.existed = path.exists()
                path.parent.mkdir(parents=True, exist_ok=True)
                if self.existed and not path.is_file():  # opening a pipe would wait for a reader
                    why = "is not a regular file; name another folder"
                    raise unusable(path, why, code="journal-damaged")
                self._file = stack.enter_context(path.open("ab", buffering=0))
                if not _lock(self._file.fileno()):
                    why = "is being written by another process; end it, or name another folder"
                    raise unusable(path, why, code="journal-in-use")
                with suppress(FileNotFoundError):
                    if os.path.samestat(path.stat(), os.fstat(self._file.fileno())):
                        break
                stack.close()  # another run removed the file before it was locked here
            if not self.existed:
                _sync_folder(path.parent)
            # A second handle for reading, since each write moves the position of the first.
            self._reader = stack.enter_context(path.open("rb"))
            self._file.truncate(_whole_size(path, self._reader))
            stack.pop_all()
        self._sync_due = 0.0

    def read(self) -> Iterator[Record]:
        """Yield the records that the file has now. Calls must not overlap."""
        end = os.fstat(self._file.fileno()).st_size
        self._reader.seek(0)
        while self._reader.tell() < end:
            with guarded(self.path):
                line = self._reader.readline()
            try:
                yield from_json(line[9:], Record)
            except msgspec.ValidationError as error:
                raise _foreign(self.path, f"has a record of another format ({error})") from error

    def append(self, record: Record) -> None:
        """Write a record to the file. Sync the file to disk if the last sync was long ago: 0.5 s,
        and 100 times as long as it took. Records that are not synced are lost only in a power
        failure."""
        text = to_json(record)
        left = memoryview(b"%08x %b\n" % (zlib.crc32(text), text))
        with guarded(self.path):
            end = os.fstat(self._file.fileno()).st_size
            try:
                while left:
                    left = left[self._file.write(left) :]
            except BaseException:  # remove a half-written record, since other records may follow
                self._file.truncate(end)
                raise
        if time.monotonic() >= self._sync_due:
            self.sync()

    def sync(self) -> None:
        """Sync the file to disk."""
        start = time.monotonic()
        with guarded(self.path):
            os.fsync(self._file.fileno())
        end = time.monotonic()
        # Syncs take at most 1 % of the time, so that a slow disk does not slow down the audit.
        self._sync_due = end + max(_SYNC_SECONDS, 100 * (end - start))

    def close(self) -> None:
        """Sync and close the file. This releases the lock."""
        try:
            self.sync()
        finally:
            self._reader.close()
            self._file.close()


def journal_path(folder: Folder, name: str) -> Path:
    """Return the path of the journal of an audit in a folder, which need not exist. Different names
    of audits give different paths. Raise UsageError if `folder` is a file."""
    with guarded(Path(folder)):
        if not os.fspath(folder) or (Path(folder).exists() and not Path(folder).is_dir()):
            why = f"={os.fspath(folder)!r} must name a folder, which need not exist"
            raise UsageError(Name("journal"), why, code="option-invalid")
    # File systems limit names to 255 bytes, and a digest follows the name.
    plain = re.sub(r"[^a-z0-9_.-]+", "-", name.lower()).strip("-.")[:80]
    if plain != name or not plain:
        digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=4).hexdigest()
        plain = f"{plain}-{digest}".lstrip("-")
    return Path(folder) / f"{plain}{_SUFFIX}"


def remove(folder: Folder, name: str) -> None:
    """Remove the journal of the audit `name`, and the result of its search, unless another process
    uses them."""
    path = journal_path(folder, name)
    with suppress(FileNotFoundError), path.open("r+b") as file:
        if not _lock(file.fileno()):
            return
        # A process that waits for the lock sees that the file was removed, and opens it again.
        path.unlink(missing_ok=True)
    path.with_suffix(SEARCH_SUFFIX).unlink(missing_ok=True)


def to_json(record: Any) -> bytes:
    """Return a record as JSON text, from which `from_json` restores infinite numbers and lone
    surrogates."""
    values = msgspec.to_builtins(record, enc_hook=_encoded_array)
    return json.dumps(values, separators=(",", ":")).encode("ascii")


def from_json(text: bytes, kind: Any) -> Any:
    """Return the record of type `kind` in a JSON text. Raise msgspec.ValidationError if it is of
    another type."""
    return msgspec.convert(json.loads(text), kind, dec_hook=_decoded_part)


def unusable(path: Path, why: str, *parts: str, code: str) -> JournalError:
    """Return the error for a journal that cannot be used. Its message is the path, then `why` and
    `parts`."""
    return JournalError(f"the journal {path} {why}", *parts, code=code)


@contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Return a context that turns any OSError into a JournalError about the file `path`."""
    try:
        yield
    except OSError as error:
        why = f"cannot be used: {error.strerror}"
        raise unusable(path, why, code="cannot-write") from error


def _not_free(path: Path) -> JournalError:
    resume, why = Given("resume=True", "--resume"), "exists already; continue it with "
    return unusable(path, why, resume, ", or name another folder", code="journal-exists")


def _foreign(path: Path, why: str) -> JournalError:
    why += "; continue it with the release that began it, or start again in another folder"
    return unusable(path, why, code="journal-of-another-release")


def _damaged(path: Path, byte: int) -> JournalError:
    why = f"is damaged at byte {byte:,}, and the records after it depend on the lost record; "
    why += "restore the file, or start again in another folder"
    return unusable(path, why, code="journal-damaged")


def _lock(file: int) -> bool:
    """Lock a file until it is closed or this process ends; False if another process has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that a new file in the folder survives a power failure."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _whole_size(path: Path, file: BufferedReader) -> int:
    """Return the size of the file up to the end of its last whole record, in bytes."""
    end = 0
    while _is_whole(line := file.readline()):
        end += len(line)
    for broken in chain([line], file):
        # If the line break between two records is damaged, a whole record is inside the line.
        if any(_is_whole(broken[start.start() :]) for start in _START.finditer(broken)):
            raise _damaged(path, end)
    if end == 0 and _FIRST_LINE.fullmatch(line) is None:
        why = "is no journal of dpaudit; name another folder, or move the file away"
        raise unusable(path, why, code="journal-damaged")
    return end


def _is_whole(line: bytes) -> bool:
    match = _LINE.fullmatch(line)
    return match is not None and zlib.crc32(match[2]) == int(match[1], 16)


def _encoded_array(value: Any) -> Any:
    match value:
        case np.ndarray() if not value.dtype.hasobject:
            return value.dtype.str, value.shape, value.tobytes()
        case np.generic():
            return value.item()
    raise TypeError(f"no journal can hold a {type(value).__name__} without running code")


def _decoded_part(kind: Any, value: Any) -> Any:
    """Return an array or a table of outcomes from its JSON value."""
    if kind is Outcomes:
        tables = {"nanoseconds": TimedOutcomes, "vocabulary": LongTable}
        table = next((tables[name] for name in tables if name in value), Table)
        return msgspec.convert(value, table, dec_hook=_decoded_part)
    dtype, shape, text = value
    return np.frombuffer(bytearray(base64.b64decode(text)), dtype).reshape(shape)


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def _changes(sessions: Sequence[Mapping[str, str]]) -> str:
    """Return a description of the packages whose versions differ; "" if none differs."""
    texts = []
    for name in dict.fromkeys(name for versions in sessions for name in versions):
        numbers = dict.fromkeys(versions.get(name, "none") for versions in sessions)
        texts += [f"{name} {', then '.join(numbers)}"] if len(numbers) > 1 else []
    return ", ".join(texts)


def _name(chunk: Chunk[Any]) -> str:
    """Return the name of a chunk's step: key, size, and a digest of the rules at its start."""
    # The size of a chunk that measures speed depends on how many chunks were requested before.
    name = f"{chunk.key}" if isinstance(chunk, ToTime) else f"{chunk.key} {chunk.size}"
    if not isinstance(chunk, ToCount) or chunk.key[-1] != 0:
        return name
    rules = chunk.measure.portfolio
    words = () if chunk.measure.atoms is None else chunk.measure.atoms.words
    events = [
        (rule.words(1), rule.words(-1), rule.share, rule.point, guesses.tolist())
        for rule, guesses in zip(rules.rules, rules.all_guesses, strict=True)
    ]
    return f"{name} {digest((events, words))}"
