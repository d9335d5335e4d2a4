"""`dpaudit bound`: audit recorded outputs, or the canaries of one training run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dpaudit.auditing.options import owned
from dpaudit.certificates.canary_certificate import Sides
from dpaudit.certificates.result import AuditResult
from dpaudit.claims import PrivacyClaim
from dpaudit.cli import exit_codes
from dpaudit.cli.batch import Printer
from dpaudit.cli.click_classes import AuditCommand, Choice, option, repeating
from dpaudit.cli.flags import check_complete, given_settings, some_flags, whole_number
from dpaudit.cli.saving import Results, destinations
from dpaudit.cli.signals import heeded
from dpaudit.cli.streams import set_apart
from dpaudit.config.building import build_claims, named_files
from dpaudit.config.project import here
from dpaudit.errors import UsageError
from dpaudit.stats.one_run import Guesses

_EXAMPLE = "dpaudit bound d1.npy d2.npy --epsilon 1"
_CANARIES = "dpaudit bound --canaries run.csv --mu 1"
_GUESSES = "dpaudit bound --guesses 1000 100 75 --epsilon 1"


class _BoundCommand(AuditCommand):
    """The class of the command `bound`. It reports a negative number as too small; click would
    report it as an unknown option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        arguments = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if not error.option_name[1:2].isdigit():
                raise
            word = next(
                argument for argument in arguments if argument.startswith(error.option_name)
            )
            raise click.UsageError(
                f"{word} is below 0; --guesses takes three numbers, each at least 0, as in "
                f"{_GUESSES}",
                ctx,
            ) from None


# Names of columns in a file of --canaries or of --guesses.
_OF_CANARIES, _OF_GUESSES = ("included", "score", "canary", "run"), ("included", "guess")


def _columns(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, str]:
    """Read a text such as `score=loss,canary=id` as a mapping from name to column."""
    pairs = [pair.partition("=") for pair in value.split(",")] if value else []
    columns = {name.strip(): column.strip() for name, _, column in pairs}
    if len(columns) < len(pairs) or not all(column.strip("-") for column in columns.values()):
        why = f"{value!r} must be pairs such as included=member,score=loss, with each name once"
        raise click.BadParameter(why, ctx, param)
    return columns


def _check_columns(columns: Mapping[str, str], names: Sequence[str]) -> None:
    for name in columns:
        if name not in names:
            raise UsageError(
                f"--columns cannot name {name!r} here; it names {', '.join(_OF_CANARIES)} of a "
                f"file of --canaries, or {', '.join(_OF_GUESSES)} of a file of --guesses",
                code="options-conflict",
            )


