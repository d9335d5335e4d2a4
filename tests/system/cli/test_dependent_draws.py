"""Draws that depend on each other, though no draw of one process shows it: never a VIOLATION."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dpaudit.cli.commands import cli
from dpaudit.processes.other_clock import SHIFT
from dpaudit.sampling.executors import new_processes as comparing

Invoke = Callable[..., Result]

# Without NumPy, which most of the time would go into.
_MECHANISMS = """
import datetime, functools, os, random, struct, time

def laplace(source=random):
    return source.expovariate(1) - source.expovariate(1)

AT_IMPORT = [laplace(), laplace()]
POOL = [laplace() for _ in range(50)]
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

def vector_seeded_by_hash(x):
    return [x + laplace(random.Random(hash("salt"))), random.gauss(0, 1)]

def from_a_pool(x):
    return x + random.choice(POOL) + 0.01 * random.gauss(0, 1)

# Twice the claim, in a list whose order the hash seed gives.
def list_of_a_set(x):
    return [(name, x * (name == "a") + 0.5 * laplace()) for name in {"a", "bc", "d", "efg"}]

def text_of_a_set(x):
    return ", ".join({"a", "bc", "d"}) + f": {random.random() < (0.88 if x else 0.12)}"

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


def audits_in(file: Path) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in json.loads(file.read_text("utf-8"))["audits"]}


def certificate(audit: dict[str, Any]) -> dict[str, Any]:
    (found,) = audit["ending"]["certificates"]
    return dict(found)


def batch(module: Path, **own: str) -> list[str]:
    """Return the words that run a batch. own: the keys of each audit, by its name."""
    file, kept = module.with_name("a.yaml"), module.with_name("r.json")
    audits = "".join(f"  - {{name: {name}, {keys}}}\n" for name, keys in own.items())
    file.write_text(
        "version: 1\ndefaults: {d1: 0, d2: 1, claim: {epsilon: 1}, samples: 5000, "
        f"no_trace: true}}\naudits:\n{audits}"
    )
    return ["run", str(file), "--json", str(kept)]


