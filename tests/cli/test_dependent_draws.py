"""Draws that depend on each other, though no draw of one process shows it: never a VIOLATION."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from dpaudit.processes.other_clock import SHIFT

Invoke = Callable[..., Result]

# Without NumPy, which most of the time would go into.
_MECHANISMS = """
import datetime, functools, os, random, struct, time

def laplace(source=random):
    return source.expovariate(1) - source.expovariate(1)

AT_IMPORT = [laplace(), laplace()]
LOG = os.path.join(os.path.dirname(__file__), "imports.txt")
with open(LOG, "a") as file:
    file.write(f"{os.getpid()}\\n")

def drawn_at_import(x):
    return x + AT_IMPORT[x] + random.gauss(0, 0.05)

def seeded_by_the_second(x):
    return x + laplace(random.Random(f"{x} {int(time.time())}")) + random.gauss(0, 0.1)

def seeded_by_the_day(x):
    day = datetime.date.today().toordinal()
    return x + laplace(random.Random(f"{x} {day}")) + random.gauss(0, 0.1)

def seeded_by_uptime(x):
    return x + laplace(random.Random(f"{x} {int(time.monotonic() / 60)}")) + random.gauss(0, 0.1)

def seeded_by_hash(x):
    return x + laplace(random.Random(hash(f"input {x}"))) + random.gauss(0, 0.1)

def _closure():
    done, noise = bytearray(2), bytearray(16)
    def in_a_bytearray(x):
        if not done[x]:
            noise[8 * x : 8 * x + 8] = struct.pack("d", x + laplace())
            done[x] = 1
        return struct.unpack_from("d", noise, 8 * x)[0] + random.gauss(0, 0.05)
    return in_a_bytearray

in_a_bytearray = _closure()

def leaks(x):
    return x + 0.3 * laplace()

def not_elsewhere(x):
    if os.getpid() != int(os.environ["FIRST"]):
        raise ConnectionError("no database")
    return x + 0.3 * laplace()

def constant(x):
    return x

def dated(x):
    return f"{datetime.date.today()}: {int(random.random() < (0.9 if x else 0.2))}"

def undated(text):
    return text.partition(": ")[2]

def rounds(x):
    # As a sum of floats over a set of texts does, whose order follows from their hashes.
    rounding = 1e-15 * (os.environ["PYTHONHASHSEED"] != "0")
    return 1.1 - rounding if x else 0.1 + rounding

def keeps_order(x):
    kept = {"b": 1, "a": 2} if random.random() < (0.9 if x else 0.1) else {"a": 2, "b": 1}
    return kept
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "dependent.py"
    path.write_text(_MECHANISMS, "utf-8")
    return path


def run(dpaudit: Invoke, module: Path, name: str, *more: Any) -> Result:
    target = f"{module}:{name}"
    return dpaudit("run", target, "--d1", "0", "--d2", "1", "--epsilon", "1", "--samples", 5_000,
                   "--no-trace", *more)  # fmt: skip


def certificate(file: Path) -> dict[str, Any]:
    (audit,) = json.loads(file.read_text("utf-8"))["audits"]
    (found,) = audit["certificates"]
    return dict(found)


