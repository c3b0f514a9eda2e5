"""The version, as a constant: reading it from metadata would cost more than the whole of ``--version``."""

__version__ = "0.1.0"
