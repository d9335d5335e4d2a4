"""The table of all options of an audit: name, allowed values, default, check and help text.

Other modules derive from the table the flags of the commands, the keys of configuration files and
their JSON schema, the defaults and checks of an `AuditSpec`, the keywords of `dpaudit.audit`, and
the page docs/options.md. A new option needs an entry here and, if its value has to be parsed, a
line in config/building.py or cli/flags.py.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from functools import partial
from numbers import Integral, Real
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from dpaudit.claims import DEFINITIONS, PrivacyClaim, parameters
from dpaudit.claims.base import why_misnamed
from dpaudit.errors import Name, UsageError
from dpaudit.inputs.values import FORMS
from dpaudit.wording import did_you_mean, shown, why_no_confidence

BoundMethod = Literal["game", "clopper-pearson"]
StopEarly = Literal["bets", "confirmed"]
OnError = Literal["auto", "outcome", "fail"]
Expectation = Literal["violation", "pass"]
# Part of a configuration file to which an option belongs: a mechanism, its inputs, an audit, its
# claim, or the whole file. An option of "run" is a command-line flag that has no key in
# configuration files.
Owner = Literal["mechanism", "inputs", "audit", "claim", "file", "run"]
Section = Literal["What to audit", "Claim", "Budget", "Processes", "Attacks", "Output"]
# A check of an option: maps a value to None if it is allowed, otherwise to the reason why it is
# refused.
Check = Callable[[Any], str | None]

# Smallest budget of an audit, in draws of one pair. Fewer draws cannot certify anything useful.
MIN_SAMPLES = 100
# Largest budget, in draws of one pair: bounds are computed in floats, which represent integers up
# to 10¹⁵ exactly.
MAX_SAMPLES = 10**15


class DefaultSamples(int):
    """The largest number of draws of an audit for which neither `samples` nor `time` is stated.

    The audit chooses its number from the speed of the mechanism (pace.py).

    seconds: how long the chosen number of draws may take, for all pairs together.
    """

    seconds: float

    def __new__(cls, most: int, seconds: float) -> DefaultSamples:
        samples = super().__new__(cls, most)
        samples.seconds = seconds
        return samples


# Pattern of a reference such as `${epsilon}` to an entry of the option `matrix`. References are
# replaced by values before options are checked.
REFERENCE = r"\$\{([^}]*)\}"
Reference = Annotated[str, Meta(pattern=f"^{REFERENCE}$")]
Number = int | float | Reference
Words = Annotated[str, Meta(min_length=1)]
# Type of an option whose value is a list of mappings, such as `pairs`. The mappings are checked by
# config/schema.py.
_NESTED = list[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """The set of values that an option may have.

    type: Python type of a value in a configuration file, against which msgspec checks the file.
    words: description of a value for messages and the schema; "" if the help text describes it.
    metavar: placeholder for a value in the help, such as NUMBER.
    choices: all allowed values, if the option has a fixed list.
    accepts: called with the value of a keyword argument; returns whether the type of the value is
        allowed. None: every type is allowed.
    """

    type: Any
    words: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    accepts: Callable[[Any], bool] | None = None


def _choice(*choices: str) -> Kind:
    literal: Any = Literal
    return Kind(literal[choices], " or ".join(choices), choices=choices)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike)


def _is_named(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _is_listed(value: Any) -> bool:
    """Return whether a value is a collection, such as a list. Texts and bytes do not count."""
    return isinstance(value, Collection) and not isinstance(value, str | bytes)


SWITCH = Kind(bool, "true or false", accepts=lambda value: isinstance(value, bool))
COUNT = Kind(int)
NUMBER = Kind(Number)
WHOLE = Kind(Number, metavar="NUMBER")
PROCESSES = Kind(
    int | float | Annotated[str, Meta(pattern=f"^(auto|{REFERENCE})$")], metavar="NUMBER|auto"
)
SEED = Kind(int | str, metavar="NUMBER|random")
DURATION = Kind(int | float | str, metavar="DURATION")
SIZE = Kind(int | str, metavar="SIZE")
TEXT = Kind(Words, accepts=lambda value: isinstance(value, str) and value != "")
PATH = Kind(Words, metavar="PATH")
PROGRAM = Kind(Words, metavar="PATH", accepts=_is_path)
DATASET = Kind(Any, metavar="VALUE")
NAMED = Kind(dict[str, Any], metavar="NAME=VALUE", accepts=_is_named)
PATHS = Kind(list[Words], metavar="PATH", accepts=_is_listed)
ARGUMENTS = Kind(list[Any] | dict[str, Any], metavar="VALUE", accepts=_is_listed)
OUTPUTS = Kind(Annotated[list[Any], Meta(min_length=2)], metavar="VALUES", accepts=_is_listed)


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """One option of an audit.

    name: key in configuration files, and keyword of `dpaudit.audit`.
    kind: allowed values.
    help: help text of one or two sentences.
    section: heading in the help and in docs/options.md.
    of: part of a configuration file to which the option belongs (see `Owner`).
    must: end of the error message "must be ..."; "": the end is built from `kind` and `help`.
    default: value that is used if the user gives no value.
    unless: description of the default if the default is not a fixed value.
    flag: command-line flag; None: no flag; "": the flag is made from the name.
    short: short form of the flag.
    metavar: placeholder for the value in the help; "": the placeholder of `kind`.
    usual: whether the help lists the option among the most used options.
    check: called with a value; returns the reason why the value is refused and the remedy, or None.
    more: page of the documentation about the option, relative to docs/.
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
        first = self.help.partition(". ")[0].removesuffix(".")
        sentence = f"{first[:1].lower()}{first[1:]}"
        words = f"{self.kind.words}: {sentence}" if self.kind.words else sentence
        object.__setattr__(self, "must", self.must or words)
        if self.flag == "":
            object.__setattr__(self, "flag", f"--{self.name.replace('_', '-')}")
        if self.kind is SWITCH and self.default is None:
            object.__setattr__(self, "default", False)

    @property
    def default_words(self) -> str:
        """The default as the help shows it, such as `1,000,000`; "" if there is no default."""
        if self.unless or self.default is None or self.default == ():
            return self.unless
        if isinstance(self.default, bool):
            return ""
        return f"{self.default:,}" if isinstance(self.default, int) else str(self.default)

    def verify(self, value: Any) -> None:
        """Raise UsageError if the value is not allowed for this option."""
        is_default = type(value) is type(self.default) and value == self.default
        if (is_default or (value is None and self.default == ())) and self.unless != "required":
            return
        why = self._why_not(value)
        if why:
            raise refused(self.name, value, why)

    def _why_not(self, value: Any) -> str | None:
        known = self.kind.choices
        if known and value not in known:
            return f"is not known; known: {', '.join(known)}.{did_you_mean(str(value), known)}"
        if self.kind.accepts and not self.kind.accepts(value):
            return f"must be {self.must}"
        return self.check and self.check(value)


