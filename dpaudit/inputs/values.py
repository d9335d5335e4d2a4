"""Values as a user writes them in YAML or JSON, where these have no form: tuples, arrays, data
frames and imports.

`{tuple: [0, 1]}` is a tuple, `{array: [0, 1]}` a NumPy array, `{pandas: {age: [36]}}` and
`{polars: {age: [36]}}` are data frames; `{tuple: {tuple: [0, 1]}}` is the mapping
`{tuple: [0, 1]}`, and so for the others. `import:module:name` is what an import path names,
`import::text` the text `import:text`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dpaudit.errors import DatasetError
from dpaudit.import_path import located, resolve, split
from dpaudit.inputs.frames import ARRAYS, FORMS, array, frame
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
                "name an object, or a function that needs no argument",
                code="import-failed",
            ) from error


@dataclass(frozen=True, slots=True, eq=False)
class Inline:
    """An array or a data frame as it is written, made where it is needed: maybe in another process,
    whose Python may have the library.

    form: `array`, `numpy`, `pandas` or `polars`.  data: lists, or a mapping of columns.
    """

    form: str
    data: Any

    def __post_init__(self) -> None:
        """Raise DatasetError for data that the form cannot have."""
        if next(_lazy(self.data), None) is not None:
            raise DatasetError(
                f"{self!r} holds {next(_lazy(self.data))!r}; import the whole object",
                code="import-failed",
            )
        self.value(elsewhere=True)

    def __repr__(self) -> str:
        return f"{{{self.form}: {self.data!r}}}"

    def value(self, *, elsewhere: bool) -> Any:
        """Return the array, or the frame: `Rows` if it is made elsewhere. Raises DatasetError."""
        if self.form in ARRAYS:
            return array(self.data, repr(self))
        return frame(self.data, self.form, repr(self), elsewhere=elsewhere)


def written(value: Any, base: Path | None = None) -> Any:
    """Return what a parsed value stands for: tuples made, import paths as `Reference`, arrays and
    data frames as `Inline`; itself where it has none of them.

    base: where a relative file of an import path is looked for, after the working directory.
    Raises DatasetError, or TargetError for what is no import path.
    """
    return _read(value, partial(_text, base=base)) if _says_more(value) else value


def with_tuples(value: Any) -> Any:
    """Return a parsed value with its tuples, arrays and frames made, and every text as it stands.
    Raises DatasetError."""
    return resolved(_read(value, str))


def _says_more(value: Any) -> bool:
    """Return whether there is something in a value that is not what it stands for."""
    if isinstance(value, str):
        return value.startswith(IMPORT)
    if isinstance(value, Mapping):
        return _form(value) is not None or any(map(_says_more, value.values()))
    return isinstance(value, list) and any(map(_says_more, value))


def _read(value: Any, text: Callable[[str], Any]) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping) and (form := _form(value)) is not None:
        return _made(form, value[form], text)
    if isinstance(value, Mapping):
        return {key: _read(part, text) for key, part in value.items()}
    return [_read(part, text) for part in value] if isinstance(value, list) else value


def resolved(value: Any, *, calls: bool = False, elsewhere: bool = False) -> Any:
    """Return a value with what its references name, and its arrays and frames made; itself where it
    has none of them.

    calls: call what references name, if it is a function.  elsewhere: leave data frames, as `Rows`,
    to the process that the mechanism is in. Raises the errors of `Reference.value` and
    `Inline.value`.
    """
    if next(_lazy(value), None) is None:
        return value
    if isinstance(value, Reference):
        return value.value(calls=calls)
    if isinstance(value, Inline):
        return value.value(elsewhere=elsewhere)
    parts = value.values() if isinstance(value, Mapping) else value
    made = [resolved(part, calls=calls, elsewhere=elsewhere) for part in parts]
    return dict(zip(value, made, strict=True)) if isinstance(value, Mapping) else type(value)(made)


def references(value: Any) -> Iterator[Reference]:
    """Yield the references in a value, of those kinds that a user can write."""
    yield from (one for one in _lazy(value) if isinstance(one, Reference))


def _lazy(value: Any) -> Iterator[Reference | Inline]:
    if type(value) in (Reference, Inline):
        yield value
    elif type(value) in (list, tuple, dict):
        for part in value.values() if type(value) is dict else value:
            yield from _lazy(part)


def _text(text: str, base: Path | None) -> Any:
    if text.startswith(IMPORT + ":"):
        return IMPORT + text.removeprefix(IMPORT + ":")
    if not text.startswith(IMPORT):
        return text
    path = located(text.removeprefix(IMPORT).removesuffix(_CALLED), base)
    split(path)
    return Reference(path, called=text.endswith(_CALLED))


def _form(value: Mapping[Any, Any]) -> str | None:
    """Return which value a mapping with a single key stands for."""
    key = next(iter(value)) if len(value) == 1 else None
    return key if key in (_TUPLE, *FORMS) else None


def _made(form: str, data: Any, text: Callable[[str], Any]) -> Any:
    """Return the value of a form. Raises DatasetError."""
    if isinstance(data, Mapping) and set(data) == {form}:
        return {form: _read(data[form], text)}
    if form != _TUPLE:
        return Inline(form, _read(data, text))
    if isinstance(data, list):
        return tuple(_read(part, text) for part in data)
    raise DatasetError(
        f"tuple: {data!r} must be a list, as in {{tuple: [0, 1]}}; a mapping with this single "
        "key is written {tuple: {tuple: …}}",
        code="value-malformed",
    )
