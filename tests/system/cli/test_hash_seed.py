"""The command starts over with a fixed hash seed: orders of keys count, and no set is refuted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dpaudit.cli import main
from dpaudit.hash_seed import USUAL

SCRIPT = str(Path(sys.executable).with_name("dpaudit"))
INPUTS = ("--d1", "0", "--d2", "1", "--epsilon", "1", "--seed", "1")
MECHANISMS = """
import decimal, os, sys

import numpy as np

with open("started", "a") as file:
    print(os.environ.get("PYTHONHASHSEED"), sys.flags.dev_mode, file=file)

def sign_of_zero(x, size, rng):
    return np.where(rng.random(size) < 0.9, -0.0 if x else 0.0, 1.0)

def type_of_number(x, rng):
    return (1 if x else 1.0) if rng.random() < 0.9 else 2

def order_of_keys(x, rng):
    pair = {"a": 1, "b": 2} if x else {"b": 2, "a": 1}
    return pair if rng.random() < 0.9 else {"a": 2}

def list_or_tuple(x, rng):
    return ([1] if x else (1,)) if rng.random() < 0.9 else [2]

def digits(x, rng):
    return decimal.Decimal("1.0" if x else "1.00") if rng.random() < 0.9 else decimal.Decimal(2)

# With the hash seeds 1, 24 and 30, a set of a and b has the order in which they were added.
def of_a_set(x, rng):
    keys = set(("a", "b", "c") if x else ("c", "b", "a"))
    return {key: float(rng.random() < 0.5) for key in keys}

def of_a_pair(x, rng):
    return {key: float(rng.random() < 0.5) for key in set(("a", "b") if x else ("b", "a"))}

def by_noise(x, rng):
    noisy = {key: x + rng.laplace() for key in "abcd"}
    return {key: 1 for key in sorted(noisy, key=noisy.get)}
"""
# Its file has one audit, so that `dpaudit check` imports it once.
LIGHT = """
import os, sys

with open("started", "a") as file:
    print(os.environ.get("PYTHONHASHSEED"), sys.flags.dev_mode, file=file)

def constant(x):
    return x
"""
LEAKS = ("sign_of_zero", "type_of_number", "order_of_keys", "list_or_tuple", "digits")
CORRECT = ("of_a_set", "of_a_pair", "by_noise")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.py").write_text(MECHANISMS)
    (tmp_path / "light.py").write_text(LIGHT)
    lines = [f"  - {{name: {one}, mechanism: 'm.py:{one}'}}" for one in (*LEAKS, *CORRECT)]
    head = "version: 1\ndefaults: {d1: 0, d2: 1, claim: {epsilon: 1}, seed: 1}\naudits:\n"
    (tmp_path / "all.yaml").write_text(head + "\n".join(lines))
    (tmp_path / "light.yaml").write_text(f"{head}  - mechanism: light.py:constant\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    return tmp_path


def run(
    *words: str, program: tuple[str, ...] = (SCRIPT,), seed: str | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    variables = {} if seed is None else {"PYTHONHASHSEED": seed}
    return subprocess.run(
        [*program, *words],
        env={**os.environ, **variables},
        text=True,
        capture_output=True,
        timeout=300,
        **more,
    )


def audits(*words: str, **more: Any) -> dict[str, Mapping[str, Any]]:
    result = run("run", *words, "--quiet", "--json", "-", **more)
    assert result.returncode in (0, 1), result.stderr
    return {one["name"]: one for one in json.loads(result.stdout)["audits"]}


def verdicts(*words: str, **more: Any) -> dict[str, str]:
    return {name: one["verdict"] for name, one in audits(*words, **more).items()}


def test_all_representations_are_refuted_in_a_plain_shell_but_no_order_that_a_set_has() -> None:
    found = audits("all.yaml", "--samples", "300", "--no-trace")
    refuted = [name for name, one in found.items() if one["verdict"] == "VIOLATION"]
    assert refuted == [*LEAKS]
    for name in CORRECT:
        assert found[name]["verdict"] == "NO VIOLATION FOUND"
        assert found[name]["command"].startswith("dpaudit run ")
        assert "PYTHONHASHSEED" not in found[name]["versions"]


def test_an_order_that_a_set_has_is_not_refuted_under_another_hash_seed() -> None:
    found = verdicts(
        "all.yaml", "-k", "=of_a_pair", "--samples", "300", "--workers", "2", seed="24"
    )
    assert found == {"of_a_pair": "NO VIOLATION FOUND"}


PROGRAM = """
import json, random, sys
print('{"dpaudit": 1}', flush=True)
for line in sys.stdin:
    request = json.loads(line)
    random.seed(request["seed"])
    # Of these two, a set has the order in which they were added.
    keys = set((0, 8) if request["dataset"] else (8, 0))
    print(json.dumps({key: random.random() < 0.5 for key in keys}), flush=True)
