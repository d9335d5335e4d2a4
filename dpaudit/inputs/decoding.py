"""Convert texts of users, in JSON or YAML, to values; find texts that users probably meant as other
values.

YAML reads `None`, `(1, 2)` and `1,000` as strings, although a user who writes them usually means
another value. `check_read` and `refused` find such strings, and explain how to write the value.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from dpaudit.errors import DatasetError
from dpaudit.wording import shortened, shown

_IMPORT = "import:module:name"
# Largest number of characters of a text that is searched for strings meant as another type, such as
# "1" for 1. The search in a longer text would take too long. Every argument of a command is
# shorter: it has at most 131,072 characters.
MAX_CHARACTERS = 200_000
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_NUMBERS = re.compile(rf"{_NUMBER}(?:[\s;|]+{_NUMBER})+")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")
_SPACED = re.compile(r"[-+]?[1-9]\d{0,2}(?:\s\d{3})+(?:\.\d*)?")
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")
_PRODUCT = re.compile(rf"{_NUMBER}(?:\s*\*\*?\s*{_NUMBER})+")
_FRACTION = re.compile(r"\d+\s*/\s*[1-9]\d*")
_FILE = re.compile(r"[^\s:@][^\s:]*\.(?:json|ya?ml|csv|npy)", re.IGNORECASE)
_OBJECT = re.compile(r"[\w/-]+(?:\.[\w/-]+)+:[A-Za-z_]\w*(?:\(\))?")
_OPEN_TUPLE = re.compile(rf"\(\s*(?:{_NUMBER}|[\w\"']+)")
_CALL = re.compile(r"[A-Za-z_][\w.]*\(.*\)", re.DOTALL)
_LIBRARY = re.compile(r"(?:np|numpy|math)\.", re.IGNORECASE)
_WORDS = {
    **dict.fromkeys(("nan", "+nan", "-nan"), ".nan"),
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), ".inf"),
    **dict.fromkeys(("-inf", "-infinity"), "-.inf"),
    **dict.fromkeys(("pd.na", "<na>"), "null"),
    **{word: word for word in ("true", "false")},
}
# Maps words that are Booleans in YAML 1.1 but strings in YAML 1.2, such as `yes`, to the Boolean in
# YAML 1.2. dpaudit reads them as strings, such as the answers of a survey; an error message may
# suggest the Boolean.
_ANSWERS = {**dict.fromkeys(("yes", "on"), "true"), **dict.fromkeys(("no", "off"), "false")}


class MisleadingJson(ValueError):
    """Raised for a JSON text that Python would read wrongly: a key occurs twice, or a number is so
    large that it becomes infinite.

    code: error code, as for a DpauditError.
    """

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
            f"{text} is larger than any float, 1.8e308; write Infinity if that is meant",
            code="number-too-large",
        )
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise MisleadingJson(f"the key {twice!r} is given twice; give it once", code="key-twice")
    return found


def decoded(text: str, name: str, form: Literal["json", "yaml", "either"] = "either") -> Any:
    """Return the value of a text in JSON or YAML. Raises DatasetError if it is invalid.

    name: description of the text, for messages.
    form: format of the text. "either" means JSON if the text is valid JSON, else YAML.
    """
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
    """Raise DatasetError if a text contains a string or a mapping that the user probably meant as
    another value, such as `None` or `nan`. The message explains how to write that value.

    Otherwise, return a warning for each string in the text that is a Boolean in YAML 1.1, such as
    `yes`.

    text: text in the notation of the user.
    value: value that was read from the text.
    in_file: whether the text comes from a file. Texts from a command line may have lost quotes in
    the shell.
    is_dataset: whether the text states a dataset, so that `@name` may stand for a file.
    """
    if len(text) > MAX_CHARACTERS or text.startswith(("@", "import:")) or _is_json(text):
        return []
    # Imported here to save time: the import takes 20 ms, and most texts are JSON.
    from dpaudit.inputs.yaml_values import compose

    node = compose(text)
    quoted = _in_quotes(text, value)
    if quoted is not None:
        raise DatasetError(quoted, code="value-misread")
    wrong = refused(text, value, node, in_file=in_file, is_dataset=is_dataset)
    if wrong:
        raise DatasetError("; ".join(wrong), code="value-misread")
    return doubted(node, in_file=in_file)


def refused(
    text: str, value: Any, node: Any, *, in_file: bool = False, is_dataset: bool = True
) -> list[str]:
    """Return a message for each string or mapping that the user probably meant as another value,
    such as `None` or `nan`.

    text: text in the notation of the user.
    value, node: the content of the text, as a Python value and as a YAML node.
    in_file: whether the text comes from a file; on a command line, the shell may have removed
        quotes.
    is_dataset: whether the text states a dataset, so that `@name` may stand for a file.
    """
    said = _in_python(text.strip(), value, in_file=in_file)
    if said is not None:
        return [said]
    from dpaudit.inputs.yaml_values import empty_keys, plain_texts

    keys_alone = dict.fromkeys(_key_alone(key) for key in empty_keys(node))
    texts, keys = (dict.fromkeys(plain_texts(node, keys=keys)) for keys in (False, True))
    typed = text.strip()
    every = [_in_words(one, in_file=in_file or one != typed) for one in texts]
    every += [_constant(one, in_file=True) for one in keys]
    every += keys_alone
    if typed in texts and not in_file:
        every.append(_named(typed, is_dataset=is_dataset))
    return list(dict.fromkeys(one for one in every if one is not None))


def doubted(node: Any, *, in_file: bool = False) -> list[str]:
    """Return a warning for each string in a YAML node that YAML 1.1 would read as a Boolean, such
    as `yes`.

    in_file: whether the text comes from a file, and not from a command line; the two need different
    quotes.
    """
    from dpaudit.inputs.yaml_values import plain_texts

    quoted = in_file or getattr(node, "id", "") != "scalar"
    return [
        f"{one} is text here; write {_ANSWERS[one.lower()]}, or {_quoted(one, in_file=quoted)} "
        "for the text"
        for one in dict.fromkeys(plain_texts(node))
        if one.lower() in _ANSWERS
    ]


def _is_json(text: str) -> bool:
    try:
        parse_json(text)
    except (ValueError, RecursionError):
        return False
    return True


def _in_python(text: str, value: Any, *, in_file: bool) -> str | None:
    """Return a message if Python and YAML read different values from a text, such as `(1, 2)`; else
    None.

    value: value that YAML reads.
    in_file: whether the text comes from a file, and not from a command line; the two need different
    quotes.
    """
    # Imported here to save time, since most texts are JSON and need no comparison with Python.
    import ast

    name = shortened(text)
    quoted = f", or {_quoted(name, in_file=in_file)} for the text" if value == text else ""
    if value == text and _THOUSANDS.fullmatch(text):
        number = text.replace(",", "")
        return f"{name} is text here; write {number} for the number, [{text}] for a list{quoted}"
    if value == text and _DECIMAL_COMMA.fullmatch(text):
        number, listed = text.replace(",", "."), text.replace(",", ", ")
        return f"{name} is text here; write {number} for the number, [{listed}] for a list{quoted}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SyntaxWarning about invalid Python
            meant = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    if _are_alike(meant, value):
        return None
    read = "text here" if value == text else f"read as {shown(value)}"
    form = _in_yaml(meant)
    if isinstance(meant, set) and isinstance(value, dict):
        return (
            f"{name} is {read}; for a list write {_in_yaml(list(value))}, for a set give {_IMPORT}"
        )
    if form is None:
        return f"{name} is {read}; name what is meant by {_IMPORT}{quoted}"
    if isinstance(meant, tuple) and not text.startswith("("):
        form = f"{_in_yaml(list(meant))}"
    return f"{name} is {read}; write {form}{quoted}"


def _are_alike(meant: Any, value: Any) -> bool:
    """Return whether Python and YAML read the same value from a text. Two strings count as the
    same, since only their quotes differ.

    meant: value that Python reads.
    value: value that YAML reads.
    """
    if isinstance(meant, list) and isinstance(value, list):
        return len(meant) == len(value) and all(map(_are_alike, meant, value))
    if isinstance(meant, Mapping) and isinstance(value, Mapping):
        both = zip([*meant, *meant.values()], [*value, *value.values()], strict=False)
        return len(meant) == len(value) and all(_are_alike(one, other) for one, other in both)
    if isinstance(meant, str) and isinstance(value, str):
        return True
    return type(meant) is type(value) and meant == value


def _in_yaml(value: Any) -> str | None:
    """Return a Python value in the notation of a YAML file, such as `{tuple: [1, 2]}` for (1, 2);
    None if there is no notation for it."""
    if value is None or isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int | float):
        return repr(value) if math.isfinite(value) else f"{'-' * (value < 0)}.inf"
    if isinstance(value, list | tuple):
        parts = list(map(_in_yaml, value))
        if any(one is None for one in parts):
            return None
        listed = f"[{', '.join(map(str, parts))}]"
        return listed if isinstance(value, list) else f"{{tuple: {listed}}}"
    if isinstance(value, dict):
        pairs = [(_in_yaml(key), _in_yaml(part)) for key, part in value.items()]
        if any(None in pair for pair in pairs) or any(isinstance(key, tuple) for key in value):
            return None
        return f"{{{', '.join(f'{key}: {part}' for key, part in pairs)}}}"
    return None


def _quoted(text: str, *, in_file: bool) -> str:
    return f'"{text}"' if in_file else f"'\"{text}\"'"


def _constant(text: str, *, in_file: bool) -> str | None:
    """Return a message for a string that the user probably meant as a constant, such as `None` or
    `nan`; None for any other string.

    in_file: whether the string is in a file. If not, it is on a command line, and the message puts
    the quotes of a text inside further quotes, which the shell removes.
    """
    form = "null" if text == "None" else _WORDS.get(_LIBRARY.sub("", text).lower())
    if form is None:
        return None
    return f"{text} is text here; write {form}, or {_quoted(text, in_file=in_file)} for the text"


def _in_words(text: str, *, in_file: bool) -> str | None:
    """Return a message for a string that the user probably meant as a number or as an expression,
    such as `1/3`; None for any other string."""
    name, quoted = shortened(text), _quoted(text, in_file=in_file)
    said = _constant(text, in_file=in_file)
    if said is not None:
        return said
    if _NUMBERS.fullmatch(text):
        listed = ", ".join(re.split(r"[\s;|]+", text))
        is_spaced = _SPACED.fullmatch(text)  # spaces between thousands
        number = f"{''.join(text.split())} for the number, or " if is_spaced else ""
        return (
            f"{name} is one text here; write {number}commas: [{listed}], or {quoted} for the text"
        )
    if _FRACTION.fullmatch(text):
        over, under = text.split("/")
        return f"{name} is text here; write {int(over) / int(under):.17g}, or {quoted} for the text"
    if _PRODUCT.fullmatch(text):
        return f"{name} is text here; write the number that it is, or {quoted} for the text"
    if _OPEN_TUPLE.fullmatch(text):  # YAML has cut the tuple at its comma
        return f"{name} is text here; write a tuple as {{tuple: [1, 2]}}, or quote the text"
    if _CALL.fullmatch(text):
        return (
            f"{name} is text here, and calls nothing; write its value, or name what makes it, "
            f"import:module:name, or write {quoted} for the text"
        )
    return None


def _key_alone(key: str) -> str:
    """Return a message for a key in braces that has no value, such as `a` in `{a}`. In `{a:1}`, the
    space after the colon is missing, so the key is `a:1`."""
    name, colon, value = key.partition(":")
    if colon:
        return f"{key} is one key here; write a space after the colon: {{{name}: {value}}}"
    return f"{key} is a key without a value here; write {{{key}: null}}, or a list: [{key}]"


def _in_quotes(text: str, value: Any) -> str | None:
    """Return a message for a text that consists of JSON inside single quotes, since some shells do
    not remove these quotes; None for any other text."""
    if not (isinstance(value, str) and text[:1] == text[-1:] == "'"):
        return None
    with suppress(ValueError, RecursionError):
        if isinstance(parse_json(value), list | dict):
            return (
                f"{shortened(text)} is text here, since this shell leaves single quotes; write "
                f'"{shortened(value)}", or {_quoted(value, in_file=False)} for the text'
            )
    return None


def _named(text: str, *, is_dataset: bool) -> str | None:
    """Return a message for a string that looks like the name of a file or of an importable object;
    None for any other string."""
    name, quoted = shortened(text), _quoted(text, in_file=False)
    if is_dataset and _FILE.fullmatch(text):
        return f"{name} is text here; write @{name} for what is in that file, or {quoted}"
    if _OBJECT.fullmatch(text):
        return f"{name} is text here; write import:{name} for what it names, or {quoted}"
    return None


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float)
