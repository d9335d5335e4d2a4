"""Configuration: YAML files and command-line flags become `AuditSpec`s, through the same keys."""
