"""A Python mechanism that draws in a separate process, under this Python interpreter or another.

`load_mechanism` returns an `Isolated` if the user's description of the mechanism (the target) asks
for a separate process. `Isolated` uses a `Worker`: a process that runs
`dpaudit/processes/worker.py`, reads requests from its standard input and writes replies to its
standard output. Outputs of single draws are written to shared memory, so that no finished draw is
lost if the process ends. A dataset is sent to the process once; later requests contain its number.
`ByProcess` is the base of `Isolated` and of `Command` (command.py), whose process is a program.
"""

from __future__ import annotations

import inspect
import json
import mmap
import os
import re
import sys
import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.adapters.calls import (
    Outputs,
    as_python,
    batch_failed,
    batch_wrong,
    draw_in_few_sizes,
)
from dpaudit.errors import MechanismError, TargetError, UsageError
from dpaudit.import_path import PACKAGES, check_file
from dpaudit.library_claims import NoClaim
from dpaudit.processes import worker
from dpaudit.processes.child import (
    LOOK_SECONDS,
    Child,
    Clock,
    Ended,
    Process,
    Succession,
    TimedOut,
    countdown,
)
from dpaudit.processes.exchange import array, parsed, pickled, request
from dpaudit.targets.compiled import COMPILERS
from dpaudit.targets.construction import is_missing, lacks, needs_init, not_found
from dpaudit.targets.parameters import Calling, calling, check_post_process
from dpaudit.targets.target import (
    CallableTarget,
    CommandTarget,
    ImportedTarget,
    IsolatedTarget,
    PythonTarget,
)
from dpaudit.watching import WARNING_SECONDS, Step, Watch

# Largest number of datasets that a process keeps. The index of a dataset must fit in a byte.
_MAX_DATASETS = 200
# Length of the longest line that a reply may have, in bytes.
_MAX_REPLY_BYTES = 1 << 16
# _WORD: text that an interpreter is asked to print, to check that `python` names a Python
#     interpreter.
# _SECONDS_TO_START: time limit for this check, in seconds; an interpreter on a slow disk takes long
#     to start.
_WORD, _SECONDS_TO_START = "dpaudit asks", 60.0
# Seconds added to the time limit of a call for many draws, since the process may have to import
# NumPy first.
_SECONDS_TO_IMPORT = 5.0
# Matches an exception that a process may raise while it is set up, if its memory limit is too
# small.
_MEMORY_ERRORS = re.compile(r": (ImportError|MemoryError|OSError|RuntimeError|SystemError)\b")
# Environment variable that marks worker processes. `Isolated` refuses to start in them: otherwise a
# script that audits at its top level would start workers in its own workers.
_INSIDE = "DPAUDIT_WORKER"


