"""`dpaudit run`: audit one mechanism, or run all audits that configuration files list."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import click

from dpaudit.auditing.familywise import is_open, settled
from dpaudit.auditing.options import DEFAULTS, OPTIONS, DrawnSeed, Journaling
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import AuditResult, Interrupted
from dpaudit.cli import exit_codes
from dpaudit.cli.batch import Printer, auditing, run_batch
from dpaudit.cli.click_classes import AuditCommand, command_line, repeating
from dpaudit.cli.completing import targets as complete_targets
from dpaudit.cli.flags import check_complete, given_settings, refuse_misread, some_flags
from dpaudit.cli.group import DEBUG
from dpaudit.cli.messages import standard_error, tell
from dpaudit.cli.saving import STDOUT, Destination, Results, check_writable, destinations, is_same
from dpaudit.cli.streams import OutputError, set_apart
from dpaudit.config.building import build_spec
from dpaudit.config.project import Project, here
from dpaudit.errors import ConfigurationError, Name, UsageError
from dpaudit.float_errors import auditor_errstate
from dpaudit.import_path import list_names, split
from dpaudit.reports.layout import pasted
from dpaudit.reports.numbers import unglued
from dpaudit.wording import counted

_CONFIGURATIONS = (".yaml", ".yml")


@click.command(
    cls=AuditCommand,
    epilog="""\b
