"""Trace a mechanism: run it on two inputs with the same noise, and report the lines that leak. The
runs are made in this process, or in the separate process in which the mechanism draws
(`IsolatedTarget`)."""

from __future__ import annotations

import linecache
import math
import time as clock
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

from dpaudit.adapters.isolation import PythonChild
from dpaudit.certificates.traced import CUT, INSIDE, Excerpt, Finding, Site, SourceLine, Trace
from dpaudit.claims import PrivacyClaim
from dpaudit.errors import MechanismError, TargetError, UsageError
from dpaudit.float_errors import user_errstate
from dpaudit.import_path import resolve
from dpaudit.inputs.pairs import describe_pair
from dpaudit.inputs.records import are_equal
from dpaudit.inputs.values import resolved
from dpaudit.processes import child_script
from dpaudit.processes.child import Clock, Ended, TimedOut, countdown
from dpaudit.processes.exchange import pickled
from dpaudit.targets.construction import functions
from dpaudit.targets.parameters import calling
from dpaudit.targets.target import (
    AnyTarget,
    CallableTarget,
    ComposedTarget,
    ImportedTarget,
    IsolatedTarget,
    RepeatedTarget,
    runs_in_another_process,
    what_to_check,
)
from dpaudit.tracing import tracer
from dpaudit.tracing.findings.detectors import judge
from dpaudit.tracing.findings.noise_sites import number, shown
from dpaudit.tracing.runs.coupling import Runs, couple, read
from dpaudit.tracing.runs.patching import Primitives, generators_kept
from dpaudit.tracing.runs.places import check_followed
from dpaudit.tracing.runs.replaying import TooLong
from dpaudit.tracing.runs.running import OVER, Subject, followed_for, run
from dpaudit.watching import Watch
from dpaudit.wording import counted

# Number of seeds of the noise in a trace, unless the user sets it.
SEEDS = 3
# Values that a user may give to the attribute `law` of a function that adds noise.
_LAWS = (
    *("laplace", "normal", "discrete", "geometric", "logistic", "gumbel", "exponential"),
    *("cauchy", "uniform"),
)
# An excerpt of code shows this number of lines before and after each marked line.
_LINES_AROUND = 2
# Largest number of lines of an excerpt.
_MAX_EXCERPT_LINES = 40


@user_errstate()
def trace_pair(
    target: AnyTarget,
    d1: Any,
    d2: Any,
    claim: PrivacyClaim | None = None,
    *,
    seeds: int = SEEDS,
    seconds: float = float("inf"),
    follow: Sequence[str] = (),
    primitives: Sequence[str | Callable[..., Any]] = (),
) -> Trace:
    """Run a mechanism on two inputs with the same noise, and return the lines at which the runs
    differ.

    claim: The privacy claim for one run of the target; None if nothing is claimed.
    seeds: The number of seeds of the noise. Each gives two pairs of runs: one begins with d1, the
        other with d2.
    seconds: The time limit for all runs.
    follow: Packages or files that count as the user's code, so that their lines can be named.
    primitives: Functions that add noise to their first argument, or their import paths.

    Raises TargetError for a function in `primitives` that does not exist or has an unknown `law`,
    and UsageError for a target that cannot be traced.
    """
    began = clock.monotonic()
    points = [] if claim is None else [(point.epsilon, point.delta) for point in claim.points()]
    target = _of_one_run(target)
    if isinstance(target, IsolatedTarget):
        runs = couple_elsewhere(
            target,
            d1,
            d2,
            seeds=seeds,
            seconds=seconds,
            follow=follow,
            primitives=primitives,
            claim=points,
        )
    elif runs_in_another_process(target):
        raise UsageError(
            f"{target.name} draws in another program, where its noise cannot be seen; trace a "
            "function of Python",
            code="trace-impossible",
        )
    else:
        subject = _following(target, follow, d1, began + seconds)._replace(
            primitives=Primitives([_primitive(primitive) for primitive in primitives]),
            deadline=began + seconds,
            claim=points,
        )
        runs = couple(subject, d1, d2, seeds)
    case = judge(runs, claim)
    if any(_of_pair(d1, d2)):
        case = replace(case, found=[], sites=[], total=None, exceeds=False)
    findings, sites = case.found, case.sites
    misunderstood = tuple((shown(location), what) for location, what in runs.not_understood)
    return Trace(
        target=target.describe(),
        pair=describe_pair(d1, d2),
        claim=None if claim is None else claim.describe(),
        findings=tuple(findings),
        sites=tuple(sites),
        total=case.total,
        exceeds=case.exceeds,
        not_understood=misunderstood,
        excerpts=tuple(_excerpts(findings, sites)),
        runs=len(runs.coupled),
        notes=tuple(_of_pair(d1, d2))
        or (*_without_law(primitives, sites), *_notes(target, runs, sites, findings)),
    )