"""


def test_an_order_that_a_set_of_a_program_has_is_not_refuted(folder: Path) -> None:
    (folder / "program.py").write_text(PROGRAM)
    words = ("--command", f"{sys.executable} program.py", *INPUTS, "--samples", "300")
    assert [*verdicts(*words).values()] == ["NO VIOLATION FOUND"]


@pytest.mark.parametrize(
    ("program", "seed", "expected"),
    [
        ((SCRIPT,), None, f"{USUAL} False"),
        ((SCRIPT,), "random", f"{USUAL} False"),
        ((SCRIPT,), "0", "0 False"),
        ((sys.executable, "-X", "dev", "-mdpaudit"), None, f"{USUAL} True"),
        ((sys.executable, "-E", "-m", "dpaudit"), None, "None False"),
    ],
)
def test_the_command_starts_over_with_a_hash_seed(
    folder: Path, program: tuple[str, ...], seed: str | None, expected: str
) -> None:
    result = run("check", "light.yaml", program=program, seed=seed)
    assert result.returncode == 0, result.stderr
    assert (folder / "started").read_text().splitlines() == [expected]


def test_the_repeat_line_gives_the_same_digits_in_a_plain_shell() -> None:
    words = ("m.py:by_noise", *INPUTS, "--samples", "100")
    (first,) = audits(*words, seed="7").values()
    assert first["command"].startswith("PYTHONHASHSEED=7 dpaudit run ")
    assert first["versions"]["PYTHONHASHSEED"] == "7"
    folder = str(Path(SCRIPT).parent)
    again = subprocess.run(
        f"{first['command']} --quiet --json -",
        shell=True,
        env={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        text=True,
        capture_output=True,
        check=True,
        timeout=300,
    )
    (second,) = json.loads(again.stdout)["audits"]
    assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_a_journal_is_not_continued_under_another_hash_seed(
    dpaudit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("run", "m.py:by_noise", *INPUTS, "--samples", "100", "--journal", "kept")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert dpaudit(*words).exit_code == 0
    monkeypatch.setenv("PYTHONHASHSEED", USUAL)
    refused = dpaudit(*words, "--resume")
    assert refused.exit_code == 2
    assert f"PYTHONHASHSEED was 7, is {USUAL}" in " ".join(refused.stderr.split())
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert dpaudit(*words, "--resume").exit_code == 0


@pytest.mark.parametrize(
    ("started", "words", "expected"),
    [
        (["python", "/bin/dpaudit", "run", "a b"], ["/bin/dpaudit", "run", "a b"], True),
        (["python", "-X", "dev", "/bin/dpaudit", "run"], ["/bin/dpaudit", "run"], True),
        (["python", "-m", "dpaudit", "run"], ["/lib/dpaudit/__main__.py", "run"], True),
        (["python", "-m", "dpaudit", "run"], ["/bin/dpaudit", "run", "more"], False),
        (["python", "mine.py", "run"], ["mine.py", "run"], False),
        (["python", "-c", "code", "run"], ["-c", "run"], False),
        (["python", "/bin/dpaudit", "--version"], ["/bin/dpaudit", "--version"], False),
    ],
)
def test_which_programs_start_over(
    monkeypatch: pytest.MonkeyPatch, started: list[str], words: list[str], expected: bool
) -> None:
    class GoesOn(Exception):
        pass

    def getsignal(_: int) -> None:
        raise GoesOn

    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(sys, "orig_argv", started)
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(os, "execve", lambda *arguments: calls.append(arguments[:2]))
    monkeypatch.setattr("signal.getsignal", getsignal)
    with pytest.raises(GoesOn):
        main.main()
    assert calls == [(sys.executable, [sys.executable, *started[1:]])] * expected


FROM_PYTHON = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import dpaudit
from m import order_of_keys

if __name__ == "__main__":
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        for executor in (None, pool):
            result = dpaudit.audit(
                order_of_keys, 0, 1, dpaudit.PureDP(1.0), samples=1_000, executor=executor,
                no_trace=True,
            )
            print(result.verdict.value)
"""


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (USUAL, ["VIOLATION", "NO VIOLATION FOUND"]),
        ("random", ["NO VIOLATION FOUND", "NO VIOLATION FOUND"]),
    ],
)
def test_from_python_orders_count_under_a_hash_seed_of_all_processes(
    folder: Path, seed: str, expected: list[str]
) -> None:
    (folder / "script.py").write_text(FROM_PYTHON)
    result = run("script.py", program=(sys.executable,), seed=seed)
    assert result.stdout.splitlines() == expected, result.stderr
