"""Make a mechanism of training with torch and Opacus, from records to trained weights."""

from __future__ import annotations

import logging
import math
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dpaudit.errors import TargetError, TrainingError, UsageError, needs_device
from dpaudit.torch_use import misses_device
from dpaudit.training.training_data import as_arrays

# A function from records to the trained weights, a tensor with one dimension.
Mechanism = Callable[[Any], Any]

# Modules of Opacus whose lines a trace may report.
_OPACUS = ("opacus.optimizers",)
# Beginnings of two warnings that are switched off, since Opacus and torch give them for every new
# model, and they report no mistake: noise comes from torch's usual generator, not from a secure
# one; and the inputs of the model have no gradient.
_USUAL_WARNINGS = ("Secure RNG turned off", "Full backward hook is firing when gradients are comp")
# Words of Opacus' error message for a model that an earlier call has made private.
_HOOKED = "add hooks twice to the same model"


def step_mechanism(
    make_model: Callable[[], Any],
    loss: Callable[[Any, Any], Any],
    *,
    noise_multiplier: float,
    max_grad_norm: float,
    learning_rate: float = 1.0,
    steps: int = 1,
    batch_size: int | None = None,
    poisson_sampling: bool = False,
    expected_batch_size: int | None = None,
    arrays: Callable[[Any], tuple[Any, Any]] = as_arrays,
    accountant: str = "prv",
    options: Mapping[str, Any] | None = None,
) -> Mechanism:
    """Return a mechanism that trains a torch model with Opacus.

    Every call makes a new model, makes it private with `PrivacyEngine.make_private`, trains it by
    SGD, and returns all trained weights in one vector.

    Parameters
    ----------
    make_model : callable
        Function without arguments that returns a new `torch.nn.Module`. If its initial weights are
        random, they are part of the mechanism's randomness.
    loss : callable
        Function (outputs, targets) that returns the loss, such as `torch.nn.MSELoss()`.
    noise_multiplier, max_grad_norm : float
        σ and C of DP-SGD, as in `make_private`.
    learning_rate : float, default 1.0
        Step size of SGD.
    steps : int, default 1
        Number of steps. For a whole run, the number of epochs times the number of batches.
    batch_size : int, optional
        Number of records in a batch, or its expectation with Poisson sampling. Default: all
        records.
    poisson_sampling : bool, default False
        Whether each record takes part in a step with probability batch_size / number of records.
        If not, batches are taken in order.
    expected_batch_size : int, optional
        A public number by which Opacus divides the noisy sum of gradients. By default, Opacus
        computes it from the number of records, and so the weights reveal this number.
    arrays : callable, optional
        Function that turns a dataset into (inputs, targets): arrays or tensors with one row for
        each record. By default, records are pairs (features, target).
    accountant : str, default "prv"
        Name of the privacy engine's accountant.
    options : mapping of str to Any, optional
        Further arguments of `make_private`.

    Returns
    -------
    callable
        Function that takes records and returns all trained weights, a tensor with one dimension.
        Its attribute `claim_source` is a function that trains on given records and returns the
        `PrivacyEngine`, which states the claim if the audit has `--claim-from library`.

    Raises
    ------
    TargetError
        If a number is out of range, or if make_model is a model, not a function that makes one.

    Notes
    -----
    The mechanism raises TrainingError if training cannot be audited, for example because
    `make_model` sets a constant seed, or a loss is NaN. The notes of `run_mechanism` list all
    cases, and the warnings that are switched off; Opacus' warnings of empty batches are, too.

    Examples
    --------
    A step whose batch size is public::

        one_step = step_mechanism(
            make_model, torch.nn.MSELoss(), noise_multiplier=5.0, max_grad_norm=1.0,
            expected_batch_size=3,
        )
    """
    # An import in each call would look like state that the mechanism keeps between calls.
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    if isinstance(make_model, torch.nn.Module) or not callable(make_model):
        raise TargetError(
            f"make_model is of type {type(make_model).__name__}; give a function without arguments "
            "that makes a new model in each call, such as lambda: torch.nn.Linear(2, 1)",
            code="option-invalid",
        )
    if batch_size is not None and batch_size < 1:
        raise TargetError(f"batch_size is {batch_size}; give at least 1", code="option-invalid")

    # Opacus warns of every empty batch, and Poisson sampling makes many of them.
    logging.getLogger("opacus.data_loader").setLevel(logging.ERROR)

    def setup(records: Any) -> tuple[Any, ...]:
        inputs, targets = map(torch.as_tensor, arrays(records))
        loader = DataLoader(TensorDataset(inputs, targets), batch_size=batch_size or len(inputs))
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
        engine = PrivacyEngine(accountant=accountant)
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            poisson_sampling=poisson_sampling,
            **(options or {}),
        )
        if expected_batch_size is not None:
            optimizer.expected_batch_size = expected_batch_size
        return model, optimizer, loader, engine

    mechanism = run_mechanism(setup, loss, steps=steps)
    mechanism.traced_as = make_model, _OPACUS  # type: ignore[attr-defined]  # as below
    return mechanism


