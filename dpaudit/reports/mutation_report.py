"""Show which planted bugs the audits of a file notice, as text, JSON, HTML and JUnit XML."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

import yaml

from dpaudit.mutating.judging import Answer, Judgement
from dpaudit.mutating.mutants import Mutant
from dpaudit.mutating.scoring import Mutation
from dpaudit.reports.junit import document, new_case, new_suite
from dpaudit.reports.layout import Row, laid_out, wrap
from dpaudit.reports.numbers import at_least, duration, unglued
from dpaudit.searching.snippets import as_python
from dpaudit.version import __version__
from dpaudit.wording import counted, visible

# In the order of the report.
_WORDS: Mapping[Answer, str] = {
    "missed": "A search or a trace shows a leak, and no audit failed.",
    "killed": "An audit failed.",
    "not shown to be a leak": "Neither a trace nor a search found a leak above the claim.",
    "invalid": "An audit ended in an error with the bug; it does not count.",
    "not run": "The time was over.",
}
# The element of JUnit XML for an answer; others are skipped.
_TAGS: Mapping[Answer, str] = {"killed": "system-out", "missed": "failure", "not run": "error"}
_NO_PROOF = (
    "The score counts typical bugs on the inputs of these audits. Other bugs, and the mechanism as "
    "it is, may still leak."
)
_STYLE = "pre{font-size:1.1em;margin:2em;overflow-x:auto}"


def summary(result: Mutation) -> str:
    """Return the score and the numbers of mutants in one sentence."""
    parts = [f"{result.counts[answer]} {answer}" for answer in _WORDS if result.counts[answer]]
    bugs = counted(len(result.judged), "planted bug")
    killed, missed = result.counts["killed"], result.counts["missed"]
    known = killed + missed
    score = f"score {100 * killed // known} %" if known else "no score"  # rounded down
    others = f"; {counted(len(result.left_out), 'audit')} left out" if result.left_out else ""
    return f"{score}: {bugs}{', of which ' if parts else ''}{', '.join(parts)}{others}"


def as_text(result: Mutation) -> str:
    """Return the report for a terminal."""
    lines = wrap(summary(result))
    for answer, words in _WORDS.items():
        judged = [pair for pair in result.judged if pair[1].answer == answer]
        title = wrap(f"{answer.upper()}  {words}", further="  ")
        lines += ["", *title] if judged else []
        for mutant, judgement in judged:
            lines += ["", *wrap(f"{mutant.kind}, {mutant.where}", "  ", "    ")]
            changes = _diff(mutant) if answer in ("missed", "not shown to be a leak") else []
            lines += [row for text in changes for row in wrap(text, "    ", "      ")]
            lines += [row for text in _reasons(judgement) for row in wrap(text, "    ", "    ")]
            lines += [f"    {visible(text)}" for text in _pair(judgement)]
    rows = [Row(name, f"left out: {why}") for name, why in result.left_out]
    lines += ["", *laid_out(rows)] if rows else []
    lines += ["", *laid_out([Row("seed", str(result.seed)), Row("time", duration(result.seconds))])]
    return unglued("\n".join([*lines, "", *wrap(_NO_PROOF)])) + "\n"


def _diff(mutant: Mutant) -> list[str]:
    return [f"- {text.strip()}" for text in mutant.old] + [
        f"+ {text.strip()}" for text in mutant.new
    ]


def _reasons(judgement: Judgement) -> Iterator[str]:
    """Yield sentences on why a mutant has its judgement, and what would change it."""
    point = judgement.point
    if judgement.epsilon_lower and point is not None:
        lower, claimed = judgement.epsilon_lower, point.epsilon
        bound = f"≥ {at_least(lower, above=claimed)}" if lower > claimed else f"> {claimed:.4g}"
        verb = "shows" if judgement.pair is None else "would show, on another pair,"
        delta = f" at δ = {point.delta:.3g}" if point.delta else ""
        yield f"{judgement.audit} {verb} ε {bound}{delta}, claimed {claimed:.4g}"
    elif judgement.audit:
        yield f"{judgement.audit}: {judgement.why}"
    elif judgement.why:
        yield judgement.why
    if judgement.answer == "missed" and judgement.pair is None:
        draws = judgement.draws
        more = "more draws, or another pair," if draws is None else f"about {draws:,} draws"
        yield f"{more} may show it"


def _pair(judgement: Judgement) -> list[str]:
    """Return the pair that a search found as lines of a configuration file."""
    inputs = zip(("d1", "d2"), judgement.pair or (), strict=False)
    return [f"{name}: {_yaml(dataset)}" for name, dataset in inputs]


def _yaml(value: Any) -> str:
    text: str = yaml.safe_dump([value], default_flow_style=True, width=math.inf, allow_unicode=True)
    return text.strip()[1:-1]


def as_json(result: Mutation) -> str:
    """Return the fields of the result as JSON. Inputs are written as Python expressions, since JSON
    has neither NaN nor infinities."""
    document = {
        "kind": "mutation",
        "dpaudit": __version__,
        "score": result.score,
        "counts": dict(result.counts),
        "audits": list(result.audits),
        "left_out": [{"audit": name, "why": why} for name, why in result.left_out],
        "failed": list(result.failed),
        "seed": result.seed,
        "seconds": result.seconds,
        "mutants": [_record(*judged) for judged in result.judged],
    }
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _record(mutant: Mutant, judgement: Judgement) -> dict[str, Any]:
    fields = {**asdict(mutant), **asdict(judgement)}
    del fields["source"]
    pair = judgement.pair
    return {**fields, "pair": None if pair is None else list(map(as_python, pair))}


def as_html(result: Mutation) -> str:
    """Return an HTML page with the text. The page loads no other file."""
    title, text = (html.escape(visible(part)) for part in (summary(result), as_text(result)))
    head = f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n'
    return f"{head}<style>{_STYLE}</style>\n<pre>{text}</pre>\n</html>\n"


def as_junit(result: Mutation) -> str:
    """Return JUnit XML in which each mutant is a test case. A missed mutant is a failure; one that
    was not run is an error, as is an audit that fails without a bug; all others are skipped."""
    failed = [(name, why) for name, why in result.left_out if name in result.failed]
    suites = [_suite(name, "error", why, "") for name, why in failed]
    for mutant, judgement in result.judged:
        lines = [*_diff(mutant), *_reasons(judgement), *_pair(judgement)]
        name, tag = f"{mutant.kind}, {mutant.where}", _TAGS.get(judgement.answer, "skipped")
        suites.append(_suite(name, tag, judgement.answer, "\n".join(lines)))
    return document(suites, len(suites))


def _suite(name: str, tag: str, message: str, text: str) -> ElementTree.Element:
    suite = new_suite(visible(name), "0.000")
    attributes = {} if tag == "system-out" else {"message": visible(message)}
    element = ElementTree.SubElement(new_case(suite, "dpaudit mutate"), tag, attributes)
    element.text = visible(text)
    if tag == "skipped":
        suite.set("skipped", "1")
    return suite


FORMATS = {"text": as_text, "json": as_json, "html": as_html, "junit": as_junit}
