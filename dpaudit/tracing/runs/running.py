"""Run a mechanism once and record its noise, or run it on two inputs with the same noise
(`Coupler`). The output of a run is stored as a flat mapping from parts, such as `output[1]`, to
values."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import math
import os
import re
import time
import warnings
from contextlib import contextmanager
from types import CodeType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .noise_log import Recorder
from .noisy_numbers import plain
from .patching import replaced
from .places import Followed, Lines, is_ours, watched
from .replaying import Replay, TooLong

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from types import FrameType

    from .patching import Primitives
    from .places import Line, Spot

# The reason that a trace reports if its time limit ended it before all runs were made.
OVER = "the time was over"
# Garbage collection starts after this number of new objects. A run keeps most of its objects, so
# more frequent collections would only take time.
_OBJECTS_PER_COLLECTION = 50_000
# Exceptions of the user's code that count as the output of a run.
_FAILURES = (Exception, SystemExit)
# Matches the address in the `repr` of an object, as in `<object object at 0x7f111a5f4070>`. It is
# removed before outputs are compared, since it differs in each run.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Subject(NamedTuple):
    """A mechanism, with the settings of its runs.

    data, rng, batch: The names of the parameters that take the dataset (None for the first one), a
        random generator, and the number of outputs to return, if any.
    by_seed: Whether `rng` gets an integer instead, from which the mechanism makes its generator.
    post_process: A function that is applied to the output, or None.
    deadline: The value of `time.monotonic` at which a run is ended.
    severed: The spots at which a noisy value becomes a plain number, so that its noise hides no
        further data.
    scaled: The spots whose result counts as noise that is added to 0: noise that hides nothing,
        with a scale that depends on the input.
    claim: The points (ε, δ) of the privacy claim; empty if nothing is claimed.
    """

    function: Callable[..., Any]
    params: Mapping[str, Any]
    data: str | None
    rng: str | None
    by_seed: bool
    batch: str | None
    post_process: Callable[[Any], Any] | None
    followed: Followed
    primitives: Primitives
    deadline: float = float("inf")
    severed: frozenset[Spot] = frozenset()
    scaled: frozenset[Spot] = frozenset()
    claim: Sequence[tuple[float, float]] = ()

    def check(self) -> None:
        """Raise TooLong after the deadline."""
        if time.monotonic() > self.deadline:
            raise TooLong(OVER)


class Coupler(NamedTuple):
    """Runs a mechanism on two inputs with the same noise.

    inputs: The datasets of the first and of the second run.
    alignment: As `alignment_of` returns it, or None.
    """

    subject: Subject
    inputs: tuple[Any, Any]
    seed: int = 0
    alignment: Mapping[Any, Any] | None = None

    def run(
        self,
        which: int,
        overrides: Mapping[Any, Any] | None = None,
        *,
        seed: int | None = None,
        reference: Run | None = None,
        has_lines: bool = False,
    ) -> Run:
        """Run the mechanism on one of the two inputs, and return the records of the run.

        overrides: Values that are forced for draws or choices, by (moment, index in the array).
        seed: The seed of the noise; None for the seed of the coupler.
        reference: A run whose noisy values this run repeats; None for new noise.
        has_lines: Whether to record the executed lines.
        """
        return run(
            self.subject,
            self.inputs[which],
            self.seed if seed is None else seed,
            reference=reference,
            overrides=overrides,
            alignment=self.alignment if which and reference is not None else None,
            has_lines=has_lines,
        )

    def hastened(self, seconds: float) -> Coupler:
        """Return a copy of this coupler whose runs must end within `seconds` seconds. If half of
        the time until the present deadline is shorter, this is the limit."""
        now = time.monotonic()
        deadline = now + min(seconds, (self.subject.deadline - now) / 2)
        return self._replace(subject=self.subject._replace(deadline=deadline))


def followed_for(
    function: Callable[..., Any], packages: Sequence[str], maker: Any = None, name: str = ""
) -> Followed:
    """Return the `Followed` of a mechanism, which decides which files count as the user's code.

    packages: The names or paths of packages, folders and files that count as the user's code, too.
    maker: The factory or class that made the mechanism; None if there is none.
    name: If the code is compiled, the name that reports show in place of a line of code.
    """
    # Mechanisms of dpaudit.training have an attribute `traced_as`: the user's function, and the
    # libraries that draw noise for it.
    function, libraries = getattr(function, "traced_as", (function, ()))
    packages = (*packages, *libraries)
    code = _code_of(function)
    home = code if isinstance(maker, type) and code is not None else _code_of(maker) or code
    if code is not None and is_ours(code.co_filename):
        code = None  # the function of a library's object, which dpaudit made
        home = home if inspect.isroutine(maker) else None
    if home is None or is_ours(home.co_filename):
        home = compile("", name or "?", "exec").replace(co_name=name.rpartition(":")[2])
    return Followed([] if code is None else [code.co_filename], packages, home)


def _code_of(function: Any) -> CodeType | None:
    """Return the code of a function, method, class or callable; None if it is not in Python."""
    while isinstance(function, functools.partial):
        function = function.func
    target: Any = None if function is None else inspect.unwrap(function)
    if isinstance(target, type):
        target = target.__init__  # type: ignore[misc]  # of any class
    elif not inspect.isroutine(target):
        target = vars(type(target)).get("__call__", target)
    code = getattr(getattr(target, "__func__", target), "__code__", None)
    return code if isinstance(code, CodeType) else None


class Run(NamedTuple):
    """The records of one run of a mechanism.

    lines: The executed lines of the user's code, in order.
    parts: The parts of the output; empty after an exception.
    error: The type, the message and the line of the exception; None if the run did not raise.
    """

    recorder: Recorder
    lines: Lines
    parts: dict[str, Any]
    error: tuple[str, str, Line | None] | None


def run(
    subject: Subject,
    dataset: Any,
    seed: int,
    *,
    reference: Run | None = None,
    overrides: Mapping[Any, Any] | None = None,
    alignment: Mapping[Any, Any] | None = None,
    has_lines: bool = True,
) -> Run:
    """Run a mechanism once on a copy of a dataset, and return the records of the run. `alignment`
    says which events of this run and the reference are counterparts. The other arguments are those
    of `Coupler.run`."""
    repetition = None
    if reference is not None or overrides:
        events = {} if reference is None else reference.recorder.by_moment
        repetition = Replay(events, overrides, alignment)
    recorder = Recorder(
        subject.followed, repetition, subject.check, subject.severed, subject.scaled
    )
    try:
        argument = copy.deepcopy(dataset)
    except Exception:  # noqa: BLE001  # whatever the user's own objects raise
        argument = dataset
    arguments = dict(subject.params)
    if subject.rng is not None:
        generator = np.random.default_rng(np.random.SeedSequence([seed, 0]))
        arguments[subject.rng] = int(generator.integers(2**32)) if subject.by_seed else generator
    if subject.batch is not None:
        arguments[subject.batch] = 1
    by_position = (argument,) if subject.data is None else ()
    if subject.data is not None:
        arguments[subject.data] = argument
    output: Any = None
    error: Any = None
    lines = Lines()
    parts = (subject.function, subject.post_process, arguments)
    owner = os.getpid()
    with replaced(
        recorder, subject.followed, parts, seed, subject.primitives
    ), rarely_collecting(), warnings.catch_warnings():  # fmt: skip
        warnings.simplefilter("ignore")  # each of many runs would show the same warnings
        try:
            if has_lines:
                with watched(subject.followed) as lines:
                    recorder.follow(lines)
                    output = _called(subject, by_position, arguments)
            else:
                output = _called(subject, by_position, arguments)
        except _FAILURES as failure:
            error = type(failure).__name__, _message(failure), _raised_at(failure, subject.followed)
        if os.getpid() != owner:  # forked by the mechanism: it would make the other runs, too
            os._exit(error is not None)
        recorder.is_open = False
        parts_of = {} if error else flatten(output)
    return Run(recorder, lines, parts_of, error)


def same_output(first: Run, second: Run, besides: Collection[str] = ()) -> bool:
    """Return whether two runs have equal outputs, or both raise an exception. Floats may differ by
    rounding, and the parts `besides` may differ."""
    return (
        (second.error is None) == (first.error is None)
        and second.parts.keys() == first.parts.keys()
        and all(
            same(first.parts[key], second.parts[key]) for key in first.parts if key not in besides
        )
    )


@contextmanager
def rarely_collecting() -> Iterator[None]:
    """Inside the context, collect garbage less often: a run keeps nearly all of its objects."""
    thresholds = gc.get_threshold()
    if thresholds[0]:
        gc.set_threshold(max(thresholds[0], _OBJECTS_PER_COLLECTION), *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _called(subject: Subject, by_position: tuple[Any, ...], arguments: dict[str, Any]) -> Any:
    function = subject.function
    if isinstance(function, MethodType):  # look the method up again: it may be replaced by now
        function = getattr(function.__self__, function.__name__, function)
    output = function(*by_position, **arguments)
    if subject.batch is not None:
        output = output[0]
    return output if subject.post_process is None else subject.post_process(output)


def end_run(frame: FrameType | None) -> None:
    """End the present run of a mechanism by raising TooLong. Do nothing unless `frame` or one of
    its callers is the call of the mechanism."""
    while frame is not None:
        if frame.f_code is _called.__code__:
            raise TooLong(OVER)
        frame = frame.f_back


def _message(failure: BaseException) -> str:
    try:
        return " ".join(str(failure).split())[:200]
    except Exception:  # noqa: BLE001  # an exception whose own __str__ fails
        return ""


def _raised_at(failure: BaseException, followed: Followed) -> Line | None:
    step, line = failure.__traceback__, None
    while step is not None:
        if followed.owns(step.tb_frame.f_code.co_filename):
            line = step.tb_frame.f_code.co_filename, step.tb_lineno
        step = step.tb_next
    return line


# Largest number of entries of an output that are compared; further entries are ignored.
_MAX_ENTRIES = 200_000
# Two floats are equal up to rounding if their relative difference is at most this number.
_ROUNDING_SHARE = 1e-9
_MAX_DEPTH = 12
# Limits of the text of a value in a message to the user: number of entries of an array
# (`_SHOWN_ENTRIES`), and number of characters of any other value (`_SHOWN_CHARACTERS`).
_SHOWN_ENTRIES, _SHOWN_CHARACTERS = 8, 60
_NUMBERS = frozenset((int, float, bool))


class MissingEntry:
    """Stands for the value of a part that only the output of the other run has."""


def flatten(output: Any) -> dict[str, Any]:
    """Return the parts of an output as a flat mapping. For the output (3, {"a": 5}) it is
    {"len(output)": 2, "output[0]": 3, "len(output[1])": 1, "output[1]['a']": 5}."""
    entries: dict[str, Any] = {}
    for name, value in _parts("output", output, 0):
        if len(entries) == _MAX_ENTRIES:
            break
        entries[name] = value
    return entries


def _parts(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    value = plain(value)
    if isinstance(value, np.generic):
        value = value.item()
    if (
        depth > _MAX_DEPTH
        or value is None
        or isinstance(value, (bool, int, float, complex, str, bytes))
    ):
        yield name, value
        if isinstance(value, (str, bytes)):
            yield f"len({name})", len(value)
    elif isinstance(value, np.ndarray):
        yield from _of_array(name, value, depth)
    elif isinstance(value, dict):
        yield f"len({name})", len(value)
        for key, item in value.items():
            yield from _parts(f"{name}[{plain(key)!r}]", item, depth + 1)
    elif isinstance(value, (list, tuple)):
        yield f"len({name})", len(value)
        for index, item in enumerate(value):
            if type(item) in _NUMBERS:  # fast path: an output may have very many numbers
                yield f"{name}[{index}]", item
            else:
                yield from _parts(f"{name}[{index}]", item, depth + 1)
    elif isinstance(value, (set, frozenset)):
        yield name, tuple(sorted(map(_text, value)))
    elif hasattr(value, "detach"):  # a tensor of torch
        value = value.detach().cpu()
        value = value.double() if value.dtype.is_floating_point else value
        yield from _of_array(name, np.asarray(value), depth)
    elif hasattr(value, "to_numpy"):
        yield f"{name}.index", tuple(map(repr, getattr(value, "index", ())))
        yield from _parts(name, value.to_numpy(), depth + 1)
    elif hasattr(value, "__array__") and hasattr(value, "dtype"):  # an array of JAX
        array = np.asarray(value)
        # NumPy gives the kind V to types that it does not know, such as bfloat16. Their entries
        # are converted to floats, which can be compared.
        array = array.astype(float) if array.dtype.kind == "V" else array
        yield from _of_array(name, array, depth)
    elif isinstance(getattr(value, "__dict__", None), dict):
        for key, attribute in vars(value).items():
            yield from _parts(f"{name}.{key}", attribute, depth + 1)
    else:
        yield name, _text(value)


def _text(value: Any) -> str:
    """Return the `repr` of an object without its address, which differs in each run."""
    return _ADDRESS.sub("", repr(value))


def _of_array(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if not value.ndim:
        yield from _parts(name, value[()], depth + 1)
        return
    yield f"{name}.shape", value.shape
    for index in np.ndindex(value.shape):
        label = ", ".join(map(str, index))
        yield from _parts(f"{name}[{label}]", value[index], depth + 1)


def same(first: Any, second: Any) -> bool:
    """Return whether two values are equal. Numbers may differ by rounding; others need one type."""
    if (
        isinstance(first, float)
        and isinstance(second, (int, float))
        and not isinstance(second, bool)
    ):
        if math.isnan(first) or math.isnan(second):
            return math.isnan(first) and math.isnan(second)
        return first == second or math.isclose(
            first, second, rel_tol=_ROUNDING_SHARE, abs_tol=1e-12
        )
    if isinstance(second, float) and isinstance(first, int) and not isinstance(first, bool):
        return same(second, first)
    return type(first) is type(second) and bool(first == second)


def briefly(value: Any) -> str:
    """Return a value as text for a message: at most 8 entries of an array, or 60 characters."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = np.ravel(value)[:_SHOWN_ENTRIES].tolist() if np.ndim(value) else value.item()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return f"[{', '.join(map(briefly, value))}{', …' if len(value) == _SHOWN_ENTRIES else ''}]"
    text = "nothing" if value is MissingEntry else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
