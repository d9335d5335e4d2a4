"""`dpaudit report`: check the numbers in a file of results, show its reports, and repeat its
audits."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from dpaudit.auditing.safeguards.redrawing import redrawing_remarks
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import AuditResult, CanaryGuesses, Interrupted, Recorded, Verdict
from dpaudit.cli import exit_codes
from dpaudit.cli.batch import Printer, auditing, run_one
from dpaudit.cli.click_classes import AuditCommand
from dpaudit.cli.flags import some_flags
from dpaudit.cli.group import undisturbed
from dpaudit.cli.messages import tell
from dpaudit.cli.saving import Results, destinations
from dpaudit.cli.streams import set_apart
from dpaudit.errors import DpauditError, UsageError
from dpaudit.hash_seed import VARIABLE
from dpaudit.inputs.files import piped, read_text, reading
from dpaudit.reports.json import Document, document, entry, fields_of, read_document
from dpaudit.reports.layout import wrap
from dpaudit.reports.text import unended
from dpaudit.wording import ONE_PROCESS, WORKER_DIED, counted, shown

_UNSEEN = (
    "A record cannot show that the draws really came from the mechanism, that nothing was left "
    "out at its end, or that bets and events were fixed before their draws. --rerun repeats the "
    "draws if the seed controls them."
)


@click.command(cls=AuditCommand)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--rerun",
    is_flag=True,
    help="Also repeat the audits, and compare the results. The seeds are those of the file.",
)
@some_flags(quiet="Print one line for each audit.")
@some_flags("report", "verbose", "debug")
def report(
    file: Path,
    rerun: bool,
    quiet: bool,
    report: list[str],
    verbose: int,
) -> int:
    """Recompute the wealth, bounds and p-values in FILE from its recorded draws, and show the
    reports.

    Exit code 0 if all numbers agree, whatever the verdicts; 3 if a number differs, or if the run
    or one of its audits did not end.
    """
    results, planned, not_run = read_results(file)
    saved = Results(destinations(None, report, [file]), sys.stdout, planned=planned)
    saved.not_run = not_run
    names = [*(result.name for result in results), *not_run]
    printer = Printer(names, quiet=quiet, verbose=verbose, to=saved.beside)
    disagreements = []
    for result in results:
        disagreements += [f"{result.name}: {text}" for text in _recheck(file, result)]
        saved.add(result)
        printer.show(result)
    disagreements += _recheck_families(results, planned)
    printer.summarise(results, not_run)
    ended = [result for result in results if result.verdict is not Verdict.ERROR]
    if rerun and not disagreements:
        with set_apart():
            disagreements += differences(results, planned, quiet=quiet)
    for text in disagreements:
        tell(f"error: {file}: {text}")
    if disagreements:
        if report:
            tell("error: --report: nothing was written, since numbers disagree")
        return exit_codes.FAILURE
    saved.finish()
    if not quiet:
        lines = wrap(_summary(ended, len(results) - len(ended), rerun=rerun))
        click.echo("\n" + "\n".join(lines), file=saved.beside)
    complete = [result for result in results if not isinstance(result.ending, Interrupted)]
    missing = unended(len(complete), planned, not_run)
    if missing:
        tell(f"error: {file}: {missing}")
        return exit_codes.FAILURE
    return exit_codes.NOTHING_FOUND


def _summary(ended: Sequence[AuditResult], errors: int, *, rerun: bool) -> str:
    """Return a text: which numbers were checked, and what no check of a file can prove."""
    if not ended:
        subject = "the audit" if errors == 1 else "every audit"
        return f"There was nothing to recheck: {subject} ended with an ERROR."
    certificates = [certificate for result in ended for certificate in result.certificates]
    follows = {
        "wealth, bounds and p-values follow from the recorded draws": certificates,
        "bounds and p-values follow from the recorded guesses": [
            result for result in ended if result.ending.by_chance and not result.certificates
        ],
        "exact numbers follow from the recorded laws": [
            result for result in ended if not result.ending.by_chance
        ],
    }
    summary = f"Rechecked: {'; '.join(text for text, items in follows.items() if items)}."
    repeated = rerun and bool(certificates)
    if errors:
        summary += f" Not rechecked{' or repeated' * repeated}: {errors} that ended with an ERROR."
    if not certificates:
        return summary
    if repeated:
        return f"{summary} Repeated with their seeds, the audits gave the same results."
    return f"{summary} {_UNSEEN}"


def read_results(file: Path) -> Document:
    """Return the results in `file`, and the number of results that its run planned. Raises
    UsageError if the file cannot be read. Raises ContradictoryFile if the numbers contradict each
    other, which shows that the file was changed."""
    if file == Path("-") and sys.stdin is None:
        raise UsageError(
            "standard input is closed; name a file of results, or pipe one", code="file-unreadable"
        )
    if file.suffix in (".yaml", ".yml"):
        raise UsageError(
            f"{file} is a file of audits; dpaudit run {file} --json FILE writes their results",
            code="wrong-kind-of-file",
        )
    with reading(file):
        is_piped = file == Path("-")
        try:
            text = piped(sys.stdin.buffer).decode("utf-8-sig") if is_piped else read_text(file)
        except UnicodeDecodeError as error:
            remedy = "name a file that dpaudit run --json wrote"
            raise UsageError(
                f"it cannot be read, since it is not text; {remedy}", code="file-malformed"
            ) from error
        with undisturbed():
            return read_document(text)


def _recheck_families(results: Sequence[AuditResult], planned: int) -> list[str]:
    if all(result.family is None for result in results):
        return []
    from dpaudit.auditing.recheck import recheck_families

    return recheck_families(results, has_ended=len(results) >= planned)


def _recheck(file: Path, result: AuditResult) -> list[str]:
    from dpaudit.auditing.recheck import recheck

    try:
        return recheck(result)
    except DpauditError:
        raise
    # Any exception is possible here. A damaged file may contain wrong states of the bettors, whose
    # wealth is the evidence against the claim. The states are not checked when the file is read,
    # only used when `recheck` recomputes the wealth.
    except Exception as error:
        raise UsageError(
            f"{file}: {result.name} cannot be rechecked, so the file is damaged: "
            f"{type(error).__name__}: {error}",
            code="results-damaged",
        ) from error


# Fields of an audit that follow from times, speed, or the number of processes; a rerun may differ.
_OF_THE_RUN = ("seconds", "workers", "resumed", "pace")
# Field of a certificate that does so: how many new processes answered in time.
_OF_NEW_PROCESSES = "redrawn"
# Fields with a file, which is named relative to the working directory if it is inside.
_FILES = ("source", "where", "file")
# Fields with sentences, in which durations and speeds may differ.
_REMARKS = ("warnings", "notes")
# Fields with inputs of the user, whose keys may have the same names.
_INPUTS = ("request.", "searched.")
_SPEED = re.compile(r"\d[\d.,e+-]* (?:s|seconds|draws/s|draws per second)\b")


def differences(results: Sequence[AuditResult], planned: int, *, quiet: bool) -> list[str]:
    """Repeat audits by their commands, and return a sentence for each difference between the old
    and the new results. Audits that ended with an error are left out. Raises UsageError if an audit
    cannot be repeated, or if a repetition would prove nothing."""
    specs = {
        index: _spec(result)
        for index, result in enumerate(results)
        if result.verdict is not Verdict.ERROR
    }
    repeated = list(results)
    with auditing() as requests:
        for index, spec in specs.items():
            again = run_one(spec, requests, spec.name, quiet=quiet)
            # A repetition is not one more night.
            repeated[index] = replace(again, nights=results[index].nights)
    if any(result.family is not None for result in results):
        from dpaudit.auditing.familywise import settled, unsettled

        repeated = settled(repeated) if len(results) >= planned else unsettled(repeated)
    # As a file has them, where a tuple is a list and each number has its declared type.
    repeated = read_document(document([entry(result) for result in repeated], planned)).results
    return [
        f"{recorded.name}: {text}"
        for recorded, again in zip(results, repeated, strict=True)
        for text in _differences(recorded, again)
    ]


def _spec(recorded: AuditResult) -> AuditSpec:
    """Return the audit that the command in a result makes."""
    reason = _reason(recorded)
    if reason is None:
        try:
            return _requested(shlex.split(recorded.command or ""), recorded.name)
        except (click.ClickException, click.exceptions.Exit, ValueError) as error:
            reason = f"its command makes no audit ({error})"
    raise UsageError(f"{recorded.name} cannot be repeated: {reason}", code="rerun-impossible")


def _requested(words: list[str], name: str) -> AuditSpec:
    """Return the audit of a command line. Raise ValueError if it does not make one audit."""
    from dpaudit.cli import parity, run, search  # not needed without --rerun

    if words and words[0].startswith(f"{VARIABLE}="):
        words = words[1:]
    if words[:1] != ["dpaudit"]:
        raise ValueError("it is no command of dpaudit")
    if words[1:2] == ["search"]:
        return search.audit_of(search.search.make_context("search", words[2:]))
    if words[1:2] == ["parity"]:
        return parity.audit_of(parity.parity.make_context("parity", words[2:]))
    if words[1:2] != ["run"]:
        raise ValueError("it is none of dpaudit run, search and parity")
    specs = run.audits_of(run.run.make_context("run", words[2:]))
    if len(specs) != 1:
        raise ValueError(f"it makes {counted(len(specs), 'audit')}")
    named = run.with_file(specs[0], words[2])
    return named if named.name == name else specs[0]


def _reason(recorded: AuditResult) -> str | None:
    """Return why an audit cannot be repeated, or why its repetition proves nothing; else None."""
    if recorded.command is None or isinstance(recorded.ending, Recorded | CanaryGuesses):
        return "the file has no command that makes its draws"
    if not all(certificate.reproducible for certificate in recorded.certificates):
        return "its seed does not control the mechanism, so a rerun has other draws"
    if isinstance(recorded.ending, Interrupted):
        return "it was interrupted, and a rerun would go on to its planned end"
    if any(certificate.evidence.by_clock for certificate in recorded.certificates):
        return "the clock set its number of draws (--time), and a rerun may take another number"
    return None


def _differences(recorded: AuditResult, again: AuditResult) -> Iterator[str]:
    """Yield the first difference in each field between two results of the same audit."""
    recorded_fields, repeated_fields = _comparable(recorded), _comparable(again)
    for name in recorded_fields:
        for path, *values in _compared(name, name, recorded_fields[name], repeated_fields[name]):
            yield "{}: recorded {}, repeated {}".format(path, *map(shown, values))
            break


def _comparable(result: AuditResult) -> dict[str, Any]:
    fields = fields_of(result)
    for name in _OF_THE_RUN:
        del fields[name]
    for certificate, record in zip(result.by_pair, fields["ending"]["certificates"], strict=True):
        redrawn = getattr(certificate, _OF_NEW_PROCESSES, None)
        record.pop(_OF_NEW_PROCESSES, None)
        if redrawn is not None:
            for name, texts in zip(_REMARKS, redrawing_remarks(redrawn), strict=True):
                record[name] = [text for text in record[name] if text not in texts]
    for name, remark in (("notes", ONE_PROCESS), ("warnings", WORKER_DIED)):
        fields[name] = [text for text in fields[name] if not text.startswith(remark)]
    return fields


def _compared(path: str, name: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, recorded value, repeated value) for each difference below the field `name`."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        for key in old:
            yield from _compared(f"{path}.{key}", key, old[key], new[key])
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, values in enumerate(zip(old, new, strict=True)):
            yield from _compared(f"{path}[{index}]", name, *values)
    else:
        kind = "" if path.startswith(_INPUTS) else name
        if _normal(kind, old) != _normal(kind, new):
            yield path, old, new


def _normal(name: str, value: Any) -> str:
    if name in _FILES and isinstance(value, str):
        value = str(Path(value).absolute())
    if name in _REMARKS and isinstance(value, str):
        value = _SPEED.sub("", value)
    return json.dumps(value)  # 1, 1.0 and true differ
