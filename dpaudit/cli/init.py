"""`dpaudit init`: write a configuration file, a test and a workflow for a mechanism, and run a
first audit."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from dpaudit.adapters.loading import load_mechanism
from dpaudit.auditing.options import DEFAULTS, OPTIONS
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.claims import implied_definition, missing_parameters
from dpaudit.cli import exit_codes
from dpaudit.cli.batch import Printer, auditing, run_batch
from dpaudit.cli.completing import targets as complete_targets
from dpaudit.cli.flags import given_settings, some_flags
from dpaudit.cli.group import DEBUG
from dpaudit.cli.init_files import (
    CONFIG,
    FILES,
    TEST,
    UNKNOWN,
    WORKFLOW,
    Start,
    contents,
    requirement,
)
from dpaudit.cli.options import USUAL, AuditCommand, option
from dpaudit.cli.saving import check_writable, write_together
from dpaudit.cli.signature import (
    CLAIMED,
    Guess,
    Reading,
    claimed_defaults,
    fitting,
    guess,
    read,
)
from dpaudit.cli.streams import set_apart
from dpaudit.config.building import build_claims, build_spec
from dpaudit.config.project import Project, here
from dpaudit.config.settings import FILL_IN
from dpaudit.errors import DpauditError, UsageError
from dpaudit.import_path import is_file, resolve, split
from dpaudit.inputs.adjacency import parse_adjacency
from dpaudit.inputs.datasets import load_dataset, parse_dataset
from dpaudit.inputs.decoding import check_read
from dpaudit.inputs.values import resolved, written
from dpaudit.outcomes import Raised
from dpaudit.reports.layout import wrap
from dpaudit.targets.target import ImportedTarget
from dpaudit.wording import did_you_mean

_TARGET = ("init", "call", "factory", "params", "batch_arg", "data_arg", "rng_arg", "post_process")
_FLAGS = ("epsilon", "delta", "d1", "d2", "params")
_MAKING = ("init", "call", "factory")
_MORE = (
    *("batch_arg", "data_arg", "rng_arg", "post_process", "as", "adjacency"),
    *(one for one in CLAIMED if one not in _FLAGS),
    *("group", "definition"),
)
# Possible numbers of draws of the first audit. The file gets the largest number whose draws take at
# most `_MAX_SECONDS` (10 s), or the smallest number if even its draws take longer.
_BUDGETS = (100_000, 10_000, 1_000)
# Longest time that the draws of the first audit may take, in seconds.
_MAX_SECONDS = 10.0
# Number of draws of each input in the first round of measuring the speed.
_FIRST_DRAWS = 3
# Largest number of rounds of measuring the speed. After a round of less than `_SHORT_SECONDS`
# seconds, the next one has ten times as many draws: a call of a mechanism that draws in batches may
# take as long for 3 draws as for 300.
_MAX_ROUNDS, _SHORT_SECONDS = 3, 0.1


@click.command(
    cls=AuditCommand,
    epilog="""\b
