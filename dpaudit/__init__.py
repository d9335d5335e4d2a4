"""dpaudit: a statistical auditor for differential privacy.

`audit` is the one function most callers need; `bound` audits draws made elsewhere. Names are
imported when they are first used, so that importing the package has no side effect and costs
nothing.
"""

from __future__ import annotations

from importlib import import_module

from dpaudit.version import __version__

TYPE_CHECKING = False  # spares the import of typing
if TYPE_CHECKING:
    from typing import Any

    from dpaudit.api import audit, bound, bound_guesses
    from dpaudit.certificates.result import AuditResult, Certificate, Progress, Verdict
    from dpaudit.claims import (
        ApproximateDP,
        ComputationalDP,
        FunctionalDP,
        GaussianDP,
        PrivacyClaim,
        ProbabilisticDP,
        PureDP,
        RenyiDP,
        TotalVariation,
        ZeroConcentratedDP,
    )
    from dpaudit.errors import DpauditError, MechanismError, UsageError

__all__ = [
    "ApproximateDP",
    "AuditResult",
    "Certificate",
    "ComputationalDP",
    "DpauditError",
    "FunctionalDP",
    "GaussianDP",
    "MechanismError",
    "PrivacyClaim",
    "ProbabilisticDP",
    "Progress",
    "PureDP",
    "RenyiDP",
    "TotalVariation",
    "UsageError",
    "Verdict",
    "ZeroConcentratedDP",
    "__version__",
    "audit",
    "bound",
    "bound_guesses",
]

_HOMES = {
    "dpaudit.api": ("audit", "bound", "bound_guesses"),
    "dpaudit.certificates.result": ("AuditResult", "Certificate", "Progress", "Verdict"),
    "dpaudit.claims": (
        "ApproximateDP",
        "ComputationalDP",
        "FunctionalDP",
        "GaussianDP",
        "PrivacyClaim",
        "ProbabilisticDP",
        "PureDP",
        "RenyiDP",
        "TotalVariation",
        "ZeroConcentratedDP",
    ),
    "dpaudit.errors": ("DpauditError", "MechanismError", "UsageError"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
