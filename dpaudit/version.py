"""Define the version of dpaudit. The build, the command line and results read it from here."""

__version__ = "1.0.0"
