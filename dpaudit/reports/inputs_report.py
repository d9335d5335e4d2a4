"""Write the rows about the inputs of an audit: the values of a pair, the search that found it, and
a command line and Python code that audit it."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dpaudit.auditing.options import OPTIONS
from dpaudit.certificates.result import AnyCertificate, AuditResult, Leader, Searched, Verdict
from dpaudit.hash_seed import VARIABLE
from dpaudit.inputs.pairs import describe_pair
from dpaudit.inputs.values import ARRAYS
from dpaudit.reports import numbers
from dpaudit.reports.layout import LABEL, Item, Row, row
from dpaudit.searching.snippets import as_given, columns_of, imports, in_form
from dpaudit.wording import counted, report_width, shortened

# Without -v, the report shows at most this number of tried pairs.
_SHOWN_PAIRS = 3
# Number of columns of a row of a tried pair that the inputs do not take, without its marks: the
# estimate and the words around the inputs.
# Least length of the text of an input, on a narrow terminal.
_MIN_ROOM = 8
_AROUND = len("ε ≈ 0.123  d1 = , d2 = ")
# Length to which an input in the row of the unsettled pair is shortened, in characters.
_SHOWN = 60
# A line below the two commands of a search.
COMMANDS = "repeat searches again; reproduce audits this pair alone"
_OUTSIDE = (
    "the space does not contain these inputs.",
    "Reject or clamp them in the mechanism; or, if no caller can send them, search without "
    "outside.",
)
# `command` makes the command line that audits the found pair, with a flag for each setting of the
# search except these. It writes `mechanism`, `claim` and `params` in other forms; `name`, `expect`
# and `search` do not apply to the found pair.
_LEFT_OUT = ("name", "expect", "search", "mechanism", "claim", "params")


def inputs(result: AuditResult, certificate: AnyCertificate, *, shown: bool = True) -> list[Item]:
    """Return a row about a pair of inputs: name, values and neighbouring relation. If the report
    does not show all pairs (`shown`), the row says how many more there are."""
    values, relation = _values(result, certificate.pair), getattr(certificate, "adjacency", None)
    parts = [f"{certificate.pair}: {values}" if values else certificate.pair]
    parts += [f"adjacency {relation}"] if relation else []
    parts += [] if shown else [f"1 of {len(result.by_pair):,} pairs (-v shows all)"]
    return row("inputs", "; ".join(parts))


def _values(result: AuditResult, name: str) -> str | None:
    """Return the inputs of a pair as the user wrote them in the settings, or None."""
    settings = (result.request or {}).get("settings")
    pairs = settings.get("pairs", ()) if isinstance(settings, Mapping) else ()
    for pair in pairs if isinstance(pairs, Sequence) else ():
        if isinstance(pair, Mapping) and pair.get("name") == name:
            return describe_pair(as_lists(pair.get("d1")), as_lists(pair.get("d2")))
    return None


def as_lists(value: Any) -> Any:
    """Return a value of the settings with lists in place of tuples, as a file has them."""
    if isinstance(value, Mapping):
        return {key: as_lists(part) for key, part in value.items()}
    return [as_lists(part) for part in value] if isinstance(value, list | tuple) else value


def rows(result: AuditResult, verbose: int) -> list[Item]:
    """Return the rows about a search, or [] if the user gave the pairs of inputs."""
    searched = result.searched
    if searched is None:
        return []
    pairs = counted(searched.pairs, "pair")
    text = f"{pairs} tried in {counted(searched.draws, 'draw')}, which certify nothing"
    if searched.refused:
        text += f"; {searched.refused:,} gave no outputs"
    lines = row("search", text)
    lines += row("space", searched.space)
    if searched.leaders:
        estimates = [leader.estimate for leader in searched.leaders]
        is_near = searched.leaders[0].audited and estimates[0] < max(estimates)
        near = "; evidence against the claim ranks before them" if is_near else ""
        lines += row("estimates", f"of the best pairs, not certified{near}:")
    max_draws = max((leader.draws for leader in searched.leaders), default=0)
    leaders = [(leader, _marks(leader, max_draws)) for leader in searched.leaders]
    shown = (
        [_leader(leader) for leader, _ in leaders] if verbose else _distinct(leaders[:_SHOWN_PAIRS])
    )
    for (leader, marks), words in zip(leaders, shown, strict=False):
        lines += row("", f"{_estimate(leader)}  {words}{marks}")
    if searched.one_by_one:
        lines += row("", "the mechanism raised for a whole batch, so it is called once a draw")
    lines += row("note", searched.note) if searched.note else []
    lines += _beyond(searched)
    if shows_unsettled(result):
        ((d1, d2),) = searched.unsettled
        upper = numbers.plain(float(f"{searched.unsettled_upper:.2g}"))
        text = f"d1 = {shortened(repr(d1), _SHOWN)}, d2 = {shortened(repr(d2), _SHOWN)}"
        lines += row("not settled", f"{text}: not audited; its ε may be up to {upper}")
    witness = witness_of(result)
    if witness is None:
        decisive = _deciding(result)
        is_outside = decisive is not None and searched.outside[decisive]
        return lines + (row("outside", _OUTSIDE[0]) if is_outside else [])
    if witness != _deciding(result):
        text = f"{result.by_pair[witness].pair}: refuted as well, and shorter to reproduce"
        lines += row("simplest", text)
    if searched.outside[witness]:
        lines += row("outside", " ".join(_OUTSIDE))
    return lines


def shows_unsettled(result: AuditResult) -> bool:
    """Return whether the audited pairs pass, although another pair may exceed the claim."""
    searched = result.searched
    is_pass = result.verdict is Verdict.NO_VIOLATION_FOUND
    return searched is not None and is_pass and bool(searched.unsettled)


def is_outside(result: AuditResult) -> bool:
    """Return whether the claim is refuted only by inputs outside the space of the search."""
    searched = result.searched
    if searched is None or result.verdict is not Verdict.VIOLATION:
        return False
    refuted = [n for n, certificate in enumerate(result.by_pair) if certificate.refuted]
    return bool(refuted) and all(searched.outside[n] for n in refuted)


def _deciding(result: AuditResult) -> int | None:
    """Return the index of the deciding pair. Return None if there is none."""
    return next(
        (n for n, certificate in enumerate(result.by_pair) if certificate is result.decisive), None
    )


def _leader(leader: Leader) -> str:
    apart = f"; {leader.apart}" if leader.apart else ""
    return f"{_pair(leader)} ({leader.why}{apart})"


def _pair(leader: Leader) -> str:
    return f"d1 = {leader.d1}, d2 = {leader.d2}"


def _beyond(searched: Searched) -> list[Item]:
    """Return the rows about pairs outside the space that seem to leak and were not audited."""
    pairs = [*([] if searched.beyond is None else [searched.beyond]), *searched.more_beyond]
    texts = [
        f"{_pair(leader)} ({leader.why}) seems to leak: {_estimate(leader)}" for leader in pairs
    ]
    lines = [Row("" if number else "outside", text) for number, text in enumerate(texts)]
    advice = "Not certified."
    if not any(searched.outside):
        these = "these pairs, and they decide" if len(pairs) > 1 else "this pair, and it decides"
        advice += (
            f" The space does not contain {these} nothing. Reject or clamp such inputs in the "
            "mechanism; or search with outside, so that they count."
        )
    return [*lines, Row("", advice)] if lines else []


def _distinct(leaders: Sequence[tuple[Leader, str]]) -> list[str]:
    """Return a text for each (pair, marks): short, unless two pairs would have equal texts."""
    texts = [_briefly(leader, marks) for leader, marks in leaders]
    for longer in (_pair, lambda leader: f"{_pair(leader)} ({leader.why})"):
        times = Counter(texts)
        texts = [
            longer(leader) if times[text] > 1 else text
            for (leader, _), text in zip(leaders, texts, strict=True)
        ]
    return texts


def _briefly(leader: Leader, marks: str) -> str:
    room = max(_MIN_ROOM, (report_width() - LABEL - _AROUND - len(marks)) // 2)
    d1, d2 = (shortened(value, room) for value in (leader.d1, leader.d2))
    return leader.apart or f"d1 = {d1}, d2 = {d2}"


def _marks(leader: Leader, max_draws: int) -> str:
    marks = ["audited"] if leader.audited else []
    marks += [] if leader.inside else ["outside"]
    marks += [f"from {leader.draws:,} draws only"] if 2 * leader.draws < max_draws else []
    return f" ({', '.join(marks)})" if marks else ""


def _estimate(leader: Leader) -> str:
    return f"ε ≈ {numbers.plain(float(f'{leader.estimate:.2g}'))}"


def witness_of(result: AuditResult) -> int | None:
    """Return the index of the witness among the pairs that a search found. It is the simplified
    pair, which comes last, if there is one and it refutes the claim; else it is the deciding pair.
    Return None if the verdict is not VIOLATION, or if the user gave the pairs."""
    if result.searched is None or result.verdict is not Verdict.VIOLATION:
        return None
    if result.searched.shrunk and result.by_pair[-1].refuted:
        return len(result.by_pair) - 1
    return _deciding(result)


def command(result: AuditResult) -> str | None:
    """Return the command line that audits only the witness; None if flags cannot express the
    pair."""
    number = witness_of(result)
    if number is None or result.searched is None:
        return None
    return _command(result, result.searched.found[number])


def unsettled_command(result: AuditResult) -> str | None:
    """Return the command line that audits a pair that the search did not decide. Return None if
    there is no such pair, or if flags cannot express it."""
    if result.searched is None or not shows_unsettled(result):
        return None
    return _command(result, result.searched.unsettled[0])


def _command(result: AuditResult, values: tuple[Any, Any]) -> str | None:
    settings = _settings(result)
    if settings is None or _has_bytes(values):
        return None
    seed = result.versions.get(VARIABLE)
    words: list[str | None] = [] if seed is None else [f"{VARIABLE}={seed}"]
    words += ["dpaudit", "run", *([settings["mechanism"]] if "mechanism" in settings else [])]
    pair, form = list(map(as_lists, values)), settings.get("as")
    columns = columns_of(*pair)
    if form in ARRAYS and columns and [] in pair:
        return None  # JSON cannot write the columns of a table without rows
    for name, value in zip(("d1", "d2"), pair, strict=True):
        literal = as_given(value, form, columns)
        words += [f"--{name}", json.dumps(literal, ensure_ascii=False)]
    for name, value in settings["claim"].items():
        words += _flag(name, value)
    for name, value in dict(settings.get("params") or {}).items():
        words += ["--param", f"{name}={json.dumps(value, ensure_ascii=False)}"]
    settings = {**settings, **({"seed": result.seed} if result.seed else {})}
    for name, value in settings.items():
        if name not in _LEFT_OUT:
            words += _flag(name, value)
    return None if None in words else shlex.join(map(str, words))


def _has_bytes(value: Any) -> bool:
    """Return whether a value contains bytes, which JSON cannot write."""
    if isinstance(value, Mapping):
        return any(map(_has_bytes, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_bytes, value))
    return isinstance(value, bytes)


def _flag(name: str, value: Any) -> list[str | None]:
    """Return a flag and its value as words; [None] if no flag can express the value."""
    option = OPTIONS.get(name)
    if option is None or option.flag is None:
        return [None]
    if value is True:
        return [option.flag]
    if value is False:
        return []
    if name == "command":
        return [option.flag, value if isinstance(value, str) else shlex.join(value)]
    if name == "attacks":
        return [word for attack in value for word in (option.flag, attack)]
    if isinstance(value, list | Mapping):
        return [option.flag, json.dumps(value, ensure_ascii=False)]
    return [option.flag, str(value)]


def snippet(result: AuditResult) -> str | None:
    """Return Python code that audits only the witness; None if there is none."""
    number = witness_of(result)
    if number is None or result.searched is None:
        return None
    settings = _settings(result) or {}
    form = settings.get("as")
    pair = list(map(as_lists, result.searched.found[number]))
    columns = columns_of(*pair)
    arguments = [
        repr(settings["mechanism"]) if "mechanism" in settings else _name(result),
        *(
            f"{name}={in_form(value, form, columns)}"
            for name, value in zip(("d1", "d2"), pair, strict=True)
        ),
        f"claim=dpaudit.{result.claim!r}",
        f"adjacency={result.searched.adjacency!r}",
    ]
    arguments += [f"seed={result.seed}"] if result.seed else []
    arguments += ['batch_arg="none"'] if result.searched.one_by_one else []
    arguments += [f"params={settings['params']!r}"] if settings.get("params") else []
    body = ",\n    ".join(arguments)
    text = f"result = dpaudit.audit(\n    {body},\n)\nprint(result)"
    lines = [*imports(form, *pair), "import dpaudit"]
    special = [name for name in ("inf", "nan") if re.search(rf"(?<![\"\w]){name}\b(?!\")", text)]
    lines += [f"from math import {', '.join(special)}"] if special else []
    return "\n".join([*sorted(lines), text])


def _name(result: AuditResult) -> str:
    """Return the name of a mechanism that was passed as a function, or a placeholder."""
    name = result.target.rpartition(".")[2].rpartition(":")[2]
    return name if name.isidentifier() else "mechanism"


def _settings(result: AuditResult) -> dict[str, Any] | None:
    request, searched = result.request, result.searched
    # A user may have edited the file of results, so check the type of the settings.
    mapping = None if request is None else as_lists(request.get("settings"))
    if not isinstance(mapping, Mapping) or not isinstance(mapping.get("claim"), Mapping):
        return None
    settings = dict(mapping)
    return {**settings, "batch_arg": "none"} if searched and searched.one_by_one else settings
