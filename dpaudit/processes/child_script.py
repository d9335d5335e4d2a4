"""Script of a Python child, the separate process in which an isolated mechanism makes its draws.

It runs under the user's Python interpreter (3.8 or later), and needs only origin.py next to it and
the standard library; it uses NumPy if the mechanism does. It reads pickled requests from standard
input and writes replies to standard output. If each call makes one draw, each outcome is written to
shared memory as soon as it is known, and a counter there is increased. So if this process dies, no
complete draw is lost, and dpaudit knows which draw was running.
"""

from __future__ import annotations

# Import only small modules here (about 10 ms together), since a new process is started after each
# crash.
import binascii
import functools
import gc
import importlib.util
import io
import json
import mmap
import os
import pickle
import random
import sys
import types

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

if not __name__.startswith("dpaudit."):  # run as a script: origin must not hide a user's module
    from origin import FAILURES, end_if_forked, post_processed, raised, words  # type: ignore[import-not-found]  # origin.py is in the script's folder

    del sys.modules["origin"]
else:
    from dpaudit.processes.origin import FAILURES, end_if_forked, post_processed, raised, words

# Number of slots in the shared memory. Each holds the outcome of one draw, so a request asks for at
# most this number of draws.
SLOTS = 8192
# Size in bytes of the heap: the part of the shared memory for outcomes that are not plain numbers.
HEAP = 1 << 24
# Size in bytes of the shared memory: two counters of 8 bytes, 10 bytes for each slot, and the heap.
MEMORY = 16 + 10 * SLOTS + HEAP
# Kinds of an outcome; the shared memory holds the kind of the outcome in each slot. FLOAT, INTEGER:
# the slot itself holds the outcome. TEXT: the outcome is a line of JSON on the heap, a part of the
# memory after the slots; the lines are in the order of their slots.
TEXT, FLOAT, INTEGER = range(3)
# The counter of complete draws has this value until the first draw of a request begins.
NOT_BEGUN = (1 << 64) - 1
# The JSON of a text shorter than this (in characters) is cached, since short texts often repeat.
_SHORT = 64
# Libraries whose objects cannot be called like functions. `library_claims.as_function` makes
# functions of them.
_LIBRARIES = ("opendp", "diffprivlib", "pydp", "tmlt")
# Environment variable with the number of seconds by which clocks are set ahead; other_clock.py
# reads it.
_CLOCK_SHIFT = "DPAUDIT_CLOCK_SHIFT"
# Id of the process that dpaudit has started. A process with another id is a fork that the mechanism
# has made; `end_if_forked` ends it.
_OWNER = os.getpid()
# Empty in the process that dpaudit has started; a fork that the mechanism makes adds an entry to
# its own copy. Checking this list takes a tenth of the time of comparing `os.getpid()` with
# `_OWNER`, the id of the process that dpaudit has started.
_forks: list[int] = []
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=lambda: _forks.append(1))


def main(make: Callable[[], Service]) -> None:
    """Answer the requests on standard input, until it ends. The object that `make` returns answers
    them."""
    sys.path[:] = [
        os.getcwd(),
        *(folder for folder in sys.path if folder != __file__.rpartition(os.sep)[0]),
    ]
    if os.environ.get(_CLOCK_SHIFT):
        _of_dpaudit("other_clock", "processes/other_clock.py").shift_as_asked()
    # Requests and replies get file descriptors of their own. Otherwise the mechanism could read
    # requests from standard input, or write into the replies on standard output. It now finds
    # standard input empty, and its standard output goes to standard error.
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    service = make()
    while len(size := requests.read(8)) == 8:
        name, arguments = pickle.loads(requests.read(int.from_bytes(size, "little")))
        try:
            reply = getattr(service, name)(**arguments)
        except Refused as error:
            reply = {"refused": str(error), "code": error.code}
        header, data = reply if isinstance(reply, tuple) else (reply, b"")
        replies.write(_text({**header, "bytes": len(data)}) + data)
        replies.flush()


class Refused(BaseException):
    """Raised if the mechanism or the request cannot be used. It never counts as an outcome. Has the
    code of an error in docs/errors.md."""

    def __init__(self, text: str, code: str = "process-failed") -> None:
        super().__init__(text)
        self.code = code


