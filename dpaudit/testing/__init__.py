"""Check mechanisms in tests: `assert_private`, `assert_violates`, `assert_same_law` and
`assert_kills`, and a plugin for pytest.

Importing this package imports no other module, since pytest imports it at every start.
"""

from __future__ import annotations

TYPE_CHECKING = False  # spares the import of typing
if TYPE_CHECKING:
    from typing import Any

    from dpaudit.testing.assertions import AuditWarning as AuditWarning
    from dpaudit.testing.assertions import assert_private as assert_private
    from dpaudit.testing.assertions import assert_same_law as assert_same_law
    from dpaudit.testing.assertions import assert_violates as assert_violates
    from dpaudit.testing.kills import assert_kills as assert_kills

__all__ = ["AuditWarning", "assert_kills", "assert_private", "assert_same_law", "assert_violates"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dpaudit.testing import assertions

    if name == "assert_kills":  # plants bugs, which few tests do
        from dpaudit.testing.kills import assert_kills

        return assert_kills
    return getattr(assertions, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