def run_mechanism(
    setup: Callable[[Any], Sequence[Any]], loss: Callable[[Any, Any], Any], *, steps: int = 1
) -> Mechanism:
    """Return a mechanism that makes `steps` steps of your own training with Opacus.

    Parameters
    ----------
    setup : callable
        Function that takes the records and returns (model, optimizer, data loader) or (model,
        optimizer, data loader, privacy engine). It must make all of them in every call. Each
        batch of the data loader is a pair (inputs, targets).
    loss : callable
        Function (outputs, targets) that returns the loss.
    steps : int, default 1
        Number of steps, each on one batch. If the data loader has no more batches, it starts again.

    Returns
    -------
    callable
        Function that takes records and returns all trained weights, a tensor with one dimension.
        Its attribute `claim_source` is a function that trains on given records and returns the
        privacy engine from `setup`, which states the claim for `--claim-from library`.

    Raises
    ------
    TargetError
        If steps is less than 1, if setup or loss cannot be called, or if loss is a class.

    Notes
    -----
    The mechanism raises TrainingError if training needs a GPU that this machine does not have, if
    `setup` returns other objects or the model of an earlier call, if Opacus refuses the model, if
    `setup` or a step sets a constant seed, or if a loss is not one number, or NaN. Two warnings
    that Opacus and torch give for every new model are switched off in this process: that noise
    comes from torch's usual generator, and that inputs have no gradient.

    Examples
    --------
    The mechanism of a function that returns what `make_private` returns::

        one_step = run_mechanism(setup, torch.nn.MSELoss())
    """
    if steps < 1:
        raise TargetError(f"steps is {steps}; give at least 1", code="option-invalid")
    for name, value in (("setup", setup), ("loss", loss)):
        if not callable(value):
            raise TargetError(
                f"{name} is of type {type(value).__name__}; give a function", code="option-invalid"
            )
    if isinstance(loss, type):
        words = f"loss is the class {loss.__name__}; give an instance: {loss.__name__}()"
        raise TargetError(words, code="option-invalid")
    guard = _Guard()
    for text in _USUAL_WARNINGS:
        warnings.filterwarnings("ignore", text)

    def trained(records: Any) -> tuple[Any, Any]:
        """Return (trained model, Opacus privacy engine or None if `setup` returns no engine)."""
        initial_state = guard.states()
        try:
            model, optimizer, loader, engine = _parts(setup(records))
            guard.check(initial_state, model, optimizer, loader)
            _train(model, optimizer, loader, loss, steps)
        except (AssertionError, RuntimeError, ValueError) as error:
            reuse = _of_kept_model() if _HOOKED in str(error) else None
            raise without_gpu(error) or reuse or _of_unsupported_model(error) or error from None
        guard.check_end(initial_state)
        return model, engine

    def mechanism(records: Any) -> Any:
        import torch

        weights = [weight.detach().reshape(-1) for weight in trained(records)[0].parameters()]
        released = torch.cat(weights)
        if released.isnan().any():
            check_loss(math.nan, steps)
        return released

    def claim_source(records: Any) -> Any:
        engine = trained(records)[1]
        if engine is None:
            raise UsageError(
                "setup returns no privacy engine, so there is no accountant to ask for the claim; "
                "return (model, optimizer, loader, engine), or state the claim",
                code="option-missing",
            )
        return engine

    mechanism.claim_source = claim_source  # type: ignore[attr-defined]  # functions take any
    mechanism.traced_as = setup, _OPACUS  # type: ignore[attr-defined]  # attributes
    return mechanism


def _parts(result: Any) -> tuple[Any, Any, Any, Any]:
    """Return (model, optimizer, data loader, privacy engine or None) from the result of `setup`."""
    parts = tuple(result) if isinstance(result, Sequence) else ()
    if not (
        len(parts) in (3, 4)
        and callable(parts[0])
        and hasattr(parts[1], "zero_grad")
        and hasattr(parts[2], "__iter__")
    ):
        kinds = ", ".join(type(part).__name__ for part in parts) or type(result).__name__
        raise TrainingError(
            f"setup returns {kinds}; return (model, optimizer, loader), or these and the privacy "
            "engine, in this order",
            code="training-setup-invalid",
        )
    model, optimizer, loader, *engine = parts
    return model, optimizer, loader, engine[0] if engine else None


def _train(
    model: Any, optimizer: Any, loader: Any, loss: Callable[[Any, Any], Any], steps: int
) -> None:
    batches = _batches(loader)
    for step in range(1, steps + 1):
        inputs, targets = next(batches)
        optimizer.zero_grad()
        value = loss(model(inputs), targets)
        if not hasattr(value, "numel") or value.numel() != 1:
            kind = type(value).__name__
            raise TrainingError(
                f"loss returns a {kind} that is not one number; give a function of (outputs, "
                "targets) that returns a tensor with one number, such as torch.nn.MSELoss()",
                code="training-setup-invalid",
            )
        if len(inputs):  # with Poisson sampling, a batch may be empty
            check_loss(float(value.detach()), step)
        value.backward()
        optimizer.step()