Examples:
  dpaudit run mine.py:noisy_count --d1 '[1, 2]' --d2 '[1]' --epsilon 1
  dpaudit run audits.yaml --samples 1e5 -k noisy_count""",
)
@click.argument(
    "targets", nargs=-1, metavar="[TARGET|FILE.yaml...]", shell_complete=complete_targets
)
@some_flags(*(option.name for option in OPTIONS.values() if option.flag))
@click.pass_context
def run(
    ctx: click.Context,
    /,
    targets: tuple[str, ...],
    pattern: str | None,
    exitfirst: bool,
    maxfail: int | None,
    json: str | None,
    report: list[str],
    journal: str | None,
    resume: bool,
    familywise: bool,
    evidence: str | None,
    alarm: float | None,
    quiet: bool,
    verbose: int,
    **flags: Any,
) -> int:
    """Audit a mechanism, or all audits of configuration files.

    TARGET is package.module:function or path/to/file.py:function. Options override values in the
    files, and the files override [tool.dpaudit] in pyproject.toml. Without arguments, dpaudit runs
    the files named in pyproject.toml, or audits.yaml.
    """
    stdout = ctx.with_resource(set_apart())
    max_failures = _most_failures(maxfail, exitfirst=exitfirst)
    settings, project = given_settings(ctx, flags), here()
    targets = _targets(ctx, settings, project)
    requested = _requested(ctx, targets, settings, project, familywise=familywise)
    specs = _selected(requested, pattern)
    refuse_misread(ctx, specs)
    specs = journaled(specs, journal, resume, settings.get("seed"), project)
    record = None if evidence is None else Path(evidence).absolute()
    specs = specs if evidence is None else nightly(specs, Path(evidence))
    level = _alarm_level(alarm, has_record=record is not None)
    inputs: list[str | Path] = [
        *targets,
        *(file for spec in requested for file in spec.origin.files),
    ]
    outputs = destinations(json, report, inputs)
    if record is not None:
        _check_apart(record, outputs)
    results = Results(outputs, stdout, planned=len(specs))
    if not specs:
        listed = list_names(spec.name for spec in requested)
        tell(f"no audit's name matches -k {pattern!r}.{listed}")
        return exit_codes.NOTHING_MATCHED
    names = [spec.name for spec in specs]
    printer = Printer(names, quiet=quiet, verbose=verbose, to=results.beside)
    with auditing() as requests:
        debug, is_lone = ctx.meta.get(DEBUG, False), not _are_files(targets)
        outcomes = run_batch(specs, requests, quiet=quiet, debug=debug, is_lone=is_lone)
        if record is not None:
            outcomes = _with_nights(outcomes, specs, record, level)
        code = finished(outcomes, specs, printer, results, max_failures)
    if journal is None:
        forget(specs)
    return code


def run_lone(ctx: click.Context, spec: AuditSpec, targets: Sequence[str], stdout: TextIO) -> int:
    """Run the only audit of a command, show and save its result, and return the exit code.

    targets: the arguments of the command, which no report may replace.
    stdout: standard output, as `set_apart` returns it.
    """
    options = ctx.params
    quiet, journal = options["quiet"], options["journal"]
    specs = journaled([spec], journal, options["resume"], options["seed"], here())
    outputs = destinations(options["json"], options["report"], [*targets, *spec.origin.files])
    results = Results(outputs, stdout, planned=1)
    printer = Printer([spec.name], quiet=quiet, verbose=options["verbose"], to=results.beside)
    with auditing() as requests:
        debug = ctx.meta.get(DEBUG, False)
        outcomes = run_batch(specs, requests, quiet=quiet, debug=debug, is_lone=True)
        code = finished(outcomes, specs, printer, results)
    if journal is None:
        forget(specs)
    return code


def _targets(ctx: click.Context, settings: dict[str, Any], project: Project) -> tuple[str, ...]:
    """Return the arguments of a command, or the files of the project if there are none."""
    targets: tuple[str, ...] = ctx.params["targets"]
    if targets or "command" in settings:
        return targets
    if {"d1", "d2"} & settings.keys():  # inputs were given, so the argument TARGET is missing
        raise click.MissingParameter(ctx=ctx, param=ctx.command.params[0])
    return tuple(project.files())


def _most_failures(maxfail: int | None, *, exitfirst: bool) -> int | None:
    """Return the number of failed audits after which the run stops; None means no limit."""
    OPTIONS["maxfail"].read(maxfail)
    if exitfirst and maxfail not in (None, 1):
        raise UsageError(
            f"-x is --maxfail 1, and --maxfail is {maxfail}; give one of them",
            code="options-conflict",
        )
    return 1 if exitfirst else maxfail


def _alarm_level(alarm: float | None, *, has_record: bool) -> float:
    if alarm is not None and not has_record:
        why = " is about a record of nights; give "
        raise UsageError(Name("alarm"), why, Name("evidence"), " FILE too", code="option-missing")
    level: float = DEFAULTS["alarm"] if alarm is None else OPTIONS["alarm"].read(alarm)
    return level


@auditor_errstate()
def finished(
    outcomes: Iterable[tuple[AuditResult, int]],
    specs: Sequence[AuditSpec],
    printer: Printer,
    results: Results,
    most: int | None = None,
) -> int:
    """Print and save the result of each audit when the audit has ended. Return the exit code of the
    run. The run stops after `most` failed audits; None means no limit."""
    interim_results: list[AuditResult] = []
    codes: list[int] = []
    try:
        for result, code in outcomes:
            results.add(result)
            interim_results.append(result)
            codes.append(code)
            if len(interim_results) < len(specs):
                results.keep()
            # An open audit is not printed yet: Holm's procedure may still refute its claim once all
            # audits that share its false-alarm probability have ended.
            if not is_open(result):
                _show(printer, result)
            if isinstance(result.ending, Interrupted):
                continue  # `outcomes` raises the exception of the signal
            if most is not None and sum(map(bool, codes)) >= most:
                results.not_run = [spec.name for spec in specs[len(interim_results) :]]
                break
        final = _final(interim_results, len(specs), results)
        for interim, result in zip(interim_results, final, strict=True):
            if is_open(interim):
                printer.show(result)
    except KeyboardInterrupt:
        final = _final(interim_results, len(specs), results)
        results.finish()
        for interim, result in zip(interim_results, final, strict=True):
            # An audit is open until Holm's procedure decides its verdict from the results of all
            # audits. The run was interrupted, so some results are missing: each open audit is
            # printed with the verdict for its own share of the false-alarm probability.
            if is_open(interim):
                printer.show(result)
        ended = sum(not isinstance(result.ending, Interrupted) for result in interim_results)
        tell(f"\n{ended} of {counted(len(specs), 'audit')} finished")
        if specs[0].journaling.journal is not None:
            again = () if "--resume" in sys.argv else ("--resume",)
            line = command_line([*sys.argv[1:], *again])
            click.echo(f"continue with: {line}", file=standard_error())
        raise
    except (BrokenPipeError, OutputError):
        _final(interim_results, len(specs), results)
        results.finish()
        raise
    for index, (interim, result) in enumerate(zip(interim_results, final, strict=True)):
        if interim.verdict is not result.verdict:
            codes[index] = exit_codes.of_result(result)
    results.finish()
    printer.summarise(final, results.not_run)
    return exit_codes.worst(codes)


def _show(printer: Printer, result: AuditResult) -> None:
    """Print a result. After a signal, ignore errors of writing: the terminal may be closed."""
    is_interrupted = isinstance(result.ending, Interrupted)
    with suppress(*((BrokenPipeError, OutputError) if is_interrupted else ())):
        printer.show(result)


def _final(
    interim_results: Sequence[AuditResult], planned: int, results: Results
) -> list[AuditResult]:
    """Store and return the results, settled by Holm's procedure if all audits have ended."""
    if len(interim_results) < planned:
        return list(interim_results)
    final = settled(interim_results)
    for index, (interim, result) in enumerate(zip(interim_results, final, strict=True)):
        if interim != result:
            results.replace(index, result)
    return final


