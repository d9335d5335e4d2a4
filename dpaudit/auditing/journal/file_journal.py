"""What an audit has drawn so far, kept on disk, so that a run that was cut short can go on.

All that an audit computes follows from its request, the chunks drawn, in their order, and, when
draws are planned by the clock, from what the clock said. So a journal stands between an audit and
whoever draws: it hands back what is recorded, and records what is drawn from then on, before it
hands it on. The rest is computed anew, and compared at every chunk with what the bettors had then.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from numpy.typing import NDArray

from dpaudit.auditing.journal.chunks import arrays_of, coded, drawn_of, words_of
from dpaudit.auditing.journal.history import BEGUN, CLOSED, MARKS, History
from dpaudit.auditing.journal.interface import Journal, PairProgress, Plain
from dpaudit.auditing.journal.records import Content, Record, Records
from dpaudit.auditing.spec import AuditSpec
from dpaudit.errors import JournalError
from dpaudit.sampling.chunks import Chunk, Drawn, Probe, ToCount, ToTime
from dpaudit.sampling.executors import Drawer

_END = "end"
# Seconds between two writes.
_BETWEEN = 0.1
_NEW_DRAWS = (
    "continued with other draws than an uninterrupted run would have made, because equal seeds do "
    "not give equal outcomes here; every draw, recorded or new, counts once"
)
_BEGUN_ANEW = (
    "the journal {path} was there, but empty or cut off within its first record, so there was "
    "nothing to continue, and the audit began anew; if the file had held draws, they are lost, and "
    "to begin anew because of what they showed makes the verdict invalid"
)


class FileJournal(Journal):
    """A journal in a file that this process alone writes.

    spec: what is audited, with the seed that the journal was begun with.
    history: how the runs before this one ended.
    changed: in words, what versions have changed since it was begun; the empty text when none has.
    anew: whether there was a file before, which held nothing to continue.
    Its methods raise JournalError when what is computed anew is not what it was.
    """

    def __init__(
        self, spec: AuditSpec, records: Records, history: History, changed: str, *, anew: bool
    ) -> None:
        super().__init__(spec)
        self._is_anew = anew
        self._records, self._history, self._changed = records, history, changed
        self._past = (one for one in records.read() if not MARKS & one.words.keys())
        self._at = 0.0
        self._said: list[float] = []
        self._moment: PairProgress | None = None
        self._unwritten: list[Content] = []
        self._written = time.monotonic()
        self._due: deque[float] = deque()
        self._next: Record | None = None
        # Whether this process has begun to draw, whether it has drawn, and whether the seed decides
        # what is drawn.
        self._draws_now, self._drew, self._repeats = False, False, True
        self._step()

    @property
    def warnings(self) -> tuple[str, ...]:
        found = self._history.warnings(self._runs)
        if self._is_anew:
            found.append(_BEGUN_ANEW.format(path=self._records.path))
        if self._changed:
            found.append(
                f"continued with other versions than it began with ({self._changed}); what was "
                "recomputed agreed with the record"
            )
        if self._history.sources + self._drew > 1 and not self._repeats:
            found.append(_NEW_DRAWS)
        return tuple(found)

    @property
    def resumed(self) -> int:
        return max(0, self._runs - 1)

    @property
    def _runs(self) -> int:
        """How many processes have drawn."""
        return self._history.runs + self._draws_now

    def now(self) -> float:
        """Return the seconds that all runs of the audit have taken together."""
        return time.perf_counter() - self._start if self._next is None else self._at

    def clock(self) -> float:
        if self._next is None:
            self._said.append(self.now())
            return self._said[-1]
        if not self._due:
            raise self._disagreement()
        return self._due.popleft()

    def recording(self, draws: Drawer, is_here: Callable[[], bool]) -> Drawer:
        return partial(self._drawn, draws, is_here)

    def once(self, name: str, make: Callable[[], Plain]) -> Plain | None:
        if self._next is None:
            made = make()
            self._keep({name: made}, {})
            return made
        if name not in self._next.words:
            return None
        self._check(self._next)
        self._at = float(self._next.words["at"])
        found: Plain = self._next.words[name]
        self._step()
        return found

    def sees(self, moment: PairProgress) -> None:
        self._moment = moment

    def ends(self) -> None:
        if self._next is None:
            self._keep({_END: True}, {})
            return
        self._check(self._next)
        if _END not in self._next.words:
            raise self._disagreement()
        self._at = float(self._next.words["at"])

    def _drawn(
        self, draws: Drawer, is_here: Callable[[], bool], chunks: Iterable[Chunk[Any]]
    ) -> Iterator[Any]:
        """Yield what is recorded, then what is drawn."""
        source = iter(chunks)
        while self._next is not None:
            chunk = next(source, None)
            if chunk is None:
                return
            yield self._again(self._next, chunk)
        yield from self._anew(draws, is_here, source)

    def _again(self, record: Record, chunk: Chunk[Any]) -> Drawn:
        """Return a chunk from its record."""
        self._check(record)
        # The size of what is timed depends on how far ahead it was asked for.
        is_same_size = isinstance(chunk, ToTime) or record.words.get("size") == chunk.size
        if record.words.get("chunk") != list(chunk.key) or not is_same_size:
            raise self._disagreement()
        if record.words.get("event") != _event(chunk):
            raise self._disagreement()
        self._at = float(record.words["at"])
        self._step()
        return self._noted(drawn_of(record))

    def _anew(
        self, draws: Drawer, is_here: Callable[[], bool], source: Iterator[Chunk[Any]]
    ) -> Iterator[Any]:
        asked: deque[Chunk[Any]] = deque()

        def asking() -> Iterator[Chunk[Any]]:
            for chunk in source:
                self._begins(chunk, is_here=is_here())
                asked.append(chunk)
                yield chunk

        for drawn in draws(asking()):
            self._keep(*_content(asked.popleft(), self._noted(drawn)))
            self._drew = True
            yield drawn

    def _begins(self, chunk: Chunk[Any], *, is_here: bool) -> None:
        """Say at once, where it is this process that draws, that it begins a block: it may be the
        last thing that it does."""
        self._draws_now = True
        if is_here:
            self._history.check(chunk.key)
            self._records.append({BEGUN: list(chunk.key)})

    def _noted(self, drawn: Drawn) -> Drawn:
        """Return a chunk, having noted whether the seed decides what is drawn."""
        if isinstance(drawn, Probe):
            self._repeats &= drawn.reproducible
        return drawn

    def _keep(self, words: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep a record, and what has happened since the last one."""
        since = {"at": self.now(), "clock": self._said, "state": _state(self._moment)}
        self._unwritten.append(({**words, **since}, arrays))
        self._said = []
        if time.monotonic() - self._written >= _BETWEEN:
            self._write()

    def _write(self) -> None:
        """Write what is kept: several chunks at once, which takes half the time."""
        # Given up first: Ctrl-C may come just after the write, and no chunk may be written twice.
        # What is lost so is drawn again.
        unwritten, self._unwritten = self._unwritten, []
        self._records.extend(unwritten)
        self._written = time.monotonic()

    def close(self) -> None:
        """Write all that is kept, and that this process ends in order, onto the disk."""
        self._write()
        self._records.append({CLOSED: True})
        self._records.sync()

    def _step(self) -> None:
        """Go on to the next record; from the last one on, time is what passes now."""
        self._next = next(self._past, None)
        if self._next is None:
            self._start = time.perf_counter() - self._at
        else:
            self._due = deque(self._next.words["clock"])

    def _check(self, record: Record) -> None:
        """Raise unless all was before this record as it is now."""
        # How often the clock was asked matters only where it plans the draws; else a journal may be
        # of a release that asked more often.
        is_unasked = bool(self._due) and self.spec.time is not None
        if is_unasked or record.words["state"] != _state(self._moment):
            raise self._disagreement()

    def _disagreement(self) -> JournalError:
        cause = f"other versions ({self._changed}), or " if self._changed else ""
        return JournalError(
            f"the journal {self._records.path} cannot be continued: learning again from the "
            f"recorded draws gives another result than before ({cause}an attack of your own that "
            "is not deterministic); start again in another folder"
        )


