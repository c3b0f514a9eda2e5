"""The host that a command line describes."""

__all__: list[str] = []
