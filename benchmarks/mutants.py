"""Planted bugs in mechanisms with exact laws: no bug that leaks on the audited pair may be called
harmless. Prints the score of each configuration, and the bugs whose exact ε is known.

    python -m benchmarks.mutants
    python -m benchmarks.mutants --samples 400 configs/seeds/002-laplace.yaml
"""

from __future__ import annotations

import argparse
import math
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.auditing.spec import AuditSpec
from dpaudit.claims import GaussianDP
from dpaudit.config.yaml_files import load_config
from dpaudit.mutating.judging import Answer
from dpaudit.mutating.mutants import Mutant
from dpaudit.mutating.scoring import Mutation, mutated
from dpaudit.targets.target import ImportedTarget
from mechanisms.truth import Truth, truth_of

ROOT = Path(__file__).parents[1]
# A bug whose ε is this multiple of the claim on the audited pair leaks.
LEAKS = 1.5
FILES = (
    "quickstart",
    *("seeds/000-encryption", "seeds/000-histogram", "seeds/000-pdp", "seeds/000-poll"),
    *("seeds/000-repeated-poll", "seeds/001-gaussian", "seeds/001-survey", "seeds/002-exponential"),
    *("seeds/002-laplace", "seeds/002-noisy-max", "seeds/003-indistinguishability"),
    *("seeds/004-local", "seeds/004-scipy-noise"),
)
# The parameter to which the scale of the noise is inverse, and on which nothing else depends.
_PRECISIONS = {
    "mechanisms.laplace:laplace": "epsilon",
    "mechanisms.laplace_queries:mean": "epsilon",
    "mechanisms.laplace_queries:column_sums": "epsilon",
    "mechanisms.gaussian:gaussian": "mu",
    "mechanisms.noisy_max:noisy_max": "epsilon",
    "mechanisms.noisy_max:noisy_max_half": "epsilon",
    "mechanisms.noisy_max:noisy_max_value": "epsilon",
    "mechanisms.scipy_noise:laplace_mech": "epsilon",
    "mechanisms.scipy_noise:discrete_laplace_mech": "epsilon",
}


@dataclass(frozen=True, slots=True)
class Known:
    """A judged bug whose exact leak is known.

    excess: ε of the bug on the pair, at the δ of the claim, divided by the claimed ε (μ by μ).
    """

    audit: str
    mutant: Mutant
    excess: float
    answer: Answer

    @property
    def is_wrong(self) -> bool:
        """Whether a leak is called harmless."""
        return self.excess >= LEAKS and self.answer == "not shown to be a leak"


def audits(file: Path, samples: int) -> list[AuditSpec]:
    """Return the audits of a configuration that expect no violation, with fewer draws."""
    specs = load_config(file, {"samples": samples})
    return [spec for spec in specs if spec.requirements.expect != "violation"]


def known(result: Mutation, specs: Sequence[AuditSpec]) -> Iterator[Known]:
    """Yield the bugs whose exact leak is known, for the audit of each that shows most."""
    by_name = {spec.name: spec for spec in specs}
    for mutant, judgement in result.judged:
        if judgement.answer == "invalid":
            continue
        excesses = {name: excess_of(mutant, by_name[name]) for name in mutant.audits}
        certain = {name: excess for name, excess in excesses.items() if excess is not None}
        if certain:
            name = max(certain, key=certain.__getitem__)
            yield Known(name, mutant, certain[name], judgement.answer)


def excess_of(mutant: Mutant, spec: AuditSpec) -> float | None:
    """Return the exact leak of a bug on the pair of an audit, as `Known.excess`; None if it is not
    known."""
    target = spec.target
    is_plain = isinstance(target, ImportedTarget) and target.init is None and bool(spec.pairs)
    if not is_plain or spec.claim.adversary is not None:
        return None
    assert isinstance(target, ImportedTarget)
    module, _, attribute = target.path.partition(":")
    changed = types.ModuleType(f"mutant_of_{module}")
    sys.modules[changed.__name__] = changed  # dataclasses look it up
    exec(compile(mutant.source, mutant.file, "exec"), vars(changed))  # noqa: S102  # our own text
    if Path(str(import_module(module).__file__)) != Path(mutant.file):
        return None
    specimen = getattr(changed, attribute)
    truth, params = truth_of(specimen), dict(target.params)
    d1, d2 = spec.pairs[0].d1, spec.pairs[0].d2
    match mutant.kind:
        case "scale-halved":
            precision = _PRECISIONS.get(target.path)
            if precision is None:
                return None
            value = params.get(precision, truth.defaults.get(precision))
            assert value is not None
            params[precision] = 2 * value
        case "no-noise" | "fixed-seed":
            return (
                0.0
                if _outputs(specimen, d1, params) == _outputs(specimen, d2, params)
                else math.inf
            )
        case "scale-from-data":
            return math.inf if np.max(d1) != np.max(d2) else None
    return _excess(truth, spec, params)


def _outputs(specimen: Callable[..., Any], data: Any, params: dict[str, Any]) -> str:
    return repr([specimen(data, size=50, rng=np.random.default_rng(7), **params)])


def _excess(truth: Truth, spec: AuditSpec, params: dict[str, Any]) -> float | None:
    d1, d2 = spec.pairs[0].d1, spec.pairs[0].d2
    if isinstance(spec.claim, GaussianDP):
        return truth.mu(d1, d2, **params) / spec.claim.mu
    point = spec.claim.point()
    is_stated = truth.stated_pmf is not None or truth.stated_profile is not None
    if point.epsilon == 0 or not (is_stated or truth.stated_epsilon is not None):
        return None
    if point.delta and not is_stated:
        return None
    if point.delta == 0:
        return truth.epsilon(d1, d2, **params) / point.epsilon
    # The smallest ε with δ(ε) ≤ δ, from above.
    grid = np.linspace(0, 20 * point.epsilon, 4_001)
    enough = [e for e in grid if truth.profile(d1, d2, float(e), **params) <= point.delta]
    return float(min(enough, default=math.inf)) / point.epsilon


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--samples", type=int, default=20_000)
    arguments = parser.parse_args()
    usual = [ROOT / "configs" / f"{name}.yaml" for name in FILES]
    bugs: list[Known] = []
    print(f"{arguments.samples:,} draws for each audit\n")
    print(f"{'configuration':<26}audits  killed  missed  not shown  invalid  score")
    for file in arguments.files or usual:
        specs = audits(file, arguments.samples)
        result = mutated(specs)
        counts, score = result.counts, result.score
        shown = "-" if score is None else f"{math.floor(100 * score)} %"
        print(
            f"{file.stem:<26}{len(result.audits):>6}{counts['killed']:>8}{counts['missed']:>8}"
            f"{counts['not shown to be a leak']:>11}{counts['invalid']:>9}{shown:>7}",
            flush=True,
        )
        bugs += known(result, specs)
    print(f"\n{'audit':<36}{'bug':<17}{'line':>4}  {'ε / claim':>9}  answer")
    for bug in bugs:
        where = f"{bug.mutant.kind:<17}{bug.mutant.line:>4}"
        print(f"{bug.audit:<36}{where}  {bug.excess:>9.3g}  {bug.answer}")
    wrong = sum(bug.is_wrong for bug in bugs)
    leaking = sum(bug.excess >= LEAKS for bug in bugs)
    print(f"\n{leaking} bugs with ε ≥ {LEAKS} times the claim, {wrong} called harmless (wanted: 0)")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
