"""Show the result of a search for inputs with a larger sensitivity than claimed, as text of 80
columns and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import chain
from typing import Any

from dpaudit.reports.layout import Item, Row, laid_out, wrap
from dpaudit.reports.numbers import at_least, unglued
from dpaudit.searching.sensitivity import SensitivityResult, Witness
from dpaudit.searching.snippets import as_python
from dpaudit.version import __version__
from dpaudit.wording import counted, shortened, visible

EXCEEDED, NOT_EXCEEDED = "EXCEEDED", "NOT EXCEEDED"
# Largest number of characters of a value in the text. The JSON and the code to reproduce it have
# the whole value.
_MAX_CHARACTERS = 300
# Rounding error that a difference of outputs may have after a few operations, in units in the last
# place.
_ULPS = 64
_FORMULAS = {
    "l1": "‖f(d1) − f(d2)‖₁",
    "l2": "‖f(d1) − f(d2)‖₂",
    "linf": "‖f(d1) − f(d2)‖∞",
    "records": "number of records in which f(d1) and f(d2) differ",
}
_ORIGINS = {"catalogue": "proposed", "sizes": "of all lengths", "climbing": "climbed to"}
_NO_PROOF = (
    "That no pair tried is further apart does not show that the claim is right: another pair may "
    "be."
)


def render(result: SensitivityResult, *, quiet: bool = False) -> str:
    """Return a result as text; with `quiet`, as a single paragraph."""
    head = wrap(_headline(result))
    lines = head if quiet else [*head, "", *laid_out(_body(result))]
    return visible(unglued("\n".join(lines))) + "\n"


def _headline(result: SensitivityResult) -> str:
    claimed = _claimed(result)
    witness = result.witness
    if witness is None:
        distance = "none" if result.largest is None else _distance(result, result.largest)
        return (
            f"{NOT_EXCEEDED}  {result.function}: largest distance seen {distance}, claimed at most "
            f"{claimed}"
        )
    where = "" if witness.inside else ", for an input outside the space"
    if witness.kind == "raises":
        return f"{EXCEEDED}  {result.function} {witness.words}{where}"
    why = f" ({witness.words})" if witness.words else ""
    return (
        f"{EXCEEDED}  {result.function}: distance {_distance(result, witness)}{why}, claimed at "
        f"most {claimed}{where}"
    )


def _body(result: SensitivityResult) -> Iterator[Item]:
    source = "" if result.source is None else f" ({result.source})"
    yield Row("claim", f"{_FORMULAS[result.norm]} ≤ {_claimed(result)}")
    yield Row("function f", f"{result.function}{source}")
    yield Row("inputs", f"{result.space}; neighbours: {result.adjacency}")
    if result.witness is not None:
        yield from _pair(result, result.witness)
        for witness in result.witnesses[1:]:
            yield Row("also", f"{_why(result, witness)}: {_inputs(witness)}")
    if result.largest is not None and not _is_witness(result, result.largest):
        outside = "" if result.largest.inside else ", outside the space"
        largest = f"{_distance(result, result.largest)}, for {_inputs(result.largest)}{outside}"
        yield Row("largest", largest)
    for witness in result.beyond:
        yield Row("outside", f"{_why(result, witness)}: {_inputs(witness)}")
    yield Row("tried", _tried(result))
    yield from (Row("note", note) for note in result.notes)
    yield ""
    if result.witness is None:
        yield from wrap(_NO_PROOF)
    if result.beyond:
        yield ""
        yield from wrap(
            "Inputs outside the space exceed the claim; they decide nothing. Clamp or reject them, "
            "or give --outside, so that they count. The first of them:"
        )
    if not result.snippet:
        return
    if result.beyond:
        yield ""
    elif result.witness is not None and not result.witness.inside:
        yield from wrap("The space does not contain this input; --outside lets it count.")
        yield ""
    yield from (f"    {line}".rstrip() for line in result.snippet.split("\n"))


def _pair(result: SensitivityResult, witness: Witness) -> Iterator[Item]:
    for name, value in (("d1", witness.d1), ("d2", witness.d2)):
        yield Row(name, shortened(as_python(value), _MAX_CHARACTERS))
    for name, output in (("f(d1)", witness.outputs[0]), ("f(d2)", witness.outputs[1])):
        text = output if isinstance(output, str) else as_python(output)
        yield Row(name, shortened(text, _MAX_CHARACTERS))
    yield Row("distance", _distance(result, witness))
    if witness.kind == "distance" and _is_rounding(witness, result.claimed):
        yield Row(
            None,
            "Numbers of this size are rounded by as much as the distance is above the claim: it is "
            "the arithmetic of floats that exceeds it.",
        )


def _why(result: SensitivityResult, witness: Witness) -> str:
    return witness.words or f"distance {_distance(result, witness)}"


def _inputs(witness: Witness) -> str:
    d1, d2 = (shortened(as_python(value), 100) for value in (witness.d1, witness.d2))
    return f"d1 = {d1}, d2 = {d2}"


def _is_witness(result: SensitivityResult, candidate: Witness) -> bool:
    return any(repr(candidate) == repr(witness) for witness in result.witnesses)


def _tried(result: SensitivityResult) -> str:
    by_origin = ", ".join(
        f"{number:,} {_ORIGINS.get(name, name)}" for name, number in result.tried.items()
    )
    text = counted(sum(result.tried.values()), "pair")
    text += f" of neighbours ({by_origin})" if by_origin else ""
    return f"{text}; both inputs of {result.raised:,} more raise" if result.raised else text


def _distance(result: SensitivityResult, witness: Witness) -> str:
    if math.isinf(witness.distance):
        return "∞"
    is_found = result.exceeded or bool(result.beyond)
    above = result.claimed if witness.distance > result.claimed and is_found else None
    return _number(witness.distance, above)


def _claimed(result: SensitivityResult) -> str:
    return f"{result.claimed:.10g}"


def _number(value: float, above: float | None = None) -> str:
    """Return a number as text: exactly if few digits suffice, else rounded and above `above`."""
    short = f"{value:.6g}"
    return short if float(short) == value else at_least(value, above=above, digits=6)


def _is_rounding(witness: Witness, claimed: float) -> bool:
    """Return whether floating-point rounding may explain that the distance exceeds the claim."""
    sizes = [abs(number) for number in _numbers([*witness.outputs])]
    return witness.distance - claimed <= _ULPS * sum(map(math.ulp, map(float, sizes)))


def _numbers(output: Any) -> Iterator[Any]:
    if isinstance(output, Mapping):
        output = list(output.values())
    if isinstance(output, list | tuple):
        yield from chain.from_iterable(map(_numbers, output))
    elif isinstance(output, int | float):
        yield output


def as_json(result: SensitivityResult) -> str:
    """Return a result as JSON, with datasets and outputs as Python expressions."""
    document = {
        "kind": "sensitivity",
        "dpaudit": __version__,
        **_fields(result),
        "witnesses": [_record(witness) for witness in result.witnesses],
        "beyond": [_record(witness) for witness in result.beyond],
        "largest": None if result.largest is None else _record(result.largest),
        "tried": dict(result.tried),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _record(witness: Witness) -> dict[str, Any]:
    return {
        **_fields(witness),
        "d1": as_python(witness.d1),
        "d2": as_python(witness.d2),
        "outputs": [
            output if isinstance(output, str) else as_python(output) for output in witness.outputs
        ],
        "distance": "inf" if math.isinf(witness.distance) else witness.distance,
    }


def _fields(record: SensitivityResult | Witness) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}