class Layout:
    """Views of the memory that this process shares with dpaudit's main process.

    counters: number of complete draws, and number of bytes used on the heap.
    kinds: kind of the outcome in each slot: TEXT, FLOAT or INTEGER.
    arms: for each slot, the number of the dataset that its draw uses.
    floats, integers: the same memory as floats and as integers, one number in each slot.
    heap: outcomes that are not plain numbers, as lines of JSON.
    """

    def __init__(self, memory: mmap.mmap) -> None:
        view = memoryview(memory)
        numbers = view[16 + 2 * SLOTS : 16 + 10 * SLOTS]
        self.counters = view[:16].cast("Q")
        self.kinds = view[16 : 16 + SLOTS]
        self.arms = view[16 + SLOTS : 16 + 2 * SLOTS]
        self.floats, self.integers = numbers.cast("d"), numbers.cast("q")
        self.heap = view[16 + 10 * SLOTS :]


class Service:
    """Answers requests, each by the public method of this name. A method returns the reply: a dict
    for JSON, or such a dict and the raw bytes to send after it."""

    def __init__(self) -> None:
        self._datasets: dict[int, Any] = {}
        self._digests: dict[int, int] = {}
        self._left_over: bytes | None = None
        self._requests = 0

    def set_up(
        self, target: bytes, memory: int, path: list[str], main: str | None, is_first: bool
    ) -> Any:
        """Make the mechanism. Reply with its parameters and with the names of imported packages.

        target: pickle of a dict that says how to make the mechanism.
        memory: file descriptor of the shared memory.
        path: folders to add at the beginning of sys.path.
        main: path of the user's script, in which pickled objects are defined, if any.
        is_first: whether the reply includes the parameters; not for a process that replaces
            another.
        """
        sys.path[:0] = [folder for folder in path if folder not in sys.path]
        if main is not None:
            module = types.ModuleType("__mp_main__")
            run_path = importlib.import_module("runpy").run_path
            vars(module).update(run_path(main, run_name="__mp_main__"))
            sys.modules["__main__"] = sys.modules["__mp_main__"] = module
        self._layout = Layout(mmap.mmap(memory, MEMORY))
        description = loaded(target, "the mechanism")
        self._params, process = description["params"], description["post_process"]
        self._function = description["function"] or _built(description)
        if description["function"] and _root(self._function) in _LIBRARIES:
            self._function = _library_claims().as_function(self._function)
        self._name = description.get("path") or type(self._function).__name__
        self._maker = None if description["function"] else resolved(description["path"])
        self._process = resolved(process) if isinstance(process, str) else process
        parts = {"parameters": self._function, "process": self._process}
        reply: dict[str, Any] = {
            name: _signature(function) for name, function in parts.items() if is_first
        }
        reply["modules"] = [name for name in list(sys.modules) if "." not in name]
        return reply

    def take(self, number: int, dataset: bytes) -> Any:
        self._datasets[number] = loaded(dataset, "a dataset")
        self._digests[number] = _digest(self._datasets[number])
        return {}

    def claim(self, has_pair: bool, relation: Any, delta: float | None) -> Any:
        """Ask the library of the mechanism for its claim. Reply with the claim, or with the reason
        why there is none. `relation` and `delta` are those of a `library_claims.Question`; with
        `has_pair`, its inputs are the datasets 0 and 1."""
        claims = _library_claims()
        pair = (self._datasets[0], self._datasets[1]) if has_pair else None
        try:
            question = claims.Question(pair, relation, delta, self._params)
            return {"claim": claims.ask(self._function, question)}
        except claims.NoClaim as error:
            return {"no_claim": [str(error), error.code]}

    def draw(self, count: int, seed: int, how: Any) -> Any:
        """Make `count` draws with one call each, and write the outcomes to the shared memory. The
        main process has written the number of the dataset of each draw into `Layout.arms`.

        seed: number from which all random generators are seeded.
        how: names of the mechanism's parameters for a random generator and for the dataset, and
            whether the former gets seeds instead; see `_prepared`.
        """
        self._with_torch_seeded(lambda: self._draw_singly(count, self._prepared(seed, how)))
        self._check_unchanged(set(self._layout.arms[:count]))
        return {}

    def draw_batch(self, number: int, size: int, seed: int, batch: str, how: Any) -> Any:
        """Make `size` draws in one call, and reply with the outputs. If the mechanism returned an
        array of plain numbers or strings, and no function is applied to its outputs, the outputs
        are the bytes of the array; otherwise they are a line of JSON.

        If the call raised an exception, the reply has only the key "failed". If the result does not
        have `size` outputs, the reply has only the key "got".

        number: number of the dataset.
        batch: name of the parameter for the number of draws.
        seed, how: as in `draw`.
        """
        dataset = self._datasets[number]
        try:
            outputs = self._with_torch_seeded(
                lambda: self._prepared(seed, how, {batch: size})(dataset)
            )
        except FAILURES as error:
            end_if_forked(_OWNER, error)
            return {"failed": words(error)}
        end_if_forked(_OWNER)
        self._check_unchanged({number})
        if _has_tensors() and _torch().is_tensor(type(outputs)):
            outputs = _readable(outputs)
        if not isinstance(outputs, (list, tuple)) and hasattr(outputs, "__array__"):
            outputs = importlib.import_module("numpy").asarray(outputs)
        is_one = isinstance(outputs, (str, bytes, dict, set, frozenset))
        count = len(outputs) if hasattr(outputs, "__len__") and not is_one else None
        if count != size:
            some = "1 output" if count == 1 else f"{count} outputs"
            return {"got": type(outputs).__name__ if count is None else some}
        is_array = hasattr(outputs, "dtype")
        if is_array and outputs.dtype.kind in "biufcSU" and self._process is None:
            return {"array": [outputs.dtype.str, list(outputs.shape)]}, outputs.tobytes()
        listed = outputs.tolist() if is_array and outputs.ndim == 1 else outputs
        return {"array": None}, b"[%b]" % b",".join(map(self._outcome, listed))

    def _with_torch_seeded(self, run: Callable[[], Any]) -> Any:
        """Return the result of `run()`. If it imports torch, run it again with torch seeded."""
        had_torch = _has_torch()
        result = run()
        if _has_torch() and not had_torch:
            self._left_over, self._layout.counters[1] = None, 0
            result = run()
        return result

    def _prepared(
        self, seed: int, how: Any, batch: dict[str, int] | None = None
    ) -> Callable[..., Any]:
        """Seed every random generator. Return a function that calls the mechanism for a dataset."""
        rng, data, by_seed = how
        takes_generator = rng is not None and not by_seed
        if takes_generator and "numpy" not in sys.modules and importlib.util.find_spec("numpy"):
            importlib.import_module("numpy")
        numpy: Any = sys.modules.get("numpy")
        if self._requests < 2:  # also in the second request: the first call may make a generator
            self._generators = generators(self._function, self._params, self._datasets)
        self._requests += 1
        for index, generator in enumerate(self._generators):
            _reseed(generator, seed, f"generator {index}")
        if _has_torch():
            _torch().seed_globally(child_seed(seed, "torch"))
        arguments: dict[str, Any] = dict(batch or {})
        if takes_generator:
            make = numpy.random.default_rng if numpy else random.Random
            arguments[rng] = make(child_seed(seed, "rng"))
        # If the user's `params` also contain one of `arguments`, such as the random generator, this
        # call raises TypeError.
        draw = functools.partial(self._function, **self._params, **arguments)
        if by_seed:
            draw = functools.partial(_seeded, draw, rng, random.Random(child_seed(seed, "rng")))
        return draw if data is None else lambda dataset: draw(**{data: dataset})

    def _draw_singly(self, count: int, draw: Callable[..., Any]) -> None:
        """Make up to `count` draws, one a call, until the heap is full, and write the outcomes."""
        layout, process, datasets = self._layout, self._process, self._datasets
        counters = layout.counters
        kinds, floats, integers = layout.kinds, layout.floats, layout.integers
        counters[0] = used = 0
        for index, arm in enumerate(bytes(layout.arms[:count])):
            text, self._left_over = self._left_over, None
            if text is None:
                try:
                    value = draw(datasets[arm])
                    if process is not None:
                        value = post_processed(process, value)
                except FAILURES as error:
                    end_if_forked(_OWNER, error)
                    # dpaudit.training is not imported in this process, so its TrainingError is
                    # recognised by its name.
                    if type(error).__name__ == "TrainingError":
                        raise Refused(str(error), code=getattr(error, "code", "training")) from None
                    text = _text(raised(error))
                else:
                    if _forks:
                        end_if_forked(_OWNER)
                    kind = type(value)
                    if kind is float:
                        floats[index], kinds[index] = value, FLOAT
                    elif kind is int and value.bit_length() < 64:
                        integers[index], kinds[index] = value, INTEGER
                    elif kind is bool or (kind is str and len(value) < _SHORT):
                        text = _label(value)
                    else:
                        text = _written(value)
            if text is not None:
                if len(text) > HEAP:
                    raise Refused(
                        f"an output of more than {HEAP:,} bytes; shorten it with post_process",
                        code="output-too-large",
                    )
                if used + len(text) > HEAP:  # the outcome is kept for the next request
                    self._left_over = text
                    break
                layout.heap[used : used + len(text)] = text
                used += len(text)
                counters[1], kinds[index] = used, TEXT
            counters[0] = index + 1

    def _outcome(self, output: Any) -> bytes:
        """Return the JSON of an output of a batch."""
        try:
            if self._process is not None:
                output = post_processed(self._process, output)
        except FAILURES as error:
            return _text(raised(error))
        return _written(output)

    def _check_unchanged(self, numbers: set[int]) -> None:
        for number in numbers:
            digest = self._digests[number]
            if digest and _digest(self._datasets[number]) != digest:
                raise Refused(
                    "the mechanism changes its input; change a copy instead", code="input-changed"
                )


