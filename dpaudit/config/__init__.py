"""Configuration: YAML files and command-line flags to `AuditSpec`s, through the same keys."""
