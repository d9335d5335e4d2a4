"""Ask an OpenDP measurement for its claim: its map from distances of inputs to privacy losses."""

from __future__ import annotations

import math

from .answers import (
    NoClaim,
    Question,
    curve,
    edits,
    exchanged,
    norm,
    point,
    rows,
    single,
    vector,
)

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from typing import Any

NAME, PACKAGE = "OpenDP", "opendp"
# Maps the name of an OpenDP metric to the order of its norm.
_NORMS = {"AbsoluteDistance": 1.0, "L1Distance": 1.0, "L2Distance": 2.0, "LInfDistance": math.inf}
# Maps the name of an OpenDP metric of histograms to the order p of its second norm: the distance is
# a triple of the number of changed entries, their l_p norm, and their largest change.
_HISTOGRAMS = {"L01InfDistance": 1.0, "L02InfDistance": 2.0}
# Maps the name of an OpenDP metric to {neighbouring relation: distance of two neighbours in this
# metric}. Used if no pair of inputs is known yet.
_RECORDS = {
    "SymmetricDistance": {"add-remove": 1, "replace": 2, "hamming": 2},
    "InsertDeleteDistance": {"add-remove": 1, "replace": 2, "hamming": 2},
    "ChangeOneDistance": {"replace": 1, "hamming": 1},
    "HammingDistance": {"replace": 1, "hamming": 1},
}


def ask(measurement: Any, question: Question) -> dict[str, Any]:
    """Return the claim that the measurement's map states for the distance of the two inputs."""
    metric = str(measurement.input_metric)
    d_in = distance(metric, question)
    words = [f"{part:.12g}" for part in (d_in if isinstance(d_in, tuple) else [d_in])]
    call = f"m.map(d_in={words[0] if len(words) == 1 else '({})'.format(', '.join(words))})"
    loss = measurement.map(d_in)
    measure = str(measurement.output_measure)
    if measure == "MaxDivergence":
        return point(question, call, loss)
    if measure == "ZeroConcentratedDivergence":
        return single(question, call, rho=loss)
    if measure in ("Approximate(MaxDivergence)", "FixedSmoothedMaxDivergence"):
        return point(question, call, *loss)
    if measure == "Approximate(ZeroConcentratedDivergence)":
        return single(question, call, rho=loss[0], delta=loss[1])
    if measure == "SmoothedMaxDivergence":
        return curve(question, f"{call}.epsilon(δ)", loss.epsilon)
    raise NoClaim(
        f"the measurement states its loss in {measure}, which dpaudit cannot test; give "
        "the claim itself",
        code="claim-failed",
    )


def distance(metric: str, question: Question) -> Any:
    """Return the distance of the two inputs in the measurement's metric. If the pair is not known
    yet, return the largest distance of two neighbours. The type is the one that OpenDP accepts:
    int, rounded up, for an integer metric, and a tuple for a metric of histograms."""
    pair = question.pair
    d_in = _of_relation(metric, question) if pair is None else _of_pair(metric, pair)
    if d_in is None:
        raise NoClaim(
            f"the distance of d1 and d2 in the measurement's input metric {metric} cannot be "
            "computed; give the claim itself",
            code="claim-not-for-pair",
        )
    # The metric ends with its type, as in LInfDistance(monotonic, T=i32).
    kind = metric.rstrip(")").replace("=", "(").rpartition("(")[2]
    as_type = float if kind[:1] == "f" else math.ceil
    if isinstance(d_in, tuple):
        return (d_in[0], *map(as_type, d_in[1:]))
    return as_type(d_in)


def _of_pair(metric: str, pair: tuple[Any, Any]) -> Any:
    name = metric.partition("(")[0]
    if name in _NORMS or name in _HISTOGRAMS:
        return _of_vectors(metric, *pair)
    if name == "DiscreteDistance":
        return int(repr(pair[0]) != repr(pair[1]))
    first_rows, second_rows, exchanges = rows(pair[0]), rows(pair[1]), exchanged(*pair)
    if first_rows is None or second_rows is None or exchanges is None:
        return None
    if name == "SymmetricDistance":
        return sum(exchanges)
    if name == "InsertDeleteDistance":
        return edits(first_rows, second_rows)
    if len(first_rows) != len(second_rows):
        return None
    if name == "ChangeOneDistance":
        return exchanges[0]
    if name == "HammingDistance":
        return sum(repr(a) != repr(b) for a, b in zip(first_rows, second_rows))
    return None


def _of_vectors(metric: str, first: Any, second: Any) -> Any:
    """Return the distance of two numbers, vectors or histograms {key: count}."""
    name, changed = metric.partition("(")[0], None
    if isinstance(first, dict) and isinstance(second, dict):
        if name not in _HISTOGRAMS and first.keys() != second.keys():
            return None
        keys = [*first, *(key for key in second if key not in first)]
        # A key of one input alone is a changed entry, even with a count of 0.
        changed = sum(first.get(key) != second.get(key) for key in keys)
        first, second = ([counts.get(key, 0) for key in keys] for counts in (first, second))
    first_entries, second_entries = vector(first), vector(second)
    if first_entries is None or second_entries is None or len(first_entries) != len(second_entries):
        return None
    rises = [a < b for a, b in zip(first_entries, second_entries) if a != b]
    if name in _NORMS:
        # In a monotonic metric, entries that change in both directions are infinitely far apart.
        is_infinite = "monotonic" in metric and len(set(rises)) > 1
        return None if is_infinite else norm(first_entries, second_entries, order=_NORMS[name])
    if not metric.startswith(f"{name}(AbsoluteDistance("):
        return None
    size, largest = (
        norm(first_entries, second_entries, order=order) for order in (_HISTOGRAMS[name], math.inf)
    )
    return (len(rises) if changed is None else changed), size, largest


def _of_relation(metric: str, question: Question) -> Any:
    if question.relation is None:
        return None
    name, (kind, size) = metric.partition("(")[0], question.relation
    if name == "DiscreteDistance":
        return 1
    # If only one coordinate changes, and by at most `size`, the vector moves by at most `size` in
    # every norm.
    if kind == "coordinate" and name in _NORMS:
        return size
    if kind == "coordinate" and name in _HISTOGRAMS:
        return (1, size, size) if f"{name}(AbsoluteDistance(" in metric else None
    if name in _NORMS and "monotonic" not in metric:
        order = {"l1": 1.0, "l2": 2.0, "linf": math.inf}.get(kind)
        return size if order == _NORMS[name] else None
    unit = _RECORDS.get(name, {}).get(kind)
    return None if unit is None else unit * size
