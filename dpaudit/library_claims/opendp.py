"""Ask an OpenDP measurement for its claim: its own map from the distance of two inputs to the
privacy loss."""

from __future__ import annotations

import math

from .answers import NoClaim, Question, curve, edits, exchanged, norm, point, rows, single

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from typing import Any

NAME, PACKAGE = "OpenDP", "opendp"
# Maps the name of an OpenDP metric to the order of its norm.
_NORMS = {"AbsoluteDistance": 1.0, "L1Distance": 1.0, "L2Distance": 2.0, "LInfDistance": math.inf}
# Maps the name of an OpenDP metric to {neighbouring relation: distance of two neighbours in this
# metric}. Used if no pair of inputs is known yet.
_RECORDS = {
    "SymmetricDistance": {"add-remove": 1, "replace": 2},
    "InsertDeleteDistance": {"add-remove": 1, "replace": 2},
    "ChangeOneDistance": {"replace": 1},
    "HammingDistance": {"replace": 1, "hamming": 1},
    "DiscreteDistance": {"replace": 1},
}


def ask(measurement: Any, question: Question) -> dict[str, Any]:
    """Return the claim that a measurement's map, a function from distance to privacy loss, states
    for the distance of the two inputs."""
    metric = str(measurement.input_metric)
    d_in = distance(metric, question)
    asked = f"m.map(d_in={d_in:.12g})"
    loss = measurement.map(d_in)
    measure = str(measurement.output_measure)
    if measure == "MaxDivergence":
        return point(question, asked, loss)
    if measure == "ZeroConcentratedDivergence":
        return single(question, asked, rho=loss)
    if measure in ("Approximate(MaxDivergence)", "FixedSmoothedMaxDivergence"):
        return point(question, asked, *loss)
    if measure == "Approximate(ZeroConcentratedDivergence)":
        return single(question, asked, rho=loss[0], delta=loss[1])
    if measure == "SmoothedMaxDivergence":
        return curve(question, f"{asked}.epsilon(δ)", loss.epsilon)
    raise NoClaim(
        f"the measurement states its loss in {measure}, which dpaudit cannot test; convert it, "
        "e.g. with dp.c.make_zCDP_to_approxDP, or give the claim itself",
        code="claim-failed",
    )


def distance(metric: str, question: Question) -> Any:
    """Return the distance of the two inputs in the measurement's metric or, if the pair is not
    known yet, the largest distance of two neighbours. Whole numbers are returned as int, since
    OpenDP accepts no float for an integer metric."""
    name, _, kind = metric.partition("(")
    found = _of_relation(name, question) if question.pair is None else _of_pair(name, question.pair)
    if found is None:
        raise NoClaim(
            f"the distance of d1 and d2 in the measurement's input metric {metric} cannot be "
            "computed; give the claim itself",
            code="claim-not-for-pair",
        )
    is_whole = name not in _NORMS or kind[:1] in ("i", "u")
    return int(found) if is_whole and found == int(found) else float(found)


def _of_pair(name: str, pair: tuple[Any, Any]) -> float | None:
    if name in _NORMS:
        return norm(*pair, order=_NORMS[name])
    if name == "DiscreteDistance":
        return float(repr(pair[0]) != repr(pair[1]))
    one, two, gone = rows(pair[0]), rows(pair[1]), exchanged(*pair)
    if one is None or two is None or gone is None:
        return None
    if name == "SymmetricDistance":
        return sum(gone)
    if name == "InsertDeleteDistance":
        return edits(one, two)
    if len(one) != len(two):
        return None
    if name == "ChangeOneDistance":
        return gone[0]
    if name == "HammingDistance":
        return sum(repr(a) != repr(b) for a, b in zip(one, two))
    return None


def _of_relation(name: str, question: Question) -> float | None:
    if question.relation is None:
        return None
    kind, size = question.relation
    if name in _NORMS:
        order = {"l1": 1.0, "l2": 2.0, "linf": math.inf, "coordinate": 1.0}.get(kind)
        # If only one coordinate changes, and by at most `size`, the vector moves by at most `size`
        # in every norm.
        return size if kind == "coordinate" or order == _NORMS[name] else None
    found = _RECORDS.get(name, {}).get(kind)
    return None if found is None else found * size