def subject_of(target: AnyTarget, follow: Sequence[str] = ()) -> Subject:
    """Return the mechanism of a target, with the settings for its runs. Raises UsageError if the
    target consists of several mechanisms or runs in another process, or if a package or file of
    `follow` is not found."""
    if isinstance(target, ComposedTarget):
        raise UsageError(
            f"{target.name}: several mechanisms are traced one by one", code="trace-impossible"
        )
    if not isinstance(target, ImportedTarget | CallableTarget):
        raise UsageError(f"{target.name} cannot be traced in this process", code="trace-impossible")
    function, post_process = functions(target)
    maker = resolve(target.path) if isinstance(target, ImportedTarget) else None
    try:
        check_followed(follow)  # after the import of the mechanism, which may extend sys.path
    except ValueError as error:
        raise UsageError(str(error), code="module-not-found") from None
    how = calling(function, target, unpacks=True)
    return Subject(
        function=function,
        params=resolved(target.params),
        data=how.data,
        rng=how.rng,
        by_seed=how.by_seed,
        batch=how.batch or how.alone,
        post_process=post_process,
        followed=followed_for(function, follow, maker, target.name),
        primitives=Primitives(),
    )


def _following(target: AnyTarget, follow: Sequence[str], d1: Any, deadline: float) -> Subject:
    """Return `subject_of`. A run may extend sys.path so that it finds a package of `follow`."""
    try:
        return subject_of(target, follow)
    except UsageError as error:
        if error.code != "module-not-found":
            raise
    with generators_kept(), suppress(TooLong):
        run(subject_of(target)._replace(deadline=deadline), d1, 0, has_lines=False)
    return subject_of(target, follow)


def _of_one_run(target: AnyTarget) -> AnyTarget:
    return target.target if isinstance(target, RepeatedTarget) else target


def _primitive(primitive: str | Callable[..., Any]) -> Callable[[Any], Iterator[Any]]:
    """Check a function that adds noise, and return a function that yields its replacements."""
    from dpaudit.tracing.runs.primitives.user_primitives import named

    function = resolve(primitive) if isinstance(primitive, str) else primitive
    if not callable(function):
        raise TargetError(
            f"--primitive {primitive}: must name a function", code="primitive-invalid"
        )
    law = getattr(function, "law", _LAWS[0])
    if law not in _LAWS:
        raise TargetError(
            f"--primitive {primitive}: its attribute `law` is {law!r}, and must be one of "
            f"{', '.join(_LAWS)}",
            code="primitive-invalid",
        )
    return partial(named, function)


def _without_law(
    primitives: Sequence[str | Callable[..., Any]], sites: Sequence[Site]
) -> Iterator[str]:
    """Yield a message for each function of the user whose noise had an unknown law."""
    unknown = {site.primitive for site in sites if site.law == "unknown"}
    for primitive in primitives:
        function = resolve(primitive) if isinstance(primitive, str) else primitive
        name = getattr(function, "__name__", "")
        if name in unknown and not hasattr(function, "law"):
            yield (
                f'the law of `{name}` is not known: write `{name}.law = "laplace"` below it, or '
                f"another one of {', '.join(_LAWS)}"
            )


