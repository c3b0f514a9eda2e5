"""One module for each command."""

__all__: list[str] = []
