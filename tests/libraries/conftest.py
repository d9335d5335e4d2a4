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
from dpaudit.reports.trace_report import as_json

found = {}
for name, d1, d2, delta in json.loads(sys.argv[2]):
    claim = dpaudit.ApproximateDP(1.0, delta) if delta else dpaudit.PureDP(1.0)
    path = f"{sys.argv[1]}:{name}"
    found[f"{name} {delta:g}"] = json.loads(as_json(dpaudit.trace(path, d1, d2, claim)))
print(json.dumps(found))
"""


# A line is named if a cause has a line of code with one of the pieces that the list gives.
_CAUSES = """
import json, sys
import dpaudit
from mechanisms.causes.planted import OF_LIBRARIES

found = {}
for one in OF_LIBRARIES[sys.argv[1]]:
    claim = (
        dpaudit.ApproximateDP(one.epsilon, one.delta) if one.delta else dpaudit.PureDP(one.epsilon)
    )
    broken, correct = (
        dpaudit.trace(path, one.d1, one.d2, claim) for path in (one.broken, one.correct)
    )
    code = [each.code for cause in broken.causes for each in (cause.line, *cause.others)]
    is_named = any(piece in each for piece in one.lines for each in code)
    causes = [(each.kind, each.cost) for each in broken.causes]
    found[one.name] = is_named, causes, [each.kind for each in correct.causes]
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


def assert_lines_are_named(programs: Path, library: str) -> dict[str, list[Any]]:
    """Trace the mechanisms of a library in `mechanisms.causes`: a cause must name the line at
    fault, and the correct counterparts must have no cause. Return [kind, cost] of each
    cause by mechanism."""
    said = run(ROOT, programs / "python", "-c", _CAUSES, library)
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    assert found
    assert not [name for name, (is_named, _, correct) in found.items() if correct or not is_named]
    return {name: causes for name, (_, causes, _) in found.items()}