@pytest.mark.parametrize(
    "name",
    [
        "drawn_at_import",
        "seeded_by_the_second",
        "seeded_by_the_day",
        "seeded_by_uptime",
        "in_a_bytearray",
    ],
)
def test_noise_that_a_process_draws_once_is_an_error(
    dpaudit: Invoke, module: Path, new_processes: None, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The noise of eight processes agrees with probability 0.001 (docs/method.md §11)."""
    # An audit that goes on over the end of a second would end in another check of dependence.
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    result = run(dpaudit, module, name)
    assert result.exit_code != 1
    if result.exit_code == 3:
        assert result.output.startswith(f"ERROR  {name}: outputs for d")


def test_without_new_processes_such_noise_is_a_violation(dpaudit: Invoke, module: Path) -> None:
    """Else the tests above would show nothing."""
    codes = {run(dpaudit, module, "in_a_bytearray", "--seed", seed).exit_code for seed in range(4)}
    assert 1 in codes


def test_noise_from_the_hash_of_a_text_is_an_error_where_the_seed_of_hashes_is_fixed(
    dpaudit: Invoke, module: Path, new_processes: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    assert run(dpaudit, module, "seeded_by_hash").exit_code != 1


@pytest.mark.parametrize("where", [[], ["--isolate"], ["--workers", 2]])
def test_a_leak_stays_a_violation_and_says_how_many_processes_agree(
    dpaudit: Invoke, module: Path, new_processes: None, tmp_path: Path, where: list[Any]
) -> None:
    result = run(dpaudit, module, "leaks", "--json", tmp_path / "r.json", *where)
    assert result.exit_code == 1
    found = certificate(tmp_path / "r.json")
    assert found["redrawn"]["processes"] == 8
    assert found["redrawn"]["draws"] >= 64
    assert found["redrawn"]["note"] == ""
    assert found["warnings"] == []
    again = dpaudit("report", tmp_path / "r.json")
    assert again.exit_code == 0
    assert again.output.startswith("VIOLATION")


def test_outputs_with_a_date_are_compared_without_it(
    dpaudit: Invoke, module: Path, new_processes: None
) -> None:
    result = run(dpaudit, module, "dated")
    assert result.exit_code == 3
    assert "by post_process" in " ".join(result.output.split())
    remedied = run(dpaudit, module, "dated", "--post-process", f"{module}:undated")
    assert remedied.exit_code == 1


def test_rounding_that_depends_on_hashes_does_not_hide_a_leak(
    dpaudit: Invoke, module: Path, tmp_path: Path, new_processes: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    assert run(dpaudit, module, "rounds", "--json", tmp_path / "a.json").exit_code == 1
    assert certificate(tmp_path / "a.json")["redrawn"]["processes"] == 8


def test_the_event_of_an_order_of_keys_is_compared_under_the_same_hashes(module: Path) -> None:
    """By a program of its own, whose seed of hashes is what the environment says."""
    words = ["run", f"{module}:keeps_order", "--d1", "0", "--d2", "1", "--epsilon", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "dpaudit", *words, "--samples", "5000", "--no-trace"],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 1


def test_a_mechanism_without_noise_is_not_taken_for_a_stored_result(
    dpaudit: Invoke, module: Path, new_processes: None, tmp_path: Path
) -> None:
    assert run(dpaudit, module, "constant", "--json", tmp_path / "r.json").exit_code == 1
    assert certificate(tmp_path / "r.json")["warnings"] == []


def test_new_processes_that_cannot_draw_are_a_note(
    dpaudit: Invoke, module: Path, new_processes: None, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("FIRST", str(os.getpid()))
    result = run(dpaudit, module, "not_elsewhere", "--json", tmp_path / "r.json")
    assert result.exit_code == 1
    found = certificate(tmp_path / "r.json")
    assert found["redrawn"]["processes"] == 0
    assert "ConnectionError: no database" in found["redrawn"]["note"]
    assert found["warnings"] == []
    assert any("no database" in one for one in found["notes"])


@pytest.mark.parametrize("patience", [60.0, 2.0])
def test_a_slow_import_leaves_time_for_two_processes(
    dpaudit: Invoke, module: Path, tmp_path: Path, new_processes: None,
    monkeypatch: pytest.MonkeyPatch, patience: float,
) -> None:  # fmt: skip
    """Where not even two can draw, that is a warning, too."""
    with module.open("a") as file:
        file.write(f"\nif {SHIFT!r} in os.environ:\n    time.sleep(3)\n")
    monkeypatch.setattr("dpaudit.sampling.executors.new_processes.SECONDS", 1.0)
    monkeypatch.setattr("dpaudit.sampling.executors.new_processes.PATIENCE", patience)
    monkeypatch.setattr("dpaudit.processes.cores.cores", lambda: 2)
    result = run(dpaudit, module, "leaks", "--json", tmp_path / "r.json")
    assert result.exit_code == 1
    found = certificate(tmp_path / "r.json")
    processes = 2 if patience == 60 else 0
    assert found["redrawn"]["processes"] == processes
    assert any(f"only {processes} of 8" in one for one in found["warnings"])


def test_a_batch_starts_processes_once(
    dpaudit: Invoke, module: Path, tmp_path: Path, new_processes: None
) -> None:
    audits = "".join(f"  - {{name: a{n}, seed: {n}}}\n" for n in range(3))
    (tmp_path / "a.yaml").write_text(
        f"version: 1\ndefaults: {{mechanism: '{module}:leaks', d1: 0, d2: 1, "
        "claim: {epsilon: 1}, samples: 5000, no_trace: true}\n" + f"audits:\n{audits}"
    )
    assert dpaudit("run", tmp_path / "a.yaml").exit_code == 1
    imports = (tmp_path / "imports.txt").read_text().split()
    assert len(set(imports)) == len(imports) == 1 + 8


@pytest.mark.parametrize(
    ("total", "where"), [(10, []), (1_000, []), (10, ["--isolate"]), (1_000, ["--isolate"])]
)
def test_an_object_that_is_used_up_is_said_to_be(
    dpaudit: Invoke, tmp_path: Path, total: int, where: list[str]
) -> None:
    (tmp_path / "budget.py").write_text(
        "import random\n"
        "class Budget:\n"
        "    def __init__(self, total):\n"
        "        self.left = total\n"
        "    def count(self, rows):\n"
        "        if self.left < 1:\n"
        "            raise RuntimeError('the budget is used up')\n"
        "        self.left -= 1\n"
        "        return len(rows) + random.gauss(0, 1)\n"
    )
    result = dpaudit("run", f"{tmp_path}/budget.py:Budget", "--init", f"{{total: {total}}}",
                     "--call", "count", "--d1", "[1,2]", "--d2", "[1]", "--epsilon", 1,
                     "--samples", 3_000, "--workers", 1, *where)  # fmt: skip
    assert result.exit_code == 3
    said = " ".join(result.output.split())
    assert f"after {total:,} calls" in said
    assert "RuntimeError: the budget is used up" in said
    assert f"return Budget(total={total}).count(data)" in said
    assert where or "Budget.left" in said


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("count(self, rows, rng)", []),
        ("count(self, rows, unit, *, rng)", ["--param", "unit=1"]),
        ("count(self, unit, rows, noise)",
         ["--param", "unit=1", "--data-arg", "rows", "--rng-arg", "noise", "--isolate"]),
        ("__call__(self, rows, rng)", []),
        ("count(self, rows, size, rng)", ["--batch-arg", "none"]),
    ],
)  # fmt: skip
def test_the_function_to_audit_for_an_object_that_is_used_up_can_be_audited(
    dpaudit: Invoke, tmp_path: Path, method: str, options: list[str]
) -> None:
    generator = "noise" if "noise" in method else "rng"
    output = f"len(rows) + {generator}.laplace()"
    file = tmp_path / "budget.py"
    code = (
        "class Budget:\n"
        "    def __init__(self, total):\n"
        "        self.left = total\n"
        f"    def {method}:\n"
        "        if self.left < 1:\n"
        "            raise RuntimeError('the budget is used up')\n"
        "        self.left -= 1\n"
        f"        return {f'[{output}]' if 'size' in method else output}\n"
    )
    file.write_text(code)
    call = [] if "__call__" in method else ["--call", "count"]
    more = [*options, "--d1", "[1,2]", "--d2", "[1]", "--epsilon", 1, "--samples", 2_000, "-q"]
    result = dpaudit("run", f"{file}:Budget", "--init", "[1]", *call, *more)
    assert result.exit_code == 3
    advice = re.search(r"def (\w+)\(.*", result.output)
    assert advice is not None
    advised = tmp_path / "advised.py"
    advised.write_text(f"{code}\n\n{advice[0]}\n")
    assert dpaudit("run", f"{advised}:{advice[1]}", *more).exit_code == 0


def test_a_mechanism_that_raises_by_chance_is_not_used_up(dpaudit: Invoke, tmp_path: Path) -> None:
    (tmp_path / "often.py").write_text(
        "import random\n"
        "def often(x):\n"
        "    if random.random() < 0.95:\n"
        "        raise ValueError('no')\n"
        "    return x + random.gauss(0, 1)\n"
    )
    result = dpaudit("run", f"{tmp_path}/often.py:often", "--d1", 0, "--d2", 1, "--epsilon", 5,
                     "--samples", 3_000)  # fmt: skip
    assert result.exit_code == 0
