"""Compare a refutation with draws of new processes (docs/method.md §11, *New processes*).

Noise that is drawn when a module is imported is equal in all draws of one process, so only other
processes show it. engine.py makes a `Redrawing` for each pair whose claim is refuted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.ledger import REDRAWING, Ledger
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.time_left import Journal
from dpaudit.certificates.certificate import Redrawn
from dpaudit.draws import pool
from dpaudit.errors import MechanismError, UsageError
from dpaudit.levels.portfolio import Portfolio
from dpaudit.sampling.between_processes import (
    Division,
    between_processes,
    order_free_cells,
    rule_cells,
)
from dpaudit.sampling.chunks import Learning, ToLearn
from dpaudit.sampling.executors import LOCAL, WorkerPool, new_processes
from dpaudit.sampling.executors.new_processes import NewProcesses
from dpaudit.sampling.executors.pools import Recipe
from dpaudit.sampling.sampler import Sampler
from dpaudit.targets.target import runs_in_another_process

# Number of draws of each process. If the time limit allows fewer than `_ENOUGH_DRAWS`, a note gives
# the chance of a miss; with fewer than `_MIN_DRAWS`, the check is left out.
_MOST_DRAWS, _ENOUGH_DRAWS, _MIN_DRAWS = 2_000, 200, 8
# Share in % of comparisons that miss noise that a process draws once (docs/method.md §11, simulated
# by benchmarks/new_processes.py).
# _MISSED_BY_PROCESSES: by the number of new processes, one value for each input with as much fresh
#     noise, 200 draws in each (--processes 3 2 1).
# _MISSED_BY_DRAWS: by the number of processes and the draws of each, (the same value, a pool of 50
#     values).
_MISSED_BY_PROCESSES = {0: 100, 1: 19, 2: 4.5, 3: 1}
_MISSED_BY_DRAWS = {
    8: {100: (0, 76), 50: (7, 100), 25: (57, 100), _MIN_DRAWS: (100, 100)},
    4: {100: (5, 98), 50: (29, 100), 25: (81, 100), _MIN_DRAWS: (100, 100)},
}
# Probability of a false alarm: that independent draws of several processes are reported as
# different.
DIFFERENCE_ALPHA = 1e-5

_AFAR = "the processes that draw are started elsewhere"
_BY_TIMES = "outcomes depend on elapsed times, which differ between processes"
_TOO_SLOW = "one draw takes {:.2g} s, and all of them may take {:g} s"


@dataclass(frozen=True, slots=True, eq=False)
class Refutation:
    """The draws that refuted the claim, and the rule that counted them.

    ledger: the draws of the pair.
    rule: the frozen rules.
    guesses: (levels,), the guesses of the rule that refutes the claim: 1 for d1, -1 for d2, 0 for
        none.
    """

    ledger: Ledger
    rule: Portfolio
    guesses: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Redrawing:
    """Checks the refutations of one audit: compares draws of this process with draws that new
    processes make. If the distributions differ, the audit ends with an error: noise that each
    process draws only once may look like a leak.

    spec: the audit.
    processes: the new processes; other audits may share them.
    here: draws where the audit draws.
    make: function without arguments that returns a sampler. Each new process gets a pickled copy of
    this function.
    seconds: duration of one draw.
    wait: called repeatedly, without arguments, while new processes draw, to show progress.
    """

    spec: AuditSpec
    processes: NewProcesses
    here: WorkerPool
    make: Callable[[], Sampler]
    seconds: float
    wait: Callable[[], None]

    def recorded(self, journal: Journal, refuted: Refutation) -> Redrawn:
        """Compare draws of this process with draws of new processes, and return a record of the
        comparison. If an interrupted run of the audit has made the comparison, take it from the
        journal, the file that this run left.

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
        """Compare draws of this process with draws of new processes. Return (record of the
        comparison, text that says how the draws differ).

        The text is "" if no difference was found, or if no comparison was possible. If all draws
        are independent and follow the same distributions, a difference is reported with a
        probability of at most `DIFFERENCE_ALPHA`, whatever the draws that refuted the claim.
        """
        if self.spec.is_timed:
            return Redrawn(0, 0, _BY_TIMES), ""
        is_local = self.spec.sampling.executor in LOCAL
        if not (is_local or runs_in_another_process(self.spec.target)):
            return Redrawn(0, 0, _AFAR), ""
        size = self._size(refuted.ledger)
        if size < _MIN_DRAWS:
            limit = new_processes.DRAWING_SECONDS
            return Redrawn(0, 0, _TOO_SLOW.format(self.seconds, limit)), ""
        try:
            recipe = Recipe.of(self.make)
        except UsageError as error:
            return Redrawn(0, 0, str(error)), ""
        stream = (refuted.ledger.number, REDRAWING)
        chunks = [ToLearn((*stream, n), size) for n in range(new_processes.PROCESSES + 1)]
        answers = self.processes.draw(recipe, chunks[1:], self.wait)
        if answers.failed or not answers.drawn:
            return Redrawn(0, 0, answers.why), ""
        if words := _new_failure(answers.drawn, refuted.ledger):
            return Redrawn(0, 0, f"a new process raises {words}"), ""
        # Further draws of this process, since those that refuted the claim are not typical of it.
        every = [*self.here(chunks[:1]), *answers.drawn]
        parts = [learning.fresh.release() for learning in every]
        outcomes = pool(parts).outcomes
        everyone = range(len(parts))
        divisions = [Division(cell, everyone) for cell in order_free_cells(outcomes)]
        rule = rule_cells(outcomes, refuted.rule, refuted.guesses)
        divisions += [Division(cell, answers.alike) for cell in rule]
        _, words = between_processes(parts, divisions, DIFFERENCE_ALPHA)
        draws = sum(part.size for part in parts[1:])
        return Redrawn(len(answers.drawn), draws, answers.why), words

    def _size(self, ledger: Ledger) -> int:
        """Return the number of draws of each process that the time limit and memory allow."""
        processes = new_processes.PROCESSES
        seconds = new_processes.DRAWING_SECONDS / processes
        size = min(_MOST_DRAWS, ledger.plan.limits.buffer_draws // (processes + 1))
        return min(size, int(seconds / max(self.seconds, 1e-9)))


def _new_failure(drawn: list[Learning], ledger: Ledger) -> str:
    """Return an exception that only new processes raise; "" if there is none."""
    for learning in drawn:
        for kind in learning.failures.counts.keys() - ledger.failures.counts.keys():
            return learning.failures.first[kind].words
    return ""


def redrawing_remarks(redrawn: Redrawn) -> tuple[list[str], list[str]]:
    """Return (warnings, notes) about a comparison with new processes: a warning if too few of them
    drew in time, and a note if each made few draws, or none could be compared."""
    processes, wanted = redrawn.processes, new_processes.PROCESSES
    notes = [] if processes else [f"not compared with draws of new processes: {redrawn.note}"]
    each = redrawn.draws // max(1, processes)
    if processes and each < _ENOUGH_DRAWS:
        missed = _MISSED_BY_DRAWS[8 if processes >= 8 else 4]
        value, of_fifty = missed[max(size for size in missed if size <= max(each, _MIN_DRAWS))]
        notes.append(
            f"only {each:,} draws of each new process were compared: noise that a process draws "
            f"once for each input would pass for a leak in about {value} % of such audits, a pool "
            f"of 50 values in about {of_fifty} %"
        )
    is_late = processes > 0 or redrawn.note == new_processes.late(0)
    if not is_late or processes not in _MISSED_BY_PROCESSES:
        return [], notes
    warning = (
        f"only {processes} of {wanted} new processes could be compared with this one "
        f"({redrawn.note}): noise that a process draws once, such as when a module is imported, "
        f"would pass for a leak in about {_MISSED_BY_PROCESSES[processes]} % of such audits"
    )
    return [warning], notes
