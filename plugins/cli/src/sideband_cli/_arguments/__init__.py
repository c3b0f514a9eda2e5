"""Parsing of argument values."""

__all__: list[str] = []
