"""Training with Opacus and jax-privacy: audits, named lines, arrays as outputs, and bad input."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.documents import blocks
from tests.libraries.conftest import ROOT, assert_lines_are_named, environment, run

TORCH = environment("opacus-1.6.0")
JAX = environment("jax-privacy-2.0.0")

# For each mechanism of a module: verdict, code of the error, and seeds that repeat the draws.
AUDITS = """
import json, sys, importlib
import dpaudit

module = importlib.import_module(sys.argv[1])
d1, d2 = ([([1.0, 0.0], 1.0), ([0.0, 1.0], 2.0)], [([1.0, 0.0], 1.0)])
said = {}
for name in sys.argv[2:]:
    results = []
    for _ in range(2):
        result = dpaudit.audit(getattr(module, name), d1, d2, dpaudit.GaussianDP(0.25), samples=400,
                               seed=2, no_trace=True)
        results.append((result.draws, result.epsilon_lower) if result.certificates else None)
    said[name] = [result.verdict.name, result.error_code, results[0] == results[1]]
print(json.dumps(said))
"""
OF_TORCH = """
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset
from dpaudit.training import run_mechanism, step_mechanism
from dpaudit.training.training_data import as_arrays

mse = torch.nn.functional.mse_loss
KEPT = torch.nn.Linear(2, 1)

def _setup(records, model=None, generator=None, scale=1.0):
    inputs = torch.tensor([features for features, _ in records]) * scale
    targets = torch.tensor([[target] for _, target in records])
    model = torch.nn.Linear(2, 1) if model is None else model
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    loader = DataLoader(TensorDataset(inputs, targets), batch_size=2, generator=generator,
                        shuffle=generator is not None)
    engine = PrivacyEngine()
    made = engine.make_private(module=model, optimizer=optimizer, data_loader=loader,
                               noise_multiplier=1.0, max_grad_norm=1.0, poisson_sampling=False)
    return (*made, engine)

def _seeded(records):
    torch.manual_seed(0)
    return _setup(records)

def _shuffled(records):
    return _setup(records, generator=torch.Generator().manual_seed(7))

def _kept(records):
    inputs = torch.tensor([features for features, _ in records])
    targets = torch.tensor([[target] for _, target in records])
    return KEPT, torch.optim.SGD(KEPT.parameters(), lr=0.01), [(inputs, targets)]

BIAS = torch.zeros(1)

def _shared(records):
    model = torch.nn.Linear(2, 1)
    model.bias = torch.nn.Parameter(BIAS)
    return _setup(records, model=model)

def _on_gpu(records):
    return _setup(records, model=torch.nn.Linear(2, 1).to("cuda"))

def _on_mps(records):
    return _setup(records, model=torch.nn.Linear(2, 1).to("mps"))

def _seeded_loss(outputs, targets):
    torch.manual_seed(3)
    return mse(outputs, targets)

leaks = run_mechanism(_setup, mse)
seeded = run_mechanism(_seeded, mse)
shuffled = run_mechanism(_shuffled, mse)
kept = run_mechanism(_kept, mse)
shared = run_mechanism(_shared, mse)
hooked = run_mechanism(lambda records: _setup(records, model=KEPT), mse)
on_gpu = run_mechanism(_on_gpu, mse)
on_mps = run_mechanism(_on_mps, mse)
seeded_step = run_mechanism(_setup, _seeded_loss)
no_loader = run_mechanism(lambda records: _setup(records)[:2], mse)
loss_of_many = run_mechanism(_setup, torch.nn.MSELoss(reduction="none"))
numbers = step_mechanism(lambda: torch.nn.Linear(2, 1), mse, noise_multiplier=1.0,
                         max_grad_norm=1.0, arrays=lambda records: as_arrays([1, 2]))
nan = run_mechanism(lambda records: _setup(records, scale=float("nan")), mse)
batch_norm = step_mechanism(
    lambda: torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.BatchNorm1d(1)), mse,
    noise_multiplier=1.0, max_grad_norm=1.0)

def own_on_gpu(records):
    return len(records) + torch.randn(3, device="cuda")

