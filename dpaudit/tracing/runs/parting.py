"""Where the ways of two runs part, and where each ends, or raises."""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING, Any

from .differences import Parted
from .places import Place

if TYPE_CHECKING:
    from .lines import Line
    from .running import Run


def parted(first: Run, second: Run) -> Parted | None:
    """Return where the ways of two runs part for good: what they have in common at the end, and
    the turns of loops, are left out."""
    if first.lines == second.lines:
        return None
    one, other = _without_repeats(first.lines), _without_repeats(second.lines)
    only = set(one) ^ set(other)
    if not only:
        return _first_turn(first.lines, second.lines)
    # Where they meet again and end alike, what differs has come back into the data.
    return _before_last(one, other, only)


def _first_turn(one: list[Line], other: list[Line]) -> Parted | None:
    """Return where runs first part that take the same lines, some of them more often."""
    place = next(
        (place for place, lines in enumerate(zip(one, other)) if lines[0] != lines[1]),
        min(len(one), len(other)),
    )
    ways = [lines[place] if place < len(lines) else None for lines in (one, other)]
    return Parted(_place(one[place - 1]), (_maybe(ways[0]), _maybe(ways[1]))) if place else None


def _before_last(one: list[Line], other: list[Line], only: set[Line]) -> Parted | None:
    """Return the last line in common before the last lines that one run alone takes."""
    found: tuple[int, int, Line | None] | None = None
    for which, lines in enumerate((one, other)):
        places = [place for place, line in enumerate(lines) if line in only]
        if not places:
            continue
        begin = places[-1]
        while begin and lines[begin - 1] in only:
            begin -= 1
        left = len(lines) - places[-1]
        if begin and (found is None or left < found[0]):
            found = left, which, lines[begin - 1]
            way = lines[begin]
            ways: list[Line | None] = [None, None]
            ways[which] = way
            rest = (other, one)[which]
            after = [place for place, line in enumerate(rest[:-1]) if line == lines[begin - 1]]
            ways[1 - which] = next(
                (rest[place + 1] for place in reversed(after) if rest[place + 1] != way), None
            )
            best = Parted(_place(lines[begin - 1]), (_maybe(ways[0]), _maybe(ways[1])))
    return None if found is None else best


def _without_repeats(lines: list[Line]) -> list[Line]:
    """Return lines without further turns of a loop: each line once, where it was last reached."""
    last = {line: place for place, line in enumerate(lines)}
    return [line for place, line in enumerate(lines) if last[line] == place]


def error_of(run: Run) -> Any:
    """Return the exception of a run, with the line that raised it; None without one."""
    error = run.error
    return None if error is None else (error[0], error[1], _maybe(error[2]))


def end_of(run: Run) -> Place | None:
    """Return the last line of a run."""
    return _maybe(run.lines.end)


def _maybe(line: Line | None) -> Place | None:
    return None if line is None else _place(line)


def _place(line: Line) -> Place:
    file, number = line
    return Place(file, number, linecache.getline(file, number).strip(), "")
