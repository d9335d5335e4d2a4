"""Test cases of google/differential-privacy as a file of audits.

`python -m mechanisms.conformance.cases FILE... > audits.yaml` reads files in the text format of
protocol buffers (proto/testing/*_dp_test_cases.textproto of that repository). Every case becomes an
audit of its two inputs with its claim. With --violating, a case also becomes audits that must find
a violation, as in the tests `rejects...` of java/tests/.../testing/*DpTestCasesValidityTest.java.
Cases that the implementation declares as missing are left out, and counted on the standard error.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from dpaudit.errors import TargetError
from dpaudit.import_path import loaded, resolve
from mechanisms.conformance import revealing
from mechanisms.conformance.budgets import draws_for_distance, draws_for_revealing
from mechanisms.conformance.textproto import Message, parse

_CASE = "_dp_test_case"
# Fields of the parameters for sampling that are inputs, or that dpaudit chooses.
_INPUTS = ("raw_increment_by", "raw_entry")
_NOT_PARAMETERS = ("number_of_samples", *_INPUTS, *(f"neighbour_{name}" for name in _INPUTS))
# Parameters that are lists, even of one value.
_LISTS = ("rank",)
# Draws of an audit; a variant that must be refuted may need more.
_SAMPLES = 20_000
Audit = dict[str, Any]
# Kind of a case and type of its noise.
Case = tuple[str, str]


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


def document(
    sources: Sequence[str], module: str, violating: bool = False, missing: Collection[Case] = ()
) -> dict[str, Any]:
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
    missing : collection of (str, str)
        Kinds and types of noise to leave out, such as ("bounded_stdv", "GAUSSIAN").

    Returns
    -------
    dict
        The document. Its audits share a false-alarm probability of 10⁻⁴.

    Raises
    ------
    ValueError
        If a text is not in the text format, has no test case, or a case lacks a value.
    """
    files = [parse(source) for source in sources]
    audits = [audit for file in files for audit in _audits(file, module, violating, missing)]
    # No trace: the noise is drawn in C++, where no line of Python leaks.
    defaults = {"confidence": 0.9999, "no_trace": True}
    return {"version": 1, "familywise": True, "defaults": defaults, "audits": audits}


def left_out(sources: Sequence[str], missing: Mapping[Case, str]) -> list[str]:
    """Return a line for each kind of missing cases: how many there are, and why they are left out.

    missing: reasons by kind and type of noise.
    """
    cases = (case for source in sources for case in _cases(parse(source)))
    numbers = Counter((kind, _noise(kind, case)) for kind, case in cases)
    return [
        f"left out: {kind} with {noise.capitalize()} noise ({numbers[kind, noise]}), as {reason}"
        for (kind, noise), reason in missing.items()
        if numbers[kind, noise]
    ]


def _audits(
    file: Message, module: str, violating: bool, missing: Collection[Case]
) -> Iterator[Audit]:
    for kind, case in _cases(file):
        if (kind, _noise(kind, case)) in missing:
            continue
        audit = _audit(kind, case, module)
        yield audit
        if violating:
            yield from _violating(audit, kind, case, file.message("validity_parameters"))


def _cases(file: Message) -> Iterator[tuple[str, Message]]:
    """Yield the kind of each case of a file, and the case."""
    names = [name for name in file.fields if name.endswith(_CASE)]
    if not names:
        raise ValueError(f"there is no test case, a field that ends in {_CASE}")
    for field in names:
        for case in file.messages(field):
            yield field.removesuffix(_CASE), case


def _sampling(kind: str, case: Message) -> Message:
    return case.message(f"{kind}_sampling_parameters")


def _noise(kind: str, case: Message) -> str:
    return _sampling(kind, case).text("noise_type")


def _audit(kind: str, case: Message, module: str) -> Audit:
    sampling = _sampling(kind, case)
    tested = case.message("dp_test_parameters")
    d1, d2 = _inputs(sampling)
    claim = {"epsilon": tested.number("epsilon"), "delta": tested.number("delta", 0.0)}
    if not claim["delta"]:
        del claim["delta"]
    kept = {name: values for name, values in sampling.fields.items() if name not in _NOT_PARAMETERS}
    return {
        "name": f"{kind}: {case.text('name')}",
        "mechanism": f"{module}:{kind}",
        "params": {name: values if name in _LISTS else values[-1] for name, values in kept.items()},
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
        missing = _missing(given.module)
        build = partial(document, module=given.module, violating=given.violating, missing=missing)
        sources = [_read(file, build) for file in given.files]
        audits = build(sources)
        lines = left_out(sources, missing)
    except (OSError, ValueError, TargetError) as error:
        parser.error(str(error))
    sys.stderr.writelines(f"{line}\n" for line in lines)
    sys.stdout.write(as_yaml(audits))


def _read(file: Path, build: Callable[[Sequence[str]], object]) -> str:
    """Return the text of a file of test cases. Raises ValueError, with the name of the file, if no
    audits can be built from it."""
    try:
        source = file.read_text(encoding="utf-8")
        build([source])
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    return source


def _missing(module: str) -> Mapping[Case, str]:
    """Import an implementation, and return the reasons why it misses cases. Raises TargetError if
    it cannot be imported, and ValueError if its `MISSING` is no such mapping."""
    resolve(f"{module}:__name__")
    missing = loaded(f"{module}:MISSING") or {}
    if not isinstance(missing, Mapping) or not all(map(_is_case, missing)):
        example = '{("bounded_stdv", "GAUSSIAN"): "it has no such noise"}'
        raise ValueError(f"{module}:MISSING must map kinds and noises to reasons, as {example}")
    return missing


def _is_case(key: Any) -> bool:
    return isinstance(key, tuple) and len(key) == 2


if __name__ == "__main__":
    main()
