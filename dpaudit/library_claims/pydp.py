"""Ask a PyDP mechanism or algorithm for its claim: its own ε and δ."""

from __future__ import annotations

from .answers import Question, point, within

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from typing import Any

NAME, PACKAGE = "python-dp", "python-dp"


def ask(thing: Any, question: Question) -> dict[str, Any]:
    """Return the `epsilon` and, if it exists, the `delta` of an object of PyDP."""
    name = type(thing).__name__
    for sensitivity in ("sensitivity", "l2_sensitivity"):
        if hasattr(thing, sensitivity):
            within(question, getattr(thing, sensitivity), name)
    delta = getattr(thing, "delta", 0.0) or 0.0
    return point(question, f"{name}.epsilon" + (", .delta" if delta else ""), thing.epsilon, delta)
