"""The version as a constant, because reading it from the metadata would slow down ``--version``."""

__version__ = "0.1.0"
