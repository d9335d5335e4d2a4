"""The result of a search, stored in a file next to the journal of its audit. A resumed run audits
the pairs in this file, so no pair is chosen after the audit has made draws that certify."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import ValidationError

from dpaudit.auditing.journal import (
    SEARCH_SUFFIX,
    Begun,
    check_free,
    continued,
    from_json,
    guarded,
    journal_path,
    to_json,
    unusable,
)
from dpaudit.auditing.request import request
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import Searched
from dpaudit.errors import JournalError
from dpaudit.version import __version__

_TUPLE, _BYTES = "tuple", "bytes"


class _Record(Begun, frozen=True):
    searched: Searched
    rate: float | None


def read(spec: AuditSpec) -> tuple[AuditSpec, Searched | None, float | None]:
    """Return the audit, the result of its earlier search, and the draws per second from which the
    number of draws was chosen, if it was not stated. The result is None if there is no file to
    resume from. If the audit drew its seed at random, it gets the seed in the file.

    Raises JournalError for a file of another request or another release of dpaudit, and for a
    journal that exists although the audit shall not be resumed.
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
            why = f"is of pairs that were not searched for, or {path.name} next to it is lost; "
            why += "start again in another folder"
            raise unusable(journal, why, code="journal-damaged")
        return spec, None, None
    with guarded(path):
        text = path.read_bytes()
    try:
        record: _Record = from_json(text, _Record)
    except (ValueError, ValidationError) as error:
        why = "is damaged; delete it and the journal next to it, and start again"
        raise JournalError(f"{path} {why}", code="journal-damaged") from error
    return continued(spec, record, path), _with_pairs(record.searched, _value), record.rate


def write(spec: AuditSpec, searched: Searched, rate: float | None) -> None:
    """Write the result of a search, and the rate that `read` returns, to a file. Call this before
    any draw that certifies. Do nothing if the audit has no journal. Raises JournalError for inputs
    that JSON cannot hold."""
    path = _path(spec)
    if path is None:
        return
    seed = int(spec.sampling.seed)
    searched = _with_pairs(searched, _written)
    with guarded(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".part")
        with partial.open("wb") as file:
            file.write(to_json(_Record(__version__, seed, request(spec), searched, rate)))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)


def _path(spec: AuditSpec) -> Path | None:
    if spec.journaling.journal is None:
        return None
    return journal_path(spec.journaling.journal, spec.name).with_suffix(SEARCH_SUFFIX)


def _written(value: Any) -> Any:
    """Return a dataset as a JSON value, exactly; tuples and bytes become mappings."""
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


def _with_pairs(searched: Searched, convert: Callable[[Any], Any]) -> Searched:
    """Return the result with each input of its pairs converted."""
    found_pairs, unsettled = (
        tuple((convert(d1), convert(d2)) for d1, d2 in pairs)
        for pairs in (searched.found, searched.unsettled)
    )
    return replace(searched, found=found_pairs, unsettled=unsettled)


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
