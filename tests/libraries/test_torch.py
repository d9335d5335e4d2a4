"""Noise of torch: seeded with any number of workers, seen by traces, and read as outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.libraries.conftest import Program, environment

TORCH = environment("torch-2.13.0")
MECHANISMS = """
import torch

def number(rows):
    return float(len(rows) + torch.randn(1).item())

def tensor(rows):
    return torch.tensor([float(len(rows))]) + torch.randn(1)

def array(rows):
    return (torch.tensor([float(len(rows))]) + torch.randn(1)).numpy()

def with_a_gradient(rows):
    count = torch.tensor([float(len(rows))], requires_grad=True)
    return (count + torch.randn(1)).to(torch.bfloat16)

OWN = torch.Generator()

def of_a_generator(rows):
    return len(rows) + torch.randn(1, generator=OWN).item()

def filled(rows):
    noise = torch.empty(1).normal_(0, 1)
    noise += float(len(rows))
    return noise

def of_a_distribution(rows):
    return len(rows) + torch.distributions.Laplace(0.0, 0.25).sample().item()

def a_coin(rows):
    return (len(rows) > 1) ^ bool(torch.rand(()) < 0.2)

def a_seed(rows):
    torch.manual_seed(3)
    return len(rows) + torch.randn(1).item()

def enough(rows):
    x = torch.tensor([float(one) for one in rows]).clamp(0, 1)
    return (x.sum() + torch.distributions.Laplace(0.0, 1.0).sample()).clamp(min=0)
"""
LAZY = """
def count(rows):
    import torch
    return len(rows) + torch.randn(1).item()
"""
PAIR = ("--d1", "[1, 1]", "--d2", "[1]")
NORMAL = ["number", "tensor", "array", "with_a_gradient", "of_a_generator", "filled"]


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> Path:
    (tmp_path / "m.py").write_text(MECHANISMS)
    (tmp_path / "lazy.py").write_text(LAZY)
    return tmp_path


def audited(program: Program, target: str, *more: str) -> dict[str, Any]:
    words = (target, *PAIR, "--mu", "0.5", "--samples", "2000", "--quiet", "--json", "-")
    (audit,) = json.loads(program(TORCH / "dpaudit", "run", *words, *more).stdout)["audits"]
    assert audit["verdict"] == "VIOLATION"
    return dict(audit)


@pytest.mark.parametrize("target", ["m.py:number", "m.py:of_a_generator", "lazy.py:count"])
def test_equal_seeds_give_equal_draws_with_any_number_of_workers(
    program: Program, target: str
) -> None:
    one, two = (audited(program, target, "--workers", number) for number in ("1", "2"))
    (first,), (second,) = one["certificates"], two["certificates"]
    assert first["blocks"] == second["blocks"]
    assert first["reproducible"]
    assert first["warnings"] == first["notes"] == []
    (other,) = audited(program, target, "--seed", "1")["certificates"]
    assert other["blocks"] != first["blocks"]


def test_a_process_of_its_own_is_seeded_and_read_too(program: Program) -> None:
    (found,) = audited(program, "m.py:with_a_gradient", "--isolate")["certificates"]
    (again,) = audited(program, "m.py:with_a_gradient", "--isolate")["certificates"]
    assert found["blocks"] == again["blocks"]
    assert found["reproducible"]


@pytest.mark.parametrize("name", ["tensor", "array", "with_a_gradient"])
def test_a_report_names_the_line(program: Program, name: str) -> None:
    audit = audited(program, f"m.py:{name}")
    (cause,) = [one for one in audit["trace"]["findings"] if one["is_cause"]]
    assert (cause["kind"], cause["cost"]) == ("too-little-noise", 1.0)
    assert "torch.randn" in cause["line"]["code"]


def traced(program: Program, name: str, *claim: str) -> dict[str, Any]:
    said = program(TORCH / "dpaudit", "trace", f"m.py:{name}", *PAIR, *claim, "--json", "-")
    return dict(json.loads(said.stdout)["trace"])


@pytest.mark.parametrize(
    ("name", "kinds", "code"),
    [
        ("filled", ["too-little-noise"], "torch.empty(1).normal_(0, 1)"),
        ("of_a_distribution", ["too-little-noise"], "torch.distributions.Laplace(0.0, 0.25)"),
        ("of_a_generator", ["too-little-noise"], "torch.randn(1, generator=OWN)"),
        ("a_coin", ["too-little-noise"], "torch.rand(()) < 0.2"),
        ("a_seed", ["constant-seed", "too-little-noise"], "torch.manual_seed(3)"),
    ],
)
def test_what_draws_is_seen(program: Program, name: str, kinds: list[str], code: str) -> None:
    causes = [one for one in traced(program, name, "--epsilon", "1")["findings"] if one["is_cause"]]
    assert [one["kind"] for one in causes] == kinds
    assert causes[0]["line"]["code"].startswith(code)


def test_enough_noise_is_no_cause(program: Program) -> None:
    found = traced(program, "enough", "--epsilon", "1")
    assert found["findings"] == []
    (site,) = found["sites"]
    assert site["cost"] == 1.0
