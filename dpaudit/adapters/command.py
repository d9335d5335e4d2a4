"""Draws from a program in any language, by the protocol of docs/guides/protocol.md. dpaudit writes
a request, one line of JSON with a dataset, a number of outcomes and a seed, to the program's
standard input. The program writes its outcomes to standard output, as lines of JSON or as binary
numbers ("frames")."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpaudit.adapters.calls import Outputs, apply_post_process
from dpaudit.adapters.in_child import InChild
from dpaudit.errors import DatasetError, MechanismError, TargetError
from dpaudit.outcomes import Raised
from dpaudit.processes.child import Child, Ended, TimedOut, countdown
from dpaudit.targets.construction import post_processing
from dpaudit.targets.target import CommandTarget
from dpaudit.watching import Watch, WatchedStep

# Version of the protocol. The first line that a program writes must name it.
VERSION = 1
# Length of the longest line that a program may write, in bytes.
MAX_LINE_BYTES = 1 << 24
# Seconds within which a program must write its first line.
_GREETING_SECONDS = 10.0
_BUFFERED = (
    "its output may be buffered: flush every line (awk: fflush(); Python: python -u, or flush=True "
    "in print; C: fflush(stdout))"
)
# Largest number, and largest total size in bytes, of requests that are sent before their answers
# have arrived. Sending ahead saves the program from waiting.
_MAX_AHEAD, _MAX_AHEAD_BYTES = 64, 1 << 15
_RAISED = "$raised"
_GREETS = f'{{"dpaudit": {VERSION}}}'


class Hello(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line that a program writes, with the version of the protocol.

    batch: whether the program prefers requests for many outcomes.
    frames: type of the binary numbers that the program writes. None: it writes lines of JSON.
    columns: number of binary numbers in an outcome. None: an outcome is a plain number.
    """

    dpaudit: Literal[1]
    batch: bool = False
    frames: Literal["float64", "int64"] | None = None
    columns: Annotated[int, msgspec.Meta(ge=1)] | None = None

    def __post_init__(self) -> None:
        if self.columns is not None and self.frames is None:
            raise ValueError("columns without frames")


