"""`dpaudit run` with mechanisms in other processes, from beginning to end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

ROOT = Path(__file__).parents[3]
FAULTY = ROOT / "tests" / "faulty.py"
INPUTS = ("--d1", "0", "--d2", "1")


def test_a_crash_that_leaks_is_found(dpaudit: Invoke, tmp_path: Path) -> None:
    program = tmp_path / "crashes.py"
    program.write_text(
        "import json, os, sys\n"
        "print('{\"dpaudit\": 1}', flush=True)\n"
        "for line in sys.stdin:\n"
        "    request = json.loads(line)\n"
        "    if request['seed'] % 10 < request['dataset']:\n"
        "        os.abort()\n"
        "    print(0, flush=True)\n"
    )
    # Without what Python imports for users, since it is started again after every crash.
    words = (f"{sys.executable} -IS {program}", *INPUTS, "--epsilon", "0.5", "--samples", "600")
    result = dpaudit("run", "--command", *words)
    assert result.exit_code == 1, result.output
    assert "crash is raised  (points to d2;" in " ".join(result.output.split("\n"))


def test_another_python_runs_it(dpaudit: Invoke) -> None:
    words = (f"{FAULTY}:batch", "--python", sys.executable, *INPUTS, "--epsilon", "1")
    result = dpaudit("run", *words, "--samples", "2000", "--quiet")
    assert result.exit_code == 1, result.output


def test_an_import_beyond_the_memory_limit_is_an_error(dpaudit: Invoke) -> None:
    flags = ("--isolate", *INPUTS, "--epsilon", "1", "--memory-limit", "40MB")
    result = dpaudit("run", "mechanisms.laplace:laplace", *flags)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "PLEASE READ" not in result.stderr


def test_an_audit_in_a_script_without_a_guard(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import dpaudit\n"
        "def draw(x): return 0\n"
        "dpaudit.audit(draw, 0, 1, dpaudit.PureDP(1.0), isolate=True, samples=1000)\n"
    )
    ran = subprocess.run(
        [sys.executable, str(script)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 1
    assert "dpaudit.audit under `if __name__ == '__main__':`" in ran.stderr
    guarded = script.read_text().replace(
        "dpaudit.audit", "if __name__ == '__main__': dpaudit.audit"
    )
    script.write_text(guarded)
    ran = subprocess.run(
        [sys.executable, str(script)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr


LAZY = """
import random
def batch(x, size):
    import not_installed
def on_one_input(x):
    if x:
        import not_installed
    return x
def once(x):
    once.calls += 1
    if once.calls == 1:
        import not_installed
    return random.randrange(7)
once.calls = 0
def lately(x):
    lately.calls += 1
    if lately.calls > 200 and random.random() < 0.1:
        import not_installed
    return random.randrange(7)
lately.calls = 0
"""


@pytest.mark.parametrize(
    ("attribute", "more"),
    [
        ("batch", ("--python", sys.executable)),
        ("on_one_input", ("--isolate",)),
        ("once", ()),
    ],
)
def test_a_missing_package_is_a_matter_of_set_up(
    dpaudit: Invoke, tmp_path: Path, attribute: str, more: tuple[str, ...]
) -> None:
    file = tmp_path / "lazy.py"
    file.write_text(LAZY)
    result = dpaudit("run", f"{file}:{attribute}", *more, *INPUTS, "--epsilon", "1")
    assert (result.exit_code, result.code) == (2, "package-missing"), result.output
    assert "'not_installed'" in result.output
    assert sys.executable in result.output


def test_a_library_that_the_interpreter_lacks_is_named_by_its_package(dpaudit: Invoke) -> None:
    target = "tmlt.core.measurements.base:Measurement"
    asked = ("--python", sys.executable, *INPUTS, "--claim-from", "library")
    result = dpaudit("run", target, *asked)
    assert (result.exit_code, result.code) == (2, "package-missing"), result.output
    assert "'tmlt.core'" in result.output


def test_an_import_that_fails_after_the_first_calls_is_an_outcome(
    dpaudit: Invoke, tmp_path: Path
) -> None:
    file = tmp_path / "lazy.py"
    file.write_text(LAZY)
    words = (f"{file}:lately", *INPUTS, "--epsilon", "1", "--samples", "1000")
    result = dpaudit("run", *words)
    assert result.exit_code == 0, result.output
    assert "ModuleNotFoundError" in result.output
