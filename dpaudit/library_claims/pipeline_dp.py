"""Ask a PipelineDP engine or budget accountant for its claim: the total ε and δ."""

from __future__ import annotations

from .answers import Question, point

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from typing import Any

NAME, PACKAGE = "PipelineDP", "pipeline-dp"


def ask(thing: Any, question: Question) -> dict[str, Any]:
    """Return the total ε and δ of a budget accountant, or of the accountant of an engine."""
    accountant = getattr(thing, "_budget_accountant", thing)
    attributes = f"{type(accountant).__name__}.total_epsilon, .total_delta"
    return point(question, attributes, accountant.total_epsilon, accountant.total_delta)
