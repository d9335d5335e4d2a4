"""Compare two implementations of one mechanism from Python: `parity`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

from dpaudit.api import CommonOptions, Target, check_keywords, run
from dpaudit.auditing.options import DEFAULTS
from dpaudit.certificates.result import AuditResult, Progress
from dpaudit.claims import PrivacyClaim, make_claim
from dpaudit.errors import Name, UsageError
from dpaudit.inputs.pairs import sides
from dpaudit.sampling.executors import Workers


def parity(
    a: Target,
    b: Target,
    inputs: Sequence[Any],
    *,
    tau: float = 0.0,
    python_b: str | None = None,
    params: Mapping[str, Any] | None = None,
    samples: int = DEFAULTS["samples"],
    time: float | None = DEFAULTS["time"],
    confidence: float = DEFAULTS["confidence"],
    seed: int = DEFAULTS["seed"],
    workers: Workers = DEFAULTS["workers"],
    on_progress: Callable[[Progress], None] | None = None,
    **more: Unpack[CommonOptions],
) -> AuditResult:
    """Look for statistical proof that two implementations of a mechanism differ on some input.

    Parameters
    ----------
    a, b : callable, str or list of str
        The implementations, in each form that `dpaudit.audit` takes.
    inputs : sequence of Any
        The inputs, each of which both implementations get.
    tau : float, default 0.0
        Largest total variation distance that is allowed between the outputs of A and of B, in
        [0, 1).
    python_b : str, optional
        The Python interpreter of B. Default: `python`, which is that of A, too.
    params : mapping, optional
        Keyword arguments of both implementations.
    samples : int, optional
        Number of draws for each input, of A and B together, from 100 to 10¹⁵.
    time, confidence, seed, workers, on_progress : optional
        As in `dpaudit.audit`.

    Returns
    -------
    AuditResult
        The result, in which A stands in place of d1, and B of d2. The verdict is VIOLATION if the
        outputs on some input differ by more than tau. `delta_lower` is the certified distance.

    Other Parameters
    ----------------
    **more
        Keywords of `dpaudit.audit` for A and for B, such as `batch_arg`. `stop` is "never" by
        default: more draws make the distance sharper. With `floating_point=True`, rounding counts
        as a difference: without it, fractions are compared to about 12 digits.

    Raises
    ------
    UsageError
        For a request that cannot be carried out.
    TypeError
        For an unknown keyword.

    Notes
    -----
    If the distance is at most tau on all inputs, the verdict is VIOLATION with probability at most
    1 - confidence. The claim (0, tau)-DP is tested on the pair (A on d, B on d) of each input d
    (docs/method.md §6).

    Examples
    --------
    >>> import dpaudit
    >>> def plain(x, rng):
    ...     return x + rng.laplace()
    >>> def batched(x, size, rng):
    ...     return x + rng.laplace(scale=2.0, size=size)
    >>> result = dpaudit.parity(plain, batched, [0], samples=10_000)
    >>> result.verdict
    <Verdict.VIOLATION: 'VIOLATION'>
    >>> 0.1 < result.delta_lower < 0.25
    True
    """
    check_keywords("parity", parity, more, CommonOptions)
    if not isinstance(inputs, list | tuple) or not inputs:
        why = f"inputs={inputs!r} must be a list of one or more inputs, such as [[1, 2, 3]]"
        raise UsageError(why, code="option-invalid")
    arguments = {
        "mechanism": a, "claim": claim_of(tau), "python_b": python_b, "params": params,
        "samples": samples, "time": time, "confidence": confidence, "seed": seed,
        "workers": workers, "on_progress": on_progress, "stop": "never", "no_trace": True,
    }  # fmt: skip
    return run({**arguments, **more}, pairs=sides(inputs, inputs), compared_with=b)


def claim_of(tau: Any) -> PrivacyClaim:
    """Return the claim that the distance of two mechanisms is at most tau. Raises UsageError for a
    number outside of [0, 1)."""
    try:
        return make_claim({"delta": tau}, "total-variation")
    except UsageError as error:
        why = f"={tau!r} must be a number from 0 to below 1"
        raise UsageError(Name("tau"), why, code=error.code) from None