def _seeded(draw: Any, name: str, seeds: random.Random, /, *dataset: Any, **arguments: Any) -> Any:
    return draw(*dataset, **arguments, **{name: seeds.getrandbits(32)})


def _digest(dataset: Any) -> int:
    try:
        return hash(_frames().content(dataset) if _has_tables() else pickle.dumps(dataset))
    except Exception:  # noqa: BLE001  # a dataset that cannot be pickled has no digest
        return 0


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, parts: Any) -> Any:
        """Return the object that `exchange.pickled` has replaced by plain values in a pickle."""
        kind, what, how = parts
        if kind == "import":
            return resolved(what)() if how else resolved(what)
        if kind in ("pandas", "polars"):
            return importlib.import_module(kind).DataFrame(what, **how)
        return importlib.import_module("numpy").frombuffer(how, kind).reshape(what).copy()[()]


def loaded(data: bytes, what: str) -> Any:
    """Return the object called `what` in a pickle. Raises Refused if that is impossible."""
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except FAILURES as error:
        raise Refused(f"{what} cannot be read by {sys.executable}: {words(error)}") from None


def _built(description: dict[str, Any]) -> Callable[..., Any]:
    """Return the function that draws: the imported object, or what it makes as class or factory."""
    mechanism, init, path = resolved(description["path"]), description["init"], description["path"]
    if description["factory"] or isinstance(mechanism, type):
        try:
            mechanism = mechanism(**init) if isinstance(init, dict) else mechanism(*(init or ()))
        except FAILURES as error:
            how = "without init (--init)" if init is None else f"with init={init!r}"
            raise Refused(f"{path} cannot be made {how}: {words(error)}") from None
    elif init is not None:
        raise Refused(
            f"{path} is not a class, so init (--init) has no use; to call it, give factory: true "
            "(--factory)"
        )
    if description["call"]:
        mechanism = _attribute(mechanism, description["call"], path)
    elif _root(mechanism) in _LIBRARIES:
        mechanism = _library_claims().as_function(mechanism)
    if not callable(mechanism):
        raise Refused(
            f"{path} gives {mechanism!r:.60}, which cannot be called; name the method that draws "
            "with call (--call)"
        )
    return mechanism  # type: ignore[no-any-return]  # `callable` narrows Any to Any


