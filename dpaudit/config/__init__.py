"""Configuration: convert YAML files and command-line flags, which have the same keys, to
`AuditSpec` objects."""