def _requested(
    ctx: click.Context,
    targets: Sequence[str],
    settings: dict[str, Any],
    project: Project,
    *,
    familywise: bool,
) -> list[AuditSpec]:
    """Return the audits that the command line asks for."""
    if _are_files(targets):
        paths = [Path(target) for target in targets]
        return _from_files(ctx, paths, settings, project, familywise=familywise)
    if familywise:
        raise UsageError(
            "--familywise is about the audits of a configuration file; give one",
            code="options-conflict",
        )
    for target in targets:
        _check_no_other_file(target)
    files = [target for target in targets if target.endswith(_CONFIGURATIONS)]
    if files:
        raise UsageError(
            f"give configuration files or one import path, not both: {files[0]!r}",
            code="arguments-wrong",
        )
    if len(targets) > 1:
        raise UsageError(
            f"one import path at a time, not {len(targets)} ({', '.join(targets)}); "
            "list them in a configuration file",
            code="arguments-wrong",
        )
    if targets:
        # Raises TargetError for a target without the name of a function, before any error about
        # missing flags.
        split(targets[0])
    target = targets[0] if targets else "--command …"
    example = f"dpaudit {ctx.info_name} {target} --d1 0 --d2 1 --epsilon 1"
    check_complete(settings, ("d1", "d2"), "an audit of one mechanism", example)
    named = {"mechanism": targets[0]} if targets else {}
    spec = build_spec({**named, **settings}, project)
    command = repeating(ctx, targets, spec.sampling.seed)
    return [replace(spec, origin=replace(spec.origin, command=command))]


def audits_of(ctx: click.Context) -> list[AuditSpec]:
    """Return the audits that a command line asks for. The command line names a mechanism or
    files."""
    settings, project = given_settings(ctx, ctx.params), here()
    targets, familywise = _targets(ctx, settings, project), ctx.params.get("familywise", False)
    requested = _requested(ctx, targets, settings, project, familywise=familywise)
    return _selected(requested, ctx.params["pattern"])


def inputs_of(ctx: click.Context, specs: Sequence[AuditSpec]) -> list[str | Path]:
    """Return the files of a command line and of its audits, which no result may replace."""
    targets = _targets(ctx, given_settings(ctx, ctx.params), here())
    return [*targets, *(file for spec in specs for file in spec.origin.files)]


def with_file(spec: AuditSpec, path: Path | str) -> AuditSpec:
    """Return an audit with its file in its name, to tell it from an audit of that name in another
    file."""
    name, request = f"{path}: {spec.name}", spec.origin.request
    if request is not None:
        request = {**request, "settings": {**request["settings"], "name": name}}
    return replace(spec, name=name, origin=replace(spec.origin, request=request))


def _are_files(targets: Sequence[str]) -> bool:
    return bool(targets) and all(target.endswith(_CONFIGURATIONS) for target in targets)


def _check_no_other_file(target: str) -> None:
    """Raise UsageError if a target is neither an import path nor a YAML file."""
    config, _, name = target.rpartition(":")
    if config.endswith(_CONFIGURATIONS):
        why = f"{target!r} is no import path; one audit of a file is run by"
        command = f"dpaudit run {shlex.quote(config)} -k {shlex.quote(name)}"
        raise UsageError(f"{why} {command}", code="wrong-kind-of-file")
    path = Path(target)
    if target and path.is_dir() and not (path / "__init__.py").is_file():  # no package
        inside = [*sorted(path.glob("[!.]*.y*ml")), *sorted(path.glob("[!.]*/[!.]*.y*ml"))]
        file = next(
            (candidate for candidate in inside if candidate.suffix in _CONFIGURATIONS), None
        )
        if file is None:
            raise UsageError(
                f"{target!r} is a folder without configuration files; give a .yaml file, or the "
                "import path of a mechanism, package.module:function",
                code="wrong-kind-of-file",
            )
        raise UsageError(
            f"{target!r} is a folder; name a file in it, e.g. {file}", code="wrong-kind-of-file"
        )
    suffix = path.suffix.lower()
    if suffix == ".json":
        raise UsageError(
            f"{target!r}: configuration files are YAML, so name a file of audits "
            f"{path.with_suffix('.yaml')} (all JSON is YAML); to see the results of --json, use "
            f"dpaudit report {target}",
            code="wrong-kind-of-file",
        )
    if suffix in (".toml", ".ini", ".cfg"):
        raise UsageError(
            f"{target!r}: configuration files are YAML, see docs/configuration.md",
            code="wrong-kind-of-file",
        )