poisson = step_mechanism(lambda: torch.nn.Linear(2, 1, bias=False), mse, noise_multiplier=10.0,
                         max_grad_norm=1.0, poisson_sampling=True, batch_size=1, steps=2,
                         expected_batch_size=1)
"""
OF_JAX = """
import jax
import jax.numpy as jnp
import jax_privacy
from jax_privacy import noise_addition
from dpaudit.training import jax_mechanism

def loss(weights, inputs, targets):
    return jnp.mean((inputs @ weights - targets[:, 0]) ** 2)

def privatizer(key):
    return noise_addition.gaussian_privatizer(stddev=0.5, prng_key=key)

gradient = jax_privacy.clipped_grad(loss, l2_clip_norm=1.0, batch_argnums=(1, 2))
leaks = jax_mechanism(gradient, privatizer, jnp.zeros(2))
nan = jax_mechanism(lambda *given: gradient(*given) * jnp.nan, privatizer, jnp.zeros(2))

def _gradient_on_gpu(weights, *given):
    return gradient(jax.device_put(weights, jax.devices("gpu")[0]), *given)

on_gpu = jax_mechanism(_gradient_on_gpu, privatizer, jnp.zeros(2))

def short(records, rng):
    key = jax.random.wrap_key_data(rng.integers(2**32, size=2, dtype="uint32"))
    return (len(records) + jax.random.normal(key, (3,))).astype(jnp.bfloat16)

def scalar(records, rng):
    key = jax.random.wrap_key_data(rng.integers(2**32, size=2, dtype="uint32"))
    return {"count": len(records) + jax.random.normal(key)}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("training")
    for name, text in (("audits", AUDITS), ("of_torch", OF_TORCH), ("of_jax", OF_JAX)):
        (found / f"{name}.py").write_text(text)
    return found


def audited(programs: Path, folder: Path, module: str, *names: str) -> Any:
    said = run(folder, programs / "python", "-W", "ignore", "audits.py", module, *names)
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout.splitlines()[-1])


VIOLATION = ["VIOLATION", None, True]


def test_training_with_torch_is_audited_and_its_mistakes_end_the_audit(folder: Path) -> None:
    codes = {
        "seeded": "training-seed-constant",
        "shuffled": "training-seed-constant",
        "seeded_step": "training-seed-constant",
        "kept": "training-state-kept",
        "hooked": "training-state-kept",
        "shared": "training-state-kept",
        "on_gpu": "training-needs-device",
        "on_mps": "training-needs-device",
        "own_on_gpu": "training-needs-device",
        "batch_norm": "training-model-unsupported",
        "no_loader": "training-setup-invalid",
        "loss_of_many": "training-setup-invalid",
        "numbers": "training-records-invalid",
        "nan": "training-loss-nan",
    }
    said = audited(TORCH, folder, "of_torch", "leaks", "poisson", *codes)
    assert said["leaks"] == VIOLATION
    assert said["poisson"] == ["NO_VIOLATION_FOUND", None, True]
    assert {name: said[name][:2] for name in codes} == {
        name: ["ERROR", code] for name, code in codes.items()
    }


def test_training_with_jax_is_audited_and_its_mistakes_end_the_audit(folder: Path) -> None:
    said = audited(JAX, folder, "of_jax", "leaks", "nan", "on_gpu", "short", "scalar")
    assert [said[name] for name in ("leaks", "short", "scalar")] == 3 * [VIOLATION]
    assert said["nan"][:2] == ["ERROR", "training-loss-nan"]
    assert said["on_gpu"][:2] == ["ERROR", "training-needs-device"]


def test_a_privatizer_must_use_its_key_and_be_a_transformation(folder: Path) -> None:
    program = (
        "from of_jax import *\n"
        "fixed = privatizer(jax.random.key(0))\n"
        "for make in (lambda key: fixed, lambda key: fixed.update, fixed):\n"
        "    try:\n"
        "        jax_mechanism(gradient, make, jnp.zeros(2))\n"
        "    except Exception as error:\n"
        "        print(error.code)"
    )
    codes = run(folder, JAX / "python", "-c", program).stdout.split()
    assert codes == ["training-seed-constant", "option-invalid", "option-invalid"]


