"""Noise of torch: seeded with any number of workers, seen by traces, and read as outputs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.libraries.conftest import assert_lines_are_named, environment, run

TORCH = environment("torch-2.13.0")
MECHANISMS = """
import torch

def number(rows):
    return float(len(rows) + torch.randn(1).item())

def with_a_gradient(rows):
    count = torch.tensor([float(len(rows))], requires_grad=True)
    return (count + torch.randn(1)).to(torch.bfloat16)

def sparse(rows):
    return {"weights": torch.randn(3).to_sparse()}

def sparse_batch(rows, size):
    return torch.randn(size, 3).to_sparse()

def quantized(rows):
    return torch.quantize_per_tensor(torch.randn(3), 0.1, 0, torch.qint8)

OWN = torch.Generator()

def of_a_generator(rows):
    return len(rows) + torch.randn(1, generator=OWN).item()
"""
LAZY = """
def count(rows):
    import torch
    return len(rows) + torch.randn(1).item()

def named(rows):
    import torch
    return torch.tensor(int(len(rows)), dtype=torch.float) + float(torch.randn(()))
"""
PAIR = ("--d1", "[1, 1]", "--d2", "[1]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("torch")
    (found / "m.py").write_text(MECHANISMS)
    (found / "lazy.py").write_text(LAZY)
    return found


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
    assert (
        one["ending"]["certificates"][0]["evidence"]["blocks"]
        == two["ending"]["certificates"][0]["evidence"]["blocks"]
    )
    (certificate,) = one["ending"]["certificates"]
    assert certificate["reproducible"]
    # The speed of the machine decides how many of eight new processes import torch in time. A
    # warning may say so; any other warning would be about the draws.
    assert len(certificate["warnings"]) <= (certificate["redrawn"]["processes"] < 8)
    assert certificate["notes"] == []


def test_an_import_in_the_first_call_is_no_state(folder: Path) -> None:
    audit = audited(folder, "lazy.py:named", "--workers", "1", "--no-trace")
    (certificate,) = audit["ending"]["certificates"]
    assert "keeps state" not in "".join(certificate["warnings"])


@pytest.mark.parametrize("more", [(), ("--isolate",)], ids=["here", "isolated"])
@pytest.mark.parametrize("name", ["sparse", "sparse_batch", "quantized"])
def test_a_tensor_that_numpy_cannot_read_is_an_error_about_the_output(
    folder: Path, name: str, more: tuple[str, ...]
) -> None:
    words = ("run", f"m.py:{name}", *PAIR, "--mu", "0.5", "--samples", "200", "--json", "-")
    said = run(folder, TORCH / "dpaudit", *words, *more)
    (audit,) = json.loads(said.stdout)["audits"]
    assert (said.returncode, audit["ending"]["code"]) == (3, "output-unsupported")


def test_another_seed_gives_other_draws(folder: Path) -> None:
    one, two = (audited(folder, "m.py:number", "--seed", seed) for seed in ("0", "1"))
    assert (
        one["ending"]["certificates"][0]["evidence"]["blocks"]
        != two["ending"]["certificates"][0]["evidence"]["blocks"]
    )
    (cause,) = [each for each in one["trace"]["findings"] if each["is_cause"]]
    assert (cause["kind"], cause["cost"]) == ("too-little-noise", 1.0)
    assert cause["line"]["code"] == "torch.randn(1)"


def test_a_process_of_its_own_is_seeded_and_read_too(folder: Path) -> None:
    one, two = (audited(folder, "m.py:with_a_gradient", "--isolate") for _ in range(2))
    assert (
        one["ending"]["certificates"][0]["evidence"]["blocks"]
        == two["ending"]["certificates"][0]["evidence"]["blocks"]
    )
    assert one["ending"]["certificates"][0]["reproducible"]


def test_lines_with_noise_of_torch_are_named() -> None:
    causes = assert_lines_are_named(TORCH, "torch")
    assert causes["seeded"] == [["constant-seed", math.inf]]
    costs = {"number-half": 1 / 1.87, "laplace-half": 2.0, "coin-too-honest": math.log(9)}
    for name, cost in costs.items():
        assert causes[name] == [["too-little-noise", pytest.approx(cost, rel=1e-9)]]
