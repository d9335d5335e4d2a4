"""What exceptions say in a result: the first of each kind, and inputs that give nothing else."""

from __future__ import annotations

from dpaudit.certificates.certificate import Certificate, FirstFailure
from dpaudit.inputs.pairs import NeighbouringPair, short
from dpaudit.sampling.chunks import Failures


def doubtful_inputs(pair: NeighbouringPair, certificate: Certificate) -> tuple[str, ...]:
    """Return a warning of an input for which every draw was an exception.

    It may be meant, and then is the worst of leaks; more often the input is of a wrong type.
    """
    counts = certificate.failures.values()
    arms = [row for block in certificate.blocks for row in block.tally]
    found = []
    for arm, (name, dataset) in enumerate((("d1", pair.d1), ("d2", pair.d2))):
        drawn = sum(row[arm] for row in arms)
        if drawn and sum(count[arm] for count in counts) == drawn:
            found.append(
                f"every draw of {name} ({drawn:,}) raised an exception: is {short(dataset)}, of "
                f"type {type(dataset).__name__}, the right input?"
            )
    return tuple(found)


def first_failures(failures: Failures) -> dict[str, FirstFailure]:
    """Return what the first exception of each kind said, and where it was raised."""
    first = ((kind, failures.first.get(kind)) for kind in failures.counts)
    return {kind: FirstFailure(one.message, one.where) for kind, one in first if one is not None}