class Worker:
    """A process that has loaded the mechanism and answers requests. The constructor raises
    TargetError if the mechanism cannot be loaded, or cannot be called with the parameters of the
    target.
    """

    # Path of the script that the process runs.
    script = worker.__file__

    def __init__(self, target: IsolatedTarget, watch: Watch, known: Calling | None = None) -> None:
        """Start the process.

        target: the mechanism, and how to call it.
        watch: logs a warning if the process does not answer for long.
        known: how to call the mechanism, as an earlier process of the target has reported; None for
            the first process.
        """
        named = target.target
        if isinstance(named, ImportedTarget) and ":" not in named.path:
            raise TargetError(
                f"target {named.path!r} has no ':' between module and function; "
                f"write FILE.py:{named.path} or MODULE:{named.path}",
                code="import-path-invalid",
            )
        # A program that is given as --python may start a container, which has files of its own.
        if isinstance(named, ImportedTarget) and target.python is None:
            check_file(named.path.rpartition(":")[0])
        self._name, self._timeout = target.name, target.limits.timeout
        self._python = target.python or sys.executable
        if target.python is not None and known is None:
            _check_python(target.python)
        self._taken: set[int] = set()
        self._watch = watch
        with _shared_file() as file:
            file.truncate(worker.MEMORY)
            self._memory = mmap.mmap(file.fileno(), worker.MEMORY)
            self._layout = worker.Layout(self._memory)
            self.child = Child(
                [self._python, str(Path(self.script).resolve())],
                memory=target.limits.memory,
                environment={_INSIDE: "1"},
                keep=(file.fileno(),),
            )
            reply = self._set_up(target, file.fileno(), is_first=known is None)
        self.known = known or _calling(reply, target.target)
        self._how = (self.known.rng, self.known.data)

    def _set_up(self, target: IsolatedTarget, memory: int, *, is_first: bool) -> Any:
        asked = pickled(_asked(target.target), target.name)
        path = sys.path if target.python is None else []
        # The path of the running script, if the mechanism is defined in it; else None.
        main = getattr(sys.modules["__main__"], "__file__", None) if b"__main__" in asked else None
        step = Step(f"setting up {self._name} in a separate process", self._watch)
        ask = partial(self._ask, "set_up", step.left, target=asked, memory=memory)
        try:
            reply, _ = ask(path=path, main=main, is_first=is_first)
        except Ended as end:
            raise TargetError(
                f"{target.name} cannot be set up in a separate process, which ended: "
                f"{end}{target.limits.doubts()}",
                code="process-failed",
            ) from None
        except MechanismError as error:
            self._check_found(str(error), target)
            doubts = target.limits.doubts() if _MEMORY_ERRORS.search(str(error)) else ""
            remedy = ""
            if "cannot be made: TypeError" in str(error):
                remedy = needs_init(target.target)
            raise TargetError(f"{error}{doubts}{remedy}", code="mechanism-not-made") from None
        return reply

    def _check_found(self, words: str, target: IsolatedTarget) -> None:
        """Raise TargetError if the process could not be set up because a package is not installed.

        There is one exception: if the package contains the mechanism itself and is not a known
        library, nothing is raised here. The caller then reports that the mechanism cannot be
        imported.

        words: text of the error with which the setup ended.
        target: the mechanism.
        """
        package, path = lacks(words), getattr(target.target, "path", "")
        if package is None:
            return
        is_own = f"{path.partition(':')[0]}.".startswith(f"{package}.")
        if package in PACKAGES or not is_own:
            raise not_found(words, self._name, self._python)

    def take(self, number: int, dataset: Any) -> None:
        """Send a dataset to the process, unless it was sent before under this index.

        number: index of the dataset.
        """
        if number not in self._taken:
            step = Step(f"handing a dataset over to the process of {self._name}", self._watch)
            data = pickled(dataset, "a dataset")
            self._ask("take", step.left, number=number, dataset=data)
            self._taken.add(number)

    def draw(self, arms: bytes, datasets: Sequence[Any], seed: int) -> None:
        """Make a draw for each entry of `arms` in the process. Afterwards, `outcomes` returns the
        outputs.

        arms: for each draw, the index of its dataset in `datasets`; at most `worker.SLOTS` draws.
        datasets: the datasets.
        seed: seed of the draws.

        Raises Ended if the process ends, and TimedOut if a draw takes too long.
        """
        self._layout.counters[0], self._layout.counters[1] = worker.NOT_BEGUN, 0
        self._layout.arms[: len(arms)] = arms
        for number in set(arms):
            self.take(number, datasets[number])
        waiting, glance = self._watch.waiting(self._name, self._layout.counters), LOOK_SECONDS
        left = [waiting.left]
        if self._timeout is not None:
            patience = Patience(self._timeout, self._layout.counters, len(arms))
            left = [patience.left, *(left if self._timeout > WARNING_SECONDS else [])]
            glance = min(LOOK_SECONDS, self._timeout / 4)
        self._ask("draw", *left, glance=glance, count=len(arms), seed=seed, how=self._how)

    @property
    def has_begun(self) -> bool:
        """Whether the first draw of the last request has begun."""
        return bool(self._layout.counters[0] != worker.NOT_BEGUN)

    def outcomes(self, most: int) -> Outputs:
        """Return the outputs of all finished draws of the last request, in order. Raise
        MechanismError if the shared memory is corrupt.

        most: number of draws requested.
        """
        done, used = self._layout.counters
        done = 0 if done == worker.NOT_BEGUN else done
        if done > most or used > worker.HEAP:
            why = f"{self._name} wrote into memory that belongs to dpaudit"
            raise MechanismError(why, code="process-failed")
        kinds = np.frombuffer(self._layout.kinds, np.uint8, done)
        floats: NDArray[np.float64] = np.asarray(self._layout.floats)[:done]
        if (kinds == worker.FLOAT).all():
            return floats.copy()
        integers: NDArray[np.int64] = np.asarray(self._layout.integers)[:done]
        if (kinds == worker.INTEGER).all():
            # Return a list of Python integers, and not an array: dpaudit ignores the dtype of an
            # array of outcomes, since a single fraction makes all of them floats. The types of the
            # items of a list are part of the outcomes: 1 and 1.0 differ.
            whole: list[int] = integers.tolist()
            return whole
        is_text = kinds == worker.TEXT
        texts = bytes(self._layout.heap[:used]).split(b"\n")[: int(is_text.sum())]
        value_of = {text: self._parsed(text) for text in set(texts)}
        values = [value_of[text] for text in texts]
        if len(texts) == done:
            return values
        outcomes = np.empty(done, dtype=object)
        outcomes[is_text] = np.fromiter(values, dtype=object, count=len(texts))
        numbers = {worker.FLOAT: floats, worker.INTEGER: integers, worker.BOOLEAN: integers != 0}
        for kind, values_of_kind in numbers.items():
            outcomes[kinds == kind] = values_of_kind[kinds == kind].tolist()
        return outcomes.tolist()

    def answer(self, dataset: Any, seed: int) -> Any:
        """Return the output of one call. The dataset is sent for this call only. Raises Ended or
        TimedOut.

        dataset: the dataset.
        seed: seed of the call.
        """
        self._taken.discard(0)
        self.draw(bytes(1), [dataset], seed)
        (outcome,) = as_python(self.outcomes(1))
        return outcome

    def draw_batch(self, number: int, size: int, seed: int) -> Outputs:
        """Return the outputs of a single call that makes `size` draws. Raises Ended if the process
        ends, TimedOut if it was killed at the time limit, and MechanismError if the call raises an
        exception or returns another number of outputs.

        number: index of the dataset, which must have been sent by `take`.
        size: number of draws.
        seed: seed of the call.
        """
        batch = str(self.known.batch)
        left = self._watch.waiting(self._name, size=size).left
        if self._timeout is not None:
            left = countdown(self._timeout * size + _SECONDS_TO_IMPORT)
        reply, data = self._ask(
            "draw_batch", left, number=number, size=size, seed=seed, batch=batch, how=self._how
        )
        if "failed" in reply and is_missing(reply["failed"]):
            raise not_found(reply["failed"], self._name, self._python)
        if "failed" in reply:
            raise batch_failed(self._name, batch, size, f"raised {reply['failed']}")
        if "got" in reply:
            raise batch_wrong(self._name, batch, size, reply["got"])
        if reply["array"] is None:
            return list(self._parsed(data))
        dtype, shape = reply["array"]
        return array(dtype, shape, data)

    def claim(self, both: Any, relation: Any, delta: float | None) -> dict[str, Any]:
        """Ask the process for the claim that the library of the mechanism makes
        (`library_claims.ask`). Raises NoClaim if it makes none.

        both: (d1, d2); None without a pair.
        relation, delta: as in `library_claims.Question`.
        """
        for number, dataset in enumerate(both or ()):
            self.take(number, dataset)
        step = Step(f"asking {self._name} for its claim", self._watch)
        asked = {"has_pair": both is not None, "relation": relation, "delta": delta}
        try:
            reply, _ = self._ask("claim", step.left, **asked)
        except Ended as end:
            why = f"the process of {self._name} ended: {end}"
            raise TargetError(why, code="process-failed") from None
        if "no_claim" in reply:
            raise NoClaim(*reply["no_claim"])
        return dict(reply["claim"])

    def _parsed(self, text: bytes) -> Any:
        try:
            return parsed(text)
        except ValueError as error:
            why = f"the process of {self._name} returned {error}"
            raise MechanismError(why, code="process-failed") from None

    def _ask(
        self, name: str, *left: Clock, glance: float = LOOK_SECONDS, **arguments: Any
    ) -> tuple[Any, bytes]:
        """Send a request to the process. Return (reply, data): the reply as a dict, and the raw
        bytes that follow it.

        name, arguments: method of the worker to call, and its arguments.
        left: functions that return the seconds left until a time limit. If one of them returns 0 or
            less, the process is killed, and TimedOut is raised.
        glance: longest time between two calls of the functions in `left`, in seconds.
        """
        self.child.send(request(name, arguments))
        try:
            line = self.child.wait(partial(self.child.line, _MAX_REPLY_BYTES), *left, glance=glance)
            reply = json.loads(line)
            size = int(reply["bytes"])
        except (ValueError, LookupError, TypeError) as error:
            self.child.kill()
            why = f"the process of {self._name} sent an invalid reply: {error}"
            raise MechanismError(why, code="process-failed") from None
        data = self.child.wait(partial(self.child.taken, size), *left, glance=glance)
        if "refused" in reply:
            raise MechanismError(reply["refused"], code=str(reply["code"]))
        return reply, data


