"""Ask an execution plan of jax-privacy for its claim: the curve ε(δ) of its DP event."""

from __future__ import annotations

from . import dp_accounting
from .answers import NoClaim, Question

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from typing import Any

NAME, PACKAGE = "jax-privacy", "jax-privacy"


def ask(thing: Any, question: Question) -> dict[str, Any]:
    """Return the curve ε(δ) that dp-accounting computes for a plan's `dp_event` and neighbouring
    relation.

    If `thing` is a jax-privacy configuration, its accountant states the relation. A
    `DPExecutionPlan` of jax-privacy 2.0.0 states no relation; then REPLACE_SPECIAL is used (a
    record is replaced by an empty one), the default of all configurations.
    """
    plan = getattr(thing, "plan", thing)
    event = getattr(plan, "dp_event", None)
    if event is None:
        why = f"{type(plan).__name__} has no dp_event; name the DPExecutionPlan"
        raise NoClaim(why, code="claim-failed")
    holder = getattr(thing, "accountant", plan)
    relation = getattr(holder, "neighboring_relation", None)
    name = "REPLACE_SPECIAL" if relation is None else relation.name
    answer = dp_accounting.of_event(event, question, name)
    return {**answer, "asked": f"plan.dp_event, {answer['asked']}"}
