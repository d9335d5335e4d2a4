"""Whole searches: the pairs that they find and certify, and that a resumed run keeps its pairs."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpaudit
from dpaudit import PureDP, Verdict
from dpaudit.auditing.engine import run_audit
from dpaudit.config.building import build_spec
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.searching import pair_search as searching
from dpaudit.searching import proposals
from dpaudit.searching.leak_estimates import Judge
from dpaudit.searching.pair_search import neighbour_search
from dpaudit.searching.proposals import random_pairs
from dpaudit.searching.relations import Relation
from dpaudit.searching.trials import BATCH_STREAM, SINGLE_STREAM, Contender, Input, Inputs
from dpaudit.targets.target import CallableTarget
from mechanisms.neighbours.planted import PLANTED
from tests.raising import code, refusal
from tests.specs import audit_of, replace

UNIT = "list of number in [0, 1]"
SAMPLES = 6_000
Draws = NDArray[np.float64]


def clipped(rows: list[Any]) -> float:
    numbers = (0.0 if x is None or math.isnan(x) else x for x in rows)
    return math.fsum(min(max(x, 0.0), 1.0) for x in numbers)


def correct(rows: list[Any], size: int, rng: np.random.Generator) -> Draws:
    return clipped(rows) + rng.laplace(size=size)


def unclipped(rows: list[Any], size: int, rng: np.random.Generator) -> Draws:
    return np.asarray(sum(rows) + rng.laplace(size=size))


def raises_for_nan(rows: list[Any], rng: np.random.Generator) -> float:
    if any(x is not None and math.isnan(x) for x in rows):
        raise ValueError("no NaN")
    return clipped(rows) + rng.laplace()


def raises_for_nan_in_batches(rows: list[Any], size: int, rng: np.random.Generator) -> Draws:
    return np.array([raises_for_nan(rows, rng) for _ in range(size)])


def slightly_too_little_noise(rows: list[Any], size: int, rng: np.random.Generator) -> Draws:
    """With replaced records, the largest ε is 1.1, for 0 and 1; for 0 and 0.9 it is 0.99."""
    return (clipped(rows) + rng.laplace(scale=1 / 1.1, size=size)) / len(rows)


def clips_the_sum(rows: list[Any], size: int, rng: np.random.Generator) -> Draws:
    """Clip after the sum: beyond the bounds, n records change the sum by n."""
    total = min(max(sum(x for x in rows if x is not None), 0.0), float(len(rows)))
    return np.asarray((total + rng.laplace(size=size)) / len(rows))


_NOISE: dict[int, float] = {}


def remembers_noise(rows: list[Any], size: int, rng: np.random.Generator) -> Draws:
    """Draw the noise of a dataset once, so that all that follows in the process depends on it."""
    noise = _NOISE.setdefault(len(rows), rng.laplace(scale=20.0))
    return clipped(rows) + noise + rng.laplace(scale=1.0, size=size)


def never(rows: list[Any], rng: np.random.Generator) -> float:
    raise ValueError("nothing will do")


def search(mechanism: Any, **more: Any) -> dpaudit.AuditResult:
    given = {"space": UNIT, "adjacency": "add-remove", "samples": SAMPLES, **more}
    return dpaudit.search(mechanism, given.pop("claim", PureDP(1.0)), **given)


@pytest.fixture(autouse=True, scope="module")
def random_pairs_are_drawn_once() -> Iterator[None]:
    """Hypothesis takes a millisecond for each pair, and draws the same ones for a seed, which
    unit/searching/test_proposals.py holds it to."""
    kept: dict[tuple[str, Adjacency, int], tuple[list[Any], Iterator[Any]]] = {}

    def known(relation: Relation, seed: int) -> Iterator[Any]:
        key = (relation.space.words(), relation.adjacency, seed)
        if key not in kept:
            kept[key] = [], random_pairs(relation, seed)
        pairs, more = kept[key]
        for place in itertools.count():
            if place == len(pairs):
                try:
                    pairs.append(next(more))
                except StopIteration:
                    return
            yield copy.deepcopy(pairs[place])

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(proposals, "random_pairs", known)
        yield


@functools.cache
def usual(**more: Any) -> dpaudit.AuditResult:
    """What several tests look at; equal searches give equal results."""
    return search(correct, **more)


@pytest.fixture(scope="module")
def journal_of_usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("journal")
    search(correct, journal=folder, name="one")
    return folder


@pytest.fixture
def journal(journal_of_usual: Path, tmp_path: Path) -> Path:
    """The journal of a search that has ended, to be changed."""
    return Path(shutil.copytree(journal_of_usual, tmp_path / "journal"))


def test_a_correct_mechanism_is_not_refuted() -> None:
    result = usual()
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert result.searched is not None
    assert result.searched.pairs > 20
    assert len(result.certificates) == len(result.searched.found) == 1


def test_a_leak_outside_the_space_is_noted_and_decides_nothing() -> None:
    result = search(unclipped, confidence=0.9999, samples=20_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert result.searched is not None
    assert result.searched.outside == (False,)
    assert all(one.inside for one in result.searched.leaders)
    beyond = result.searched.beyond
    assert beyond is not None
    assert not beyond.inside
    assert beyond.estimate > 1
    assert beyond.d2 in ("[-1.0]", "[2.0]", "[1001.0]", "[nan]", "[inf]", "[-inf]")
    # Enough to see what is clear, and not more.
    alone = search(unclipped, confidence=0.9999, samples=20_000, inside=True).searched
    assert alone is not None
    assert alone.beyond is None
    assert result.searched.draws <= alone.draws + 0.04 * 20_000


@pytest.mark.parametrize("seed", range(2))
def test_the_pair_at_the_bounds_is_audited_where_others_leak_less(seed: int) -> None:
    given = {"space": "list of 1 to 6 number in [0, 1]", "adjacency": "replace", "seed": seed}
    result = search(slightly_too_little_noise, samples=50_000, no_trace=True, **given)
    assert result.searched is not None
    (d1, d2) = result.searched.found[0]
    # A number next to a bound costs as much as the bound.
    assert sorted((d1[-1], d2[-1])) == pytest.approx([0.0, 1.0], abs=1e-3)
    assert d1[:-1] == d2[:-1]
    assert result.verdict is Verdict.VIOLATION


@pytest.mark.parametrize("outside", [False, True])
def test_a_leak_of_one_kind_outside_does_not_hide_another(outside: bool) -> None:
    given = {"space": "list of 1 to 6 number in [0, 1]", "adjacency": "replace"}
    result = search(clips_the_sum, samples=200_000, no_trace=True, outside=outside, **given)
    searched = result.searched
    assert searched is not None
    noted = [one for one in (searched.beyond, *searched.more_beyond) if one is not None]
    pairs = [f"{one.d1} {one.d2}" for one in noted] + [repr(pair) for pair in searched.found]
    assert sum("nan" in one for one in pairs) == 1
    assert not any(one.inside for one in noted)
    (beyond,) = (one for one in noted if "nan" not in one.d2)
    assert beyond.d2.count(",") >= 1
    assert beyond.estimate > 1
    assert (result.verdict is Verdict.VIOLATION) == outside


def test_no_input_outside_the_space_is_handed_over_if_asked() -> None:
    seen: list[Any] = []

    def noting(rows: list[Any], size: int, rng: np.random.Generator) -> Draws:
        seen.extend(rows)
        return correct(rows, size, rng)

    search(noting, inside=True, samples=2_000, confidence=0.9999)
    assert all(0 <= one <= 1 for one in seen)
    seen.clear()
    search(noting, samples=2_000, confidence=0.9999)
    assert not all(one is not None and 0 <= one <= 1 for one in seen)


def test_an_exception_of_one_input_is_a_find() -> None:
    result = search(raises_for_nan, samples=4_000, outside=True)
    assert result.verdict is Verdict.VIOLATION
    assert "ValueError" in str(result)


def test_exceptions_that_are_failures_are_no_finds() -> None:
    result = search(raises_for_nan, samples=4_000, on_error="fail", outside=True, confidence=0.9999)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND


def test_an_exception_of_a_whole_batch_is_one_of_its_draws() -> None:
    result = search(raises_for_nan_in_batches, samples=4_000, outside=True)
    assert result.searched is not None
    assert result.searched.one_by_one
    assert result.verdict is Verdict.VIOLATION
    assert "ValueError" in str(result)


def test_state_that_the_search_has_filled_is_named() -> None:
    """While the audit runs nothing changes any more: what its draws depend on was drawn before."""
    _NOISE.clear()
    result = search(remembers_noise)
    assert result.verdict is Verdict.VIOLATION
    assert any("keeps state " in one for one in result.warnings)
    assert "_NOISE" in str(result)


def test_a_search_that_has_hardly_begun_is_warned_of() -> None:
    few = search(correct, samples=500, confidence=0.9999)
    assert any("search tried only" in one for one in few.warnings)
    assert not any("search tried only" in one for one in usual().warnings)


def raises_for_three(rows: list[Any], rng: np.random.Generator) -> float:
    if len(rows) == 3:
        raise ValueError("three are too few")
    return clipped(rows) + rng.laplace()


def test_inputs_that_raise_on_both_sides_are_warned_of() -> None:
    result = search(raises_for_three, adjacency="replace", samples=4_000, confidence=0.9999)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    (warning,) = (one for one in result.warnings if "no output came" in one)
    assert "ValueError: three are too few" in warning


def test_a_journal_that_is_there_keeps_what_was_found(journal: Path) -> None:
    (record,) = journal.glob("*.search")
    before = record.read_text()
    assert code(search, correct, journal=journal, name="one", inside=True) == "journal-exists"
    assert record.read_text() == before


def test_a_search_in_which_every_input_raises_is_an_error() -> None:
    result = search(never, samples=2_000)
    assert (result.verdict, result.error_code) == (Verdict.ERROR, "always-raises")
    assert "nothing will do" in str(result.error)


def test_a_leaking_pair_and_its_simplest_form_are_audited_with_half_of_alpha_each() -> None:
    def little_noise_of_many(rows: list[Any], size: int, rng: np.random.Generator) -> Draws:
        return clipped(rows) + rng.laplace(scale=0.25 if len(rows) > 4 else 1.0, size=size)

    result = search(little_noise_of_many, inside=True, no_trace=True)
    assert len(result.certificates) == 2
    assert result.verdict is Verdict.VIOLATION
    assert result.searched is not None
    assert result.p_value == pytest.approx(
        min(1.0, len(result.certificates) * min(one.p_value for one in result.certificates))
    )


def test_no_stream_of_the_search_is_one_of_the_audit() -> None:
    """The keys of an audit have the number of a stage where a search has one of its own."""
    from dpaudit.auditing import ledger

    stages = [
        value for name, value in vars(ledger).items() if name.isupper() and isinstance(value, int)
    ]
    assert not {BATCH_STREAM, SINGLE_STREAM} & set(stages)


def test_draws_of_the_search_are_not_in_the_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit of the pair alone, with as many draws, gives the same certificate."""
    result = usual()
    searched = result.searched
    assert searched is not None
    ((d1, d2),) = searched.found
    spec = audit_of(
        name="correct",
        target=CallableTarget(function=correct),
        pairs=(searching.NeighbourSearch.pair(_searching(), d1, d2),),
        claim=PureDP(1.0),
        samples=SAMPLES - min(searched.draws, SAMPLES // 4),
    )
    assert run_audit(spec).certificates == result.certificates


def _searching() -> Any:
    from dpaudit.inputs.adjacency import parse_adjacency

    return neighbour_search(UNIT, parse_adjacency("add-remove"))


def test_a_run_that_goes_on_audits_the_same_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = usual()  # without a journal, which changes nothing
    told = 0

    def interrupt(progress: dpaudit.Progress) -> None:
        nonlocal told
        told += not progress.pair.startswith("search")
        if told == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(correct, journal=tmp_path / "cut", name="one", on_progress=interrupt)
    monkeypatch.setattr(searching, "_SearchRun", None)  # nothing is searched again
    again = search(correct, journal=tmp_path / "cut", name="one", resume=True)
    assert again.resumed == 1
    assert again.searched == whole.searched
    assert again.certificates == whole.certificates


def test_what_was_found_for_another_request_is_not_taken(journal: Path) -> None:
    error = refusal(search, correct, journal=journal, name="one", resume=True, inside=True)
    assert error.code == "journal-of-another-audit"
    assert f"{UNIT} (add-remove)" in str(error)


def test_a_journal_without_what_was_found_is_refused(journal: Path) -> None:
    """Lest another pair be chosen after draws that certify were seen."""
    (record,) = journal.glob("*.search")
    record.unlink()
    assert code(search, correct, journal=journal, name="one", resume=True) == "journal-damaged"


def test_a_damaged_record_is_refused(journal: Path) -> None:
    (record,) = journal.glob("*.search")
    content = json.loads(record.read_text())
    del content["searched"]["found"]
    record.write_text(json.dumps(content))
    assert code(search, correct, journal=journal, name="one", resume=True) == "journal-damaged"


def test_a_search_by_the_clock_ends_in_time() -> None:
    result = dpaudit.search(correct, PureDP(1.0), space=UNIT, adjacency="add-remove", time=0.5)
    assert result.verdict is not Verdict.ERROR
    assert result.seconds < 10
    assert result.searched is not None  # on a busy machine, it may try one pair alone


def test_a_pair_that_may_exceed_the_claim_is_left_unsettled() -> None:
    searched = usual(seed=3).searched
    assert searched is not None
    (pair,) = searched.unsettled
    assert pair not in searched.found
    assert searched.unsettled_upper > 1.0


def test_a_journal_holds_no_inputs_of_unknown_types(tmp_path: Path) -> None:
    from dpaudit.searching.saved_search import write

    result = usual()
    assert result.searched is not None
    found = replace(result.searched, found=((np.zeros(2), [1]),))
    spec = replace(
        build_spec(
            {
                "mechanism": "mechanisms.laplace_queries:private_count",
                "search": UNIT,
                "adjacency": "replace",
                "claim": {"epsilon": 1},
            }
        ),
        journal=tmp_path,
    )
    error = refusal(write, spec, found, None)
    assert error.code == "input-not-plain"
    assert "ndarray" in str(error)


def test_a_lucky_pair_inside_the_space_hides_none_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best of many pairs may look as if it leaked; on fresh draws it does not."""
    true, again, fresh = Judge.tried, Inputs.again, list[Input]()

    def kept(self: Any, one: Input) -> Input:
        fresh.append(again(self, one))
        return fresh[-1]

    def lucky(self: Judge, one: Contender, draws: int, *, thorough: bool) -> Contender:
        tried = true(self, one, draws, thorough=thorough)
        is_of_many = one.order > 0 and one.d1 not in fresh
        if not (is_of_many and one.proposal.inside):
            return tried
        return replace(tried, evidence=100.0, estimate=3.0)

    monkeypatch.setattr(Inputs, "again", kept)
    monkeypatch.setattr(Judge, "tried", lucky)
    (planted,) = (one for one in PLANTED if one.name == "raises-for-nan")
    given = {"space": planted.space, "adjacency": planted.adjacency}
    given["space"] = UNIT
    result = search(planted.broken, outside=True, **given)
    assert result.searched is not None
    assert result.searched.outside == (False, True)
    assert result.verdict is Verdict.VIOLATION
