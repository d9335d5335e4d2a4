"""Result files: audits as JSON, with the evidence from which readers can recompute every number.

`audits` has one entry for each audit, with the fields of `AuditResult`. In an entry,
`ending.certificates` has the certificates, and their `evidence` all draws by level and input. An
entry also repeats numbers that follow from its certificates: `verdict`, `epsilon_lower`,
`delta_lower`, `p_value`, `draws`, and `event`, the leading event of the deciding pair.

`count` is the number of audits. `digest`, the SHA-256 of `version`, `planned`, `not_run` and the
audits, shows accidental changes. `planned` is the planned number of audits, if the run has not
ended; `not_run` names the audits that were left out because a failure stopped the run. JSON has no
infinite numbers: they are the texts `Infinity`, `-Infinity` and `NaN`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, get_args

import msgspec
import numpy as np

from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.claims import DEFINITIONS, PrivacyClaim, make_claim
from dpaudit.claims.registry import described
from dpaudit.errors import ClaimError, DpauditError, UsageError
from dpaudit.inputs.decoding import MisleadingJson, parse_json
from dpaudit.reports.events import leading_event
from dpaudit.wording import shown

# Format of result files. It changes whenever a field is added, removed or changed in meaning.
VERSION = 1
ID = f"urn:dpaudit:result:{VERSION}"

_SPECIAL = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
# Put before a text of the user that looks like a special number or like bytes, where no type tells
# them apart.
_ESCAPE = "'"
# Bytes of untyped values are written as this prefix and their hex digits.
_BYTES = "bytes:"
_DERIVED = ("verdict", "epsilon_lower", "delta_lower", "p_value", "draws")
_AGAIN = "run the audit again, or continue it from its journal: --journal DIR --resume"


class ContradictoryFile(DpauditError):
    """Raised if the numbers in a file of results do not follow from its own certificates."""

    code = "results-contradictory"


class Document(NamedTuple):
    """The content of a file of results, with the results of the audits that ended."""

    results: list[AuditResult]
    planned: int
    not_run: tuple[str, ...]


def entry(result: AuditResult) -> str:
    """Return the JSON of one audit, in one line."""
    return json.dumps(fields_of(result), ensure_ascii=False, allow_nan=False)


def document(entries: Sequence[str], planned: int, not_run: Sequence[str] = ()) -> str:
    """Return a file of results, as strict JSON."""
    fields: dict[str, Any] = {"version": VERSION, "count": len(entries)}
    if planned > len(entries):
        fields["planned"] = planned
    if not_run:
        fields["not_run"] = list(not_run)
    fields["digest"] = digest({**fields, "audits": [json.loads(text) for text in entries]})
    head = "".join(f'"{name}": {json.dumps(value)},\n' for name, value in fields.items())
    body = ",\n".join(entries)
    text = f'{{{head}"audits": [\n{body}\n]}}\n'
    # The message of an exception may contain a lone surrogate, which UTF-8 cannot encode. Its
    # escape is valid JSON.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the version, the plan and the audits of a document."""
    covered = {key: document.get(key) for key in ("version", "planned", "not_run", "audits")}
    text = json.dumps(covered, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"


def read_document(text: str) -> Document:
    """Return the content of a file of results. Raises UsageError if the text is no file of results,
    is damaged, has no audits, or has another version. Raises ContradictoryFile if an audit is
    missing, was changed, or does not follow from its own certificates."""
    document = _document(text)
    audits = document["audits"]
    if not isinstance(audits, list):
        raise _damaged("audits must be a list")
    if document.get("count") != len(audits):
        raise ContradictoryFile(
            f"the file states {document.get('count')!r} audits and has {len(audits)}; it was "
            "changed"
        )
    if document.get("digest") != digest(document):
        raise ContradictoryFile("the digest does not fit the audits; the file was changed")
    if not audits:
        raise UsageError(
            "the file has no audits to recheck, because the run that wrote it did not end; run it "
            "again",
            code="results-damaged",
        )
    results = [_result(audit, f"audits[{index}]") for index, audit in enumerate(audits)]
    not_run, planned = document.get("not_run", []), document.get("planned", len(audits))
    if not (isinstance(not_run, list) and all(isinstance(name, str) for name in not_run)):
        raise _damaged(f"not_run={not_run!r} must be a list of names")
    if type(planned) is not int or planned < len(audits) + len(not_run):
        raise _damaged(f"planned={planned!r} must be a number, at least that of the audits")
    return Document(results, planned, tuple(not_run))


def plain(value: Any, *, typed: bool = True) -> Any:
    """Return a value of a result as dicts, lists, texts, finite numbers, Booleans and None.
    Infinite numbers and NaN become texts, such as "NaN". Unless `typed`, equal texts of the user
    are escaped; if `typed`, the type of the field shows which is meant."""
    # The most frequent types come first, since a result has a hundred thousand values.
    kind = type(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if math.isfinite(value) else _name(value)
    if kind is str:
        return _ESCAPE + value if not typed and _is_marked(value) else value
    if kind is bytes:
        return _BYTES + value.hex()
    if isinstance(value, list | tuple):
        return [plain(part, typed=typed) for part in value]
    if isinstance(value, PrivacyClaim):
        return {"definition": value.key, **plain(value.parameters())}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(part, typed=typed) for key, part in value.items()}
    if isinstance(value, msgspec.Struct):
        info: Any = value.__struct_config__
        fields = {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        return {info.tag_field: info.tag, **fields}
    if dataclasses.is_dataclass(value):
        return {
            field.name: plain(getattr(value, field.name), typed="Any" not in str(field.type))
            for field in dataclasses.fields(value)
        }
    if hasattr(value, "tolist"):  # a NumPy array or number
        return plain(value.tolist(), typed=typed)
    return str(value) if isinstance(value, str) else value


def _is_marked(text: str) -> bool:
    plain_text = text.lstrip(_ESCAPE)
    return plain_text in _SPECIAL or plain_text.startswith(_BYTES)


def _name(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _unescaped(value: Any) -> Any:
    """Return an untyped value that `plain` converts to `value`, with tuples in place of lists."""
    if isinstance(value, dict):
        return {key: _unescaped(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return tuple(map(_unescaped, value))
    if isinstance(value, str) and _is_marked(value):
        if value.startswith(_ESCAPE):
            return value[1:]
        if value.startswith(_BYTES):
            return bytes.fromhex(value.removeprefix(_BYTES))
    return _SPECIAL.get(value, value) if isinstance(value, str) else value


def fields_of(result: AuditResult) -> dict[str, Any]:
    """Return the entry of an audit in a file of results."""
    certificate = result.decisive
    event = (
        leading_event(certificate)
        if isinstance(certificate, Certificate)
        else getattr(certificate, "event", None)
    )
    derived = {name: plain(getattr(result, name)) for name in _DERIVED}
    derived["event"] = None if event is None else event.words
    fields = plain(result)
    return {"name": fields["name"], **derived, **fields}


def _document(text: str) -> dict[str, Any]:
    """Return the JSON object in `text`. Raises UsageError if it cannot be a file of results."""
    if not text.strip():
        raise UsageError(
            "the file is empty; name a file that dpaudit run --json wrote", code="file-empty"
        )
    try:
        document = parse_json(text)
    except MisleadingJson as error:
        raise _damaged(str(error)) from None
    except ValueError as error:
        if not text.lstrip().startswith("{"):  # every result file is a JSON object
            raise UsageError(
                "this is no result file; name a file that dpaudit run --json wrote",
                code="not-results",
            ) from None
        raise UsageError(
            f"not a JSON document, or cut short: {error}; {_AGAIN}", code="results-damaged"
        ) from None
    except RecursionError:
        raise UsageError(
            "not a result of dpaudit run --json: the JSON is nested too deeply", code="not-results"
        ) from None
    if not isinstance(document, dict) or not {"version", "audits"} <= document.keys():
        raise UsageError(
            "not a result of dpaudit run --json: the keys version and audits are missing",
            code="not-results",
        )
    version = document["version"]
    if type(version) is not int or version != VERSION:
        raise UsageError(
            f"version={version!r} cannot be read: this dpaudit reads version {VERSION}; run the "
            "audit again",
            code="results-version",
        )
    return document


def _damaged(why: str) -> UsageError:
    return UsageError(f"the results are damaged: {why}", code="results-damaged")


def _result(audit: Any, path: str) -> AuditResult:
    """Return the result that `audit` describes. Raise ContradictoryFile if it describes none."""
    try:
        fields = {key: audit[key] for key in audit if key not in (*_DERIVED, "event")}
        # strict=False reads the names of special numbers where a number is declared.
        result: AuditResult = msgspec.convert(fields, AuditResult, strict=False, dec_hook=_decoded)
    except TypeError:
        raise _damaged(f"{path} must be a mapping, not {shown(audit)}") from None
    except msgspec.ValidationError as error:
        raise _damaged(str(error).replace("`$", f"`{path}")) from None
    if result.searched is not None:
        pairs, unsettled = map(_unescaped, (result.searched.found, result.searched.unsettled))
        searched = dataclasses.replace(result.searched, found=pairs, unsettled=unsettled)
        result = dataclasses.replace(result, searched=searched)
    for name, recorded, computed in _differences(path, audit, fields_of(result)):
        raise ContradictoryFile(
            f"{name} is {recorded}, but the audit gives {computed}; the file was changed"
        )
    return result


def _decoded(kind: Any, value: Any) -> Any:
    """Return a claim or an array from its JSON value. msgspec calls this function."""
    if kind is PrivacyClaim:
        parameters = dict(value) if isinstance(value, dict) else {}
        definition = parameters.pop("definition", None)
        if not isinstance(definition, str) or definition not in DEFINITIONS:
            raise ValueError(f"definition must be one of {', '.join(DEFINITIONS)}")
        try:
            return make_claim({key: _special(part) for key, part in parameters.items()}, definition)
        except ClaimError as error:
            raise ValueError(str(error)) from None
    (dtype,) = get_args(get_args(kind)[1])
    return np.array(value, dtype=dtype)


def _special(value: Any) -> Any:
    return _SPECIAL.get(value, value) if isinstance(value, str) else value


def _differences(path: str, recorded: Any, computed: Any) -> Any:
    """Yield (path, recorded value, computed value) for each difference of two JSON values."""
    if isinstance(recorded, dict) and isinstance(computed, dict):
        for key in dict.fromkeys([*computed, *recorded]):
            field = f"{path}.{key}"
            if key not in recorded:
                yield field, "missing", shown(computed[key])
            elif key not in computed:
                yield field, shown(recorded[key]), "no such field"
            else:
                yield from _differences(field, recorded[key], computed[key])
    elif isinstance(recorded, list) and isinstance(computed, list):
        if len(recorded) != len(computed):
            yield path, f"{len(recorded)} long", f"{len(computed)} entries"
        for index, values in enumerate(zip(recorded, computed, strict=False)):
            yield from _differences(f"{path}[{index}]", *values)
    elif recorded != computed:
        yield path, shown(recorded), shown(computed)


def schema() -> dict[str, Any]:
    """Return the JSON schema (2020-12) of result files.

    Every field must be present, and no other, so that a misspelt name is an error. Only the
    document itself may have more fields, so that others can add facts about a run. A schema checks
    the form; `dpaudit report` checks that the numbers follow from the draws.
    """
    generated = msgspec.json.schema(AuditResult, schema_hook=_schema_of)
    definitions = {name: _strict(part) for name, part in generated["$defs"].items()}
    number, text = {"$ref": "#/$defs/number"}, {"type": "string"}
    text_or_none = {"anyOf": [text, {"type": "null"}]}
    definitions["number"] = {"anyOf": [{"type": "number"}, {"enum": list(_SPECIAL)}]}
    derived = {
        "verdict": {"enum": [verdict.value for verdict in Verdict]},
        **dict.fromkeys(("epsilon_lower", "delta_lower"), number),
        "p_value": {"type": "number", "minimum": 0, "maximum": 1},
        "draws": {"type": "integer"},
        "event": text_or_none,
    }
    audit = definitions["AuditResult"]
    audit["properties"] |= derived
    audit["required"] = list(audit["properties"])
    counts = {"type": "integer", "minimum": 0}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": f"Results of dpaudit, version {VERSION}",
        "description": "Written by dpaudit run --json, and rechecked by dpaudit report.",
        "type": "object",
        "properties": {
            "version": {"const": VERSION},
            "count": counts,
            "planned": counts,
            "not_run": {"type": "array", "items": text},
            "digest": {**text, "pattern": "^sha256:[0-9a-f]{64}$"},
            "audits": {"type": "array", "items": {"$ref": "#/$defs/AuditResult"}},
        },
        "required": ["version", "count", "digest", "audits"],
        "$defs": dict(sorted(definitions.items())),
    }


def _strict(part: Any) -> Any:
    """Return a part of a schema whose objects have all their fields and no others."""
    if isinstance(part, list):
        return list(map(_strict, part))
    if not isinstance(part, dict):
        return part
    if part.get("type") == "number":
        return {"$ref": "#/$defs/number"}
    strict = {key: _strict(value) for key, value in part.items() if key != "default"}
    if "properties" in strict:
        strict["properties"] = {key: _strict(value) for key, value in part["properties"].items()}
        is_claim = "definition" in part["properties"]
        strict["required"] = part["required"] if is_claim else list(part["properties"])
        strict["additionalProperties"] = False
    return strict


def _schema_of(kind: Any) -> dict[str, Any]:
    if kind is not PrivacyClaim:  # an array
        number = {"type": "array", "items": {"type": "number"}}
        return {"type": "array", "items": number}
    pairs = {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}
    forms = {"number": {"type": "number"}, "function": pairs, "table": pairs}
    kinds = []
    for key, definition in DEFINITIONS.items():
        values = {
            name: forms.get(parameter.forms[0], {"type": "string"})
            for name, parameter in described(key).items()
        }
        required = ["definition", *(name for name in values if name != "adversary")]
        properties = {"definition": {"const": key}, **values}
        kind = {"type": "object", "title": definition.title, "properties": properties}
        kinds.append({**kind, "required": required, "additionalProperties": False})
    return {"oneOf": kinds}
