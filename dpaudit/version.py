"""The version of dpaudit, which the build, the command line and results read from here."""

__version__ = "0.1.0"