SHARED = """
import torch
from pathlib import Path

# Each import seeds torch with the number of imports before it.
imports = Path("imports")
before = int(imports.read_text()) if imports.exists() else 0
imports.write_text(str(before + 1))
torch.manual_seed(before)
NOISE = torch.randn(2)

def shared(records):
    return NOISE[len(records)] + torch.randn(())

def own(records):
    return len(records) + torch.randn(())
"""
# On a busy machine, eight processes take long.
PATIENT = """
from dpaudit.cli.main import main
from dpaudit.sampling.executors import new_processes

new_processes.DRAWING_SECONDS = new_processes.WAITING_SECONDS = 900.0
main()
"""


@pytest.mark.parametrize(
    ("name", "code"), [("shared", "new-process-differs"), ("own", None)], ids=["shared", "own"]
)
def test_noise_of_torch_that_a_process_draws_once_is_no_violation(
    name: str, code: str | None, tmp_path: Path
) -> None:
    (tmp_path / "drawing.py").write_text(SHARED)
    words = ("--d1", "[1]", "--d2", "[]", "--mu", "0.001", "--samples", "4_000", "--workers", "1")
    settings = ("--stop", "confirmed", "--no-trace", "--json", "-")
    program = (TORCH / "python", "-c", PATIENT, "run", f"drawing.py:{name}")
    said = run(tmp_path, *program, *words, *settings)
    (audit,) = json.loads(said.stdout)["audits"]
    assert (audit["verdict"], audit["ending"].get("code")) == (
        "ERROR" if code else "VIOLATION",
        code,
    )
    # this process, and eight new ones
    assert (tmp_path / "imports").read_text() == "9"


@pytest.mark.parametrize(("programs", "name"), [(TORCH, "opacus"), (JAX, "jax")])
def test_the_audits_of_the_library_end_as_expected(programs: Path, name: str) -> None:
    words = ("run", f"configs/real/{name}.yaml", "--quiet", "--no-trace")
    said = run(ROOT, programs / "dpaudit", *words)
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize(
    ("programs", "file", "words"),
    [
        (TORCH, "own_step.py", "a change of 0.9806"),
        (TORCH, "torch_step.py", "noise of scale 5, which is 1.667 for one input and 2.5 for the"),
        (JAX, "jax_step.py", "a change of 2.954"),
    ],
)
def test_the_guide_leads_from_a_step_to_a_violation_with_its_line(
    programs: Path, file: str, words: str, tmp_path: Path
) -> None:
    page = list(blocks(ROOT / "docs/guides/training.md"))
    (text,) = [one.text for one in page if one.file == file]
    (tmp_path / file).write_text(text)
    (command,) = [one.text for one in page if one.kind == "sh" and file in one.text]
    arguments = shlex.split(command.replace("\\\n", " "))[1:]
    said = run(tmp_path, programs / "dpaudit", *arguments, "--json", "-")
    assert said.returncode == 1, said.stderr
    (audit,) = json.loads(said.stdout)["audits"]
    assert audit["verdict"] == "VIOLATION"
    (cause,) = [one for one in audit["trace"]["findings"] if one["is_cause"]]
    assert cause["line"]["file"].endswith(("own_step.py", "optimizer.py", "noise_addition.py"))
    assert words in cause["words"]
    assert words in " ".join((ROOT / "docs/guides/training.md").read_text().split())


REUSED = """
import torch

def all_steps(records, fresh=False):
    weights, noise, released = torch.zeros(2), 2 * torch.randn(2), []
    for _ in range(3):
        noise = 2 * torch.randn(2) if fresh else noise
        total = torch.zeros(2)
        for features, target in records:
            gradient = torch.tensor(features) * (torch.tensor(features) @ weights - target)
            total += gradient / max(1.0, float(gradient.norm()))
        weights = weights - (total + noise) / 4
        released.append(weights)
    return released

def last_step(records):
    return all_steps(records)[-1]

def fresh_noise(records):
    return all_steps(records, fresh=True)
"""


