"""Expand the entries of a configuration file to the settings of each audit, with all defaults.

In an entry with a matrix, `${name}` stands for a value in the list `name` of the matrix. A claim
with the key `curve` becomes two audits: one of the claim without this key, and one of the curve.
"""

from __future__ import annotations

import itertools
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from dpaudit.auditing.option_parsing import REFERENCE
from dpaudit.claims import DEFINITIONS
from dpaudit.config.problems import Path, PlacedError, problem
from dpaudit.config.targets import PROCESS, PYTHONIC, SINGLE_TARGET
from dpaudit.wording import did_you_mean, shortened

# Largest number of combinations of values in a matrix. Each combination is an audit.
_MAX_COMBINATIONS = 5_000
# Text that `dpaudit init` writes in place of a value that the user must fill in.
FILL_IN = "FILL_IN"
# Largest number of nested levels of settings that are searched for the text FILL_IN. Deeper levels
# may belong to large datasets.
_MAX_DEPTH = 4
# Keys of the lists that are searched for the text FILL_IN. Other lists are not searched, since they
# may be large datasets.
_LISTS = (("pairs",), ("init",), ("compose",))
# Keys with a mapping as value. A flag adds to the mapping of the file, instead of replacing it:
# `--epsilon 2` keeps the δ of the file.
_MERGED = ("claim", "params")
_CURVE = "curve"
# Pairs (keys, other keys). If an audit states one of the first keys, it does not inherit the other
# keys from the defaults, since both together would be an error.
_ALTERNATIVES = (
    (("pairs",), ("d1", "d2")),
    (("d1", "d2"), ("pairs",)),
    (("compose",), SINGLE_TARGET),
    (("mechanism",), ("compose", "command")),
    (("command",), ("compose", *PYTHONIC, *PROCESS)),
    (("samples",), ("time",)),
    (("time",), ("samples",)),
)
_REFERENCE = re.compile(r"\$" + REFERENCE + "|" + REFERENCE)
Values = Mapping[str, Any]


def expanded_settings(content: Mapping[str, Any], index: int) -> Iterator[dict[str, Any]]:
    """Yield the settings, with all defaults, of each audit that an entry describes. `index` is the
    position of the entry in the list `audits` of the document `content`. Raises PlacedError."""
    audit = content["audits"][index]
    settings = {**_without_displaced(content.get("defaults") or {}, audit), **audit}
    yield from expand(settings, default_name(settings))


