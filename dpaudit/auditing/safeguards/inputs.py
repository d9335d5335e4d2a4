"""Find inputs of a wrong type, and mechanisms that raise an exception at every call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpaudit.auditing.safeguards.protocol import (
    CountedBlocks,
    KeptDraws,
    PairSafeguard,
    RecordedRows,
    remarked,
)
from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.evidence import FEW_DRAWS, Block
from dpaudit.errors import Given, MechanismError, needs_device
from dpaudit.inputs.neighbouring import check_pair
from dpaudit.inputs.pairs import (
    Side,
    describe_pair,
    differ_in_type,
    notes,
    stated,
    with_type,
)
from dpaudit.targets.target import what_to_check
from dpaudit.torch_use import misses_device

_TIMED = (
    "the audit used elapsed times. They depend on the machine and its load: no seed repeats them, "
    "and the verdict assumes that other programs favour neither input (calls alternate at random)"
)


class InputTypes(PairSafeguard):
    def observe(self, draws: KeptDraws | CountedBlocks | RecordedRows) -> list[str]:
        if isinstance(draws, KeptDraws):
            ledger = self._ledger
            is_enough = ledger.spent >= min(FEW_DRAWS, ledger.plan.freeze_at)
            if is_enough or ledger.may_stop or draws.is_complete:
                self._check_types()
            if is_enough:
                self._check_not_all_failed()
        return []

    def judge(self, certificate: Certificate, counts: CountedBlocks) -> Certificate:
        spec, pair = self._spec, self._pair
        doubt = getattr(self._source.sampler.mechanism, "doubt", None)
        return remarked(
            replace(certificate, adjacency=stated(pair)),
            first=[
                *check_pair(pair, spec.group),
                *([doubt] if doubt else []),
                *([_TIMED] if spec.statistics.timing else []),
            ],
            last=self._failed_inputs(certificate),
            last_notes=notes(pair, spec.group),
        )

    def _check_not_all_failed(self) -> None:
        failures = self._ledger.failures
        if failures.total < self._ledger.spent:
            return
        # Two implementations may reject an input rightly, or by exceptions that differ. `judge`
        # warns, and `why_underpowered` reports that no input gave outputs.
        is_one_sided = any(0 in count for count in failures.counts.values())
        if isinstance(self._pair.d1, Side) and (is_one_sided or len(self._spec.pairs) > 1):
            return
        first = next(iter(failures.first.values()))
        if misses_device(first.message):
            raise needs_device(first.message)
        raise MechanismError(
            f"all {self._ledger.spent:,} draws of both inputs raised an exception, the first one "
            f"{first.words}; an audit needs outputs: "
            f"{what_to_check(self._spec.target, first.kind, first.message)}",
            code="always-raises",
        )

    def _check_types(self) -> None:
        """Raise MechanismError if d1 or d2 alone seems to have the wrong type."""
        # The inputs must differ in type, and all draws of one input must raise a TypeError or
        # AttributeError, which the other never raises as often: more often a mistake of the user
        # than a leak by data that the mechanism has to accept. Inputs that a search made have the
        # type that the user asked for.
        spec, pair, failures = self._spec, self._pair, self._ledger.failures
        if spec.sampling.on_error != "auto" or spec.search is not None or not failures.total:
            return
        draws = _arms(self._ledger.blocks)
        inputs = ("d1", pair.d1), ("d2", pair.d2)
        for arm, (name, dataset) in enumerate(inputs):
            kinds = (
                kind
                for kind, count in failures.counts.items()
                if 0 < draws[arm] == count[arm] and count != draws and _is_of_types(kind)
            )
            kind = next(kinds, None)
            if kind is not None and differ_in_type(pair.d1, pair.d2):
                other_name, other_dataset = inputs[1 - arm]
                raise MechanismError(
                    f"{name} always raises {failures.first[kind].words}; {name} is "
                    f"{with_type(dataset)}, and {other_name} is {with_type(other_dataset)}. Fix "
                    f"{name}; if users can send such data, the exception itself is the leak: give ",
                    Given("on_error='outcome'", "--on-error outcome (YAML: on_error: outcome)"),
                    code="always-raises",
                )

    def _failed_inputs(self, certificate: Certificate) -> list[str]:
        """Return a warning for each input whose draws are all exceptions."""
        if self._spec.search is not None:
            return []
        draws, counts = _arms(certificate.evidence.blocks), certificate.failures.values()
        if isinstance(self._pair.d1, Side):
            return [
                f"{name} always raises ({draws[arm]:,} draws)"
                for arm, name in enumerate("AB")
                if 0 < draws[arm] == sum(count[arm] for count in counts)
            ]
        words = describe_pair(self._pair.d1, self._pair.d2) if certificate.failures else ""
        return [
            f"{name} always raises ({draws[arm]:,} draws): {words}. Fix "
            f"{name}; if users can send such data, the exception itself is the leak"
            for arm, name in enumerate(("d1", "d2"))
            if 0 < draws[arm] == sum(count[arm] for count in counts)
        ]


def _arms(blocks: Sequence[Block]) -> tuple[int, int]:
    d1, d2 = sum(block.tally.counts.sum(axis=0) for block in blocks)
    return int(d1), int(d2)


def _is_of_types(kind: str) -> bool:
    # `kind` is the name of a class. NumPy raises subclasses of TypeError with other names, such as
    # UFuncTypeError and _UFuncNoLoopError.
    return kind in ("TypeError", "AttributeError") or kind.lstrip("_").startswith("UFunc")
