"""Ask an event or an accountant of dp-accounting for its claim: its curve ε(δ)."""

from __future__ import annotations

from .answers import NoClaim, Question, curve

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from typing import Any

NAME, PACKAGE = "dp-accounting", "dp-accounting"


def ask(thing: Any, question: Question) -> dict[str, Any]:
    """Return the curve ε(δ) of an accountant. For an event, return that of `of_event`."""
    return of_event(thing, question) if not hasattr(thing, "get_epsilon") else _of(thing, question)


def of_event(event: Any, question: Question, relation: str | None = None) -> dict[str, Any]:
    """Return the curve ε(δ) of the PLD accountant for `event`. If this accountant cannot compose
    the event, return that of the RDP accountant. `relation` is a name of dp-accounting, such as
    "REPLACE_SPECIAL"; None stands for the default of dp-accounting."""
    import dp_accounting
    from dp_accounting import pld, rdp

    how = {}
    if relation is not None:
        how["neighboring_relation"] = dp_accounting.NeighboringRelation[relation]
    for kind in (pld.PLDAccountant, rdp.RdpAccountant):
        accountant = kind(**how)
        if accountant.supports(event):
            return _of(accountant.compose(event), question)
    why = f"neither the PLD nor the RDP accountant supports {type(event).__name__}"
    raise NoClaim(f"{why}; compose it in another accountant", code="claim-failed")


def _of(accountant: Any, question: Question) -> dict[str, Any]:
    if type(accountant.ledger).__name__ == "NoOpDpEvent":
        raise NoClaim(
            "the accountant has composed no event; make it compose what the mechanism does first",
            code="claim-failed",
        )
    name = type(accountant).__name__.replace("Rdp", "RDP").replace("Accountant", " accountant")
    relation = str(accountant.neighboring_relation.name).lower().replace("_", "-")
    return curve(question, f"{name} ({relation})", accountant.get_epsilon)
