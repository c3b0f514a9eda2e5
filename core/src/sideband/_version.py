"""The version, as a constant: reading the package metadata would take longer than the rest of ``--version``."""

__version__ = "0.1.0"
