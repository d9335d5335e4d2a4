"""Noise of torch: seeded with any number of workers, seen by traces, and read as outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.libraries.conftest import environment, run, traces

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("torch")
    (found / "m.py").write_text(MECHANISMS)
    (found / "lazy.py").write_text(LAZY)
    return found


@pytest.fixture(scope="module")
def traced(folder: Path) -> dict[str, Any]:
    names = ["filled", "of_a_distribution", "of_a_generator", "a_coin", "a_seed", "enough"]
    return traces(TORCH, folder, "m.py", *((one, 0.0) for one in [*NORMAL, *names]))


def audited(folder: Path, target: str, *more: str) -> dict[str, Any]:
    words = ("run", target, *PAIR, "--mu", "0.5", "--samples", "1000", "--quiet", "--json", "-")
    (audit,) = json.loads(run(folder, TORCH / "dpaudit", *words, *more).stdout)["audits"]
    assert audit["verdict"] == "VIOLATION"
    return dict(audit)


@pytest.mark.parametrize(
    ("target", "more"),
    [
        ("m.py:of_a_generator", ("--workers", "2")),
        ("lazy.py:count", ("--workers", "2")),
    ],
)
def test_equal_seeds_give_equal_draws_with_any_number_of_workers(
    folder: Path, target: str, more: tuple[str, ...]
) -> None:
    one, two = audited(folder, target), audited(folder, target, *more)
    assert one["blocks"] == two["blocks"]
    (certificate,) = one["certificates"]
    assert certificate["reproducible"]
    # The speed of the machine decides how many of eight new processes import torch in time. A
    # warning may say so; any other warning would be about the draws.
    assert len(certificate["warnings"]) <= (certificate["redrawn"]["processes"] < 8)
    assert certificate["notes"] == []


def test_another_seed_gives_other_draws(folder: Path) -> None:
    one, two = (audited(folder, "m.py:number", "--seed", seed) for seed in ("0", "1"))
    assert one["blocks"] != two["blocks"]
    (cause,) = [each for each in one["trace"]["findings"] if each["is_cause"]]
    assert (cause["kind"], cause["cost"]) == ("too-little-noise", 1.0)
    assert cause["line"]["code"] == "torch.randn(1)"


def test_a_process_of_its_own_is_seeded_and_read_too(folder: Path) -> None:
    one, two = (audited(folder, "m.py:with_a_gradient", "--isolate") for _ in range(2))
    assert one["blocks"] == two["blocks"]
    assert one["certificates"][0]["reproducible"]


@pytest.mark.parametrize("name", NORMAL)
def test_normal_noise_is_seen_whatever_becomes_of_it(traced: dict[str, Any], name: str) -> None:
    (cause,) = [one for one in traced[f"{name} 0"]["findings"] if one["is_cause"]]
    assert (cause["kind"], cause["cost"]) == ("too-little-noise", 1.0)


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
def test_what_draws_is_named(
    traced: dict[str, Any], name: str, kinds: list[str], code: str
) -> None:
    causes = [one for one in traced[f"{name} 0"]["findings"] if one["is_cause"]]
    assert [one["kind"] for one in causes] == kinds
    assert causes[0]["line"]["code"].startswith(code)


def test_enough_noise_is_no_cause(traced: dict[str, Any]) -> None:
    found = traced["enough 0"]
    assert found["findings"] == []
    (site,) = found["sites"]
    assert site["cost"] == 1.0