Examples:
  dpaudit init mine.py:noisy_count
  dpaudit init mine.py:noisy_count --epsilon 1 --d1 '[1, 2, 3]' --d2 '[1, 2]'""",
)
@click.argument("target", metavar="TARGET", shell_complete=complete_targets)
@some_flags(*_FLAGS)
@some_flags(
    samples=f"Draws of both inputs together. Default: {_BUDGETS[0]:,}, fewer if a draw is slow."
)
@some_flags(*_MAKING, *_MORE)
@option("--force", is_flag=True, section=USUAL, help="Replace existing files.")
@option("--no-run", is_flag=True, section=USUAL, help="Write the files without running the audit.")
@some_flags("debug")
@click.pass_context
def init(ctx: click.Context, /, target: str, force: bool, no_run: bool, **flags: Any) -> int:
    """Write audits.yaml, test_privacy.py and a GitHub workflow for TARGET, and run a first audit.

    TARGET is package.module:function or path/to/file.py:function. dpaudit reads missing values
    from its signature, or asks for them on a terminal. The files have FILL_IN in place of values
    that are still unknown.
    """
    settings = given_settings(ctx, flags)
    if "samples" in settings:  # checked here, since no audit is built while a value is missing
        OPTIONS["samples"].verify(settings["samples"])
    _check_names_one(target)
    target = _from_here(target)
    stdout = ctx.with_resource(set_apart())
    resolve(target)  # first: a wrong target matters more than files that exist
    # Checked before the user is asked any question, so that no answers are lost.
    _check_free(FILES, force=force)
    wanted = requirement()
    start = _started(target, settings, here())
    texts = contents(start, wanted)
    write_together({path: text.encode() for path, text in texts.items()})
    for path in texts:
        click.echo(f"wrote {path}", file=stdout)
    origin = _origin() if wanted == UNKNOWN else ""
    if start.holes:
        click.echo(f"\n{_to_fill_in(start)}{origin}", file=stdout)
        return exit_codes.NOTHING_FOUND
    if no_run:
        click.echo(f"\n{_next(None)}{origin}", file=stdout)
        return exit_codes.NOTHING_FOUND
    click.echo(file=stdout)
    result, code = _audited(ctx)
    Printer([result.name], quiet=False, verbose=0, to=stdout).show(result)
    click.echo(f"\n{_next(result)}{origin}", file=stdout)
    return code


def _started(target: str, settings: dict[str, Any], project: Project) -> Start:
    """Return a `Start`: the settings of a first audit, from flags, answers at the terminal, and the
    mechanism's signature.

    project: settings of the project; its defaults are written into the files.
    """
    made = {key: settings[key] for key in _TARGET if key in settings}
    defaults = claimed_defaults(resolve(target))
    claim = _claim(dict(settings.get("claim", {})), target, defaults)
    # Convert numbers of the claim to float, since some libraries refuse an int.
    known = {name: _float(claim[name]) for name in CLAIMED if name in claim}
    reading = read(_target(target, made), known)
    reading = _asked(reading, known)
    made |= _read_of(reading.target)
    mechanism = None
    if reading.is_complete:
        mechanism = load_mechanism(_resolved(reading.target))
    inputs, remarks = _inputs(reading, settings, mechanism)
    has_inputs = FILL_IN not in (inputs["d1"], inputs["d2"])
    samples = settings.get("samples") or project.settings.get("samples")
    samples = samples or _samples(mechanism if has_inputs else None, inputs)
    confidence = project.settings.get("confidence")
    if reading.methods:
        made["call"] = FILL_IN
    found = {"name": target.rpartition(":")[2], "mechanism": target, **made, "claim": claim}
    remarks["claim"] = "The claim to test."
    remarks |= _on_defaults(reading, known, settings)
    remarks["samples"] = "Draws of both inputs together. More draws find smaller leaks."
    numbers = {
        "samples": samples,
        "confidence": confidence or DEFAULTS["confidence"],
        "seed": project.settings.get("seed", DEFAULTS["seed"]),
    }
    remarks["confidence"] = (
        "1 minus the probability of a false alarm. With the same seed, a run makes the same draws."
    )
    start = Start({**found, **inputs, **numbers}, remarks, reading.methods)
    if confidence is not None:
        start = replace(start, confidence_of_tests=confidence)
    if not start.holes:
        # Build the audit only to raise the errors that `dpaudit run` would raise for this file.
        build_spec(start.settings, project)
    return start


def _on_defaults(
    reading: Reading, known: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, str]:
    """Return comments for the keys `init` and `params` of the configuration file, which hold
    arguments of the mechanism, as a dict {key: comment}.

    A comment is about arguments that have the name of a claim's parameter, such as epsilon, and
    that the user did not give. It says whether such an argument has its default or the claimed
    number. A key without such arguments has no comment.
    """
    remarks = {}
    for key in ("init", "params"):
        arguments = getattr(reading.target, key)
        if not isinstance(arguments, Mapping):
            continue
        texts = [
            _on_default(name, default, arguments[name], known)
            for name, default in reading.defaults.items()
            if name in arguments and name not in settings.get(key, ())
        ]
        if any(texts):
            remarks[key] = " ".join(filter(None, texts))
    return remarks


def _on_default(name: str, default: Any, value: Any, known: Mapping[str, Any]) -> str:
    if value == FILL_IN:
        return f"{name} has the default {default:g}: put in the claimed number."
    if name in known:
        is_claimed = value == known[name]
        return f"{name} is the claim's; its default is {default:g}." if is_claimed else ""
    return f"{name}={default:g} is the default: the claim has no {name}."


def _float(value: Any) -> Any:
    return value if value == FILL_IN else float(value)


def _check_names_one(target: str) -> None:
    """Raise UsageError if `target` names a configuration file, where the command needs a
    mechanism."""
    if target.endswith((".yaml", ".yml")):
        there = f"; to run its audits: dpaudit run {target}" if Path(target).is_file() else ""
        raise UsageError(
            f"{target!r} is a file of audits, which init writes; name a mechanism, such as "
            f"mine.py:function{there}",
            code="wrong-kind-of-file",
        )


def _from_here(target: str) -> str:
    """Return an import path such as `file.py:name` with its file relative to the working directory.
    A path without a file is returned unchanged."""
    module, attribute = split(target)
    if not is_file(module):
        return target
    file = Path(os.path.normpath(Path(os.getcwd()) / module))
    here = Path(os.getcwd())
    return f"{file.relative_to(here)}:{attribute}" if file.is_relative_to(here) else target


def _target(path: str, made: Mapping[str, Any]) -> ImportedTarget:
    return ImportedTarget(path=path, **{key: written(value) for key, value in made.items()})


def _resolved(target: ImportedTarget) -> ImportedTarget:
    return replace(target, params=resolved(target.params))


def _read_of(target: ImportedTarget) -> dict[str, Any]:
    """Return a dict {key of the configuration file: value} that describes a target."""
    found = {key: getattr(target, key) for key in _TARGET}
    return {key: value for key, value in found.items() if value not in (None, False, {})}


def _claim(given: dict[str, Any], target: str, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claim as a dict {parameter: number}, from flags or answers, with FILL_IN for a
    missing number.

    defaults: maps parameters of the mechanism to their defaults, which the questions mention.
    """
    if not given and _is_terminal():
        name = target.rpartition(":")[2]
        epsilon = _ask(f"the ε that {name!r} claims", _claimed("epsilon"), defaults.get("epsilon"))
        if epsilon is not None:
            asked = "its δ (0 if there is none)"
            delta = _ask(asked, _claimed("delta", epsilon=epsilon), defaults.get("delta"))
            given = {"epsilon": epsilon, **({"delta": delta} if delta else {})}
    definition = given.get("definition") or implied_definition(given)
    claim = {key: _short(value) for key, value in given.items()}
    claim |= dict.fromkeys(missing_parameters(given, definition), FILL_IN)
    if FILL_IN not in claim.values():
        build_claims(claim)
    return claim