@click.command(
    cls=_BoundCommand,
    epilog="""\b
Examples:
  dpaudit bound d1.npy d2.npy --epsilon 1 --delta 1e-5
  dpaudit bound draws.csv --arm input --epsilon 1
  dpaudit bound --guesses 1000 100 75 --epsilon 1
  dpaudit bound --canaries run.csv --mu 1""",
)
@click.argument("files", nargs=-1, required=True, metavar="D1 D2|FILE|N R V")
@option(
    "--arm",
    section="Usual options",
    metavar="COLUMN",
    help="Column with the input of each row. One file then has the outputs of both inputs; the "
    "column has 1 or 2, chosen by a fair coin.",
)
@option(
    "--scores",
    section="Usual options",
    is_flag=True,
    help="Rows are scores of an attack: try only thresholds.",
)
@option(
    "--guesses",
    section="Usual options",
    is_flag=True,
    help="Audit guesses about the canaries of one run. Give the numbers of canaries, of guesses "
    "(in or out) and of correct guesses, or a file with the columns included and guess.",
)
@option(
    "--canaries",
    section="Usual options",
    is_flag=True,
    help="Audit a file with the columns included and score.",
)
@option(
    "--columns",
    callback=_columns,
    metavar="NAME=COLUMN",
    help="Columns of the file: included=member,score=-loss. A minus "
    "changes the sign of the scores, which must be larger for included canaries.",
)
@option(
    "--guess-count",
    section="Usual options",
    callback=whole_number,
    metavar="N",
    help="Guesses about --canaries, fixed before the run. Default: a tenth of the canaries and all "
    "of them, at 0.8 and 0.2 of the error probability.",
)
@option(
    "--sides",
    type=Choice(["both", "in"]),
    help="Whether half of the guesses of --guess-count say in and half out, or all in. Default: "
    "both.",
)
@option(
    "--independent-canaries",
    is_flag=True,
    help="Assume that the run reveals something about each of the --canaries independently of the "
    "others. Without this assumption, the result is invalid.",
)
# This list has no options about an adversary, since recorded outputs do not answer an adversary's
# queries.
@some_flags(
    *(option.name for option in owned("claim") if option.name not in ("adversary", "from")),
    "confidence", "seed", "expect", "strict", "json", "report", "quiet", "verbose", "debug",
    bound="The method that turns counts into a bound. Default: the most powerful valid method.",
)  # fmt: skip
@click.pass_context
def bound(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    arm: str | None,
    scores: bool,
    guesses: bool,
    canaries: bool,
    columns: dict[str, str],
    guess_count: int | None,
    sides: Sides | None,
    independent_canaries: bool,
    bound: str | None,
    json: str | None,
    report: list[str],
    quiet: bool,
    verbose: int,
    **flags: Any,
) -> int:
    """Audit recorded outputs, or the canaries of one run.

    The files D1 and D2 hold the outputs of two neighbouring inputs, one output per row (.npy,
    .csv, .tsv, .jsonl, .parquet). The seed decides which rows choose the event and which rows
    certify it.
    """
    stdout = ctx.with_resource(set_apart())
    settings = here().beneath(
        given_settings(ctx, flags), ("confidence", "strict", *([] if guesses else ["seed"]))
    )
    what = ("an audit of recorded outputs", _EXAMPLE)
    if canaries or guesses:
        what = ("an audit of canaries", _CANARIES if canaries else _GUESSES)
    check_complete(settings, (), *what)
    inputs: list[str | Path] = [*files, *named_files(settings)]
    claim, grouped = build_claims(settings.pop("claim"))
    expect, strict = settings.pop("expect", None), settings.pop("strict", False)
    results = Results(destinations(json, report, inputs), stdout)
    of_guesses = _OF_GUESSES if guesses and len(files) == 1 else ()
    _check_columns(columns, _OF_CANARIES if canaries else of_guesses)
    options: dict[str, Any] = {"arm": arm, "scores": scores, "bound": bound, "guesses": guesses}
    more = {"guess-count": guess_count, "independent-canaries": independent_canaries}
    try:
        with heeded():
            if canaries:
                _refuse("--canaries", options)
                settings |= {"guesses": guess_count, "sides": sides}
                result = _of_scores(files, columns, claim, settings, independent_canaries)
            else:
                _refuse("anything but --canaries", {**more, "sides": sides})
                result = _result(files, columns, claim, settings, **options)
    except KeyboardInterrupt:
        results.finish()  # writes files without a result over the files of an earlier run
        raise
    command = repeating(ctx, files, result.seed)
    result = replace(result, expect=expect, strict=strict, grouped=grouped, command=command)
    Printer([result.name], quiet=quiet, verbose=verbose, to=results.beside).show(result)
    results.add(result)
    results.finish()
    return exit_codes.of_result(result)


def _result(
    files: Sequence[str],
    columns: Mapping[str, str],
    claim: PrivacyClaim,
    settings: dict[str, Any],
    *,
    arm: str | None,
    scores: bool,
    bound: str | None,
    guesses: bool,
) -> AuditResult:
    if guesses:
        options = {"arm": arm, "scores": scores, "bound": bound, "seed": settings.get("seed")}
        _refuse("--guesses", options)
        from dpaudit.auditing.single_run import audit_guesses

        name, source = "guesses", "guesses about canaries"
        if len(files) == 1:
            name, source = files[0], f"guesses recorded in {files[0]}"
        counts = _guesses(files, columns)
        has_blanks = len(files) == 1 and counts.guesses < counts.canaries
        keywords = {"name": name, "source": source, "has_blanks": has_blanks, **settings}
        return audit_guesses([counts], claim, **keywords)
    more = {"bound": bound, "scores_only": scores, "claim": claim}
    return _of_draws(files, arm, {**settings, **more})


def _refuse(flag: str, options: Mapping[str, Any]) -> None:
    """Raise UsageError if the user gave one of `options`, which `flag` excludes."""
    for name in filter(options.get, options):
        raise UsageError(
            f"--{name} has no meaning for {flag}; leave it out", code="options-conflict"
        )


