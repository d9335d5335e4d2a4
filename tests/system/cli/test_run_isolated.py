"""`dpaudit run` with mechanisms in other processes, from beginning to end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dpaudit
from dpaudit import Verdict
from tests import faulty
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


def test_the_draws_are_the_same_for_any_number_of_workers(dpaudit: Invoke, tmp_path: Path) -> None:
    params = ("--param", f"log={tmp_path / 'log'}", "--param", "share=0.02")
    words = (f"{FAULTY}:logged", "--isolate", *params, *INPUTS, "--epsilon", "9", "--timeout", "9")
    # By default, the speed of the first draws decides whether bets alone may end the audit.
    ending = ("--samples", "150", "--stop", "confirmed")
    outputs = [
        dpaudit("run", *words, *ending, "--workers", workers).output for workers in ("1", "2")
    ]
    one, two = (
        [line for line in output.split("\n") if "time  " not in line and "%" in line]
        for output in outputs
    )
    assert one == two
    assert "exceptions  crash: " in outputs[0]


def test_another_python_runs_it(dpaudit: Invoke) -> None:
    words = (f"{FAULTY}:batch", "--python", sys.executable, *INPUTS, "--epsilon", "1")
    result = dpaudit("run", *words, "--samples", "2000", "--quiet")
    assert result.exit_code == 1, result.output


def test_data_frames_come_back_from_another_process(dpaudit: Invoke, tmp_path: Path) -> None:
    mechanism = tmp_path / "frames.py"
    mechanism.write_text(
        "import pandas as pd\n"
        "def synthetic(rows, rng):\n"
        "    return pd.DataFrame({'n': [len(rows) + rng.laplace(scale=0.5)]})\n"
    )
    inputs = ("--d1", "[1, 2]", "--d2", "[1]", "--epsilon", "4", "--samples", "500")
    # One worker, since each imports pandas. No violations, which start eight processes more.
    for more in (("--isolate",), ("--python", sys.executable)):
        words = (f"{mechanism}:synthetic", *inputs, "--workers", "1", *more)
        assert dpaudit("run", *words).exit_code == 0


def test_what_cannot_be_done_is_refused_before_the_audit(
    dpaudit: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpaudit.adapters.command._GREETING_SECONDS", 0.3)
    requests: dict[tuple[str, ...], str] = {
        ("--command", "cat"): "first line",
        ("m:f", "--command", "cat"): "excludes TARGET",
        (f"{FAULTY}:nope", "--isolate"): "'nope'",
        (f"{FAULTY}:plain", "--isolate", "--param", "sise=1"): "'sise'",
        (f"{FAULTY}:plain", "--isolate", "--exact"): "exact",
        (f"{FAULTY}:plain", "--isolate", "--memory-limit", "5"): "limit of 5 bytes",
        ("--command", "cat", "--memory-limit", "5"): "limit of 5 bytes",
    }
    for words, named in requests.items():
        result = dpaudit("run", *words, *INPUTS, "--epsilon", "1")
        assert result.exit_code == 2, result.output
        assert named in " ".join(result.output.split())


def test_an_import_beyond_the_memory_limit_is_an_error(dpaudit: Invoke) -> None:
    flags = ("--isolate", *INPUTS, "--epsilon", "1", "--memory-limit", "40MB")
    result = dpaudit("run", "mechanisms.laplace:laplace", *flags)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "PLEASE READ" not in result.stderr


def test_callables() -> None:
    result = dpaudit.audit(
        faulty.plain, 0, 0.5, dpaudit.PureDP(1.0), isolate=True, timeout=5.0, samples=2_000
    )
    assert result.verdict is Verdict.VIOLATION
    assert result.target.startswith("plain, ")


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


def test_ctrl_c_leaves_no_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    words = [f"{FAULTY}:Waiting", "--init", f'["{log}"]', "--isolate", *INPUTS, "--epsilon", "1"]
    script = Path(sys.executable).with_name("dpaudit")
    auditor = subprocess.Popen(
        [str(script), "run", *words, "--workers", "2"],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    # Two, and the first one, which looked whether it can be made.
    wait_for(lambda: log.exists() and len(log.read_text().split()) >= 3)
    time.sleep(0.3)
    os.killpg(auditor.pid, signal.SIGINT)
    assert auditor.wait(30) == 130
    for process in map(int, log.read_text().split()):
        wait_for(lambda process=process: not is_running(process))


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((f"{FAULTY}:plain", "--python", shutil.which("ls")), "mechanism-not-made", "reply"),
        (("--command", "echo hi"), "program-not-started", "line 'hi': "),
        (("--command", "echo"), "program-not-started", "line '': "),
    ],
)
def test_a_program_that_is_another_one_is_told_so(
    dpaudit: Invoke, words: tuple[str, ...], code: str, message: str
) -> None:
    result = dpaudit("run", *words, *INPUTS, "--epsilon", "1")
    assert (result.exit_code, result.code) == (2, code), result.output
    assert message in result.output


LAZY = """
import random
def single(x):
    import not_installed.anywhere
def batch(x, size):
    import not_installed
def on_one_input(x):
    if x:
        import not_installed
    return x
def another(x):
    from math import no_such_name
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
        ("on_one_input", ()),
        ("on_one_input", ("--isolate",)),
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
    assert sys.executable in result.output


def test_a_package_that_a_module_needs_is_named_with_the_interpreter(
    dpaudit: Invoke, tmp_path: Path
) -> None:
    file = tmp_path / "lazy.py"
    file.write_text("import not_installed\ndef draw(x):\n    return x\n")
    result = dpaudit("run", f"{file}:draw", *INPUTS, "--epsilon", "1")
    assert f"install it where {sys.executable} finds it" in result.output
    result = dpaudit("run", f"{file}:draw", "--isolate", *INPUTS, "--epsilon", "1")
    assert sys.executable in result.output.partition("'not_installed'")[2]


def test_an_import_that_fails_otherwise_is_quoted(dpaudit: Invoke, tmp_path: Path) -> None:
    file = tmp_path / "lazy.py"
    file.write_text(LAZY)
    result = dpaudit("run", f"{file}:another", *INPUTS, "--epsilon", "1")
    assert result.exit_code == 2, result.output
    assert "(ImportError: cannot import name 'no_such_name'" in result.output


def test_an_import_that_fails_after_the_first_calls_is_an_outcome(
    dpaudit: Invoke, tmp_path: Path
) -> None:
    file = tmp_path / "lazy.py"
    file.write_text(LAZY)
    words = (f"{file}:lately", *INPUTS, "--epsilon", "1", "--samples", "1000")
    result = dpaudit("run", *words)
    assert result.exit_code == 0, result.output
    assert "ModuleNotFoundError" in result.output
