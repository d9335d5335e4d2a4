"""A Python mechanism that draws in a child, under this Python interpreter or another.

A `PythonChild` runs `dpaudit/processes/child_script.py`, which reads requests from its standard
input and writes replies to its standard output. Outputs of single draws are written to shared
memory, so that no finished draw is lost if the child ends. A dataset is sent to the child once;
later requests contain its number.
"""

from __future__ import annotations

import inspect
import json
import mmap
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.adapters.calls import Outputs, as_python, batch_failed, batch_wrong
from dpaudit.adapters.in_child import InChild
from dpaudit.errors import MechanismError, TargetError, UsageError
from dpaudit.import_path import PACKAGES, check_file
from dpaudit.library_claims import NoClaim
from dpaudit.processes import child_script
from dpaudit.processes.child import Child, Clock, Ended, countdown
from dpaudit.processes.exchange import array, parsed, pickled, request
from dpaudit.targets.compiled import COMPILERS
from dpaudit.targets.construction import is_missing, lacks, not_found
from dpaudit.targets.parameters import Calling, calling, check_post_process
from dpaudit.targets.target import (
    CallableTarget,
    ImportedTarget,
    IsolatedTarget,
    PythonTarget,
    tuple_notation,
)
from dpaudit.watching import Watch, WatchedStep

# Largest number of datasets that a child keeps. The number of a dataset must fit in a byte.
_MAX_DATASETS = 200
# Length of the longest line that a reply may have, in bytes.
_MAX_REPLY_BYTES = 1 << 16
# Seconds added to the time limit of a call for many draws, since the child may have to import NumPy
# first.
_SECONDS_TO_IMPORT = 5.0
# Environment variable that marks children. `Isolated` refuses to start in them: otherwise a script
# that audits at its top level would start children in its own children.
_INSIDE = "DPAUDIT_WORKER"