class Program(Child):
    """A running program that has written its first line, `hello`. Raises TargetError if the program
    does not start, or if its first line is invalid."""

    def __init__(self, target: CommandTarget, watch: Watch) -> None:
        self._name, self._timeout, self._watch = target.name, target.limits.timeout, watch
        super().__init__(target.words, memory=target.limits.memory)
        step = WatchedStep(f"starting {self._name}, which has not written its first line,", watch)
        line: bytes | None = None
        try:
            read = partial(self.line, MAX_LINE_BYTES)
            line = self.wait(read, step.left, countdown(_GREETING_SECONDS))
            self.hello = msgspec.json.decode(line, type=Hello)
            return
        except TimedOut:
            what = f"wrote no line within {_GREETING_SECONDS:g} s; {_BUFFERED}"
        except Ended as end:
            what = f"ended ({end}){target.limits.doubts()}"
        except (ValueError, msgspec.DecodeError) as error:  # the line is too long, or no `Hello`
            what = (
                "began with " + ("" if line is None else f"the line {_short(line)}: ") + str(error)
            )
        self.kill()
        raise TargetError(
            f"the program {self._name!r} {what}; its first line must be {_GREETS}, flushed at once "
            "(see docs/guides/protocol.md)",
            code="program-not-started",
        )

    def answer(self, requests: list[tuple[bytes, int]], outcomes: list[Any]) -> None:
        """Send requests for single outcomes, and append the answers to `outcomes`, in order. Each
        request is (its beginning, which contains the dataset; its seed). If `outcomes` already has
        answers, only the later requests are sent. Raises Ended if the program ends or a draw takes
        too long; `outcomes` then has the answers before this draw."""
        self._check_idle()
        sent, size = len(outcomes), len(requests)
        while len(outcomes) < size:
            length = len(requests[len(outcomes)][0])
            lookahead = max(1, min(_MAX_AHEAD, _MAX_AHEAD_BYTES // length))
            until = min(size, len(outcomes) + lookahead)
            if until > sent:
                self.send(
                    b"".join(_request(start, 1, seed) for start, seed in requests[sent:until])
                )
                sent = until
            outcomes += self._wait(self._answers, 1)
            if len(outcomes) > sent:
                raise self._wrote_too_much()
        self._check_idle()

    def batch(self, start: bytes, size: int, seed: int) -> Outputs:
        """Return `size` outcomes from one request. `start` is its beginning, which contains the
        dataset. Raises Ended."""
        self._check_idle()
        self.send(_request(start, size, seed))
        if self.hello.frames is not None:
            numbers = self._numbers(self._wait(partial(self.taken, size * self._width), size))
            self._check_idle()
            return numbers
        outcomes: list[Any] = []
        while len(outcomes) < size:
            outcomes += self._wait(self._answers, size)
        if len(outcomes) > size:
            raise self._wrote_too_much()
        self._check_idle()
        return outcomes

    def _wait(self, ready: Callable[[], Any], size: int) -> Any:
        clocks = [self._watch.waiting(self._name, size=size).left]
        if self._timeout is not None:
            clocks.append(countdown(self._timeout * size))
        answers = self.wait(ready, *clocks)
        self._watch.hint = ""  # it flushes its output
        return answers

    def _answers(self) -> list[Any] | None:
        """Return the outcomes that have arrived since the last call, or None if there are none."""
        if self.hello.frames is not None:
            count = len(self.received) // self._width
            data = self.taken(count * self._width)
            return list(self._numbers(data)) if data else None
        outcomes = []
        try:
            while (line := self.line(MAX_LINE_BYTES)) is not None:
                outcomes.append(self._outcome(line))
        except ValueError as error:
            why = f"the program {self._name} wrote {error}"
            raise MechanismError(why, code="program-misbehaved") from None
        return outcomes or None

    def _outcome(self, line: bytes) -> Any:
        try:
            outcome = json.loads(line.decode(errors="surrogatepass"))
        except (ValueError, RecursionError):
            raise ValueError(
                f"{_short(line)}, which is not an outcome; each must be one line of JSON"
            ) from None
        if type(outcome) is not dict or _RAISED not in outcome:
            return outcome
        return Raised(str(outcome[_RAISED])[:200], str(outcome.get("message", ""))[:200])

    @property
    def _width(self) -> int:
        """Number of bytes of one outcome in binary output."""
        return 8 * (self.hello.columns or 1)

    def _numbers(self, data: bytes) -> NDArray[Any]:
        numbers = np.frombuffer(data, "<f8" if self.hello.frames == "float64" else "<i8")
        return numbers if self.hello.columns is None else numbers.reshape(-1, self.hello.columns)

    def _check_idle(self) -> None:
        if not self.is_idle():
            raise self._wrote_too_much()

    def _wrote_too_much(self) -> MechanismError:
        self.kill()
        return MechanismError(
            f"the program {self._name} wrote more than dpaudit requested; read each request "
            "first, then write as many outcomes as its size",
            code="program-misbehaved",
        )


class Command(InChild[Program]):
    """A mechanism whose outcomes come from a program.

    By default, a request asks for a single outcome. Draws of d1 and d2 can then alternate, and the
    draw in which the program ends is known. If the user or the program chooses batches, a request
    asks for many outcomes of one input, and an end of the program is an error.
    """

    text_orders = False  # the order of texts in a set is unknown for other languages
    batch = "size"

    def __init__(self, target: CommandTarget) -> None:
        super().__init__(target)
        self._target, self.label = target, f"the program {self.name}"
        self._post_process = post_processing(target.post_process)
        self._watch.hint = _BUFFERED
        self._post_process_watch = Watch.without_timeout()
        self._starts: dict[int, tuple[Any, bytes]] = {}
        self._child = self.start()
        hello = self._child.hello
        is_batch = hello.batch or hello.frames is not None
        self.interleaved = not (is_batch if target.is_batch is None else target.is_batch)

    def start(self) -> Program:
        return Program(self._target, self._watch)

    def draw_batch(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        program, seed = self.running(), int(rng.integers(2**63))
        outcomes = program.batch(self._start(dataset), size, seed)
        return outcomes if self._post_process is None else self._processed(outcomes)

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> list[Any]:
        starts = list(map(self._start, datasets))
        seeds = rng.integers(2**63, size=len(starts)).tolist()
        requests, outcomes = list(zip(starts, seeds, strict=True)), list[Any]()
        while len(outcomes) < len(requests):
            count, end = len(outcomes), None
            try:
                self.running().answer(requests, outcomes)
            except Ended as error:
                end = error
            if len(outcomes) > count:
                self.draw_ended()
            if end is not None:
                outcomes.append(self.died(end, starts[len(outcomes)]))
        return self._processed(outcomes)

    def _start(self, dataset: Any) -> bytes:
        """Return the beginning of a request for outcomes of a dataset."""
        if id(dataset) not in self._starts:
            if len(self._starts) >= _MAX_AHEAD:
                self._starts.clear()
            # The dataset is kept alive, so that no other object gets its id.
            self._starts[id(dataset)] = (dataset, _start_of(dataset))
        return self._starts[id(dataset)][1]

    def _processed(self, outcomes: Outputs) -> list[Any]:
        values = outcomes.tolist() if isinstance(outcomes, np.ndarray) else outcomes
        return apply_post_process(self._post_process, values, self._post_process_watch)


def _start_of(dataset: Any) -> bytes:
    """Return the beginning of a request, such as `{"dataset": [1, 2], "size": `."""
    try:
        text = json.dumps(dataset, default=_plain)
    except (TypeError, ValueError) as error:
        why = f"a dataset cannot be written as JSON for the program: {error}"
        raise DatasetError(why, code="input-not-plain") from None
    return f'{{"dataset": {text}, "size": '.encode()


def _request(start: bytes, size: int, seed: int) -> bytes:
    return b'%b%d, "seed": %d}\n' % (start, size, seed)


def _plain(value: Any) -> Any:
    """Convert a NumPy value or a set to a type that JSON can represent."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no form there")


def _short(line: bytes) -> str:
    try:
        text = repr(line.decode())
    except UnicodeDecodeError:  # show invalid text as bytes
        text = repr(line)
    return text if len(text) <= 60 else f"{text[:59]}…"
