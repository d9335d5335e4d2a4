"""A process that kills what programs have started once dpaudit is gone, however it went.

The system ends a program with dpaudit, but not what that program has started. So a shell is told of
every session of a program; its standard input ends with dpaudit, and then it kills those that are
left.
"""

from __future__ import annotations

import os
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass, field

# Each line is a sign and a session: one more, or one that has ended.
_SCRIPT = """
sessions=
while read -r sign session; do
    rest=
    for one in $sessions; do
        [ "$one" = "$session" ] || rest="$rest $one"
    done
    sessions=$rest
    [ "$sign" = - ] || sessions="$sessions $session"
done
for one in $sessions; do
    kill -s KILL -- "-$one"
done
"""


@dataclass(slots=True)
class _Guardian:
    """The one of this process; it lives as long as a program does."""

    owner: int = 0
    sessions: set[int] = field(default_factory=set)
    process: subprocess.Popen[bytes] | None = None
    # Programs may end in any thread, and within one that starts another.
    lock: threading.RLock = field(default_factory=threading.RLock)

    def guard(self, session: int) -> None:
        """Have what is left of a session killed when this process is gone."""
        if self.owner != os.getpid():  # a fork has one of its own
            self.owner, self.sessions, self.process = os.getpid(), set(), None
            self.lock = threading.RLock()
        with self.lock:
            self.process = self.process or _started()
            self.sessions.add(session)
            self._tell("+", session)

    def forget(self, session: int) -> None:
        """Take notice that a session has been killed; its number may soon be another one's."""
        if self.owner != os.getpid():
            return
        with self.lock:
            self.sessions.discard(session)
            self._tell("-", session)
            if not self.sessions and self.process is not None:
                self.process.communicate()  # closes its input, which ends it
                self.process = None

    def _tell(self, sign: str, session: int) -> None:
        if self.process is not None and self.process.stdin is not None:
            with suppress(OSError, ValueError):  # somebody has ended it
                self.process.stdin.write(f"{sign} {session}\n".encode())


guardian = _Guardian()


def _started() -> subprocess.Popen[bytes] | None:
    try:
        return subprocess.Popen(  # noqa: S603  # nothing of the user's is in it
            ["/bin/sh", "-c", _SCRIPT],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C is not for it, nor what kills this process's group
        )
    except OSError:  # the programs end without it, too
        return None