def _of_pair(d1: Any, d2: Any) -> Iterator[str]:
    # 1 and True are equal, but may give different outputs.
    if are_equal(d1, d2) and repr(d1) == repr(d2):
        yield "d1 and d2 are equal, so a trace finds no difference; give two neighbouring inputs"


def _notes(
    target: AnyTarget, runs: Runs, sites: Sequence[Site], findings: Sequence[Finding]
) -> Iterator[str]:
    errors = [pair.comparison.errors for pair in runs.coupled]
    if errors and all(None not in pair for pair in errors):
        kind, message, location = errors[0][0]
        where = "" if location is None else f" ({shown(location)})"
        yield f"every run raised {kind}: {message}{where}; {what_to_check(target, kind, message)}"
    elif runs.keeps_state and runs.inside_libraries:
        yield f"the noise of {' and '.join(runs.inside_libraries)} {INSIDE}"
    elif runs.keeps_state:
        yield (
            "a second run on d1 with the same noise gave something else, so that runs cannot be "
            "compared: the mechanism keeps state, or draws noise that is not seen (os.urandom, "
            "another library); clear its caches, or name what draws with --primitive"
        )
    elif not runs.coupled:
        pass  # `runs.over` is the reason
    elif runs.draws == 0:
        yield (
            "no noise was seen: the trace knows the generators of NumPy, random, secrets, "
            "scipy.stats and torch, and mechanisms of diffprivlib, OpenDP and PyDP; name a "
            "function of your own with --primitive module:function. This is no pass"
        )
    elif not sites and not findings and runs.inside_libraries:
        yield f"the noise of {' and '.join(runs.inside_libraries)} {INSIDE}"
    elif not sites and not findings:
        yield "noise was seen, but not what it hides. This is no pass"
    if runs.filled:
        line = shown(runs.filled[0])
        draws = len(runs.filled) - 1
        more = f" (and {counted(draws, 'draw')} more)" if draws else ""
        yield (
            f"the noise of `{line.code}` at {line}{more} reaches the output by a way that is not "
            "followed, such as training; costs are those for known values of it"
        )
    for name in runs.uncalled:
        yield (
            f"the primitive `{name}` was not called: name it by the import path by which the "
            "mechanism imports it, such as my.lib:add_noise"
        )
    if runs.over is not None:
        more = "; give it more time" if runs.over == OVER else ""
        yield f"{CUT}: {runs.over}{more}"


def _excerpts(findings: Sequence[Finding], sites: Iterable[Site]) -> Iterator[Excerpt]:
    """Yield excerpts of source files: with lines of findings (titles) and of draws (costs)."""
    marks: dict[tuple[str, int], str] = {}
    for site in sites:
        cost = "cost unknown" if site.cost is None else f"{site.unit} = {number(site.cost)}"
        marks.setdefault(_key(site.line), cost)
        marks.setdefault(_key(site.added), "")
    for finding in reversed(findings):
        # The line of a finding is marked with the title of its first finding instead of its cost.
        # Exception: a finding of the kind "sum" is about the total cost of all lines that draw
        # noise, so it changes no mark.
        if finding.kind != "sum":
            marks[_key(finding.line)] = finding.title
        for location in finding.others:
            marks.setdefault(_key(location), "")
    for file, keys in groupby(sorted(marks), key=lambda key: key[0]):
        numbers = [line for _, line in keys if line > 0]
        source = linecache.getlines(file)
        for start, end in _ranges(numbers, len(source)):
            marked = tuple((line, marks[file, line]) for line in numbers if start <= line <= end)
            lines = tuple(line.rstrip("\r\n") for line in source[start - 1 : end])
            yield Excerpt(file, start, lines, marked)


def _key(line: SourceLine) -> tuple[str, int]:
    return line.file, line.line


