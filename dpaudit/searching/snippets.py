"""Values and calls written as Python code that a user can paste into a program."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from dpaudit.inputs.values import ARRAYS, LIBRARIES
from dpaudit.targets.construction import is_made
from dpaudit.targets.target import CallableTarget, ImportedTarget

# A list of equal values with more elements than this is written as `[value] * length`.
_MAX_WRITTEN_OUT = 6


def as_python(value: Any) -> str:
    """Return a value of plain Python as the text of a Python expression.

    >>> as_python([{"age": float("nan")}, -0.0])
    '[{"age": float("nan")}, -0.0]'
    """
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, str):
        quoted = repr(value)
        is_plain = value.isprintable() and '"' not in value and "\\" not in value
        return f'"{value}"' if is_plain else quoted
    if isinstance(value, Mapping):
        items = (f"{as_python(name)}: {as_python(part)}" for name, part in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, list):
        # A long list of equal scalars is written as `[value] * length`. A list of equal rows is
        # written in full: `[row] * 3` would contain the same row object three times, and a function
        # that changes one row would change all of them.
        if (
            len(value) > _MAX_WRITTEN_OUT
            and len(set(map(repr, value))) == 1
            and _is_scalar(value[0])
        ):
            return f"[{as_python(value[0])}] * {len(value)}"
        return f"[{', '.join(map(as_python, value))}]"
    if isinstance(value, tuple):
        comma = "," if len(value) == 1 else ""
        return f"({', '.join(map(as_python, value))}{comma})"
    return repr(value)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def snippet(target: ImportedTarget | CallableTarget, d1: Any, d2: Any, form: str | None) -> str:
    """Return a program that prints the answers of a function for two datasets in a form."""
    lines, call = _importing(target)
    lines = [*lines, *imports(form, d1, d2)]
    columns = columns_of(d1, d2)
    return "\n".join([
        *sorted(lines),
        *([""] if lines else []),
        *(f"{name} = {in_form(data, form, columns)}" for name, data in (("d1", d1), ("d2", d2))),
        *(f"print({call.format(name)})" for name in ("d1", "d2")),
    ])  # fmt: skip


def columns_of(*datasets: Any) -> list[str]:
    """Return the column names of the first row, in any of the datasets, that has columns, else [].
    They are used for all datasets, since a table without rows does not show its columns."""
    rows = (row for data in datasets if isinstance(data, list) for row in data)
    return list(next((row for row in rows if isinstance(row, Mapping)), {}))


def as_given(dataset: Any, form: str | None, columns: Sequence[str]) -> Any:
    """Return a table as the argument that a constructor takes: a list of rows for an array, a
    mapping from column to list of values for a data frame. `columns` are its column names, in
    order. Any other dataset, and one in plain Python, is returned unchanged."""
    is_table = isinstance(dataset, list) and all(
        isinstance(row, dict) and row.keys() >= set(columns) for row in dataset
    )
    if not columns or not is_table:
        return dataset
    if form in LIBRARIES:
        return {name: [row[name] for row in dataset] for name in columns}
    return [[row[name] for name in columns] for row in dataset] if form in ARRAYS else dataset


def in_form(dataset: Any, form: str | None, columns: Sequence[str]) -> str:
    """Return a Python expression for a dataset in a form, such as `pd.DataFrame({"age": [36]})`.
    `columns` are its column names, in order. The value of the expression equals the argument with
    which the search called the function."""
    if form in ARRAYS and columns and dataset == []:
        return f"np.empty((0, {len(columns)}))"
    plain = as_python(as_given(dataset, form, columns))
    return plain if form is None else _FORMS[form][1].format(plain)


def imports(form: str | None, *datasets: Any) -> list[str]:
    """Return the import lines, such as `import pandas as pd`, that `in_form` needs."""
    lines = [] if form is None else [_FORMS[form][0]]
    uses_dates = any("datetime." in as_python(data) for data in datasets)
    return [*lines, *(["import datetime"] if uses_dates else [])]


_FORMS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(ARRAYS, ("import numpy as np", "np.asarray({})")),
    "pandas": ("import pandas as pd", "pd.DataFrame({})"),
    "polars": ("import polars as pl", 'pl.DataFrame({}, orient="row", strict=False)'),
}


def _importing(target: ImportedTarget | CallableTarget) -> tuple[list[str], str]:
    """Return (import lines of a function, call of the function with `{}` for the dataset)."""
    data = "{}" if target.data_arg is None else f"{target.data_arg}={{}}"
    keywords = "".join(f", {name}={_escaped(value)}" for name, value in target.params.items())
    if isinstance(target, CallableTarget):
        name = target.name.rpartition(".")[2]
        # The generated program cannot call a lambda by its name, `<lambda>`. It calls the lambda
        # `function`, after the parameter of `sensitivity` to which the user passed it.
        return [], f"{name if name.isidentifier() else 'function'}({data}{keywords})"
    module, _, attribute = target.path.partition(":")
    name = attribute.partition(".")[0]
    lines = [f"from {module} import {name}"]
    if module.endswith(".py"):
        path = PurePath(module)
        if len(path.parts) == 1 and path.stem.isidentifier():
            lines = [f"from {path.stem} import {name}"]
        else:
            file = f"runpy.run_path({as_python(module)})"
            lines, attribute = ["import runpy"], f'{file}["{name}"]{attribute[len(name) :]}'
    return lines, f"{_mechanism(attribute, target)}({data}{keywords})"


def _mechanism(attribute: str, target: ImportedTarget) -> str:
    if is_made(target):
        init = target.init or ()
        if isinstance(init, Mapping):
            attribute += (
                f"({', '.join(f'{name}={_escaped(value)}' for name, value in init.items())})"
            )
        else:
            attribute += f"({', '.join(map(_escaped, init))})"
    return f"{attribute}.{target.call}" if target.call else attribute


def _escaped(value: Any) -> str:
    """Return a value as a Python expression in which braces are doubled, for `str.format`."""
    return as_python(value).replace("{", "{{").replace("}", "}}")
