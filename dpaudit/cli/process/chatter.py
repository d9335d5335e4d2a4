"""What mechanisms print: each line once, and how often it came."""

from __future__ import annotations

from dpaudit.wording import inert

# Different lines that are shown, and bytes of each.
_SHOWN = 20
_WIDTH = 500


class Chatter:
    """Takes what a mechanism prints, in pieces, and says what of it to show."""

    def __init__(self) -> None:
        self._begun = b""
        self._counts: dict[bytes, int] = {}
        self._others = 0

    def heard(self, data: bytes) -> bytes:
        """Return the new lines among those that have come to their end."""
        *lines, begun = (self._begun + data).split(b"\n")
        self._begun = begun[: _WIDTH + 1]
        return b"".join(filter(None, map(self._counted, lines)))

    def summary(self) -> bytes:
        """Return how often the lines came, and the last one, if it has no end."""
        last = self._counted(self._begun) if self._begun else b""
        self._begun = b""
        if self._others:
            total = self._others + sum(self._counts.values())
            left_out = f"of which {len(self._counts)} different lines are shown"
            return last + f"the mechanism printed {total:,} lines, {left_out}\n".encode()
        repeated = [
            b"the mechanism printed %s times: %s\n" % (f"{count:,}".encode(), line)
            for line, count in self._counts.items()
            if count > 1
        ]
        return last + b"".join(repeated)

    def _counted(self, line: bytes) -> bytes:
        """Return a line that is to be shown, with its end."""
        line = inert(line.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        line = line if len(line) <= _WIDTH else line[:_WIDTH] + "…".encode()
        if line in self._counts:
            self._counts[line] += 1
        elif len(self._counts) < _SHOWN:
            self._counts[line] = 1
            return line + b"\n"
        else:
            self._others += 1
        return b""
