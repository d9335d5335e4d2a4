"""Events in few words: a whole part at the end, and no digits that say nothing."""

from __future__ import annotations

import pytest

from dpaudit.reports.events import brief


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("output ≤ 0.30000000000000004", "output ≤ 0.30000000000000004"),
        (
            r"""output is 'it\'s 3 or "so", and more text that goes on and on for a long while'""",
            r"""output is 'it\'s 3 or "so", and more text that goes on and on for a lon…""",
        ),
    ],
)
def test_an_event_ends_at_a_whole_part(words: str, said: str) -> None:
    assert brief(words) == said
