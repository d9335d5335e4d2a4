"""What a search has found, beside the journal of its audit: so that a run which goes on audits the
same pairs, and none is chosen after draws that certify."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from dpaudit.auditing.journal import SEARCH_SUFFIX, check_free, journal_path
from dpaudit.auditing.journal_file import guarded
from dpaudit.auditing.request import differences, request
from dpaudit.auditing.spec import AuditSpec, DrawnSeed
from dpaudit.certificates.searched import Leader, Searched
from dpaudit.errors import JournalError
from dpaudit.version import __version__

_TUPLE = "tuple"


def read(spec: AuditSpec) -> tuple[AuditSpec, Searched | None]:
    """Return what the search of an audit has found before, if its journal is to go on, and the
    audit with the seed of then, where any would do.

    Raises JournalError for what was found for another request, or by another release, and for a
    journal that is there and is not to go on.
    """
    path = _path(spec)
    if path is None:
        return spec, None
    check_free([spec])  # or what a journal goes on with would be lost
    if not spec.resume:
        return spec, None
    if not path.exists():
        journal = path.with_suffix(".journal")
        if journal.exists() and journal.stat().st_size > 0:
            raise JournalError(
                f"the journal {journal} is of pairs that were not searched for, or {path.name} "
                "beside it is lost; start again in another folder",
                code="journal-damaged",
            )
        return spec, None
    searched, kept = _parsed(path)
    version = kept["dpaudit"]
    if version != __version__:
        raise JournalError(
            f"the search of {path} was made by dpaudit {version}, this is {__version__}; continue "
            "it with that release, or start again in another folder",
            code="journal-of-another-release",
        )
    if isinstance(spec.seed, DrawnSeed):
        spec = replace(spec, seed=int(kept["seed"]))
    found = differences(kept["request"], request(spec))
    if found:
        raise JournalError(
            f"the search of {path} belongs to another audit: {found}; give the same options as "
            "before, or name another folder",
            code="journal-of-another-audit",
        )
    return spec, searched


def _parsed(path: Path) -> tuple[Searched, dict[str, Any]]:
    """Return what a search has found, and the record that it stands in."""
    with guarded(path):
        text = path.read_bytes()
    try:
        kept: dict[str, Any] = json.loads(text.decode("utf-8"))
        recorded = kept["searched"]
        pairs = tuple((_value(d1), _value(d2)) for d1, d2 in recorded.pop("found"))
        leaders = tuple(Leader(**one) for one in recorded.pop("leaders"))
        outside, kept_state = tuple(recorded.pop("outside")), tuple(recorded.pop("kept"))
        beyond = recorded.pop("beyond")
        searched = Searched(
            **recorded,
            leaders=leaders,
            found=pairs,
            outside=outside,
            kept=kept_state,
            beyond=None if beyond is None else Leader(**beyond),
        )
        if not {"dpaudit", "request"} <= kept.keys():
            raise KeyError("dpaudit")
        int(kept["seed"])
    except (KeyError, TypeError, ValueError) as error:
        why = "is damaged; delete it and the journal beside it, and start again"
        raise JournalError(f"{path} {why}", code="journal-damaged") from error
    return searched, kept


def write(spec: AuditSpec, searched: Searched) -> None:
    """Keep what was found, if the audit has a journal; before any draw that certifies.

    Raises JournalError for inputs that no file can hold.
    """
    path = _path(spec)
    if path is None:
        return
    kept = {
        "dpaudit": __version__,
        "seed": int(spec.seed),
        "request": request(spec),
        "searched": {
            **{field.name: getattr(searched, field.name) for field in fields(searched)},
            "leaders": [asdict(one) for one in searched.leaders],
            "beyond": None if searched.beyond is None else asdict(searched.beyond),
            "found": [[_written(d1), _written(d2)] for d1, d2 in searched.found],
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
    if spec.journal is None:
        return None
    return journal_path(spec.journal, spec.name).with_suffix(SEARCH_SUFFIX)


def _written(value: Any) -> Any:
    """Return a dataset as JSON has it, exactly. Raises JournalError."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [_written(part) for part in value]
    if type(value) is tuple:
        return {_TUPLE: [_written(part) for part in value]}
    if type(value) is dict and all(type(key) is str for key in value) and _TUPLE not in value:
        return {key: _written(part) for key, part in value.items()}
    raise JournalError(
        f"no journal can hold an input with a {type(value).__name__} in it; make the generator "
        "return lists, dicts, texts and numbers (--as makes arrays and data frames of them), or "
        "leave out the journal",
        code="input-not-plain",
    )


def _value(written: Any) -> Any:
    if isinstance(written, list):
        return [_value(part) for part in written]
    if isinstance(written, dict):
        if set(written) == {_TUPLE}:
            return tuple(_value(part) for part in written[_TUPLE])
        return {key: _value(part) for key, part in written.items()}
    return written
