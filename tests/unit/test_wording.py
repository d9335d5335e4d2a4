"""Numbers of things in words."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from dpaudit.wording import EXTRAS, Extra, counted, install_command


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
def test_one_thing_is_not_a_plural(number: int, noun: str, words: str) -> None:
    assert counted(number, noun) == words


def test_no_message_has_a_plural_of_one(tmp_path: Path) -> None:
    from dpaudit.errors import DatasetError
    from dpaudit.inputs.files import read_rows
    from dpaudit.inputs.recordings import read_arms

    file = tmp_path / "a.csv"
    file.write_text("a,b\n1\n")
    with pytest.raises(DatasetError, match="row 2 has 1 cell, "):
        read_rows(file)
    with pytest.raises(DatasetError, match="line 2 has 1 cell, the header has 2"):
        read_arms(file, "a")


ROOT = Path(__file__).parents[2]


def test_extras_are_those_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for extra in get_args(Extra):
        needed = project["optional-dependencies"][extra]
        assert EXTRAS[extra] == tuple(re.split(r"[^\w-]", one)[0] for one in needed)
        assert install_command(extra) == f"pip install {' '.join(EXTRAS[extra])}"


def test_install_commands_do_not_name_dpaudit() -> None:
    files = [*(ROOT / "dpaudit").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    assert not [one for one in files if re.search(r"install '?dpaudit\[", one.read_text("utf-8"))]
