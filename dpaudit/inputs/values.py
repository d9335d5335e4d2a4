"""Values as a user writes them in YAML or JSON, where these have no form: tuples and imports.

`{tuple: [0, 1]}` is a tuple, `{tuple: {tuple: [0, 1]}}` the mapping `{tuple: [0, 1]}`;
`import:module:name` is what an import path names, `import::text` the text `import:text`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dpaudit.errors import DatasetError
from dpaudit.import_path import located, resolve, split
from dpaudit.watching import step

IMPORT = "import:"
_TUPLE = "tuple"
_CALLED = "()"


@dataclass(frozen=True, slots=True)
class Reference:
    """What an import path names, imported where it is needed: maybe in another process.

    called: whether what it names is called, without arguments, and gives the value.
    """

    path: str
    called: bool = False

    def __repr__(self) -> str:
        return f"{IMPORT}{self.path}{_CALLED if self.called else ''}"

    def value(self, *, calls: bool) -> Any:
        """Import it. calls: call it if it is a function.

        Raises TargetError, and DatasetError when the call fails.
        """
        found = resolve(self.path)
        if not self.called and not (calls and callable(found)):
            return found
        try:
            with step(f"the call of {self!r}"):
                return found()
        except (Exception, SystemExit) as error:
            raise DatasetError(
                f"{self!r} failed: {type(error).__name__}: {error}; "
                "name an object, or a function that needs no argument"
            ) from error


def written(value: Any, base: Path | None = None) -> Any:
    """Return what a parsed value stands for: tuples made, import paths as `Reference`; itself where
    it has neither.

    base: where a relative file of an import path is looked for, after the working directory.
    Raises DatasetError, or TargetError for what is no import path.
    """
    return _read(value, partial(_text, base=base)) if _says_more(value) else value


def with_tuples(value: Any) -> Any:
    """Return a parsed value with its tuples made, and every text as it stands. Raises
    DatasetError."""
    return _read(value, str)


def _says_more(value: Any) -> bool:
    """Return whether there is something in a value that is not what it stands for."""
    if isinstance(value, str):
        return value.startswith(IMPORT)
    if isinstance(value, Mapping):
        return set(value) == {_TUPLE} or any(map(_says_more, value.values()))
    return isinstance(value, list) and any(map(_says_more, value))


def _read(value: Any, text: Callable[[str], Any]) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping) and set(value) == {_TUPLE}:
        return _tuple(value[_TUPLE], text)
    if isinstance(value, Mapping):
        return {key: _read(part, text) for key, part in value.items()}
    return [_read(part, text) for part in value] if isinstance(value, list) else value


def resolved(value: Any, *, calls: bool = False) -> Any:
    """Return a value with what its references name; itself where it has none.

    calls: call what they name, if it is a function. Raises the errors of `Reference.value`.
    """
    if next(references(value), None) is None:
        return value
    if isinstance(value, Reference):
        return value.value(calls=calls)
    if isinstance(value, Mapping):
        return {key: resolved(part, calls=calls) for key, part in value.items()}
    return type(value)(resolved(part, calls=calls) for part in value)


def references(value: Any) -> Iterator[Reference]:
    """Yield the references in a value, of those kinds that a user can write."""
    if type(value) is Reference:
        yield value
    elif type(value) in (list, tuple, dict):
        for part in value.values() if type(value) is dict else value:
            yield from references(part)


def _text(text: str, base: Path | None) -> Any:
    if text.startswith(IMPORT + ":"):
        return IMPORT + text.removeprefix(IMPORT + ":")
    if not text.startswith(IMPORT):
        return text
    path = located(text.removeprefix(IMPORT).removesuffix(_CALLED), base)
    split(path)
    return Reference(path, called=text.endswith(_CALLED))


def _tuple(entries: Any, text: Callable[[str], Any]) -> Any:
    if isinstance(entries, list):
        return tuple(_read(part, text) for part in entries)
    if isinstance(entries, Mapping) and set(entries) == {_TUPLE}:
        return {_TUPLE: _read(entries[_TUPLE], text)}
    raise DatasetError(
        f"tuple: {entries!r} must be a list, as in {{tuple: [0, 1]}}; a mapping with this single "
        "key is written {tuple: {tuple: …}}"
    )