def _root(mechanism: Any) -> str:
    return str(type(mechanism).__module__).partition(".")[0]


def _signature(function: Any) -> Any:
    """Return a list of fields for each parameter; None if the signature cannot be read."""
    try:
        parameters = importlib.import_module("inspect").signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    # `adapters.isolation._parameter` takes these fields.
    return [
        [p.name, int(p.kind), p.default is p.empty, p.default is None, str(p.annotation)]
        for p in parameters
    ]


def resolved(path: str) -> Any:
    """Return the object that an import path names. Raises Refused if it cannot be imported."""
    module, _, attribute = path.rpartition(":")
    if not module:
        raise Refused(f"{path!r} has no ':' between module and function; write MODULE:{path}")
    is_file = module.endswith(".py") or os.sep in module
    try:
        value = _file(module) if is_file else importlib.import_module(module)
    except FAILURES as error:
        raise Refused(f"{module!r} cannot be imported: {words(error)}") from None
    for name in attribute.split("."):
        value = _attribute(value, name, path)
    return value


def _attribute(owner: Any, name: str, path: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError:
        label = getattr(owner, "__file__", getattr(owner, "__name__", type(owner).__name__))
        raise Refused(f"target {path!r}: {label} has no {name!r}") from None


def _file(path: str) -> Any:
    file = importlib.import_module("pathlib").Path(path).resolve()
    name = "dpaudit_file_" + "".join(letter if letter.isalnum() else "_" for letter in str(file))
    if name not in sys.modules:
        sys.path.append(str(file.parent))
        load(name, file)
    return sys.modules[name]


# Folder of the package dpaudit.
_DPAUDIT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120


def load(name: str, file: Any) -> Any:
    """Import a file, or a package by its `__init__.py`, under a name. Return the module."""
    folder, _, base = str(file).rpartition(os.sep)
    folders = [folder] if base == "__init__.py" else None
    spec: Any = importlib.util.spec_from_file_location(
        name, file, submodule_search_locations=folders
    )
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.lru_cache(maxsize=None)  # noqa: UP033  # Python 3.8
def _of_dpaudit(name: str, file: str) -> Any:
    """Import a file of dpaudit by its path, since this Python interpreter may lack dpaudit."""
    return load("dpaudit_" + name, os.path.join(_DPAUDIT, file))  # noqa: PTH118


_library_claims = functools.partial(_of_dpaudit, "library_claims", "library_claims/__init__.py")
_set_order = functools.partial(_of_dpaudit, "set_order", "outcomes/set_order.py")
_frames = functools.partial(_of_dpaudit, "frames", "outcomes/frames.py")
_torch = functools.partial(_of_dpaudit, "torch_use", "torch_use.py")


def _has_torch() -> bool:
    return "torch" in sys.modules and bool(_torch().is_loaded())


def _has_tensors() -> bool:
    return "jax" in sys.modules or _has_torch()


def _has_tables() -> bool:
    return any(library in sys.modules for library in ("pandas", "polars", "pyarrow"))


def generators(*held: Any) -> list[Any]:
    """Return all random generators in this process that can be seeded, since the mechanism may use
    any of them.

    The order decides the seed of each generator, so it should be the same in every run. First come
    generators in variables of modules, in the order in which the modules were imported. Then come
    those that can be reached from `held`, the objects of the mechanism; then all others, about in
    the order of their creation.
    """
    gc.collect()  # so that generators no longer in use are not listed
    numpy: Any = sys.modules.get("numpy")
    kinds = (random.Random,)
    kinds += (numpy.random.Generator, numpy.random.RandomState) if numpy else ()
    every = gc.get_objects()
    if _has_torch():  # `gc.get_objects` lists no generators of torch, but objects that hold them
        kinds += tuple(_torch().generator_types())
        every += gc.get_referents(*every)
    modules = [_variables(module) for module in list(sys.modules.values())]
    variables = [value for names in modules for value in list(names.values())]
    first = {id(value): value for value in variables if issubclass(type(value), kinds)}
    candidates = {id(value): value for value in every if issubclass(type(value), kinds)}
    unnamed = {address: value for address, value in candidates.items() if address not in first}
    if len(unnamed) > 1:
        unnamed = {**_reached(unnamed, held, modules), **unnamed}
    every = [*first.values(), *unnamed.values()]
    return [generator for generator in every if _reseed(generator, 0, "to see whether it can be")]


def _reached(wanted: dict[int, Any], held: Any, modules: list[dict[str, Any]]) -> dict[int, Any]:
    """Return the `wanted` generators that are reached from `held` or from variables of modules."""
    # Those of `held` come first, then those of the modules, from the last imported one. So the
    # order, from which seeds are computed, depends only on the program.
    visited = {id(sys.modules), *map(id, sys.modules.values()), *map(id, modules)}
    reached: dict[int, Any] = {}
    for roots in (held, *(names.values() for names in modules[::-1])):
        queue = list(roots)
        for value in queue:  # `queue` grows: breadth first
            if id(value) in visited:
                continue
            visited.add(id(value))
            if id(value) in wanted:
                reached[id(value)] = value
            queue += gc.get_referents(value)
        if len(reached) == len(wanted):
            break
    return reached


def _variables(module: Any) -> dict[str, Any]:
    # The attribute `__dict__` is read by `object.__getattribute__`: sys.modules may hold any
    # object, and ordinary access to an attribute of a lazy module would import the module.
    try:
        names: dict[str, Any] = object.__getattribute__(module, "__dict__")
        return names
    except AttributeError:
        return {}


def _reseed(generator: Any, seed: int, purpose: str) -> bool:
    """Seed a random generator. Return whether this was possible."""
    number = child_seed(seed, purpose)
    try:
        if hasattr(generator, "bit_generator"):
            bits = generator.bit_generator
            bits.state = type(bits)(number).state
        elif isinstance(generator, random.Random):
            generator.seed(number)
        elif hasattr(generator, "initial_seed"):
            _torch().seed(generator, number)
        else:
            generator.seed([number >> (32 * word) & 0xFFFFFFFF for word in range(8)])
    except Exception:  # noqa: BLE001  # a source without a seed may raise any exception
        return False
    return True


def child_seed(seed: int, purpose: str) -> int:
    """Return 256 bits computed from a seed and a text; different texts give independent numbers."""
    return random.Random(f"{seed} {purpose}").getrandbits(256)  # `random` hashes texts by SHA-512


def encode(value: Any) -> Any:
    """Return a value for JSON that stands for an outcome. A value that JSON cannot express becomes
    a dict with one key that begins with "$". Raises Refused if an outcome cannot be sent."""
    kind = type(value)
    if kind in (float, str, bool, type(None)):
        return value
    if kind is int:
        return value if value.bit_length() < 64 else {"$int": hex(value)}
    if kind is dict:
        if all(type(key) is str and key[:1] != "$" for key in value):
            node = {key: encode(entry) for key, entry in value.items()}
        else:
            node = {"$dict": [[encode(key), encode(entry)] for key, entry in value.items()]}
        # Decide here whether the keys come in the order in which a set of them is iterated: that
        # order depends on the hash seed, which differs in the main process.
        is_as_in_a_set = len(value) > 1 and _set_order().as_in_a_set(tuple(value))
        return {"$as_in_a_set": node} if is_as_in_a_set else node
    if kind in (list, tuple, set, frozenset):
        parts = [encode(entry) for entry in value]
        return parts if kind is list else {"$" + kind.__name__: parts}
    form = _FORMS.get((kind.__module__, kind.__name__))
    if form is not None:
        return {"$" + kind.__name__: form(value)}
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _encoded_array(value)
    if _has_tensors() and _torch().is_tensor(kind):
        return _encoded_array(_readable(value))
    tabular: Any = _tabular(value, _frames()) if _has_tables() else None
    return _described(value) if tabular is None else tabular


def _readable(tensor: Any) -> Any:
    """Return a tensor as a NumPy array. Raises Refused if NumPy cannot read it."""
    try:
        return _torch().readable(tensor)
    except _torch().UnreadableError as error:
        raise Refused(f"the mechanism returns {error}", code="output-unsupported") from None


def _tabular(value: Any, frames: Any) -> Any:
    """Return JSON values for a data frame, a series or a table cell; None for other values."""
    kind = type(value)
    if frames.is_frame(kind):
        frame = frames.as_frame(value)
        columns = [[encode(key), encode(column)] for key, column in frame.columns.items()]
        return {"$frame": [frame.word, columns]}
    if frames.is_series(kind):
        series = frames.as_series(value)
        return {"$series": [series.word, encode(series.entries)]}
    parts = frames.scalar_parts(value)
    return None if parts is None else {"$" + parts[0]: parts[1]}


def _encoded_array(value: Any) -> Any:
    value = _torch().widened(value) if "ml_dtypes" in sys.modules else value
    kind, names, masked = value.dtype.kind, value.dtype.names, hasattr(value, "filled")
    if names and not value.dtype.hasobject and not masked:
        described = [(name, value.dtype[name].str) for name in names]
        if sys.modules["numpy"].dtype(described) == value.dtype:  # no gaps, no nested fields
            return {"$structured": [described, list(value.shape), _base64(value.tobytes())]}
    if names:
        return encode({name: value[name] for name in names})
    if kind == "O" or masked:
        type_name = type(value).__name__
        name = ("array" if type_name == "ndarray" else type_name) + f" of {value.dtype}"
        return {"$derived": [name, encode(value.tolist())]} if value.ndim else encode(value.item())
    if value.ndim == 0 and (kind in "biuU" or (kind == "f" and value.dtype.itemsize <= 8)):
        return {"$scalar": [value.dtype.str, value.item()]}
    if value.ndim == 0 and kind == "S":
        return encode(value.item())
    return {"$array": [value.dtype.str, list(value.shape), _base64(value.tobytes())]}


def _described(value: Any) -> Any:
    """Return a value for JSON of an enum member, a record or a subclass of a built-in type."""
    kind, name = type(value), type(value).__qualname__
    if "enum" in sys.modules and isinstance(value, sys.modules["enum"].Enum):
        return {"$enum": [name, value.name or repr(value.value)]}
    fields = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "_fields", None)
    if fields:
        names = [field for field in fields if hasattr(value, field)]
        return {"$record": [name, names, [encode(getattr(value, field)) for field in names]]}
    bases: tuple[Any, ...] = (str, int, float, bytes, dict, list, tuple, set, frozenset)
    for base in (base for base in bases if isinstance(value, base)):
        return {"$derived": [name, encode(base(value))]}
    # dpaudit makes up the name of a module that it imports from a file, so this name is left out.
    module = "" if kind.__module__.startswith("dpaudit_file_") else f"{kind.__module__}."
    raise Refused(
        f"the mechanism returns a value of type {module}{name}, which cannot be sent between "
        "processes; give post_process a function that turns it into plain values, or lists of "
        "these",
        code="output-unsupported",
    )


