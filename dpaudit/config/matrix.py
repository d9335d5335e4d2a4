"""`matrix:` expands one audit into many; `${name}` refers to the value at hand."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from dpaudit.auditing.options import REFERENCE
from dpaudit.config.problems import Path, problem
from dpaudit.wording import did_you_mean, shortened

Values = Mapping[str, Any]

# Combinations at most: each is an audit.
_MOST = 5_000

_REFERENCE = re.compile(r"\$" + REFERENCE + "|" + REFERENCE)


def expand(settings: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """Yield the settings of every combination, named `name[epsilon=0.1]`, in the file's order.
    Raises a PlacedError for a matrix that is none, a reference to nothing, or an axis never
    used."""
    matrix = settings.get("matrix") or {}
    plain = {key: value for key, value in settings.items() if key != "matrix"}
    _check(matrix, plain)
    for combination in itertools.product(*matrix.values()):
        values = dict(zip(matrix, combination, strict=True))
        expanded = {key: substitute(value, values, (key,)) for key, value in plain.items()}
        names_axes = set(matrix) <= set(_references(plain.get("name")))
        axes = ",".join(f"{key}={shortened(str(value), 20)}" for key, value in values.items())
        labelled = f"{name}[{axes}]" if axes else name
        label = (names_axes and expanded.get("name")) or labelled
        yield {**expanded, "name": label} if label else expanded


def substitute(value: Any, values: Values, path: Path = ()) -> Any:
    """Return `value` with every `${name}` replaced; one that is the whole string keeps its type.
    `$${name}` stands for the text `${name}`."""
    if isinstance(value, str):
        return _substitute_text(value, values, path)
    if isinstance(value, Mapping):
        return {key: substitute(part, values, (*path, key)) for key, part in value.items()}
    if isinstance(value, list):
        return [substitute(part, values, (*path, i)) for i, part in enumerate(value)]
    return value


def escaped(value: Any) -> Any:
    """Return what `substitute` makes `value` of.

    >>> escaped(["a", "${b}"])
    ['a', '$${b}']
    """
    if isinstance(value, str):
        return re.sub(REFERENCE, r"$\g<0>", value)
    if isinstance(value, Mapping):
        return {key: escaped(part) for key, part in value.items()}
    return type(value)(map(escaped, value)) if isinstance(value, list | tuple) else value


def _substitute_text(text: str, values: Values, path: Path) -> Any:
    def replacement(match: re.Match[str]) -> str:
        is_escaped = match[0].startswith("$$")
        return match[0][1:] if is_escaped else str(_looked_up(match[2], values, path))

    whole = re.fullmatch(REFERENCE, text)
    return _looked_up(whole[1], values, path) if whole else _REFERENCE.sub(replacement, text)


def _looked_up(name: str, values: Values, path: Path) -> Any:
    if name in values:
        return values[name]
    example = f"matrix: {{{name}: [0.1, 1]}}"
    why = f"the audit has no matrix; give it one, e.g. {example}"
    if values:
        why = f"the matrix has {', '.join(values)}"
    raise problem(
        path,
        f"unknown reference ${{{name}}}: {why}.{did_you_mean(name, values)}"
        f" For the text itself write $${{{name}}}",
        code="matrix-invalid",
    )


def _check(matrix: Any, plain: Mapping[str, Any]) -> None:
    if not isinstance(matrix, Mapping):
        raise problem(
            ("matrix",),
            "matrix must be a mapping such as {epsilon: [0.1, 1, 4]}",
            code="matrix-invalid",
        )
    used = set(_references(plain))
    for name, axis in matrix.items():
        if not isinstance(axis, list) or not axis:
            raise problem(
                ("matrix", name),
                f"matrix: {name}={axis!r} must be a list of values, not empty",
                code="matrix-invalid",
            )
        if name not in used:
            raise problem(
                ("matrix", name),
                f"matrix: {name!r} is never used; refer to it as ${{{name}}}, "
                f'e.g. claim: {{epsilon: "${{{name}}}"}}',
                code="matrix-invalid",
            )
    lengths = [len(axis) for axis in matrix.values()]
    count = math.prod(lengths)
    if count > _MOST:
        product = " × ".join(f"{length:,}" for length in lengths)
        how = f" ({product})" if len(lengths) > 1 else ""
        raise problem(
            ("matrix",),
            f"matrix: {count:,} combinations{how} are {count:,} audits, but a matrix may have at "
            f"most {_MOST:,}; leave values out, or write several audits that vary fewer of them",
            code="matrix-invalid",
        )


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from (match[2] for match in _REFERENCE.finditer(value) if match[2] is not None)
    elif isinstance(value, Mapping | list):
        parts = value.values() if isinstance(value, Mapping) else value
        yield from itertools.chain.from_iterable(map(_references, parts))
