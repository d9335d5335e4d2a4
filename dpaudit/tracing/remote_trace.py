"""Coupled runs in another process, under this Python or another one."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dpaudit.adapters.isolation import Patience, Worker
from dpaudit.errors import MechanismError, TargetError, UsageError
from dpaudit.processes import worker
from dpaudit.processes.child import CRASH, TIMEOUT, Ended, TimedOut, countdown
from dpaudit.processes.exchange import pickled
from dpaudit.targets.target import IsolatedTarget
from dpaudit.tracing import tracer
from dpaudit.tracing.runs.comparing import Comparison, Coupled
from dpaudit.tracing.runs.coupling import Runs, read
from dpaudit.tracing.runs.places import Followed, Place
from dpaudit.tracing.runs.running import OVER
from dpaudit.watching import Watch

# Seconds that a process gets after its time limit to send its runs.
_GRACE = 1.0
# Additional seconds for the first run, which may import modules.
_IMPORTS = 20.0
# If a run ended its process, each input is run 3 times, each time in a new process. An input whose
# first run returns gets all further runs, up to 24 in total, in one process.
_DEADLY, _ALIVE = 3, 24
# Share of the time-out after which a run writes its stack to a file.
_LATE = 0.9
_LINE = re.compile(r'^  File "(.+)", line (\d+) in (.+)$', re.MULTILINE)


def couple_elsewhere(
    target: IsolatedTarget,
    d1: Any,
    d2: Any,
    *,
    seeds: int,
    seconds: float = math.inf,
    follow: Sequence[str] = (),
    primitives: Sequence[str | Callable[..., Any]] = (),
) -> Runs:
    """Run a mechanism in its own process on two inputs with the same noise; return the runs. The
    time-out of the target applies to each run. Raises TargetError, and UsageError if the mechanism
    cannot be traced.

    seeds: number of seeds of the noise.
    seconds: time limit for all runs.
    follow: packages or files whose lines are followed like those of the user.
    primitives: the user's functions that add noise, or their import paths.
    """
    with tempfile.TemporaryDirectory(prefix="dpaudit") as folder:
        asked = _Asked(target, (d1, d2), follow, primitives, Path(folder) / "last")
        try:
            return asked.started().couple(seeds, seconds)
        except TimedOut as end:
            if not asked.is_hanging:
                return _nothing(OVER)
            return asked.looked_into(end, seconds)
        except Ended as end:
            return asked.looked_into(end, seconds)
        finally:
            asked.close()


class _Asked:
    """A target and the process that traces it, which is replaced when it ends.

    last: the file to which the process writes its stack when it crashes or times out.
    """

    def __init__(
        self,
        target: IsolatedTarget,
        datasets: tuple[Any, Any],
        follow: Sequence[str],
        primitives: Sequence[str | Callable[..., Any]],
        last: Path,
    ) -> None:
        self._target, self._datasets, self._last = target, datasets, last
        self._follow, self._primitives = list(follow), list(primitives)
        self._tracer: _Tracer | None = None
        # Number of draws in the last run that returned.
        self._draws = 0

    def started(self) -> _Tracer:
        """Start a new process and return it; end the present one."""
        known = None if self._tracer is None else self._tracer.calling
        self.close()
        watch = Watch.of_process(self._target.limits.timeout)
        self._tracer = _Tracer(self._target, watch, known)
        self._tracer.prepare(self._datasets, self._follow, self._primitives, self._last)
        return self._tracer

    def close(self) -> None:
        if self._tracer is not None:
            self._tracer.child.kill()

    @property
    def is_hanging(self) -> bool:
        """Whether the last process was killed because a run timed out."""
        return self._tracer is not None and self._tracer.patience_is_over

    def looked_into(self, end: Ended | TimedOut, seconds: float) -> Runs:
        """Run each input again after a process ended. Return runs with a crash or time-out as the
        error of one input, if this input always ends the process and the other one never does.
        Otherwise return no runs, and the reason.

        end: how the process ended.
        seconds: time limit for the new runs.
        """
        left = countdown(seconds)
        ends = [self._ends(number, left) for number in (0, 1)]
        how = self._words(end)
        # It is a leak only if one input always ends the process, and the other one never does.
        deadly = [None not in each and len(each) == _DEADLY for each in ends]
        alive = [not any(each) for each in ends]
        if left() <= 0 or sorted((deadly[0] - alive[0], deadly[1] - alive[1])) != [-1, 1]:
            return _nothing(f"a run ended its process: {how}")
        errors = [each[0] for each in ends]  # None for the input that does not end the process
        return _nothing(None)._replace(coupled=[_apart(errors[0], errors[1])], draws=self._draws)

    def _ends(self, number: int, left: Callable[[], float]) -> list[Any]:
        """Run one input in new processes. Return an entry for each run: (kind, message, place) if
        the run ended its process, otherwise None.

        number: 0 for d1, 1 for d2.
        left: returns the seconds that remain.
        """
        found: list[Any] = []
        for seed in range(_DEADLY):
            is_last = found == [None]
            seeds = list(range(_DEADLY, _ALIVE)) if is_last else [seed]
            self._last.write_bytes(b"")
            try:
                self._draws = self.started().once(number, seeds, max(0.0, left()) + _GRACE)
                found.append(None)
            except (Ended, TimedOut) as end:
                kind = TIMEOUT if isinstance(end, TimedOut) else CRASH
                found.append((kind, self._words(end), self._place()))
            if is_last or left() <= 0:
                break
        return found

    def _words(self, end: Ended | TimedOut) -> str:
        if isinstance(end, Ended):
            return str(end)
        return f"over {self._target.limits.timeout:g} s"

    def _place(self) -> Place | None:
        """Return the line of the user's code at which the last process ended; None if unknown."""
        text = self._last.read_text(errors="replace")
        # The stack of the thread that ended the process comes last in the file.
        text = text[text.rfind("(most recent call first)") :]
        followed = Followed((), self._follow)
        for file, line, function in _LINE.findall(text):
            if followed.owns(file):
                return Place(file, int(line), "", function)
        return None