@pytest.mark.parametrize(
    ("name", "exit_code"), [("all_steps", 1), ("last_step", 0), ("fresh_noise", 0)]
)
def test_the_weights_of_all_steps_reveal_noise_that_steps_share(
    name: str, exit_code: int, tmp_path: Path
) -> None:
    (tmp_path / "reused.py").write_text(REUSED)
    pair = ("--d1", "[[[1.0, 0.0], 0.5]]", "--d2", "[]", "--mu", str(math.sqrt(3) / 2))
    settings = ("--samples", "2_000", "--stop", "bets", "--no-trace", "--quiet")
    said = run(tmp_path, TORCH / "dpaudit", "run", f"reused.py:{name}", *pair, *settings)
    assert said.returncode == exit_code, said.stderr


def test_the_repaired_step_of_the_guide_is_not_refuted(tmp_path: Path) -> None:
    page = list(blocks(ROOT / "docs/guides/training.md"))
    (text,) = [one.text for one in page if one.file == "own_step.py"]
    repaired = text.replace("noise = SIGMA * CLIP / BATCH", "noise = SIGMA * CLIP")
    assert repaired != text
    (tmp_path / "own_step.py").write_text(repaired)
    (command,) = [one.text for one in page if one.kind == "sh" and "own_step.py" in one.text]
    words = shlex.split(command.replace("\\\n", " "))[1:]
    said = run(tmp_path, TORCH / "dpaudit", *words, "--samples", "1_000", "--quiet")
    assert said.returncode == 0, said.stdout + said.stderr


def traced(programs: Path, target: str, *words: str) -> tuple[list[Any], Any]:
    """Return the causes, and the only line that draws noise."""
    # On a busy machine, the runs may take longer than the minute that is usual.
    words = (*words, "--time", "4m", "--json", "-")
    said = run(ROOT, programs / "dpaudit", "trace", target, *words)
    trace = json.loads(said.stdout)
    (site,) = trace["sites"]
    return [one for one in trace["findings"] if one["is_cause"]], site


STEPS = """
import torch
from dpaudit.training import step_mechanism

def _zero():
    model = torch.nn.Linear(1, 1)
    for weights in model.parameters():
        torch.nn.init.zeros_(weights)
    return model

def _step(make_model=_zero, **options):
    loss = torch.nn.functional.mse_loss
    return step_mechanism(make_model, loss, noise_multiplier=5.0, max_grad_norm=1.0, **options)

def _deep():
    return torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1))

two_parameters = _step()
slow = _step(learning_rate=0.37)
random_start = _step(lambda: torch.nn.Linear(1, 1))
deep = _step(_deep)
three_steps = _step(steps=3, learning_rate=0.1)

pinned = _step(expected_batch_size=3)
pinned_random_start = _step(lambda: torch.nn.Linear(1, 1), expected_batch_size=3)
pinned_three_steps = _step(steps=3, expected_batch_size=3)
"""
# Their gradients are zero, opposite, and neither.
OPACUS_PAIRS = [
    ("[[[0.0], 0.0], [[0.0], 0.0], [[0.0], 0.0]]", "[[[0.0], 0.0], [[0.0], 0.0]]"),
    ("[[[1.0], 1.0], [[1.0], -1.0], [[0.0], 0.0]]", "[[[1.0], 1.0], [[1.0], -1.0]]"),
    ("[[[1.0], 1.0], [[2.0], 0.5], [[3.0], 2.0]]", "[[[1.0], 1.0], [[2.0], 0.5]]"),
]


@pytest.mark.parametrize(
    ("name", "factor", "pair"),
    [
        ("two_parameters", 1.0, 0),
        ("slow", 0.37, 1),
        ("random_start", 1.0, 0),
        ("deep", 1.0, 2),
        ("three_steps", 0.1 * math.sqrt(3), 2),
    ],
)
def test_the_line_of_opacus_that_draws_is_named_for_any_gradients(
    name: str, factor: float, pair: int, tmp_path: Path
) -> None:
    d1, d2 = OPACUS_PAIRS[pair]
    causes, findings = traced_steps(tmp_path, name, "--d1", d1, "--d2", d2, "--mu", "0.201")
    (cause,) = causes
    assert (cause["kind"], cause["line"]["code"]) == (
        "data-dependent-scale",
        "return torch.normal(",
    )
    assert cause["line"]["file"].endswith("opacus/optimizers/optimizer.py")
    first, second = (f"{factor * 5 / count:.4g}" for count in (3, 2))
    assert f"noise of scale 5, which is {first} for one input and {second} for" in cause["words"]
    assert findings == causes


