"""dpaudit: a statistical auditor for differential privacy.

`audit` tests whether a mechanism leaks more than it claims on a pair of inputs; most callers need
no other function. `bound` makes the same test with recorded outputs. `search` first looks for the
pair on which the mechanism leaks most. A claim is an instance of a definition, such as
`PureDP(1.0)`. All definitions in `dpaudit.claims.definitions` can be imported from this package.

Names are imported when they are first used, so that importing the package has no side effect and
takes next to no time.
"""

from __future__ import annotations

from importlib import import_module

from dpaudit.version import __version__ as __version__

TYPE_CHECKING = False  # avoids the import of typing, which takes time
if TYPE_CHECKING:
    from typing import Any

    from dpaudit.api import audit as audit
    from dpaudit.api import search as search
    from dpaudit.api import trace as trace
    from dpaudit.bounds import bound as bound
    from dpaudit.bounds import bound_canaries as bound_canaries
    from dpaudit.bounds import bound_guesses as bound_guesses
    from dpaudit.certificates.certificate import Certificate as Certificate
    from dpaudit.certificates.result import AuditResult as AuditResult
    from dpaudit.certificates.result import Progress as Progress
    from dpaudit.certificates.result import Verdict as Verdict
    from dpaudit.certificates.traced import Trace as Trace
    from dpaudit.claims.base import PrivacyClaim as PrivacyClaim
    from dpaudit.claims.definitions import *  # noqa: F403
    from dpaudit.errors import DpauditError as DpauditError
    from dpaudit.errors import MechanismError as MechanismError
    from dpaudit.errors import UsageError as UsageError
    from dpaudit.inputs.canaries import Canaries as Canaries
    from dpaudit.reports.notebook import to_frame as to_frame
    from dpaudit.same_law import parity as parity
    from dpaudit.searching.sensitivity import SensitivityResult as SensitivityResult
    from dpaudit.searching.sensitivity import Witness as Witness
    from dpaudit.searching.sensitivity import sensitivity as sensitivity

# Maps each module to the public names that it defines.
_HOMES = {
    "dpaudit.api": ("audit", "search", "trace"),
    "dpaudit.bounds": ("bound", "bound_canaries", "bound_guesses"),
    "dpaudit.certificates.certificate": ("Certificate",),
    "dpaudit.certificates.result": ("AuditResult", "Progress", "Verdict"),
    "dpaudit.certificates.traced": ("Trace",),
    "dpaudit.claims.base": ("PrivacyClaim",),
    "dpaudit.inputs.canaries": ("Canaries",),
    "dpaudit.reports.notebook": ("to_frame",),
    "dpaudit.same_law": ("parity",),
    "dpaudit.searching.sensitivity": ("SensitivityResult", "Witness", "sensitivity"),
    "dpaudit.errors": ("DpauditError", "MechanismError", "UsageError"),
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        exports = [export for names in _HOMES.values() for export in names]
        return sorted([*exports, *_definitions(), "__version__"])
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    # Python also calls this function for submodules (`from dpaudit import cli`). Names of
    # definitions begin with a capital, so the registry is not imported for any other name.
    definition = _definitions().get(name) if name[:1].isupper() else None
    if definition is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return definition


def __dir__() -> list[str]:
    return list(__getattr__("__all__"))


def _definitions() -> dict[str, Any]:
    registry = import_module("dpaudit.claims.registry")
    return {kind.__name__: kind for kind in registry.DEFINITIONS.values()}
