"""Compare a refutation with draws of new processes (docs/method.md §11, *New processes*).

Noise that is drawn when a module is imported is equal in all draws of one process, so only other
processes show it. engine.py makes a `Redrawing` for each pair whose claim is refuted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.checks import DRAWS_OF_NEW_PROCESS, SUSPECT_E_VALUE
from dpaudit.auditing.ledger import REDRAWING, Ledger
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.time_left import Journal
from dpaudit.certificates.records import Redrawn
from dpaudit.draws import SelectionDraws, Tally
from dpaudit.errors import MechanismError, UsageError
from dpaudit.levels.level_map import NearLevels
from dpaudit.sampling import homogeneity
from dpaudit.sampling.chunks import Measure, ToCount
from dpaudit.sampling.executors import LOCAL, new_processes
from dpaudit.sampling.executors.new_processes import Answers, NewProcesses
from dpaudit.sampling.executors.pools import Recipe
from dpaudit.sampling.sampler import Sampler
from dpaudit.targets.target import runs_in_another_process

# The new processes that check a refutation get equal shares of a time limit. If a share is enough
# only for fewer draws than this number, the check is left out. If time allows, each process makes
# at least twice this number of draws.
_MIN_DRAWS = 4
# Probability of a false alarm: that independent draws of several processes are reported as
# different.
DIFFERENCE_ALPHA = 1e-3
# Suppose that each process draws noise only once per input, and reuses it for all draws. A
# comparison with n new processes misses this with probability at most about 0.38 to the power of n.
# A simulation gave 0.28, 0.11, 0.05, 0.02, 0.01, 0.005, 0.002 and 0.001 for n = 1 to 8, with
# Laplace noise of scale 1 and outputs of d1 and d2 that would differ by 1 without noise.
_MISS_PER_PROCESS = 0.38
# A comparison with draws of new processes may miss noise that each process draws only once. If the
# probability of this is larger than 0.01, the result has a warning.
_MAX_MISS = 0.01

_AFAR = "the processes that draw are started elsewhere"
_BY_TIMES = "outcomes depend on elapsed times, which differ between processes"
_TOO_SLOW = "one draw takes {:.2g} s, and all of them may take 5 s"


@dataclass(frozen=True, slots=True, eq=False)
class Refutation:
    """The draws that refuted the claim, and the rule that counted them.

    ledger: the draws of the pair.
    measure: the frozen rules that count draws.
    guesses: (levels,), the guesses of the rule that refutes the claim: 1 for d1, -1 for d2, 0 for
        none.
    tallies: counts by level (bin) and input of the draws that the rule counted, block by block.
    is_number: whether all outputs are single numbers. If so, new processes may have other hash
        seeds: a hash seed changes the order of sets, which affects a number by rounding at most.
    """

    ledger: Ledger
    measure: Measure
    guesses: NDArray[np.int64]
    is_number: bool
    tallies: tuple[Tally, ...]

    @classmethod
    def of(
        cls,
        ledger: Ledger,
        selection: SelectionDraws,
        measure: Measure,
        guesses: NDArray[np.int64],
        tallies: Sequence[Tally],
    ) -> Refutation:
        """Return the record of a refutation, to compare its draws with draws of new processes.

        selection: the draws in the sample buffer. They show whether all outputs are single numbers.
        """
        columns = selection.outcomes.columns
        is_number = (
            len(columns) == 1
            and columns[0].codes is None
            and not ledger.spec.statistics.floating_point
        )
        # A new process may add up the numbers of a set in another order, and so round the sum
        # differently. So a new number within rounding of an earlier number gets the level
        # of the earlier number.
        if is_number:
            near = NearLevels.of(measure.portfolio.level, columns[0].numbers)
            measure = replace(measure, portfolio=replace(measure.portfolio, level=near))
        return cls(ledger, measure, guesses, is_number, tuple(tallies))


@dataclass(frozen=True, slots=True, eq=False)
class Redrawing:
    """Checks the refutations of one audit: compares the draws that refuted a claim with draws that
    new processes make. If the distributions differ, the audit ends with an error: noise that each
    process draws only once may look like a leak.

    spec: the audit.
    processes: the new processes; other audits may share them.
    make: function without arguments that returns a sampler. Each new process gets a pickled copy of
    this function.
    seconds: duration of one draw.
    wait: called repeatedly, without arguments, while new processes draw, to show progress.
    """

    spec: AuditSpec
    processes: NewProcesses
    make: Callable[[], Sampler]
    seconds: float
    wait: Callable[[], None]

    def recorded(self, journal: Journal, refuted: Refutation) -> Redrawn:
        """Compare the draws that refuted a claim with draws of new processes, and return a record
        of the comparison. If an interrupted run of the audit has made the comparison, take it from
        the journal, the file that this run left.

        Raises MechanismError if new processes draw from other distributions.
        """

        def compare() -> tuple[dict[str, Any], str]:
            redrawn, words = self.compared(refuted)
            return asdict(redrawn), words

        recorded = journal.once(f"compared {refuted.ledger.number}", compare)
        if recorded is None:
            return Redrawn(0, 0, "the journal has no draws of new processes")
        redrawn, words = recorded
        if words:
            raise MechanismError(words, code="new-process-differs")
        return Redrawn(**redrawn)

    def compared(self, refuted: Refutation) -> tuple[Redrawn, str]:
        """Compare the draws that refute the claim with draws of new processes. Return (record of
        the comparison, text that says how the draws differ).

        The text is "" if no difference was found, or if no comparison was possible. If all draws
        are independent and follow the same distributions, a difference is reported with a
        probability of at most `DIFFERENCE_ALPHA`.
        """
        if self.spec.is_timed:
            return Redrawn(0, 0, _BY_TIMES), ""
        is_local = self.spec.sampling.executor in LOCAL
        if not (is_local or runs_in_another_process(self.spec.target)):
            return Redrawn(0, 0, _AFAR), ""
        seconds = new_processes.DRAWING_SECONDS / new_processes.PROCESSES
        most = min(DRAWS_OF_NEW_PROCESS, int(seconds / max(self.seconds, 1e-9)))
        may_repeat = True
        if refuted.ledger.ends_by_bets:  # draws are slow: use no more
            each = refuted.ledger.spent // new_processes.PROCESSES
            may_repeat = each >= 2 * _MIN_DRAWS
            most = min(most, each // 2 if may_repeat else max(each, _MIN_DRAWS))
        if most < _MIN_DRAWS:
            return Redrawn(0, 0, _TOO_SLOW.format(self.seconds)), ""
        try:
            recipe = Recipe.of(self.make)
        except UsageError as error:
            return Redrawn(0, 0, str(error)), ""
        levels = refuted.measure.portfolio.levels
        first = sum(refuted.tallies, Tally.empty(levels))
        size = min(most, max(2 * _MIN_DRAWS, first.draws // new_processes.PROCESSES))
        answers = self._answers(recipe, refuted, 0, new_processes.PROCESSES, size)
        processes = len(answers.drawn)
        if answers.failed or not processes:
            return Redrawn(0, 0, answers.why), ""
        every = [one.tally for one in answers.drawn]
        # The draws of the audit and of the new processes are compared by up to two tests, each with
        # half of the error probability. If the first test finds no difference, but raises a
        # suspicion, the second test uses further draws of new processes.
        compare = partial(homogeneity.between_processes, first)
        evidence, words = compare(every, refuted.guesses, DIFFERENCE_ALPHA / 2)
        if not words and may_repeat and evidence >= math.log(SUSPECT_E_VALUE):
            further = self._answers(recipe, refuted, new_processes.PROCESSES, processes, most)
            tallies = [one.tally for one in further.drawn]
            _, words = compare(tallies, refuted.guesses, DIFFERENCE_ALPHA / 2)
            every += tallies
        return Redrawn(processes, sum(one.draws for one in every), answers.why), words

    def _answers(
        self, recipe: Recipe, refuted: Refutation, begin: int, processes: int, size: int
    ) -> Answers:
        """Draw in new processes, and return the counts of their draws.

        recipe: makes the sampler in a new process.
        refuted: the refutation to check; its rules count the draws.
        begin: index of the first random stream; each process has a stream of its own.
        processes: number of new processes.
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


def redrawing_remarks(redrawn: Redrawn) -> tuple[list[str], list[str]]:
    """Return (warnings, notes) about a comparison with new processes. They repeat the draws of a
    refutation, to detect noise that each process draws only once. If no process could be compared,
    there is a note with the reason. If too few processes could be compared to exclude that such
    noise looks like a leak, there is a warning."""
    processes, wanted = redrawn.processes, new_processes.PROCESSES
    notes = [] if processes else [f"not compared with draws of new processes: {redrawn.note}"]
    share = _MISS_PER_PROCESS**processes
    is_late = processes > 0 or redrawn.note == new_processes.late(0)
    if not is_late or processes == wanted or share <= _MAX_MISS:
        return [], notes
    warning = (
        f"only {processes} of {wanted} new processes could be compared with this one "
        f"({redrawn.note}): noise that a process draws once, such as when a module is imported, "
        f"would pass for a leak in about {100 * share:.0f} % of such audits"
    )
    return [warning], notes