class _Tracer(Worker):
    """The parent's end of a process that runs tracer.py."""

    script = tracer.__file__
    _patience: Patience | None = None

    def prepare(
        self,
        datasets: tuple[Any, Any],
        follow: list[str],
        primitives: list[str | Callable[..., Any]],
        last: Path,
    ) -> None:
        how = self.calling.data, self.calling.rng, self.calling.batch or self.calling.alone
        for number, dataset in enumerate(datasets):
            self.take(number, dataset)
        try:
            self._ask(
                "prepare",
                countdown(math.inf),
                how=how,
                primitives=pickled(primitives, "a primitive"),
                follow=follow,
                last=str(last),
                patience=_LATE * (self._timeout or 0.0),
            )
        except MechanismError as error:
            raise UsageError(str(error), code=error.code) from None
        except Ended as end:
            raise TargetError(
                f"the process of {self._name} ended: {end}", code="process-failed"
            ) from None

    def couple(self, seeds: int, seconds: float) -> Runs:
        """Return the coupled runs. Raises Ended or TimedOut."""
        first = seconds + _IMPORTS
        reply, _ = self._runs("begin", first + _GRACE, seconds=first)
        if "over" in reply:
            return _nothing(reply["over"])
        _, data = self._runs("couple", seconds + _GRACE, seeds=seeds, seconds=seconds)
        try:
            return read(data)
        except ValueError as error:
            why = f"the process of {self._name} sent an invalid reply: {error}"
            raise MechanismError(why, code="process-failed") from None

    def once(self, number: int, seeds: list[int], seconds: float) -> int:
        """Run the mechanism on one input, once with each seed. Return the number of draws in the
        last run. Raises Ended or TimedOut.

        number: 0 for d1, 1 for d2.
        seconds: time limit for all seeds.
        """
        reply, _ = self._runs("once", seconds, number=number, seeds=seeds)
        return int(reply["draws"])

    @property
    def patience_is_over(self) -> bool:
        """Whether the present run has timed out."""
        return self._patience is not None and self._patience.left() <= 0

    def _runs(self, name: str, most: float, **arguments: Any) -> Any:
        counters = self._layout.counters
        counters[0] = worker.NOT_BEGUN
        left = [countdown(most), self._watch.waiting(self._name, counters).left]
        if self._timeout is not None:
            self._patience = Patience(self._timeout, counters, -1)
            left.append(self._patience.left)
        return self._ask(name, *left, **arguments)


def _nothing(over: str | None) -> Runs:
    return Runs(
        [], 0, 0, keeps_state=False, constant_seeds=[], not_understood=[], uncalled=[], over=over
    )


def _apart(one: Any, other: Any) -> Coupled:
    """Return a coupled pair of runs that differ only in their errors. one: error of the run on d1,
    or None; other: error of the run on d2, or None."""
    comparison = Comparison(
        hidden=[], chosen=[], differing={}, control_flow=None, uneven=[], twice=[], moved=(),
        unused=[], errors=(one, other), ends=(None, None), picks=False, ranges=False,
    )  # fmt: skip
    return Coupled(True, 0, comparison, None, ["raises"], [], [])
