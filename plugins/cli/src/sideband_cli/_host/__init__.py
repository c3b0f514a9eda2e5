"""The host of a command."""

__all__: list[str] = []
