"""Ask a diffprivlib mechanism, estimator, accountant or tool for its claim: its ε and δ."""

from __future__ import annotations

from .answers import NoClaim, Question, point, within

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from typing import Any

NAME, PACKAGE = "diffprivlib", "diffprivlib"


def ask(thing: Any, question: Question) -> dict[str, Any]:
    """Return the ε and δ that an object of diffprivlib, or a function of its tools, states."""
    if hasattr(thing, "__code__"):  # a tool: ε is a keyword of its calls
        epsilon = question.params.get("epsilon", _default(thing))
        return point(question, f"{thing.__name__}(epsilon)", epsilon)
    name = type(thing).__name__
    if hasattr(thing, "total"):
        return point(question, f"{name}.total()", *thing.total())
    if hasattr(thing, "sensitivity"):
        within(question, thing.sensitivity, name)
    if not hasattr(thing, "epsilon"):
        raise NoClaim(f"diffprivlib's {name} has no epsilon", code="claim-failed")
    delta = getattr(thing, "delta", 0.0)
    return point(question, f"{name}.epsilon" + (", .delta" if delta else ""), thing.epsilon, delta)


def _default(tool: Any) -> float:
    import inspect  # not needed for objects

    return float(inspect.signature(tool).parameters["epsilon"].default)
