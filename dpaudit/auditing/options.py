"""Every option of an audit, once: its name, values, default, check and help.

From this table come the flags of the commands, the keys of configuration files and their JSON
schema, the defaults and checks of an `AuditSpec`, the keywords of `dpaudit.audit`, and
docs/options.md. A new option is one entry here, and, where it is read in a way of its own, one line
in config/building.py or cli/flags.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from functools import partial
from numbers import Integral, Real
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from dpaudit.claims import DEFINITIONS, parameters
from dpaudit.errors import Name, UsageError, did_you_mean
from dpaudit.inputs.datasets import FORMS

BoundMethod = Literal["game", "clopper-pearson"]
OnError = Literal["outcome", "fail"]
Expectation = Literal["violation", "pass"]
# Whose an option is: keys of a mechanism, of its inputs, of the audit, parameters of the claim; or
# of the run alone, which no file says.
Owner = Literal["mechanism", "inputs", "audit", "claim", "run"]
Section = Literal["What to audit", "Claim", "Budget", "Processes", "Attacks", "Output"]
Check = Callable[[Any], str | None]

MINIMUM_SAMPLES = 1_000
# Counts of so many are still exact as floats, in which the bounds are computed.
MAXIMUM_SAMPLES = 10**15

# A reference to an axis of the matrix, which is replaced before values are checked.
REFERENCE = r"\$\{([^}]*)\}"
Reference = Annotated[str, Meta(pattern=f"^{REFERENCE}$")]
Number = int | float | Reference
Words = Annotated[str, Meta(min_length=1)]
# Until config/schema.py says which, since these hold options themselves.
_NESTED = list[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What values an option takes.

    type: in a file.  words: what such a value is, for messages and the schema, unless the help says
    it.  metavar: how the help shows it.  choices: all that there are.
    """

    type: Any
    words: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()


def _choice(*choices: str) -> Kind:
    literal: Any = Literal
    return Kind(literal[choices], " or ".join(choices), choices=choices)


SWITCH = Kind(bool, "true or false")
COUNT = Kind(int)
NUMBER = Kind(Number)
WHOLE = Kind(Number, metavar="NUMBER")
SEED = Kind(int | str, metavar="NUMBER|random")
DURATION = Kind(int | float | str, metavar="DURATION")
SIZE = Kind(int | str, metavar="SIZE")
TEXT = Kind(Words)
PATH = Kind(Words, metavar="PATH")
DATASET = Kind(Any, metavar="VALUE")
NAMED = Kind(dict[str, Any], metavar="NAME=VALUE")
PATHS = Kind(list[Words], metavar="PATH")
ARGUMENTS = Kind(list[Any] | dict[str, Any], metavar="VALUE")
OUTPUTS = Kind(Annotated[list[Any], Meta(min_length=2)], metavar="VALUES")


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """One option of an audit.

    name: the key of a file, and the keyword.  of: whose it is.  help: a sentence or two.
    must: what a value must be, as the end of a message; derived from kind and help where empty.
    default: of an AuditSpec.  unless: what holds where nothing is given, if that is no value.
    flag: None where there is none.  short: a second one.  usual: among the first in the help.
    check: returns why a value is refused, with what to do, or None.  more: where docs say more.
    """

    name: str
    kind: Kind
    help: str
    _: KW_ONLY
    section: Section
    of: Owner
    must: str = ""
    default: Any = None
    unless: str = ""
    flag: str | None = ""
    short: str = ""
    metavar: str = ""
    usual: bool = False
    check: Check | None = None
    more: str = ""

    def __post_init__(self) -> None:
        sentence = f"{self.help[:1].lower()}{self.help[1:].removesuffix('.')}"
        words = f"{self.kind.words}: {sentence}" if self.kind.words else sentence
        object.__setattr__(self, "must", self.must or words)
        if self.flag == "":
            object.__setattr__(self, "flag", f"--{self.name.replace('_', '-')}")
        if self.kind is SWITCH and self.default is None:
            object.__setattr__(self, "default", False)

    @property
    def default_words(self) -> str:
        """What holds where nothing is given; empty where that is nothing."""
        if self.unless or self.default is None or self.default == ():
            return self.unless
        if isinstance(self.default, bool):
            return ""
        return f"{self.default:,}" if isinstance(self.default, int) else str(self.default)

    def verify(self, value: Any) -> None:
        """Raise UsageError for a value that an audit cannot have."""
        if value is None and self.default is None:
            return
        why = self._unknown(value) if self.kind.choices else self.check and self.check(value)
        if why:
            raise refused(self.name, value, why)

    def _unknown(self, value: Any) -> str | None:
        known = self.kind.choices
        if value in known:
            return None
        return f"is not known; known: {', '.join(known)}.{did_you_mean(str(value), known)}"


