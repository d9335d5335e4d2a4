"""The result of a search, stored in a file next to the journal of its audit.

A resumed run audits the pairs in this file. So no pair is chosen after the audit has made draws
that certify.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dpaudit.auditing.journal import check_free
from dpaudit.auditing.journal_file import SEARCH_SUFFIX, guarded, journal_path
from dpaudit.auditing.request import differences, request
from dpaudit.auditing.spec import AuditSpec, DrawnSeed
from dpaudit.certificates.result import Leader, Searched
from dpaudit.errors import JournalError
from dpaudit.version import __version__

_TUPLE, _BYTES = "tuple", "bytes"


def read(spec: AuditSpec) -> tuple[AuditSpec, Searched | None, float | None]:
    """Read the result of an earlier run's search from the file next to the audit's journal. Return
    (audit, result, draws per second by which the number of draws was chosen; None if it was
    stated).

    The result is None if there is no file to resume from. If the audit drew its seed at random, it
    gets the seed in the file.

    Raises JournalError for a file of another request or another release of dpaudit, and for a
    journal that exists although the audit is not to be resumed.
    """
    path = _path(spec)
    if path is None:
        return spec, None, None
    check_free([spec])  # a new search would overwrite the record of a journal
    if not spec.journaling.resume:
        return spec, None, None
    if not path.exists():
        journal = path.with_suffix(".journal")
        if journal.exists() and journal.stat().st_size > 0:
            raise JournalError(
                f"the journal {journal} is of pairs that were not searched for, or {path.name} "
                "next to it is lost; start again in another folder",
                code="journal-damaged",
            )
        return spec, None, None
    searched, kept = _parsed(path)
    version = kept["dpaudit"]
    if version != __version__:
        raise JournalError(
            f"the search of {path} was made by dpaudit {version}, this is {__version__}; continue "
            "it with that release, or start again in another folder",
            code="journal-of-another-release",
        )
    if isinstance(spec.sampling.seed, DrawnSeed):
        spec = replace(spec, sampling=replace(spec.sampling, seed=int(kept["seed"])))
    if difference := differences(kept["request"], request(spec)):
        raise JournalError(
            f"the search of {path} belongs to another audit: {difference}; give the same options "
            "as before, or name another folder",
            code="journal-of-another-audit",
        )
    return spec, searched, kept["rate"]


def _parsed(path: Path) -> tuple[Searched, dict[str, Any]]:
    """Return (result of the search, whole content of the file)."""
    with guarded(path):
        text = path.read_bytes()
    try:
        kept: dict[str, Any] = json.loads(text.decode("utf-8"))
        recorded, beyond = kept["searched"], kept["searched"]["beyond"]
        parsed = {
            **{name: _pairs(recorded[name]) for name in ("found", "unsettled")},
            "leaders": tuple(Leader(**leader) for leader in recorded["leaders"]),
            "outside": tuple(recorded["outside"]),
            "kept": tuple(recorded["kept"]),
            "beyond": None if beyond is None else Leader(**beyond),
            "more_beyond": tuple(Leader(**leader) for leader in recorded["more_beyond"]),
        }
        searched = Searched(**{**recorded, **parsed})
        if not {"dpaudit", "request", "rate"} <= kept.keys():
            raise KeyError("dpaudit")
        int(kept["seed"])
    except (KeyError, TypeError, ValueError) as error:
        why = "is damaged; delete it and the journal next to it, and start again"
        raise JournalError(f"{path} {why}", code="journal-damaged") from error
    return searched, kept


def write(spec: AuditSpec, searched: Searched, rate: float | None) -> None:
    """Write the result of a search to the file next to the audit's journal, before any draw that
    certifies. Do nothing if the audit has no journal.

    spec: the audit as it was requested.
    rate: as `read` returns it.

    Raises JournalError for inputs of types that JSON cannot hold.
    """
    path = _path(spec)
    if path is None:
        return
    kept = {
        "dpaudit": __version__,
        "seed": int(spec.sampling.seed),
        "request": request(spec),
        "rate": rate,
        "searched": {
            **asdict(replace(searched, found=(), unsettled=())),
            "found": [[_written(d1), _written(d2)] for d1, d2 in searched.found],
            "unsettled": [[_written(d1), _written(d2)] for d1, d2 in searched.unsettled],
        },
    }
    with guarded(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".part")
        with partial.open("w", encoding="utf-8") as opened:
            json.dump(kept, opened, indent=1)
            opened.flush()
            os.fsync(opened.fileno())
        partial.replace(path)


def _path(spec: AuditSpec) -> Path | None:
    if spec.journaling.journal is None:
        return None
    return journal_path(spec.journaling.journal, spec.name).with_suffix(SEARCH_SUFFIX)


def _written(value: Any) -> Any:
    """Return a dataset as a value that JSON can hold without loss: a tuple becomes `{"tuple":
    [...]}`, and bytes `{"bytes": hex digits}`. Raises JournalError for values of other types."""
    if type(value) is bytes:
        return {_BYTES: value.hex()}
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [_written(part) for part in value]
    if type(value) is tuple:
        return {_TUPLE: [_written(part) for part in value]}
    is_plain = type(value) is dict and all(type(key) is str for key in value)
    if is_plain and not value.keys() & {_TUPLE, _BYTES}:
        return {key: _written(part) for key, part in value.items()}
    raise JournalError(
        f"no journal can hold an input with a {type(value).__name__} in it; make the generator "
        "return lists, dicts, texts and numbers (--as makes arrays and data frames of them), or "
        "leave out the journal",
        code="input-not-plain",
    )


def _pairs(written: list[Any]) -> tuple[tuple[Any, Any], ...]:
    return tuple((_value(d1), _value(d2)) for d1, d2 in written)


def _value(written: Any) -> Any:
    if isinstance(written, list):
        return [_value(part) for part in written]
    if isinstance(written, dict):
        if set(written) == {_TUPLE}:
            return tuple(_value(part) for part in written[_TUPLE])
        if set(written) == {_BYTES}:
            return bytes.fromhex(written[_BYTES])
        return {key: _value(part) for key, part in written.items()}
    return written
