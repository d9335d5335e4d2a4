"""Events in few words: a whole part at the end, and no digits that say nothing."""

from __future__ import annotations

import pytest

from dpaudit.reports.events import MAX_EVENT_CHARACTERS, brief


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("output ≤ 0.13", "output ≤ 0.13"),
        (
            "score < -1.885, where the score is a weighted sum of 6 coordinates, most of all "
            "output[3]",
            "score < -1.885, a weighted sum of 6 coordinates, most of all output[3]",
        ),
        (
            "score < -2.705, where the score is a weighted sum of 6 coordinates, most of all "
            "output[2] (weight 0.51) and output[0] (weight -1)",
            "score < -2.705, a weighted sum of 6 coordinates",
        ),
        (
            "score ≥ 1.5, where the score adds up 12 coordinates, each less what those before it "
            "predict, most of all output[1]",
            "score ≥ 1.5, which adds up 12 coordinates",
        ),
        (
            "output is (1, 0, 0, 1), (1, 0, 1, 1), (1, 0, 0, 0), (1, 1, 0, 0) or (1, 1, 1, 1)",
            "output is (1, 0, 0, 1), (1, 0, 1, 1), (1, 0, 0, 0) or others",
        ),
        ("output < -4.31490620143451", "output < -4.31491"),
        ("0.65234567891 ≤ output < 0.76123456789", "0.652346 ≤ output < 0.761235"),
        # What tells them apart stays.
        ("output ≤ 0.30000000000000004", "output ≤ 0.30000000000000004"),
        (
            "0.123456789 ≤ output < 0.1234567895",
            "0.123456789 ≤ output < 0.1234567895",
        ),
        ("output is 'a < 1.23456789'", "output is 'a < 1.23456789'"),
        (
            "a rare output such as 'debug-83123' (seen fewer than 10 times in 100,000 draws)",
            "a rare output such as 'debug-83123'",
        ),
        (
            r"""output is 'it\'s 3 or "so", and more text that goes on and on for a long while'""",
            r"""output is 'it\'s 3 or "so", and more text that goes on and on for a lon…""",
        ),
    ],
)
def test_an_event_ends_at_a_whole_part(words: str, said: str) -> None:
    assert brief(words) == said


def test_parts_that_all_have_to_hold_are_not_said_to_be_alternatives() -> None:
    words = " and ".join(f"output[{place}] is present" for place in range(9))
    said = brief(words)
    assert said.endswith("output[1] is present and more")
    assert len(said) <= MAX_EVENT_CHARACTERS


def test_one_long_part_is_cut() -> None:
    assert brief("output is '" + "x" * 99 + "'").endswith("…")
