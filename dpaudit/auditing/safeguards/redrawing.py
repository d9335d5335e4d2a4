"""Comparison with new processes, after a refutation (docs/method.md §11, *New processes*). It finds
noise that is drawn when a module is imported, and so is equal in all draws of one process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from dpaudit.auditing.ledger import REDRAWING, Ledger
from dpaudit.auditing.safeguards.protocol import CountedBlocks, PairSafeguard, remarked
from dpaudit.certificates.certificate import Certificate, Redrawn
from dpaudit.draws import SelectionDraws, pool
from dpaudit.errors import MechanismError, UsageError
from dpaudit.sampling.chunks import Learning, ToLearn
from dpaudit.sampling.executors import LOCAL, new_processes
from dpaudit.sampling.independence import STORED
from dpaudit.targets.target import CallableTarget, runs_in_another_process, single_targets

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

_DIFFERED = (
    "a new process of the mechanism gave other outputs from the same seed than this one: does "
    "a process keep something, such as noise that it draws once?"
)
_AFAR = "the processes that draw are started elsewhere"
_BY_TIMES = "outcomes depend on elapsed times, which differ between processes"
_TOO_SLOW = "one draw takes {:.2g} s, and all of them may take {:g} s"


class Redrawing(PairSafeguard):
    """Compares draws of this process with draws of new processes. If their distributions differ,
    the audit ends with an error: noise that each process draws only once may look like a leak."""

    def judge(self, certificate: Certificate, counts: CountedBlocks) -> Certificate:
        if not self._is_in_doubt(certificate):
            return certificate
        redrawn = self._redrawn(counts) if self._is_wanted() else None
        is_compared = redrawn is not None and redrawn.processes > 0
        warnings = [_DIFFERED] if self._source.pool.differed and not is_compared else []
        notes: list[str] = []
        if redrawn is not None:
            doubts, notes = redrawing_remarks(redrawn)
            warnings += doubts
        if is_compared:
            # New processes have stored no results, and they drew as this process did. So stored
            # results did not cause the refutation.
            texts = tuple(text for text in certificate.warnings if STORED not in text)
            certificate = replace(certificate, warnings=texts)
        certificate = replace(certificate, redrawn=redrawn)
        return remarked(certificate, first=warnings, last_notes=notes)

    def _is_wanted(self) -> bool:
        """Return whether to compare draws of new processes."""
        # A function that a Python program passes is sent to new processes only if a test run shares
        # them, or if other processes drew already.
        source, targets = self._source, single_targets(self._spec.target)
        can_be_sent = not any(isinstance(target, CallableTarget) for target in targets)
        is_possible = source.shares_processes or can_be_sent or source.pool.others_drew
        return is_possible and new_processes.PROCESSES > 0

    def _redrawn(self, counts: CountedBlocks) -> Redrawn:
        """Return a record of the comparison, from the journal if an earlier run has made it."""

        def compare() -> tuple[dict[str, Any], str]:
            redrawn, words = self._compared(counts)
            return asdict(redrawn), words

        recorded = self._source.journal.once(f"compared {self._ledger.number}", compare)
        if recorded is None:
            return Redrawn(0, 0, "the journal has no draws of new processes")
        redrawn, words = recorded
        if words:
            raise MechanismError(words, code="new-process-differs")
        return Redrawn(**redrawn)

    def _compared(self, counts: CountedBlocks) -> tuple[Redrawn, str]:
        """Return the record of the comparison, and how the draws differ; "" if they do not."""
        if self._spec.is_timed:
            return Redrawn(0, 0, _BY_TIMES), ""
        is_local = self._spec.sampling.executor in LOCAL
        if not (is_local or runs_in_another_process(self._spec.target)):
            return Redrawn(0, 0, _AFAR), ""
        seconds, size = self._ledger.probe.seconds, self._size()
        if size < _MIN_DRAWS:
            limit = new_processes.DRAWING_SECONDS
            return Redrawn(0, 0, _TOO_SLOW.format(seconds, limit)), ""
        from dpaudit.sampling.executors.pools import Recipe  # most audits start no process

        try:
            recipe = Recipe.of(self._source.make)
        except UsageError as error:
            return Redrawn(0, 0, str(error)), ""
        stream = (self._ledger.number, REDRAWING)
        chunks = [ToLearn((*stream, n), size) for n in range(new_processes.PROCESSES + 1)]
        answers = self._source.processes.draw(recipe, chunks[1:], self._source.time.show_waiting)
        if answers.failed or not answers.drawn:
            return Redrawn(0, 0, answers.why), ""
        if words := _new_failure(answers.drawn, self._ledger):
            return Redrawn(0, 0, f"a new process raises {words}"), ""
        # Further draws of this process, since those that refuted the claim are not typical of it.
        learnings = [*self._source.pool(chunks[:1]), *answers.drawn]
        parts = [learning.fresh.release() for learning in learnings]
        words = _difference(parts, counts, answers.alike)
        draws = sum(part.size for part in parts[1:])
        return Redrawn(len(answers.drawn), draws, answers.why), words

    def _size(self) -> int:
        """Return the number of draws for each new process, within the limits of time and memory."""
        processes = new_processes.PROCESSES
        seconds = new_processes.DRAWING_SECONDS / processes
        size = min(_MOST_DRAWS, self._ledger.plan.limits.buffer_draws // (processes + 1))
        return min(size, int(seconds / max(self._ledger.probe.seconds, 1e-9)))


def _difference(parts: list[SelectionDraws], counts: CountedBlocks, alike: Sequence[int]) -> str:
    """Return how the draws of processes differ; "" if they do not."""
    # Imported here, since most refutations by a function of Python are not compared.
    from dpaudit.sampling.between_processes import (
        Division,
        between_processes,
        order_free_cells,
        rule_cells,
    )

    outcomes = pool(parts).outcomes
    divisions = [Division(cell, range(len(parts))) for cell in order_free_cells(outcomes)]
    divisions += [
        Division(cell, alike) for cell in rule_cells(outcomes, counts.rule, counts.guesses)
    ]
    _, words = between_processes(parts, divisions, DIFFERENCE_ALPHA)
    return words


def _new_failure(learnings: list[Learning], ledger: Ledger) -> str:
    """Return an exception that is raised only in new processes; "" if there is none."""
    for learning in learnings:
        for kind in learning.failures.counts.keys() - ledger.failures.counts.keys():
            return learning.failures.first[kind].words
    return ""


def redrawing_remarks(redrawn: Redrawn) -> tuple[list[str], list[str]]:
    """Return (warnings, notes) about a comparison with new processes. There is a warning if too few
    of them drew in time, and a note if each made few draws, or if none could be compared."""
    processes, wanted = redrawn.processes, new_processes.PROCESSES
    notes = [] if processes else [f"not compared with draws of new processes: {redrawn.note}"]
    draws = redrawn.draws // max(1, processes)
    if processes and draws < _ENOUGH_DRAWS:
        missed = _MISSED_BY_DRAWS[8 if processes >= 8 else 4]
        value, of_fifty = missed[max(size for size in missed if size <= max(draws, _MIN_DRAWS))]
        notes.append(
            f"only {draws:,} draws of each new process were compared: noise that a process draws "
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
