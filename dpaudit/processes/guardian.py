"""A process that kills what programs have started once dpaudit is gone, however it went.

The system ends a program with dpaudit, but not what that program has started. So a shell is told of
every session of a program; its standard input ends with dpaudit, and then it kills those that are
left.
"""

from __future__ import annotations

import atexit
import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass

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
    """The one of this process, which starts with the first program."""

    owner: int = 0
    process: subprocess.Popen[bytes] | None = None

    def tell(self, sign: str, session: int) -> None:
        if self.owner != os.getpid():
            self.owner, self.process = os.getpid(), _started()
        if self.process is not None and self.process.stdin is not None:
            with suppress(OSError, ValueError):  # somebody has ended it
                self.process.stdin.write(f"{sign} {session}\n".encode())

    def end(self) -> None:
        if self.owner == os.getpid() and self.process is not None:
            self.process.kill()
            if self.process.stdin is not None:
                self.process.stdin.close()
            self.process.wait()
            self.process = None  # and no other one: this process ends


_guardian = _Guardian()


def guard(session: int) -> None:
    """Have what is left of a session killed when this process is gone."""
    _guardian.tell("+", session)


def forget(session: int) -> None:
    """Take notice that a session has been killed; its number may soon be another one's."""
    _guardian.tell("-", session)


def _started() -> subprocess.Popen[bytes] | None:
    try:
        process = subprocess.Popen(  # noqa: S603  # nothing of the user's is in it
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
    atexit.register(_guardian.end)
    return process