class ByProcess(Succession[Process]):
    """Base of mechanisms that draw in another process, which is replaced when it ends.

    If a process ends, the outcome of its present draw is `crash`; if it is killed at a time limit,
    the outcome is `timeout`. The draw is not repeated, since that would keep only draws that the
    process survives. The new process makes the next draw. If a process ends in a call for many
    draws, a MechanismError is raised, since it is unknown which draw ended the process.

    interleaved: whether each draw is a call of its own.
    label: name of the mechanism in messages about calls for many draws.
    batch: name of the parameter for the number of draws of a call.
    has_few_sizes: whether calls for many draws use only a few different numbers of draws.
    """

    parts = ()  # a process re-seeds the generators in its objects itself
    label: str
    batch: str
    has_few_sizes = False

    def __init__(
        self,
        target: IsolatedTarget | CommandTarget,
        start: Callable[[Watch, Any], Process],
        interleaved: Callable[[Any], bool],
    ) -> None:
        """Start the first process.

        target: the mechanism or program.
        start: starts and returns a process; see `Succession`.
        interleaved: function that returns whether each draw is a call of its own. Its argument is
            the first process's description of how to call the mechanism.
        """
        super().__init__(target.name, target.limits.timeout, start)
        self.interleaved = interleaved(self.known)
        self.types_by_draw = self.interleaved  # outputs of a batch may be entries of an array

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        if self.interleaved:
            return self.sample_each(repeat(dataset, size), rng)
        try:
            if self.has_few_sizes:
                return draw_in_few_sizes(lambda each: self.draw_batch(dataset, each, rng), size)
            return self.draw_batch(dataset, size, rng)
        except (Ended, TimedOut) as end:
            self.close()
            what = f"ended its process ({self.words(end)})"
            raise batch_failed(self.label, self.batch, size, what) from None

    @abstractmethod
    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> Outputs: ...

    @abstractmethod
    def draw_batch(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        """Return `size` outputs, made in a single call. Raises Ended if the process ends during the
        call, and TimedOut if it is killed at the time limit."""


class Isolated(ByProcess[Worker]):
    """A mechanism that draws in a separate process, under this Python interpreter or another. If
    the process ends, a new process makes the draws that had not begun, with a new seed.
    """

    text_orders = True  # the process itself compares orders of texts with orders of sets

    def __init__(self, target: IsolatedTarget) -> None:
        if os.environ.get(_INSIDE):
            raise UsageError(
                "a drawing process was asked to start another audit; put the call of "
                "dpaudit.audit under `if __name__ == '__main__':`",
                code="audit-in-worker",
            )
        super().__init__(target, partial(Worker, target), lambda known: known.batch is None)
        self.how, self.label, self.batch = self.known, target.name, str(self.known.batch)
        self.has_few_sizes = self.known.few_sizes
        self._datasets: list[Any] = []
        self._numbers: dict[int, int] = {}

    def draw_batch(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        (number,) = self._numbered([dataset])
        process = self.running()
        process.take(number, dataset)
        return process.draw_batch(number, size, _seed(rng))

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> Outputs:
        if not self.interleaved:
            return [self.sample(dataset, 1, rng)[0] for dataset in datasets]
        arms = self._numbered(list(datasets))
        pieces: list[Outputs] = []
        begun = 0
        while begun < len(arms):
            pieces.append(self._drawn(arms[begun : begun + worker.SLOTS], _seed(rng)))
            begun += len(pieces[-1])
        arrays = [piece for piece in pieces if isinstance(piece, np.ndarray)]
        if len(arrays) == len(pieces) and len({array.dtype for array in arrays}) == 1:
            return np.concatenate(arrays)
        return [outcome for piece in pieces for outcome in as_python(piece)]

    def _drawn(self, arms: bytes, seed: int) -> Outputs:
        """Make draws in the process, and return their outcomes. If the process ends early, return
        the outcomes up to the draw during which it ended, at least one; the last outcome is then
        `crash` or `timeout`.

        arms: index of the dataset of each draw.
        seed: seed of the draws.
        """
        process = self.running()
        end: Ended | TimedOut | None = None
        try:
            process.draw(arms, self._datasets, seed)
        except (Ended, TimedOut) as error:
            end = error
        outcomes = process.outcomes(len(arms))
        if len(outcomes):
            self.draw_ended()
        # If the process ended after its last draw, no outcome is missing. If it ended during a
        # draw, that draw gets the outcome `crash` or `timeout` below.
        if end is None or len(outcomes) == len(arms):
            return outcomes
        died = self.died(end, arms[len(outcomes)], has_begun=process.has_begun)
        return [*as_python(outcomes), died]

    def _numbered(self, inputs: list[Any]) -> bytes:
        """Return the index of each dataset, as bytes. An object keeps its index in later calls. If
        more than `_MAX_DATASETS` indices would be needed, the process is ended, and counting
        begins again at 0.
        """
        new = {id(dataset): dataset for dataset in inputs if id(dataset) not in self._numbers}
        if len(self._datasets) + len(new) > _MAX_DATASETS:
            new = {id(dataset): dataset for dataset in inputs}
            self._numbers, self._datasets = {}, []
            self.close()
        for identity, dataset in new.items():
            self._numbers[identity] = len(self._datasets)
            self._datasets.append(dataset)
        return bytes(map(self._numbers.__getitem__, map(id, inputs)))


class IsolatedFunction(Succession[Worker]):
    """A function that runs in a separate process. It is called only once for each dataset, since
    the user states that it has no noise.

    Each call has a new seed. So if the statement is wrong, a second call with an equal dataset
    gives another output.
    """

    def __init__(self, target: IsolatedTarget) -> None:
        super().__init__(target.name, target.limits.timeout, partial(Worker, target))
        self._calls = 0

    def __call__(self, dataset: Any) -> Any:
        """Return the output for a dataset; `Raised` if the call raises or ends its process."""
        self._calls += 1
        process = self.running()
        try:
            outcome = process.answer(dataset, self._calls)
        except (Ended, TimedOut) as end:
            return self.died(end, 0, has_begun=process.has_begun)
        self.draw_ended()
        return outcome


def _seed(rng: np.random.Generator) -> int:
    return int.from_bytes(rng.bytes(16), "little")


class Patience:
    """Measures the time left for the present draw of a worker process.

    seconds: time limit of a draw.
    counters: shared memory whose first entry is the number of finished draws.
    count: number of draws requested.
    """

    def __init__(self, seconds: float, counters: memoryview, count: int) -> None:
        self._seconds, self._counters, self._count = seconds, counters, count
        self._seen, self._since = worker.NOT_BEGUN, time.monotonic()

    def left(self) -> float:
        """Return the seconds left for the present draw. Before the first draw and after the last
        draw, no draw is in progress: the result is then the whole time limit.
        """
        now, done = time.monotonic(), self._counters[0]
        if done != self._seen or done in (worker.NOT_BEGUN, self._count):
            self._seen, self._since = done, now
        return self._seconds - (now - self._since)


def _shared_file() -> IO[bytes]:
    """Return an unnamed file that two processes can map as shared memory."""
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("dpaudit"), "r+b")
    return tempfile.TemporaryFile()


def _check_python(python: str) -> None:
    """Raise TargetError unless `python` is a Python interpreter."""
    child = Child([python, "-c", f"print({_WORD!r})"])
    start = Step(f"starting {python}, which must be a Python interpreter,")
    try:
        read = partial(child.line, _MAX_REPLY_BYTES)
        line = child.wait(read, start.left, countdown(_SECONDS_TO_START))
        what = f"wrote {line.decode(errors='replace')[:60]!r}"
    except Ended as error:
        line, what = b"", f"ended: {error}"
    except (TimedOut, ValueError):
        line, what = b"", "did not answer"
    finally:
        child.kill()
    if line.decode(errors="replace") != _WORD:
        raise TargetError(
            f"{python} is not a Python interpreter: asked to print({_WORD!r}), it {what}; give "
            "the path of one, e.g. /path/to/venv/bin/python",
            code="python-not-usable",
        )


def _asked(target: PythonTarget) -> dict[str, Any]:
    """Return the fields of a target that a worker needs to make the mechanism, as {name: value}."""
    asked = {"params": dict(target.params), "post_process": target.post_process}
    if isinstance(target, CallableTarget):
        return {**asked, "function": target.function}
    made = {key: getattr(target, key) for key in ("path", "init", "call", "factory")}
    return {**asked, **made, "function": None}


def _calling(reply: Any, target: PythonTarget) -> Calling:
    """Return how to call the mechanism of a target: the names of its parameters for the dataset,
    the generator and the number of outputs. Raise TargetError if the signatures do not fit the
    options of the target.

    reply: reply of the worker, with the signature of the mechanism ("parameters") and of the
        function for post-processing ("process"), and the imported packages ("modules").
    target: the mechanism, with its options.
    """
    if target.post_process is not None:
        check_post_process(_stub(reply["process"]), f"of {target.name}")
    made = isinstance(target, ImportedTarget) and (target.factory or target.call is not None)
    how = calling(_stub(reply["parameters"]), target, is_made=made)
    return replace(how, few_sizes=not COMPILERS.isdisjoint(reply["modules"]))


def _stub(parameters: Sequence[Any] | None) -> Any:
    """Return a dummy function with the given signature, for checks of signatures.

    parameters: (name, kind, whether required) of each parameter; None if the signature is unknown.
    """

    def stub() -> None: ...

    signature: Any = "unknown"  # `inspect.signature` raises for a text
    if parameters is not None:
        signature = inspect.Signature([_parameter(*fields) for fields in parameters])
    stub.__signature__ = signature  # type: ignore[attr-defined]  # functions accept new attributes
    return stub


def _parameter(name: str, kind: int, is_needed: bool) -> inspect.Parameter:
    default = inspect.Parameter.empty if is_needed else None
    return inspect.Parameter(name, inspect._ParameterKind(kind), default=default)
