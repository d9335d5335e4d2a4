"""Whether new processes draw as the first one did, after a refutation (docs/method.md §11).

Noise that is drawn when a module is imported, or seeded by the clock, is the same in all draws of
one process: no draw of that process shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.checks import is_timed
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

# Draws of each process, at least and at most, and as a share of those that refuted; seconds that
# they may take; and fewer than these show nothing.
_FEWEST, _MOST, _SHARE = 8, 250, 8
_SECONDS, _TOO_FEW = 0.5, 4
# The probability that independent draws are taken for others, at most. From this e-value on (at
# most half of all audits of independent draws), each process draws once more.
DIFFERENT, _SUSPECT = 1e-3, 2.0
# How often noise that each process draws once for each input (Laplace of scale 1, outputs that
# differ by 1) falls on the same sides of a threshold in 0, 1, 2, ... new processes: simulated.
_UNNOTICED = (1.0, 0.28, 0.11, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)

# Less often, it is no reason for doubt.
_UNLIKELY = 0.01

_BY_TIMES = "outcomes depend on elapsed times, which differ between processes"
_TOO_SLOW = "one draw takes {:.2g} s, and all of them may take 5 s"


@dataclass(frozen=True, slots=True, eq=False)
class Refutation:
    """The certified draws that refuted the claim, and the rule that counted them.

    stream: pair and stage that name the random streams of new draws.  kinds: of exceptions among
    the draws.  is_number: whether all outputs are single numbers: the order of a set, which follows
    from the hash seed, has no part in these.
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

    make: returns a sampler, also in another process.  seconds: that a draw takes.  look: called
    while new processes draw.
    """

    spec: AuditSpec
    processes: NewProcesses
    make: Callable[[], Sampler]
    seconds: float
    look: Callable[[], None]

    def compared(self, refuted: Refutation) -> tuple[Redrawn, str]:
        """Return what was compared, and how the draws differ beyond chance; the empty text if they
        do not, which independent draws do with probability at most `DIFFERENT`."""
        if is_timed(self.spec):
            return Redrawn(0, 0, _BY_TIMES), ""
        most = min(_MOST, int(_SECONDS / max(self.seconds, 1e-9)))
        if most < _TOO_FEW:
            return Redrawn(0, 0, _TOO_SLOW.format(self.seconds)), ""
        try:
            recipe = Recipe.of(self.make)
        except UsageError as error:
            return Redrawn(0, 0, str(error)), ""
        known = [replay_tally(one) for one in refuted.blocks if one.stage != "learning"]
        first = sum(known, Tally.empty(refuted.measure.portfolio.levels))
        size = min(most, max(_FEWEST, first.draws // _SHARE))
        answers = self._answers(recipe, refuted, 0, new_processes.PROCESSES, size)
        processes = len(answers.drawn)
        if answers.failed or not processes:
            return Redrawn(0, 0, answers.why), ""
        every = [one.tally for one in answers.drawn]
        # Two tests, each at half of the error probability: what the first one shows decides only
        # whether there is a second.
        evidence, words = between_processes(first, every, refuted.guesses, DIFFERENT / 2)
        if not words and evidence >= math.log(_SUSPECT):
            further = self._answers(recipe, refuted, new_processes.PROCESSES, processes, most)
            more = [one.tally for one in further.drawn]
            _, words = between_processes(first, more, refuted.guesses, DIFFERENT / 2)
            every += more
        return Redrawn(processes, sum(one.draws for one in every), answers.why), words

    def _answers(
        self, recipe: Recipe, refuted: Refutation, begin: int, processes: int, size: int
    ) -> Answers:
        """Return what processes draw, each from a random stream of its own, by number."""
        numbers = range(begin, begin + processes)
        chunks = [ToCount((*refuted.stream, n), size, refuted.measure) for n in numbers]
        found = self.processes.draw(recipe, chunks, own_hashes=refuted.is_number, look=self.look)
        for one in found.drawn:
            for kind in one.failures.counts.keys() - set(refuted.kinds):
                words = one.failures.first[kind].words
                return Answers([], f"a new process raises {words}", failed=True)
        return found


def doubts(redrawn: Redrawn) -> list[str]:
    """Return a warning where too few processes were compared because they took too long: noise
    that a process draws once may then pass for a leak."""
    wanted = new_processes.PROCESSES
    share = _UNNOTICED[min(redrawn.processes, len(_UNNOTICED) - 1)]
    is_late = redrawn.processes > 0 or redrawn.note == new_processes.late(0)
    if not is_late or redrawn.processes == wanted or share <= _UNLIKELY:
        return []
    return [
        f"only {redrawn.processes} of {wanted} new processes could be compared with this one "
        f"({redrawn.note}): noise that a process draws once, such as when a module is imported, "
        f"would pass for a leak in about {100 * share:g} % of such audits"
    ]
