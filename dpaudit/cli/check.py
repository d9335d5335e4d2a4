"""`dpaudit check`: load what `dpaudit run` would load, and report the first error of each audit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpaudit.auditing.spec import AuditSpec
from dpaudit.cli import exit_codes
from dpaudit.cli.batch import reason_of
from dpaudit.cli.click_classes import Choice
from dpaudit.cli.group import DEBUG, debug_option, error_line, print_traceback
from dpaudit.cli.leaving import kept_from_leaving
from dpaudit.cli.messages import tell
from dpaudit.cli.streams import kept, set_apart
from dpaudit.errors import code_of
from dpaudit.targets.target import AnyTarget, CommandTarget, single_targets, starts_a_program
from dpaudit.wording import counted

if TYPE_CHECKING:
    from dpaudit.config.problems import Locate


@click.command
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@debug_option
@click.pass_context
def check(ctx: click.Context, /, files: tuple[Path, ...]) -> int:
    """Check configuration files without running an audit: keys, values, claims and inputs, and
    whether mechanisms can be imported and constructed.

    dpaudit imports the mechanisms, attacks and functions that a file names, unless its version or
    structure is wrong. It starts programs (command, python) only if the file has no other problem;
    a program must print its first line within 10 seconds. Without arguments, dpaudit checks the
    files that dpaudit run would run.

    Exit code 0 if there is no problem, else 2. Each audit reports its first error, on one line.
    """
    # Imported inside the function, so that other commands need not import PyYAML and NumPy.
    from dpaudit.config.project import here
    from dpaudit.config.yaml_files import check_config

    stdout = ctx.with_resource(set_apart())
    project = here()
    files = files or tuple(map(Path, project.files()))
    wrong = 0
    for file in dict.fromkeys(files):
        loaded = check_config(file, project=project)
        debug = bool(ctx.meta.get(DEBUG))
        problems = [error_line(error, debug=debug) for error in loaded.problems]
        problems += _unloadable(_imported(loaded.specs), debug=debug)
        if not problems:
            programs = (entry for entry in loaded.specs if starts_a_program(entry[1].target))
            problems += _unloadable((("mechanism", *entry) for entry in programs), debug=debug)
        for text in sorted(problems, key=_line):
            tell(text)
        wrong += len(problems)
        if not problems:
            summary = f"{file}: {counted(len(loaded.specs), 'audit')}"
            for text in dict.fromkeys(_underpowered(loaded.specs)):
                tell(text)
            click.echo(summary, file=stdout)
    if not wrong:
        return exit_codes.NOTHING_FOUND
    tell(counted(wrong, "problem"))
    return exit_codes.USAGE


def _imported(specs: Iterable[tuple[Locate, AuditSpec]]) -> Iterator[tuple[str, Locate, AuditSpec]]:
    """Yield (key, locate, audit) for each mechanism or attack that is not a program."""
    for locate, spec in specs:
        if not starts_a_program(spec.target):
            yield "mechanism", locate, spec
        else:
            for part in single_targets(spec.target):
                if not starts_a_program(part):
                    yield "mechanism", locate, replace(spec, target=part)
        yield "attacks", locate, spec


def _unloadable(to_load: Iterable[tuple[str, Locate, AuditSpec]], *, debug: bool) -> Iterator[str]:
    """Yield one message for each mechanism or attack that cannot be loaded, without repetitions."""
    from dpaudit.auditing.engine import check_attacks, check_mechanism

    texts = set()
    # Maps a program that failed to its error. The program is not started again: in a matrix of
    # audits, each start of a program that prints nothing would wait for its whole time limit.
    failed: dict[AnyTarget, tuple[str, str]] = {}
    for key, locate, spec in to_load:
        program = spec.target if isinstance(spec.target, CommandTarget) else None
        program = program if key == "mechanism" else None
        reason = None if program is None else failed.get(program)
        if reason is None:
            try:
                with kept(), kept_from_leaving():
                    (check_mechanism if key == "mechanism" else check_attacks)(spec)
                continue
            except (Exception, SystemExit) as error:  # noqa: BLE001  # a line, as all others are
                reason = (code_of(error), _reason(error, spec))
                if debug:
                    print_traceback(error)
        if program is not None:
            failed[program] = reason
        code, words = reason
        text = f"error{f'[{code}]' if debug else ''}: {locate((key,))}{words}"
        if text not in texts:
            texts.add(text)
            yield text


def _line(text: str) -> int:
    """Return the line number in the file that an error message names, or 0 if it names none."""
    match = re.match(r"error[^ ]*: .*?:(\d+): ", text)
    return 0 if match is None else int(match[1])


def _reason(error: BaseException, spec: AuditSpec) -> str:
    if isinstance(error, Exception):
        return reason_of(error, spec)
    return f"{type(error).__name__}: {error}, raised while the mechanism was loaded"


def _underpowered(specs: Iterable[tuple[Locate, AuditSpec]]) -> Iterator[str]:
    from dpaudit.auditing.underpowered import foreseen

    for locate, spec in specs:
        reason = None if spec.requirements.allow_underpowered else foreseen(spec)
        if reason is not None:
            yield f"warning: {locate(())}{spec.name}: under-powered: {reason}"


@click.command
@click.argument("what", type=Choice(["config", "result"]), default="config")
@debug_option
def schema(what: str) -> None:
    """Print the JSON schema (2020-12) of configuration files (config), or of the files that --json
    writes (result).

    \b
    dpaudit schema > dpaudit.schema.json
    dpaudit schema result > result.schema.json
    """
    from dpaudit.config.schema import schema as configuration_schema
    from dpaudit.reports.json import schema as result_schema

    document = configuration_schema() if what == "config" else result_schema()
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