def _base64(data: Any) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


# Maps (module, name) of a type to the function that turns its values into values for JSON. The
# types are not imported here, since the mechanism may not use their modules.
_FORMS: dict[tuple[str, str], Callable[[Any], Any]] = {
    **dict.fromkeys([("builtins", "bytes"), ("builtins", "bytearray")], _base64),
    **dict.fromkeys([("decimal", "Decimal"), ("fractions", "Fraction"), ("uuid", "UUID")], str),
    **dict.fromkeys([("datetime", name) for name in ("datetime", "date", "time")], str),
    ("datetime", "timedelta"): lambda delta: [delta.days, delta.seconds, delta.microseconds],
    ("builtins", "complex"): lambda number: [number.real, number.imag],
}


def _text(node: Any) -> bytes:
    return json.dumps(node).encode() + b"\n"


_label = functools.lru_cache(maxsize=1024)(_text)


def _written(output: Any) -> bytes:
    """Return the JSON of an output; a MemoryError is the outcome, any other exception Refused."""
    try:
        return _text(encode(output))
    except RecursionError:
        raise Refused(
            "the mechanism returns outputs that contain themselves, or have more than 50 levels; "
            "give post_process a function that turns an output into a flat one",
            code="output-too-large",
        ) from None
    except MemoryError as error:
        return _text(raised(error))
    except FAILURES as error:
        raise Refused(
            f"the mechanism returns an output of type {type(output).__qualname__} that cannot be "
            f"sent between processes ({words(error)}); give post_process a function that turns an "
            "output into plain values, or lists of these",
            code="output-unsupported",
        ) from None


if __name__ == "__main__":
    main(Service)