def _from_files(
    ctx: click.Context,
    paths: Sequence[Path],
    settings: dict[str, Any],
    project: Project,
    *,
    familywise: bool,
) -> list[AuditSpec]:
    # Imported inside the function, since an audit of a TARGET on the command line does not need
    # PyYAML.
    from dpaudit.config.yaml_files import load_config

    resolved_paths: dict[Path, Path] = {}
    for path in paths:
        if path.resolve() in resolved_paths:
            raise ConfigurationError(
                f"the configuration file {str(path)!r} is given twice", code="file-twice"
            )
        resolved_paths[path.resolve()] = path
    loaded = []
    for path in paths:
        specs = load_config(path, settings, familywise=familywise, project=project)
        for spec in specs:
            # The command line of the result must run this audit only. -k gets `=NAME` if the plain
            # name would also select other audits.
            name = spec.name if _selected(specs, spec.name) == [spec] else f"={spec.name}"
            command = repeating(ctx, [str(path)], spec.sampling.seed, name)
            loaded.append((path, replace(spec, origin=replace(spec.origin, command=command))))
    names = [spec.name for _, spec in loaded]
    shared = {name for name in names if names.count(name) > 1}
    return [with_file(spec, path) if spec.name in shared else spec for path, spec in loaded]


def journaled(
    specs: list[AuditSpec],
    journal: str | None,
    resume: bool,
    seed: int | None,
    project: Project,
) -> list[AuditSpec]:
    """Return the audits, set up to write journals and to continue from them. --journal or the
    project gives the folder of the journals; with the folder of the project, audits always continue
    from their journals. Raises UsageError if a journal belongs to another audit."""
    if journal is None and project.journal is not None:
        journal, resume = project.journal, True
    if journal is None and not resume:
        return specs
    from dpaudit.auditing.journal import check_free

    journaled = []
    for spec in specs:
        used_seed = seed if isinstance(seed, DrawnSeed) else spec.sampling.seed
        sampling = replace(spec.sampling, seed=used_seed)
        journaling = Journaling(journal=journal, resume=resume)
        journaled.append(replace(spec, sampling=sampling, journaling=journaling))
    check_free(journaled)
    return journaled


def nightly(specs: Sequence[AuditSpec], record: Path) -> list[AuditSpec]:
    """Return audits whose certifying draws have fresh seeds, for a record of nights. Raises
    UsageError if the record cannot be read or written."""
    from dpaudit.nights.record import read, with_fresh_seed

    if str(record) == STDOUT:
        why = f"={STDOUT} names no file, and each night adds to a file; give its path"
        raise UsageError(Name("evidence"), why, code="option-invalid")
    check_writable(record, [file for spec in specs for file in spec.origin.files])
    read(record)
    return list(map(with_fresh_seed, specs))


def _check_apart(record: Path, outputs: Iterable[Destination]) -> None:
    """Raise UsageError if a report would replace the record of nights."""
    if any(is_same(str(record), output.file) for output in outputs):
        why = f" adds to {record.name}, and a report would replace it; give each its own file"
        raise UsageError(Name("evidence"), why, code="options-conflict")


def _with_nights(
    outcomes: Iterable[tuple[AuditResult, int]],
    specs: Sequence[AuditSpec],
    record: Path,
    level: float,
) -> Iterator[tuple[AuditResult, int]]:
    """Yield (result, exit code) with the evidence of all nights, as soon as an audit has ended."""
    from dpaudit.nights.record import add

    for (result, code), spec in zip(outcomes, specs, strict=False):
        night = add(record, level, spec, result)
        yield night, code if night is result else exit_codes.of_result(night)


def forget(specs: Sequence[AuditSpec]) -> None:
    """Remove the journals of a run that has ended, so that the next run makes new draws."""
    for spec in specs:
        if spec.journaling.journal is not None:
            from dpaudit.auditing.journal import remove

            remove(spec.journaling.journal, spec.name)


def _selected(specs: Sequence[AuditSpec], pattern: str | None) -> list[AuditSpec]:
    """Return the audits that the value of -k selects: x, `not x` or `=x`. None selects all."""
    if pattern is None:
        return list(specs)
    if pattern.startswith("="):
        return [spec for spec in specs if pattern[1:] in _names(spec)]
    text = pattern.strip().lower()
    wanted = not text.startswith("not ")
    text = text.removeprefix("not ").strip()
    matches = [any(text in name.lower() for name in _names(spec)) for spec in specs]
    if not any(matches) and {"and", "or"}.intersection(text.split()):
        why = f" {pattern!r} is one text, and no audit has it in its name: "
        remedy = "give a part of the names, 'not PART' or =NAME"
        raise UsageError(Name("pattern"), why, remedy, code="option-invalid")
    return [spec for spec, has_it in zip(specs, matches, strict=True) if has_it is wanted]


def _names(spec: AuditSpec) -> tuple[str, ...]:
    """Return the name of an audit, and the same name as printed in commands; -k accepts both."""
    return spec.name, unglued(pasted(f"-k {spec.name}")).removeprefix("-k ")