def _content(chunk: Chunk[Any], drawn: Drawn) -> Content:
    """Return the record of a chunk."""
    named = {"chunk": list(chunk.key), "size": chunk.size, "event": _event(chunk)}
    return {**named, **words_of(drawn)}, arrays_of(drawn)


def _state(moment: PairProgress | None) -> dict[str, Any] | None:
    """Return how the bettors stand."""
    if moment is None:
        return None
    return {
        "draws": moment.draws,
        "budget": moment.budget,
        "point": [moment.point.epsilon, moment.point.delta],
        "rounds": moment.rounds,
        "wealth": moment.wealth,
        "gains": coded(moment.gains),
    }


def _event(chunk: Chunk[Any]) -> dict[str, Any] | None:
    """Return what the first chunk of a stage is counted by, once and for all."""
    if not isinstance(chunk, ToCount) or chunk.key[-1] > 0:
        return None
    rule = chunk.measure.distinguisher
    accused = () if chunk.measure.atoms is None else chunk.measure.atoms.words
    return {
        "words": [[one.words(1), one.words(-1)] for one in rule.rules],
        "guesses": rule.table.tolist(),
        "shares": [one.share for one in rule.rules],
        "points": [
            None if one.point is None else [one.point.epsilon, one.point.delta]
            for one in rule.rules
        ],
        "accused": list(accused),
    }
