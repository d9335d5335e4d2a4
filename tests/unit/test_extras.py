"""What optional parts need: as pyproject.toml has it, and in words that work everywhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import get_args

from dpaudit.wording import EXTRAS, Extra, install_command

ROOT = Path(__file__).parents[2]


def test_every_extra_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for extra in get_args(Extra):
        needed = project["optional-dependencies"][extra]
        assert EXTRAS[extra] == tuple(re.split(r"[^\w-]", one)[0] for one in needed)
        assert install_command(extra) == f"pip install {' '.join(EXTRAS[extra])}"


def test_nothing_is_asked_of_an_index_that_need_not_have_it() -> None:
    files = [*(ROOT / "dpaudit").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    assert not [one for one in files if re.search(r"install '?dpaudit\[", one.read_text("utf-8"))]