TWO_BUDGETS = (
    *("give either ", Name("samples"), " or ", Name("time"), ", not both: "),
    "one sets the number of draws, the other their duration",
)


def refused(name: str, value: Any, why: str) -> UsageError:
    """Return the error for a refused value of an option, such as `samples=7 is too few`.

    why: the end of the message, such as "is too few".
    """
    is_long = isinstance(value, Integral) and abs(int(value)) > MAX_SAMPLES
    is_number = OPTIONS[name].kind in (NUMBER, WHOLE, SEED, PROCESSES) if name in OPTIONS else False
    written = f"{Decimal(int(value)):.3g}" if is_long and is_number else shown(value)
    return UsageError(Name(name), f"={written} {why}", code="option-invalid")


def _number(kind: type, must: str, is_within: Callable[[Any], bool] = lambda value: True) -> Check:
    """Return a check that accepts a number of type `kind` if `is_within` returns True for it.

    must: end of the error message "must be ...".
    """

    def check(value: Any) -> str | None:
        is_number = isinstance(value, kind) and not isinstance(value, bool)
        return None if is_number and is_within(value) else f"must be {must}"

    return check


_POWER = "a number above 1, such as 1.2"
_PROBABILITY = "a probability between 0 and 1, such as 1e-3"
_PROCESSES = "a whole number of processes, at least 1, or auto"


_SEED = _number(Integral, "an integer, at least 0", lambda value: value >= 0)
_SIZE = _number(Integral, "a whole number of bytes")
_AUDITS = _number(Integral, "a number of audits, at least 1", lambda value: value >= 1)
_FACTOR = _number(Real, _POWER, lambda value: 1 < value < math.inf)
_SHARE = _number(Real, _PROBABILITY, lambda value: 0 < value < 1)