def _claimed(name: str, **beside: float) -> Callable[[str], float]:
    """Return a function that converts a typed text, such as `0.5`, to the number of the parameter
    `name` of a claim. The function raises UsageError if the text is not a number, or if no claim
    can have this number.

    beside: numbers of the claim's other parameters, by name.
    """

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise UsageError(
                f"{text!r} is not a number; write one such as 0.5", code="option-invalid"
            ) from None
        if name != "delta" or number:
            build_claims({**beside, name: number})
        return number

    return parse


def _short(value: Any) -> Any:
    """Return a number in its shortest form, such as 1 for 1.0. Other values are returned
    unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _asked(reading: Reading, known: Mapping[str, Any]) -> Reading:
    """Return `reading` with the missing values that the user has typed. Without a terminal, ask
    nothing and return `reading` unchanged."""
    if not _is_terminal():
        return reading
    target = reading.target
    if reading.methods:
        methods = reading.methods
        method = _ask(f"the method that draws, of {', '.join(methods)}", partial(_one_of, methods))
        if method is not None:
            reading = _asked(read(replace(target, call=method), known), known)
        return reading
    init, params = target.init, dict(target.params)
    for names, into, what in (
        (reading.init, init, "the constructor's argument"),
        (reading.params, params, "the argument"),
    ):
        for name in names:
            value = _ask(f"{what} {name!r}", _argument, reading.defaults.get(name))
            if value is not None and isinstance(into, dict):
                into[name] = value
    kept = {name: value for name, value in params.items() if value != FILL_IN}
    made = init
    if isinstance(init, dict):
        made = {name: value for name, value in init.items() if value != FILL_IN} or None
    return read(replace(target, init=made, params=kept), known)


def _argument(text: str) -> Any:
    parsed = parse_dataset(text)
    check_read(text, parsed, is_dataset=False)
    value = written(parsed)
    resolved(value)  # raises for a reference to a missing file or import
    return value


def _one_of(names: Sequence[str], text: str) -> str:
    if text not in names:
        raise UsageError(
            f"there is no method {text!r}.{did_you_mean(text, names)}", code="name-not-found"
        )
    return text


def _ask(what: str, kind: Callable[[str], Any], suggested: Any = None) -> Any:
    """Ask a question at the terminal and return the answer, or None for an empty answer.

    what: the question.
    kind: function that reads the answer.
    suggested: default of the mechanism's parameter, shown in the question. An empty answer does not
        select it.
    """

    def parse(text: str) -> Any:
        if not text.strip():
            return None
        try:
            return kind(text.strip())
        except (ValueError, DpauditError) as error:
            raise click.BadParameter(str(error)) from None

    hint = "" if suggested is None else f"the default of its parameter is {suggested:g}; "
    return click.prompt(
        f"{what} ({hint}empty: later)", default="", show_default=False, value_proc=parse, err=True
    )


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _inputs(
    reading: Reading, settings: Mapping[str, Any], mechanism: Any
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return two dicts for the configuration file. The first holds the inputs `d1` and `d2` and, if
    known, the form in which the mechanism takes them (`as`) and the neighbouring relation
    (`adjacency`). The second maps keys with guessed values to comments."""
    beside = {key: settings[key] for key in ("as", "adjacency") if key in settings}
    given = {key: settings[key] for key in ("d1", "d2") if key in settings}
    if len(given) == 2:
        return {**given, **beside}, {}
    found = Guess()
    if not given:
        found = guess(reading, None if mechanism is None else lambda one: _takes(mechanism, one))
        if "adjacency" in settings:
            found = fitting(found, parse_adjacency(settings["adjacency"]))
    for key in ("d1", "d2"):
        if key not in given:
            asked = None
            if not found.has_inputs and _is_terminal():
                which = "one input" if key == "d1" else "its neighbour"
                form = beside.get("as", found.form)
                asked = _ask(f"{key}, {which}", partial(_value, form=form))
            guessed = getattr(found, key) if found.has_inputs else FILL_IN
            given[key] = guessed if asked is None else asked
    if found.form is not None:
        beside.setdefault("as", found.form)
    remarks = {}
    if found.adjacency is not None and "adjacency" not in beside:
        beside["adjacency"] = found.adjacency
        remarks["adjacency"] = (
            "Guessed from these inputs: one record more or less. Write the relation of your "
            "claim; with replace, d1 and d2 need equal numbers of records."
        )
    if not found.has_inputs:
        return {**given, **beside}, {}
    remark = (
        f"Two neighbouring inputs, guessed from {found.why}. An audit tests only these two: choose "
        "the pair that you expect to leak most."
    )
    return {**given, **beside}, {"d1": remark, **remarks}


