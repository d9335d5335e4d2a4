"""`dpaudit parity` as a command: exit codes, options and files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

MECHANISMS = """
import numpy as np


def plain(x, rng, scale=1.0):
    return x + rng.laplace(scale=scale)


def batched(x, size, rng, scale=1.0):
    return x + rng.laplace(scale=scale, size=size)


def wide(x, size, rng, scale=1.0):
    return x + rng.laplace(scale=2 * scale, size=size)


def total(rows, size, rng):
    return rows["x"].sum() + rng.laplace(size=size)
"""
FEW = ("--samples", "2000")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "m.py").write_text(MECHANISMS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_exit_codes(dpaudit: Any) -> None:
    same = dpaudit("parity", "m.py:plain", "m.py:batched", "--d1", "0", *FEW)
    assert same.exit_code == 0, same.output
    assert "A: m.py:plain; B: m.py:batched" in same.output
    different = dpaudit("parity", "m.py:plain", "m.py:wide", "--d1", "0", *FEW)
    assert different.exit_code == 1
    assert different.output.startswith("VIOLATION  plain and wide: ")
    allowed = ("--d1", "0", "--tau", "0.3", *FEW)
    assert dpaudit("parity", "m.py:plain", "m.py:wide", *allowed).exit_code == 0


def test_inputs_options_and_a_result_file(dpaudit: Any, folder: Path) -> None:
    words = ("m.py:plain", "m.py:batched", "--d1", "0", "--d1", "1.5", "--param", "scale=3", *FEW)
    ran = dpaudit("parity", *words, "--json", "r.json")
    assert ran.exit_code == 0, ran.output
    (audit,) = json.loads((folder / "r.json").read_text())["audits"]
    assert audit["target"] == "A: m.py:plain, scale=3; B: m.py:batched, scale=3"
    pairs = [certificate["pair"] for certificate in audit["ending"]["certificates"]]
    assert pairs == ["input 1 = 0", "input 2 = 1.5"]
    assert audit["command"].startswith("dpaudit parity m.py:plain m.py:batched")
    assert audit["request"] is None
    assert dpaudit("report", "r.json", "--rerun").exit_code == 0


def test_a_project_that_requires_power_and_draws(dpaudit: Any, folder: Path) -> None:
    text = "[tool.dpaudit]\nrequire_power = 2\nsamples = 1000\n"
    (folder / "pyproject.toml").write_text(text)
    ran = dpaudit("parity", "m.py:plain", "m.py:batched", "--d1", "0")
    assert ran.exit_code == 0, ran.output
    assert "1,000 draws" in ran.output


def test_tables_are_made_for_both(dpaudit: Any) -> None:
    table = '[{"x": 1}, {"x": 2}]'
    ran = dpaudit("parity", "m.py:total", "m.py:total", "--d1", table, "--as", "pandas", *FEW)
    assert ran.exit_code == 0, ran.output


def test_pictures_and_tables_of_a_page_name_a_and_b(dpaudit: Any, folder: Path) -> None:
    words = ("m.py:plain", "m.py:wide", "--d1", "0", "--report", "html:r.html", *FEW)
    assert dpaudit("parity", *words).exit_code == 1
    page = (folder / "r.html").read_text()
    texts = re.sub(r"<(script|style).*?</\1>|<[^>]*>", "|", page, flags=re.DOTALL)
    assert "|A|" in texts
    assert not re.search(r"(?<!-)\bd[12]\b", texts)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("m.py:plain", "--d1", "0"), "option-missing"),
        (("m.py:plain", "m.py:wide"), "option-missing"),
        (("m.py:plain", "m.py:wide", "--d1", "0", "--command", "cat"), "options-conflict"),
        (("m.py:plain", "m.py:wide", "--d1", "0", "--tau", "1"), "option-invalid"),
        (("m.py:plain", "audits.yaml", "--d1", "0"), "wrong-kind-of-file"),
        (("m.py:plain", "m.py:wide", "--d1", "0", "--python-b", "nowhere"), "program-not-found"),
        (("m.py:plain", "m.py:missing", "--d1", "0"), "name-not-found"),
    ],
)
def test_wrong_usage(dpaudit: Any, words: tuple[str, ...], code: str) -> None:
    ran = dpaudit("parity", *words)
    assert (ran.exit_code, ran.code) == (2, code), ran.output


@pytest.mark.parametrize("name", ["--evidence", "--alarm", "--certification-seed"])
def test_options_of_nights_are_unknown(dpaudit: Any, folder: Path, name: str) -> None:
    ran = dpaudit("parity", "m.py:plain", "m.py:batched", "--d1", "0", name, "1", *FEW)
    assert ran.exit_code == 2
    assert name in ran.output
    assert not (folder / "1").exists()
