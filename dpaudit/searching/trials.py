"""The draws of a search, the inputs for which they are made, and the pairs of inputs. Draws are
made for one input at a time, and are used for every pair that contains this input. They choose
pairs and certify nothing: the audit that follows draws from other random streams."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

import numpy as np

from dpaudit.adapters.loading import add_adversary, load_mechanism
from dpaudit.auditing.request import digest
from dpaudit.auditing.spec import AuditSpec
from dpaudit.draws import SelectionDraws
from dpaudit.errors import DatasetError, MechanismError, TargetError
from dpaudit.outcomes import Outcomes, Raised, concatenate, failures, from_raw
from dpaudit.sampling.seeding import carried_generators, chunk_streams, preserved
from dpaudit.sampling.state import changed, kept_state
from dpaudit.searching.proposals import Proposal
from dpaudit.searching.timeouts import Limit
from dpaudit.targets.parameters import NONE
from dpaudit.targets.target import CallableTarget, ImportedTarget

# Each stage of an audit derives its random streams from a number of its own. The search uses this
# number for draws that it makes in batches, and `SINGLE_STREAM` for draws one by one.
BATCH_STREAM = 100
# The search derives its random streams from two numbers: `BATCH_STREAM` for draws that it makes in
# batches, and this number for draws that it makes by one call each.
SINGLE_STREAM = 101

# Share of an audit's draws, or of its time, that the search for pairs may take.
SEARCH_SHARE = 1 / 4
# Share of the search's draws for trials of proposed pairs.
PROPOSED_SHARE = 0.45
# Share of the search's draws for pairs between which exceptions begin. The draws that are left
# after all trials make a leaking pair simpler.
RAISING_SHARE = 0.1
# Share of the search's draws for pairs outside the space. The search tries some of these pairs
# unless an option includes or excludes all of them. They are not certified; the report only
# mentions a clear leak, for which few draws are enough.
NOTED_SHARE = 0.1
# If inputs are vectors of query answers and the best pairs leak clearly, the search may make
# additional draws to compare these pairs: this share of its planned draws. The audit then certifies
# with fewer draws, which lowers its bound less than the choice of a worse pair would.
COMPARING_SHARE = 0.6
# Largest number of pairs in a first round of trials.
MAX_FIRST_PAIRS = 400
# Smallest number of draws of each input in a first round of trials. If the search has few draws,
# `MIN_DRAWS` is the smallest number instead.
MIN_FIRST_DRAWS = 50
# Largest number of draws of each input in a first round of trials.
MAX_FIRST_DRAWS = 1_000
# Number of pairs for which a first round with half of `MIN_FIRST_DRAWS` draws is better than fewer
# pairs, and number of pairs for which `MIN_DRAWS` are.
SEVERAL_PAIRS, _FEW_PAIRS = 64, 24
# Even if the search has few draws, each input of a trial gets at least this number of draws.
MIN_DRAWS = 10
# Average number of different inputs per pair. It is below 2, since many pairs share an input and
# its draws.
INPUTS_PER_PAIR = 1.3
# The first call of the mechanism, and the first trial that measures its speed, make this number of
# draws of each input.
_TIMED_DRAWS = 2
# Evidence below this number (in nats) is mostly luck: the best event of a pair that keeps the claim
# has more with a probability of a few percent.
LUCK = 3.0
# The speed is measured by at most this number of trials, and by fewer if they take this share of
# the search's time.
_TIMED_TRIALS, _TIMED_SHARE = 8, 1 / 10
# Types of exceptions that Python code raises for a value of the wrong type.
_OF_TYPES = frozenset({"TypeError", "AttributeError"})


class Budget:
    """The number of draws that a search may make. If the audit has a time limit, this is the number
    of draws so far plus the number that the remaining time allows at the speed so far. The first
    call of a process, which may import modules or compile code, does not count for the speed."""

    def __init__(self, spec: AuditSpec, drawing: Drawing) -> None:
        self._drawing = drawing
        self._seconds = None if spec.sampling.time is None else SEARCH_SHARE * spec.sampling.time
        self._limit = Limit(math.inf if self._seconds is None else self._seconds)
        self._planned = max(2 * MIN_FIRST_DRAWS, int(SEARCH_SHARE * spec.sampling.samples))
        self._since: tuple[float, int] | None = None

    @property
    def draws(self) -> int:
        """The number of draws that the search may make in all."""
        if self._seconds is None or self._since is None:
            return self._planned
        spent = self._drawing.draws
        return max(2 * MIN_DRAWS, spent + int(self.speed() * self._left()))

    @property
    def spent(self) -> float:
        """The share of `draws` that the search has made so far."""
        return self._drawing.draws / self.draws

    def elapsed(self) -> float:
        """Return the seconds since the clock started."""
        return self._limit.elapsed()

    def remaining_seconds(self) -> float:
        """Return the seconds until the search ends, from its budget and its speed so far."""
        if self._seconds is not None:
            return self._left()
        return max(0, self._planned - self._drawing.draws) / max(self.speed(), 1e-9)

    def places(self, share: float) -> int:
        """Return how many pairs can be tried with a share of the draws. In an audit with a time
        limit, this is `MAX_FIRST_PAIRS` (400) until `plan_by_clock` has measured the mechanism's
        speed."""
        if self._seconds is not None and self._since is None:
            return MAX_FIRST_PAIRS
        budget = self.draws_for(share)
        # Each input of a pair gets `MIN_FIRST_DRAWS` draws, or half of them if there are fewer than
        # `SEVERAL_PAIRS` pairs, or `MIN_DRAWS` if there are fewer than `_FEW_PAIRS`; then only
        # large leaks show.
        return max(
            int(budget / MIN_FIRST_DRAWS),
            min(SEVERAL_PAIRS, int(2 * budget / MIN_FIRST_DRAWS)),
            min(_FEW_PAIRS, int(budget / MIN_DRAWS)),
            1,
        )

    def draws_for(self, share: float) -> float:
        """Return, for a first round with half of a share, the number of pairs times the number of
        draws of each input."""
        return share * self.draws / (2 * INPUTS_PER_PAIR)

    def plan_by_clock(self, tried: Callable[[int, int], object]) -> None:
        """Make the first trials and measure their speed, from which the number of draws follows.
        `tried` makes a trial, from the index of a pair and a number of draws. The time limit begins
        after the first trial, which may import modules. Later draws update the speed."""
        assert self._seconds is not None
        tried(0, _TIMED_DRAWS)
        self._limit = Limit(self._seconds)
        draws = 2 * _TIMED_DRAWS
        self._since = self._limit.elapsed(), self._drawing.draws
        for index in range(_TIMED_TRIALS):
            began = self._limit.elapsed()
            tried(index, draws)
            seconds = self._limit.elapsed() - began
            if self._limit.elapsed() > _TIMED_SHARE * self._seconds:
                break
            is_fast = MIN_FIRST_DRAWS * seconds < _TIMED_SHARE * self._seconds * draws
            if draws < MIN_FIRST_DRAWS and is_fast:
                # Trials of few draws take most of their time for estimates.
                draws = MIN_FIRST_DRAWS
                self._since = self._limit.elapsed(), self._drawing.draws

    def begin(self) -> None:
        """Start the clock, after the first call of the mechanism."""
        self._limit = Limit(math.inf if self._seconds is None else self._seconds)
        if self._seconds is None:
            self._since = self._limit.elapsed(), self._drawing.draws

    def is_out_of_time(self) -> bool:
        return self._limit.is_over()

    def _left(self) -> float:
        assert self._seconds is not None
        return max(0.0, self._seconds - self._limit.elapsed())

    def speed(self) -> float:
        """Return the draws per second since the speed has been measured; 0 if there are none."""
        if self._since is None:
            return 0.0
        began, start_draws = self._since
        return (self._drawing.draws - start_draws) / max(self._limit.elapsed() - began, 1e-6)


class Input:
    """A dataset that a search tries as an input, with the draws for it.

    number: index among all inputs of the search, which identifies the dataset.
    is_alone: whether the mechanism is called once for each draw, although it can make a batch of
        draws in one call.
    """

    def __init__(self, number: int, dataset: Any, *, is_alone: bool = False) -> None:
        self.number, self.dataset, self.is_alone = number, dataset, is_alone
        self.parts: list[Outcomes] = []
        self.raised = 0
        self.kinds: set[str] = set()
        self.words = ""

    @property
    def draws(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def only_raises(self) -> bool:
        return self.raised == self.draws > 0

    @property
    def has_wrong_type(self) -> bool:
        """Whether every draw has raised a TypeError, or every draw an AttributeError. Then the
        mechanism probably rejects a type of values."""
        return self.only_raises and len(self.kinds) == 1 and self.kinds <= _OF_TYPES


@dataclass(frozen=True, slots=True, eq=False)
class Contender:
    """A proposed pair of inputs, with the estimates of its latest trial.

    estimate: lower bound on ε that an audit of the pair is expected to certify; inf if the outputs
        of the two inputs are deterministic and differ.
    hope: `estimate` with a smaller safety margin.
    upper: upper end of a 95 % interval of ε, from the event with the most evidence; NaN before the
        last round.
    order: position among the proposed pairs, in which simple pairs come first.
    draws: number of draws of both inputs together.
    has_wrong_type: whether the mechanism only rejects a type of values in one of the inputs.
    """

    proposal: Proposal
    d1: Input
    d2: Input
    order: int
    evidence: float = 0.0
    estimate: float = 0.0
    hope: float = 0.0
    upper: float = math.nan
    draws: int = 0
    has_wrong_type: bool = False

    @property
    def key(self) -> tuple[int, int]:
        """(number of d1, number of d2), which identifies the pair."""
        return self.d1.number, self.d2.number

    def rank(self, enough: float) -> tuple[float, ...]:
        """Return a sort key that is larger for a better pair.

        A pair with `has_wrong_type` is worse than all others. Other pairs are compared first by
        evidence (it counts as `enough` if larger, as none below `LUCK`), then by whether both
        inputs lie in the space, then by `hope`, then by simplicity.
        """
        evidence = min(self.evidence, enough)
        evidence = 0.0 if 0 <= evidence < LUCK else _rounded(evidence)
        return (not self.has_wrong_type, evidence, self.proposal.inside, self.hope, -self.order)


def _rounded(value: float) -> float:
    """Return a number rounded to two significant digits."""
    # Small random differences must not decide the order of pairs.
    return value if math.isinf(value) else float(f"{value:.2g}")


class Inputs:
    """The inputs of a search. `of` returns the same `Input` for equal datasets, so that pairs share
    draws. If an input could not be converted to the form, `unformed` says why, for the first
    one."""

    def __init__(self, formed: Callable[[Any], Any]) -> None:
        self._formed = formed
        self._inputs: dict[str, Input | None] = {}
        self._alone: dict[int, Input] = {}
        self.unformed = ""

    def of(self, dataset: Any) -> Input | None:
        """Return the `Input` for a dataset; None if it cannot be converted to the form."""
        key = repr(dataset)
        if "..." in key or "array(" in key:  # NumPy and pandas may leave out values
            key = digest(dataset)
        if key not in self._inputs:
            try:
                argument = self._formed(dataset)
            except DatasetError as error:
                self._inputs[key] = None
                self.unformed = self.unformed or str(error)
            else:
                self._inputs[key] = Input(len(self._inputs), argument)
        return self._inputs[key]

    def again(self, entry: Input) -> Input:
        """Return another `Input` for the dataset of `entry`, with independent draws."""
        key = f"again {entry.number}"
        if key not in self._inputs:
            self._inputs[key] = Input(len(self._inputs), entry.dataset, is_alone=entry.is_alone)
        fresh = self._inputs[key]
        assert fresh is not None
        return fresh

    def alone(self, entry: Input) -> Input:
        """Return another `Input` for the dataset of `entry`, for which each call makes one draw."""
        if entry.number not in self._alone:
            self._alone[entry.number] = Input(entry.number, entry.dataset, is_alone=True)
        return self._alone[entry.number]


class Drawing:
    """Makes the draws of a search, for one input at a time. As a context manager, it closes the
    mechanism at the end, and restores the states of the random generators. The constructor loads
    the mechanism, and raises the exceptions of `load_mechanism`."""

    def __init__(self, spec: AuditSpec) -> None:
        self.draws = 0
        self._seed = spec.sampling.seed
        self._mechanism = add_adversary(load_mechanism(spec.target), spec.claim.adversary)
        alone = one_by_one(spec)
        self._alone = None
        if alone is not None and not self._mechanism.interleaved:
            with suppress(TargetError):
                self._alone = add_adversary(load_mechanism(alone.target), spec.claim.adversary)
        self._carried = carried_generators(*self._mechanism.parts)
        self._state = kept_state(*self._mechanism.parts)
        self._stack = ExitStack()

    @property
    def single_draws(self) -> bool:
        """Whether the mechanism is called once for each draw."""
        return self._mechanism.interleaved

    @property
    def has_alone(self) -> bool:
        """Whether single calls are possible, although one call makes a batch of draws."""
        return self._alone is not None

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the variables of the mechanism that its calls have changed."""
        return tuple(changed(self._state, kept_state(*self._mechanism.parts)))

    def __enter__(self) -> Self:
        self._stack.enter_context(preserved(self._carried))
        self._stack.callback(self._mechanism.close)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def warm(self, entry: Input | None) -> None:
        """Make the first draws of the process, which may import modules or compile code."""
        if entry is not None:
            with suppress(MechanismError):
                self.fill(entry, _TIMED_DRAWS)

    def fill(self, entry: Input, draws: int) -> None:
        """Make draws for an input until it has `draws` draws in all. Raises MechanismError."""
        missing = draws - entry.draws
        if missing <= 0:
            return
        key = (0, SINGLE_STREAM if entry.is_alone else BATCH_STREAM, entry.number, len(entry.parts))
        streams = chunk_streams(self._seed, key, self._carried)
        mechanism = self._alone if entry.is_alone and self._alone is not None else self._mechanism
        # The mechanism may change the input that it gets, and later draws need it unchanged. So it
        # gets a copy.
        raw = mechanism.sample(deepcopy(entry.dataset), missing, streams.mechanism)
        outcomes = from_raw(raw, types=mechanism.types_by_draw, text_orders=mechanism.text_orders)
        if outcomes.size != missing:
            raise MechanismError(
                f"{outcomes.size:,} outputs came back where {missing:,} were asked",
                code="wrong-number-of-outputs",
            )
        entry.parts.append(outcomes)
        by_kind = failures(outcomes)
        failed = sum(by_kind.values())
        entry.kinds |= by_kind.keys()
        if failed and not entry.words:
            entry.words = next(output.words for output in raw if isinstance(output, Raised))
        entry.raised += failed
        self.draws += missing


def one_by_one(spec: AuditSpec) -> AuditSpec | None:
    """Return a copy of an audit that calls its mechanism once for each draw. Return None for a
    composition, for a mechanism in another process, and if an exception must end the audit."""
    target = spec.target
    if spec.sampling.on_error == "fail" or not isinstance(target, CallableTarget | ImportedTarget):
        return None
    return replace(spec, target=replace(target, batch_arg=NONE))


def paired(d1: Input, d2: Input, draws: int, start: int = 0) -> SelectionDraws:
    """Return the draws with the indexes `start` to `draws` of each of two inputs, in random order.
    The order is random since cross-validation makes its folds by position, and each fold needs
    draws of both inputs."""
    outcomes = [concatenate(entry.parts).take(slice(start, draws)) for entry in (d1, d2)]
    size = draws - start
    is_d1 = np.arange(2 * size) < size
    order = np.random.default_rng(draws).permutation(2 * size)
    return SelectionDraws(concatenate(outcomes).take(order), is_d1[order])