def _batches(loader: Any) -> Iterator[Any]:
    """Yield the batches of a data loader, again and again without end."""
    while True:
        yield from loader


def check_loss(value: float, step: int) -> None:
    """Raise TrainingError, with the number of the step, if a loss is NaN."""
    if math.isnan(value):
        raise TrainingError(
            f"the loss is NaN in step {step}, so that all later weights are NaN; check the records "
            "for NaN, lower the learning rate, or leave such records out before training",
            code="training-loss-nan",
        )


def without_gpu(error: BaseException) -> TrainingError | None:
    """Return the error for a missing GPU if `error`, an exception of torch or JAX, says that a GPU
    is missing. Return None for any other exception."""
    text = str(error)
    return needs_device(text) if misses_device(text) else None


def _of_kept_model() -> TrainingError:
    return TrainingError(
        "setup returns the model of an earlier call, or its weights, which training has changed; "
        "make the model with its weights, the optimizer and the data loader in each call",
        code="training-state-kept",
    )


def _of_unsupported_model(error: Exception) -> TrainingError | None:
    """Return the error for a model that Opacus refuses, or None for any other exception."""
    if type(error).__name__ != "UnsupportedModuleError":
        return None
    reasons = error.args[0] if error.args and isinstance(error.args[0], list) else []
    reason = str(reasons[0] if reasons else error).partition(". ")[0]
    return TrainingError(
        f"Opacus refuses the model: {reason}; replace its modules in the function that makes it, "
        "with opacus.validators.ModuleValidator.fix(model), before the optimizer is made",
        code="training-model-unsupported",
    )


class _Guard:
    """Compares each call of `setup` with the last one, to detect a reused model and a constant
    seed."""

    def __init__(self) -> None:
        self._model: Any = lambda: None
        self._initial_state: Any = None
        self._generator_states: dict[str, Any] = {}
        # Maps the memory address of each trained weight of the last call to the weight.
        self._weights: dict[int, Any] = {}
        # (state before the call of `setup`, state after the last step) of torch's global random
        # generator, for the last call of the mechanism.
        self._call_states: tuple[Any, Any] = None, None

    def states(self) -> Any:
        """Return the state of torch's global generator, or None before torch is imported."""
        torch: Any = sys.modules.get("torch")
        return None if torch is None else torch.get_rng_state().numpy().tobytes()

    def check(self, initial_state: Any, model: Any, optimizer: Any, loader: Any) -> None:
        """Raise TrainingError if `setup` returns an earlier model, or sets a constant seed."""
        inner = getattr(model, "_module", model)
        # Keep the tensors of this call in `self._weights`, so that no tensor of the next call has
        # the address of one of them.
        weights = {
            weight.data_ptr(): weight.detach()
            for weight in inner.parameters()
            if weight.requires_grad and weight.numel()
        }
        if self._model() is inner or self._weights.keys() & weights:
            raise _of_kept_model()
        self._weights = weights
        sampler = getattr(loader, "batch_sampler", None)
        generators: dict[str, Any] = {
            "the data loader": getattr(loader, "generator", None),
            "the sampler": getattr(getattr(sampler, "sampler", sampler), "generator", None),
            "the noise": getattr(optimizer, "generator", None),
        }
        generator_states = {"torch (torch.manual_seed)": self.states()} | {
            name: generator.get_state().numpy().tobytes()
            for name, generator in generators.items()
            if hasattr(generator, "get_state")
        }
        same = [
            name
            for name, state in generator_states.items()
            if self._generator_states.get(name) == state
        ]
        # From an equal state, dpaudit repeats the last call: equal results then prove nothing.
        if same and initial_state not in (None, self._initial_state):
            raise TrainingError(
                f"setup gives the generator of {same[0]} the same seed in each call, so that each "
                "call draws the same numbers from it; leave seeds out, since dpaudit seeds torch "
                "for each draw",
                code="training-seed-constant",
            )
        self._model, self._initial_state = weakref.ref(inner), initial_state
        self._generator_states = generator_states

    def check_end(self, initial_state: Any) -> None:
        """Raise TrainingError if a training step sets a constant seed, as a data loader may."""
        (earlier, end), self._call_states = self._call_states, (initial_state, self.states())
        if self._call_states[1] == end and initial_state not in (None, earlier):
            raise TrainingError(
                "a training step gives torch's global generator the same seed in each call, so its "
                "noise is the same in each call; leave torch.manual_seed out of data loaders, "
                "losses and models, since dpaudit seeds torch for each draw",
                code="training-seed-constant",
            )
