"""Test cases of google/differential-privacy as a file of audits.

`python -m mechanisms.conformance.cases FILE... > audits.yaml` reads files in the text format of
protocol buffers (proto/testing/*_dp_test_cases.textproto of that repository). Every case becomes an
audit of its two inputs with its claim. With --violating, a case also becomes audits that must find
a violation, as in the tests `rejects...` of java/tests/.../testing/*DpTestCasesValidityTest.java.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from mechanisms.conformance import revealing
from mechanisms.conformance.budgets import draws_for_distance, draws_for_revealing
from mechanisms.conformance.textproto import Message, parse

_CASE = "_dp_test_case"
# Fields of the parameters for sampling that are inputs, or that dpaudit chooses.
_INPUTS = ("raw_increment_by", "raw_entry")
_NOT_PARAMETERS = ("number_of_samples", *_INPUTS, *(f"neighbour_{name}" for name in _INPUTS))
# Draws of an audit; a variant that must be refuted may need more.
_SAMPLES = 20_000
Audit = dict[str, Any]


class _Plain(yaml.SafeDumper):
    """Writes equal values in full, without anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def as_yaml(audits: dict[str, Any]) -> str:
    """Return a file of audits as YAML, with inputs on one line."""
    return yaml.dump(
        audits,
        Dumper=_Plain,
        default_flow_style=None,
        sort_keys=False,
        allow_unicode=True,
        width=100,
    )


def document(sources: Sequence[str], module: str, violating: bool = False) -> dict[str, Any]:
    """Return the file of audits for some files of test cases.

    Parameters
    ----------
    sources : sequence of str
        The texts of the files.
    module : str
        Module of the implementation, with a function for every kind of case, such as `count` or
        `bounded_sum`. It takes the input, `size`, and the parameters for sampling by name.
    violating : bool
        Whether to add audits that must find a violation.

    Returns
    -------
    dict
        The document. Its audits share a false-alarm probability of 10⁻⁴.

    Raises
    ------
    ValueError
        If a text is not in the text format, has no test case, or a case lacks a value.
    """
    audits = [audit for source in sources for audit in _audits(parse(source), module, violating)]
    # No trace: the noise is drawn in C++, where no line of Python leaks.
    defaults = {"confidence": 0.9999, "no_trace": True}
    return {"version": 1, "familywise": True, "defaults": defaults, "audits": audits}


def _audits(file: Message, module: str, violating: bool) -> Iterator[Audit]:
    names = [name for name in file.fields if name.endswith(_CASE)]
    if not names:
        raise ValueError(f"there is no test case, a field that ends in {_CASE}")
    for field in names:
        kind = field.removesuffix(_CASE)
        for case in file.messages(field):
            audit = _audit(kind, case, module)
            yield audit
            if violating:
                yield from _violating(audit, kind, case, file.message("validity_parameters"))


def _audit(kind: str, case: Message, module: str) -> Audit:
    sampling = case.message(f"{kind}_sampling_parameters")
    tested = case.message("dp_test_parameters")
    d1, d2 = _inputs(sampling)
    claim = {"epsilon": tested.number("epsilon"), "delta": tested.number("delta", 0.0)}
    if not claim["delta"]:
        del claim["delta"]
    kept = {name: values for name, values in sampling.fields.items() if name not in _NOT_PARAMETERS}
    return {
        "name": f"{kind}: {case.text('name')}",
        "mechanism": f"{module}:{kind}",
        "params": {name: values[-1] for name, values in kept.items()},
        "d1": d1,
        "d2": d2,
        "claim": claim,
        "samples": _SAMPLES,
        "expect": "pass",
    }


def _inputs(sampling: Message) -> tuple[list[float], list[float]]:
    for name in _INPUTS:
        if name in sampling.fields or f"neighbour_{name}" in sampling.fields:
            return sampling.numbers(name), sampling.numbers(f"neighbour_{name}")
    raise ValueError(f"a test case has no inputs ({' or '.join(_INPUTS)})")


def _violating(audit: Audit, kind: str, case: Message, validity: Message) -> Iterator[Audit]:
    """Yield an audit of counts that are too far apart, and one of outputs that reveal d2."""
    claim = audit["claim"]["epsilon"], audit["claim"].get("delta", 0.0)
    if kind == "count":
        partitions = audit["params"]["max_partitions_contributed"]
        noise = audit["params"]["noise_type"]
        sensitivity = partitions if noise == "LAPLACE" else math.sqrt(partitions)
        distance = math.ceil(validity.number("distance_specificity") * sensitivity)
        yield {
            **audit,
            **_refuted(draws_for_distance(noise, claim, sensitivity, distance)),
            "name": f"{audit['name']}, too far apart",
            "d2": [*audit["d1"], distance],
        }
    tolerance = case.message("dp_test_parameters").number("delta_tolerance")
    probability = tolerance * validity.number("failure_specificity")
    init = {
        "mechanism": audit["mechanism"],
        "larger_than": len(audit["d1"]),
        "probability": probability,
        "params": audit["params"],
    }
    yield {
        **{name: value for name, value in audit.items() if name != "params"},
        **_refuted(draws_for_revealing(claim, probability)),
        "name": f"{audit['name']}, revealing",
        "mechanism": f"{revealing.__name__}:failing",
        "factory": True,
        "init": init,
    }


def _refuted(draws: int) -> Audit:
    return {"samples": max(draws, _SAMPLES), "expect": "violation"}


def main() -> None:
    """Write the audits of the files on the command line to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m mechanisms.conformance.cases")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--module", default="mechanisms.conformance.python_dp")
    parser.add_argument("--violating", action="store_true")
    given = parser.parse_args()
    try:
        sources = [file.read_text(encoding="utf-8") for file in given.files]
        audits = document(sources, given.module, given.violating)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    sys.stdout.write(as_yaml(audits))


if __name__ == "__main__":
    main()
