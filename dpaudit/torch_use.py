"""Seed the random generators of torch, and convert tensors of torch and arrays of JAX for NumPy.
This module never imports torch, JAX or dpaudit: processes that make draws load this file alone,
with Python 3.8 and later."""

from __future__ import annotations

import random
import sys

TYPE_CHECKING = False  # avoids the import of typing, which takes time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Index of the first byte of the Mersenne Twister's words in the state of torch's CPU generator.
_FIRST = 24
# Number of words of the Mersenne Twister in the state of torch's CPU generator. Each word takes 8
# bytes.
_WORDS = 624
# The first and second word of the state after `manual_seed(5489)` are _SEED and _SECOND. `seed`
# checks both, since another version of torch may arrange the state differently.
_SEED, _SECOND = 5489, 1301868182
# Parts of messages of torch and JAX about a GPU that is missing or cannot be used. A single word
# such as "cuda" would also match other errors, such as "CUDA out of memory".
_NO_DEVICE = (
    *("torch not compiled with", "compiled without cuda", "not linked with support for"),
    *("no nvidia driver", "driver on your system is too old", "driver initialization failed"),
    *("driver version is insufficient", "gpus are available", "no cuda-capable device"),
    *("invalid device ordinal", "invalid device id", "devices are busy or unavailable"),
    *("is_available() is false", "cannot initialize cuda", "mps backend is supported"),
    *("accelerator device when none", "no accelerator", "no xpu"),
    *("unknown backend", "unable to initialize backend"),
)
# Beginnings of the names of torch's types that NumPy does not have.
_SHORT = ("torch.bfloat16", "torch.float8")


def is_loaded() -> bool:
    """Return whether torch has been imported completely, so that a mechanism may use it."""
    return hasattr(sys.modules.get("torch"), "set_rng_state")  # false while torch is being imported


def generator_types() -> tuple[type[Any], ...]:
    """Return a tuple with torch's class of random generators, or () if torch is not imported."""
    return (sys.modules["torch"].Generator,) if is_loaded() else ()


def is_tensor(kind: type[Any]) -> bool:
    """Return whether a type is that of torch's tensors or of JAX's arrays."""
    if str(kind.__module__).partition(".")[0] in ("jax", "jaxlib"):
        return issubclass(kind, getattr(sys.modules.get("jax"), "Array", ()))
    return is_loaded() and issubclass(kind, sys.modules["torch"].Tensor)


def misses_device(message: str) -> bool:
    """Return whether an error message of torch or JAX says that a GPU is missing or cannot be
    used."""
    return any(words in message.lower() for words in _NO_DEVICE)


class UnreadableError(Exception):
    """Raised for a tensor that NumPy cannot read. The text gives the reason and the remedy."""


def readable(tensor: Any) -> Any:
    """Return a tensor of torch, on any device, or an array of JAX as a NumPy array. Floats that
    NumPy does not have, such as bfloat16, become float32, which is exact. Raises UnreadableError
    for a tensor that NumPy cannot read, such as a sparse or quantized one."""
    if not hasattr(tensor, "detach"):
        return widened(sys.modules["numpy"].asarray(tensor))
    try:
        tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
        return (tensor.float() if str(tensor.dtype).startswith(_SHORT) else tensor).numpy()
    except (RuntimeError, TypeError) as error:
        layout = str(tensor.layout).partition(".")[2]
        method = "tolist" if layout == "strided" else "to_dense"
        raise UnreadableError(
            f"a tensor of type {tensor.dtype} and layout {layout}, which NumPy cannot read "
            f"({str(error).splitlines()[0]}); return a dense tensor of numbers, such as "
            f"tensor.{method}()"
        ) from None


def widened(array: Any) -> Any:
    """Return a NumPy array as float32 if its type is one of the package ml_dtypes, such as
    bfloat16. Any other array is returned unchanged."""
    is_short = array.dtype.type.__module__.partition(".")[0] == "ml_dtypes"
    return array.astype("float32") if is_short else array


def seed_globally(number: int) -> None:
    """Seed torch's global random generators, of all devices, if torch is imported."""
    if is_loaded():
        torch: Any = sys.modules["torch"]
        torch.manual_seed(number % 2**63)
        seed(torch.default_generator, number)


def seed(generator: Any, number: int) -> None:
    """Seed a random generator of torch. A generator of the CPU gets 256 bits of `number`; a
    generator of another device gets 63.

    On the CPU, torch's `manual_seed` uses only 32 bits: among 10,000 generators, two would have the
    same state with probability 1 %. This function therefore writes the generator's state itself,
    unless this version of torch has a state of unknown layout.
    """
    torch: Any = sys.modules["torch"]
    if str(generator.device) == "cpu":
        generator.manual_seed(_SEED)
        state = generator.get_state()
        words = state[_FIRST : _FIRST + 8 * _WORDS]
        if len(words) == 8 * _WORDS and words.view(torch.int64)[:2].tolist() == [_SEED, _SECOND]:
            fresh = random.Random(number % 2**256).getstate()[1][:_WORDS]
            words.view(torch.int64).copy_(torch.tensor(fresh))
            generator.set_state(state)
            return
    generator.manual_seed(number % 2**63)


def global_restorer() -> Callable[[], None]:
    """Return a function that restores the present states of torch's global random generators. It
    does nothing if torch is not imported."""
    if not is_loaded():
        return lambda: None
    torch: Any = sys.modules["torch"]
    cuda = torch.cuda if torch.cuda.is_initialized() else None
    states = torch.get_rng_state(), None if cuda is None else cuda.get_rng_state_all()

    def restore() -> None:
        torch.set_rng_state(states[0])
        if cuda is not None:
            cuda.set_rng_state_all(states[1])

    return restore
