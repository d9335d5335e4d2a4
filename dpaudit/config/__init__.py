"""Configuration: YAML files and command-line flags to `AuditSpec`s, through the same keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpaudit.auditing.spec import AuditSpec
from dpaudit.config.building import build_claims, build_spec
from dpaudit.config.schema import schema

__all__ = ["build_claims", "build_spec", "load_config", "schema"]


def load_config(path: Path, overrides: Mapping[str, Any] | None = None) -> list[AuditSpec]:
    """Return the audits of a configuration file; see `dpaudit.config.loading.load_config`."""
    # PyYAML is not needed, so not imported, where a target is given on the command line.
    from dpaudit.config.loading import load_config as load

    return load(path, overrides)
