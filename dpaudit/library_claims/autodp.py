"""Ask an autodp mechanism for its claim: ε as a function of δ, including δ = 0."""

from __future__ import annotations

from .answers import Question, curve

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from typing import Any

NAME, PACKAGE = "autodp", "autodp"


def ask(mechanism: Any, question: Question) -> dict[str, Any]:
    """Return the claim of an autodp mechanism: the curve ε(δ) of its method `get_approxDP`."""
    call = f"{type(mechanism).__name__}.get_approxDP(δ)"
    return curve(question, call, mechanism.get_approxDP, pure=True)
