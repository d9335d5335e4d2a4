"""What importing the package does, and does not do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("scipy.stats", "statsmodels", "pandas", "sklearn", "matplotlib", "dask", "pydantic")
# Each module imports what those before it import, and more.
MODULES = (
    *("dpaudit", "dpaudit.cli.main", "dpaudit.api", "dpaudit.auditing.engine"),
    "dpaudit.cli.run",
)
LOOK = f"""
import importlib, logging, os, sys
before = set(os.listdir())
for module in {MODULES}:
    importlib.import_module(module)
    heavy = [name for name in {HEAVY} if name in sys.modules]
    assert not heavy, (module, heavy)
    assert not logging.getLogger().handlers, module
    assert set(os.listdir()) == before, module
"""


def test_importing_has_no_side_effect(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r})\n{LOOK}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        # What a worker imports it imports once for every worker.
        (
            "dpaudit.sampling.executors.worker_processes, dpaudit.attacks.single_columns, "
            "dpaudit.attacks.user_attacks",
            "scipy click yaml pandas dpaudit.auditing",
        ),
        ("dpaudit.cli.run", "jinja2 matplotlib dpaudit.reports.html.page"),
        ("dpaudit.adapters.loading, dpaudit.inputs.datasets", "yaml scipy pandas statsmodels"),
    ],
)
def test_importing_takes_no_more_than_it_needs(modules: str, unwanted: str) -> None:
    code = f"import sys, {modules}; print([m for m in {unwanted.split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    import dpaudit

    for name in dpaudit.__all__:
        assert getattr(dpaudit, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'audits'"):
        dpaudit.audits
