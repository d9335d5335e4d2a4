"""Checks of the assumptions of an audit (docs/method.md §11), for engine.py and pair_audit.py.

`DrawChecks` checks that the draws of a pair are independent and vary. `check_inputs` and
`doubtful_inputs` check the types of d1 and d2. `exhausted` checks whether a mechanism fails after
some calls. `Redrawing` compares a refutation with draws of new processes: noise that is drawn when
a module is imported is equal in all draws of one process, so only other processes show it.

A check returns texts for the report, or raises MechanismError if the audit would be invalid. A
block is a group of consecutive draws. A level is a bin of outputs. A tally is the (levels, 2) array
of counts of draws by level and input. A rule guesses the input from the level of an output and is
frozen before the draws that it counts. Its guesses are an array with one entry per level: 1 guesses
d1, -1 guesses d2, 0 abstains.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.adapters.calls import names_after_dataset
from dpaudit.auditing.counting import DOUBTING, REDRAWING, Ledger
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.certificate import Block, Certificate, Redrawn
from dpaudit.certificates.wealth import tally as replay_tally
from dpaudit.draws import SelectionDraws, Tally, by_arm, pool
from dpaudit.errors import MechanismError, UsageError
from dpaudit.inputs.pairs import NeighbouringPair, describe_pair, differ_in_type, with_type
from dpaudit.levels.portfolio import Portfolio
from dpaudit.outcomes import Raised
from dpaudit.sampling import independence
from dpaudit.sampling.chunks import Failures, Measure, ToCount, ToLearn
from dpaudit.sampling.executors import new_processes
from dpaudit.sampling.executors.new_processes import Answers, NewProcesses
from dpaudit.sampling.executors.pools import Recipe
from dpaudit.sampling.sampler import Sampler
from dpaudit.sampling.state import changed, kept_state
from dpaudit.targets.construction import is_made
from dpaudit.targets.parameters import Calling
from dpaudit.targets.target import AnyTarget, ImportedTarget, IsolatedTarget
from dpaudit.wording import counted, shown

# A refutation by fewer draws than this number is checked with further draws: such a refutation has
# too few calls to show noise that is shared within a call (docs/method.md §11, "Few draws").
_FEW_DRAWS = 100_000
# The checks of `doubted` make further draws if an e-value is at least this number. An e-value
# measures the evidence that draws depend on their call, or that processes draw from different
# distributions. If draws are independent, about 1 of 100 audits reaches 2 for calls, and at most
# half reach 2 for processes.
_SUSPECT_E_VALUE = 2.0
# Number of blocks into which the further draws of a refutation are divided.
_FURTHER_BLOCKS = 32
# Number of further draws from a mechanism that makes one draw per call.
_FURTHER_SINGLE_DRAWS = 1_000
# Minimum and maximum number of further draws from a mechanism that makes many draws per call.
_LEAST_FURTHER, _MOST_FURTHER = 8_000, 20_000
# Each call of `DrawChecks.learned_again` has 1/64 of the probability of a false warning: an audit
# learns at most about 64 rules while it counts learning draws.
_MOST_RULES = 64

# Number of calls after the first exception that must all raise before a mechanism counts as
# exhausted.
_FURTHER_CALLS = 100
# Maximum time, in seconds, of the check whether a mechanism is exhausted.
_EXHAUSTION_SECONDS = 2.0
# In the check whether a mechanism is exhausted, maximum number of calls with each input between two
# readings of the clock.
_CALLS_AT_A_TIME = 2_048


class DrawChecks:
    """The checks of the draws of one pair, which are recorded in `ledger`.

    Each method returns a list of warnings, and raises MechanismError for counts that independent
    draws cannot have. Calls and blocks are not compared if outputs depend on elapsed times.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._spec = ledger, ledger.spec
        self._is_timed = is_timed(ledger.spec)
        # Probability that one check of this pair warns although the draws are independent.
        self._level = 1 / len(ledger.spec.pairs) * independence.WARNED / independence.CHECKS
        # Number of further draws that `doubted` has made.
        self._further = 0

    def learned(self, draws: SelectionDraws) -> list[str]:
        """Return warnings about the independence of the draws in the sample buffer."""
        sizes = [block.draws for block in self._ledger.blocks]
        warnings = independence.check_independence(draws, sizes, self._ledger.point, self._level)
        if not self._is_timed:
            warnings += independence.check_calls(draws, sizes, self._level)
        return warnings

    def learned_again(self, tallies: Sequence[Tally], rule: Portfolio) -> list[str]:
        """Return warnings about the independence of learning draws that were counted but not kept.

        tallies: counts of each block of these draws by the levels of `rule`.
        rule: rule that was learned from earlier draws.
        """
        level = self._level / _MOST_RULES
        return [] if self._is_timed else independence.check_blocks(tallies, rule.guesses, level)

    def counted(self, selection: SelectionDraws, rule: Portfolio) -> list[str]:
        """Return warnings about the independence of the draws that the frozen rule has counted.

        selection: draws in the sample buffer.
        """
        independence.check_heads(selection, self._ledger.heads)
        if self._is_timed:
            return []
        tallies = certifying_tallies(self._ledger)
        return independence.check_blocks(tallies, rule.guesses, self._level)

    def varied(
        self, kept: SelectionDraws, rule: Portfolio, unseen: tuple[int, int] | None
    ) -> list[str]:
        """Return a warning if all draws of both inputs gave one output, else an empty list.

        kept: draws in the sample buffer, and later draws with rare outputs.
        rule: the frozen rules that counted draws.
        unseen: number of certifying draws of d1 and of d2 whose outputs are not in `kept`; None if
            the outputs were not compared, as after a refutation.
        """
        later = sum(certifying_tallies(self._ledger), Tally.empty(rule.levels))
        is_spread = int((later.counts.sum(axis=1) > 0).sum()) > 1
        if is_spread or any(unseen or ()) or not independence.all_equal(kept.outcomes):
            return []
        if self._spec.claim.adversary is None:  # an adversary may answer None for every output
            independence.check_computed(kept.outcomes)
        arms = _arms(self._ledger.blocks)
        return [independence.constant(kept.outcomes.word(0), arms, self._spec.alpha)]

    def further_words(self) -> list[str]:
        """Return a note on the draws that `doubted` made after bets alone had ended the run."""
        if not (self._further and self._ledger.ends_by_bets):
            return []
        draws = counted(self._further, "further draw")
        return [f"{draws} after the refutation checked whether draws depend on their call"]

    def doubted(
        self, measure: Measure, guesses: NDArray[np.int64], tallies: Sequence[Tally]
    ) -> list[str]:
        """Return warnings after a refutation by few draws, from a check of further draws.

        Further draws are made if the draws so far seem to depend on their call, or if the mechanism
        makes many draws per call.

        measure: the frozen rules that count draws.
        guesses: (levels,), the guesses of the rule that refutes the claim.
        tallies: counts of the draws that the rule has counted, one tally for each block.
        """
        ledger, limits = self._ledger, self._ledger.plan.limits
        draws = sum(tally.draws for tally in tallies)
        if self._is_timed or draws >= _FEW_DRAWS:
            return []
        before = independence.doubt(tallies, guesses)
        if before < math.log(_SUSPECT_E_VALUE) and limits.single_draws:
            return []
        size = _FURTHER_SINGLE_DRAWS
        if not limits.single_draws:
            size = min(max(draws, _LEAST_FURTHER), _MOST_FURTHER)
        size = min(size, limits.learned)
        if ledger.ends_by_bets:  # draws are slow: use no more
            size = min(size, ledger.spent)
        sizes = [max(1, size // _FURTHER_BLOCKS)] * min(size, _FURTHER_BLOCKS)
        self._further = sum(sizes)
        chunks = (
            ToLearn((ledger.number, DOUBTING, place), each) for place, each in enumerate(sizes)
        )
        further = [drawn.fresh.release() for drawn in ledger.drawer(chunks)]
        rule = measure.portfolio
        tallies = [Tally(by_arm(rule(part.outcomes), rule.levels, part.is_d1)) for part in further]
        return independence.check_further(pool(further), tallies, guesses, self._level, before)


def is_timed(spec: AuditSpec) -> bool:
    """Return whether outputs depend on elapsed times, which differ between blocks."""
    limits = getattr(spec.target, "limits", None)
    return spec.statistics.timing or getattr(limits, "timeout", None) is not None


def certifying_tallies(ledger: Ledger) -> list[Tally]:
    """Return the tally of each block that was not used for learning."""
    return [replay_tally(block) for block in ledger.blocks if block.stage != "learning"]


def _arms(blocks: Sequence[Block]) -> tuple[int, int]:
    d1, d2 = sum(replay_tally(block).counts.sum(axis=0) for block in blocks)
    return int(d1), int(d2)


def check_inputs(pair: NeighbouringPair, failures: Failures, draws: tuple[int, int]) -> None:
    """Raise MechanismError if d1 or d2 alone seems to have the wrong type.

    The error is raised if one input always raises a TypeError or an AttributeError, the other input
    does not always raise that kind of exception, and the two inputs differ in type. Such an input
    is more often a mistake of the user than data that the mechanism has to accept.

    failures: exceptions among the draws.  draws: number of all draws of d1 and of d2.
    """
    sides = ("d1", pair.d1), ("d2", pair.d2)
    for arm, (name, dataset) in enumerate(sides):
        counts = failures.counts.items()
        always = (kind for kind, count in counts if 0 < draws[arm] == count[arm] and count != draws)
        kind = next(filter(_is_of_types, always), None)
        if kind is not None and differ_in_type(pair.d1, pair.d2):
            other, another = sides[1 - arm]
            raise MechanismError(
                f"{name} always raises {failures.first[kind].words}; {name} is "
                f"{with_type(dataset)}, and {other} is {with_type(another)}. Fix {name}; if users "
                "can send such data, the exception itself is the leak: give --on-error outcome "
                "(on_error: outcome)",
                code="always-raises",
            )


def _is_of_types(kind: str) -> bool:
    # NumPy raises subclasses of TypeError: UFuncTypeError, _UFuncNoLoopError, ...
    return kind in ("TypeError", "AttributeError") or kind.lstrip("_").startswith("UFunc")


def doubtful_inputs(pair: NeighbouringPair, certificate: Certificate) -> list[str]:
    """Return a warning for each input whose draws are all exceptions.

    An exception that only one input raises may be a large leak; more often the input has a wrong
    type.
    """
    drawn, counts = _arms(certificate.blocks), certificate.failures.values()
    return [
        f"{name} always raises ({drawn[arm]:,} draws): {describe_pair(pair.d1, pair.d2)}. Fix "
        f"{name}; if users can send such data, the exception itself is the leak"
        for arm, name in enumerate(("d1", "d2"))
        if 0 < drawn[arm] == sum(count[arm] for count in counts)
    ]


def listed(names: Sequence[str]) -> str:
    """Return the first three names, separated by commas; further names become an ellipsis."""
    return ", ".join([*names[:3], *(["…"] if len(names) > 3 else [])])


def exhausted(
    make: Callable[[], Sampler], target: AnyTarget, pair: NeighbouringPair, most: int
) -> str | None:
    """Return an error message, with a remedy, if the mechanism is exhausted; else None.

    A mechanism is exhausted if every call raises an exception after a certain number of calls. An
    example is an object whose privacy budget is used up. Such exceptions depend on the number of
    calls, not on d1 and d2.

    make: returns a sampler with a new mechanism.  pair: the inputs to call the mechanism with.
    most: maximum number of calls before the first exception.
    """
    deadline = time.monotonic() + _EXHAUSTION_SECONDS
    # Two trials with different seeds: random exceptions would begin after different calls.
    first, second = (_exhaustion(make, target, pair, most, deadline, seed) for seed in range(2))
    return None if first is None or second is None or first[0] != second[0] else first[1]


def _exhaustion(
    make: Callable[[], Sampler],
    target: AnyTarget,
    pair: NeighbouringPair,
    most: int,
    deadline: float,
    seed: int,
) -> tuple[int, str] | None:
    """Return the number of calls that succeed before all further calls raise, and a message.

    Returns None if the mechanism does not seem exhausted, or if time runs out before this is known.

    deadline: time at which the check ends, in seconds of `time.monotonic`.
    """
    sampler, rng = make(), np.random.default_rng(seed)
    mechanism, raised = sampler.mechanism, list[Raised | None]()
    try:
        before = kept_state(*mechanism.parts)
        while time.monotonic() < deadline and len(raised) < most + _FURTHER_CALLS:
            # Each step doubles the number of calls, so that a step of slow calls ends soon after
            # the deadline.
            inputs = [pair.d1, pair.d2] * min(max(1, len(raised) // 2), _CALLS_AT_A_TIME)
            outputs = mechanism.sample_each(inputs, rng)
            raised += [output if isinstance(output, Raised) else None for output in outputs]
            calls = next((place for place, error in enumerate(raised) if error is not None), most)
            if calls + _FURTHER_CALLS <= len(raised):
                break
        else:
            return None
        first = raised[calls]
        if first is None or calls == 0 or not all(raised[calls : calls + _FURTHER_CALLS]):
            return None
        names = changed(before, kept_state(*mechanism.parts))
        how, function = (getattr(mechanism, name, None) for name in ("how", "function"))
        kept = f"calls change {listed(names)}, so" if names else "it keeps state, so"
        return calls, (
            f"the mechanism is used up: after {counted(calls, 'call')} of a new one, every "
            f"further call raises {first.words}; {kept} that draws are not independent; audit a "
            f"function that makes a new object for each draw{_example(target, how, function)}"
        )
    finally:
        sampler.close()


def _example(target: AnyTarget, how: Calling | None, function: Any) -> str:
    """Return Python source, for a message, of a function that makes a new object for each draw.

    Returns "" if no such source can be written.

    target: how the mechanism is made.  how: parameters with which the mechanism is called.
    function: the function that is called; None if it runs in another process.
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


# Draws of each new process, as a fraction of the draws that refuted the claim.
_REDRAWN_SHARE = 1 / 8
# Minimum and maximum number of draws of each new process in the first comparison.
_LEAST_REDRAWN, _MOST_REDRAWN = 8, 250
# Planned maximum time, in seconds, for the draws of one new process.
_REDRAWING_SECONDS = 0.5
# If fewer draws than this number fit in `_REDRAWING_SECONDS`, no new processes are compared.
_TOO_FEW = 4
# Maximum probability that independent draws of several processes are reported as different.
DIFFERENT = 1e-3
# Entry n is the probability that a comparison of n new processes misses noise that each process
# draws only once per input. Simulated with Laplace noise of scale 1; the outputs without noise for
# d1 and d2 differ by 1.
_UNNOTICED = (1.0, 0.28, 0.11, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
# Largest probability of missing such noise without a warning: a comparison of n processes warns if
# entry n of `_UNNOTICED` is larger.
_UNLIKELY = 0.01

_BY_TIMES = "outcomes depend on elapsed times, which differ between processes"
_TOO_SLOW = "one draw takes {:.2g} s, and all of them may take 5 s"


@dataclass(frozen=True, slots=True, eq=False)
class Refutation:
    """The draws that refuted the claim, and the rule that counted the draws.

    ledger: the draws of the pair.  measure: the frozen rules that count draws.
    guesses: (levels,), the guesses of the rule that refutes the claim.
    tallies: counts by level and input of the draws that the rule counted, block by block.
    is_number: whether all outputs are single numbers. If so, new processes may have other hash
        seeds: a hash seed changes the order of sets, which affects a number by rounding at most.
    """

    ledger: Ledger
    measure: Measure
    guesses: NDArray[np.int64]
    is_number: bool
    tallies: tuple[Tally, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Redrawing:
    """Compares refutations of one audit with draws of new processes.

    processes: the new processes, which several audits may use.
    make: returns a sampler; can be sent to another process.  seconds: duration of one draw.
    wait: called without arguments while new processes draw.
    """

    spec: AuditSpec
    processes: NewProcesses
    make: Callable[[], Sampler]
    seconds: float
    wait: Callable[[], None]

    def compared(self, refuted: Refutation) -> tuple[Redrawn, str]:
        """Return a record of the comparison, and a description of a difference between processes.

        The description is "" if no difference was found. For independent draws, the description is
        not empty with a probability of at most `DIFFERENT`.
        """
        if is_timed(self.spec):
            return Redrawn(0, 0, _BY_TIMES), ""
        most = min(_MOST_REDRAWN, int(_REDRAWING_SECONDS / max(self.seconds, 1e-9)))
        may_repeat = True
        if refuted.ledger.ends_by_bets:  # draws are slow: use no more
            each = refuted.ledger.spent // new_processes.PROCESSES
            may_repeat = each >= 2 * _TOO_FEW
            most = min(most, each // 2 if may_repeat else max(each, _TOO_FEW))
        if most < _TOO_FEW:
            return Redrawn(0, 0, _TOO_SLOW.format(self.seconds)), ""
        try:
            recipe = Recipe.of(self.make)
        except UsageError as error:
            return Redrawn(0, 0, str(error)), ""
        levels = refuted.measure.portfolio.levels
        first = sum(refuted.tallies, Tally.empty(levels))
        size = min(most, max(_LEAST_REDRAWN, int(first.draws * _REDRAWN_SHARE)))
        answers = self._answers(recipe, refuted, 0, new_processes.PROCESSES, size)
        processes = len(answers.drawn)
        if answers.failed or not processes:
            return Redrawn(0, 0, answers.why), ""
        every = [one.tally for one in answers.drawn]
        # Each of the two tests has half of the error probability. The first test only decides
        # whether the second one is carried out.
        compare = partial(independence.between_processes, first)
        evidence, words = compare(every, refuted.guesses, DIFFERENT / 2)
        if not words and may_repeat and evidence >= math.log(_SUSPECT_E_VALUE):
            further = self._answers(recipe, refuted, new_processes.PROCESSES, processes, most)
            tallies = [one.tally for one in further.drawn]
            _, words = compare(tallies, refuted.guesses, DIFFERENT / 2)
            every += tallies
        return Redrawn(processes, sum(one.draws for one in every), answers.why), words

    def _answers(
        self, recipe: Recipe, refuted: Refutation, begin: int, processes: int, size: int
    ) -> Answers:
        """Return the counts of draws of new processes.

        begin: number of the first random stream.  processes: number of new processes.
        size: number of draws of each process.
        """
        stream, numbers = (refuted.ledger.number, REDRAWING), range(begin, begin + processes)
        chunks = [ToCount((*stream, n), size, refuted.measure) for n in numbers]
        answers = self.processes.draw(recipe, chunks, own_hashes=refuted.is_number, look=self.wait)
        for drawn in answers.drawn:
            for kind in drawn.failures.counts.keys() - refuted.ledger.failures.counts.keys():
                words = drawn.failures.first[kind].words
                return Answers([], f"a new process raises {words}", failed=True)
        return answers


def redrawing_remarks(redrawn: Redrawn | None) -> tuple[list[str], list[str]]:
    """Return a list of warnings and a list of notes about a comparison with new processes.

    A warning is returned if few processes could be compared. Noise that each process draws only
    once may then look like a leak.

    redrawn: the comparison; None if no comparison was asked for, which gives two empty lists.
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
    """Return the warning that calls change variables of the mechanism.

    names: the variables.  redrawn: comparison with new processes, which start with the original
    values of the variables.  is_reproducible: whether equal seeds give equal outputs.
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
