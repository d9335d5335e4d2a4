"""Ask an Opacus `PrivacyEngine` or accountant for its claim: the ε of the training steps so far."""

from __future__ import annotations

import warnings

from .answers import NoClaim, Question, curve

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from typing import Any

NAME, PACKAGE = "Opacus", "opacus"


def ask(thing: Any, question: Question) -> dict[str, Any]:
    """Return the curve ε(δ) that an Opacus accountant states by `get_epsilon`. `thing` is the
    accountant or has it as the attribute `accountant`, as a `PrivacyEngine` does."""
    accountant = getattr(thing, "accountant", thing)
    if not hasattr(accountant, "history"):
        why = f"Opacus' {type(thing).__name__} has no accountant; name the PrivacyEngine"
        raise NoClaim(why, code="claim-failed")
    if not accountant.history:
        raise NoClaim(
            "the accountant of Opacus has seen no step, so it claims ε = 0; take the step once "
            "before the claim is asked",
            code="claim-failed",
        )

    def epsilon_at(delta: float) -> Any:
        # Hide Opacus' warnings about the orders of Rényi divergences and about experimental
        # accountants.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return accountant.get_epsilon(delta)

    return curve(question, f"{accountant.mechanism().upper()} accountant", epsilon_at)
