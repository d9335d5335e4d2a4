"""Checks of an audit (docs/method.md §11).

Are its draws independent, and do they vary? Have its inputs the right type? Do calls use the
mechanism up? After a refutation: do new processes draw as this one did? Noise that is drawn when a
module is imported, or that is seeded by the clock, is the same in all draws of one process, so that
no draw of that process shows it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpaudit.adapters.calls import names_after_dataset
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.certificate import Block, Certificate, Redrawn
from dpaudit.certificates.replay import tally as replay_tally
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws, Tally, by_arm, pool
from dpaudit.errors import MechanismError, UsageError
from dpaudit.inputs.pairs import NeighbouringPair, describe_pair, differ_in_type, with_type
from dpaudit.levels.portfolio import Portfolio
from dpaudit.outcomes import Raised
from dpaudit.sampling.chunks import Failures, Head, Measure, ToCount, ToLearn
from dpaudit.sampling.executors import Drawer, new_processes
from dpaudit.sampling.executors.new_processes import Answers, NewProcesses
from dpaudit.sampling.executors.pools import Recipe
from dpaudit.sampling.independence import (
    CHECKS,
    WARNED,
    all_equal,
    between_processes,
    check_blocks,
    check_calls,
    check_computed,
    check_further,
    check_heads,
    check_independence,
    constant,
    doubt,
)
from dpaudit.sampling.sampler import Sampler
from dpaudit.sampling.state import changed, kept_state
from dpaudit.targets.construction import is_made
from dpaudit.targets.parameters import Calling
from dpaudit.targets.target import AnyTarget, ImportedTarget, IsolatedTarget
from dpaudit.wording import counted, shown

# A refutation by fewer draws may rest on noise that calls share: a few blocks have only a few calls
# of each input to compare.
_FEW_DRAWS = 100_000
# Draw more if the e-value is at least 2, as in one of a hundred runs of independent draws, or if a
# call makes many draws.
_SUSPECT_E_VALUE = 2.0
# Further draws come in 32 blocks: 1,000 draws in all if each takes a call; else the number of draws
# that refuted, within limits.
_FURTHER_BLOCKS = 32
_FURTHER_SINGLE_DRAWS = 1_000
_LEAST_FURTHER, _MOST_FURTHER = 8_000, 20_000
# Rules that count while an audit learns, at most; each takes this part of the probability of a
# false warning.
_MOST_RULES = 64

# Calls after the first exception that must raise, too, before a mechanism counts as used up.
_FURTHER_CALLS = 100
# Seconds for all of these calls, and calls of each input at a time.
_EXHAUSTION_SECONDS = 2.0
_CALLS_AT_A_TIME = 2_048
# Variables that a message names.
_NAMED = 3


class DrawChecks:
    """The checks of the draws of one pair.

    Each returns warnings, and raises MechanismError for counts that independent draws cannot have.
    """

    def __init__(self, spec: AuditSpec, drawer: Drawer) -> None:
        self._spec, self._drawer = spec, drawer
        # Probability of a false warning of one check.
        self._level = 1 / len(spec.pairs) * WARNED / CHECKS

    def learned(
        self, draws: SelectionDraws, blocks: Sequence[Block], point: ProfilePoint
    ) -> list[str]:
        """Check the draws in the buffer, which were made in these blocks."""
        sizes = [block.draws for block in blocks]
        warnings = check_independence(draws, sizes, point, self._level)
        return warnings + ([] if is_timed(self._spec) else check_calls(draws, sizes, self._level))

    def learned_again(self, tallies: Sequence[Tally], rule: Portfolio) -> list[str]:
        """Check draws that a rule has counted while the audit learned."""
        level = self._level / _MOST_RULES
        return [] if is_timed(self._spec) else check_blocks(tallies, rule.guesses, level)

    def counted(
        self,
        selection: SelectionDraws,
        blocks: Sequence[Block],
        heads: Sequence[Head],
        rule: Portfolio,
    ) -> list[str]:
        """Check draws that the frozen rule has counted. selection: the draws in the buffer."""
        check_heads(selection, heads)
        return (
            []
            if is_timed(self._spec)
            else check_blocks(_tallies(blocks), rule.guesses, self._level)
        )

    def varied(
        self,
        kept: SelectionDraws,
        blocks: Sequence[Block],
        rule: Portfolio,
        unseen: tuple[int, int] | None,
    ) -> list[str]:
        """Return a warning when all draws of both inputs gave one output.

        kept: the buffer, and rare outputs of later draws.  unseen: number of certifying draws of d1
        and of d2 with other outputs; None where they were not compared, as after a refutation.
        """
        later = sum(_tallies(blocks), Tally.empty(rule.levels))
        is_spread = int((later.counts.sum(axis=1) > 0).sum()) > 1
        if is_spread or any(unseen or ()) or not all_equal(kept.outcomes):
            return []
        if self._spec.claim.adversary is None:  # an adversary may answer None to everything
            check_computed(kept.outcomes)
        of_d1, of_d2 = sum(replay_tally(block).counts.sum(axis=0) for block in blocks)
        return [constant(kept.outcomes.word(0), (int(of_d1), int(of_d2)), self._spec.alpha)]

    def doubted(
        self,
        stream: tuple[int, int],
        blocks: Sequence[Block],
        measure: Measure,
        guesses: NDArray[np.int64],
        *,
        is_cheap: bool,
        most: int,
    ) -> list[str]:
        """Check more draws after a refutation by few, if draws seem to depend on their call, or if
        more draws are cheap.

        stream: pair and stage, which name the random streams.  guesses: of the rule that refutes.
        is_cheap: a call makes many draws.  most: outcomes in memory.
        """
        tallies = _tallies(blocks)
        draws = sum(tally.draws for tally in tallies)
        if is_timed(self._spec) or draws >= _FEW_DRAWS:
            return []
        before = doubt(tallies, guesses)
        if before < math.log(_SUSPECT_E_VALUE) and not is_cheap:
            return []
        size = _FURTHER_SINGLE_DRAWS
        if is_cheap:
            size = min(max(draws, _LEAST_FURTHER), _MOST_FURTHER)
        sizes = [min(size, most) // _FURTHER_BLOCKS] * _FURTHER_BLOCKS
        chunks = (ToLearn((*stream, number), each) for number, each in enumerate(sizes))
        further = [drawn.fresh.release() for drawn in self._drawer(chunks)]
        rule = measure.portfolio
        tallies = [Tally(by_arm(rule(part.outcomes), rule.levels, part.is_d1)) for part in further]
        return check_further(pool(further), tallies, guesses, self._level, before)


def is_timed(spec: AuditSpec) -> bool:
    """Return whether outcomes depend on the load of the machine, which differs between blocks."""
    limits = getattr(spec.target, "limits", None)
    return spec.timing or getattr(limits, "timeout", None) is not None


def _tallies(blocks: Sequence[Block]) -> list[Tally]:
    """Return the tallies of all blocks but those of learning."""
    return [replay_tally(block) for block in blocks if block.stage != "learning"]


def check_inputs(pair: NeighbouringPair, failures: Failures, draws: tuple[int, int]) -> None:
    """Raise MechanismError where one input always raises the same TypeError or AttributeError, the
    other does not, and the inputs differ in type.

    That is more often a mistake than data of a user. An error of both inputs may come from params
    or from the code.

    draws: all draws of d1 and of d2.
    """
    for arm, (name, dataset) in enumerate((("d1", pair.d1), ("d2", pair.d2))):
        counts = failures.counts.items()
        always = (kind for kind, count in counts if 0 < draws[arm] == count[arm] and count != draws)
        kind = next(filter(_is_of_types, always), None)
        if kind is not None and differ_in_type(pair.d1, pair.d2):
            other, another = ("d2", pair.d2) if arm == 0 else ("d1", pair.d1)
            raise MechanismError(
                f"{name} always raises {failures.first[kind].words}; {name} is "
                f"{with_type(dataset)}, and {other} is {with_type(another)}. Fix {name}; if users "
                "can send such data, the exception itself is the leak: give --on-error outcome "
                "(on_error: outcome)",
                code="always-raises",
            )


def _is_of_types(kind: str) -> bool:
    # UFuncTypeError and others are NumPy's subclasses of TypeError.
    return kind in ("TypeError", "AttributeError") or kind.lstrip("_").startswith("UFunc")


def doubtful_inputs(pair: NeighbouringPair, certificate: Certificate) -> list[str]:
    """Return a warning for each input whose draws are all exceptions.

    Such an exception may be the worst of leaks; more often the input has a wrong type.
    """
    counts = certificate.failures.values()
    drawn = sum(replay_tally(block).counts.sum(axis=0) for block in certificate.blocks)
    return [
        f"{name} always raises ({drawn[arm]:,} draws): {describe_pair(pair.d1, pair.d2)}. Fix "
        f"{name}; if users can send such data, the exception itself is the leak"
        for arm, name in enumerate(("d1", "d2"))
        if 0 < drawn[arm] == sum(count[arm] for count in counts)
    ]


def listed(names: Sequence[str]) -> str:
    """Return the first few names, joined."""
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


class _Exhaustion(NamedTuple):
    """calls: number of calls before all others raise.  raised: the first exception, in words.
    names: variables that calls change.  how, function: of the mechanism, where known."""

    calls: int
    raised: str
    names: tuple[str, ...]
    how: Calling | None
    function: Any


def exhausted(
    make: Callable[[], Sampler], target: AnyTarget, pair: NeighbouringPair, most: int
) -> str | None:
    """Return a message that calls use a new mechanism up, with the remedy; None if they do not.

    A mechanism is used up when all calls after a certain one raise, as those of an object with a
    privacy budget do. Its exceptions show the number of calls, and nothing about d1 and d2.

    most: number of calls to make.
    """
    deadline = time.monotonic() + _EXHAUSTION_SECONDS
    # Twice, with two seeds: exceptions by chance do not begin after the same call.
    first, second = (_exhaustion(make, pair, most, deadline, seed) for seed in range(2))
    if first is None or second is None or first.calls != second.calls:
        return None
    kept = f"calls change {listed(first.names)}, so" if first.names else "it keeps state, so"
    return (
        f"the mechanism is used up: after {counted(first.calls, 'call')} of a new one, every "
        f"further call raises {first.raised}; {kept} that draws are not independent; audit a "
        "function that makes a new object for each draw"
        f"{_example(target, first.how, first.function)}"
    )


def _exhaustion(
    make: Callable[[], Sampler], pair: NeighbouringPair, most: int, deadline: float, seed: int
) -> _Exhaustion | None:
    sampler, rng = make(), np.random.default_rng(seed)
    raised: list[Raised | None] = []
    try:
        before = kept_state(*sampler.mechanism.parts)
        while time.monotonic() < deadline and len(raised) < most + _FURTHER_CALLS:
            # Half of the calls before, so that slow calls end soon after the deadline.
            inputs = [pair.d1, pair.d2] * min(max(1, len(raised) // 2), _CALLS_AT_A_TIME)
            outputs = sampler.mechanism.sample_each(inputs, rng)
            raised += [output if isinstance(output, Raised) else None for output in outputs]
            calls = next((place for place, error in enumerate(raised) if error is not None), most)
            if calls + _FURTHER_CALLS <= len(raised):
                break
        else:
            return None
        first = raised[calls]
        if first is None or calls == 0 or not all(raised[calls : calls + _FURTHER_CALLS]):
            return None
        names = changed(before, kept_state(*sampler.mechanism.parts))
        how, function = (getattr(sampler.mechanism, name, None) for name in ("how", "function"))
        return _Exhaustion(calls, first.words, names, how, function)
    finally:
        sampler.close()


def _example(target: AnyTarget, how: Calling | None, function: Any) -> str:
    """Return the source of a function that makes a new object for each draw; "" if unknown.

    how: to call the method.  function: the method, if it is in this process.
    """
    is_here = isinstance(target, ImportedTarget)
    if isinstance(target, IsolatedTarget):
        target = target.target
    if not isinstance(target, ImportedTarget) or how is None:
        return ""
    if not (target.init is not None or target.factory or (is_here and is_made(target))):
        return ""
    init = target.init or ()
    if isinstance(init, dict):
        made_from = ", ".join(f"{key}={shown(value, 40)}" for key, value in init.items())
    else:
        made_from = ", ".join(shown(value, 40) for value in init)
    called = f"{target.path.rpartition(':')[2]}({made_from}){f'.{target.call}' * bool(target.call)}"
    data = how.data or "data"
    names = [*target.params, *filter(None, [how.rng])]
    after = [] if function is None else names_after_dataset(function)[: len(names)]
    is_by_position = how.data is None and set(after) == set(names)
    given = after if is_by_position else [f"{name}={name}" for name in names]
    given = [data if how.data is None else f"{data}={data}", *given]
    if how.alone is not None:
        given.append(f"{how.alone}=1")
    returned = f"{called}({', '.join(given)}){'' if how.alone is None else '[0]'}"
    parameters = ", ".join([data, *(after if is_by_position else names)])
    return f": def {target.call or 'draw'}({parameters}): return {returned}"


# Draws of each process: 1/8 of the draws that refuted, within limits.
_REDRAWN_SHARE = 1 / 8
_LEAST_REDRAWN, _MOST_REDRAWN = 8, 250
# The draws of one process may take this many seconds; fewer draws than these show nothing.
_REDRAWING_SECONDS = 0.5
_TOO_FEW = 4
# Probability, at most, that independent draws seem to differ.
DIFFERENT = 1e-3
# Each process draws again from this e-value on, which at most half of all audits of independent
# draws reach.
_REDRAWN_TWICE_E_VALUE = 2.0
# Probability that noise which each process draws once for each input (Laplace of scale 1, outputs
# that differ by 1) falls on the same sides of a threshold in 0, 1, 2, ... new processes: simulated.
_UNNOTICED = (1.0, 0.28, 0.11, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
# A smaller probability is no reason for a warning.
_UNLIKELY = 0.01

_BY_TIMES = "outcomes depend on elapsed times, which differ between processes"
_TOO_SLOW = "one draw takes {:.2g} s, and all of them may take 5 s"


@dataclass(frozen=True, slots=True, eq=False)
class Refutation:
    """The certified draws that refuted the claim, and the rule that counted them.

    stream: pair and stage, which name the random streams of new draws.
    kinds: kinds of exceptions among the draws.
    is_number: whether all outputs are single numbers, which the order of a set does not change.
        That order follows from the hash seed of a process.
    """

    stream: tuple[int, int]
    blocks: Sequence[Block]
    measure: Measure
    guesses: NDArray[np.int64]
    kinds: Collection[str]
    is_number: bool


@dataclass(frozen=True, slots=True, eq=False)
class Redrawing:
    """Compares refutations of one audit with draws of new processes.

    make: returns a sampler, here or in another process.  seconds: duration of one draw.
    wait: called while new processes draw.
    """

    spec: AuditSpec
    processes: NewProcesses
    make: Callable[[], Sampler]
    seconds: float
    wait: Callable[[], None]

    def compared(self, refuted: Refutation) -> tuple[Redrawn, str]:
        """Return a record of the comparison, and how the draws differ beyond chance.

        The text is empty if they do not differ. For independent draws, it has words with a
        probability of at most `DIFFERENT`.
        """
        if is_timed(self.spec):
            return Redrawn(0, 0, _BY_TIMES), ""
        most = min(_MOST_REDRAWN, int(_REDRAWING_SECONDS / max(self.seconds, 1e-9)))
        if most < _TOO_FEW:
            return Redrawn(0, 0, _TOO_SLOW.format(self.seconds)), ""
        try:
            recipe = Recipe.of(self.make)
        except UsageError as error:
            return Redrawn(0, 0, str(error)), ""
        certified = [replay_tally(one) for one in refuted.blocks if one.stage != "learning"]
        first = sum(certified, Tally.empty(refuted.measure.portfolio.levels))
        size = min(most, max(_LEAST_REDRAWN, int(first.draws * _REDRAWN_SHARE)))
        answers = self._answers(recipe, refuted, 0, new_processes.PROCESSES, size)
        processes = len(answers.drawn)
        if answers.failed or not processes:
            return Redrawn(0, 0, answers.why), ""
        every = [one.tally for one in answers.drawn]
        # Two tests, each with half of the error probability: the first one decides only whether
        # there is a second.
        evidence, words = between_processes(first, every, refuted.guesses, DIFFERENT / 2)
        if not words and evidence >= math.log(_REDRAWN_TWICE_E_VALUE):
            further = self._answers(recipe, refuted, new_processes.PROCESSES, processes, most)
            tallies = [one.tally for one in further.drawn]
            _, words = between_processes(first, tallies, refuted.guesses, DIFFERENT / 2)
            every += tallies
        return Redrawn(processes, sum(one.draws for one in every), answers.why), words

    def _answers(
        self, recipe: Recipe, refuted: Refutation, begin: int, processes: int, size: int
    ) -> Answers:
        """Return the draws of new processes. begin: number of the first random stream."""
        numbers = range(begin, begin + processes)
        chunks = [ToCount((*refuted.stream, n), size, refuted.measure) for n in numbers]
        answers = self.processes.draw(recipe, chunks, own_hashes=refuted.is_number, look=self.wait)
        for drawn in answers.drawn:
            for kind in drawn.failures.counts.keys() - set(refuted.kinds):
                words = drawn.failures.first[kind].words
                return Answers([], f"a new process raises {words}", failed=True)
        return answers


def redrawing_remarks(redrawn: Redrawn | None) -> tuple[list[str], list[str]]:
    """Return warnings and notes about a comparison; none where no comparison was asked for.

    With few processes, compared or because all took too long, noise that a process draws once may
    look like a leak, which is a warning.
    """
    if redrawn is None:
        return [], []
    processes, wanted = redrawn.processes, new_processes.PROCESSES
    notes = [] if processes else [f"not compared with draws of new processes: {redrawn.note}"]
    share = _UNNOTICED[min(processes, len(_UNNOTICED) - 1)]
    is_late = processes > 0 or redrawn.note == new_processes.late(0)
    if not is_late or processes == wanted or share <= _UNLIKELY:
        return [], notes
    warning = (
        f"only {processes} of {wanted} new processes could be compared with this one "
        f"({redrawn.note}): noise that a process draws once, such as when a module is imported, "
        f"would pass for a leak in about {100 * share:g} % of such audits"
    )
    return [warning], notes


def state_words(names: Sequence[str], redrawn: Redrawn | None, is_reproducible: bool = True) -> str:
    """Return a warning that calls change variables.

    redrawn: comparison with new processes, which shows whether outputs depend on the variables.
    """
    unlike = "" if is_reproducible else "equal seeds do not give equal outcomes, and "
    words = f"{unlike}the mechanism keeps state between calls (calls changed {listed(names)}); "
    if redrawn is not None and redrawn.processes:
        processes = counted(redrawn.processes, "new process")
        return f"{words}{processes}, which begin without it, drew as this one did"
    return (
        f"{words}no new process was compared with this one, and if the outputs depend on that "
        "state, they are not independent and may refute a claim that holds"
    )
