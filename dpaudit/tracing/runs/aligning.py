"""Which of two lists' entries belong together, where one is longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def aligned(first: Sequence[Any], second: Sequence[Any]) -> list[int | None]:
    """Return, for each entry of the second list, which entry of the first it belongs to; None where
    there is none. Equal entries belong together, and those between them in their order, while there
    are as many."""
    import difflib

    found: list[int | None] = [None] * len(second)
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    for kind, a, a_end, b, b_end in matcher.get_opcodes():
        if kind in ("equal", "replace"):
            for step in range(min(a_end - a, b_end - b)):
                found[b + step] = a + step
    return found