def refused(name: str, value: Any, why: str) -> UsageError:
    """Return the error for the value of an option, such as `samples=7 is too few`."""
    is_long = isinstance(value, Integral) and abs(int(value)) > MAXIMUM_SAMPLES
    shown = f"{Decimal(int(value)):.3g}" if is_long else repr(value)
    return UsageError(Name(name), f"={shown} {why}")


def _of_type(kind: type, words: str) -> Callable[[Check], Check]:
    """Let a check of a number see nothing but numbers of that kind."""

    def decorate(check: Check) -> Check:
        def whole_check(value: Any) -> str | None:
            is_one = isinstance(value, kind) and not isinstance(value, bool)
            return check(value) if is_one else f"must be {words}"

        return whole_check

    return decorate


@_of_type(Integral, "an integer")
def _samples(value: Any) -> str | None:
    if value < MINIMUM_SAMPLES:
        return f"is too few to certify anything; give at least {MINIMUM_SAMPLES:,}"
    if value > MAXIMUM_SAMPLES:
        return f"is more than can be counted exactly; give at most {MAXIMUM_SAMPLES:,}"
    return None


@_of_type(Real, "a number of seconds")
def _time(value: Any) -> str | None:
    return None if 0 < value < math.inf else "must be above 0 seconds, and finite"


@_of_type(Real, "a number")
def _confidence(value: Any) -> str | None:
    return None if 0 < value < 1 else "must lie in (0, 1), e.g. 0.99"


@_of_type(Integral, "an integer")
def _seed(value: Any) -> str | None:
    return None if value >= 0 else "must be an integer, at least 0"


@_of_type(Integral, "an integer")
def _workers(value: Any) -> str | None:
    return None if value >= 1 else "must be at least 1"


def _range(value: Any) -> str | None:
    return None if len(value) >= 2 else "must list at least two outputs"


_called = partial(Option, section="What to audit", of="mechanism")
_given = partial(Option, section="What to audit", of="inputs")
_seen = partial(Option, section="What to audit", of="audit")
_claimed = partial(Option, section="Claim", of="inputs")
_parameter = partial(Option, section="Claim", of="claim")
_budget = partial(Option, section="Budget", of="audit")
_own_process = partial(Option, section="Processes", of="mechanism")
_process = partial(Option, section="Processes", of="audit")
_attack = partial(Option, section="Attacks", of="audit")
_report = partial(Option, section="Output", of="inputs")
_verdict = partial(Option, section="Output", of="audit")
_run = partial(Option, section="Output", of="run")


