"""The files that the settings of an audit name: what results must not be written over."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dpaudit.import_path import make_importable
from dpaudit.inputs.datasets import FILE
from dpaudit.inputs.values import IMPORT

# A text that is longer names no file.
_LONGEST = 4096


def named_files(settings: Any, base: Path | None = None) -> tuple[Path, ...]:
    """Return the files that are there and that a text in the settings names, in any of their forms:
    import paths, `@file`, programs and their arguments. base: where relative files are looked for,
    beside the working directory."""
    names = dict.fromkeys(name for text in _texts(settings) for name in _names(text))
    files = dict.fromkeys(file for name in names for file in _files(name, base))
    return tuple(file for file in files if os.path.isfile(file))  # noqa: PTH113  # never raises


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    if isinstance(value, Mapping):
        value = [part for key, part in value.items() if key != "name"]
    if isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _names(text: str) -> Iterator[str]:
    if len(text) > _LONGEST:
        return
    words = text.split()
    with suppress(ValueError):  # a quote that is not closed
        words = shlex.split(text)
    for word in (text, *words):
        name = word.removeprefix(FILE).removeprefix(IMPORT)
        yield from (name, name.rpartition(":")[0], name.rpartition("=")[2])


def _files(name: str, base: Path | None) -> Iterator[Path]:
    path = Path(name).expanduser() if name.startswith("~/") else Path(name)
    yield path.absolute()
    if base is not None:
        yield (base / path).absolute()
    if all(map(str.isidentifier, name.split("."))):
        yield from _of_module(name)


def _of_module(name: str) -> Iterator[Path]:
    """Yield where the file of a module may be; nothing is imported to find it."""
    first, *rest = name.split(".")
    make_importable(os.getcwd())
    spec = None
    with suppress(Exception):
        spec = find_spec(first)
    if spec is None:
        return
    if not rest:
        yield from [Path(spec.origin)] if spec.origin else []
    for folder in spec.submodule_search_locations or () if rest else ():
        module = Path(folder, *rest)
        yield from (module.with_suffix(".py"), module / "__init__.py")
