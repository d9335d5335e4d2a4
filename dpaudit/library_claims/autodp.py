"""The claim of an autodp mechanism: ε as a function of δ, also at δ = 0."""

from __future__ import annotations

from .answers import Question, curve

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from typing import Any

NAME, PACKAGE = "autodp", "autodp"


def ask(mechanism: Any, question: Question) -> dict[str, Any]:
    """Return the claim that a mechanism of autodp states: the curve `get_approxDP(δ)`."""
    asked = f"{type(mechanism).__name__}.get_approxDP(δ)"
    return curve(question, asked, mechanism.get_approxDP, pure=True)
