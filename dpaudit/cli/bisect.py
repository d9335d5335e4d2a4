"""`dpaudit bisect`: find the releases of a package that leak."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dpaudit.auditing.options import owned
from dpaudit.cli import exit_codes
from dpaudit.cli.click_classes import USUAL, AuditCommand, option
from dpaudit.cli.completing import targets as complete_targets
from dpaudit.cli.flags import (
    check_complete,
    check_given,
    check_target,
    given_settings,
    some_flags,
)
from dpaudit.cli.messages import tell
from dpaudit.cli.saving import outputs_of, write_outputs
from dpaudit.cli.signals import heeded
from dpaudit.cli.streams import set_apart
from dpaudit.config.building import build_spec
from dpaudit.errors import UsageError
from dpaudit.import_path import check_file, split
from dpaudit.releases.bisecting import ReleaseResult, bisected
from dpaudit.releases.environments import Environments, NotInstallable, releases

_CALL = ("params", "init", "call", "factory", "batch_arg", "data_arg", "rng_arg", "as")
_CLAIM = tuple(
    option.name for option in owned("claim") if option.flag and option.name != "adversary"
)
_EXAMPLE = "--d1 0 --d2 1 --epsilon 1 --package opendp --versions 0.13..latest --found-in 0.14.1"


@click.command(
    cls=AuditCommand,
    epilog="""\b
Example:
  dpaudit bisect mine.py:make --factory --d1 0 --d2 1 --epsilon 0.5 \\
    --package opendp --versions 0.13..latest --found-in 0.14.1""",
)
@click.argument("target", metavar="TARGET", shell_complete=complete_targets)
@some_flags("d1", "d2", "adjacency", *_CALL, *_CLAIM)
@option("--package", metavar="NAME", section=USUAL, help="The package on the package index.")
@option(
    "--versions",
    metavar="VERSIONS",
    section=USUAL,
    help="The releases to test: 0.13..latest, or a list, 0.13.0,0.14.1.",
)
@option(
    "--found-in",
    metavar="VERSION",
    section=USUAL,
    help="The release in which dpaudit looks for the event.",
)
@option(
    "--with",
    "beside",
    multiple=True,
    metavar="REQUIREMENT",
    section="Processes",
    help="A further package for every environment (repeatable).",
)
@option(
    "--cache",
    metavar="DIR",
    default=".dpaudit/releases",
    section="Processes",
    help="The folder of the environments. Default: .dpaudit/releases.",
)
@option(
    "--one-at-a-time",
    is_flag=True,
    section="Processes",
    help="Remove each environment after its test.",
)
@some_flags(
    "confidence",
    "seed",
    python="The Python for which environments are made.",
    samples="Draws for each release.",
    json="Save the result in this file. With '-', it goes to standard output, and the report to "
    "stderr.",
    report="Also write a report (repeatable): text, json, markdown or html.",
)
@some_flags("debug")
@click.pass_context
def bisect(
    ctx: click.Context,
    /,
    target: str,
    package: str | None,
    versions: str | None,
    found_in: str | None,
    beside: tuple[str, ...],
    cache: str,
    one_at_a_time: bool,
    json: str | None,
    report: list[str],
    **flags: Any,
) -> int:
    """Find the releases of a package in which TARGET leaks.

    dpaudit looks for an event on one release and freezes it. Then it installs each release in an
    environment of its own, by uv or pip, and tests the same event there. There are three answers
    for a release: refuted; not refuted, if the test had the power to show the leak; cannot tell.

    Exit code 1 if a release is refuted, 0 if none is, 4 if dpaudit cannot tell for any release, 3
    if the calls of TARGET fail on the release of --found-in.
    """
    stdout = ctx.with_resource(set_apart())
    settings = given_settings(ctx, flags)
    required = {"package": package, "versions": versions, "found-in": found_in}
    check_given(required, f"e.g. dpaudit bisect {target} {_EXAMPLE}")
    check_target(target, "; a search for releases takes one import path")
    check_file(split(target)[0])
    check_complete(settings, ("d1", "d2"), "a bisection", f"dpaudit bisect {target} {_EXAMPLE}")
    python = settings.pop("python", sys.executable)
    # Checks the settings before any release is installed.
    spec = build_spec({"mechanism": target, "python": sys.executable, **settings})
    known = ("text", "json", "markdown", "html")
    outputs = outputs_of(json, report, known, spec.origin.files)
    folder = Path(cache).expanduser()
    if not folder.is_dir() and folder.exists():
        raise UsageError(f"--cache {cache} is a file; name a folder", code="option-invalid")
    release = str(found_in)
    all_releases = releases(str(package), f"{versions}")
    releases(str(package), release)  # raises UsageError for a misspelt release
    environments = Environments(folder, str(package), beside, python)
    with heeded():
        try:
            interpreter = environments.interpreter(release)
            spec = build_spec({"mechanism": target, "python": interpreter, **settings})
            versions_ = all_releases if release in all_releases else [release, *all_releases]
            result = bisected(
                spec, environments, versions_, release, is_kept=not one_at_a_time, on_release=_say
            )
        except NotInstallable as error:
            why = (
                f"--found-in {release}: {package} {release} does not install: {error} Name a "
                "release that does, or another Python with --python"
            )
            raise UsageError(why, code="release-not-installable") from None
    from dpaudit.reports.bisection_report import FORMATS

    write_outputs(outputs, lambda kind: FORMATS[kind](result), stdout)
    answers = {release_result.answer for release_result in result.tested}
    if "refuted" in answers:
        return exit_codes.VIOLATION
    return exit_codes.UNDERPOWERED if answers == {"cannot tell"} else exit_codes.NOTHING_FOUND


def _say(result: ReleaseResult) -> None:
    words = f"{result.release}: {result.answer}" + (f" ({result.why})" if result.why else "")
    tell(words)