# A table, so that an option is two or three lines.
# fmt: off
_TABLE = (
    # What to audit
    _called("mechanism", TEXT, "An import path: package.module:attr or path/to/file.py:attr.",
        flag=None, unless="needed"),
    _given("d1", DATASET,
        "One input: any JSON or YAML value, {tuple: [0, 1]}, @file (.json, .yaml, .csv, .npy), or "
        "import:module:name.", usual=True, must="a dataset: any value, @file or import:module:name",
        unless="needed", more="configuration.md#values"),
    _given("d2", DATASET, "Its neighbour, in the same way.", usual=True,
        must="its neighbour: any value, @file or import:module:name", unless="needed"),
    _called("params", NAMED, "An argument of every call. Repeatable.", flag="--param", usual=True,
        must="a mapping of keyword arguments, given with every call",
        more="configuration.md#values"),
    _called("init", ARGUMENTS, "Constructor arguments, a list or a mapping: '[1.0, 1.0]'.",
        must="a list or a mapping of constructor arguments", more="configuration.md#values"),
    _called("call", TEXT, "The method that draws.", metavar="METHOD",
        must="the name of the method that draws", unless="the object itself"),
    _called("factory", SWITCH, "Calling the target returns what draws."),
    _called("batch_arg", TEXT,
        "The parameter that takes the number of outputs wanted; none: one call for each.",
        metavar="NAME", unless="size, where there is one",
        more="configuration.md#parameters-under-other-names"),
    _called("data_arg", TEXT, "The parameter that takes the dataset.", metavar="NAME",
        unless="the first", more="configuration.md#parameters-under-other-names"),
    _called("rng_arg", TEXT,
        "The parameter that takes a numpy.random.Generator; none: it gets none.", metavar="NAME",
        unless="rng, where there is one", more="configuration.md#parameters-under-other-names"),
    _called("post_process", PATH, "The import path of a function, applied to every output."),
    _called("command", Kind(Annotated[list[Words], Meta(min_length=1)] | Words, metavar="COMMAND"),
        "In place of a target: a program that draws, in quotes with its arguments; "
        "docs/protocol.md says what it reads and writes.",
        must="a list of words, or a command line: a program that draws, in place of mechanism",
        more="configuration.md#in-another-process"),
    _given("compose", Kind(_NESTED),
        "A list of at least two mechanisms, import paths or mappings, whose outputs on one input "
        "are one output; in place of mechanism.", flag=None,
        more="configuration.md#several-releases-of-one-input"),
    _given("pairs", Kind(_NESTED), "A list of {d1, d2} that share the audit's error probability.",
        flag=None),
    _given("as", _choice(*FORMS),
        "Hand the datasets over as NumPy arrays, or as data frames of a library.",
        must="array (or numpy), pandas or polars: datasets become arrays or data frames",
        more="configuration.md#values"),
    _given("adjacency", Kind(str | dict[str, Number], metavar="RELATION"),
        "add-remove, replace, or a distance such as l1:1; checked where it can be.",
        unless="not stated"),
    _given("repeat", WHOLE,
        "So many independent runs on one input are one output; the claim is for one.",
        must="a whole number of independent runs on one input that are one output; the claim is "
        "for one of them", default=1, more="configuration.md#several-releases-of-one-input"),
    _given("matrix", Kind(dict[str, Annotated[list[Any], Meta(min_length=1)]]),
        "A mapping of names to lists of values, referred to as ${name}; one audit for each "
        "combination, up to 5,000.", flag=None),
    _seen("on_error", _choice(*get_args(OnError)), "What an exception of the mechanism is.",
        default="outcome", more="configuration.md#how-a-run-ends"),
    _seen("range", OUTPUTS,
        "All outputs that there are, exceptions by name: '[0, 1, TypeError]'. Gives an interval "
        "for ε, not only a lower bound.",
        must="a list of all outputs that there are, exceptions by name, at least two", check=_range,
        more="configuration.md#outputs-that-are-known"),
    _seen("exact", SWITCH,
        "Draw nothing: compute from the mechanism's own pmf(dataset, **params), a mapping from "
        "outcomes to probabilities.",
        must="true or false: whether to compute from the mechanism's own pmf",
        more="configuration.md#outputs-that-are-known"),
    # Claim
    _claimed("claim", Kind(dict[str, Any]),
        "A mapping such as {epsilon: 1, delta: 1e-5}: what is put to the test.", flag=None,
        unless="needed", more="configuration.md#claims"),
    *(
        _parameter(one.name, NUMBER if one.type is float else PATH, one.help,
            usual=one.name in ("epsilon", "delta"))
        for one in parameters() if one.has_flag
    ),
    _parameter("group", WHOLE, "The claim is for one record, the inputs differ in so many.",
        default=1),
    _parameter("definition", _choice(*DEFINITIONS), "What is claimed.",
        unless="what the parameters belong to, such as gaussian for --mu; approximate with a "
        "--delta above 0, else pure"),
    # Budget
    _budget("samples", WHOLE,
        f"Draws for each pair of inputs, both together, at least {MINIMUM_SAMPLES:,}.", usual=True,
        must="a whole number of draws for each pair, at least 1000", default=1_000_000,
        check=_samples),
    _budget("time", DURATION, "30s, 2m, 1h: draw as long as this, not beside --samples.",
        usual=True, must="a duration such as 30s, 2m, 1h, or a number of seconds", check=_time),
    _budget("confidence", NUMBER, "1 minus the chance of a false alarm.", usual=True,
        must="a number between 0 and 1, such as 0.99", default=0.99, check=_confidence),
    _budget("seed", SEED, "Root of all randomness, or random: one is drawn and shown.", usual=True,
        must="a whole number, at least 0, or random", default=0, check=_seed,
        more="configuration.md#seeds-of-a-batch"),
    _budget("bound", _choice(*get_args(BoundMethod)), "How counts become a bound.", default="game",
        more="method.md"),
    _budget("full", SWITCH, "Go on after a refutation, to tighten the bound."),
    # Processes
    _own_process("python", PATH, "Run the target under this Python; dpaudit need not be there.",
        must="the path of the Python interpreter that runs the mechanism",
        more="configuration.md#in-another-process"),
    _own_process("isolate", SWITCH,
        "Draw in a process of its own: a crash is an outcome, and limits can be set.",
        more="configuration.md#in-another-process"),
    _own_process("timeout", DURATION, "500ms, 5s: of one draw; a longer one is an outcome.",
        must="a duration such as 500ms or 5s, of one draw; needs isolate"),
    _own_process("memory_limit", SIZE, "512MB, 2GiB: of the process that draws.",
        must="a size such as 512MB, of the process; needs isolate"),
    _process("workers", WHOLE, "Processes that draw.",
        must="a whole number of processes, at least 1", default=1, check=_workers),
    _process("executor", TEXT,
        "Who they are: serial, processes, dask or dask://host:8786 (docs/scale.md).",
        metavar="NAME", must="serial, processes, dask or dask://host:8786: who the workers are",
        unless="serial with one worker, else processes", more="scale.md"),
    # Attacks
    _attack("floating_point", SWITCH, "Look at the low-order bits and decimals of floats, too.",
        more="configuration.md#low-order-bits-and-time"),
    _attack("timing", SWITCH, "Look at how long every call takes, too.",
        more="configuration.md#low-order-bits-and-time"),
    _attack("attacks", PATHS,
        "A further attack: an import path, or the name of an installed one. Repeatable; "
        "docs/attacks.md says what it must do.", flag="--attack",
        must="a list of further attacks: import paths, package.module:Attack, or names of "
        "installed ones", default=(), more="attacks.md"),
    _attack("distinguisher", PATH,
        "A function from an output to a score: only its scores are looked at.",
        must="the import path of a function from an output to a score; only its scores are looked "
        "at", more="attacks.md#a-distinguisher"),
    # Output
    _report("name", TEXT, "How reports call the audit.", flag=None,
        must="a text, its name in reports", unless="the mechanism's"),
    _verdict("allow_underpowered", SWITCH,
        "Exit 0, not 4, for an audit that could not have refuted its claim, whatever the mechanism "
        "does (too few draws for so large an ε, equal inputs).",
        must="true or false: whether an audit that cannot fail may pass"),
    _verdict("expect", _choice(*get_args(Expectation)), "The verdict that exits 0."),
    _run("json", TEXT,
        "Write the results here, complete enough to be rechecked by dpaudit report; '-': standard "
        "output, the report to stderr.", metavar="FILE", usual=True),
    _run("report", PATHS,
        "Write the results as text, json or junit; '-': as for --json. Repeatable.",
        metavar="FORMAT:FILE"),
    _run("pattern", TEXT,
        "Only audits whose name contains this; 'not PATTERN': all others; =NAME: just this one.",
        flag="-k", metavar="PATTERN"),
    _run("journal", TEXT,
        "Keep here, in a file for each audit, all that is drawn, so that a run that is cut short "
        "can go on.", metavar="DIR", more="journal.md"),
    _run("resume", SWITCH, "Go on with the journals that are in --journal.", more="journal.md"),
    _run("quiet", SWITCH, "One line for each audit, no progress.", short="-q"),
    _run("verbose", COUNT, "Every pair of inputs, and how the result came about.", short="-v"),
    _run("debug", SWITCH, "Show the traceback of every error."),
)
# fmt: on

OPTIONS: Mapping[str, Option] = {one.name: one for one in _TABLE}
DEFAULTS: Mapping[str, Any] = {one.name: one.default for one in _TABLE}


def owned(*owners: Owner) -> tuple[Option, ...]:
    """Return the options of mechanisms, of audits and so on, in the order of the table."""
    return tuple(one for one in _TABLE if one.of in owners)


def flag_of(name: str) -> str:
    """Return an option as the command line spells it."""
    option = OPTIONS.get(name)
    return f"--{name}" if option is None else option.flag or name
