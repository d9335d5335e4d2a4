"""Journals: every draw of an audit is recorded on disk, so that an interrupted run can continue.

engine.py opens a journal and draws through the journal. A chunk is a unit of sampling, usually one
block of draws. A journal first returns the recorded chunks. After that it draws new chunks, and
records each chunk before it returns the chunk to the audit. With a time limit, the recorded
readings of the clock are returned again, too. The audit recomputes everything else from the chunks,
and so makes the same decisions as the interrupted run. To verify this, the journal records the
wealth that the audit has won by bets against the claim, compares it at every repeated chunk, and
raises JournalError if it differs. The guide for users is docs/guides/journal.md; journal_file.py
describes the file.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

from dpaudit.auditing.journal_file import (
    FORMAT,
    JournalFile,
    Record,
    decoded,
    encoded,
    guarded,
    journal_path,
    unknown_format,
    unusable,
)
from dpaudit.auditing.ledger import Ledger
from dpaudit.auditing.request import differences, request
from dpaudit.auditing.spec import AuditSpec, DrawnSeed
from dpaudit.auditing.time_left import Journal, Plain
from dpaudit.claims import ProfilePoint
from dpaudit.errors import Given, JournalError, MechanismError, UsageError
from dpaudit.sampling.chunks import Chunk, Drawn, Key, Probe, ToCount, ToTime
from dpaudit.sampling.executors import Drawer
from dpaudit.version import __version__

# Packages whose versions a journal records, in addition to dpaudit's: another version may change
# the numbers of a result.
_PACKAGES = ("numpy", "scipy", "scikit-learn")

# Keys of records that are not results of a chunk:
# _HEADER: the first record of the file.
# _SESSION: the first record of each process.
# _BEGUN: written before a chunk is drawn.
# _CLOSED: written when a process ends without being killed.
_HEADER, _SESSION, _BEGUN, _CLOSED = "journal", "session", "begun", "closed"
_MARKS = {_HEADER, _SESSION, _BEGUN, _CLOSED}
# Key of the record that is written when all pairs of an audit have ended.
_END = "end"
# Key in the header. Its value is True if the file existed when the journal was begun, but was empty
# or had an incomplete first record.
_RESTARTED = "restarted"
# A chunk is not drawn again if this number of processes ended while they were drawing it: the chunk
# probably ends the process each time.
_MAX_DEATHS = 3

_NEW_DRAWS = (
    "continued with other draws than an uninterrupted run would have made, because equal seeds do "
    "not give equal outcomes here; every draw, recorded or new, counts once"
)
_DIED = (
    "{deaths} of the {runs} runs of this audit ended in the middle of a block of draws, without "
    "any message (killed, out of memory, or ended by the mechanism itself). If the mechanism "
    "caused this, these outcomes are missing; isolate: true counts them"
)
_WAS_EMPTY = (
    "the journal {path} was there, but empty or cut off within its first record, so there was "
    "nothing to continue, and the audit began from the start; if the file had held draws, they are "
    "lost, and to begin again because of what they showed makes the verdict invalid"
)


class FileJournal(Journal):
    """A journal in a file that is locked, so that no other process can write to the file.

    history: summary of the earlier runs.
    changed: description of the packages whose versions differ between runs, such as `numpy 1.26,
        then 2.0`; "" if none differs.

    A run that continues the journal computes the recorded steps again. Methods raise JournalError
    if a result differs from the record.
    """

    def __init__(self, spec: AuditSpec, file: JournalFile, history: History, changed: str) -> None:
        super().__init__(spec)
        self._file, self._history, self._changed = file, history, changed
        self._past = (record for record in file.read() if not _MARKS & record.keys())
        self._elapsed = 0.0
        # The state of the bettors (strategies that bet against the claim) after the last block of
        # draws, as a text. Each record of the journal contains it. A run that continues the journal
        # bets on the recorded draws again, and must get the same text at each record.
        self._state = ""
        # Clock readings that this run has made since the last record was written. The next record
        # stores them.
        self._times_given: list[float] = []
        # While records are replayed: clock readings that the journal recorded before the next
        # record, and that `clock` has yet to return. With a time limit, none may be left when that
        # record is replayed.
        self._times_due: deque[float] = deque()
        self._begins, self._drew, self._is_reproducible = False, False, True
        self._next: Record | None = None
        self._step()

    @property
    def warnings(self) -> tuple[str, ...]:
        texts = self._history.warnings(self._runs)
        if self._history.header.get(_RESTARTED):
            texts.append(_WAS_EMPTY.format(path=self._file.path))
        if self._changed:
            texts.append(
                f"continued with other versions than it began with ({self._changed}); what was "
                "recomputed agreed with the record"
            )
        if self._history.sources + self._drew > 1 and not self._is_reproducible:
            texts.append(_NEW_DRAWS)
        return tuple(texts)

    @property
    def resumed(self) -> int:
        return max(0, self._runs - 1)

    @property
    def _runs(self) -> int:
        """Number of processes that have begun to draw for this audit, including this process."""
        return self._history.runs + self._begins

    def now(self) -> float:
        return time.perf_counter() - self._start if self._next is None else self._elapsed

    def clock(self) -> float:
        if self._next is None:
            self._times_given.append(self.now())
            return self._times_given[-1]
        if not self._times_due:
            raise self._disagreement()
        return self._times_due.popleft()

    def recording(self, drawer: Drawer, is_here: Callable[[], bool]) -> Drawer:
        return partial(self._draw, drawer, is_here)

    def once(self, name: str, make: Callable[[], Plain]) -> Plain | None:
        if self._next is None:
            made = make()
            self._keep({name: made})
            return made
        if name not in self._next:
            return None
        value: Plain = self._replayed(self._next)[name]
        return value

    def note(self, ledger: Ledger) -> None:
        # When a journal is replayed, the state of the bettors is compared, as a text, with the text
        # that the journal has recorded. The array `gains` (log wealth of each bettor) is written in
        # hexadecimal, so that the texts are equal only if all bits are equal.
        numbers = (ledger.spent, ledger.plan.budget, len(ledger.rounds), ledger.largest_wealth)
        gains = ledger.wealth.gains.tobytes().hex()
        self._state = f"{numbers} {_exact(ledger.point)} {gains}"

    def finish(self) -> None:
        if self._next is None:
            self._keep({_END: True})
        elif _END not in self._next:
            raise self._disagreement()
        else:  # the journal of a finished audit is only replayed: its recorded time stays
            self._check(self._next)

    def close(self) -> None:
        """Record that this process ends normally. Without this record, a process counts as killed
        while it drew a chunk.
        """
        self._file.append({_CLOSED: True})

    def _draw(
        self, drawer: Drawer, is_here: Callable[[], bool], chunks: Iterable[Chunk[Any]]
    ) -> Iterator[Any]:
        """Yield the results of chunks (requests for draws): first the results that the journal has
        recorded, then the results of new draws.

        drawer: makes the draws.
        is_here: returns whether this process, and not a worker, makes the next draws.
        chunks: the chunks.
        """
        source = iter(chunks)
        while self._next is not None:
            chunk = next(source, None)
            if chunk is None:
                return
            yield self._drawn_before(self._next, chunk)
        asked: deque[Chunk[Any]] = deque()

        def ask() -> Iterator[Chunk[Any]]:
            for chunk in source:
                self._begins = True
                if is_here():  # the mechanism may end this process, so record the chunk first
                    self._history.check(chunk.key)
                    self._file.append({_BEGUN: list(chunk.key)})
                asked.append(chunk)
                yield chunk

        for drawn in drawer(ask()):
            self._keep({**_named(asked.popleft()), "drawn": encoded(self._checked(drawn))})
            self._drew = True
            yield drawn

    def _drawn_before(self, record: Record, chunk: Chunk[Any]) -> Drawn:
        for key, value in _named(chunk).items():
            # The size of a chunk that measures speed depends on how many chunks were requested in
            # advance. So it may differ from the recorded size, and is not compared.
            is_free = key == "size" and isinstance(chunk, ToTime)
            if not is_free and record.get(key) != value:
                raise self._disagreement()
        drawn: Drawn = decoded(self._replayed(record)["drawn"])
        return self._checked(drawn)

    def _checked(self, drawn: Drawn) -> Drawn:
        """Return `drawn` itself. If it is a `Probe` (measurements by the mechanism's first calls),
        also note whether equal seeds gave equal outputs.
        """
        if isinstance(drawn, Probe):
            self._is_reproducible &= drawn.reproducible
        return drawn

    def _keep(self, record: Record) -> None:
        """Write a record to the file. The present state of the bettors and the clock readings since
        the previous record are added to it.
        """
        since = {"clock": self._times_given, "state": self._state}
        self._file.append({**record, "at": self.now(), **since})
        self._times_given = []

    def _replayed(self, record: Record) -> Record:
        """Check that a recorded state equals the present state of the audit, else raise
        JournalError. Then read the next record of the journal into `_next`. Return the checked
        record.
        """
        self._check(record)
        self._step()
        return record

    def _check(self, record: Record) -> None:
        """Raise JournalError if the state of the audit differs from the recorded state: the
        bettors' state, or the number of clock readings since the last record.
        """
        # Without a time limit, clock readings do not change what the audit does. So it does not
        # matter if the earlier run read the clock more often than this run.
        is_unread = bool(self._times_due) and self.spec.sampling.time is not None
        if is_unread or record["state"] != self._state:
            raise self._disagreement()
        self._elapsed = float(record["at"])

    def _step(self) -> None:
        self._next = next(self._past, None)
        if self._next is None:
            self._start = time.perf_counter() - self._elapsed
        else:
            self._times_due = deque(self._next["clock"])

    def _disagreement(self) -> JournalError:
        cause = f"other versions ({self._changed}), or " if self._changed else ""
        return unusable(
            self._file.path,
            "cannot be continued: learning again from the recorded draws gives another result than "
            f"before ({cause}an attack of your own that is not deterministic); start again in "
            "another folder",
            code="journal-disagrees",
        )


@dataclass(frozen=True, slots=True)
class History:
    """Summary of the earlier runs of an audit, from the records of its journal.

    header: the first record; {} if the file is empty.
    sessions: a description (time, host, process id, versions) of each process.
    runs: number of processes that began to draw.
    sources: number of processes that recorded draws.
    deaths: {key of a chunk: number of processes that ended while drawing it}.
    """

    header: Record
    sessions: tuple[Record, ...]
    runs: int
    sources: int
    deaths: Counter[Key]

    @classmethod
    def of(cls, records: Iterable[Record]) -> History:
        header: Record = {}
        sessions: list[Record] = []
        began, drew = set[int](), set[int]()
        under_way: Key | None = None
        deaths = Counter[Key]()
        for record in chain(records, [{_SESSION: None}]):
            if _HEADER in record:
                header = record
            elif _SESSION in record:
                sessions.append(record[_SESSION])
                deaths.update([] if under_way is None else [under_way])
                under_way = None
            elif _BEGUN in record:
                under_way = tuple(record[_BEGUN])
                began.add(len(sessions))
            elif _CLOSED in record or tuple(record.get("chunk", ())) == under_way:
                under_way = None
            if "chunk" in record:
                drew.add(len(sessions))
        return cls(header, tuple(sessions[:-1]), len(began | drew), len(drew), deaths)

    def check(self, key: Key) -> None:
        """Raise MechanismError if three or more processes died while they drew the chunk (request
        for draws) with this key: the mechanism probably ends the process each time."""
        if self.deaths[key] >= _MAX_DEATHS:
            raise MechanismError(
                f"{self.deaths[key]} runs ended in the middle of the same block of draws, without "
                "any message: killed, out of memory, or ended by the mechanism itself. With "
                "isolate: true (--isolate), an end that the mechanism causes counts as an "
                "outcome; start again in another folder",
                code="mechanism-ends-process",
            )

    def warnings(self, runs: int) -> list[str]:
        """If processes were killed while drawing, return a warning that outcomes may be missing;
        otherwise return an empty list.

        runs: number of runs of the audit, including the present run; the warning states it.
        """
        return [_DIED.format(deaths=self.deaths.total(), runs=runs)] if self.deaths else []


@contextmanager
def opened_journal(spec: AuditSpec) -> Iterator[Journal]:
    """Open the journal of an audit, or begin a new journal; close it at the end of the block.

    Raises JournalError if a journal exists although `resume` is false; if the journal was begun
    with other options, by another release of dpaudit or in another format; and if another process
    has the journal open.
    """
    with closing(JournalFile(journal_path(spec.journaling.journal or "", spec.name))) as file:
        history = History.of(file.read())
        if history.header:
            spec = _continued(spec, history.header, file.path)
        else:
            header = {
                _HEADER: FORMAT,
                "dpaudit": __version__,
                "audit": spec.name,
                "seed": int(spec.sampling.seed),
                "request": request(spec),
                _RESTARTED: spec.journaling.resume and file.existed,
            }
            file.append(header)
            history = replace(history, header=header)
        session = {
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "host": socket.gethostname(),
            "process": os.getpid(),
            "versions": _versions(),
        }
        file.append({_SESSION: session})
        file.sync()
        changed = _changes([one["versions"] for one in (*history.sessions, session)])
        with closing(FileJournal(spec, file, history, changed)) as journal:
            yield journal


def check_free(specs: Sequence[AuditSpec]) -> None:
    """Check the journals of several audits before anything is drawn.

    Raises UsageError for two audits that would share a journal, and JournalError for a journal that
    exists although `resume` is false.
    """
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


def _continued(spec: AuditSpec, header: Record, path: Path) -> AuditSpec:
    """Return the audit that continues a journal, after a check that the journal belongs to it.

    A seed that was drawn at random is replaced by the seed of the journal. Raises JournalError as
    `opened_journal` does.

    spec: the audit, as the user asks for it now.
    header: first record of the journal.
    path: path of the journal.
    """
    if not spec.journaling.resume:
        raise _not_free(path)
    if header[_HEADER] != FORMAT:
        raise unknown_format(path, header[_HEADER])
    if header["dpaudit"] != __version__:
        why = f"was started by dpaudit {header['dpaudit']}, this is {__version__}; "
        remedy = "continue it with that release, or start again in another folder"
        raise unusable(path, why, remedy, code="journal-of-another-release")
    if isinstance(spec.sampling.seed, DrawnSeed):
        spec = replace(spec, sampling=replace(spec.sampling, seed=header["seed"]))
    changes = differences(header["request"], request(spec))
    if changes:
        why = f"belongs to another audit: {changes}; give the same options as before, or name "
        raise unusable(path, why, "another folder", code="journal-of-another-audit")
    return spec


def _not_free(path: Path) -> JournalError:
    resume, why = Given("resume=True", "--resume"), "exists already; continue it with "
    return unusable(path, why, resume, ", or name another folder", code="journal-exists")


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def _changes(sessions: Sequence[Mapping[str, str]]) -> str:
    """Return a description of the packages whose versions differ between processes, such as `numpy
    1.26, then 2.0`; "" if none differs.

    sessions: {package: version} of each process, in order.
    """
    texts = []
    for name in dict.fromkeys(name for versions in sessions for name in versions):
        every = list(dict.fromkeys(versions.get(name, "none") for versions in sessions))
        texts += [f"{name} {', then '.join(every)}"] if len(every) > 1 else []
    return ", ".join(texts)


def _exact(point: ProfilePoint | None) -> tuple[float, float] | None:
    return None if point is None else (float(point.epsilon), float(point.delta))


def _named(chunk: Chunk[Any]) -> Record:
    """Return the entries that identify a chunk in a record: {"chunk": key, "size": draws}. The
    first chunk of a stage that counts draws also has {"event": digest of the rules}.
    """
    named: Record = {"chunk": list(chunk.key), "size": chunk.size}
    if isinstance(chunk, ToCount) and chunk.key[-1] == 0:
        rules = chunk.measure.portfolio
        accused = () if chunk.measure.atoms is None else chunk.measure.atoms.words
        texts = [
            f"{one.words(1)} {one.words(-1)} {one.share} {_exact(one.point)} {guesses.tolist()}"
            for one, guesses in zip(rules.rules, rules.all_guesses, strict=True)
        ]
        digest = hashlib.blake2b(repr((texts, accused)).encode(errors="surrogatepass"))
        named["event"] = digest.hexdigest()[:24]
    return named
