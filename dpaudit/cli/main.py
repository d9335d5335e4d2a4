"""`dpaudit`: the first moments of the program, with the fewest imports. From here on Ctrl-C is no
traceback, and no way to end is taken for a verdict."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run the command line and exit."""
    heeds = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is ignored
    if heeds:
        signal.signal(signal.SIGINT, _end)
    _open_what_is_closed()
    from dpaudit.cli.process import parent as watching

    if heeds:
        signal.signal(signal.SIGINT, watching.end_at_once)
    # What only shows a text runs nobody's code, and need not wait for another process.
    only_shows = _only_shows()
    if not only_shows:
        watching.begin()
    from dpaudit.cli.process.collecting import undisturbed

    with undisturbed():
        from dpaudit.cli.commands import run_commands

    run_commands(only_shows=only_shows)


def _only_shows() -> bool:
    """Return whether no command runs: a shell asks how a line goes on, or a person for help."""
    if "_DPAUDIT_COMPLETE" in os.environ:
        from dpaudit.cli.completing import begin

        if begin():
            return True
    words = sys.argv[1:2]
    return words != ["--"] and all(word.startswith("-") for word in words)


def _end(number: int, _: object) -> None:
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(128 + number)


def _open_what_is_closed() -> None:
    """Give the standard streams that are closed something to be, so that no pipe or file gets their
    numbers. Writing to standard output fails as before: what is lost must not go unnoticed."""
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)
