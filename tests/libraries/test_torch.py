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


@pytest.mark.parametrize(
    ("name", "more"), [("sparse", ()), ("sparse_batch", ("--isolate",)), ("quantized", ())]
)
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
    for name in (
        "step-divided-by-the-count",
        "step-from-random-weights-divided-by-the-count",
    ):
        assert causes[name] == [["data-dependent-scale", math.inf]]


FILLED = """
import torch

def _stepped(rows, weights, noise=2.0, size=2):
    weights.grad = torch.tensor([float(len(rows))]) + torch.normal(0.0, noise, (1,))
    weights.grad /= size
    torch.optim.SGD([weights], lr=0.5).step()
    return weights.detach()

def _weights():
    return torch.nn.Parameter(torch.empty(1))

def overwritten(rows):
    weights = _weights()
    torch.nn.init.normal_(weights)
    torch.nn.init.zeros_(weights)
    return _stepped(rows, weights)

def kept(rows):
    return _stepped(rows, torch.nn.init.uniform_(_weights()))

def kept_as_data(rows):
    weights = _weights()
    weights.data.normal_(0.0, 3.0)
    return _stepped(rows, weights)

def overwritten_half(rows):
    weights = torch.nn.init.uniform_(_weights())
    return _stepped(rows, torch.nn.init.zeros_(weights), noise=1.0)

def kept_half(rows):
    return _stepped(rows, torch.nn.init.uniform_(_weights()), noise=1.0)

def shuffled(rows):
    loader = torch.utils.data.DataLoader(rows, batch_size=len(rows))
    return _stepped(next(iter(loader)), torch.nn.init.zeros_(_weights()))

def record_lost(rows):
    weights = torch.nn.init.zeros_(_weights())
    noisy = torch.tensor([float(len(rows))]) + torch.normal(0.0, 2.0, (1,))
    noisy /= torch.tensor([float("inf")])
    return weights.detach() + noisy
"""


@pytest.mark.parametrize(
    ("name", "findings", "is_in_output"),
    [
        ("overwritten", [], False),
        ("kept", [], True),
        ("kept_as_data", [], True),
        ("shuffled", [], False),
        ("record_lost", [], False),
        ("overwritten_half", [("too-little-noise", True)], False),
        # Unknown first weights hide a part of the change, too, so that the cause is not certain.
        ("kept_half", [("too-little-noise", False), ("sum", False)], True),
    ],
)
def test_first_weights_are_noise_only_if_they_reach_the_output(
    name: str, findings: list[tuple[str, bool]], is_in_output: bool, tmp_path: Path
) -> None:
    (tmp_path / "filled.py").write_text(FILLED)
    words = ("trace", f"filled.py:{name}", *PAIR, "--mu", "0.5", "--json", "-")
    trace = json.loads(run(tmp_path, TORCH / "dpaudit", *words).stdout)
    assert [(each["kind"], each["is_cause"]) for each in trace["findings"]] == findings
    assert trace["not_understood"] == []
    assert any("reaches the output" in note for note in trace["notes"]) == is_in_output
