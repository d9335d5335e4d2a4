"""Programs of the environments that `make all-libraries` builds."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# One program for all traces of a file: to import the library takes longer than they do.
_TRACES = """
import json, sys
import dpaudit
from dpaudit.reports.trace import as_json

found = {}
for name, d1, d2, delta in json.loads(sys.argv[2]):
    claim = dpaudit.ApproximateDP(1.0, delta) if delta else dpaudit.PureDP(1.0)
    path = f"{sys.argv[1]}:{name}"
    found[f"{name} {delta:g}"] = json.loads(as_json(dpaudit.trace(path, d1, d2, claim)))
print(json.dumps(found))
"""


def environment(name: str) -> Path:
    """Return the folder of the programs of an environment."""
    found = ROOT / ".libraries" / name / "bin"
    assert (found / "dpaudit").exists(), f"{name} is not installed: make all-libraries"
    return found


def run(folder: Path, *words: Any) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder."""
    settings = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(
        list(map(str, words)), cwd=folder, env=settings, capture_output=True, text=True, check=False
    )


def traces(programs: Path, folder: Path, file: str, *asked: tuple[str, float]) -> dict[str, Any]:
    """Return the traces of functions at ε = 1 and a δ each, by name and δ."""
    given = json.dumps([(name, [1, 1], [1], delta) for name, delta in asked])
    said = run(folder, programs / "python", "-c", _TRACES, file, given)
    assert said.returncode == 0, said.stderr
    return dict(json.loads(said.stdout))
