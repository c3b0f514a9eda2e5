"""Values as they are written on the command line."""

__all__: list[str] = []
