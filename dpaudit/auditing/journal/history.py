"""How the runs before this one ended, as far as their journal tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dpaudit.errors import MechanismError
from dpaudit.sampling.chunks import Key

# Records that are no chunks: the first one, one for every process that has written, a block that a
# process begins to draw itself, and the orderly end of a process.
HEADER, SESSION, BEGUN, CLOSED = "journal", "session", "begun", "closed"
MARKS = {HEADER, SESSION, BEGUN, CLOSED}

# In the first record: there was a file, and not even its first record was whole.
ANEW = "anew"

# A block in which so many processes ended is not begun again.
_DEATHS = 3


@dataclass(frozen=True, slots=True)
class History:
    """runs: processes that have begun to draw.  sources: those that have recorded draws.
    deaths: by block, those that ended in the middle of it without a word."""

    runs: int
    sources: int
    deaths: Counter[Key]

    @classmethod
    def of(cls, records: Iterable[Mapping[str, Any]]) -> History:
        """Return what the words of all records tell."""
        session, began, drew = 0, set[int](), set[int]()
        under_way: Key | None = None
        deaths = Counter[Key]()
        for words in (*records, {SESSION: None}):
            if SESSION in words:
                session += 1
                deaths.update([] if under_way is None else [under_way])
                under_way = None
            elif BEGUN in words:
                under_way = tuple(words[BEGUN])
                began.add(session)
            elif CLOSED in words or tuple(words.get("chunk", ())) == under_way:
                under_way = None
            if "chunk" in words:
                drew.add(session)
        return cls(len(began | drew), len(drew), deaths)

    def check(self, key: Key) -> None:
        """Raise MechanismError for a block in which process after process has ended."""
        if self.deaths[key] >= _DEATHS:
            raise MechanismError(
                f"{self.deaths[key]} runs ended in the middle of the same block of draws, without "
                "any message: killed, out of memory, or ended by the mechanism itself. With "
                "isolate: true (--isolate), an end that the mechanism causes counts as an "
                "outcome; start again in another folder"
            )

    def warnings(self, runs: int) -> list[str]:
        """Return what a reader of the result must know. runs: all that have drawn."""
        if not self.deaths:
            return []
        return [
            f"{self.deaths.total()} of the {runs} runs of this audit ended in the middle of a "
            "block of draws, without any message (killed, out of memory, or ended by the mechanism "
            "itself). If the mechanism caused this, these outcomes are missing; isolate: true "
            "counts them"
        ]