DRAWN_ONCE = (
    "drawn_at_import",
    "seeded_by_the_second",
    "seeded_by_the_day",
    "seeded_by_uptime",
    "in_a_bytearray",
    "vector_seeded_by_hash",
    "from_a_pool",
)
OTHERS = ("constant", "dated", "not_elsewhere")


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return the audits of a batch, whose new processes take longer to start than to draw."""
    module = tmp_path_factory.mktemp("compared") / "dependent.py"
    module.write_text(_MECHANISMS, "utf-8")
    own = {name: f"mechanism: '{module}:{name}'" for name in (*DRAWN_ONCE, *OTHERS)}
    own["undated"] = f"{own['dated']}, post_process: '{module}:undated'"
    now = time.time()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpaudit.sampling.executors.new_processes.DRAWING_SECONDS", 60.0)
        # An audit that goes on over the end of a second would end in another check of dependence.
        patch.setattr(time, "time", lambda: now)
        patch.setenv("FIRST", str(os.getpid()))
        CliRunner().invoke(cli, batch(module, **own), prog_name="dpaudit")
    return audits_in(module.with_name("r.json"))


@pytest.mark.parametrize("name", DRAWN_ONCE)
def test_noise_that_a_process_draws_once_is_an_error(
    compared: dict[str, dict[str, Any]], name: str
) -> None:
    """docs/method.md §11 has the chance of a miss."""
    audit = compared[name]
    assert audit["verdict"] in ("ERROR", "NO VIOLATION FOUND")
    if audit["verdict"] == "ERROR":
        assert audit["ending"]["error"].startswith("outputs for d")


@pytest.mark.parametrize("name", ["in_a_bytearray", "vector_seeded_by_hash", "from_a_pool"])
def test_without_new_processes_such_noise_is_a_violation(
    dpaudit: Invoke, module: Path, name: str
) -> None:
    """Else the tests above would show nothing."""
    assert 1 in (run(dpaudit, module, name, "--seed", seed).exit_code for seed in range(4))


def test_a_leak_stays_a_violation_and_says_how_many_processes_agree(
    dpaudit: Invoke, module: Path, new_processes: None
) -> None:
    """A batch starts them once."""
    copy = module.parent / "copy" / "dependent.py"
    copy.parent.mkdir()
    copy.write_text(_MECHANISMS, "utf-8")
    leaks, copied = (f"mechanism: '{path}:leaks'" for path in (module, copy))
    own = {"first": leaks, "second": f"{leaks}, seed: 1"}
    own |= {"isolated": f"{copied}, isolate: true", "of workers": f"{copied}, workers: 2"}
    result = dpaudit(*batch(module, **own))
    assert result.exit_code == 1
    audits = audits_in(module.with_name("r.json"))
    assert list(audits) == list(own)
    for audit in audits.values():
        assert audit["verdict"] == "VIOLATION"
        found = certificate(audit)
        assert found["redrawn"]["processes"] == 8
        assert found["redrawn"]["draws"] >= 64
        assert found["redrawn"]["note"] == ""
        assert found["warnings"] == []
    imports = module.with_name("imports.txt").read_text().split()
    assert len(set(imports)) == len(imports) == 1 + 8
    again = dpaudit("report", module.with_name("r.json"))
    assert again.exit_code == 0
    assert "VIOLATION" in again.output


def test_outputs_with_a_date_are_compared_without_it(
    compared: dict[str, dict[str, Any]],
) -> None:
    assert compared["dated"]["verdict"] == "ERROR"
    assert "by post_process" in compared["dated"]["ending"]["error"]
    assert compared["undated"]["verdict"] == "VIOLATION"


def test_hashes_of_texts_differ_between_new_processes_where_their_seed_is_fixed(
    dpaudit: Invoke, module: Path, new_processes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise from a hash is an error, and neither rounding nor an order that depends on hashes hides
    a leak."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    leaks = ("rounds", "list_of_a_set", "text_of_a_set")
    names = ("seeded_by_hash", *leaks)
    dpaudit(*batch(module, **{name: f"mechanism: '{module}:{name}'" for name in names}))
    audits = audits_in(module.with_name("r.json"))
    assert audits["seeded_by_hash"]["verdict"] in ("ERROR", "NO VIOLATION FOUND")
    for name in leaks:
        assert audits[name]["verdict"] == "VIOLATION"
        redrawn = {"processes": 8, "draws": 16_000, "note": ""}
        assert certificate(audits[name])["redrawn"] == redrawn
        assert certificate(audits[name])["warnings"] == []


def test_the_event_of_an_order_of_keys_is_compared_under_the_same_hashes(module: Path) -> None:
    """By a program of its own, whose seed of hashes is what the environment says."""
    words = ["run", f"{module}:keeps_order", "--d1", "0", "--d2", "1", "--epsilon", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "dpaudit", *words, "--samples", "1000", "--no-trace"],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 1


def test_a_mechanism_without_noise_is_not_taken_for_a_stored_result(
    compared: dict[str, dict[str, Any]],
) -> None:
    assert compared["constant"]["verdict"] == "VIOLATION"
    assert certificate(compared["constant"])["warnings"] == []


def test_new_processes_that_cannot_draw_are_a_note(compared: dict[str, dict[str, Any]]) -> None:
    assert compared["not_elsewhere"]["verdict"] == "VIOLATION"
    found = certificate(compared["not_elsewhere"])
    assert found["redrawn"]["processes"] == 0
    assert "ConnectionError: no database" in found["redrawn"]["note"]
    assert found["warnings"] == []
    assert any("no database" in one for one in found["notes"])


@pytest.mark.parametrize(("processes", "patience"), [(2, 60.0), (0, 1.0)])
def test_too_few_processes_that_draw_in_time_are_a_warning(
    dpaudit: Invoke, module: Path, tmp_path: Path, new_processes: None,
    monkeypatch: pytest.MonkeyPatch, processes: int, patience: float,
) -> None:  # fmt: skip
    """All later processes never end their import; their clocks run ahead the most."""
    with module.open("a") as file:
        limit = (processes + 0.5) * comparing._CLOCK_SHIFT
        file.write(f"\nif float(os.environ.get({SHIFT!r}, 0)) > {limit}:\n    time.sleep(600)\n")
    monkeypatch.setattr(comparing, "DRAWING_SECONDS", 1.0)
    monkeypatch.setattr(comparing, "TIMES_OF_FIRST", 1.0)
    monkeypatch.setattr(comparing, "WAITING_SECONDS", patience)
    monkeypatch.setattr(comparing, "cores", lambda: 2)
    result = run(dpaudit, module, "leaks", "--json", tmp_path / "r.json")
    assert result.exit_code == 1
    (audit,) = audits_in(tmp_path / "r.json").values()
    found = certificate(audit)
    assert found["redrawn"]["processes"] == processes
    assert any(f"only {processes} of 8" in one for one in found["warnings"])


def test_an_object_that_is_used_up_is_an_error(
    dpaudit: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine, the calls that show it take longer.
    monkeypatch.setattr("dpaudit.auditing.safeguards.kept_state._EXHAUSTION_SECONDS", 60.0)
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
    kept = tmp_path / "r.json"
    pair = ("--d1", "[1,2]", "--d2", "[1]", "--epsilon", 1, "--samples", 3_000, "--json", kept)
    made = ("--init", "{total: 10}", "--call", "count", "--workers", 1)
    assert dpaudit("run", f"{tmp_path}/budget.py:Budget", *made, *pair).exit_code == 3
    (audit,) = audits_in(kept).values()
    assert audit["ending"]["code"] == "mechanism-exhausted"
