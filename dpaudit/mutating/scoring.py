"""Plant every bug, have the audits judge it, and compute the score."""

from __future__ import annotations

import math
import os
import pickle
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from dpaudit.auditing.options import Journaling
from dpaudit.auditing.spec import AuditSpec
from dpaudit.errors import UsageError
from dpaudit.mutating.judging import Answer, Baseline, Judgement, baseline, judgement
from dpaudit.mutating.kinds import KINDS
from dpaudit.mutating.mutants import Mutant, mutants
from dpaudit.mutating.planting import ChildEnded, run_planted
from dpaudit.processes.child import countdown

# A mutant may take this number of times as long as the audits without a bug, and some seconds: a
# trace and a search follow its audits, and a planted bug may be a loop without end.
_TIMES_AS_LONG, _MORE_SECONDS = 10.0, 60.0


@dataclass(frozen=True, slots=True)
class Mutation:
    """The mutants of some audits, and what the audits say of each.

    Attributes
    ----------
    judged : tuple of (Mutant, Judgement)
        All mutants, by file and kind.
    audits : tuple of str
        Names of the audits that judged them.
    left_out : tuple of (str, str)
        Name of each other audit, and the reason.
    failed : tuple of str
        Names of those among them that do not pass without a bug.
    seed : int
        Seed of the audits.
    seconds : float
        Wall time.
    """

    judged: tuple[tuple[Mutant, Judgement], ...]
    audits: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    failed: tuple[str, ...] = ()
    seed: int = 0
    seconds: float = 0.0

    @property
    def counts(self) -> Counter[Answer]:
        """Number of mutants with each answer."""
        return Counter(judgement.answer for _, judgement in self.judged)

    @property
    def score(self) -> float | None:
        """Killed mutants, as a share of those that were killed or missed; None without any."""
        known = self.counts["killed"] + self.counts["missed"]
        return self.counts["killed"] / known if known else None

    @property
    def is_complete(self) -> bool:
        """Whether every bug was run, and no audit failed without a bug."""
        return not self.counts["not run"] and not self.failed


def mutated(
    specs: Sequence[AuditSpec],
    kinds: Collection[str] = tuple(KINDS),
    seconds: float = math.inf,
    on_step: Callable[[str], None] = lambda words: None,
) -> Mutation:
    """Plant bugs in the mechanisms of audits, one at a time, and have the audits judge each.

    Parameters
    ----------
    specs : sequence of AuditSpec
        The audits. Those that do not pass without a bug judge none.
    kinds : collection of str
        Names of the kinds of bugs, keys of `dpaudit.mutating.kinds.KINDS`.
    seconds : float
        Time limit for everything. Mutants that are left then are not run.
    on_step : callable
        Called with a line of text after each audit without a bug, and after each mutant.

    Raises
    ------
    UsageError
        If an audit cannot be sent to another process.
    """
    began, left = time.monotonic(), countdown(seconds)
    baselines = []
    for spec in specs:
        baselines.append(_baseline(_plain(spec), left()))
        on_step(f"{spec.name}: {baselines[-1].left_out or 'passes without a bug'}")
    judging = {base.spec.name: base for base in baselines if not base.left_out}
    reaches = [(name, base.reach) for name, base in judging.items()]
    all_mutants = list(mutants(reaches, kinds))
    judged: dict[Mutant, Judgement] = {}
    # In random order, so that a time limit leaves out no kind and no file.
    for mutant in random.Random(0).sample(all_mutants, len(all_mutants)):
        verdict = _judged(mutant, [judging[name] for name in mutant.audits], left())
        judged[mutant] = verdict
        on_step(f"{verdict.answer}: {mutant.kind}, {mutant.where}")
    left_out = tuple((base.spec.name, base.left_out) for base in baselines if base.left_out)
    seed = int(specs[0].sampling.seed)
    pairs = tuple((mutant, judged[mutant]) for mutant in all_mutants)
    failed = tuple(base.spec.name for base in baselines if base.fails)
    return Mutation(pairs, tuple(judging), left_out, failed, seed, time.monotonic() - began)


def _plain(spec: AuditSpec) -> AuditSpec:
    """Return an audit with one process, no journal and no trace of a violation."""
    sampling = replace(spec.sampling, workers=1, executor=None)
    return replace(spec, sampling=sampling, journaling=Journaling(), no_trace=True)


def _baseline(spec: AuditSpec, seconds: float) -> Baseline:
    try:
        base: Baseline = run_planted(baseline, (spec,), {}, seconds)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        why = f"{spec.name} cannot be sent to another process ({error})"
        raise UsageError(why, code="not-picklable") from error
    except ChildEnded as error:
        return Baseline(spec, str(error), fails=True)
    return base


def _judged(mutant: Mutant, baselines: Sequence[Baseline], left: float) -> Judgement:
    if left <= 0:
        return Judgement("not run", why="the time was over")
    limit = _MORE_SECONDS + _TIMES_AS_LONG * sum(base.seconds for base in baselines)
    texts = {os.path.realpath(mutant.file): mutant.source}
    try:
        verdict: Judgement = run_planted(judgement, (baselines,), texts, min(limit, left))
    except ChildEnded as error:
        return Judgement("not run" if left < limit else "invalid", why=str(error))
    return verdict