def _value(text: str, form: str | None) -> Any:
    value = parse_dataset(text)
    check_read(text, value)
    load_dataset(value, form=form)  # raises for a reference to a missing file or import
    return value


def _takes(mechanism: Any, inputs: Guess) -> bool:
    """Return whether a mechanism accepts both inputs: for each input, it returns a value other than
    None and raises no exception."""
    try:
        outputs = [
            output
            for one in (inputs.d1, inputs.d2)
            for output in mechanism.sample(load_dataset(one, form=inputs.form), 2, _rng())
        ]
    except DpauditError:
        return False
    return not any(isinstance(one, Raised) or one is None for one in outputs)


def _samples(mechanism: Any, inputs: Mapping[str, Any]) -> int:
    """Return the number of draws for the first audit: the largest of `_BUDGETS` that takes at most
    10 seconds (`_MAX_SECONDS`). A few draws are timed to find the speed."""
    if mechanism is None:
        return _BUDGETS[0]
    form = inputs.get("as")
    with suppress(DpauditError):
        pair = [load_dataset(inputs[key], form=form) for key in ("d1", "d2")]
        taken: list[float] = []
        draws, each = _FIRST_DRAWS, math.inf
        # The fastest round counts: the first round may include imports, and other programs may slow
        # down any round.
        while len(taken) < _MAX_ROUNDS and sum(taken) < _MAX_SECONDS:
            began = time.perf_counter()
            for one in pair:
                mechanism.sample(one, draws, _rng())
            taken.append(time.perf_counter() - began)
            each = min(each, taken[-1] / (draws * len(pair)))
            draws *= 10 if taken[-1] < _SHORT_SECONDS else 1
        return next((one for one in _BUDGETS if one * each <= _MAX_SECONDS), _BUDGETS[-1])
    return _BUDGETS[0]


