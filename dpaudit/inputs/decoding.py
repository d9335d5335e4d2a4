"""Convert texts of users, in JSON or YAML, to values, and refuse texts that look like other values.
YAML reads `None`, `(1, 2)` and `1,000` as strings, although a user who writes them usually means
another value."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Mapping
from typing import Any, Literal

from dpaudit.errors import DatasetError
from dpaudit.wording import shortened, shown

# Largest number of characters of a text that is searched for strings meant as another type, such as
# "1" for 1. The search in a longer text would take too long. Every argument of a command is
# shorter: it has at most 131,072 characters.
MAX_CHARACTERS = 200_000
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
# A whole text that YAML reads as a string: a number with separated thousands or a decimal comma.
_COMMAS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?|[-+]?\d+,\d+")
# A string that looks like numbers, a fraction, a product, the beginning of a tuple, or a call.
_EXPRESSION = re.compile(
    rf"{_NUMBER}(?:[\s;|]+{_NUMBER})+|\d+\s*/\s*[1-9]\d*|{_NUMBER}(?:\s*\*\*?\s*{_NUMBER})+"
    rf"|\(\s*(?:{_NUMBER}|[\w\"']+)|[A-Za-z_][\w.]*\((?s:.*)\)"
)
_FILE = re.compile(r"[^\s:@][^\s:]*\.(?:json|ya?ml|csv|npy)", re.IGNORECASE)
_OBJECT = re.compile(r"[\w/-]+(?:\.[\w/-]+)+:[A-Za-z_]\w*(?:\(\))?")
_LIBRARY = re.compile(r"(?:np|numpy|math)\.", re.IGNORECASE)
_CONSTANTS = {
    **dict.fromkeys(("nan", "+nan", "-nan"), ".nan"),
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), ".inf"),
    **dict.fromkeys(("-inf", "-infinity"), "-.inf"),
    **dict.fromkeys(("pd.na", "<na>"), "null"),
    **{word: word for word in ("true", "false")},
}
# Maps words that are Booleans in YAML 1.1 but strings in YAML 1.2, such as `yes`, to the Boolean in
# YAML 1.2. dpaudit reads them as strings, such as the answers of a survey, with a warning.
_ANSWERS = {**dict.fromkeys(("yes", "on"), "true"), **dict.fromkeys(("no", "off"), "false")}


class MisleadingJson(ValueError):
    """Raised for a JSON text that Python would read wrongly. Either a key occurs twice, or a number
    is so large that it becomes infinite."""

    def __init__(self, message: str, *, code: str = "value-malformed") -> None:
        super().__init__(message)
        self.code = code


def parse_json(text: str) -> Any:
    """Return the value of a JSON text. Raises MisleadingJson for a repeated key or a number larger
    than any float, and ValueError for invalid JSON."""
    return _DECODER.decode(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise MisleadingJson(
            f"{text} is larger than any float, 1.8e308; write Infinity",
            code="number-too-large",
        )
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise MisleadingJson(f"the key {twice!r} is given twice; give it once", code="key-twice")
    return mapping


def decoded(text: str, name: str, form: Literal["json", "yaml", "either"] = "either") -> Any:
    """Return the value of a text in JSON or YAML. With "either", a text that is not valid JSON is
    read as YAML. Raises DatasetError, with the name of the text, if it is invalid."""
    if form != "yaml":
        try:
            return parse_json(text)
        except MisleadingJson as error:
            raise DatasetError(f"{name} cannot be read: {error}", code=error.code) from None
        except RecursionError:
            raise DatasetError(
                f"{name} is nested too deeply, with hundreds of levels of lists; make it flatter",
                code="nested-too-deeply",
            ) from None
        except ValueError as error:
            if form == "json":
                why = f"{name} is not valid JSON: {error}"
                raise DatasetError(why, code="file-malformed") from None
    # Imported here to save time: the import takes 20 ms, and most texts are JSON.
    from dpaudit.inputs.yaml_values import YamlError, parse_yaml

    try:
        return parse_yaml(text)
    except YamlError as error:
        line = "" if error.line is None else f" (line {error.line})"
        words = str(error).removeprefix("not valid YAML: ")
        why = f"{name} is neither JSON nor plain YAML: {words}{line}"
        raise DatasetError(why, code=error.code) from None


def check_read(
    text: str, value: Any, *, in_file: bool = False, is_dataset: bool = True
) -> list[str]:
    """Raise DatasetError if `refused` finds a string or a mapping that looks like another value.
    Return the warnings of `doubted`. `value` is the value of the text."""
    if len(text) > MAX_CHARACTERS or text.startswith(("@", "import:")) or _is_json(text):
        return []
    # Imported here to save time: the import takes 20 ms, and most texts are JSON.
    from dpaudit.inputs.yaml_values import compose

    node = compose(text)
    wrong = refused(text, value, node, in_file=in_file, is_dataset=is_dataset)
    if wrong:
        raise DatasetError("; ".join(wrong), code="value-misread")
    return doubted(node, in_file=in_file)


def refused(
    text: str, value: Any, node: Any, *, in_file: bool = False, is_dataset: bool = True
) -> list[str]:
    """Return a message for each string or mapping in a text that looks like another value, such as
    the string `None` or `nan`. `value` and `node` are the content of the text, as a Python value
    and as a YAML node.

    in_file: whether the text comes from a file. On a command line, the shell may have removed
        quotes.
    is_dataset: whether the text states a dataset, so that `@name` may stand for a file.
    """
    from dpaudit.inputs.yaml_values import empty_keys, plain_texts

    typed = text.strip()
    texts, keys = (dict.fromkeys(plain_texts(node, keys=keys)) for keys in (False, True))
    messages = [
        _message(scalar, in_file=in_file or scalar != typed)
        for scalar in texts
        if _is_doubtful(scalar)
    ]
    messages += [_message(key, in_file=True) for key in keys if _constant(key)]
    for key in dict.fromkeys(empty_keys(node)):
        messages.append(f"{key} is a key without a value here; write {{{key}: null}}")
    if typed in texts and not in_file:
        form = f"import:{typed}" if _OBJECT.fullmatch(typed) else None
        form = f"@{typed}" if is_dataset and _FILE.fullmatch(typed) else form
        messages += [_message(typed, form, in_file=False)] if form else []
    if not messages and _differs_in_python(typed, value):
        read = "text here" if value == typed else f"read as {shown(value)}"
        messages.append(_message(typed, read=read, in_file=in_file))
    return messages


def doubted(node: Any, *, in_file: bool = False) -> list[str]:
    """Return a warning for each string in a YAML node that YAML 1.1 would read as a Boolean, such
    as `yes`. `in_file` decides which quotes the warning recommends."""
    from dpaudit.inputs.yaml_values import plain_texts

    is_in_file = in_file or getattr(node, "id", "") != "scalar"
    return [
        _message(word, _ANSWERS[word.lower()], in_file=is_in_file)
        for word in dict.fromkeys(plain_texts(node))
        if word.lower() in _ANSWERS
    ]


def _is_json(text: str) -> bool:
    try:
        parse_json(text)
    except (ValueError, RecursionError):
        return False
    return True


def _message(text: str, form: str | None = None, *, read: str = "text here", in_file: bool) -> str:
    """Return the message for a text that looks like another value; `form` is how to write that."""
    notation = "a tuple as {tuple: [1, 2]}" if text.startswith("(") else "its value in JSON or YAML"
    form = form or _constant(text) or notation
    name = shortened(text)
    if read != "text here":
        return f"{name} is {read}; write {form}"
    quoted = f'"{name}"' if in_file else f"'\"{name}\"'"
    return f"{name} is {read}; write {form}, or {quoted} for the text"


def _is_doubtful(text: str) -> bool:
    return _constant(text) is not None or _EXPRESSION.fullmatch(text) is not None


def _constant(text: str) -> str | None:
    """Return how YAML writes a constant, such as `None` or `nan`. Return None for other strings."""
    return "null" if text == "None" else _CONSTANTS.get(_LIBRARY.sub("", text).lower())


def _differs_in_python(text: str, value: Any) -> bool:
    """Return whether Python reads a text as another value than YAML does, as it does `(1, 2)`."""
    # Imported here to save time, since most texts are JSON and need no comparison with Python.
    import ast

    if value == text and _COMMAS.fullmatch(text):
        return True
    if text[:1] == text[-1:] == "'" and isinstance(value, str):  # some shells leave these quotes
        return value[:1] in ("[", "{") and _is_json(value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SyntaxWarning about invalid Python
            meant = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False
    return not _are_alike(meant, value)


def _are_alike(meant: Any, value: Any) -> bool:
    """Return whether two values are the same. Two strings always count as the same."""
    if isinstance(meant, list) and isinstance(value, list):
        return len(meant) == len(value) and all(map(_are_alike, meant, value))
    if isinstance(meant, Mapping) and isinstance(value, Mapping):
        parts = zip([*meant, *meant.values()], [*value, *value.values()], strict=False)
        return len(meant) == len(value) and all(_are_alike(*pair) for pair in parts)
    if isinstance(meant, str) and isinstance(value, str):
        return True
    return type(meant) is type(value) and meant == value


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float)
