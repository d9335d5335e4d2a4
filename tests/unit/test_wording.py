"""Numbers of things in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpaudit.wording import counted


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (0, "draw", "0 draws"),
        (1, "draw", "1 draw"),
        (2_000, "draw", "2,000 draws"),
        (1, "guess", "1 guess"),
        (2, "guess", "2 guesses"),
    ],
)
def test_one_is_no_plural(number: int, noun: str, words: str) -> None:
    assert counted(number, noun) == words


def test_no_message_has_one_of_many(tmp_path: Path) -> None:
    from dpaudit.errors import DatasetError
    from dpaudit.inputs.csv_files import read_rows
    from dpaudit.inputs.recordings import read_arms

    file = tmp_path / "a.csv"
    file.write_text("a,b\n1\n")
    with pytest.raises(DatasetError, match="row 2 has 1 cell, the first one has 2"):
        read_rows(file)
    with pytest.raises(DatasetError, match="line 2 has 1 cell, the header has 2"):
        read_arms(file, "a")
