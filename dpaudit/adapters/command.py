"""Draws from a program in any language, by the protocol of docs/guides/protocol.md.

dpaudit starts the program and writes a request, one line of JSON, to its standard input: a dataset,
a number of outcomes and a seed. The program writes its outcomes to standard output, as lines of
JSON or as binary numbers ("frames"). `load_mechanism` returns `Command` for a target that is a
program.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpaudit.adapters.calls import Outputs, apply_post_process
from dpaudit.adapters.isolation import ByProcess
from dpaudit.errors import DatasetError, MechanismError, TargetError
from dpaudit.outcomes import Raised
from dpaudit.processes.child import LOOK_SECONDS, Child, Ended, TimedOut, countdown
from dpaudit.targets.construction import post_processing
from dpaudit.targets.target import CommandTarget
from dpaudit.watching import WARNING_SECONDS, Step, Watch

_log = logging.getLogger(__name__)

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
# _MAX_AHEAD, _MAX_AHEAD_BYTES: largest number, and largest total size in bytes, of requests that
#     are sent before their answers have arrived. Sending ahead saves the program from waiting.
_MAX_AHEAD, _MAX_AHEAD_BYTES = 64, 1 << 15
_RAISED = "$raised"
_GREETS = f'{{"dpaudit": {VERSION}}}'


class Hello(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line that a program writes.

    dpaudit: version of the protocol.
    batch: whether the program prefers requests for many outcomes.
    frames: type of the binary numbers that the program writes; None if it writes lines of JSON.
    columns: for binary numbers, the number of values in an outcome; None if an outcome is a plain
        number.
    """

    dpaudit: Literal[1]
    batch: bool = False
    frames: Literal["float64", "int64"] | None = None
    columns: Annotated[int, msgspec.Meta(ge=1)] | None = None

    def __post_init__(self) -> None:
        if self.columns is not None and self.frames is None:
            raise ValueError("columns without frames")


def _start_of(dataset: Any) -> bytes:
    """Return the beginning of a request for outcomes of a dataset, such as `{"dataset": [1, 2],
    "size": `. The size and the seed follow later. Raises DatasetError for a dataset that JSON
    cannot represent.
    """
    try:
        text = json.dumps(dataset, default=_plain)
    except (TypeError, ValueError) as error:
        why = f"a dataset cannot be written as JSON for the program: {error}"
        raise DatasetError(why, code="input-not-plain") from None
    return f'{{"dataset": {text}, "size": '.encode()


def _request(start: bytes, size: int, seed: int) -> bytes:
    return b'%b%d, "seed": %d}\n' % (start, size, seed)


def _hello(line: bytes) -> Hello:
    """Parse the first line that a program writes. Raise ValueError, with the reason, if it is
    invalid.
    """
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("which is not JSON") from None
    try:
        return msgspec.json.decode(line, type=Hello)
    except msgspec.DecodeError as error:
        raise ValueError(f"which is not that ({error})") from None


