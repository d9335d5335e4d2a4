"""The file of a search's result, next to the journal."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from dpaudit import PureDP
from dpaudit.auditing import journal
from dpaudit.auditing.journal import SEARCH_SUFFIX, journal_path
from dpaudit.auditing.options import DrawnSeed
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import Leader, Searched
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.searching import saved_search
from dpaudit.targets.target import CallableTarget
from tests.raising import code
from tests.specs import audit_of


def spec_in(folder: Path, **settings: Any) -> AuditSpec:
    return audit_of(
        name="audit",
        target=CallableTarget(function=float),
        pairs=(NeighbouringPair(0, 1, None, "0, 1"),),
        claim=PureDP(1.0),
        journal=str(folder),
        resume=True,
        **settings,
    )


LEADER = Leader("[inf]", "[nan]", "é\ud800", inside=False, estimate=math.inf, draws=64)
SEARCHED = Searched(
    space="numbers",
    adjacency="replace",
    pairs=3,
    refused=1,
    refusal="\ud800",
    draws=100,
    leaders=(LEADER,),
    found=(([1, (2.5, ("a", None))], {"x": [True, -0.0], "y": math.inf}), ((), 2**70)),
    unsettled=((b"\xff", 1.5),),
    outside=(False, True),
    beyond=LEADER,
)


def test_a_result_comes_back_with_the_seed_of_the_first_run(tmp_path: Path) -> None:
    saved_search.write(spec_in(tmp_path, seed=DrawnSeed(7)), SEARCHED, 2.5)
    spec, searched, rate = saved_search.read(spec_in(tmp_path, seed=DrawnSeed(8)))
    assert spec.sampling.seed == 7
    assert (repr(searched), rate) == (repr(SEARCHED), 2.5)


def test_another_audit_and_another_release_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved_search.write(spec_in(tmp_path), SEARCHED, None)
    assert code(saved_search.read, spec_in(tmp_path, seed=9)) == "journal-of-another-audit"
    monkeypatch.setattr(journal, "__version__", "99.0")
    assert code(saved_search.read, spec_in(tmp_path)) == "journal-of-another-release"


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe{}", b'{"seed": "\xe9"}', b"[1]"])
def test_a_damaged_file_is_an_error_with_a_code(tmp_path: Path, content: bytes) -> None:
    journal_path(tmp_path, "audit").with_suffix(SEARCH_SUFFIX).write_bytes(content)
    assert code(saved_search.read, spec_in(tmp_path)) == "journal-damaged"
