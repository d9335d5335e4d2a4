"""Configuration: convert YAML files and command-line flags, which have the same keys, to
`AuditSpec` objects.

setting
    The value of an option of an audit, under its key in a configuration file.
entry
    An item of the list `audits` of a file, which may give several audits.
path
    The keys and list indices that lead to a setting, such as ("claim", "epsilon").
place
    Where a setting is, for messages, such as `audits.yaml:12: `; `locate` maps a path to it.
flags
    The keys that were given as command-line flags; messages name these.
project
    The table `[tool.dpaudit]` of pyproject.toml, with defaults for all audits.
base
    The folder in which relative files are looked for, after the working directory.
matrix
    The key that expands an entry into one audit for each combination of values.
FILL_IN
    The text that `dpaudit init` leaves where the user must state a value.
"""
