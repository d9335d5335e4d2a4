"""`dpaudit trace`: what it says, what it refuses, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpaudit.tracing.findings.detectors import FOR_PAIR

MECHANISMS = """
import functools
import numpy as np

def half(rows, rng, scale=0.5):
    return len(rows) + rng.laplace(scale=scale)

def bare(rows):
    return len(rows)

@functools.cache
def noise_of(key):
    return np.random.laplace()

def cached(x):
    return x + noise_of(x)

async def waiting(rows):
    return 1

"""
PAIR = ("--d1", "[1, 2]", "--d2", "[1]")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.py").write_text(MECHANISMS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_cause_is_exit_code_1_with_line_and_remedy(dpaudit: Any) -> None:
    result = dpaudit("trace", "m.py:half", *PAIR, "--epsilon", "1")
    assert result.exit_code == 1
    assert result.stdout.startswith("CAUSE FOUND  m.py:half: too little noise, m.py:6\n")
    assert f"remedy: a scale of 1 {FOR_PAIR}" in lines(result.stdout)
    assert "> 6 return len(rows) + rng.laplace(scale=scale)" in lines(result.stdout)
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_no_cause_is_exit_code_0_and_no_pass(dpaudit: Any) -> None:
    result = dpaudit("trace", "m.py:half", *PAIR, "--epsilon", "1", "--param", "scale=1")
    assert result.exit_code == 0
    assert result.stdout.startswith("NO CAUSE FOUND")
    assert "no proof" in " ".join(result.stdout.split())


def test_what_saw_no_noise_is_exit_code_4(dpaudit: Any) -> None:
    result = dpaudit("trace", "m.py:bare", "--d1", "[1]", "--d2", "[2]")
    assert result.exit_code == 4
    assert "no pass" in " ".join(result.stdout.split())
    # What differs without noise is a cause all the same.
    assert dpaudit("trace", "m.py:bare", *PAIR).exit_code == 1


def test_a_mechanism_that_keeps_state(dpaudit: Any) -> None:
    result = dpaudit("trace", "m.py:cached", "--d1", "0", "--d2", "1", "--epsilon", "1")
    assert result.exit_code in (0, 4)
    assert "keeps state" in " ".join(result.stdout.split())


def test_json(dpaudit: Any, folder: Path) -> None:
    result = dpaudit("trace", "m.py:half", *PAIR, "--epsilon", "1", "--json", "t.json")
    record = json.loads((folder / "t.json").read_text())
    assert record["kind"] == "trace"
    assert record["findings"][0]["line"] == {
        "file": "m.py",
        "line": 6,
        "code": "rng.laplace(scale=scale)",
    }
    assert record["sites"][0]["cost"] == 2.0
    assert result.stdout.startswith("CAUSE")
    piped = dpaudit("trace", "m.py:half", *PAIR, "--epsilon", "1", "--json", "-")
    assert json.loads(piped.stdout)["sites"] == record["sites"]
    assert piped.stderr.startswith("CAUSE")


# The words, the code of the error (None where click refuses them, or where another room checks),
# and what the message names.
REFUSED: list[tuple[list[str], str | None, str]] = [
    (["m.py:halt", *PAIR], None, "Did you mean 'half'?"),
    (["audits.yaml", *PAIR], "wrong-kind-of-file", "audits.yaml"),
    (["m.py:waiting", *PAIR], None, "async function"),
    (["m.py:half", *PAIR, "--noises", "0"], None, "--noises"),
    (["m.py:half", *PAIR, "--primitive", "m.py:none"], None, "none"),
    (["m.py:half", *PAIR, "--follow", "no-such"], "module-not-found", "'no-such'"),
    (["m.py:half", *PAIR, "--json", "no/such/folder.json"], "cannot-write", "no/such"),
]


def test_wrong_input_is_exit_code_2(dpaudit: Any) -> None:
    for words, code, named in REFUSED:
        result = dpaudit("trace", *words)
        assert result.exit_code == 2
        assert result.code == code or code is None, words
        assert named in " ".join(result.stderr.split())
        assert "Traceback" not in result.stderr


@pytest.mark.usefixtures("traces")
def test_a_run_names_the_cause_unless_it_is_left_out(dpaudit: Any, folder: Path) -> None:
    words = ["run", "m.py:half", *PAIR, "--epsilon", "1", "--json", "r.json"]
    ended = dpaudit(*words)
    assert ended.exit_code == 1
    assert "cause likely m.py:6: `rng.laplace(scale=scale)` with scale 0.5" in " ".join(
        ended.stdout.split()
    )
    assert json.loads((folder / "r.json").read_text())["audits"][0]["trace"]["runs"] == 6
    assert "cause" not in dpaudit(*words, "--no-trace").stdout
    assert json.loads((folder / "r.json").read_text())["audits"][0]["trace"] is None


@pytest.mark.parametrize("loop", ["time.sleep(0.05)", "pass"])
def test_a_mechanism_that_never_ends_is_ended(dpaudit: Any, loop: str) -> None:
    Path("never.py").write_text(f"import time\ndef m(x, rng):\n    while True:\n        {loop}\n")
    pair = ("--d1", "0", "--d2", "1", "--epsilon", "1")
    result = dpaudit("trace", "never.py:m", *pair, "--time", "0.5s")
    assert result.exit_code == 4
    assert "more time" in " ".join(result.stdout.split())


def test_a_primitive_says_its_law(dpaudit: Any) -> None:
    Path("lawless.py").write_text(
        "import random\n"
        "def add(x, scale):\n    return x + random.gauss(0, scale)\n"
        "def wrong(x, scale):\n    return x + random.gauss(0, scale)\n"
        "wrong.law = 'lapalce'\n"
        "def m(x):\n    return add(x, scale=0.5)\n"
    )
    pair = ("--d1", "0", "--d2", "1", "--epsilon", "1")
    result = dpaudit("trace", "lawless.py:m", *pair, "--primitive", "lawless:add")
    assert result.exit_code == 4
    assert '`add.law = "laplace"`' in " ".join(result.stdout.split())
    result = dpaudit("trace", "lawless.py:m", *pair, "--primitive", "lawless:wrong")
    assert result.exit_code == 2
    assert result.code == "primitive-invalid"
    assert "'lapalce'" in result.stderr
