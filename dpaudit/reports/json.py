"""Result files: audits as JSON, with all draws, so that readers can recompute every number.

History of the format (`version`); versions 1 to 4 are not read:

5   `count` is the number of audits, and `digest` their SHA-256, so that accidental changes show.
    `planned` is the planned number of audits, if the run has not ended. `audits` has one entry for
    each audit: the fields of `AuditResult`, and numbers that follow from them (`epsilon_lower`,
    `delta_lower`, `p_value`, `draws`, and `event`, the leading event of the deciding pair).
    `certificates` has one entry for each pair. The `blocks` of the audit hold the draws by level
    and input, in order; `certificate` names the pair of a block. `exact` replaces `certificates` in
    an exact audit, with the laws of each pair. JSON has no infinite numbers: they are the strings
    `Infinity`, `-Infinity` and `NaN`.
6   A certificate tests up to three rules, each at its own share of the error probability: `fixed`
    is the rule that is shown, `others` are the rest. Each rule has `kind`, `share`, `attack` and
    `guesses`; the last two were fields of the certificate before. `detectable_rare` is the smallest
    probability of an output of only one input that would have been refuted. `point` belongs to the
    shown rule; a rule of a curve may test another `point`. `wealth` and `epsilon_betting` belong to
    `bet_against`, or to `point` if that is null.
7   `digest` covers `version`, `planned` and `not_run` in addition to the audits. The settings of a
    `request` have the `name` of the audit and, if given, `expect`, so that a rerun compares both.
    `strict` of an audit: whether a warning fails it. `not_run` of the document: names of the audits
    that were not run because a failure stopped the run. `redrawn` of a certificate: the number of
    new processes, and of their draws, with which a refutation was compared, and the reason for
    fewer than eight; null without a comparison. `first_version` of an audit: the version of its
    first file, if that is older; before 6, its `detectable_rare` is null. `beyond` of `searched`: a
    pair outside the space that seems to leak and decides nothing; null without one. `error_code`:
    the kind of an error (docs/errors.md); null without an error. `one_run` has the `method` of its
    test, `mu_lower`, and the `scores` of its canaries, null if only guesses were given.
8   `detectable_epsilon` is larger, or infinite, for a rule that guesses the same input at more than
    half of the draws (docs/method.md §8). `audited` of a leader of `searched`: whether it was
    audited; false before. `more_beyond` of `searched`: pairs like `beyond`, of other kinds.
    `tests` of `one_run`: one for each number of guesses, in place of `guesses`, `correct` and
    `method`; files of older versions with `one_run` are not read.
    `interrupted` of an audit that a signal ended: the planned number of pairs.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dpaudit.certificates.certificate import Certificate, ExactCertificate
from dpaudit.certificates.one_run import OneRunCertificate
from dpaudit.certificates.result import (
    AuditResult,
    Canaries,
    Ending,
    Exact,
    Failed,
    Interrupted,
    Recorded,
    Sampled,
    Verdict,
)
from dpaudit.errors import DpauditError, UsageError
from dpaudit.inputs.decoding import MisleadingJson, parse_json
from dpaudit.reports.findings import leading_event
from dpaudit.reports.records import (
    DamagedRecord,
    decode,
    decode_record,
    encode,
    encode_record,
)

VERSION = 8
# Oldest version of the format that can be read.
OLDEST = 5
# First version of the format in which a certificate can have several rules.
_VERSION_WITH_RULES = 6
# First version of the format in which the digest of a file also covers the fields `version`,
# `planned` and `not_run`, and in which the settings in an audit's field `request` contain its name.
_VERSION_WITH_FULL_DIGEST = 7

# Fields that every audit, and every certificate, of a file must have. A file without one of them is
# refused: otherwise someone could remove the field to prevent its check.
_OF_AUDITS = ("request", "source", "command", "family", "searched", "trace")
_OF_CERTIFICATES = ("schedule", "adjacency", "notes", "first_failures", "divergence", "unseen")

# Fields of a certificate, in the order of the file. Its blocks of draws are stored with the audit.
CERTIFICATE = (
    *("pair", "point", "refuted", "draws", "budget", "refuted_after", "alpha", "alpha_betting"),
    *("wealth", "epsilon_betting", "epsilon_lower", "delta_lower", "p_value", "fixed", "failures"),
    *("reproducible", "rounds", "warnings", "interval", "recording", "ignored", "attacks"),
    *("scores", "schedule", "first_failures", "adjacency", "notes", "divergence", "unseen"),
    *("others", "detectable_rare", "bet_against", "redrawn"),
    "divergence_bets",
)
_DERIVED = ("epsilon_lower", "delta_lower", "p_value", "draws")


# One shared encoder: making an encoder takes longer than encoding one of the many values.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


class ContradictoryFile(DpauditError):
    """Raised if the numbers in a file of results do not follow from its own certificates."""

    code = "results-contradictory"


class Entry(NamedTuple):
    """One audit in a file of results.

    lines: the indented JSON text that is written to the file.
    digested: the canonical JSON text from which the SHA-256 digest of the file is computed.
    """

    lines: str
    digested: str


def entry(result: AuditResult) -> Entry:
    """Return the `Entry` (text in a file of results) of one audit."""
    audit = fields_of(result)
    return Entry("\n".join(f"    {line}" for line in _lines(audit)), _canonical(audit))


class Planned(int):
    """The planned number of audits, as an int.

    not_run: names of the audits that were not run because the run stopped early.
    """

    not_run: tuple[str, ...] = ()


def document(entries: Sequence[Entry], planned: int, not_run: Sequence[str] = ()) -> str:
    """Return a file of results as strict JSON, without NaN and infinities.

    planned: number of audits of a complete run.
    not_run: names of the audits that were not run because the run stopped early.
    """
    lines = ",\n".join(one.lines for one in entries)
    fields: dict[str, Any] = {"version": VERSION, "count": len(entries)}
    if planned > len(entries):
        fields["planned"] = planned
    if not_run:
        fields["not_run"] = list(not_run)
    fields["digest"] = _digest(fields, [one.digested for one in entries])
    head = "".join(f'  "{name}": {json.dumps(value)},\n' for name, value in fields.items())
    audits = f"[\n{lines}\n  ]" if entries else "[]"
    text = f'{{\n{head}  "audits": {audits}\n}}\n'
    # The message of an exception may contain a lone surrogate (half of a character), which UTF-8
    # cannot encode. Its escape is valid JSON.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def read_document(text: str) -> tuple[list[AuditResult], Planned]:
    """Return the results in the text of a file of results, and the planned number of audits.

    Raises UsageError if the text is not a file of results, is damaged, has no audits, or has a
    version that cannot be read. Raises ContradictoryFile if an audit is missing, was changed, or
    does not follow from its own certificates.
    """
    try:
        audits, planned = _audits(text)
        results = [_result(audit, f"audits[{place}]") for place, audit in enumerate(audits)]
        return results, planned
    except DamagedRecord as error:
        raise UsageError(f"the results are damaged: {error}", code="results-damaged") from None


def fields_of(result: AuditResult) -> dict[str, Any]:
    fields = _with_ending(result)
    first = {"name": result.name, "verdict": result.verdict.value, "claim": fields["claim"]}
    blocks = [
        {"certificate": place, **encode(block)}
        for place, certificate in enumerate(result.certificates)
        for block in certificate.blocks
    ]
    return {**first, **_derived(result), **fields, "blocks": blocks}


def _with_ending(result: AuditResult) -> dict[str, Any]:
    """Return the fields of a result as JSON values.

    The field `ending` is replaced by the fields that it contains, such as `certificates`. The
    blocks of draws are left out of the certificates.
    """
    encoded = encode_record(result, without="ending")
    fields: dict[str, Any] = {}
    canaries = result.ending.deciding if isinstance(result.ending, Canaries) else None
    for key in [one.name for one in dataclasses.fields(result)]:
        if key == "ending":
            fields["certificates"] = [
                {name: values[name] for name in CERTIFICATE}
                for values in map(encode_record, result.certificates)
            ]
        else:
            fields[key] = encoded[key]
        if key == "warnings":
            exact = result.ending.certificates if isinstance(result.ending, Exact) else []
            fields |= {"error": result.error, "error_code": result.error_code}
            fields |= {"exact": encode(exact), "one_run": encode(canaries)}
            if isinstance(result.ending, Interrupted):
                fields["interrupted"] = result.ending.pairs
    return fields


def _ending(fields: dict[str, Any], verdict: Verdict, path: str) -> Ending:
    """Return the `Ending` of a recorded result: its certificates, or its error. Remove the fields
    that it is made of (`certificates`, `exact`, `one_run`, `error`, `error_code`) from `fields`.

    fields, verdict: all fields of the result, and its verdict.
    path: place of the result in the file, such as `audits[0]`, for messages.
    """
    drawn = decode(tuple[Certificate, ...], fields.pop("certificates"), f"{path}.certificates")
    exact = decode(tuple[ExactCertificate, ...], fields.pop("exact", []), f"{path}.exact")
    canaries = decode(OneRunCertificate | None, fields.pop("one_run", None), f"{path}.one_run")
    error = decode(str | None, fields.pop("error", None), f"{path}.error")
    code = decode(str | None, fields.pop("error_code", None), f"{path}.error_code")
    if error is None and code is not None:
        raise DamagedRecord(f"{path}: an error_code belongs to an error")
    pairs = decode(int | None, fields.pop("interrupted", None), f"{path}.interrupted")
    complete = drawn if pairs is None else drawn[:-1]
    if any(certificate.is_interrupted for certificate in complete):
        raise DamagedRecord(f"{path}: only the last pair of an interrupted audit is incomplete")
    if pairs is not None and (error is not None or not 1 <= len(drawn) <= pairs):
        raise DamagedRecord(f"{path}: an interrupted audit of {pairs} pairs has 1 to {pairs}")
    kinds = [bool(drawn), bool(exact), canaries is not None]
    if (verdict is Verdict.ERROR) != (error is not None):
        raise DamagedRecord(f"{path}: an error belongs to the verdict ERROR, and to no other")
    if sum(kinds) > 1 or (error is None and not any(kinds)):
        raise DamagedRecord(f"{path} must have certificates of one kind: drawn, exact or one_run")
    recorded = {one.recording is not None for one in drawn}
    if recorded != {one.fixed.stage == "recorded" for one in drawn} or len(recorded) > 1:
        raise DamagedRecord(f"{path}: a recording belongs to the stage recorded, and to no other")
    if error is not None:
        return Failed(error, drawn, code)
    if exact:
        return Exact(exact)
    if canaries is not None:
        return Canaries((canaries,))
    if pairs is not None:
        return Interrupted(drawn, pairs=pairs)
    return Recorded(drawn) if recorded == {True} else Sampled(drawn)


def _derived(result: AuditResult) -> dict[str, Any]:
    """Return numbers, such as `epsilon_lower`, that could be computed from the certificates. The
    file contains them so that readers need not."""
    one = result.decisive
    event = leading_event(one) if isinstance(one, Certificate) else getattr(one, "event", None)
    numbers = {name: encode(getattr(result, name)) for name in _DERIVED}
    return {**numbers, "event": None if event is None else event.words}


def _lines(value: Any) -> Iterator[str]:
    """Yield the lines of a value in JSON. Each field has its own line; a list of numbers, such as
    counts, stays on one line."""
    if not _is_deep(value):
        yield _ENCODER.encode(value)
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    items = list(value.items() if isinstance(value, dict) else ((None, one) for one in value))
    yield opening
    for place, (key, part) in enumerate(items):
        name = "" if key is None else f"{_ENCODER.encode(key)}: "
        lines = list(_lines(part))
        lines[-1] += "," if place < len(items) - 1 else ""
        yield f"  {name}{lines[0]}"
        yield from (f"  {line}" for line in lines[1:])
    yield closing


def _is_deep(value: Any) -> bool:
    """Return whether a value is written on several lines. True for a list of dicts, and for a dict
    that has more than four entries or contains a list or a dict."""
    if isinstance(value, dict):
        return len(value) > 4 or any(isinstance(one, dict | list) for one in value.values())
    return isinstance(value, list) and any(isinstance(one, dict) for one in value)


_AGAIN = "run the audit again, or continue it from its journal: --journal DIR --resume"


def _document(text: str) -> dict[str, Any]:
    """Return the JSON object in `text`. Raises UsageError if it cannot be a file of results."""
    if not text.strip():
        raise UsageError(
            "the file is empty; name a file that dpaudit run --json wrote", code="file-empty"
        )
    try:
        document = parse_json(text)
    except MisleadingJson as error:
        raise UsageError(f"the results are damaged: {error}", code="results-damaged") from None
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
    if type(version) is not int or version < OLDEST:
        raise UsageError(
            f"version={version!r} cannot be read: this dpaudit reads versions {OLDEST} to "
            f"{VERSION}; run the audit again",
            code="results-version",
        )
    if version > VERSION:
        raise UsageError(
            f"version={version} was written by a newer dpaudit; this one reads up to {VERSION}: "
            "upgrade it",
            code="results-version",
        )
    return document


def _audits(text: str) -> tuple[list[Any], Planned]:
    """Return the audits in `text` as dicts with the fields of the present version, and the planned
    number of audits."""
    document = _document(text)
    version = document["version"]
    audits: list[Any] = decode(list, document["audits"], "audits")
    _check_whole(document, audits)
    for place, audit in enumerate(audits):
        _check_fields(version, audit, f"audits[{place}]")
    if version < _VERSION_WITH_FULL_DIGEST:
        audits = [_with_named_request(audit) for audit in audits]
    if version < _VERSION_WITH_RULES:
        audits = [_with_one_rule(audit, place) for place, audit in enumerate(audits)]
    if version < VERSION:
        audits = [{**one, "first_version": one.get("first_version") or version} for one in audits]
    for place, one in enumerate(audits):
        first = one.get("first_version")
        if first is not None and not (type(first) is int and 1 <= first < VERSION):
            raise DamagedRecord(
                f"audits[{place}].first_version={first!r} must be null or an older version than "
                f"{VERSION}"
            )
    if not audits:
        raise UsageError(
            "the file has no audits to recheck, because the run that wrote it did not end; run it "
            "again",
            code="results-damaged",
        )
    not_run = decode(tuple[str, ...], document.get("not_run", []), "not_run")
    number, least = document.get("planned", len(audits)), len(audits) + len(not_run)
    if type(number) is not int or number < least:
        raise DamagedRecord(f"planned={number!r} must be a number, at least that of the audits")
    planned = Planned(number)
    planned.not_run = not_run
    return audits, planned


def _with_named_request(audit: dict[str, Any]) -> dict[str, Any]:
    """Return an audit of an older file with its name and its expected verdict copied into
    `request`, where newer files have them."""
    request = audit.get("request")
    if not isinstance(request, dict) or not isinstance(request.get("settings"), dict):
        return audit
    own = {key: audit[key] for key in ("name", "expect") if audit.get(key) is not None}
    return {**audit, "request": {**request, "settings": {**request["settings"], **own}}}


def _with_one_rule(audit: Any, place: int) -> dict[str, Any]:
    """Return an audit of an older file in the present form, in which each certificate names the
    rule that it tested.

    place: index of the audit.
    """
    fields = dict(decode(dict, audit, f"audits[{place}]"))
    path = f"audits[{place}].certificates"
    made = []
    for number, certificate in enumerate(decode(list, fields.get("certificates", []), path)):
        own = dict(decode(dict, certificate, f"{path}[{number}]"))
        moved = {key: own.pop(key) for key in ("attack", "guesses") if key in own}
        own["fixed"] = {**decode(dict, own.get("fixed"), f"{path}[{number}].fixed"), **moved}
        made.append(own)
    return {**fields, "certificates": made}


def _check_whole(document: dict[str, Any], audits: list[Any]) -> None:
    """Raise ContradictoryFile if an audit is missing or was changed since the file was written."""
    if document.get("count") is None:
        raise ContradictoryFile("the count of audits is missing; the file was changed")
    if document["count"] != len(audits):
        raise ContradictoryFile(
            f"the file states {document['count']!r} audits and has {len(audits)}; it was changed"
        )
    if document.get("digest") != _digest(document, list(map(_canonical, audits))):
        raise ContradictoryFile("the digest does not fit the audits; the file was changed")


def _check_fields(version: int, audit: Any, path: str) -> None:
    """Raise DamagedRecord if an audit lacks a field that all audits of this version have."""
    fields = decode(dict, audit, path)
    _check_present(fields, path, _OF_AUDITS)
    certificates = decode(list, fields.get("certificates", []), f"{path}.certificates")
    for place, certificate in enumerate(certificates):
        own_path = f"{path}.certificates[{place}]"
        own = decode(dict, certificate, own_path)
        _check_present(own, own_path, _OF_CERTIFICATES)
        if version >= _VERSION_WITH_RULES:
            _check_present(own, own_path, ["others"])
        if own["schedule"] is None and own.get("recording") is None:
            raise DamagedRecord(f"{own_path}: the key 'schedule' must not be null for draws")
    request = fields.get("request")
    if version >= _VERSION_WITH_FULL_DIGEST and request is not None:
        settings = decode(dict, request, f"{path}.request").get("settings")
        if "name" not in decode(dict, settings, f"{path}.request.settings"):
            raise DamagedRecord(f"{path}.request.settings: the key 'name' is missing")


def _check_present(fields: dict[str, Any], path: str, keys: Sequence[str]) -> None:
    for key in keys:
        if key not in fields:
            raise DamagedRecord(f"{path}: the key {key!r} is missing")


def _canonical(audit: Any) -> str:
    return json.dumps(audit, ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def _digest(document: dict[str, Any], audits: Sequence[str]) -> str:
    """Return the SHA-256 digest that a file of this version must have.

    audits: canonical JSON text of each audit.
    """
    text = f"[{','.join(audits)}]"
    if document["version"] >= _VERSION_WITH_FULL_DIGEST:
        covered = {key: document.get(key) for key in ("version", "planned", "not_run")}
        text = f'{{"audits":{text},{_canonical(covered)[1:]}'
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"


def _result(audit: Any, path: str) -> AuditResult:
    fields = dict(decode(dict, audit, path))
    blocks = decode(list, fields.pop("blocks", None), f"{path}.blocks")
    fields["certificates"] = list(_with_blocks(fields.get("certificates"), blocks, path))
    derived = {key: fields.pop(key, None) for key in (*_DERIVED, "event")}
    if "verdict" not in fields:
        raise DamagedRecord(f"{path}: the key 'verdict' is missing")
    verdict: Verdict = decode(Verdict, fields.pop("verdict"), f"{path}.verdict")
    ending = _ending(fields, verdict, path)
    result: AuditResult = decode_record(AuditResult, fields, path, ending=ending)
    _check(result, verdict, derived, path)
    return result


def _with_blocks(certificates: Any, blocks: list[Any], path: str) -> Iterator[dict[str, Any]]:
    own: list[list[Any]] = [[] for _ in decode(list, certificates, f"{path}.certificates")]
    for index, block in enumerate(blocks):
        fields = dict(decode(dict, block, f"{path}.blocks[{index}]"))
        place = fields.pop("certificate", None)
        if type(place) is not int or not 0 <= place < len(own):
            raise DamagedRecord(f"{path}.blocks[{index}].certificate={place!r} does not exist")
        own[place].append(fields)
    for place, (certificate, mine) in enumerate(zip(certificates, own, strict=True)):
        yield {**decode(dict, certificate, f"{path}.certificates[{place}]"), "blocks": mine}


def _check(result: AuditResult, verdict: Verdict, derived: dict[str, Any], path: str) -> None:
    """Raise ContradictoryFile if the verdict, or a number that can be computed from the
    certificates, differs from the one in the file."""
    for key, expected in _derived(result).items():
        if derived[key] != expected:
            raise ContradictoryFile(
                f"{path} ({result.name}): {key} is {derived[key]!r}, but its certificates give "
                f"{expected!r}; the file was changed"
            )
    if result.verdict is not verdict:
        raise ContradictoryFile(
            f"{path} ({result.name}): the verdict is {verdict.value}, but its certificates "
            "say otherwise; the file was changed"
        )