def _rng() -> Any:
    import numpy as np

    return np.random.default_rng(0)


def _check_free(paths: Sequence[Path], *, force: bool) -> None:
    """Raise UsageError if one of the files cannot be written. All files are checked before the
    first is written.

    force: allow files that exist.
    """
    there = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if there and not force:
        verb = "is" if len(there) == 1 else "are"
        raise UsageError(
            f"{', '.join(there)} {verb} there already, so nothing was written; --force replaces "
            f"{'it' if len(there) == 1 else 'them'}, or add an audit to {CONFIG} by hand",
            code="file-exists",
        )
    for path in paths:
        folder = next(one for one in path.absolute().parents if one.exists())
        if not folder.is_dir():
            raise UsageError(
                f"cannot write {path}: '{folder}' is a file, not a folder", code="cannot-write"
            )
        if path.parent.is_dir():
            check_writable(path)
        elif not os.access(folder, os.W_OK | os.X_OK):
            raise UsageError(
                f"cannot write {path}: Permission denied in the folder '{folder}'",
                code="cannot-write",
            )


def _audited(ctx: click.Context) -> tuple[AuditResult, int]:
    """Run the audit in the configuration file that was just written. Return its result and the exit
    code."""
    from dpaudit.config.loading import load_config

    spec = load_config(CONFIG, project=here())[0]
    command = f"dpaudit run {CONFIG} -k {spec.name}"
    spec = replace(spec, origin=replace(spec.origin, command=command))
    with auditing() as requests:
        debug = ctx.meta.get(DEBUG, False)
        return next(iter(run_batch([spec], requests, quiet=False, debug=debug, is_lone=True)))


def _to_fill_in(start: Start) -> str:
    names = ", ".join(start.holes)
    return "\n".join(
        wrap(
            f"Still to be filled in, where {CONFIG} and {TEST} say FILL_IN: {names}. Then: "
            f"dpaudit run {CONFIG}"
        )
    )


def _origin() -> str:
    """Return a message that the user must name, in the workflow of GitHub, a place from which to
    install dpaudit. Called if this dpaudit was installed from a folder that other machines do not
    have."""
    text = (
        f"In {WORKFLOW}, replace FILL_IN by the place where GitHub gets dpaudit: this dpaudit was "
        "installed from a folder that other machines do not have."
    )
    return "\n\n" + "\n".join(wrap(text))


def _next(result: AuditResult | None) -> str:
    """Return text that says what the user can do next.

    result: result of the first audit; None if no audit was run.
    """
    text = f"Next: read {CONFIG}, and choose the two inputs that you think leak most. "
    if result is not None and result.verdict is Verdict.VIOLATION:
        text = (
            "Next: if the claim is right for these two inputs, correct the mechanism. If they are "
            "not neighbours, choose others. "
        )
    elif result is not None and result.verdict is Verdict.ERROR:
        text = f"Next: correct the cause of the error, in {CONFIG} and {TEST}. "
    commands = (
        f"Then: dpaudit run {CONFIG}; pip install pytest; pytest {TEST}. The workflow runs at the "
        "next push."
    )
    return "\n".join(wrap(text + commands))