class PythonChild(Child):
    """A child that has loaded the mechanism and answers requests. `known` is how to call the
    mechanism, if an earlier child has reported it. Raises TargetError if the mechanism cannot be
    loaded, or cannot be called with the parameters of the target."""

    script = child_script.__file__

    def __init__(self, target: IsolatedTarget, watch: Watch, known: Calling | None = None) -> None:
        # A program that is given as --python may start a container, which has files of its own.
        if isinstance(target.target, ImportedTarget) and target.python is None:
            check_file(target.target.path.rpartition(":")[0])
        self._name, self._timeout, self._watch = target.name, target.limits.timeout, watch
        self._python = target.python or sys.executable
        self.sent = set[int]()  # numbers of the datasets that the child has
        with _shared_file() as file:
            file.truncate(child_script.MEMORY)
            self._layout = child_script.Layout(mmap.mmap(file.fileno(), child_script.MEMORY))
            super().__init__(
                [self._python, str(Path(self.script).resolve())],
                memory=target.limits.memory,
                environment={_INSIDE: "1"},
                keep=(file.fileno(),),
            )
            signatures = self._set_up(target, file.fileno(), is_first=known is None)
        self.calling = known or _calling(signatures, target.target)
        self._how = (self.calling.rng, self.calling.data, self.calling.by_seed)

    def _set_up(self, target: IsolatedTarget, memory: int, *, is_first: bool) -> Any:
        mechanism = pickled(_description(target.target), target.name)
        # The path of the running script, if the mechanism is defined in it; else None.
        is_of_script = b"__main__" in mechanism
        script = getattr(sys.modules["__main__"], "__file__", None) if is_of_script else None
        if is_of_script and script is None:
            raise TargetError(
                f"{target.name} is defined in no file, but in a notebook or at a prompt, so "
                "another process cannot import it; put it into a file and import it",
                code="not-picklable",
            )
        step = WatchedStep(f"setting up {self._name} in a separate process", self._watch)
        try:
            reply, _ = self.ask(
                "set_up",
                step.left,
                target=mechanism,
                memory=memory,
                path=sys.path if target.python is None else [],
                main=script,
                is_first=is_first,
            )
        except Ended as end:
            raise TargetError(
                f"{target.name} cannot be set up in a separate process, which ended: "
                f"{end}{target.limits.doubts()}",
                code="process-failed",
            ) from None
        except MechanismError as error:
            package = lacks(str(error))
            module = getattr(target.target, "path", "").partition(":")[0]
            # If an unknown package with the mechanism itself is missing, its import path is wrong.
            is_own = package is not None and f"{module}.".startswith(f"{package}.")
            if package in PACKAGES or (package is not None and not is_own):
                raise not_found(str(error), self._name, self._python) from None
            notation = tuple_notation(str(error), getattr(target.target, "init", None))
            raise TargetError(f"{error}{notation}", code="mechanism-not-made") from None
        return reply

    def take(self, number: int, dataset: Any) -> None:
        """Send a dataset to the child, unless the child already has the dataset with this
        number."""
        if number not in self.sent:
            step = WatchedStep(
                f"handing a dataset over to the process of {self._name}", self._watch
            )
            data = pickled(dataset, "a dataset")
            self.ask("take", step.left, number=number, dataset=data)
            self.sent.add(number)

    def draw(self, arms: bytes, datasets: Sequence[Any], seed: int) -> None:
        """Make one draw for each number of a dataset in `arms`, in this order. `outcomes` then
        returns the outputs. `arms` has at most `child_script.SLOTS` numbers. Raises Ended if the
        child ends or a draw takes too long."""
        counters = self._layout.counters
        counters[0], counters[1] = child_script.NOT_BEGUN, 0
        self._layout.arms[: len(arms)] = arms
        for number in set(arms):
            self.take(number, datasets[number])
        self.ask("draw", *self.clocks(len(arms)), count=len(arms), seed=seed, how=self._how)

    def clocks(self, count: int) -> list[Clock]:
        """Return the clocks for `count` draws with one call each. One warns of a slow draw, the
        other measures the time limit of the present draw."""
        counters = self._layout.counters
        waiting = self._watch.waiting(self._name, counters).left
        if self._timeout is None:
            return [waiting]
        return [waiting, Patience(self._timeout, counters, count).left]

    def outcomes(self, count: int) -> Outputs:
        """Return the outputs of all finished draws of the last request, in order. `count` is the
        number of draws that it asked for. Raises MechanismError if the shared memory is corrupt."""
        done, used = self._layout.counters
        done = 0 if done == child_script.NOT_BEGUN else done
        if done > count or used > child_script.HEAP:
            why = f"{self._name} wrote into memory that belongs to dpaudit"
            raise MechanismError(why, code="process-failed")
        kinds = np.frombuffer(self._layout.kinds, np.uint8, done)
        floats: NDArray[np.float64] = np.asarray(self._layout.floats)[:done]
        if (kinds == child_script.FLOAT).all():
            return floats.copy()
        integers: NDArray[np.int64] = np.asarray(self._layout.integers)[:done]
        if (kinds == child_script.INTEGER).all():
            # A list, and not an array: dpaudit ignores the dtype of an array of outcomes, since a
            # single fraction makes all of them floats. Of a list, 1 and 1.0 differ.
            values: list[Any] = integers.tolist()
            return values
        is_text = kinds == child_script.TEXT
        texts = bytes(self._layout.heap[:used]).split(b"\n")[: int(is_text.sum())]
        value_of = {text: self._parsed(text) for text in set(texts)}
        values = [value_of[text] for text in texts]
        if len(texts) == done:
            return values
        outcomes = np.empty(done, dtype=object)
        outcomes[is_text] = np.fromiter(values, dtype=object, count=len(texts))
        for kind, numbers in ((child_script.FLOAT, floats), (child_script.INTEGER, integers)):
            outcomes[kinds == kind] = numbers[kinds == kind].tolist()
        return outcomes.tolist()

    def draw_batch(self, number: int, size: int, seed: int) -> Outputs:
        """Return the outputs of one call that makes `size` draws for a dataset. `take` must have
        sent the dataset with this number. Raises Ended if the child ends or is killed at the time
        limit, and MechanismError if the call raises an exception or returns another number of
        outputs."""
        batch = str(self.calling.batch)
        clocks = [self._watch.waiting(self._name, size=size).left]
        if self._timeout is not None:
            clocks.append(countdown(self._timeout * size + _SECONDS_TO_IMPORT))
        reply, data = self.ask(
            "draw_batch", *clocks, number=number, size=size, seed=seed, batch=batch, how=self._how
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

    def claim(self, inputs: Any, relation: Any, delta: float | None) -> dict[str, Any]:
        """Return the answer of the mechanism's library to a `library_claims.Question`. `inputs` are
        (d1, d2) or None; `relation` and `delta` are those of the question. Raises NoClaim if the
        library makes no claim."""
        for number, dataset in enumerate(inputs or ()):
            self.take(number, dataset)
        step = WatchedStep(f"asking {self._name} for its claim", self._watch)
        question = {"has_pair": inputs is not None, "relation": relation, "delta": delta}
        try:
            reply, _ = self.ask("claim", step.left, **question)
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

    def ask(self, method: str, *clocks: Clock, **arguments: Any) -> tuple[Any, bytes]:
        """Call a method of `child_script.Service` in the child. Return its reply as a dict, and the
        raw bytes that follow the reply. Raises Ended, and MechanismError if the child refuses."""
        self.send(request(method, arguments))
        try:
            reply = json.loads(self.wait(partial(self.line, _MAX_REPLY_BYTES), *clocks))
            size = int(reply["bytes"])
        except (ValueError, LookupError, TypeError) as error:
            self.kill()
            by = "" if self._python == sys.executable else f", run by {self._python},"
            why = f"the process of {self._name}{by} sent an invalid reply: {error}"
            hint = by and "; python (--python) must name a Python interpreter"
            raise MechanismError(f"{why}{hint}", code="process-failed") from None
        data = self.wait(partial(self.taken, size), *clocks)
        if "refused" in reply:
            raise MechanismError(reply["refused"], code=str(reply["code"]))
        return reply, data


class Isolated(InChild[PythonChild]):
    """A mechanism that draws in a `PythonChild`. If the child ends, a new one with a new seed
    replaces it."""

    text_orders = True  # the child itself compares orders of texts with orders of sets

    def __init__(self, target: IsolatedTarget) -> None:
        if os.environ.get(_INSIDE):
            raise UsageError(
                "a drawing process was asked to start another audit; put the call of "
                "dpaudit.audit under `if __name__ == '__main__':`",
                code="audit-in-worker",
            )
        super().__init__(target)
        self._target, self.label = target, target.name
        self._calling: Calling | None = None
        self._child = self.start()
        self.how = self._calling = self._child.calling
        self.batch, self.interleaved = str(self.how.batch), self.how.batch is None
        self.has_few_sizes = self.how.few_sizes
        self._datasets: list[Any] = []
        self._numbers: dict[int, int] = {}

    def start(self) -> PythonChild:
        return PythonChild(self._target, self._watch, self._calling)

    def draw_batch(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        (number,) = self._numbered([dataset])
        child = self.running()
        child.take(number, dataset)
        return child.draw_batch(number, size, _seed(rng))

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> Outputs:
        if not self.interleaved:
            return [self.sample(dataset, 1, rng)[0] for dataset in datasets]
        arms = self._numbered(list(datasets))
        pieces: list[Outputs] = []
        begun = 0
        while begun < len(arms):
            pieces.append(self._outcomes(arms[begun : begun + child_script.SLOTS], _seed(rng)))
            begun += len(pieces[-1])
        arrays = [piece for piece in pieces if isinstance(piece, np.ndarray)]
        if len(arrays) == len(pieces) and len({array.dtype for array in arrays}) == 1:
            return np.concatenate(arrays)
        return [outcome for piece in pieces for outcome in as_python(piece)]

    def _outcomes(self, arms: bytes, seed: int) -> Outputs:
        """Return the outcomes of the draws up to the first that ends the child, at least one."""
        child = self.running()
        end: Ended | None = None
        try:
            child.draw(arms, self._datasets, seed)
        except Ended as error:
            end = error
        outcomes = child.outcomes(len(arms))
        if len(outcomes):
            self.draw_ended()
        if end is None or len(outcomes) == len(arms):  # it may end after its last draw
            return outcomes
        return [*as_python(outcomes), self.died(end, arms[len(outcomes)])]

    def _numbered(self, inputs: list[Any]) -> bytes:
        """Return the number of each dataset, as bytes. An object keeps its number."""
        new = {id(dataset): dataset for dataset in inputs if id(dataset) not in self._numbers}
        if len(self._datasets) + len(new) > _MAX_DATASETS:  # count again from 0
            new = {id(dataset): dataset for dataset in inputs}
            self._numbers, self._datasets = {}, []
            if self._child is not None:
                self._child.sent.clear()
        for identity, dataset in new.items():
            self._numbers[identity] = len(self._datasets)
            self._datasets.append(dataset)
        return bytes(map(self._numbers.__getitem__, map(id, inputs)))


def _seed(rng: np.random.Generator) -> int:
    return int.from_bytes(rng.bytes(16), "little")


class Patience:
    """Measures the time left for the present draw of a child that makes `count` draws. The first
    of `counters`, which are shared with the child, is the number of finished draws."""

    def __init__(self, seconds: float, counters: memoryview, count: int) -> None:
        self._seconds, self._counters, self._count = seconds, counters, count
        self._done, self._since = child_script.NOT_BEGUN, time.monotonic()

    def left(self) -> float:
        """Return the seconds left for the present draw. If all draws are finished, return the time
        limit."""
        now, done = time.monotonic(), self._counters[0]
        if done != self._done or done in (child_script.NOT_BEGUN, self._count):
            self._done, self._since = done, now
        return self._seconds - (now - self._since)


def _shared_file() -> IO[bytes]:
    """Return an unnamed file that two processes can map as shared memory."""
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("dpaudit"), "r+b")
    return tempfile.TemporaryFile()


def _description(target: PythonTarget) -> dict[str, Any]:
    """Return the fields of a target that a child needs to make the mechanism."""
    fields = {"params": dict(target.params), "post_process": target.post_process}
    if isinstance(target, CallableTarget):
        return {**fields, "function": target.function}
    names = ("path", "init", "call", "factory")
    return {**fields, **{name: getattr(target, name) for name in names}, "function": None}


def _calling(reply: Any, target: PythonTarget) -> Calling:
    """Return how to call a mechanism, from the reply of its child, which has its signatures."""
    if target.post_process is not None:
        check_post_process(_stub(reply["process"]), f"of {target.name}")
    how = calling(_stub(reply["parameters"]), target)
    return replace(how, few_sizes=not COMPILERS.isdisjoint(reply["modules"]))


def _stub(parameters: Sequence[Any] | None) -> Any:
    """Return a function whose signature is the one that `child_script._signature` has described."""

    def stub() -> None: ...

    signature: Any = "unknown"  # `inspect.signature` raises for a text
    if parameters is not None:
        signature = inspect.Signature([_parameter(*fields) for fields in parameters])
    stub.__signature__ = signature  # type: ignore[attr-defined]  # functions accept new attributes
    return stub


def _parameter(
    name: str, kind: int, is_needed: bool, is_none: bool, annotation: str
) -> inspect.Parameter:
    default = inspect.Parameter.empty if is_needed else None if is_none else ...
    return inspect.Parameter(
        name, inspect._ParameterKind(kind), default=default, annotation=annotation
    )