def _samples(value: Any) -> str | None:
    if (why := _number(Integral, "an integer")(value)) is not None:
        return why
    if value < MIN_SAMPLES:
        return f"is too few to certify anything; give at least {MIN_SAMPLES:,}"
    if value > MAX_SAMPLES:
        return f"is more than can be counted exactly; give at most {MAX_SAMPLES:,}"
    return None


def _time(value: Any) -> str | None:
    why = _number(Real, "a number of seconds")(value)
    is_within = why is not None or 0 < value < math.inf
    return why if is_within else "must be above 0 seconds, and finite"


def _confidence(value: Any) -> str | None:
    return _number(Real, "a number")(value) or why_no_confidence(value, "0.99")


def _workers(value: Any) -> str | None:
    is_whole = _number(Integral, _PROCESSES, lambda count: count >= 1)
    return None if value == "auto" else is_whole(value)


def _claim(value: Any) -> str | None:
    if not isinstance(value, PrivacyClaim):
        return "is not a claim; give one such as PureDP(1.0)"
    return why_misnamed(value)


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
_batch = partial(Option, of="file")
_run = partial(Option, section="Output", of="run")


# ruff does not format this table, so that each option takes two or three lines.
_TABLE = (
    # Options of the section "What to audit" of the help.
    _called(
        "mechanism",
        TEXT,
        "An import path: package.module:attr or path/to/file.py:attr.",
        flag=None,
        metavar="TARGET",
        unless="required",
    ),
    _given(
        "d1",
        DATASET,
        "One input: a JSON or YAML value, or @file. Files are .json, .yaml, .csv or .npy; {tuple: "
        "[0, 1]} is a tuple; import:module:name is a Python object.",
        usual=True,
        must="a dataset: any value, @file or import:module:name",
        unless="required",
        more="configuration.md#values",
    ),
    _given(
        "d2",
        DATASET,
        "The neighbouring input, in the same form.",
        usual=True,
        must="the neighbouring input: any value, @file or import:module:name",
        unless="required",
    ),
    _called(
        "params",
        NAMED,
        "A keyword argument of every call (repeatable).",
        flag="--param",
        usual=True,
        must="a mapping of keyword arguments for every call",
        more="configuration.md#values",
    ),
    _called(
        "init",
        ARGUMENTS,
        "Constructor arguments, as a list or a mapping: '[1.0, 1.0]'.",
        must="a list or a mapping of constructor arguments",
        more="configuration.md#values",
    ),
    _called(
        "call",
        TEXT,
        "The method that returns outputs.",
        metavar="METHOD",
        must="the name of the method that returns outputs",
        unless="the object itself",
    ),
    _called("factory", SWITCH, "Call the target to get the mechanism."),
    _called(
        "batch_arg",
        TEXT,
        "The parameter for the number of outputs per call. With none, dpaudit calls the mechanism "
        "once for each output.",
        metavar="NAME",
        unless="size, if it has one",
        must="the name of the parameter for the number of outputs of one call, or none",
        more="guides/mechanism.md#parameters-under-other-names",
    ),
    _called(
        "data_arg",
        TEXT,
        "The parameter for the dataset.",
        metavar="NAME",
        must="the name of the parameter for the dataset",
        unless="the first",
        more="guides/mechanism.md#parameters-under-other-names",
    ),
    _called(
        "rng_arg",
        TEXT,
        "The parameter for a numpy.random.Generator. With none, dpaudit passes no generator.",
        metavar="NAME",
        must="the name of the parameter for a numpy.random.Generator, or none",
        unless="rng, if it has one",
        more="guides/mechanism.md#parameters-under-other-names",
    ),
    _called(
        "post_process",
        PATH,
        "The import path of a function to apply to every output.",
        more="guides/attacks.md#a-score-of-your-own",
    ),
    _called(
        "command",
        Kind(Annotated[list[Words], Meta(min_length=1)] | Words, metavar="COMMAND"),
        "The command line of a program to audit in place of a target. "
        "docs/guides/protocol.md defines what it reads and writes.",
        must="a list of words, or a command line: a program to audit in place of mechanism",
        more="guides/protocol.md",
    ),
    _given(
        "compose",
        Kind(_NESTED),
        "A list of at least two mechanisms (import paths or mappings), in place of mechanism; "
        "they run on the same input, and their outputs together are one output.",
        flag=None,
        more="guides/compositions.md",
    ),
    _given(
        "pairs",
        Kind(_NESTED),
        "A list of {d1, d2}; they share the audit's error probability.",
        flag=None,
    ),
    _given(
        "search",
        Kind(Words | dict[str, Any]),
        "In place of d1 and d2: the space to search for the pair that leaks most, such as list of "
        "number in [0, 1], or a mapping {space, inside, outside, keep}. Needs adjacency.",
        flag=None,
        must="a space, such as list of number in [0, 1], or a mapping "
        "{space, inside, outside, keep}",
        more="guides/find-the-pair.md",
    ),
    _given(
        "as",
        _choice(*FORMS),
        "Pass the datasets as NumPy arrays, or as data frames of a library.",
        must="array (or numpy), pandas or polars: datasets become arrays or data frames",
        more="configuration.md#values",
    ),
    _given(
        "adjacency",
        Kind(str | dict[str, Any], metavar="RELATION"),
        "The neighbouring relation, such as add-remove. dpaudit list adjacencies names all: "
        "replace, distances such as l1:1, and others. dpaudit checks d1 and d2 where it can.",
        must="add-remove, replace, or a distance such as l1:1",
        unless="not stated",
    ),
    _given(
        "repeat",
        WHOLE,
        "Independent runs that together give one output. The claim is per run.",
        must="a whole number of independent runs on one input, which together are one output; the "
        "claim is per run",
        default=1,
        more="guides/compositions.md",
    ),
    _given(
        "matrix",
        Kind(dict[str, Annotated[list[Any], Meta(min_length=1)]]),
        "A mapping from names to lists of values, which ${name} refers to; one audit for each "
        "combination, at most 5,000.",
        flag=None,
    ),
    _seen(
        "on_error",
        _choice(*get_args(OnError)),
        "Whether an exception of the mechanism is an outcome. outcome: always; fail: the audit "
        "ends with an error; auto: as outcome, but if d1 and d2 differ in type and one of them "
        "always raises TypeError or AttributeError, as fail.",
        default="auto",
        more="configuration.md#how-a-run-ends",
    ),
    _seen(
        "range",
        OUTPUTS,
        "All possible outputs, such as '[0, 1, TypeError]'. Exceptions are given by name. dpaudit "
        "then also computes an upper bound of ε.",
        must="a list of all possible outputs, exceptions by name, at least two",
        check=_range,
        more="guides/known-outputs.md",
    ),
    _seen(
        "exact",
        SWITCH,
        "Compute the result from the mechanism's own pmf, without draws. pmf(dataset, **params) "
        "returns a mapping from outcomes to probabilities.",
        must="true or false: whether to compute from the mechanism's own pmf",
        more="guides/known-outputs.md",
    ),
    # Options of the section "Claim".
    _claimed(
        "claim",
        Kind(dict[str, Any]),
        "A mapping such as {epsilon: 1, delta: 1e-5}: the claim to test.",
        flag=None,
        unless="required",
        check=_claim,
        more="configuration.md#claims",
    ),
    *(
        _parameter(
            one.name,
            NUMBER if one.type is float else PATH,
            one.help,
            usual=one.name in ("epsilon", "delta"),
        )
        for one in parameters()
        if one.has_flag
    ),
    _parameter(
        "from",
        _choice("library"),
        "Ask the library of the mechanism for its claim, in place of ε. --delta then chooses the "
        "point of a curve.",
        flag="--claim-from",
        must="library: the library of the mechanism makes the claim",
        unless="you",
        more="guides/library-claims.md",
    ),
    _parameter(
        "group",
        WHOLE,
        "Number of records that d1 and d2 differ in. The claim is for one record.",
        default=1,
    ),
    _parameter(
        "definition",
        _choice(*DEFINITIONS),
        "The privacy definition of the claim. dpaudit list definitions shows the names.",
        unless="the one that the parameters belong to, such as gaussian for --mu; approximate if "
        "--delta is above 0, else pure",
    ),
    # Options of the section "Budget".
    _budget(
        "samples",
        WHOLE,
        f"Draws for each pair of inputs. d1 and d2 together get at least {MIN_SAMPLES:,}.",
        usual=True,
        must=f"a whole number of draws for each pair, at least {MIN_SAMPLES}",
        default=DefaultSamples(1_000_000, seconds=30.0),
        unless="as many as about 30 s of drawing allow, at most 1,000,000",
        check=_samples,
        more="budget.md#without---samples-and---time",
    ),
    _budget(
        "time",
        DURATION,
        "How long to draw, such as 30s, 2m or 1h. Give --time or --samples, not both.",
        usual=True,
        must="a duration such as 30s, 2m, 1h, or a number of seconds",
        check=_time,
    ),
    _budget(
        "confidence",
        NUMBER,
        "1 minus the false-alarm probability. At least 0.5.",
        usual=True,
        must="a number from 0.5 to below 1, such as 0.99",
        default=0.99,
        check=_confidence,
    ),
    _batch(
        "familywise",
        SWITCH,
        "Share one false-alarm probability across all audits of a file. --confidence is then the "
        "confidence of the whole file (Holm). In YAML, familywise is a top-level key.",
        section="Budget",
        must="true or false: whether all audits of the file have one error probability together",
        more="configuration.md#one-error-probability-for-a-batch",
    ),
    _budget(
        "seed",
        SEED,
        "Seed of all random numbers. With random, dpaudit picks a seed and shows it.",
        usual=True,
        must="a whole number, at least 0, or random",
        default=0,
        check=_SEED,
        more="configuration.md#seeds-of-a-batch",
    ),
    _budget(
        "bound",
        _choice(*get_args(BoundMethod)),
        "The method that turns counts into a bound.",
        default="game",
        more="method.md",
    ),
    _budget("full", SWITCH, "Continue after a refutation, to tighten the bound."),
    _budget(
        "stop_early",
        _choice(*get_args(StopEarly)),
        "What ends a run early: bets alone, for which few draws suffice, or bets that fresh draws "
        "have confirmed, which tighten the bound.",
        unless="bets if each call makes one draw and takes more than 5 ms, else confirmed",
        more="guides/slow.md",
    ),
    # Options of the section "Processes" of the help.
    _own_process(
        "python",
        PROGRAM,
        "Run the target with this Python. dpaudit need not be installed there.",
        must="the path of the Python interpreter that runs the mechanism",
        more="guides/versions.md",
    ),
    _own_process(
        "isolate",
        SWITCH,
        "Run the mechanism in a separate process. A crash then counts as an outcome, and time and "
        "memory can be limited.",
        more="guides/protocol.md#faults",
    ),
    _own_process(
        "timeout",
        DURATION,
        "Time limit for one draw, such as 500ms or 5s. A draw that takes longer counts as an "
        "outcome. Needs --isolate, --python or --command.",
        must="a duration such as 500ms or 5s, the limit for one draw; needs isolate",
        check=_time,
    ),
    _own_process(
        "memory_limit",
        SIZE,
        "Memory limit for the mechanism's process, such as 512MB or 2GiB. Needs --isolate, "
        "--python or --command.",
        must="a size such as 512MB, the limit for the mechanism's process; needs isolate",
        check=_SIZE,
    ),
    _process(
        "workers",
        PROCESSES,
        "Number of processes that draw. With auto, dpaudit starts with one and uses all cores when "
        "more than about 5 seconds are left.",
        must=_PROCESSES,
        default=1,
        unless="auto; in Python 1",
        check=_workers,
        more="guides/scale.md",
    ),
    _process(
        "executor",
        Kind(Words),
        "Where workers run: serial, processes or dask. dask://host:8786 connects to a scheduler "
        "(docs/guides/scale.md).",
        metavar="NAME",
        must="serial, processes, dask or dask://host:8786: where workers run",
        unless="serial with one worker, else processes",
        more="guides/scale.md",
    ),
    # Options of the section "Attacks" of the help.
    _attack(
        "floating_point",
        SWITCH,
        "Also search the low-order bits and decimals of floats.",
        more="guides/floating-point.md",
    ),
    _attack(
        "timing", SWITCH, "Also search the duration of each call.", more="guides/floating-point.md"
    ),
    _attack(
        "attacks",
        PATHS,
        "An attack to add (repeatable). Give an import path, or the name of an installed attack. "
        "docs/guides/attacks.md defines the interface.",
        flag="--attack",
        must="a list of attacks to add: import paths, package.module:Attack, or names of "
        "installed ones",
        default=(),
        more="guides/attacks.md",
    ),
    # Options of the section "Output".
    _report(
        "name",
        TEXT,
        "The name of the audit in reports.",
        flag=None,
        must="a text, the name of the audit in reports",
        unless="the mechanism's",
    ),
    _verdict(
        "allow_underpowered",
        SWITCH,
        "Exit 0, not 4, for an audit that cannot refute its claim. Such an audit has too few draws "
        "for its ε, equal inputs, or outputs that are nearly all new and of which it can use "
        "nothing.",
        must="true or false: whether an audit that cannot fail may pass",
    ),
    _verdict(
        "require_power",
        NUMBER,
        "Exit 4 if a leak of this many times the claimed ε could go unnoticed. The audit then "
        "found no violation, and its event would refute such a leak in fewer than 9 of 10 runs. "
        "Example: 1.2.",
        must=_POWER,
        check=_FACTOR,
        metavar="FACTOR",
        more="configuration.md#how-a-run-ends",
    ),
    _verdict(
        "require_rare",
        NUMBER,
        "Exit 4 if a rare output of only one input could go unnoticed. The audit then found no "
        "violation, and would catch an output of this probability in fewer than 9 of 10 runs. "
        "Example: 1e-3.",
        must=_PROBABILITY,
        check=_SHARE,
        metavar="PROBABILITY",
        more="configuration.md#how-a-run-ends",
    ),
    _verdict(
        "strict",
        SWITCH,
        "Exit 1 for an audit that has a warning. Notes do not count.",
        must="true or false: whether a warning fails the audit",
        more="configuration.md#how-a-run-ends",
    ),
    _verdict(
        "expect",
        _choice(*get_args(Expectation)),
        "The expected verdict. Exit 0 if the audit has it.",
        must=" or ".join(get_args(Expectation)),
    ),
    _verdict(
        "no_trace",
        SWITCH,
        "Do not look for the line that leaks after a violation.",
        must="true or false: whether to do without traces",
        more="guides/trace.md",
    ),
    _run(
        "json",
        TEXT,
        "Save the results in this file. dpaudit report can recheck them. With '-', they go to "
        "standard output, and the report to stderr.",
        metavar="FILE",
        usual=True,
    ),
    _run(
        "report",
        PATHS,
        "Also write a report (repeatable). Formats: text, html, json, junit, markdown, sarif, "
        "github (annotations). Without a file, it goes to standard output, and the text to stderr.",
        metavar="FORMAT[:FILE]",
        more="guides/reports.md",
    ),
    _run(
        "pattern",
        TEXT,
        "Run only audits whose name contains PATTERN. 'not PATTERN' runs all others; =NAME runs "
        "the audit of this name.",
        flag="-k",
        metavar="PATTERN",
    ),
    _run(
        "exitfirst", SWITCH, "Stop after the first audit that fails, like --maxfail 1.", short="-x"
    ),
    _run(
        "maxfail",
        WHOLE,
        "Stop after this many failed audits. Reports list the audits that were not run.",
        metavar="N",
        check=_AUDITS,
        more="guides/batch.md#stop-at-a-failure",
    ),
    _run(
        "journal",
        Kind(Words, accepts=_is_path),
        "Record all draws in this folder. An interrupted run can then continue.",
        metavar="DIR",
        must="the path of a folder",
        more="guides/journal.md",
    ),
    _run(
        "resume",
        SWITCH,
        "Continue from the journals in --journal.",
        more="guides/journal.md",
        must="true or false: whether to continue from the journal",
    ),
    _run(
        "quiet",
        SWITCH,
        "Print one line for each audit. Warnings and the summary follow; progress is not shown.",
        short="-q",
    ),
    _run("verbose", COUNT, "Show how each result was reached. All pairs are printed.", short="-v"),
    _run("debug", SWITCH, "Show the code and the traceback of every error."),
)
# fmt: on

OPTIONS: Mapping[str, Option] = {one.name: one for one in _TABLE}
DEFAULTS: Mapping[str, Any] = {one.name: one.default for one in _TABLE}


def verify(**given: Any) -> None:
    """Raise UsageError for the first value outside the range of its option.

    given: values, by the name of the option.
    """
    for name, value in given.items():
        OPTIONS[name].verify(value)


def owned(*owners: Owner) -> tuple[Option, ...]:
    """Return the options that belong to one of `owners` (parts of a configuration file, see
    `Owner`), in the order of the table.
    """
    return tuple(one for one in _TABLE if one.of in owners)


def flag_of(name: str) -> str:
    """Return the command-line flag of an option, such as `--samples` or `-n`. If the option has no
    flag, return what the help calls its value (TARGET), or its name.
    """
    option = OPTIONS.get(name)
    if option is None:
        return f"--{name}" if len(name) > 1 else f"-{name}"
    return option.flag or option.metavar or name
