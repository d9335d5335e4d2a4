"""The claim of an execution plan of jax-privacy: the curve of its event."""

from __future__ import annotations

from . import dp_accounting
from .answers import NoClaim, Question

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from typing import Any

NAME, PACKAGE = "jax-privacy", "jax-privacy"


def ask(thing: Any, question: Question) -> dict[str, Any]:
    """Return the curve of a plan's event by dp-accounting, for the plan's neighbouring relation.

    A configuration names the relation by its accountant. A `DPExecutionPlan` of jax-privacy 2.0.0
    does not; the default of all configurations is REPLACE_SPECIAL, a record against an empty one.
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