class Program:
    """A running program.

    The constructor starts the program and reads its first line. It raises TargetError if the
    program does not start, or if the line is invalid.

    watch: logs a warning if the program does not answer for long.
    known: first line that an earlier process of the program wrote; this process must write the same
        line. None for the first process.
    """

    def __init__(self, target: CommandTarget, watch: Watch, known: Hello | None) -> None:
        self._name, self._timeout = target.name, target.limits.timeout
        self._watch = watch
        self.child = Child(target.words, memory=target.limits.memory)
        self.known = self._greeted(target.limits.doubts())
        self._has_answered = False
        if known not in (None, self.known):
            self.child.kill()
            now, first = (msgspec.json.encode(each).decode() for each in (self.known, known))
            raise TargetError(
                f"the program {target.name} began with {now}, but the first time with {first}; "
                "begin with the same line each time",
                code="program-misbehaved",
            )

    def _greeted(self, doubts: str) -> Hello:
        wanted = f"its first line must be {_GREETS}, flushed at once (see docs/guides/protocol.md)"
        step = Step(f"starting {self._name}, which has not written its first line,", self._watch)
        line: bytes | None = None
        try:
            read = partial(self.child.line, MAX_LINE_BYTES)
            line = self.child.wait(read, step.left, countdown(_GREETING_SECONDS))
            return _hello(line)
        except Ended as end:
            what = f"ended ({end}){doubts}"
        except TimedOut:
            what = (
                f"wrote no line within {_GREETING_SECONDS:g} s; {_BUFFERED}, before anything slow"
            )
        except ValueError as error:
            self.child.kill()
            began = str(error) if line is None else f"the line {_short(line)}, {error}"
            what = f"began with {began}"
        why = f"the program {self._name!r} {what}; {wanted}"
        raise TargetError(why, code="program-not-started")

    def answer(self, requests: list[tuple[bytes, int]], outcomes: list[Any]) -> None:
        """Send requests for single outcomes to the program, and append each outcome to `outcomes`.

        requests: for each request its beginning, which names the dataset, and its seed.
        outcomes: answers to the first requests, in order; may be empty. On return, it has an answer
            to every request.

        Raises Ended or TimedOut if the program ends or a draw takes too long. In that case,
        `outcomes` lacks the answers to the present request and to all later ones.
        """
        self._check_quiet()
        sent, size = len(outcomes), len(requests)
        while len(outcomes) < size:
            # Send a single request until the first answer arrives; later, send several requests
            # ahead of their answers. If the program does not flush its output, more requests bring
            # no answer, and the warning about a slow call says that the output may be buffered.
            length = len(requests[len(outcomes)][0])
            ahead = max(1, min(_MAX_AHEAD, _MAX_AHEAD_BYTES // length)) if self._has_answered else 1
            until = min(size, len(outcomes) + ahead)
            if until > sent:
                lines = [_request(start, 1, seed) for start, seed in requests[sent:until]]
                self.child.send(b"".join(lines))
                sent = until
            outcomes += self._wait(self._answers, 1)
            self._has_answered, self._watch.hint = True, ""
            if len(outcomes) > sent:
                raise self._too_much()
        self._check_done()

    def batch(self, start: bytes, size: int, seed: int) -> Outputs:
        """Send one request for `size` outcomes, and return them. Raises Ended or TimedOut.

        start: beginning of the request, which names the dataset.
        size, seed: the number of outcomes and the seed of the request.
        """
        self._check_quiet()
        self.child.send(_request(start, size, seed))
        outcomes: list[Any] = []
        if self.known.frames is not None:
            data = self._wait(partial(self.child.taken, size * self._width), size)
            self._watch.hint = ""
            self._check_done()
            return self._numbers(data)
        while len(outcomes) < size:
            outcomes += self._wait(self._answers, size)
            self._watch.hint = ""
        if len(outcomes) > size:
            raise self._too_much()
        self._check_done()
        return outcomes

    def _wait(self, ready: Callable[[], Any], size: int) -> Any:
        left = self._watch.waiting(self._name, size=size).left
        if self._timeout is None:
            return self.child.wait(ready, left)
        clocks = [countdown(self._timeout * size)]
        # If a single draw is asked for, and its time limit is long, also log a warning when the
        # draw is slow (`left`). A request for many draws gets no warning; it ends with an error
        # when its time limit is reached.
        if size == 1 and self._timeout > WARNING_SECONDS:
            clocks.append(left)
        return self.child.wait(ready, *clocks, glance=min(LOOK_SECONDS, self._timeout / 4))

    def _answers(self) -> list[Any] | None:
        """Return the outcomes that have arrived since the last call; None if no complete outcome
        has.
        """
        if self.known.frames is not None:
            whole = len(self.child.received) // self._width
            data = self.child.taken(whole * self._width) if whole else None
            return None if data is None else list(self._numbers(data))
        try:
            lines = self.child.lines(MAX_LINE_BYTES)
        except ValueError as error:
            why = f"the program {self._name} wrote {error}"
            raise MechanismError(why, code="program-misbehaved") from None
        return None if lines is None else list(map(self._outcome, lines))

    def _outcome(self, line: bytes) -> Any:
        try:
            outcome = json.loads(line)
        except (ValueError, RecursionError):
            raise MechanismError(
                f"the program {self._name} wrote {_short(line)}, which is not an outcome; each "
                "must be one line of JSON",
                code="program-misbehaved",
            ) from None
        if type(outcome) is not dict or _RAISED not in outcome:
            return outcome
        return Raised(str(outcome[_RAISED])[:200], str(outcome.get("message", ""))[:200])

    @property
    def _width(self) -> int:
        """Number of bytes of an outcome in binary output. Not used for output in lines of JSON."""
        return 8 * (self.known.columns or 1)

    def _numbers(self, data: bytes) -> NDArray[Any]:
        numbers = np.frombuffer(data, "<f8" if self.known.frames == "float64" else "<i8")
        return numbers if self.known.columns is None else numbers.reshape(-1, self.known.columns)

    def _check_quiet(self) -> None:
        if self.child.hears_more():
            raise self._too_much()

    def _check_done(self) -> None:
        # A program that answers before it has read its request ignores the request. Unread input
        # may be the only sign of this.
        if not self.child.has_read_all():
            raise self._too_much()
        self._check_quiet()

    def _too_much(self) -> MechanismError:
        self.child.kill()
        return MechanismError(
            f"the program {self._name} wrote more than dpaudit requested; read each request "
            "first, then write as many outcomes as its size",
            code="program-misbehaved",
        )


class Command(ByProcess[Program]):
    """A mechanism whose outcomes come from a program. If the program ends, it is started again.

    By default, each request to the program asks for a single outcome. Draws of d1 and d2 can then
    alternate, and it is known which draw ended the program. If the user or the program chooses
    batches, each request asks for many outcomes of one input, and an end of the program is an
    error.
    """

    text_orders = False  # the order of texts in a set is unknown for other languages
    batch = "size"

    def __init__(self, target: CommandTarget) -> None:
        self._post_process = post_processing(target.post_process)

        def interleaved(hello: Hello) -> bool:
            is_batch = hello.batch or hello.frames is not None
            return not (is_batch if target.is_batch is None else target.is_batch)

        super().__init__(target, partial(Program, target), interleaved)
        self.label = f"the program {self.name}"
        self._watch.hint = _BUFFERED
        self._after = Watch.without_timeout()
        self._starts: dict[int, tuple[Any, bytes]] = {}

    def draw_batch(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        program, seed = self.running(), int(rng.integers(2**63))
        outcomes = program.batch(self._start(dataset), size, seed)
        return outcomes if self._post_process is None else self._processed(outcomes)

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> list[Any]:
        asked = list(map(self._start, datasets))
        seeds = rng.integers(2**63, size=len(asked)).tolist()
        requests, outcomes = list(zip(asked, seeds, strict=True)), list[Any]()
        while len(outcomes) < len(requests):
            before, program = len(outcomes), self.running()
            try:
                program.answer(requests, outcomes)
            except (Ended, TimedOut) as end:
                if len(outcomes) > before:
                    self.draw_ended()
                start, _ = requests[len(outcomes)]
                has_begun = program.child.has_read
                is_silent = isinstance(end, TimedOut) and self._watch.hint != ""
                if is_silent and self._watch.should_warn("hint"):
                    words = "the program %s has not answered its first request in time; %s"
                    _log.warning(words, self.name, _BUFFERED)
                outcomes.append(self.died(end, start, has_begun=has_begun))
        self.draw_ended()
        return self._processed(outcomes)

    def _start(self, dataset: Any) -> bytes:
        """Return the beginning of a request for outcomes of a dataset, from a cache if possible.
        The cache finds a dataset by its id, and keeps it alive, so that no other object gets this
        id.
        """
        if id(dataset) not in self._starts:
            if len(self._starts) >= _MAX_AHEAD:
                self._starts.clear()
            self._starts[id(dataset)] = (dataset, _start_of(dataset))
        return self._starts[id(dataset)][1]

    def _processed(self, outcomes: Outputs) -> list[Any]:
        listed = outcomes.tolist() if isinstance(outcomes, np.ndarray) else outcomes
        return apply_post_process(self._post_process, listed, self._after)


def _plain(value: Any) -> Any:
    """Convert a NumPy value or a set to a type that JSON can represent; raise TypeError for other
    values.
    """
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
