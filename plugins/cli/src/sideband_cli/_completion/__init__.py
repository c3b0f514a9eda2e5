"""Completion of the command line in shells."""

__all__: list[str] = []
