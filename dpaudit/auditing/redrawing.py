"""Compares a refutation with draws of new processes (docs/method.md §11).

Noise that is drawn when a module is imported, or that is seeded by the clock, is the same in all
draws of one process, so that no draw of that process shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.checks import is_timed, listed
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.certificate import Block, Redrawn
from dpaudit.certificates.replay import tally as replay_tally
from dpaudit.draws import Tally
from dpaudit.errors import UsageError
from dpaudit.sampling.chunks import Measure, ToCount
from dpaudit.sampling.executors import new_processes
from dpaudit.sampling.executors.new_processes import Answers, NewProcesses
from dpaudit.sampling.executors.pools import Recipe
from dpaudit.sampling.independence import between_processes
from dpaudit.sampling.sampler import Sampler
from dpaudit.wording import counted

# Draws of each process: 1/8 of those that refuted, within limits.
_SHARE, _FEWEST, _MOST = 1 / 8, 8, 250
# The draws of one process may take this many seconds; fewer draws than these show nothing.
_SECONDS, _TOO_FEW = 0.5, 4
# Probability, at most, that independent draws seem to differ.
DIFFERENT = 1e-3
# Each process draws again from this e-value on, which at most half of all audits of independent
# draws reach.
_SUSPECT = 2.0
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
        """Return what was compared, and how the draws differ beyond chance.

        The text is empty if they do not. It is not with probability at most `DIFFERENT` for
        independent draws.
        """
        if is_timed(self.spec):
            return Redrawn(0, 0, _BY_TIMES), ""
        most = min(_MOST, int(_SECONDS / max(self.seconds, 1e-9)))
        if most < _TOO_FEW:
            return Redrawn(0, 0, _TOO_SLOW.format(self.seconds)), ""
        try:
            recipe = Recipe.of(self.make)
        except UsageError as error:
            return Redrawn(0, 0, str(error)), ""
        certified = [replay_tally(one) for one in refuted.blocks if one.stage != "learning"]
        first = sum(certified, Tally.empty(refuted.measure.portfolio.levels))
        size = min(most, max(_FEWEST, int(first.draws * _SHARE)))
        answers = self._answers(recipe, refuted, 0, new_processes.PROCESSES, size)
        processes = len(answers.drawn)
        if answers.failed or not processes:
            return Redrawn(0, 0, answers.why), ""
        every = [one.tally for one in answers.drawn]
        # Two tests, each with half of the error probability: the first one decides only whether
        # there is a second.
        evidence, words = between_processes(first, every, refuted.guesses, DIFFERENT / 2)
        if not words and evidence >= math.log(_SUSPECT):
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
    """Return a warning that calls change variables. redrawn: whether outputs depend on them."""
    unlike = "" if is_reproducible else "equal seeds do not give equal outcomes, and "
    words = f"{unlike}the mechanism keeps state between calls (calls changed {listed(names)}); "
    if redrawn is not None and redrawn.processes:
        processes = counted(redrawn.processes, "new process")
        return f"{words}{processes}, which begin without it, drew as this one did"
    return (
        f"{words}no new process was compared with this one, and if the outputs depend on that "
        "state, they are not independent and may refute a claim that holds"
    )
