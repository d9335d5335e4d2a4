"""Seed the generators of torch and read its tensors, if the mechanism has loaded torch.

This module never imports torch, nor dpaudit: drawing processes run this file under Python 3.8 and
later.
"""

from __future__ import annotations

import random
import sys

TYPE_CHECKING = False  # spares the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# The Mersenne Twister in the state of a CPU generator: offset in bytes, and number of words. The
# first word is the seed; for this seed, the second word is known, which checks the layout.
_FIRST, _WORDS = 24, 624
_SEED, _SECOND = 5489, 1301868182


def is_loaded() -> bool:
    """Return whether torch is loaded, so that a mechanism may draw from it."""
    return hasattr(sys.modules.get("torch"), "set_rng_state")  # None while it is being imported


def generator_types() -> tuple[type[Any], ...]:
    """Return the class of torch's generators, in a tuple; () if torch is not loaded."""
    return (sys.modules["torch"].Generator,) if is_loaded() else ()


def is_tensor(kind: type[Any]) -> bool:
    return is_loaded() and issubclass(kind, sys.modules["torch"].Tensor)


def readable(tensor: Any) -> Any:
    """Return a tensor with the same numbers that NumPy can read."""
    tensor = tensor.detach().cpu()
    return tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor


def seed_globally(number: int) -> None:
    """Seed the global generators of torch, of the CPU and of all devices, if torch is loaded."""
    if is_loaded():
        torch: Any = sys.modules["torch"]
        torch.manual_seed(number % 2**63)
        seed(torch.default_generator, number)


def seed(generator: Any, number: int) -> None:
    """Seed a generator of torch with 256 bits of a number, if it is on the CPU.

    `manual_seed` uses only 32 bits there: among 10,000 seeds, two are equal with probability 1 %.
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
    """Return a function that restores the present states of the global generators, if torch is
    loaded."""
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
