"""The published schema of result files: what is written passes, what is bent does not."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from dpaudit import ApproximateDP, GaussianDP, ProbabilisticDP, PureDP, RenyiDP, audit
from dpaudit import bound as bound_recorded
from dpaudit.bounds import bound_guesses
from dpaudit.certificates.result import AuditResult, Searched, Verdict
from dpaudit.claims import make_claim
from dpaudit.errors import DpauditError
from dpaudit.reports.json import ID, VERSION, read_document
from dpaudit.reports.json import schema as result_schema
from tests.cli.made_results import ERROR, PASS, VIOLATION
from tests.forging import forged, with_certificates
from tests.raising import refusal
from tests.result_files import SCHEMA, check_schema, reported, to_json
from tests.specs import replace


def laplace(x: float, size: int, rng: Any) -> Any:
    return x + rng.laplace(size=size)


def coin(x: int, size: int, rng: Any) -> Any:
    return rng.random(size) < 0.25 + 0.5 * x


def stated(x: int) -> int:
    raise AssertionError


stated.pmf = lambda x: {0: 0.25 + 0.5 * x, 1: 0.75 - 0.5 * x}  # type: ignore[attr-defined]


def failing(x: int, rng: Any) -> int:
    if rng.random() < 0.5:
        raise ValueError("seven")
    return x


def broken(x: int) -> int:
    raise ValueError(x)


MADE: dict[str, Callable[[], AuditResult]] = {
    "game": lambda: audit(laplace, 0, 1, PureDP(1.0), samples=2_000),
    "violation": lambda: audit(laplace, 0, 1, PureDP(0.1), samples=2_000),
    "pair": lambda: audit(
        laplace, 0, 1, ApproximateDP(1.0, 0.1), samples=2_000, bound="clopper-pearson"
    ),
    "single outputs": lambda: audit(coin, 0, 1, ProbabilisticDP(0.5, 0.1), samples=2_000),
    "infinite": lambda: audit(lambda x: x, 0, 1, PureDP(1.0), samples=2_000),
    "divergence": lambda: audit(laplace, 0, 1, RenyiDP(2.0, 0.4), samples=4_000),
    "gaussian": lambda: audit(laplace, 0, 1, GaussianDP(1.0), samples=2_000, repeat=2),
    "range": lambda: audit(coin, 0, 1, PureDP(2.0), samples=2_000, range=[False, True]),
    "exceptions": lambda: audit(failing, 0, 1, PureDP(1.0), samples=2_000),
    "error": lambda: audit(broken, 0, 1, PureDP(1.0), samples=2_000),
    "exact": lambda: audit(stated, 0, 1, PureDP(1.0), exact=True),
    "recorded": lambda: bound_recorded([0.0] * 60, [1.0] * 60, PureDP(1.0)),
    "coin-flipped": lambda: bound_recorded(
        [0.1 * one for one in range(70)], [1.0] * 60, PureDP(1.0), coin_flipped=True, scores=True
    ),
    "canaries": lambda: bound_guesses(1_000, 100, 75, PureDP(0.5)),
    "f-dp": lambda: audit(
        coin, 0, 1, make_claim({"tradeoff": [[0, 1], [0.25, 0.25], [1, 0]]}), samples=2_000
    ),
    "underpowered": lambda: audit(laplace, 0, 1, PureDP(9.0), samples=100),
    "text": lambda: audit(laplace, 0, 1, PureDP(1.0), samples=2_000, name='"\x00]]>\ud800\n<b>'),
}


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(result_schema())
    assert result_schema()["$id"] == ID == f"urn:dpaudit:result:{VERSION}"
    json.dumps(result_schema(), allow_nan=False)


@pytest.mark.parametrize("kind", MADE)
def test_what_is_written_passes(kind: str) -> None:
    result = MADE[kind]()
    assert (result.verdict is Verdict.ERROR) is (kind == "error")
    read_document(to_json([result, result]))


def test_runs_that_did_not_end_and_made_results_pass() -> None:
    to_json([PASS, VIOLATION, ERROR])
    document = json.loads(reported("json", [PASS]))
    check_schema(json.dumps({**document, "planned": 3}))
    check_schema(json.dumps({**document, "pipeline": "others may say what they know"}))


def _set(*path: Any, to: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for one in path[:-1]:
            document = document[one]
        document[path[-1]] = to

    return change


def _drop(*path: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        for one in path[:-1]:
            document = document[one]
        del document[path[-1]]

    return change


FIRST = ("audits", 0)
CERTIFICATE = (*FIRST, "ending", "certificates", 0)
FIXED = (*CERTIFICATE, "fixed")
BENT = {
    "another version": _set("version", to=VERSION + 1),
    "no digest": _drop("digest"),
    "no such digest": _set("digest", to="md5:0"),
    "a negative count": _set("count", to=-1),
    "no audits": _drop("audits"),
    "an unknown field": _set(*FIRST, "epsilon_uper", to=1),
    "a field that is missing": _drop(*FIRST, "seed"),
    "another verdict": _set(*FIRST, "verdict", to="PRIVATE"),
    "an ending of another kind": _set(*FIRST, "ending", "kind", to="failed"),
    "a p-value above 1": _set(*FIRST, "p_value", to=1.5),
    "a text for a number": _set(*FIRST, "epsilon_lower", to="1"),
    "a number for a text": _set(*FIRST, "name", to=3),
    "an expectation": _set(*FIRST, "expect", to="maybe"),
    "a claim of no definition": _set(*FIRST, "claim", "definition", to="purest"),
    "a claim with another's parameter": _set(*FIRST, "claim", "mu", to=1.0),
    "a claim that lacks one": _drop(*FIRST, "claim", "epsilon"),
    "a field of a certificate": _set(*CERTIFICATE, "colour", to="red"),
    "a stage": _set(*FIXED, "stage", to="later"),
    "a test without its draws": _drop(*FIXED, "draws"),
    "a guess": _set(*FIXED, "events", 0, "guess", to="d3"),
    "an interval of three": _set(*FIXED, "events", 0, "interval_d1", to=[0, 1, 2]),
    "a block without its tally": _drop(*CERTIFICATE, "evidence", "blocks", 0, "tally"),
}


@pytest.fixture(scope="module")
def text() -> str:
    return to_json([MADE["game"]()])


@pytest.mark.parametrize("bent", BENT)
def test_what_is_bent_does_not_pass(text: str, bent: str) -> None:
    document = json.loads(text)
    BENT[bent](document)
    assert not SCHEMA.is_valid(document)
    # Whoever forges an audit makes count and digest fit; else they would tell.
    is_whole = document.get("count") == 1 and document.get("digest") == json.loads(text)["digest"]
    written = forged(document) if is_whole and "audits" in document else json.dumps(document)
    with pytest.raises(DpauditError):
        read_document(written)


UNFIT: dict[str, Callable[[Any], None]] = {
    "a tally of one input": _set(
        *CERTIFICATE, "evidence", "blocks", 0, "tally", "counts", to=[[1]]
    ),
    "a guess of 2": _set(*CERTIFICATE, "evidence", "rules", 0, "guesses", 0, to=2),
    "a share of 2": _set(*CERTIFICATE, "evidence", "rules", 0, "share", to=2.0),
    "a belief of 1": _set(*CERTIFICATE, "evidence", "rounds", 0, "posteriors", 0, 0, to=1.0),
    "half a draw": _set(*CERTIFICATE, "evidence", "blocks", 0, "tally", "counts", 0, 0, to=1.5),
    "a round that does not exist": _set(*CERTIFICATE, "evidence", "blocks", -1, "round", to=99),
    "a budget that was exceeded": _set(*CERTIFICATE, "evidence", "budget", to=100),
}


@pytest.mark.parametrize("unfit", UNFIT)
def test_evidence_that_contradicts_itself_is_not_read(text: str, unfit: str) -> None:
    document = json.loads(text)
    UNFIT[unfit](document)
    with pytest.raises(DpauditError):
        read_document(forged(document))


def test_the_present_version_is_read_and_no_other(text: str) -> None:
    document = json.loads(text)
    for version in (0, VERSION + 1, "1", True):
        error = refusal(read_document, json.dumps({**document, "version": version}))
        assert error.code == "results-version"
        assert f"version={version!r} " in str(error)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, -0.0, 5e-324])
def test_special_numbers_are_read_as_they_were(value: float) -> None:
    (one,) = PASS.certificates
    made = with_certificates(PASS, replace(one, alpha_betting=value))
    (read,) = read_document(reported("json", [made])).results
    assert repr(read.certificates[0].alpha_betting) == repr(value)


def test_texts_are_read_as_they_were() -> None:
    """Texts of the user may be lone surrogates, or names of special numbers."""
    texts = ("NaN", "'NaN", "Infinity", "\ud800", "\x00\u2028")
    found = tuple((text, [math.inf, text]) for text in texts)
    searched = Searched("s", "add-remove", 1, 0, "", 9, (), found, (False,) * len(found))
    made = replace(PASS, warnings=texts, searched=searched)
    (read,) = read_document(reported("json", [made])).results
    assert read.warnings == texts
    assert read.searched is not None
    assert read.searched.found == tuple((text, (math.inf, text)) for text in texts)