def _of_scores(
    files: Sequence[str],
    columns: Mapping[str, str],
    claim: PrivacyClaim,
    settings: dict[str, Any],
    independent: bool,
) -> AuditResult:
    from dpaudit.auditing.canary_scores import audit_scores
    from dpaudit.inputs.canaries import read_scores

    if len(files) != 1:
        why = f"--canaries takes one file, as in {_CANARIES}; not {' '.join(files)!r}"
        raise UsageError(why, code="arguments-wrong")
    included, scores = read_scores(Path(files[0]), columns)
    keywords = {"name": files[0], "source": f"scores of canaries in {files[0]}", **settings}
    return audit_scores(included, scores, claim, independent=independent, **keywords)


def _of_draws(files: Sequence[str], arm: str | None, settings: dict[str, Any]) -> AuditResult:
    from dpaudit.auditing.recorded_outputs import (
        RecordedAudit,
        audit_recorded,
        read_outcomes,
        separate_samples,
    )
    from dpaudit.inputs.output_files import read_arms, read_pair

    if arm is not None and len(files) != 1:
        why = f"takes one file with the outputs of both inputs, not {len(files)}"
        raise UsageError(f"--arm {arm} {why}", code="option-invalid")
    if arm is not None:
        pair, positions = f"d1, d2 = 1 and 2 in the column {arm!r}", None
        rows, is_d1 = read_arms(Path(files[0]), arm)
        outcomes = read_outcomes(rows)
    else:
        _check_two(files)
        pair = f"d1 = {files[0]}, d2 = {files[1]}"
        first, second = read_pair(Path(files[0]), Path(files[1]))
        outcomes, is_d1, positions = separate_samples(first, second, pair)
    audit = RecordedAudit(
        name=", ".join(files),
        source=f"outputs recorded in {' and '.join(files)}",
        pair=pair,
        outcomes=outcomes,
        is_d1=is_d1,
        positions=positions,
        files=(files[0], files[-1]),
        coin_flipped=arm is not None,
        **settings,
    )
    return audit_recorded(audit)


def _check_two(files: Sequence[str]) -> None:
    """Raise UsageError unless there are exactly two files: the outputs for d1, and those for d2."""
    from dpaudit.inputs.files import near_file

    if len(files) != 2:
        needed = "two files are needed, the outputs of d1 and those of d2"
        remedy = f"if {files[0]} holds both, name the column that tells them apart with --arm"
        is_one = len(files) == 1
        if is_one and not Path(files[0]).is_file():
            near = near_file(Path(files[0]))
            raise UsageError(
                f"there is no file {files[0]!r}, and {needed}, as in {_EXAMPLE}.{near}",
                code="file-not-found",
            )
        raise UsageError(
            f"{needed}, as in {_EXAMPLE}; {remedy}" if is_one else f"{needed}, not {len(files)}",
            code="arguments-wrong",
        )
    d1, d2 = Path(files[0]), Path(files[1])
    if d1.exists() and d2.exists() and d1.samefile(d2):
        # Both arguments name the same file, so the outputs of d1 and d2 would be identical. If the
        # arguments are written differently (`a.csv`, `./a.csv`), `alias` names the first one.
        alias = "" if files[0] == files[1] else f", once as {files[0]!r}"
        raise UsageError(
            f"{files[1]!r} is given twice{alias}; give one file with the outputs of d1 and another "
            "with those of d2",
            code="file-twice",
        )


def _guesses(files: Sequence[str], columns: Mapping[str, str]) -> Guesses:
    if len(files) == 1 and not files[0].isdecimal():
        from dpaudit.inputs.output_files import read_guesses

        return read_guesses(Path(files[0]), columns)
    numbers = [word.replace("_", "").replace(",", "") for word in files]
    if len(files) != 3 or not all(word.isdecimal() for word in numbers):
        raise UsageError(
            "--guesses takes three numbers (canaries, guesses, correct guesses), as in "
            f"{_GUESSES}, or one file; not {' '.join(files)!r}",
            code="arguments-wrong",
        )
    canaries, guesses, right = map(int, numbers)
    if canaries < 1 or not right <= guesses <= canaries:
        raise UsageError(
            f"--guesses {' '.join(files)}: {canaries:,} canaries, {guesses:,} guesses and "
            f"{right:,} correct guesses do not fit together; give canaries ≥ guesses ≥ correct "
            "guesses",
            code="guesses-invalid",
        )
    return Guesses(canaries, guesses, right)
