"""The file of a search's result, next to the journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpaudit import PureDP
from dpaudit.auditing.journal_file import SEARCH_SUFFIX, journal_path
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.searching import record
from dpaudit.targets.target import CallableTarget
from tests.raising import code
from tests.specs import audit_of


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe{}", b'{"seed": "\xe9"}'])
def test_a_damaged_file_is_an_error_with_a_code(tmp_path: Path, content: bytes) -> None:
    spec = audit_of(
        name="audit",
        target=CallableTarget(function=float),
        pairs=(NeighbouringPair(0, 1, None, "0, 1"),),
        claim=PureDP(1.0),
        journal=str(tmp_path),
        resume=True,
    )
    journal_path(tmp_path, "audit").with_suffix(SEARCH_SUFFIX).write_bytes(content)
    assert code(record.read, spec) == "journal-damaged"