def _ranges(numbers: Sequence[int], last: int) -> Iterator[tuple[int, int]]:
    """Yield (first line, last line) of excerpts, with two lines around each number."""
    pieces: list[list[int]] = []
    for line in numbers:
        start, end = max(1, line - _LINES_AROUND), min(last, line + _LINES_AROUND)
        if pieces and start <= pieces[-1][1] + 1 and end - pieces[-1][0] < _MAX_EXCERPT_LINES:
            pieces[-1][1] = end
        elif start <= end:
            pieces.append([start, end])
    yield from ((start, end) for start, end in pieces)


# Additional seconds in which another process may send the results, after the time limit of its
# runs.
_GRACE_SECONDS = 1.0
# Additional seconds for the first run in another process, which may import modules.
_IMPORT_SECONDS = 20.0


def couple_elsewhere(
    target: IsolatedTarget,
    d1: Any,
    d2: Any,
    *,
    seeds: int,
    seconds: float = math.inf,
    follow: Sequence[str] = (),
    primitives: Sequence[str | Callable[..., Any]] = (),
    claim: Sequence[tuple[float, float]] = (),
) -> Runs:
    """Run a mechanism in its own process on two inputs with the same noise, and return the runs.
    `seconds` limits all runs together; the time-out of the target limits each run. `claim` has the
    points (ε, δ) of the privacy claim. The other arguments and the errors are those of
    `trace_pair`."""
    process = _Tracer(target, Watch.of_process(target.limits.timeout))
    try:
        process.prepare((d1, d2), list(follow), list(primitives), list(claim))
        return process.couple(seeds, seconds)
    except TimedOut:
        if process.run_is_late:
            return _nothing(f"a run took more than {target.limits.timeout:g} s")
        return _nothing(OVER)
    except Ended as end:
        return _nothing(f"a run ended its process: {end}")
    finally:
        process.kill()


class _Tracer(PythonChild):
    """Sends requests to the script tracer.py, which runs the mechanism in another process, and
    receives the records of the runs."""

    script = tracer.__file__
    _clocks: Sequence[Clock] = ()

    def prepare(
        self,
        datasets: tuple[Any, Any],
        follow: list[str],
        primitives: list[str | Callable[..., Any]],
        claim: list[tuple[float, float]],
    ) -> None:
        batch = self.calling.batch or self.calling.alone
        how = self.calling.data, self.calling.rng, self.calling.by_seed, batch
        for which, dataset in enumerate(datasets):
            self.take(which, dataset)
        try:
            self.ask(
                "prepare",
                how=how,
                primitives=pickled(primitives, "a primitive"),
                follow=follow,
                claim=claim,
            )
        except MechanismError as error:
            raise UsageError(str(error), code=error.code) from None
        except Ended as end:
            raise TargetError(
                f"the process of {self._name} ended: {end}", code="process-failed"
            ) from None

    def couple(self, seeds: int, seconds: float) -> Runs:
        """Return the pairs of runs. Raises Ended or TimedOut."""
        first = seconds + _IMPORT_SECONDS
        reply, _ = self._runs("begin", first + _GRACE_SECONDS, seconds=first)
        if "over" in reply:
            return _nothing(reply["over"])
        _, data = self._runs("couple", seconds + _GRACE_SECONDS, seeds=seeds, seconds=seconds)
        try:
            return read(data)
        except ValueError as error:
            why = f"the process of {self._name} sent an invalid reply: {error}"
            raise MechanismError(why, code="process-failed") from None

    @property
    def run_is_late(self) -> bool:
        """Whether the present run of the process has reached the time-out of the target."""
        return any(clock() <= 0 for clock in self._clocks)

    def _runs(self, name: str, limit: float, **arguments: Any) -> Any:
        self._layout.counters[0] = child_script.NOT_BEGUN
        self._clocks = self.clocks(-1)
        return self.ask(name, countdown(limit), *self._clocks, **arguments)


def _nothing(over: str | None) -> Runs:
    return Runs(
        [], 0, keeps_state=False, constant_seeds=[], not_understood=[], uncalled=[], over=over
    )
