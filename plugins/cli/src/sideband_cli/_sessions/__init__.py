"""Sessions as text and as data."""

__all__: list[str] = []
