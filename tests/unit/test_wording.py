"""The extras that messages name are those of the package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import get_args

from dpaudit.wording import EXTRAS, Extra, install_command

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
