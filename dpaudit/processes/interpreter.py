"""Whether a program is a Python interpreter, before it is asked for anything else."""

from __future__ import annotations

from functools import partial

from dpaudit.errors import TargetError
from dpaudit.processes.child import Child, Ended, TimedOut, countdown

_WORD = "dpaudit asks"
# Seconds until it must have answered: an interpreter on a slow disk may take a while to start.
_ANSWER = 60.0
_LONGEST = 1 << 16


def check_python(python: str) -> None:
    """Raise TargetError unless a program runs Python."""
    child = Child([python, "-c", f"print({_WORD!r})"])
    try:
        line = child.wait(partial(child.line, _LONGEST), countdown(_ANSWER))
        found = f"wrote {line.decode(errors='replace')[:60]!r}"
    except Ended as error:
        line, found = b"", f"ended: {error}"
    except (TimedOut, ValueError):
        line, found = b"", "did not answer"
    finally:
        child.kill()
    if line.decode(errors="replace") != _WORD:
        raise TargetError(
            f"{python} is not a Python interpreter: asked to print({_WORD!r}), it {found}; give "
            "the path of one, e.g. /path/to/venv/bin/python"
        )