def _without_displaced(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    dropped = {
        key
        for keys, rivals in _ALTERNATIVES
        if any(name in above for name in keys)
        for key in rivals
    }
    return {key: value for key, value in below.items() if key not in dropped}


def overridden(settings: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**_without_displaced(settings, overrides), **overrides}
    for key in _MERGED:
        below, above = settings.get(key), overrides.get(key)
        if isinstance(below, Mapping) and isinstance(above, Mapping):
            merged[key] = {**below, **above}
    return merged


def default_name(settings: Mapping[str, Any]) -> str:
    """Return the name of an audit: its setting `name` or, without one, the name of its
    mechanism."""
    composed = settings.get("compose")
    entries = composed if isinstance(composed, list) else [settings]
    name = settings.get("name")
    return " + ".join(map(_entry_name, entries)) if name is None else str(name)


def _entry_name(entry: Any) -> str:
    settings = entry if isinstance(entry, Mapping) else {"mechanism": entry}
    command = settings.get("command", "")
    if command:
        return shlex.join(map(str, command)) if isinstance(command, list) else str(command)
    return str(settings.get("mechanism", "")).rpartition(":")[2]


def with_curve(settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the settings of one audit or, if the claim has the key `curve`, of two audits: one of
    the claim without this key, and one whose claim is the curve, such as `{gaussian: {sigma:
    3.75}}`.

    The audits are separate since draws that refute a wrong curve often do not refute the point (ε,
    δ) of the claim, and vice versa.
    """
    claim = settings.get("claim")
    if not isinstance(claim, Mapping) or _CURVE not in claim:
        yield dict(settings)
        return
    point = {name: value for name, value in claim.items() if name != _CURVE}
    yield {**settings, "claim": point}
    curve, expect = _curve(claim[_CURVE])
    audit = {**settings, "name": f"{settings['name']} (curve)", "claim": curve}
    yield {**audit, "expect": expect} if expect is not None else audit


def _curve(curve: Any) -> tuple[dict[str, Any], Any]:
    """Return (settings of the claim, expected verdict or None) for `{gaussian: {sigma: 3.75}}`."""
    fields = dict(curve) if isinstance(curve, Mapping) else {}
    expect = fields.pop("expect", None)
    definition = next(iter(fields), None)
    if len(fields) != 1 or not isinstance(fields[definition], Mapping):
        raise problem(
            ("claim", _CURVE),
            f"curve={curve!r} must be one definition with its parameters, such as "
            "{gaussian: {sigma: 3.75}}",
            code="option-invalid",
        )
    if definition not in DEFINITIONS:
        raise problem(
            ("claim", _CURVE),
            f"unknown definition {definition!r}; known: {', '.join(DEFINITIONS)}."
            + did_you_mean(str(definition), DEFINITIONS),
            code="definition-unknown",
        )
    return {"definition": definition, **fields[definition]}, expect


def expand(settings: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """Yield the settings of one audit for each combination of the values in the matrix, in order.
    The audits have names such as `name[epsilon=0.1]`.

    Raises PlacedError for an invalid matrix, for a `${name}` that the matrix does not have, and for
    a list of the matrix that no setting refers to.
    """
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
    """Return a copy of `value` in which every `${name}` is replaced by `values[name]`. A string
    that consists only of `${name}` is replaced by the value itself, with its type. `$${name}`
    stands for the text `${name}`. `path` is where the value is in the settings."""
    if isinstance(value, str):
        return _substitute_text(value, values, path)
    if isinstance(value, Mapping):
        return {key: substitute(part, values, (*path, key)) for key, part in value.items()}
    if isinstance(value, list):
        return [substitute(part, values, (*path, i)) for i, part in enumerate(value)]
    return value


def escaped(value: Any) -> Any:
    """Return a copy of `value` that `substitute` turns back into `value`: each `${name}` gets a
    second `$`.

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

    reference = re.fullmatch(REFERENCE, text)
    return (
        _looked_up(reference[1], values, path) if reference else _REFERENCE.sub(replacement, text)
    )


def _looked_up(name: str, values: Values, path: Path) -> Any:
    if name in values:
        return values[name]
    example = f"matrix: {{{name}: [0.1, 1]}}"
    why = f"the audit has no matrix; give it one, e.g. {example}"
    if values:
        why = f"the matrix has {', '.join(values)}"
    raise _invalid(
        path,
        f"unknown reference ${{{name}}}: {why}.{did_you_mean(name, values)}"
        f" For the text itself write $${{{name}}}",
    )


def _invalid(path: Path, why: str) -> PlacedError:
    return problem(path, why, code="matrix-invalid")


def _check(matrix: Any, plain: Mapping[str, Any]) -> None:
    if not isinstance(matrix, Mapping):
        raise _invalid(("matrix",), "matrix must be a mapping such as {epsilon: [0.1, 1, 4]}")
    used = set(_references(plain))
    for name, axis in matrix.items():
        if not isinstance(axis, list) or not axis:
            raise _invalid(
                ("matrix", name), f"matrix: {name}={axis!r} must be a list of values, not empty"
            )
        if name not in used:
            raise _invalid(
                ("matrix", name),
                f"matrix: {name!r} is never used; refer to it as ${{{name}}}, "
                f'e.g. claim: {{epsilon: "${{{name}}}"}}',
            )
    lengths = [len(axis) for axis in matrix.values()]
    count = math.prod(lengths)
    if count > _MAX_COMBINATIONS:
        product = " × ".join(f"{length:,}" for length in lengths)
        how = f" ({product})" if len(lengths) > 1 else ""
        raise _invalid(
            ("matrix",),
            f"matrix: {count:,} combinations{how} are {count:,} audits, but a matrix may have at "
            f"most {_MAX_COMBINATIONS:,}; leave values out, or write several audits that vary "
            "fewer of them",
        )


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from (match[2] for match in _REFERENCE.finditer(value) if match[2] is not None)
    elif isinstance(value, Mapping | list):
        parts = value.values() if isinstance(value, Mapping) else value
        yield from itertools.chain.from_iterable(map(_references, parts))


def check_filled_in(settings: Mapping[str, Any]) -> None:
    """Raise a PlacedError that names every setting with the text FILL_IN, if there are any."""
    paths = list(holes(settings))
    if paths:
        raise unfilled(paths)


def unfilled(found: list[Path]) -> PlacedError:
    """Return the error that names the paths of all settings that the user must still fill in."""
    names = [".".join(map(str, path)) for path in found]
    last = f" and {names[-1]}" if len(names) > 1 else names[-1]
    them = "it" if len(names) == 1 else "them"
    return problem(
        found[0],
        f"{', '.join(names[:-1])}{last} must be filled in: put a value in the place of "
        f"{FILL_IN}, or give {them} on the command line",
        code="fill-in-left",
    )


def holes(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of each text FILL_IN in `value`, which is the part of the settings at
    `path`."""
    if isinstance(value, str):
        if value == FILL_IN:
            yield path
    elif len(path) < _MAX_DEPTH and isinstance(value, Mapping):
        for key, part in value.items():
            if key == FILL_IN and path:
                yield path
            yield from holes(part, (*path, key))
    elif len(path) < _MAX_DEPTH and isinstance(value, list) and path[-1:] in _LISTS:
        for index, part in enumerate(value):
            yield from holes(part, (*path, index))
