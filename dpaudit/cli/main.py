"""`dpaudit`: start the program, with few imports. Once `main` runs, Ctrl-C prints no traceback. If
native code crashes, the Python code that called it is printed."""

from __future__ import annotations

import gc
import os
import sys

from dpaudit import hash_seed

_exit = os._exit  # leaving.py replaces os._exit


def main() -> None:
    """Run the command line and exit."""
    if _runs_a_command():
        _fix_hash_seed()
    # Imported after `_fix_hash_seed`: that function may start the program again, and these imports
    # would cost milliseconds twice.
    import faulthandler
    import signal

    # Not so if the process was started with Ctrl-C ignored, as in the background of a script.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    _open_what_is_closed()
    faulthandler.enable(2, all_threads=False)
    completes = False
    if "_DPAUDIT_COMPLETE" in os.environ:
        from dpaudit.cli.completing import begin

        completes = begin()
    gc.disable()  # imports make objects that stay: collections would find nothing
    from dpaudit.cli.commands import run_commands

    gc.enable()
    run_commands(completes=completes)


def _runs_a_command() -> bool:
    words = sys.argv[1:2]
    return words == ["--"] or not all(word.startswith("-") for word in words)


def _fix_hash_seed() -> None:
    """Start the program again with a fixed PYTHONHASHSEED if none is set."""
    # Sets then have the same order in every run and in all processes that draw.
    if os.environ.get(hash_seed.VARIABLE, "random") not in ("", "random"):
        return
    if sys.flags.ignore_environment or not sys.executable or not _is_whole_program():
        return
    words = [sys.executable, *sys.orig_argv[1:]]
    try:
        environment = {**os.environ, hash_seed.VARIABLE: hash_seed.USUAL}
        os.execve(sys.executable, words, environment)  # noqa: S606  # itself
    except OSError:  # for example, arguments and environment are too long for the system
        return


def _is_whole_program() -> bool:
    """Return whether the same command-line arguments can start this program again."""
    # They cannot if Python runs code of `-c` or standard input, or another program calls `main`.
    prefix, arguments = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1], sys.argv[1:]
    if [*prefix, *arguments] != sys.orig_argv:
        return False
    is_script = prefix[-1] == sys.argv[0] and os.path.realpath(prefix[-1]).endswith(
        f"{os.sep}dpaudit"
    )
    return is_script or prefix[-2:] == ["-m", "dpaudit"] or prefix[-1] == "-mdpaudit"


def _end(number: int, _: object) -> None:
    try:
        os.write(2, b"interrupted\n")
    finally:
        _exit(128 + number)


def _open_what_is_closed() -> None:
    """Open the null device for each standard stream that is closed."""
    # Otherwise the next pipe or file would get the file descriptor of that stream. Standard output
    # is opened for reading only, so that writing to it still fails.
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)
