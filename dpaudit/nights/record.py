"""The record of nights: a file with one line of JSON for each night and audit (docs/files.md).

Lines are only added, so that git merges two branches by the union of their lines. Nothing that
follows from the counts is stored: `add` computes the evidence from all lines, in the order of their
times.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct

from dpaudit.auditing.pace import with_stated
from dpaudit.auditing.request import digest
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import AuditResult, Failed, FreshCounts, LikelyFirst, Nights
from dpaudit.errors import Name, UsageError
from dpaudit.import_path import is_file
from dpaudit.nights.detector import FloatArray, likely_first, log_evidence, log_factors
from dpaudit.targets.target import AnyTarget, ImportedTarget, IsolatedTarget, single_targets

# A larger log of the evidence is reported as this number, since exp(710) overflows a float.
_MAX_LOG = 700.0
_DIGITS = 12


class Night(Struct, frozen=True, forbid_unknown_fields=True):
    """A line: what one night adds to the record of an audit.

    audit, claim: name of the audit, and its claim in words.
    record: digest of the claim, the pairs, the mechanism's path and the alarm level. Nights with
        equal `audit` and `record` belong together.
    time: when the audit ended, in UTC, or the time of the night before if that is later.
    seed: seed of the fresh draws.
    code: digests of the mechanism's files, each with the commit of its checkout.
    failed: whether the audit ended with the verdict ERROR, whose factor is at most 1.
    pairs: the counts of each pair of inputs.
    alarm: whether the audit raised an alarm. The evidence then begins again from 0.
    """

    audit: str
    claim: str
    record: str
    time: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
    seed: int
    code: str
    versions: dict[str, str]
    failed: bool
    pairs: Annotated[tuple[FreshCounts, ...], Meta(min_length=1)]
    alarm: bool


def with_fresh_seed(spec: AuditSpec) -> AuditSpec:
    """Return an audit whose certifying draws have a seed from the system, and a fixed number.

    Raises
    ------
    UsageError
        For an audit with a stated certification seed, with another end than its last draw, or with
        a journal: a run that continues it would count its draws twice.
    """
    sampling, why = spec.sampling, " is for other runs than those of --evidence; leave it out"
    if spec.statistics.exact:
        return spec
    if sampling.certification_seed is not None:
        raise UsageError(Name("certification_seed"), why, code="options-conflict")
    if spec.journaling.journal is not None:
        raise UsageError(Name("journal"), why, code="options-conflict")
    if sampling.stop not in ("auto", "never"):
        why = f"={sampling.stop} ends a night before its last draw; give never with --evidence"
        raise UsageError(Name("stop"), why, code="options-conflict")
    seed, origin = secrets.randbits(63), spec.origin
    if sampling.stop == "auto":
        origin = with_stated(origin, "stop", "never")
    origin = with_stated(origin, "certification_seed", seed)
    sampling = replace(sampling, stop="never", certification_seed=seed)
    return replace(spec, sampling=sampling, origin=origin)


def read(path: Path) -> list[Night]:
    """Return all nights of a file, in the order of its lines; none without a file.

    Raises
    ------
    UsageError
        For a line that is no night, and for a seed that occurs twice.
    """
    lines = path.read_bytes().splitlines() if path.exists() else []
    nights: list[Night] = []
    first_lines: dict[int, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            night = msgspec.json.decode(line, type=Night)
        except msgspec.DecodeError as error:
            why = f"no night of a record ({error}); remove the line, or name another file"
            raise UsageError(f"{path}:{number}: {why}", code="evidence-damaged") from error
        if night.seed in first_lines:
            raise UsageError(
                f"{path}:{number}: the night with seed {night.seed} stands in line "
                f"{first_lines[night.seed]} already, and its draws count once; remove one of them",
                code="evidence-twice",
            )
        first_lines[night.seed] = number
        nights.append(night)
    return nights


def add(path: Path, level: float, spec: AuditSpec, result: AuditResult) -> AuditResult:
    """Add a night to the file, and return the result with the evidence of all its nights.

    Parameters
    ----------
    path : Path
        The file; it need not exist.
    level : float
        The alarm level α, in (0, 1).
    spec : AuditSpec
        The audit, from `with_fresh_seed`.
    result : AuditResult
        Its result. Without fresh counts, as of an audit that could not begin, it is returned as it
        is.

    Raises
    ------
    UsageError
        As `read` does.
    """
    seed = spec.sampling.certification_seed
    if not result.fresh or seed is None:
        return result
    key = _key(path, level, spec, result)
    earlier_nights = [line for line in read(path) if (line.audit, line.record) == (spec.name, key)]
    night = _tonight(spec, result, seed, key, earlier_nights)
    nights = sorted([*earlier_nights, night], key=lambda line: line.time)
    begin = max((index + 1 for index, line in enumerate(nights) if line.alarm), default=0)
    factors = _factors(nights)[begin:]
    evidence = math.exp(min(log_evidence(factors), _MAX_LOG))
    is_alarm = evidence >= 1 / level and not night.failed
    first = None
    if is_alarm:
        first_night = nights[begin + likely_first(factors)]
        first = LikelyFirst(first_night.time, first_night.code, first_night.versions)
    _append(path, msgspec.structs.replace(night, alarm=is_alarm))
    return replace(
        result,
        nights=Nights(len(nights), len(nights) - begin, evidence, level, first),
        underpowered=None if is_alarm else result.underpowered,
    )


def _inputs(spec: AuditSpec, result: AuditResult) -> list[tuple[Any, Any]]:
    if result.searched is not None:
        return list(result.searched.found)
    return [(pair.d1, pair.d2) for pair in spec.pairs]


def _key(path: Path, level: float, spec: AuditSpec, result: AuditResult) -> str:
    """Return the digest of what must not change between the nights of one record."""
    mechanisms = []
    for part in _imported(spec.target):
        file, _, attribute = part.path.rpartition(":")
        # Relative to the record, so that a checkout in another folder continues it.
        file = os.path.relpath(file, path.parent) if is_file(file) else file
        mechanisms.append((file, attribute, part.call))
    return digest((spec.tested, _inputs(spec, result), mechanisms, float(level)))[:_DIGITS]


def _imported(target: AnyTarget) -> list[ImportedTarget]:
    parts = [
        part.target if isinstance(part, IsolatedTarget) else part for part in single_targets(target)
    ]
    return [part for part in parts if isinstance(part, ImportedTarget)]


def _tonight(
    spec: AuditSpec, result: AuditResult, seed: int, key: str, earlier_nights: Sequence[Night]
) -> Night:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    undrawn = FreshCounts(0, 0, 0, False, spec.tested.point())
    return Night(
        audit=spec.name,
        claim=spec.tested.describe(),
        record=key,
        # A runner whose clock was fast left a time in the future. Tonight still is the last night.
        time=max([now, *(night.time for night in earlier_nights)]),
        seed=seed,
        code=_code(spec.target, result.source),
        versions={**_versions(), **result.versions},
        failed=isinstance(result.ending, Failed),
        pairs=(*result.fresh, *[undrawn] * (len(_inputs(spec, result)) - len(result.fresh))),
        alarm=False,
    )


def _factors(nights: list[Night]) -> FloatArray:
    """Return the log factors of nights of one record, (nights, pairs, stakes)."""
    points = []
    for index in range(len(nights[0].pairs)):
        # A claim that is a curve keeps the point of the first night that drew.
        counts = [night.pairs[index] for night in nights]
        points.append(next((part.point for part in counts if part.draws), counts[0].point))
    factors = np.array(
        [list(map(log_factors, night.pairs, points)) for night in nights], dtype=float
    )
    failed = np.array([night.failed for night in nights])
    factors[failed] = np.minimum(factors[failed], 0.0)
    return factors


def _append(path: Path, night: Night) -> None:
    line = msgspec.json.encode(night) + b"\n"
    with path.open("a+b") as file:
        file.seek(max(0, file.seek(0, 2) - 1))
        file.write(line if file.read() in (b"", b"\n") else b"\n" + line)


def _code(target: AnyTarget, source: str | None) -> str:
    """Return the versions of the mechanism's files; `source` is a file and line, if known."""
    paths = [part.path for part in _imported(target)] if source is None else [source]
    files = [Path(path.rpartition(":")[0]) for path in paths]
    versions = [_version(file) for file in dict.fromkeys(files) if file.is_file()]
    return ", ".join(versions) or "unknown"


def _version(file: Path) -> str:
    """Return a digest of a file, and the commit of its checkout if it has one."""
    digest = f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()[:_DIGITS]}"
    command = ["git", "-C", str(file.parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(  # noqa: S603  # git
            command, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return digest
    # The commit alone would differ every night, since the record itself is committed.
    return f"{digest} at commit {done.stdout[:_DIGITS]}"


def _versions() -> dict[str, str]:
    """Return the versions of the packages that this process has imported."""
    packages, versions = _packages()
    names = {name for key in packages.keys() & sys.modules.keys() for name in packages[key]}
    return {name: versions[name] for name in sorted(names & versions.keys())}


@cache
def _packages() -> tuple[Mapping[str, list[str]], Mapping[str, str]]:
    # A damaged installation has no name.
    versions = {part.name: part.version for part in metadata.distributions() if part.name}
    return metadata.packages_distributions(), versions