@pytest.mark.parametrize(
    ("name", "pair"), [("pinned", 1), ("pinned_random_start", 0), ("pinned_three_steps", 2)]
)
def test_a_correct_step_of_opacus_has_no_finding(name: str, pair: int, tmp_path: Path) -> None:
    d1, d2 = OPACUS_PAIRS[pair]
    mu = 0.201 * math.sqrt(3) if "three" in name else 0.201
    assert traced_steps(tmp_path, name, "--d1", d1, "--d2", d2, "--mu", str(mu)) == ([], [])


def traced_steps(folder: Path, name: str, *words: str) -> tuple[list[Any], list[Any]]:
    """Return the causes and the findings of a trace of a mechanism of `STEPS`."""
    (folder / "steps.py").write_text(STEPS)
    words = (f"steps.py:{name}", *words, "--time", "4m", "--json", "-")
    trace = json.loads(run(folder, TORCH / "dpaudit", "trace", *words).stdout)
    return [each for each in trace["findings"] if each["is_cause"]], trace["findings"]


@pytest.mark.parametrize(("name", "cost"), [("one_step", None), ("batch_clipped", 1.477)])
def test_the_operand_of_the_noise_of_jax_is_seen(name: str, cost: float | None) -> None:
    target = f"mechanisms.training.jax_steps:{name}"
    pair = ("--d1", "[[[1, 0, 0, 0], 1.0], [[0, 1, 0, 0], -1.0], [[0, 0, 0, 1], 8.0]]")
    words = (*pair, "--d2", "[[[1, 0, 0, 0], 1.0], [[0, 1, 0, 0], -1.0]]", "--mu", "0.5")
    causes, site = traced(JAX, target, *words)
    assert [one["cost"] for one in causes] == (
        [] if cost is None else [pytest.approx(cost, rel=1e-3)]
    )
    assert (site["law"], site["scales"]) == ("normal", [2.0, 2.0])


def test_lines_with_noise_of_jax_are_named() -> None:
    causes = assert_lines_are_named(JAX, "jax")
    assert causes["constant-key"] == [["constant-seed", math.inf]]
    costs = {"compiled-half": 2.0, "coin-too-honest": math.log(9), "die-too-honest": math.log(9)}
    for name, cost in costs.items():
        assert causes[name] == [["too-little-noise", pytest.approx(cost, rel=1e-9)]]


KEYS = """
import jax
import jax.numpy as jnp
import numpy as np

KEY = jax.random.key(7)


@jax.jit
def noised(total, key):
    return total + 30 * jax.random.laplace(key)


def fresh(rng):
    return jax.random.wrap_key_data(rng.integers(2**32, size=2, dtype="uint32"))


def constant_weights(records, rng):
    weights = jax.random.normal(KEY)
    return weights - noised(float(sum(records)), fresh(rng))


def constant_offset(records, rng):
    return sum(records) + jax.random.normal(KEY) + 30 * jax.random.laplace(fresh(rng))


def drawn(key):
    return 30 * jax.random.laplace(key)


def one_line_with_two_keys(records, rng):
    return [sum(records) + drawn(fresh(rng)), drawn(KEY)]


def inverse_cdf(records, rng):
    u = rng.random() - 0.5
    return sum(records) + jax.random.normal(KEY) - 30 * np.sign(u) * np.log(1 - 2 * abs(u))
"""


@pytest.mark.parametrize(
    "name", ["constant_weights", "constant_offset", "one_line_with_two_keys", "inverse_cdf"]
)
def test_a_constant_key_of_jax_is_no_cause_if_other_noise_has_another_key(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "keys.py").write_text(KEYS)
    words = ("trace", f"keys.py:{name}", "--d1", "[1, 1]", "--d2", "[1]", "--epsilon", "1")
    said = run(tmp_path, JAX / "dpaudit", *words, "--json", "-")
    kinds = [one["kind"] for one in json.loads(said.stdout)["findings"] if one["is_cause"]]
    assert "constant-seed" not in kinds
