"""Output and questions shared by all commands."""

__all__: list[str] = []
