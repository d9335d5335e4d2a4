"""Results whose every text is markup, control characters and whatever else a page may trip over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
from msgspec import Struct

from dpaudit.certificates.canary_certificate import GuessTest, OneRunCertificate
from dpaudit.certificates.certificate import ExactCertificate, ExactEvent, FirstFailure
from dpaudit.certificates.evidence import FrozenRule, Recording
from dpaudit.certificates.result import (
    AuditResult,
    CanaryGuesses,
    Exact,
    Failed,
    Leader,
    Recorded,
    Sampled,
    Searched,
)
from dpaudit.certificates.traced import Excerpt, Finding, Site, SourceLine, Trace
from dpaudit.claims import PrivacyClaim, PureDP
from dpaudit.draws import Tally
from dpaudit.levels.portfolio import ScoreDistributions, Tried
from tests.cli.made_results import CERTIFICATE, ERROR, PASS, VIOLATION
from tests.specs import replace

PLANTED = (
    "</style></script><script>document.title='planted'</script>"
    "<img src=x onerror=\"document.title='planted'\"><svg onload=planted()>"
    '\' onmouseover=\'planted()\' " onfocus="planted()" autofocus x="'
    " ]]> <!-- --> {{ 7 * 7 }} {% raw %} $\\alpha$ &lt; javascript:planted()"
    "\nsecond line\r\0\x1b[31m\u2028\u202eright to left\ud800\uffff"
)
WIDE = FrozenRule("main", 1.0, "", (-1, 1, 0))
LAW = (("output is 0", 0.6, 0.2), ("output is 1", 0.4, 0.3), ("output is 2", 0.0, 0.5))
EXACT = replace(
    VIOLATION,
    name="exactly",
    claim=PureDP(1.0),
    ending=Exact(
        (
            ExactCertificate(
                pair="d1 = 0, d2 = 1",
                point=PureDP(1.0).point(),
                refuted=True,
                epsilon=float("inf"),
                epsilon_lower=float("inf"),
                delta_lower=0.5,
                probabilistic_delta=0.5,
                event=ExactEvent("output is 2", "d2", 0.0, 0.5),
                law=LAW,
                notes=("noted",),
            ),
        )
    ),
)
ONE_RUN = replace(
    VIOLATION,
    name="guesses",
    claim=PureDP(1.0),
    ending=CanaryGuesses(
        (
            OneRunCertificate(
                pair="each canary in or out",
                point=PureDP(1.0).point(),
                refuted=True,
                canaries=1_000,
                tests=(GuessTest(800, 700, 1.0, "point", 3e-23),),
                alpha=0.01,
                epsilon_lower=1.69,
                delta_lower=0.0043,
                p_value=3e-23,
                detectable_epsilon=1.3,
                warnings=("warned",),
            ),
        )
    ),
)
RECORDED = replace(
    VIOLATION,
    name="recorded",
    ending=Recorded(
        (
            replace(
                CERTIFICATE,
                alpha_betting=0.0,
                wealth=1.0,
                rounds=(),
                fixed=replace(CERTIFICATE.fixed, stage="recorded"),
                blocks=(replace(CERTIFICATE.evidence.blocks[2], stage="recorded"),),
                stage="recorded",
                limits=None,
                refuted_after=None,
                recording=Recording(600, 600, coin_flipped=False),
            ),
        )
    ),
)
_DRAWN = SourceLine("mine.py", 3, "rng.laplace(scale=0.5)")
_BOUND = SourceLine("mine.py", 2, "total / len(rows)")
TRACE = Trace(
    target="mine.py:laplace",
    pair="d1 = 0, d2 = 1",
    claim="1-DP",
    findings=(
        Finding(
            "too-little-noise",
            True,
            _DRAWN,
            "`rng.laplace(scale=0.5)` with scale 0.5 hides a change of 1: ε = 2",
            "a scale of 1 would do",
            (_BOUND,),
        ),
        Finding("no-noise", True, _BOUND, "output is 0 for d1 and 1 for d2", ""),
        Finding("unused-noise", False, _BOUND, "noise that nothing is added to", "use it"),
    ),
    sites=(
        Site(
            line=_DRAWN,
            added=_BOUND,
            primitive="rng.laplace",
            law="laplace",
            scales=(0.5, 0.25),
            operands=("0", "1"),
            shift=1.0,
            entries=3,
            cost=2.0,
            total=float("inf"),
            unit="ε",
            released=True,
            varies=True,
            callers=(_BOUND,),
        ),
        Site(
            line=_BOUND,
            added=_BOUND,
            primitive="coin",
            law="choice",
            scales=None,
            operands=("", ""),
            shift=0.0,
            entries=1,
            cost=None,
            total=None,
            unit="ε",
            released=False,
            varies=False,
        ),
    ),
    total="ε = ∞",
    exceeds=True,
    not_understood=((_BOUND, "what a sort does to noise"),),
    excerpts=(
        Excerpt(
            "mine.py",
            1,
            ("def f(x, rng):", "\treturn total / len(rows)", "    rng.laplace(scale=0.5)", ""),
            ((2, "no noise"), (3, "too little noise")),
        ),
    ),
    runs=6,
    notes=("every second run raised",),
)
FULL = replace(
    VIOLATION,
    name="full",
    trace=TRACE,
    expect="violation",
    warnings=("warned",),
    notes=("noted",),
    request={
        "settings": {
            "name": "full",
            "expect": "violation",
            "pairs": ({"name": "d1 = 0, d2 = 1", "d1": "zero", "d2": "one"},),
        }
    },
    source="mine.py:12",
    command="dpaudit run mine.py:laplace",
    workers=2,
    ending=Sampled(
        (
            replace(
                CERTIFICATE,
                failures={"ValueError": (3, 4)},
                first_failures={"ValueError": FirstFailure("it said", "mine.py:3")},
                warnings=("of the pair",),
                notes=("about the pair",),
                ignored=("names",),
                attacks=(Tried("thresholds", 1.2), Tried("trees", None, "too few draws")),
                adjacency="add-remove",
            ),
            replace(
                CERTIFICATE,
                pair="d1 = 1, d2 = 2",
                p_value=0.5,
                fixed=replace(CERTIFICATE.fixed, rule=WIDE),
                evidence=replace(
                    CERTIFICATE.evidence,
                    rules=(WIDE,),
                    blocks=tuple(
                        replace(
                            block, round=None, tally=Tally(np.vstack([block.tally.counts, [0, 0]]))
                        )
                        for block in CERTIFICATE.evidence.blocks
                    ),
                    rounds=(),
                ),
                scores=ScoreDistributions((0.5,), ((1, 2), (3, 4), (0, 0)), (("age", 0.7),)),
            ),
        )
    ),
)
HALF = replace(
    ERROR, name="half", ending=Failed("it failed", (CERTIFICATE,)), underpowered=None, resumed=2
)
WEAK = replace(PASS, name="weak", underpowered="too few draws")
SEARCHED = replace(
    VIOLATION,
    name="searched",
    request={
        "settings": {"name": "searched", "mechanism": "mine.py:laplace", "claim": {"epsilon": 1}},
        "folder": None,
    },
    searched=Searched(
        space="list of text",
        adjacency="add-remove",
        pairs=40,
        refused=1,
        refusal="it raised",
        draws=2_000,
        leaders=(Leader("[]", "['a']", "empty beside one record", True, 1.2, 100),),
        found=((["a"], []),) * len(VIOLATION.by_pair),
        outside=(True,) * len(VIOLATION.by_pair),
        kept=("mine.CACHE",),
        note="without Hypothesis",
    ),
)
EVERY_KIND = (PASS, VIOLATION, ERROR, EXACT, ONE_RUN, RECORDED, FULL, HALF, WEAK, SEARCHED)


def with_texts(value: Any, text: str, hint: Any = Any) -> Any:
    """Return a result whose texts are all the same, but for those that only some values may be."""
    if isinstance(value, PrivacyClaim) or get_origin(hint) is Literal:
        return value
    if (is_dataclass(value) and not isinstance(value, type)) or isinstance(value, Struct):
        hints = get_type_hints(type(value))
        names = (
            value.__struct_fields__
            if isinstance(value, Struct)
            else [field.name for field in fields(value)]
        )
        return replace(
            value,
            **{
                name: with_texts(getattr(value, name), text, _literal(hints[name]))
                for name in names
            },
        )
    if isinstance(value, Mapping):
        return {_key(key, text): with_texts(part, text) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return tuple(with_texts(part, text) for part in value)
    return text if isinstance(value, str) and value not in ("d1", "d2") else value


def planted(result: AuditResult, text: str = PLANTED) -> AuditResult:
    """Return a result with markup in every text that a user or a mechanism may give."""
    changed: AuditResult = with_texts(result, text)
    return changed


def _literal(hint: Any) -> Any:
    """Return the Literal in `Literal[...] | None`."""
    return next((one for one in get_args(hint) if get_origin(one) is Literal), hint)


def _key(key: str, text: str) -> str:
    """Return keys of settings as they are, and names of exceptions changed."""
    return text if key == "ValueError" else key
